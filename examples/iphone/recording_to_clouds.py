"""A recording of an iPhone or iPad with LiDAR as coloured clouds: one of all frames, or each.

    python recording_to_clouds.py walk.r3d -o clouds              # clouds/fused.ply
    python recording_to_clouds.py walk.r3d -o clouds --each       # and clouds/000000.ply, ...
    python recording_to_clouds.py walk.r3d -o clouds --every 10   # of every tenth frame

Record3D, Stray Scanner, 3D Scanner App and ARKitScenes: `find_frames` tells them apart.
"""

import argparse
from pathlib import Path

from ducos.batch import frame_result
from ducos.captures import FrameRef, find_frames, read_frame
from ducos.errors import InputError
from ducos.sequences import Fused
from ducos.upscaling import Upscaler


def main() -> None:
    words = argparse.ArgumentParser(description="A LiDAR recording as coloured clouds.")
    words.add_argument("recording", type=Path)
    words.add_argument("-o", "--out", type=Path, required=True, help="folder for the clouds")
    words.add_argument("--each", action="store_true", help="also a cloud of each frame")
    words.add_argument("--every", type=int, default=1, help="take every n-th frame only")
    words.add_argument("--cube", type=float, default=0.01, help="metres between fused points")
    given = words.parse_args()
    try:
        clouds(given.recording, given.out, given.each, given.every, given.cube)
    except InputError as problem:
        words.error(str(problem))


def clouds(recording: Path, out: Path, each: bool, every: int, cube: float) -> None:
    """Each frame becomes points of the colour camera; its pose puts them into the world."""
    if every < 1 or not cube > 0:
        raise InputError(f"--every is 1 or more and --cube more than 0, got {every} and {cube:g}")
    frames = find_frames(recording).pairs[::every]
    upscaler = Upscaler(sensor="lidar", shift="off")  # loaded once; ARKit's maps are aligned
    fused = Fused(cube)
    out.mkdir(parents=True, exist_ok=True)
    for ref in frames:
        if not isinstance(ref, FrameRef):
            raise InputError(f"{recording} holds pairs of files, no cameras; expected a recording")
        frame = read_frame(ref)  # units, confidence, camera and pose are the recording's
        result = frame_result(ref, upscaler, frame)
        if each:
            result.cloud(frame.camera).save(out / f"{Path(ref.out).name}.ply")
        if frame.pose is not None:
            fused.add(result, frame.pose)
    if fused.added:
        print(f"{fused.save(out / 'fused.ply')} points of {fused.added} frames in {out}")
    else:
        print(f"{recording} states no poses: nothing was fused")


if __name__ == "__main__":
    main()
