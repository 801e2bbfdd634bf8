"""The page without a server, as a folder of files: any host of files can show it.

    python scripts/static_page.py site
    python -m http.server -d site                      # to look at it
    python scripts/static_page.py site --engine my.js  # see page/src/engine.js

The bundled pairs are super-resolved now, and all formats of their results stored beside the page.
"""

import argparse
import json
import shutil
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from ducos import __version__, example
from ducos.doctor import examine
from ducos.serve import FORMATS
from ducos.serve.outputs import write_output
from ducos.upscaling import Upscaler, default_model

DEGREES = 60.0  # field of view of clouds and meshes, as in page/src/gallery.js


def write_pair(name: str, folder: Path, upscaler: Upscaler, bicubic: Upscaler) -> dict[str, Any]:
    """Files of one pair and its results; what the page has to know of it."""
    pair, place = example.PAIRS[name], folder / "gallery" / name
    place.mkdir(parents=True, exist_ok=True)
    for kind, path in (("rgb", pair.rgb), ("depth", pair.depth)):
        shutil.copyfile(path, place / f"{kind}.png")
    report = examine(pair.rgb, pair.depth, unit=pair.options.get("unit", "auto"))
    (place / "report.json").write_text(report.to_json())
    result = upscaler(pair.rgb, pair.depth, **pair.options)
    for kind, entry in FORMATS.items():
        seen = replace(result.options, field_of_view=DEGREES if entry.in_space else None)
        write_output(replace(result, options=seen), kind, place, bicubic)
    addresses = {kind: f"gallery/{name}/{kind}.png" for kind in ("rgb", "depth")}
    return {"name": name, "about": pair.about, "options": dict(pair.options), **addresses}


def write_page(folder: Path, engine: Path | None = None) -> None:
    """The page with the engine that is given, or the one that shows stored results."""
    built = Path(str(files("ducos.serve") / "page"))
    shutil.copytree(built, folder, dirs_exist_ok=True)
    (folder / "gallery.js").replace(folder / "engine.js")
    if engine is not None:
        shutil.copyfile(engine, folder / "engine.js")
    upscaler, bicubic = Upscaler(threads=1), Upscaler("bicubic", threads=1)
    about = {
        "version": __version__,
        "model": default_model(),
        "pairs": [write_pair(name, folder, upscaler, bicubic) for name in example.PAIRS],
        "suffixes": {name: entry.suffix[1:] for name, entry in FORMATS.items()},
    }
    (folder / "gallery.json").write_text(json.dumps(about))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", type=Path, help="a built module with a class Engine")
    given = parser.parse_args()
    write_page(given.folder, given.engine)
