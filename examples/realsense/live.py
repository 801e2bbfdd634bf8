"""Sharp depth from a RealSense camera, frame by frame.

    python live.py -o sharp --frames 30
    python live.py -o sharp --play recording.bag

The depth stays as the sensor made it. `ducos` brings it into the colour camera, with the
calibration that the SDK knows; see the README for why not with `rs.align`.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ducos.cameras import Camera, Extrinsics, as_camera
from ducos.upscaling import Upscaler


def camera_of(seen: Any) -> Camera:
    """`rs.intrinsics` of a stream as our camera."""
    values = {name: getattr(seen, name) for name in ("width", "height", "fx", "fy", "ppx", "ppy")}
    return as_camera({**values, "coeffs": list(seen.coeffs), "model": str(seen.model)})


def way_of(found: Any) -> Extrinsics:
    """`rs.extrinsics`, depth to colour; RealSense states rotations by columns, in metres."""
    return Extrinsics(np.reshape(found.rotation, (3, 3)).T, np.array(found.translation))


def upscaler_for(depth: Any, color: Any, way: Any, metres: float, **settings: Any) -> Upscaler:
    """One model for all frames. depth, color: `rs.intrinsics`; metres: of one step of depth."""
    return Upscaler(
        **{"sensor": "stereo", "shift": "off", **settings},
        scale=metres,
        depth_intrinsics=camera_of(depth),
        rgb_intrinsics=camera_of(color),
        extrinsics=way_of(way),
    )


def main() -> None:
    words = argparse.ArgumentParser(description="Sharp depth from a RealSense camera.")
    words.add_argument("-o", "--out", type=Path, required=True, help="folder for the results")
    words.add_argument("--frames", type=int, default=30, help="how many (default 30)")
    words.add_argument("--play", help="a recording (.bag) instead of a camera")
    given = words.parse_args()
    try:
        import pyrealsense2 as rs
    except ImportError as problem:
        words.error(f"this needs the SDK ({problem}): pip install pyrealsense2")

    config, pipeline = rs.config(), rs.pipeline()
    if given.play:  # a recording has the streams that it has
        config.enable_device_from_file(given.play, repeat_playback=False)
    else:
        config.enable_stream(rs.stream.depth, rs.format.z16)
        config.enable_stream(rs.stream.color, rs.format.rgb8)
    try:
        profile = pipeline.start(config)
    except RuntimeError as problem:
        words.error(f"no camera or recording could be opened: {problem}")
    device = profile.get_device()
    if given.play:
        device.as_playback().set_real_time(False)  # it waits for us and drops nothing
    depth, color = (
        profile.get_stream(kind).as_video_stream_profile()
        for kind in (rs.stream.depth, rs.stream.color)
    )
    if color.format() not in (rs.format.rgb8, rs.format.bgr8):
        words.error(f"got colour as {color.format()}, expected rgb8 or bgr8; try `ducos batch`")
    red_first = color.format() == rs.format.rgb8
    metres = device.first_depth_sensor().get_depth_scale()
    upscaler = upscaler_for(
        depth.get_intrinsics(), color.get_intrinsics(), depth.get_extrinsics_to(color), metres
    )
    given.out.mkdir(parents=True, exist_ok=True)
    made, last = 0, (-1, -1)
    while made < given.frames:
        there, frames = pipeline.try_wait_for_frames(5000)
        if not there:
            break  # the recording is over, or the camera was pulled out
        seen, measured = frames.get_color_frame(), frames.get_depth_frame()
        numbers = (
            (seen.get_frame_number(), measured.get_frame_number()) if seen and measured else last
        )
        if numbers[0] == last[0] or numbers[1] == last[1]:
            continue  # the SDK repeats a frame whose partner has not come yet
        last = numbers
        image = np.asanyarray(seen.get_data())
        result = upscaler(
            image if red_first else image[..., ::-1], np.asanyarray(measured.get_data())
        )
        print(result.save(given.out / f"{made:06}.png").path)
        made += 1
    pipeline.stop()


if __name__ == "__main__":
    main()
