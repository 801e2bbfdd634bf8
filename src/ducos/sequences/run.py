"""run_sequence: a recording, frame by frame, into numbered maps and two videos."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ducos.batch import frame_result
from ducos.errors import InputError, needed
from ducos.files import Failure, FramePair, check_output_folder, result_names
from ducos.sequences.steadying import Steady
from ducos.sequences.videos import DepthVideo, PreviewVideo
from ducos.upscaling import Options, Upscaler


@dataclass
class Told:
    """What became of a sequence.

    change: mean change from frame to frame in millimetres, where both frames have a value, before
        and after steadying: (measured, in holes) each.
    """

    out: Path
    made: int = 0
    failures: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    change: dict[str, tuple[float, float]] = field(default_factory=dict)


def run_sequence(
    pairs: Sequence[FramePair],
    out: str | Path,
    *,
    options: Options | None = None,
    suffix: str = ".png",
    steady: bool = True,
    videos: bool = True,
    fps: float = 30.0,
    progress: Callable[[float], None] | None = None,
) -> Told:
    """Super-resolve frames in their order; each is steadied by the one before.

    Args:
        out: folder for the maps, depth.mkv (16 bit, millimetres, FFV1) and preview.mp4.
        steady: False leaves each frame as it is. fps: of the videos.

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
    upscaler = Upscaler(**options.plain())
    filter_ = Steady() if steady else None
    folder.mkdir(parents=True, exist_ok=True)
    told, before = Told(folder), None
    changes: dict[str, list[tuple[float, float]]] = {"as made": [], "steadied": []}
    depth_video: DepthVideo | None = None
    preview: PreviewVideo | None = None
    try:
        for number, (pair, name) in enumerate(zip(pairs, names)):
            try:
                result = frame_result(pair, upscaler)
            except InputError as problem:
                told.failures.append(Failure(name, str(pair.rgb), str(pair.depth), str(problem)))
                before, filter_ = None, Steady() if steady else None
                continue
            told.warnings += [each for each in result.warnings if each not in told.warnings]
            made, measured = result.depth, result.source == 1
            if filter_ is not None:
                planes = (np.asarray(result.valid), np.asarray(measured))
                result = replace(result, depth=filter_(result.image, made, *planes))
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
    told.change = {
        key: (float(np.nanmean([a for a, _ in rows])), float(np.nanmean([b for _, b in rows])))
        for key, rows in changes.items()
        if rows and np.isfinite(rows).any(0).all()
    }
    return told


def change(first: Any, second: Any, measured: Any) -> tuple[float, float]:
    """Mean change in millimetres: where measured, and in holes; NaN without such pixels."""
    step = 1000 * np.abs(second - first)
    return tuple(  # type: ignore[return-value]
        float(step[where].mean()) if where.any() else float("nan")
        for where in (measured, ~measured)
    )
