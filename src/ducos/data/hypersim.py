"""Hypersim (Roberts et al., ICCV 2021): rendered rooms, 1024×768, in its official layout.

    ai_VVV_NNN/images/scene_cam_XX_final_preview/frame.IIII.tonemap.jpg
    ai_VVV_NNN/images/scene_cam_XX_final_hdf5/frame.IIII.color.hdf5
    ai_VVV_NNN/images/scene_cam_XX_geometry_hdf5/frame.IIII.depth_meters.hdf5

`depth_meters` is the *distance* of each point from the camera, not its depth. Depth sensors and all
other datasets here mean planar depth, so the distance is multiplied by the cosine between the
pixel's ray and the optical axis. NaN (no surface) becomes a hole.

Two small tables of Hypersim's repository are used when they lie in the folder:
`metadata_images_split_scene_v1.csv` (the official split) and `metadata_camera_parameters.csv` (some
scenes have their own field of view or a tilted image plane; without it every camera is taken as the
standard one, 60° across: a focal length of 886.81 pixels).
"""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ducos.data.files import chosen, existing_folder
from ducos.data.pair import Floats, Pair
from ducos.errors import InputError, needed
from ducos.files import read_rgb

h5py = needed("h5py", "train")

LAYOUT = (
    "ai_VVV_NNN/images/scene_cam_XX_geometry_hdf5/frame.IIII.depth_meters.hdf5 with"
    " scene_cam_XX_final_preview/frame.IIII.tonemap.jpg or"
    " scene_cam_XX_final_hdf5/frame.IIII.color.hdf5"
)
SPLIT_TABLE = "metadata_images_split_scene_v1.csv"
CAMERA_TABLE = "metadata_camera_parameters.csv"
HALF_FIELD_OF_VIEW = np.pi / 6  # of the standard camera, horizontally
_FRAME = re.compile(r"frame\.(\d{4})\.depth_meters\.hdf5")


class Hypersim:
    """Frames that have both colour and depth; split is all, train, val or test."""

    name = "hypersim"
    unit = "m"

    def __init__(self, root: str | Path, split: str = "all"):
        folder = existing_folder(root, LAYOUT)
        chosen("split", split, ("all", "train", "val", "test"))
        self.cameras = _cameras(folder / CAMERA_TABLE)
        self.depths = sorted(
            path
            for path in folder.glob("ai_*/images/scene_cam_*_geometry_hdf5/frame.*.hdf5")
            if _FRAME.fullmatch(path.name) and _colour_file(path).exists()
        )
        if split != "all":
            frames = _frames_of(split, folder / SPLIT_TABLE)
            self.depths = [path for path in self.depths if _frame(path) in frames]
        if not self.depths:
            raise InputError(f"no frames of split {split} in {folder}; expected {LAYOUT}")

    @property
    def scenes(self) -> Sequence[str]:
        return [_frame(path)[0] for path in self.depths]

    def __len__(self) -> int:
        return len(self.depths)

    def __getitem__(self, index: int) -> Pair:
        path = self.depths[index]
        scene, camera, number = _frame(path)
        distance = _read_hdf5(path)
        cam_from_uv = self.cameras.get(scene, standard_camera(distance.shape))
        depth = planar_depth(distance, cam_from_uv)
        valid = np.isfinite(depth) & (depth > 0)
        colour_file = _colour_file(path)
        is_picture = colour_file.suffix == ".jpg"
        rgb = read_rgb(colour_file) if is_picture else tone_mapped(_read_hdf5(colour_file))
        target = np.where(valid, depth, np.float32(0))
        return Pair(f"{scene}_{camera}_{number:04d}", rgb, target, valid)


def standard_camera(size: tuple[int, ...]) -> np.ndarray:
    """Matrix (3, 3) from image coordinates u, v in [-1, 1] to camera space of the standard camera.

    x points right, y up and z backwards, as everywhere in Hypersim; pixels are square.
    """
    H, W = size
    half_width = np.tan(HALF_FIELD_OF_VIEW)
    return np.diag([half_width, half_width * H / W, -1.0])


def planar_depth(distance: Floats, cam_from_uv: np.ndarray) -> Floats:
    """Distance along each pixel's ray (H, W) -> depth along the optical axis (H, W).

    Args:
        cam_from_uv: (3, 3), from (u, v, 1) to a point on the pixel's ray in camera space.
    """
    H, W = distance.shape
    u = (2 * np.arange(W) + 1) / W - 1  # pixel centres, left to right
    v = 1 - (2 * np.arange(H) + 1) / H  # top to bottom
    image_plane = np.stack([*np.meshgrid(u, v), np.ones((H, W))], axis=-1)
    rays = image_plane @ cam_from_uv.T  # (H, W, 3)
    cosine = -rays[..., 2] / np.linalg.norm(rays, axis=-1)
    return (distance * cosine).astype(np.float32)


def tone_mapped(radiance: Floats) -> Floats:
    """Linear radiance (H, W, 3) -> picture in [0, 1], as Hypersim's previews are made.

    The exposure brings the 90th percentile of brightness to 0.8 after a gamma of 2.2.
    """
    gamma, wanted, darkest = 2.2, 0.8, 1e-4
    radiance = np.nan_to_num(radiance, posinf=0.0, neginf=0.0)
    brightness = np.percentile(radiance @ np.array([0.30, 0.59, 0.11], np.float32), 90)
    exposure = wanted**gamma / brightness if brightness >= darkest else 0.0
    picture = np.clip(radiance * exposure, 0, None) ** (1 / gamma)
    return picture.clip(0, 1).astype(np.float32)


def _read_hdf5(path: Path) -> Floats:
    with h5py.File(path) as file:
        return file["dataset"][:].astype(np.float32)


def _frame(depth_file: Path) -> tuple[str, str, int]:
    """Scene, camera and frame number of a depth file, e.g. ("ai_001_001", "cam_00", 7)."""
    camera = depth_file.parent.name.removeprefix("scene_").removesuffix("_geometry_hdf5")
    return depth_file.parents[2].name, camera, int(depth_file.name.split(".")[1])


def _colour_file(depth_file: Path) -> Path:
    """The preview, which published trainings used; else the radiance it is made from."""
    images = depth_file.parents[1]
    camera = depth_file.parent.name.removesuffix("_geometry_hdf5")
    frame = depth_file.name.removesuffix(".depth_meters.hdf5")
    preview = images / f"{camera}_final_preview" / f"{frame}.tonemap.jpg"
    if preview.exists():
        return preview
    return images / f"{camera}_final_hdf5" / f"{frame}.color.hdf5"


def _cameras(table: Path) -> dict[str, np.ndarray]:
    """Matrix (3, 3) per scene, empty without the table."""
    if not table.is_file():
        return {}
    with table.open(newline="") as file:
        return {
            row["scene_name"]: np.array(
                [[float(row[f"M_cam_from_uv_{i}{j}"]) for j in range(3)] for i in range(3)]
            )
            for row in csv.DictReader(file)
        }


def _frames_of(split: str, table: Path) -> set[tuple[str, str, int]]:
    if not table.is_file():
        raise InputError(
            f"{table} is missing; it defines the split {split}: copy it from Hypersim's repository"
            " (evermotion_dataset/analysis), or ask for split=all"
        )
    with table.open(newline="") as file:
        return {
            (row["scene_name"], row["camera_name"], int(row["frame_id"]))
            for row in csv.DictReader(file)
            if row["split_partition_name"] == split
        }
