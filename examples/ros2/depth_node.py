"""A ROS 2 node: colour and depth in, sharp depth out, at the size of the colour image.

    python3 depth_node.py --ros-args -r colour:=/camera/color/image_raw \
        -r depth:=/camera/aligned_depth_to_color/image_raw

Publishes `sharp_depth`: 32FC1 in metres, NaN where nothing is known (REP 118), with the header of
the colour image, so that its camera_info holds for it.
"""

import sys
from array import array
from typing import Any

import numpy as np

from ducos.captures import message_colour, message_depth
from ducos.errors import InputError
from ducos.upscaling import Upscaler


def sharpened(upscaler: Upscaler, colour: Any, depth: Any) -> dict[str, Any]:
    """Fields of the `sensor_msgs/Image` that answers a colour image and its depth map."""
    stored = message_depth(depth, "depth")
    unit = "m" if stored.dtype.kind == "f" else "mm"  # REP 118: 32FC1 is metres, 16UC1 millimetres
    result = upscaler(message_colour(colour, "colour"), stored, unit=unit)
    plane = np.where(result.valid, result.depth, np.nan).astype("<f4")
    height, width = plane.shape
    return {
        "header": colour.header,
        "height": height,
        "width": width,
        "encoding": "32FC1",
        "is_bigendian": 0,
        "step": 4 * width,
        "data": array("B", plane.tobytes()),  # what rclpy takes without looking at every byte
    }


def main() -> None:
    try:
        import rclpy
        from message_filters import ApproximateTimeSynchronizer, Subscriber
        from rclpy.qos import qos_profile_sensor_data
        from sensor_msgs.msg import Image
    except ImportError as problem:
        sys.exit(f"this is a ROS 2 node ({problem}); source the setup.bash of ROS 2 first")

    rclpy.init()
    node = rclpy.create_node("ducos")
    sensor = node.declare_parameter("sensor", "stereo").value
    upscaler = Upscaler(sensor=sensor, shift="off")
    answers = node.create_publisher(Image, "sharp_depth", 1)

    def answer(colour: Image, depth: Image) -> None:
        try:
            answers.publish(Image(**sharpened(upscaler, colour, depth)))
        except InputError as problem:  # one bad frame does not end the node
            node.get_logger().warning(str(problem), throttle_duration_sec=5.0)

    topics = [
        Subscriber(node, Image, name, qos_profile=qos_profile_sensor_data)
        for name in ("colour", "depth")
    ]
    # A queue of two: while a frame is worked on, older ones are dropped, not piled up.
    pairs = ApproximateTimeSynchronizer(topics, queue_size=2, slop=0.034)
    pairs.registerCallback(answer)
    try:
        rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
