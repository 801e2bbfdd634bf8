"""The bundled example: a rendered tabletop, an 80×60 depth map with noise and holes, ground truth.

Everything in it is CC0 (see README.md beside it). `ducos demo` shows it, `ducos selftest` checks an
installation against stored figures.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ducos.files import check_output_folder, read_depth
from ducos.upscaling import Options, default_model

if TYPE_CHECKING:
    from ducos.upscaling import Result

FOLDER = Path(__file__).parent
RGB, LOW, TRUTH = FOLDER / "rgb.png", FOLDER / "low.png", FOLDER / "truth.png"
STORED = FOLDER / "figures.json"
TOLERANCE = 0.002  # relative; processors differ in rounding, wrong code differs in percent


@dataclass(frozen=True)
class BundledPair:
    """Files of a pair to try. about: a few words for people; options: those that fit it."""

    rgb: Path
    depth: Path
    about: str
    options: Mapping[str, Any]


PAIRS = {
    "table": BundledPair(RGB, LOW, "80×60, a little noise, a few holes", {"unit": "mm"}),
    "tof": BundledPair(
        RGB,
        FOLDER / "tof.png",
        "time of flight, 160×120: noise, blurred edges, flying pixels",
        {"unit": "mm", "sensor": "tof"},
    ),
    "stereo": BundledPair(
        RGB,
        FOLDER / "stereo.png",
        "stereo camera, 160×120: holes beside edges, coarse steps",
        {"unit": "mm", "sensor": "stereo"},
    ),
}
"""Name -> a pair to try; one scene as three cameras would measure it."""


def scores(result: "Result[Any]") -> dict[str, float]:
    """Errors in centimetres against the ground truth, over all of its valid pixels."""
    truth = read_depth(TRUTH, unit="mm")
    error = (result.depth - truth.depth)[truth.valid] * 100
    return {"rmse_cm": float(np.sqrt(np.mean(error**2))), "mae_cm": float(np.mean(np.abs(error)))}


def run_demo(
    out: Path, options: Options | None = None, progress: Callable[[str], None] = lambda name: None
) -> dict[str, dict[str, Any]]:
    """Bicubic and the chosen model on the example: for each its figures and the files written."""
    check_output_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    truth = read_depth(TRUTH, unit="mm").depth
    made: dict[str, dict[str, Any]] = {}
    options = options or Options()
    from ducos.upscaling import super_resolve  # torch comes with it; a server only lists the pairs

    for name in dict.fromkeys(["bicubic", options.model or default_model()]):
        progress(name)
        result = super_resolve(RGB, LOW, options, unit="mm", model=name)
        files = [out / f"{Path(name).stem}.png", out / f"{Path(name).stem}-picture.png"]
        result.save(files[0])
        result.preview(files[1], truth=truth)
        made[name] = {**scores(result), "files": files}
    return made


def run_selftest(options: Options | None = None) -> dict[str, Any]:
    """Figures of the models that ship with the package against the stored ones."""
    from ducos.upscaling import super_resolve

    rows = []
    for name, stored in json.loads(STORED.read_text()).items():
        measured = scores(super_resolve(RGB, LOW, options, unit="mm", model=name))["rmse_cm"]
        rows.append(
            {
                "model": name,
                "rmse_cm": measured,
                "stored_cm": stored,
                "ok": abs(measured - stored) <= TOLERANCE * stored,
            }
        )
    return {"ok": all(row["ok"] for row in rows), "rows": rows}
