"""Fills the assets folder from downloaded archives. Needs no Blender.

    apt-get download sweethome3d-furniture && dpkg -x sweethome3d-furniture_*.deb furniture
    npm pack @pmndrs/assets

    from ducos.synth.prepare import prepare_assets
    prepare_assets(
        Path("assets"),
        furniture=sorted(Path("furniture/usr/share/sweethome3d/furniture").glob("*.sh3f")),
        hdri=Path("pmndrs-assets-1.7.0.tgz"),
    )

Furniture comes as Sweet Home 3D libraries (.sh3f: a zip of OBJ files and a list with sizes, authors
and licence), skies as the npm package @pmndrs/assets, scanned objects as folders with `model.obj`
and `texture.png` (Google Scanned Objects as OBJ), textures as folders of pictures.
"""

import base64
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ducos.errors import InputError
from ducos.synth.assets import Asset, Catalogue, role_of
from ducos.synth.model_file import store_model, store_texture, stored_size
from ducos.synth.supply import TEXTURE_USES
from ducos.synth.wavefront import Surface, read_model

TEXTURE_WORDS = {
    "floor": ("floor", "tile", "parquet", "carpet", "rug", "paving"),
    "wood": ("wood", "oak", "pine", "walnut", "plank", "timber"),
    "fabric": ("fabric", "cloth", "textile", "leather", "curtain", "linen", "wool"),
    "wall": ("wall", "brick", "plaster", "concrete", "stucco"),
}
SHOES = re.compile(
    r"shoe|sneaker|boot|sandal|adidas|reebok|asics|nike|puma|heel|slipper|loafer|sperry|timberland"
    r"|crocs|rayna|santa_cruz|adizero|predator|tieks|mocc|clog|womens|mens_|_fg|_trx",
    re.IGNORECASE,
)
Report = Callable[[str], None]


def prepare_assets(
    folder: Path,
    *,
    furniture: Iterable[Path] = (),
    hdri: Path | None = None,
    scanned: Path | None = None,
    textures: Mapping[Path, str] | None = None,
    report: Report = lambda line: None,
) -> Catalogue:
    """Unpack archives into `folder` and update its index; what is already there stays as it is.

    Args:
        furniture: .sh3f libraries.
        hdri: the tarball of @pmndrs/assets, or its unpacked folder.
        scanned: folder with one subfolder per object.
        textures: folders of pictures, each with the licence they are under. Subfolders named after
            a use (floor, wall, wood, fabric, other, picture) decide it; else file names do.
        report: called with one line per source.
    """
    folder.mkdir(parents=True, exist_ok=True)
    has_index = (folder / "index.json").exists()
    catalogue = Catalogue.load(folder) if has_index else Catalogue(folder)
    sources: list[tuple[str, Iterator[Asset]]] = []
    for library in furniture:
        _must_exist(library)
        sources.append((library.name, _furniture(folder, library)))
    if hdri is not None:
        _must_exist(hdri)
        sources.append((hdri.name, _skies(folder, hdri)))
    if scanned is not None:
        _must_exist(scanned)
        sources.append((scanned.name, _scanned(folder, scanned)))
    for path, licence in (textures or {}).items():
        _must_exist(path)
        sources.append((path.name, _textures(folder, path, licence)))
    for name, found in sources:
        fresh = {asset.key: asset for asset in found}
        catalogue.assets.update(fresh)
        catalogue.save()
        report(f"{name}: {len(fresh)} assets")
    return Catalogue.load(folder)


def _must_exist(path: Path) -> None:
    if not path.exists():
        raise InputError(
            f"got {path}, which does not exist; expected a downloaded archive or folder"
        )


def _slug(*parts: str) -> str:
    return "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in parts)


# Furniture ----------------------------------------------------------------------------------


def _furniture(folder: Path, library: Path) -> Iterator[Asset]:
    with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(library) as archive:
        root = Path(temporary)
        archive.extractall(root)
        general, items = read_catalogue(root / "PluginFurnitureCatalog.properties")
        licence = licence_name(general.get("license", "unknown"))
        for number in sorted(items):
            item = items[number]
            width, depth, height = (float(item[k]) / 100 for k in ("width", "depth", "height"))
            size = (width, depth, height)
            elevation = float(item.get("elevation", 0)) / 100
            door = item.get("doorOrWindow") == "true"
            role = role_of(item["name"], item.get("category", ""), size, elevation, door)
            if role is None:
                continue
            key = _slug(library.stem, f"{number:04d}", item["name"])
            if stored_size(folder, key) is None:
                try:
                    model = read_model(root / item["model"].lstrip("/"))
                except (ValueError, OSError):
                    continue  # a few files of the libraries are broken
                turn = np.array(item.get("modelRotation", "1 0 0 0 1 0 0 0 1").split(), np.float32)
                vertices = fit_furniture(model.vertices, turn.reshape(3, 3), size)
                if not store_model(folder, key, model, vertices):
                    continue
            yield Asset(
                key,
                "model",
                role,
                f"models/{key}.npz",
                item["name"],
                library.name,
                item.get("creator", "unknown"),
                licence,
                size,
                elevation,
            )


def read_catalogue(path: Path) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    """A library's own entries, and its items by number, from a Java properties file."""
    general: dict[str, str] = {}
    items: dict[int, dict[str, str]] = {}
    for line in path.read_text(encoding="latin-1").splitlines():
        if line.lstrip().startswith("#") or "=" not in line:
            continue
        key, value = (part.strip() for part in line.split("=", 1))
        value = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), value)
        numbered = re.fullmatch(r"(\w+)#(\d+)", key)
        if numbered:
            items.setdefault(int(numbered[2]), {})[numbered[1]] = value
        else:
            general[key] = value
    return general, items


def licence_name(text: str) -> str:
    """Short name of the licence a library states in words."""
    lowered = text.lower()
    if "public domain" in lowered or "cc0" in lowered:
        return "CC0-1.0"
    version = re.search(r"attribution (\d\.\d)", lowered)
    if version and "share" not in lowered and "noncommercial" not in lowered:
        return f"CC-BY-{version[1]}" + ("-US" if "united states" in lowered else "")
    return text


def fit_furniture(
    vertices: NDArray[np.float32], turn: NDArray[np.float32], size: tuple[float, float, float]
) -> NDArray[np.float32]:
    """y-up model units to metres: turned, scaled to (width, depth, height), front to -y, z up."""
    turned = vertices @ turn.T
    low, high = turned.min(0), turned.max(0)
    width, depth, height = size
    target = np.array([width, height, depth], np.float32)
    scaled = (turned - (low + high) / 2) * (target / np.maximum(high - low, 1e-6))
    upright = np.stack([scaled[:, 0], -scaled[:, 2], scaled[:, 1]], 1)
    return (upright - [0, 0, upright[:, 2].min()]).astype(np.float32)


# Scanned objects, skies, textures -----------------------------------------------------------


def _scanned(folder: Path, scans: Path) -> Iterator[Asset]:
    shoes = 0
    for place in sorted(path for path in scans.iterdir() if (path / "model.obj").is_file()):
        texture = place / "texture.png"
        if not texture.is_file():
            continue
        if SHOES.search(place.name):  # a quarter of the set are shoes; keep every fourth
            shoes += 1
            if shoes % 4:
                continue
        key = _slug("scanned", place.name)
        size = stored_size(folder, key)
        if size is None:
            _store_scan(folder, key, place / "model.obj", texture)
            size = stored_size(folder, key)
        if size is not None:
            yield Asset(
                key,
                "model",
                "scanned",
                f"models/{key}.npz",
                place.name.replace("_", " "),
                "Google Scanned Objects",
                "Google Research",
                "CC-BY-4.0",
                size,
            )


def _store_scan(folder: Path, key: str, file: Path, texture: Path) -> None:
    """Store a scan on its base and centred, unless it is too small or too large for a table."""
    model = read_model(file)
    low, high = model.vertices.min(0), model.vertices.max(0)
    if 0.04 < (high - low).max() < 0.6:
        base = np.array([(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, low[2]])
        model.surfaces = [Surface(texture=texture)]
        model.slots[:] = 0
        store_model(folder, key, model, (model.vertices - base).astype(np.float32))


def _skies(folder: Path, package: Path) -> Iterator[Asset]:
    """HDRIs of @pmndrs/assets: EXR files in base64 inside JavaScript modules."""
    (folder / "hdri").mkdir(exist_ok=True)
    if package.is_dir():
        modules = {p.name: p.read_text() for p in sorted(package.glob("**/hdri/*.exr.js"))}
    else:
        with tarfile.open(package) as archive:
            members = [m for m in archive.getmembers() if m.name.endswith(".exr.js")]
            texts = {Path(m.name).name: archive.extractfile(m) for m in members}
            modules = {name: f.read().decode() for name, f in texts.items() if f is not None}
    for name, text in sorted(modules.items()):
        payload = re.search(r"base64,([A-Za-z0-9+/=]+)", text)
        if payload is None:
            continue
        file = f"hdri/{name.removesuffix('.js')}"
        (folder / file).write_bytes(base64.b64decode(payload[1]))
        title = name.split(".")[0]
        yield Asset(
            _slug("hdri", title),
            "hdri",
            "hdri",
            file,
            title,
            "@pmndrs/assets",
            "Poly Haven",
            "CC0-1.0",
        )


def _textures(folder: Path, pictures: Path, licence: str) -> Iterator[Asset]:
    (folder / "textures").mkdir(exist_ok=True)
    for path in sorted(pictures.rglob("*")):
        if path.suffix.lower() not in (".jpg", ".jpeg", ".png", ".webp"):
            continue
        use = texture_use(path.relative_to(pictures))
        key = _slug("texture", *path.relative_to(pictures).with_suffix("").parts)
        file = store_texture(folder, key, path)
        if file is None:
            continue
        kind = "picture" if use == "picture" else "texture"
        yield Asset(key, kind, use, file[0], path.stem, pictures.name, "see source", licence)


def texture_use(path: Path) -> str:
    """What a texture file is for, from its folders' names, else from words in its own."""
    for part in path.parts[:-1]:
        if part.lower() in (*TEXTURE_USES, "picture"):
            return part.lower()
    for use, words in TEXTURE_WORDS.items():
        if any(word in path.stem.lower() for word in words):
            return use
    return "other"
