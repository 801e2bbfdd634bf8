"""Reads the part of Wavefront OBJ and MTL files that furniture libraries use."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass
class Surface:
    """A material of an MTL file: sRGB colour, shininess exponent, opacity, texture files."""

    colour: tuple[float, float, float] = (0.8, 0.8, 0.8)
    shininess: float = 30.0
    opacity: float = 1.0
    texture: Path | None = None
    mask: Path | None = None


@dataclass
class Model:
    """vertices (V, 3); corners (L,); face_sizes (F,); uv (L, 2); slots (F,) into surfaces."""

    vertices: NDArray[np.float32]
    corners: NDArray[np.int32]
    face_sizes: NDArray[np.int32]
    uv: NDArray[np.float32]
    slots: NDArray[np.int32]
    surfaces: list[Surface] = field(default_factory=list)


def read_surfaces(path: Path) -> dict[str, Surface]:
    """Materials of an MTL file by name; textures that do not exist are left out."""
    surfaces: dict[str, Surface] = {}
    current = Surface()
    for line in path.read_text(encoding="latin-1").splitlines():
        words = line.split()
        if len(words) < 2:
            continue
        key, values = words[0], words[1:]
        if key == "newmtl":
            current = surfaces[line.strip()[7:].strip()] = Surface()
        elif key == "Kd" and len(values) >= 3:
            red, green, blue = (float(v) for v in values[:3])
            current.colour = (red, green, blue)
        elif key == "Ns":
            current.shininess = float(values[0])
        elif key == "d":
            current.opacity = float(values[-1])
        elif key in ("map_Kd", "map_d"):
            file = path.parent / line.strip().split(None, 1)[1].strip().replace("\\", "/")
            if file.is_file() and key == "map_Kd":
                current.texture = file
            elif file.is_file():
                current.mask = file
    return surfaces


def read_model(path: Path) -> Model:
    """Geometry of an OBJ file with its materials; a file without faces raises ValueError."""
    vertices: list[list[str]] = []
    texture_points: list[list[str]] = []
    corner_words: list[str] = []
    sizes: list[int] = []
    slots: list[int] = []
    library: dict[str, Surface] = {}
    surfaces: list[Surface] = []
    slot_of: dict[str, int] = {}
    slot = -1
    counts: list[tuple[int, int]] = []  # points known at each face, for relative indices

    def use(name: str) -> int:
        if name not in slot_of:
            slot_of[name] = len(surfaces)
            surfaces.append(library.get(name, Surface()))
        return slot_of[name]

    for line in path.read_text(encoding="latin-1").splitlines():
        if line.startswith("v "):
            vertices.append(line.split()[1:4])
        elif line.startswith("vt "):
            texture_points.append(line.split()[1:3])
        elif line.startswith("f "):
            words = line.split()[1:]
            if len(words) < 3:
                continue
            if slot < 0:
                slot = use("")
            corner_words += words
            sizes.append(len(words))
            slots.append(slot)
            counts.append((len(vertices), len(texture_points)))
        elif line.startswith("usemtl"):
            slot = use(line[6:].strip())
        elif line.startswith("mtllib"):
            file = path.parent / line[6:].strip()
            if file.is_file():
                library.update(read_surfaces(file))
    if not sizes:
        raise ValueError(f"{path} has no faces")
    points = np.array(vertices, np.float32)
    face_sizes = np.array(sizes, np.int32)
    known = np.repeat(np.array(counts), face_sizes, axis=0)
    pairs = np.array([_corner(word) for word in corner_words], np.int64)
    # OBJ counts from 1, negative numbers from the last point read so far; 0 here means absent.
    corners = np.where(pairs[:, 0] < 0, known[:, 0] + pairs[:, 0], pairs[:, 0] - 1)
    texture = np.where(pairs[:, 1] < 0, known[:, 1] + pairs[:, 1], pairs[:, 1] - 1)
    uv = np.zeros((len(pairs), 2), np.float32)
    if texture_points:
        flat = np.array([[*p, "0"][:2] for p in texture_points], np.float32)
        present = pairs[:, 1] != 0
        uv[present] = flat[texture[present]]
    if corners.min() < 0 or corners.max() >= len(points):
        raise ValueError(f"{path} refers to vertices it does not have")
    return Model(
        points, corners.astype(np.int32), face_sizes, uv, np.array(slots, np.int32), surfaces
    )


def _corner(word: str) -> tuple[int, int]:
    """Vertex and texture index of "v", "v/vt", "v//vn" or "v/vt/vn"."""
    parts = word.split("/")
    return int(parts[0]), int(parts[1]) if len(parts) > 1 and parts[1] else 0
