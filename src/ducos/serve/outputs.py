"""Formats in which a result can be had: a suffix, a media type, and who writes it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ducos.cameras import check_cloud_output, check_mesh_output
from ducos.errors import InputError
from ducos.files import check_depth_output

if TYPE_CHECKING:
    from ducos.upscaling import Options, Result, Upscaler


@dataclass(frozen=True)
class FormatEntry:
    """A format by name.

    suffix, media: of the file. about: a sentence for people. check: refuses, before the work, a
    path that cannot be written. in_space: needs metres and a camera.
    """

    suffix: str
    media: str
    about: str
    check: Callable[[Path], Any] | None = None
    in_space: bool = False


FORMATS: dict[str, FormatEntry] = {
    "png": FormatEntry(".png", "image/png", "16-bit millimetres.", check_depth_output),
    "exr": FormatEntry(".exr", "image/x-exr", "Metres, with source and sigma.", check_depth_output),
    "npz": FormatEntry(
        ".npz", "application/x-npz", "NumPy: metres, valid, source, sigma.", check_depth_output
    ),
    "npy": FormatEntry(".npy", "application/x-npy", "NumPy: metres.", check_depth_output),
    "tiff": FormatEntry(".tif", "image/tiff", "Metres.", check_depth_output),
    "pfm": FormatEntry(".pfm", "image/x-pfm", "Metres.", check_depth_output),
    "h5": FormatEntry(
        ".h5", "application/x-hdf5", "HDF5: metres, valid, source, sigma.", check_depth_output
    ),
    "ply": FormatEntry(
        ".ply", "application/x-ply", "Point cloud with colours.", check_cloud_output, in_space=True
    ),
    "glb": FormatEntry(
        ".glb", "model/gltf-binary", "Mesh with colours.", check_mesh_output, in_space=True
    ),
    "preview": FormatEntry(
        ".preview.png", "image/vnd.ducos.preview+png", "Picture: maps, crops, an edge profile."
    ),
    "maps": FormatEntry(
        ".safetensors", "application/vnd.ducos.maps", "All maps and facts, for the Python client."
    ),
    "view": FormatEntry(
        ".view.safetensors",
        "application/vnd.ducos.view",
        "What the page shows besides: bicubic, flying pixels, camera.",
    ),
}
BY_MEDIA = {entry.media: name for name, entry in FORMATS.items()}


def check_output_format(name: str, options: "Options", folder: Path) -> None:
    """Refuse before the work what could not be written after it."""
    if name not in FORMATS:
        raise InputError(f"unknown format {name!r}; choose one of: {', '.join(FORMATS)}")
    entry = FORMATS[name]
    if entry.check is not None:
        entry.check(folder / f"result{entry.suffix}")
    if not entry.in_space:
        return
    if options.unit == "relative":
        raise InputError(f"{name} needs metres; got unit relative: give another, or scale")
    if options.rgb_intrinsics is None and options.field_of_view is None:
        raise InputError(f"{name} needs the camera: give rgb_intrinsics or field_of_view")


def write_output(result: "Result[Any]", name: str, folder: Path, bicubic: "Upscaler") -> None:
    """Write one format of a result into a folder, as the commands would."""
    from ducos.serve.maps import packed, view_of

    path = folder / f"result{FORMATS[name].suffix}"
    if name == "preview":
        result.preview(path)
    elif name == "maps":
        path.write_bytes(packed(result))
    elif name == "view":
        path.write_bytes(view_of(result, bicubic))
    elif name == "ply":
        result.cloud().save(path)
    elif name == "glb":
        result.mesh().save(path)
    else:
        result.save(path)
