"""Camera files as people have them, turned into the table that `calibration` reads.

JSON of SDKs, YAML of ROS and OpenCV, XML of OpenCV, numbers in text, .npy, .npz, .mat, COLMAP's
cameras.txt, and the focal length that a photograph's EXIF states, which is a guess.
"""

import json
import math
import re
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ducos.children import ONE_THREAD, environment, python_program
from ducos.errors import InputError, needed, one_line
from ducos.files import existing_file

LONGEST = 1_000_000  # bytes; a camera has a few hundred
FORMS = (
    "JSON, YAML (ROS camera_info, OpenCV), XML (OpenCV), text (3×3, 4×4 or fx fy cx cy), .npy,"
    " .npz, .mat, COLMAP's cameras.txt, or a photograph with EXIF"
)
COLMAP = {  # model -> names of its numbers
    "SIMPLE_PINHOLE": "f cx cy",
    "PINHOLE": "fx fy cx cy",
    "SIMPLE_RADIAL": "f cx cy k1",
    "RADIAL": "f cx cy k1 k2",
    "OPENCV": "fx fy cx cy k1 k2 p1 p2",
    "FULL_OPENCV": "fx fy cx cy k1 k2 p1 p2 k3 k4 k5 k6",
}
SMALL_ARRAYS = """
import numpy
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
except ImportError:  # Windows has no such limit
    pass
path, suffix = task
if suffix == ".mat":
    from scipy.io import loadmat
    content = loadmat(path)
else:
    content = numpy.load(path, allow_pickle=False)
found = {}
for name in list(content)[:50]:
    value = content[name]
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind and kind in "fiu" and value.size <= 1000:
        found[name] = value.astype(float).tolist()
print(json.dumps(found))
"""
COLMAP_LINE = re.compile(r"^\s*\d+\s+([A-Z_]+)\s+(\d+)\s+(\d+)\s+(.+)$", re.MULTILINE)


def read_table(path: str | Path) -> dict[str, Any]:
    """What a camera file holds, by the names that JSON files use."""
    source = existing_file(path)
    reader = READERS.get(source.suffix.lower(), read_words)
    if source.stat().st_size > LONGEST and reader is not read_photograph:
        raise InputError(f"{path} is longer than {LONGEST} bytes; is it the right file?")
    try:
        table = reader(source)
    except InputError:
        raise
    except Exception as problem:  # whatever a parser raises on bad bytes
        kind = source.suffix or "text"
        raise InputError(
            f"{path} could not be read as a {kind} camera file: {one_line(problem)}; expected "
            f"{FORMS}"
        ) from None
    if not isinstance(table, dict) or not table:
        raise InputError(f"{path} holds no camera; expected {FORMS}")
    return table


def read_words(source: Path) -> dict[str, Any]:
    """A text file, whatever its name: JSON, COLMAP, YAML or plain numbers."""
    text = source.read_text(encoding="utf-8-sig", errors="strict")
    start = text.lstrip()[:1]
    if start in ("{", "["):
        return of_json(text, source)
    if start == "<":
        return read_xml(source)
    found = COLMAP_LINE.search(text)
    if found:
        return of_colmap(text, source)
    try:
        return of_numbers(np.array([float(x) for x in uncommented(text)]), source)
    except ValueError:
        return of_yaml(text, source)


def uncommented(text: str) -> list[str]:
    """The words of a text of numbers."""
    lines = (line.split("#")[0] for line in text.splitlines())
    return re.split(r"[\s,;\[\]]+", " ".join(lines).strip(" \t\n,;[]"))


def of_json(text: str, source: Path) -> dict[str, Any]:
    """An object, or a bare matrix."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{source} is no JSON file: {problem}") from None
    if isinstance(content, list):
        content = {"matrix": content}
    if not isinstance(content, dict):
        raise InputError(f"{source} must hold a JSON object, see docs/cameras.md")
    return content


def of_yaml(text: str, source: Path) -> dict[str, Any]:
    """ROS's and OpenCV's YAML; OpenCV's begins with `%YAML:1.0`, which YAML does not know."""
    yaml = needed("yaml", "captures")

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):  # a few of these unpack to gigabytes
                raise InputError(f"{source} repeats parts by *names; write the numbers out")
            return super().compose_node(parent, index)

    Loader.add_constructor(
        "tag:yaml.org,2002:opencv-matrix",
        lambda loader, node: loader.construct_mapping(node, deep=True),
    )
    body = re.sub(r"\A%YAML:?\s*\d\.\d\s*(---)?", "", text)
    try:
        content = yaml.load(body, Loader)
    except (yaml.YAMLError, RecursionError) as problem:
        raise InputError(
            f"{source} is neither JSON nor YAML nor numbers: {one_line(problem)}"
        ) from None
    if not isinstance(content, dict):
        raise InputError(f"{source} holds no camera; expected {FORMS}")
    return {str(key).removeprefix("Camera1.").removeprefix("Camera."): content[key]
            for key in content}  # fmt: skip


def read_xml(source: Path) -> dict[str, Any]:
    """OpenCV's XML, by OpenCV."""
    cv2 = needed("cv2", "formats")
    text = source.read_text(encoding="utf-8", errors="strict")
    if "<!ENTITY" in text:
        raise InputError(f"{source} defines entities, which a camera file has no use for")
    storage = cv2.FileStorage(text, cv2.FILE_STORAGE_READ | cv2.FILE_STORAGE_MEMORY)
    table: dict[str, Any] = {}
    for key in storage.root().keys():  # noqa: SIM118, a node of OpenCV is no mapping
        node = storage.getNode(key)
        if node.isReal() or node.isInt():
            table[key] = node.real()
        elif node.isMap():
            table[key] = node.mat().tolist()
    storage.release()
    return table


def of_colmap(text: str, source: Path) -> dict[str, Any]:
    """COLMAP's cameras.txt with one camera; its pixel centres are at 0.5."""
    lines = COLMAP_LINE.findall(text)
    if len(lines) > 1:
        raise InputError(f"{source} holds {len(lines)} cameras; leave the one of this image")
    model, width, height, words = lines[0]
    if model not in COLMAP:
        raise InputError(f"{source} has COLMAP's model {model}; known: {', '.join(COLMAP)}")
    names, numbers = COLMAP[model].split(), [float(word) for word in words.split()]
    if len(names) != len(numbers):
        raise InputError(f"{source}: {model} has {len(names)} numbers, got {len(numbers)}")
    table: dict[str, Any] = dict(zip(names, numbers))
    if "f" in table:
        table["fx"] = table["fy"] = table.pop("f")
    return {**table, "width": int(width), "height": int(height), "pixel_centre": 0.5}


def of_numbers(numbers: Any, source: Path) -> dict[str, Any]:
    """Bare numbers: 4, 6 (with the size first), 9, 12 or 16 of them."""
    flat = np.asarray(numbers, np.float64).ravel()
    if flat.size == 4:
        return dict(zip(("fx", "fy", "cx", "cy"), map(float, flat)))
    if flat.size == 6:
        return dict(zip(("width", "height", "fx", "fy", "cx", "cy"), map(float, flat)))
    if flat.size == 9:
        return {"matrix": flat.tolist()}
    if flat.size in (12, 16):
        square = flat.reshape(-1, 4)
        # A pose and an intrinsic matrix have one shape; who reads it knows which it is.
        return {"matrix": square.tolist(), "K": square[:3, :3].tolist()}
    raise InputError(
        f"{source} holds {flat.size} numbers; a camera has 4 (fx fy cx cy), 9 or 16, a pose 12 or "
        "16"
    )


def read_npy(source: Path) -> dict[str, Any]:
    return of_numbers(np.load(source, allow_pickle=False), source)


def read_npz(source: Path) -> dict[str, Any]:
    return of_arrays(small_arrays(source), source)


def read_mat(source: Path) -> dict[str, Any]:
    """MATLAB's, up to version 7; also the calibration toolbox's fc, cc, kc, nx, ny."""
    arrays = small_arrays(source)
    if {"fc", "cc"} <= arrays.keys():
        (fx, fy), (cx, cy) = (np.ravel(arrays[name])[:2] for name in ("fc", "cc"))
        table = {"fx": float(fx), "fy": float(fy), "cx": float(cx), "cy": float(cy)}
        table |= {
            name: float(np.ravel(arrays[key])[0])
            for name, key in (("width", "nx"), ("height", "ny"))
            if key in arrays
        }
        return {**table, "distortion": np.ravel(arrays.get("kc", [])).tolist()}
    return of_arrays(arrays, source)


def small_arrays(source: Path) -> dict[str, Any]:
    """The small arrays of numbers in a .npz or .mat file, read by a process of its own: a damaged
    .mat can crash its reader, and a .npz can unpack to any size."""
    done = subprocess.run(
        python_program(SMALL_ARRAYS, str(source), source.suffix.lower()),
        capture_output=True,
        env=environment(ONE_THREAD),  # threads reserve memory, which counts against the limit
        timeout=60,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it crashed"]
        raise InputError(f"{source} could not be read as {source.suffix}: {last[0][:200]}")
    return {name: np.array(values) for name, values in json.loads(done.stdout).items()}


def of_arrays(arrays: dict[str, Any], source: Path) -> dict[str, Any]:
    """Named arrays; a single one needs no name that is known."""
    numbers = {
        k: v for k, v in arrays.items() if getattr(v, "dtype", np.dtype(object)).kind in "fiu"
    }
    table = {key: value.tolist() if value.size > 1 else float(value.ravel()[0])
             for key, value in numbers.items() if 0 < value.size <= 100}  # fmt: skip
    matrices = [value for value in numbers.values() if value.size in (9, 16)]
    if len(matrices) == 1:
        table = {**of_numbers(matrices[0], source), **table}
    return table


def read_photograph(source: Path) -> dict[str, Any]:
    """The focal length that EXIF states for 35 mm film: a guess, and said to be one."""
    from PIL import Image

    with (
        warnings.catch_warnings(action="ignore"),  # a damaged EXIF is said in one sentence below
        Image.open(source, formats=("JPEG", "PNG", "TIFF", "WEBP")) as picture,
    ):
        width, height = picture.size
        exif = picture.getexif()
        turned = exif.get(0x0112, 1) in (5, 6, 7, 8)
        film = float(exif.get_ifd(0x8769).get(0xA405, 0) or 0)
    if not 1 <= film <= 2000 or not math.isfinite(film):
        raise InputError(
            f"{source} is an image whose EXIF states no focal length for 35 mm film; give the "
            "camera's own file, or --field-of-view"
        )
    focal = film / 36 * max(width, height)
    if turned:
        width, height = height, width
    return {
        "width": width, "height": height, "fx": focal, "fy": focal,
        "cx": (width - 1) / 2, "cy": (height - 1) / 2,
        "note": f"the focal length is a guess of {focal:.0f} px, from EXIF ({film:g} mm on film)",
    }  # fmt: skip


READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".mat": read_mat,
    ".xml": read_xml,
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp"), read_photograph),
}
ENDINGS = tuple(READERS)  # that say how a camera file is read; of all others the content does
