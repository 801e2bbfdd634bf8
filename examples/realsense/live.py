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
    if given.play:
        config.enable_device_from_file(given.play, repeat_playback=False)
    config.enable_stream(rs.stream.depth, rs.format.z16)
    config.enable_stream(rs.stream.color, rs.format.rgb8)  # not bgr8: `ducos` takes red first
    profile = pipeline.start(config)
    if given.play:
        profile.get_device().as_playback().set_real_time(False)  # wait for us, drop nothing
    depth, color = (
        profile.get_stream(kind).as_video_stream_profile()
        for kind in (rs.stream.depth, rs.stream.color)
    )
    metres = profile.get_device().first_depth_sensor().get_depth_scale()
    upscaler = upscaler_for(
        depth.get_intrinsics(), color.get_intrinsics(), depth.get_extrinsics_to(color), metres
    )
    given.out.mkdir(parents=True, exist_ok=True)
    try:
        for number in range(given.frames):
            there, frames = pipeline.try_wait_for_frames(5000)
            if not there:
                break  # the recording is over, or the camera was pulled out
            planes = (frames.get_color_frame(), frames.get_depth_frame())
            if not all(planes):
                continue
            result = upscaler(*(np.asanyarray(plane.get_data()) for plane in planes))
            print(result.save(given.out / f"{number:06}.png").path)
    finally:
        pipeline.stop()


if __name__ == "__main__":
    main()
