"""`ducos upscale`: one pair, a sharp depth map, and images and clouds of it if asked for."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ducos.cli.options import Json, Overwrite, takes_options
from ducos.cli.progress import waiting
from ducos.files import check_replaced, existing_file
from ducos.upscaling import Options

SPACE: Any = {"rich_help_panel": "Cameras, clouds and meshes"}


@takes_options()
def upscale(
    options: Options,
    rgb: Annotated[Path, typer.Argument(help="Colour image.")],
    depth: Annotated[
        Path,
        typer.Argument(
            help="Depth map of the same field of view, any size; or points: .ply, .pcd, .csv,"
            " points3D.txt, with --rgb-intrinsics and maybe --extrinsics."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="Where to write: .png (16 bit), .exr, .npy, .npz, .tiff, .pfm, .h5"
        ),
    ],
    preview: Annotated[
        Path | None,
        typer.Option(help="Also write an overview image: maps, crops, an edge profile."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    cloud: Annotated[
        Path | None, typer.Option(help="Also write a point cloud, .ply", **SPACE)
    ] = None,
    mesh: Annotated[Path | None, typer.Option(help="Also write a mesh, .glb", **SPACE)] = None,
    cloud_preview: Annotated[
        Path | None, typer.Option(help="Also write a rendered view of the cloud.", **SPACE)
    ] = None,
    keep_flying: Annotated[
        bool,
        typer.Option("--keep-flying", help="Keep flying pixels in cloud and mesh.", **SPACE),
    ] = False,
) -> None:
    """Super-resolve one depth map to the size of its colour image.

    Example: ducos upscale rgb.png depth.png -o sharp.png --preview look.png
    """
    from ducos.cli.outputs import Outputs

    outputs = Outputs(out, preview, cloud, mesh, cloud_preview, keep_flying)
    existing_file(rgb)
    existing_file(depth)
    options.check_depth(depth)
    outputs.check(options)
    check_replaced(outputs.named, (rgb, depth, *options.inputs), overwrite=overwrite)
    with waiting("super-resolving", quiet=as_json) as progress:
        from ducos.upscaling import super_resolve

        result = super_resolve(rgb, depth, options, progress=progress)
        written = outputs.write(result)
    if as_json:
        print(json.dumps({**written, **result.facts()}))
        return
    print(*result.sentences(), sep="\n")
    for warning in result.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if written["points"] is not None:
        flying = 100 * (1 - written["points"] / int(result.valid.sum()))
        print(f"{written['points']} points in space, {flying:.1f} % of the pixels left out")
    *others, last = (str(path) for path in outputs.files.values() if path)
    print("wrote " + (f"{', '.join(others)} and {last}" if others else last))
