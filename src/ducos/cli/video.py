"""`ducos video`: a recording as a sequence, steady from frame to frame."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ducos.cli.options import Json, Overwrite, takes_options
from ducos.cli.progress import waiting
from ducos.upscaling import Options


@takes_options(leave=("mask", "confidence"))
def video(
    options: Options,
    source: Annotated[Path, typer.Argument(help="Recording, as `ducos batch` takes.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for maps and videos.")],
    suffix: Annotated[
        str, typer.Option(help="Format of the maps: .png, .exr, .npz, .npy, .tif, .pfm, .h5")
    ] = ".png",
    fps: Annotated[float, typer.Option(help="Frames per second of the videos.")] = 30.0,
    no_steady: Annotated[
        bool, typer.Option("--no-steady", help="Leave each frame as it is, for comparison.")
    ] = False,
    no_videos: Annotated[
        bool, typer.Option("--no-videos", help="Write numbered maps only.")
    ] = False,
    fuse: Annotated[
        Path | None,
        typer.Option(help="Also write one coloured cloud of all frames, .ply; needs poses."),
    ] = None,
    cube: Annotated[
        float, typer.Option(help="Metres: points of the fused cloud are means over such cubes.")
    ] = 0.01,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Super-resolve a recording in its order; each frame is steadied by the one before it.

    Writes one map per frame, depth.mkv (16 bit, millimetres, lossless) and preview.mp4.

    Example: ducos video walk.r3d -o sharp
    """
    from ducos.captures import find_frames
    from ducos.files import check_replaced, inputs_of

    found = find_frames(source)
    if fuse:
        check_replaced([fuse], inputs_of(found.pairs), overwrite=overwrite)
    with waiting("super-resolving", quiet=as_json) as progress:
        from ducos.sequences import run_sequence

        told = run_sequence(
            found.pairs,
            out,
            options=options,
            suffix=suffix,
            steady=not no_steady,
            videos=not no_videos,
            fps=fps,
            fuse=fuse,
            cube=cube,
            progress=progress,
        )
    told.failures += found.unmatched
    if as_json:
        print(json.dumps({**asdict(told), "out": str(told.out)}))
    else:
        print(f"{told.made} frames made, {len(told.failures)} failed; results in {told.out}")
        for key, (measured, holes) in told.change.items():
            words = f"{measured:.1f} mm where measured, {holes:.1f} mm in holes"
            print(f"change from frame to frame, {key}: {words}")
        if fuse:
            print(f"{told.points} points of all frames in {fuse}")
        for warning in told.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        for failure in told.failures[:20]:
            print(f"{failure.name}: {failure.reason}", file=sys.stderr)
    if told.failures:
        raise typer.Exit(1)
