"""Where clouds and meshes can be written: checked before the work, without arithmetic."""

from importlib.util import find_spec

from ducos.errors import InputError
from ducos.files import PathLike, check_output


def check_cloud_output(path: PathLike) -> None:
    """InputError if a point cloud cannot be written to this path."""
    if check_output(path).suffix.lower() != ".ply":
        raise InputError(f"a point cloud is written as .ply, got {path}")


def check_mesh_output(path: PathLike) -> None:
    """InputError if a mesh cannot be written to this path."""
    if check_output(path).suffix.lower() != ".glb":
        raise InputError(f"a mesh is written as .glb, got {path}")
    if find_spec("trimesh") is None:
        raise InputError("meshes need the library trimesh: pip install 'ducos[formats]'")
