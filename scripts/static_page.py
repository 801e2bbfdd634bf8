"""The page without a server, as a folder of files: any host of files can show it.

    python scripts/static_page.py site --network       # the network runs in the visitor's browser
    python scripts/static_page.py site                 # stored results of the bundled pairs
    python scripts/static_page.py site --engine my.js  # see page/src/engine.js
    python -m http.server -d site                      # to look at it

`--network` needs Node: the page's program is built from page/, and onnxruntime-web comes from npm.
"""

import argparse
import json
import shutil
import subprocess
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from ducos import __version__, example
from ducos.doctor import examine
from ducos.errors import InputError
from ducos.runtime import PIECES, described, place
from ducos.serve import FORMATS
from ducos.serve.outputs import write_output
from ducos.upscaling import Upscaler, default_model, find_weights, version_of

DEGREES = 60.0  # field of view of clouds and meshes, as in page/src/gallery.js
PAGE = Path(__file__).resolve().parents[1] / "page"


def write_inputs(name: str, folder: Path) -> dict[str, Any]:
    """Files of one bundled pair; what the page has to know of it."""
    pair, place = example.PAIRS[name], folder / "gallery" / name
    place.mkdir(parents=True, exist_ok=True)
    for kind, path in (("rgb", pair.rgb), ("depth", pair.depth)):
        shutil.copyfile(path, place / f"{kind}.png")
    addresses = {kind: f"gallery/{name}/{kind}.png" for kind in ("rgb", "depth")}
    return {"name": name, "about": pair.about, "options": dict(pair.options), **addresses}


def write_results(name: str, folder: Path, upscaler: Upscaler, bicubic: Upscaler) -> None:
    """What the doctor says of a bundled pair, and its result in all formats."""
    pair, place = example.PAIRS[name], folder / "gallery" / name
    report = examine(pair.rgb, pair.depth, unit=pair.options.get("unit", "auto"))
    (place / "report.json").write_text(report.to_json())
    result = upscaler(pair.rgb, pair.depth, **pair.options)
    for kind, entry in FORMATS.items():
        seen = replace(result.options, field_of_view=DEGREES if entry.in_space else None)
        write_output(replace(result, options=seen), kind, place, bicubic)


def write_network(folder: Path) -> None:
    """The program that runs the network, its graphs and its weights."""
    model = default_model()
    weights = find_weights(model)
    if weights is None:
        raise InputError(f"{model} has no weights to run in a browser")
    npm = shutil.which("npm")
    if npm is None:
        raise InputError(
            "--network builds with Node, and npm is not there; install Node 20 or later"
        )
    if not (PAGE / "node_modules" / "onnxruntime-web").is_dir():
        subprocess.run([npm, "ci"], cwd=PAGE, check=True)
    build = ["node", "build.js", "--network", str(folder.resolve())]
    subprocess.run(build, cwd=PAGE, check=True)
    inside = folder / "network"
    about = {**described(weights), "stem": weights.stem, "name": f"{model} {version_of(model)}"}
    (inside / "network.json").write_text(json.dumps(about))
    for file in (weights, *(place(weights, piece) for piece in PIECES)):
        shutil.copyfile(file, inside / file.name)
    import onnxruntime  # the npm package has no licence text; it is that of the same project

    for name in ("LICENSE", "ThirdPartyNotices.txt"):
        source = Path(onnxruntime.__file__).with_name(name)
        shutil.copyfile(source, inside / f"onnxruntime.{source.stem}.txt")


def write_page(folder: Path, engine: Path | None = None, network: bool = False) -> None:
    """The page with the engine that is given, or with the network, or with stored results."""
    built = Path(str(files("ducos.serve") / "page"))
    shutil.copytree(built, folder, dirs_exist_ok=True)
    (folder / "gallery.js").replace(folder / "engine.js")
    pairs = [write_inputs(name, folder) for name in example.PAIRS]
    if network:
        write_network(folder)
    else:
        upscaler, bicubic = Upscaler(threads=1), Upscaler("bicubic", threads=1)
        for name in example.PAIRS:
            write_results(name, folder, upscaler, bicubic)
    if engine is not None:
        shutil.copyfile(engine, folder / "engine.js")
    about = {
        "version": __version__,
        "model": default_model(),
        "pairs": pairs,
        "suffixes": {name: entry.suffix[1:] for name, entry in FORMATS.items()},
    }
    (folder / "gallery.json").write_text(json.dumps(about))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", type=Path, help="a built module with a class Engine")
    parser.add_argument("--network", action="store_true", help="let browsers run the network")
    given = parser.parse_args()
    try:
        write_page(given.folder, given.engine, given.network)
    except InputError as problem:
        parser.exit(2, f"{problem}\n")
