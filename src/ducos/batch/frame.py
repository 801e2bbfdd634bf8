"""One pair, from files to files. `ducos upscale` writes through here too, so bytes are the same."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducos.doctor import shift_to_undo
from ducos.files import DepthMap, Written, read_colour, read_low, write_depth
from ducos.pictures import write_image
from ducos.upscaling import Result, super_resolve

KEEP_LAYERS = (".npz", ".exr", ".h5", ".hdf5")


@dataclass(frozen=True)
class Options:
    """How every pair of a batch is super-resolved; the meanings are those of `super_resolve`.

    shift: as text; see `ducos.doctor.correction`. `run_batch` measures it once for all pairs.
    """

    model: str | None = None
    unit: str = "auto"
    scale: float | None = None
    keep_holes: bool = False
    consistent: bool = False
    any_aspect: bool = False
    sensor: str = "unknown"
    shift: str = "check"
    tile: str = "auto"
    accept_noncommercial: bool = False


def upscale_files(
    rgb: Path, depth: Path, mask: Path | None, out: Path, preview: Path | None, options: Options
) -> DepthMap:
    """Super-resolve one pair and write it, and a picture of it; returns the map that was read."""
    image = read_colour(rgb)
    low = read_low(depth, options.unit, options.scale, mask)
    correction = shift_to_undo(options.shift, image, low)
    result = super_resolve(
        image,
        low,
        model=options.model,
        keep_holes=options.keep_holes,
        consistent=options.consistent,
        any_aspect=options.any_aspect,
        sensor=options.sensor,
        shift=(correction.x, correction.y),
        tile=options.tile,
        accept_noncommercial=options.accept_noncommercial,
    )
    write_result(out, result, low)
    if preview is not None:
        write_preview(preview, image, low, result)
    return low


def write_result(out: Path, result: Result, low: DepthMap) -> Written:
    """The depth map in the format of the suffix, with source and sigma where that has layers."""
    layers: dict[str, Any] = {}
    if out.suffix.lower() in KEEP_LAYERS:
        layers = {"source": result.source, "sigma": result.sigma}
    return write_depth(
        out,
        result.depth,
        result.valid,
        unit="relative" if low.unit == "relative" else None,
        layers={name: layer for name, layer in layers.items() if layer is not None},
        about={"model": result.model, "input_unit": result.note},
    )


def write_preview(preview: Path, image: NDArray[np.float32], low: DepthMap, result: Result) -> None:
    """A picture: maps, zoomed crops, an edge profile; image: (H, W, 3) in [0, 1]."""
    from ducos.pictures import comparison

    unit = "" if low.unit == "relative" else "m"
    picture = comparison(image, low.depth, low.valid, result.depth, result.valid, unit=unit)
    write_image(preview, picture)
