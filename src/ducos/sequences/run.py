"""run_sequence: a recording, frame by frame, into numbered maps and two videos."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ducos.batch import frame_result
from ducos.cameras import check_cloud_output
from ducos.captures import Frame, FrameRef, read_frame
from ducos.errors import InputError, needed
from ducos.files import Failure, FramePair, check_output_folder, result_names
from ducos.sequences.fusing import Fused
from ducos.sequences.steadying import Steady, View
from ducos.sequences.videos import DepthVideo, PreviewVideo
from ducos.upscaling import Options, Upscaler


@dataclass
class Told:
    """What became of a sequence.

    change: mean change from frame to frame in millimetres, where both frames have a value, before
        and after steadying: (measured, in holes) each.
    points: of the fused cloud.
    """

    out: Path
    made: int = 0
    failures: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    change: dict[str, tuple[float, float]] = field(default_factory=dict)
    points: int = 0


def run_sequence(
    pairs: Sequence[FramePair],
    out: str | Path,
    *,
    options: Options | None = None,
    suffix: str = ".png",
    steady: bool = True,
    videos: bool = True,
    fps: float = 30.0,
    fuse: str | Path | None = None,
    cube: float = 0.01,
    progress: Callable[[float], None] | None = None,
) -> Told:
    """Super-resolve frames in their order; each is steadied by the one before.

    Args:
        out: folder for the maps, depth.mkv (16 bit, millimetres, FFV1) and preview.mp4.
        steady: False leaves each frame as it is. fps: of the videos.
        fuse: .ply for one coloured cloud of all frames; the recording must state poses and camera.
        cube: metres; its points are means over cubes of this side.

    A frame that cannot be read is listed, and the next one begins anew.
    """
    options = options or Options()
    folder = Path(out)
    names = result_names(pairs, suffix)
    options.check_depth(pairs[0].depth if pairs else None)
    check_output_folder(folder)
    if not 0 < fps <= 1000:
        raise InputError(f"got {fps:g} frames per second, expected more than 0, at most 1000")
    if videos:
        needed("av", "captures")
    if fuse is not None:
        check_fusing(pairs, fuse, cube, options)
    fused = None if fuse is None else Fused(cube)
    upscaler = Upscaler(**options.plain())
    meaning = (options.unit, options.scale)
    filter_ = Steady() if steady else None
    folder.mkdir(parents=True, exist_ok=True)
    told, before = Told(folder), None
    changes: dict[str, list[tuple[float, float]]] = {"as made": [], "steadied": []}
    depth_video: DepthVideo | None = None
    preview: PreviewVideo | None = None
    try:
        for number, (pair, name) in enumerate(zip(pairs, names)):
            try:
                frame = read_frame(pair, *meaning) if isinstance(pair, FrameRef) else None
                result = frame_result(pair, upscaler, frame)
            except InputError as problem:
                told.failures.append(Failure(name, str(pair.rgb), str(pair.depth), str(problem)))
                before, filter_ = None, Steady() if steady else None
                continue
            told.warnings += [each for each in result.warnings if each not in told.warnings]
            made, measured = result.depth, result.source == 1
            if filter_ is not None:
                planes = (np.asarray(result.valid), np.asarray(measured))
                depth = filter_(result.image, made, *planes, view_of(result, frame))
                result = replace(result, depth=depth)
            if fused is not None and frame is not None and frame.pose is not None:
                fused.add(result, frame.pose)
            if before is not None and before[0].shape == made.shape:
                changes["as made"].append(change(before[0], made, measured & before[2]))
                changes["steadied"].append(change(before[1], result.depth, measured & before[2]))
            before = (made, result.depth, measured)
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            result.save(target)
            if videos:
                depth_video = depth_video or DepthVideo(folder / "depth.mkv", made.shape, fps)
                preview = preview or PreviewVideo(folder / "preview.mp4", result, fps)
                depth_video.add(result)
                preview.add(result)
            told.made += 1
            if progress:
                progress((number + 1) / len(pairs))
    finally:
        for each in (depth_video, preview):
            if each is not None:
                each.close()
    if fused is not None and fuse is not None:
        told.points = fused.save(fuse)
    told.change = {
        key: (float(np.nanmean([a for a, _ in rows])), float(np.nanmean([b for _, b in rows])))
        for key, rows in changes.items()
        if rows and np.isfinite(rows).any(0).all()
    }
    return told


def view_of(result: Any, frame: Frame | None) -> View | None:
    """Camera and pose of a frame, if its recording states both."""
    if frame is None or frame.camera is None or frame.pose is None:
        return None
    return View(result.camera(), frame.pose)


def check_fusing(
    pairs: Sequence[FramePair], fuse: str | Path, cube: float, options: Options
) -> None:
    """Refuse before the work what cannot become one cloud."""
    check_cloud_output(fuse)
    if not 1e-4 <= cube <= 10:
        raise InputError(f"a cube of the fused cloud has 0.0001 to 10 metres, got {cube:g}")
    first = pairs[0]
    frame = read_frame(first, options.unit, options.scale) if isinstance(first, FrameRef) else None
    if frame is None or frame.pose is None:
        raise InputError("--fuse needs the pose of each frame, and this recording states none")
    if frame.camera is None and options.rgb_intrinsics is None and options.field_of_view is None:
        raise InputError(
            "--fuse needs the colour camera, and this recording states none: pass --rgb-intrinsics"
        )


def change(first: Any, second: Any, measured: Any) -> tuple[float, float]:
    """Mean change in millimetres: where measured, and in holes; NaN without such pixels."""
    step = 1000 * np.abs(second - first)
    return tuple(  # type: ignore[return-value]
        float(step[where].mean()) if where.any() else float("nan")
        for where in (measured, ~measured)
    )
