"""Every reader of bytes that others made, with files to begin from. A new reader is a line here."""

import io
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ducos.batch.journal import Journal
from ducos.cameras import read_camera, read_extrinsics
from ducos.cameras.projection import colmap_pose
from ducos.files import (
    find_pairs,
    read_depth,
    read_mask,
    read_points,
    read_relative,
    read_rgb,
    write_depth,
)
from ducos.models import convert, load_model, read_about
from ducos.prompts.weights import read_weights
from ducos.training import load_recipe
from tests.files.point_files import POINT_FILES
from tests.fuzz import recorded
from tests.places import CONFIGS

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Reader:
    """name: of the file. read: takes its path. seeds: sound contents. child: reads in a child
    process, which is slower to start and may crash by itself. shares: of the fuzzer's time; a
    reader that starts a process for each file gets more, so that it sees more than a few files."""

    name: str
    read: Callable[[Path], Any]
    seeds: Callable[[Path], list[bytes]]
    child: bool = False
    shares: int = 1


def depth_files(suffix: str) -> Callable[[Path], list[bytes]]:
    def make(folder: Path) -> list[bytes]:
        rng = np.random.default_rng(0)
        depth = rng.uniform(0.5, 4, (9, 12)).astype(np.float32)
        write_depth(folder / f"seed{suffix}", depth, depth > 1)
        return [(folder / f"seed{suffix}").read_bytes()]

    return make


def pictures(kind: str) -> Callable[[Path], list[bytes]]:
    def make(folder: Path) -> list[bytes]:
        rgb = np.random.default_rng(0).integers(0, 255, (16, 24, 3), dtype=np.uint8)
        contents = []
        for mode in ("RGB", "L", "P", "1") if kind == "PNG" else ("RGB", "L"):
            memory = io.BytesIO()
            Image.fromarray(rgb).convert(mode).save(memory, kind)
            contents.append(memory.getvalue())
        return contents

    return make


def deep_pictures(folder: Path) -> list[bytes]:
    """16 bits per channel, which Pillow neither writes nor reads in full."""
    rows = np.random.default_rng(0).integers(0, 65535, (8, 12, 3)).astype(">u2")
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", 12, 8, 16, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines)),
        (b"IEND", b""),
    )
    written = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
    return [b"\x89PNG\r\n\x1a\n" + b"".join(written)]


def texts(*contents: str) -> Callable[[Path], list[bytes]]:
    return lambda folder: [content.encode() for content in contents]


CAMERA = json.dumps({"width": 24, "height": 16, "K": [[20, 0, 12], [0, 20, 8], [0, 0, 1]],
                     "distortion": [0.1, 0, 0, 0, 0]})  # fmt: skip
ROS = """image_width: 24
image_height: 16
camera_matrix: {rows: 3, cols: 3, data: [20.0, 0, 12, 0, 20, 8, 0, 0, 1]}
distortion_model: plumb_bob
distortion_coefficients: {rows: 1, cols: 5, data: [0.1, 0, 0, 0, 0]}
"""
OPENCV = """%YAML:1.0
---
image_width: 24
image_height: 16
camera_matrix: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 20., 0., 12., 0., 20., 8., 0., 0., 1. ]
"""
XML = """<?xml version="1.0"?>
<opencv_storage>
<image_width>24</image_width>
<image_height>16</image_height>
<camera_matrix type_id="opencv-matrix"><rows>3</rows><cols>3</cols><dt>d</dt>
<data>20. 0. 12. 0. 20. 8. 0. 0. 1.</data></camera_matrix>
</opencv_storage>
"""
COLMAP = "# Camera list\n1 OPENCV 24 16 20 20 12 8 0.1 0 0 0\n"
POSES = "# comment\n1 1 0 0 0 0.1 0 0 1 a.png\n10 20 3 30 40 -1\n2 1 0 0 0 0 0 1 1 b.png\n\n"
TURN = json.dumps({"rotation": [1, 0, 0, 0, 1, 0, 0, 0, 1], "translation": [0.01, 0, 0]})
LINE = json.dumps({"out": "a.png", "files": {"a.png": "00"}, "settings": {"model": "bicubic"},
                   "inputs": {"rgb": [1, 2]}, "unit": "mm", "scale": 0.001})  # fmt: skip
TABLE = "rgb,depth,mask,out\na.png,b.png,c.png,scene/1\nd.png,e.png,,2\n"


def points(write: Callable[[Path, Any], Path]) -> Callable[[Path], list[bytes]]:
    """A file of a few points."""
    places = np.random.default_rng(0).uniform(0.5, 3, (9, 3))
    return lambda folder: [write(folder, places).read_bytes()]


def weights(folder: Path) -> list[bytes]:
    from ducos.models import ModelSpec, save_model, stored_weights

    spec = ModelSpec("djf")
    save_model(folder / "w.safetensors", spec, stored_weights(spec.build()), {"licence": "x"})
    return [(folder / "w.safetensors").read_bytes()]


def plain_tensors(folder: Path) -> list[bytes]:
    import torch
    from safetensors.torch import save

    return [save({"a": torch.ones(3), "b.weight": torch.zeros(2, 2)})]


def pickled_tensors(folder: Path) -> list[bytes]:
    import torch

    torch.save({"state_dict": {"module.a": torch.ones(3)}}, folder / "p.pth")
    return [(folder / "p.pth").read_bytes()]


@cache
def small_run() -> Any:
    import torch

    from ducos.training.preparation import model_spec, start_run

    config = load_recipe(CONFIGS / "shapes.toml", []).base
    return start_run(config, model_spec(config), torch.device("cpu"))


def training_state(folder: Path) -> list[bytes]:
    from ducos.training.run import save

    save(small_run(), folder / "last.safetensors")
    return [(folder / "last.safetensors").read_bytes()]


def resume(path: Path) -> None:
    from ducos.training.run import restore

    restore(small_run(), path)


def checkpoints(folder: Path) -> list[bytes]:
    import scipy.io
    import torch

    torch.save({"a": torch.ones(3)}, folder / "a.pth")
    scipy.io.savemat(folder / "a.mat", {"net": {"layers": np.ones((1, 1), object)}})
    found = [path.read_bytes() for path in sorted((HERE / "found").glob("*.mat"))]
    return [(folder / "a.pth").read_bytes(), (folder / "a.mat").read_bytes(), *found]


def arrays(suffix: str) -> Callable[[Path], list[bytes]]:
    def make(folder: Path) -> list[bytes]:
        from scipy.io import savemat

        matrix = np.array([[20.0, 0, 12], [0, 20, 8], [0, 0, 1]])
        path = folder / f"camera{suffix}"
        if suffix == ".mat":
            savemat(path, {"K": matrix, "width": 24, "height": 16})
        elif suffix == ".npz":
            np.savez_compressed(path, K=matrix)
        else:
            np.save(path, matrix)
        return [path.read_bytes()]

    return make


def photograph(folder: Path) -> list[bytes]:
    image, memory = Image.new("RGB", (24, 16)), io.BytesIO()
    exif = image.getexif()
    exif.get_ifd(0x8769)[0xA405] = 28
    exif[0x0112] = 6
    image.save(memory, "JPEG", exif=exif)
    return [memory.getvalue()]


def read_colour_camera(path: Path) -> Any:
    return read_camera(path, "colour", (16, 24))


def camera_readers() -> dict[str, Reader]:
    """Every form of camera file."""
    words = {".json": CAMERA, ".yaml": ROS, ".yml": OPENCV, ".xml": XML, ".txt": COLMAP}
    table = {f"camera {end}": Reader(f"f{end}", read_colour_camera, texts(text))
             for end, text in words.items()}  # fmt: skip
    table["camera .jpg"] = Reader("f.jpg", read_colour_camera, photograph)
    for end in (".npy", ".npz", ".mat"):
        child = end != ".npy"
        shares = 8 if end == ".mat" else 1
        table[f"camera {end}"] = Reader(f"f{end}", read_colour_camera, arrays(end), child, shares)
    return table


def recordings() -> dict[str, Reader]:
    """Every layout of recordings: containers, and the files beside the frames of folders."""
    table = {}
    for name in recorded.CONTAINERS:
        suffix = {"record3d": "r3d", "ros1": "bag", "realsense": "bag"}.get(name, name)
        table[f"recording {name}"] = Reader(
            f"f.{suffix}", recorded.read_recording, recorded.container(name), child=True
        )
    for name, parts in recorded.BESIDE.items():
        for part in parts:
            table[f"recording {name} {part}"] = Reader(
                part, recorded.root_of(part), recorded.within(name, part), child=True
            )
    return table


def read_colmap_pose(path: Path) -> Any:
    return colmap_pose(path, "a.png")


def read_journal(path: Path) -> Journal:
    return Journal(path.parent)


@cache
def readers() -> dict[str, Reader]:
    """Name -> reader."""
    table = {
        f"depth {suffix}": Reader(f"f{suffix}", read_depth, depth_files(suffix))
        for suffix in (".png", ".npy", ".npz", ".pfm")
    }
    for suffix in (".tif", ".exr", ".h5"):
        table[f"depth {suffix}"] = Reader(f"f{suffix}", read_depth, depth_files(suffix), True, 8)
    for kind in ("PNG", "JPEG", "BMP", "WEBP", "PPM"):
        table[f"rgb {kind}"] = Reader("f.img", read_rgb, pictures(kind))
    table["rgb PNG 16-bit"] = Reader("f.png", read_rgb, deep_pictures, True, 2)
    for name, write in POINT_FILES.items():
        file = {"colmap text": "points3D.txt", "colmap binary": "points3D.bin"}
        table[f"points {name}"] = Reader(
            file.get(name, f"f.{name[:3]}"), read_points, points(write)
        )
    return table | {
        **camera_readers(),
        **recordings(),
        "mask": Reader("f.png", read_mask, pictures("PNG")),
        "prior": Reader("f.npy", read_relative, depth_files(".npy")),
        "poses of COLMAP": Reader("images.txt", read_colmap_pose, texts(POSES)),
        "extrinsics": Reader("f.json", read_extrinsics, texts(TURN, "[" + TURN + "]")),
        "table of pairs": Reader("f.csv", find_pairs, texts(TABLE)),
        "config": Reader(
            "f.toml",
            lambda path: load_recipe(path, []),
            lambda folder: [path.read_bytes() for path in sorted(CONFIGS.glob("*.toml"))],
        ),
        "weights": Reader("f.safetensors", load_model, weights),
        "about weights": Reader("f.safetensors", read_about, weights),
        "journal": Reader("journal.jsonl", read_journal, texts(LINE + "\n" + LINE + "\n")),
        "training state": Reader("last.safetensors", resume, training_state),
        "prompt .safetensors": Reader("p.safetensors", read_weights, plain_tensors),
        "prompt .pth": Reader("p.pth", read_weights, pickled_tensors),
        "checkpoint": Reader("f.bin", lambda path: convert("djf", path), checkpoints, True, 20),
    }
