"""One model as a file: an .npz of arrays plus its materials as JSON, textures beside it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ducos.synth.materials import Material, linear
from ducos.synth.mesh import Mesh, project
from ducos.synth.wavefront import Model, Surface

LARGEST_TEXTURE = 768  # pixels of the longer side: more than a 640-pixel picture can show
MOST_TRIANGLES = 150_000


def store_model(folder: Path, key: str, model: Model, vertices: NDArray[np.float32]) -> bool:
    """Write a model as models/<key>.npz; False if it is too heavy or degenerate."""
    triangles = int((model.face_sizes - 2).sum())
    if not 4 <= triangles <= MOST_TRIANGLES or not np.isfinite(vertices).all():
        return False
    if float(np.ptp(vertices, axis=0).max()) < 1e-3:
        return False
    (folder / "models").mkdir(exist_ok=True)
    (folder / "textures").mkdir(exist_ok=True)
    specs = [_surface_spec(folder, f"{key}-{i}", s) for i, s in enumerate(model.surfaces)]
    file = folder / "models" / f"{key}.npz"
    partial = file.with_suffix(".partial.npz")
    np.savez_compressed(
        partial,
        vertices=vertices.astype(np.float32),
        corners=model.corners,
        face_sizes=model.face_sizes,
        uv=model.uv.astype(np.float32),
        slots=model.slots.astype(np.int16),
        materials=np.array(json.dumps(specs)),
    )
    partial.replace(file)
    return True


def stored_size(folder: Path, key: str) -> tuple[float, float, float] | None:
    """Width, depth and height of a model stored earlier; None if there is none."""
    file = folder / "models" / f"{key}.npz"
    if not file.exists():
        return None
    with np.load(file) as stored:
        width, depth, height = np.ptp(stored["vertices"], axis=0)
    return float(width), float(depth), float(height)


def _surface_spec(folder: Path, key: str, surface: Surface) -> dict[str, Any]:
    """A material as stored. Glass becomes opaque: its depth is its surface anyway."""
    roughness = float(np.clip(np.sqrt(2.0 / (surface.shininess + 2.0)) * 1.6, 0.15, 0.95))
    spec: dict[str, Any] = {
        "colour": list(surface.colour),
        "roughness": roughness,
        "image": None,
        "cutout": False,
    }
    if surface.texture is not None:
        stored = store_texture(folder, key, surface.texture, surface.mask)
        if stored is not None:
            spec["image"], spec["cutout"] = stored
    return spec


def store_texture(
    folder: Path, key: str, path: Path, mask: Path | None = None
) -> tuple[str, bool] | None:
    """Shrink a picture into textures/; returns its name and whether it has holes."""
    try:
        image: Image.Image = Image.open(path)
        image.load()
        has_alpha = image.mode in ("RGBA", "LA") or "transparency" in image.info
        image = image.convert("RGBA" if has_alpha else "RGB")
        if mask is not None:
            cut = Image.open(mask).convert("L").resize(image.size)
            image.putalpha(cut)
    except (OSError, ValueError):
        return None
    holes = image.mode == "RGBA" and int(np.asarray(image)[..., 3].min()) < 128
    image = image if holes else image.convert("RGB")
    shrink = LARGEST_TEXTURE / max(image.size)
    if shrink < 1:
        width, height = (max(1, round(side * shrink)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.LANCZOS)
    name = f"textures/{key}." + ("png" if holes else "jpg")
    if holes:
        image.save(folder / name)
    else:
        image.save(folder / name, quality=92)
    return name, holes


def load_model(folder: Path, file: str) -> Mesh:
    """The mesh of a stored model: base on z = 0, centred, front towards -y."""
    with np.load(folder / file) as stored:
        vertices, corners = stored["vertices"], stored["corners"].astype(np.int32)
        face_sizes = stored["face_sizes"].astype(np.int32)
        return Mesh(
            vertices,
            corners,
            face_sizes,
            stored["uv"],
            project(vertices, corners, face_sizes),
            stored["slots"].astype(np.int32),
            tuple(_material(folder, spec) for spec in json.loads(str(stored["materials"]))),
        )


def _material(folder: Path, spec: dict[str, Any]) -> Material:
    if spec["image"] is not None:
        image = folder / spec["image"]
        return Material("picture", image=image, roughness=spec["roughness"], cutout=spec["cutout"])
    # Real surfaces reflect some light: many libraries paint with pure black and white.
    colour = linear(np.clip(spec["colour"], 0.15, 0.95))
    return Material("plain", (colour,), roughness=spec["roughness"])
