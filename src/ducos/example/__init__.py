"""The bundled example: a rendered tabletop with an 80×60 depth map, noise and holes, and the truth.

Everything in it is CC0 (see README.md beside it). `ducos demo` shows it, `ducos selftest` checks an
installation against stored figures.
"""

import json
from pathlib import Path

import numpy as np

from ducos.files import read_depth, read_rgb, write_depth
from ducos.pictures import write_image
from ducos.upscaling import Result, default_model, super_resolve

FOLDER = Path(__file__).parent
RGB, LOW, TRUTH = FOLDER / "rgb.png", FOLDER / "low.png", FOLDER / "truth.png"
STORED = FOLDER / "figures.json"
TOLERANCE = 0.002  # relative; processors differ in rounding, wrong code differs in percent


def scores(result: Result) -> dict[str, float]:
    """Errors in centimetres against the truth, over all of its valid pixels."""
    truth = read_depth(TRUTH, unit="mm")
    error = (result.depth - truth.depth)[truth.valid] * 100
    return {"rmse_cm": float(np.sqrt(np.mean(error**2))), "mae_cm": float(np.mean(np.abs(error)))}


def run_demo(out: Path, model: str | None) -> None:
    """Bicubic and the chosen model side by side: files, a picture, and figures."""
    from rich.console import Console
    from rich.table import Table

    from ducos.pictures import comparison

    out.mkdir(parents=True, exist_ok=True)
    chosen = model or default_model()
    console = Console()
    table = Table("model", "RMSE cm", "MAE cm", box=None)
    written = []
    for name in dict.fromkeys(["bicubic", chosen]):
        with console.status(f"running {name}"):
            result = super_resolve(RGB, LOW, unit="mm", model=name)
        depth, picture = out / f"{Path(name).stem}.png", out / f"{Path(name).stem}-picture.png"
        write_depth(depth, result.depth, result.valid)
        low = read_depth(LOW, unit="mm")
        sheet = comparison(
            read_rgb(RGB), low.depth, low.valid, result.depth, result.valid,
            truth=read_depth(TRUTH, unit="mm").depth,
        )  # fmt: skip
        write_image(picture, sheet)
        written += [depth, picture]
        figures = scores(result)
        table.add_row(name, f"{figures['rmse_cm']:.2f}", f"{figures['mae_cm']:.2f}")
    console.print(table)
    print("wrote", *written, sep="\n  ")
    if chosen == "bicubic":
        console.print("No trained weights are in this package yet: this is bicubic alone.")


def run_selftest() -> dict:
    """Figures of the models that ship with the package against the stored ones."""
    rows = []
    for name, stored in json.loads(STORED.read_text()).items():
        measured = scores(super_resolve(RGB, LOW, unit="mm", model=name))["rmse_cm"]
        rows.append(
            {
                "model": name,
                "rmse_cm": measured,
                "stored_cm": stored,
                "ok": abs(measured - stored) <= TOLERANCE * stored,
            }
        )
    return {"ok": all(row["ok"] for row in rows), "rows": rows}
