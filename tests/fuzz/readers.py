"""Every reader of bytes that others made, with files to begin from. A new reader is a line here."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ducos.batch.journal import Journal
from ducos.cameras import read_camera, read_extrinsics
from ducos.files import find_pairs, read_depth, read_mask, read_points, read_rgb, write_depth
from ducos.models import convert, load_model, read_about
from ducos.training import load_recipe
from tests.files.point_files import POINT_FILES
from tests.places import CONFIGS

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Reader:
    """name: of the file. read: takes its path. seeds: sound contents. child: reads in a child
    process, which is slower to start and may crash by itself."""

    name: str
    read: Callable[[Path], Any]
    seeds: Callable[[Path], list[bytes]]
    child: bool = False


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


def texts(*contents: str) -> Callable[[Path], list[bytes]]:
    return lambda folder: [content.encode() for content in contents]


CAMERA = json.dumps({"width": 24, "height": 16, "K": [[20, 0, 12], [0, 20, 8], [0, 0, 1]],
                     "distortion": [0.1, 0, 0, 0, 0]})  # fmt: skip
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


def checkpoints(folder: Path) -> list[bytes]:
    import scipy.io
    import torch

    torch.save({"a": torch.ones(3)}, folder / "a.pth")
    scipy.io.savemat(folder / "a.mat", {"net": {"layers": np.ones((1, 1), object)}})
    found = [path.read_bytes() for path in sorted((HERE / "found").glob("*.mat"))]
    return [(folder / "a.pth").read_bytes(), (folder / "a.mat").read_bytes(), *found]


def read_journal(path: Path) -> Journal:
    return Journal(path.parent)


@cache
def readers() -> dict[str, Reader]:
    """Name -> reader."""
    table = {
        f"depth {suffix}": Reader(f"f{suffix}", read_depth, depth_files(suffix), suffix in CHILD)
        for suffix in (".png", ".npy", ".npz", ".pfm", *CHILD)
    }
    for kind in ("PNG", "JPEG", "BMP", "WEBP", "PPM"):
        table[f"rgb {kind}"] = Reader("f.img", read_rgb, pictures(kind))
    for name, write in POINT_FILES.items():
        file = {"colmap text": "points3D.txt", "colmap binary": "points3D.bin"}
        table[f"points {name}"] = Reader(
            file.get(name, f"f.{name[:3]}"), read_points, points(write)
        )
    return table | {
        "mask": Reader("f.png", read_mask, pictures("PNG")),
        "camera": Reader("f.json", lambda path: read_camera(path, "depth"), texts(CAMERA)),
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
        "checkpoint": Reader("f.bin", lambda path: convert("djf", path), checkpoints, child=True),
    }


CHILD = (".tif", ".exr", ".h5")
