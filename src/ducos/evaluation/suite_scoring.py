"""Models × cases of a suite -> rows, and the named figures by which weights are chosen."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from ducos.data import Dataset, open_dataset
from ducos.errors import InputError
from ducos.evaluation.results import known, versions, write_json
from ducos.evaluation.scoring import describe, made_folder
from ducos.evaluation.suite_figures import image_figures
from ducos.evaluation.suite_inputs import SuiteInput, suite_input
from ducos.evaluation.suites import Suite, SuiteCase, find_suite
from ducos.models import as_model
from ducos.upscaling import Options, Result, load, super_resolve

Progress = Callable[[str, int], None]
RATIOS = ("rmse", "near")  # averaged as geometric means


@dataclass
class SuiteRow:
    """One model on one case. figures: means over the images; `harmed` is how many of them."""

    model: str
    case: str
    data: str
    ratio: int
    images: int
    figures: dict[str, float]
    per_image: list[dict[str, Any]] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, which has no NaN; without the single images."""
        facts = {n: v for n, v in vars(self).items() if n not in ("figures", "per_image")}
        return {**facts, **known(self.figures)}


def score_suite(
    models: str | Sequence[str],
    suite: str | Suite = "heldout",
    *,
    data: str | Dataset | None = None,
    captures: str | Path | None = None,
    images: int = 12,
    options: Options | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> list[SuiteRow]:
    """Score models on the cases of a suite whose data are given.

    Args:
        models: names or weight files.
        data: rendered pairs: a folder of `ducos synth`, or name:PLACE as for `open_dataset`.
        captures: folder of captures. images: of the rendered ones, spread evenly; 0: all.
        options: tile, device, threads, accept_noncommercial; the rest is the cases'.
        out: folder for results.json. progress: called after each image, with how many in all.
    """
    suite = find_suite(suite) if isinstance(suite, str) else suite
    names = [models] if isinstance(models, str) else list(models)
    opened = opened_data(data, captures)
    cases = [case for case in suite.cases if case.data in opened]
    chosen = {
        kind: spread(len(pairs), images if kind == "rendered" else 0)
        for kind, pairs in opened.items()
    }
    options = options or Options()
    folder = None if out is None else made_folder(Path(out))
    accepted = options.accept_noncommercial
    networks = {n: load(n, device=options.device, accept_noncommercial=accepted) for n in names}
    total = len(names) * sum(len(chosen[case.data]) for case in cases)
    rows: list[SuiteRow] = []
    for case in cases:
        per_image: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for image, given, base in inputs(opened[case.data], chosen[case.data], case, options):
            for name, network in networks.items():
                ours = answer(network, given, case, options)
                figures = image_figures(case, given, ours, base)
                per_image[name].append({"image": image, **figures})
                if progress is not None:
                    progress(f"{name}, {case.name}", total)
        rows += [
            SuiteRow(name, case.name, case.data, case.ratio, len(each), means(each), each)
            for name, each in per_image.items()
        ]
    if folder is not None:
        write_json(folder / "results.json", report(suite, rows, networks))
    return rows


def inputs(
    pairs: Dataset, chosen: Sequence[int], case: SuiteCase, options: Options
) -> Iterator[tuple[str, SuiteInput, Result[Any]]]:
    """For each chosen pair its name, the input and what bicubic makes of it."""
    bicubic = load("bicubic")
    for index in chosen:
        pair = pairs[index]
        given = suite_input(pair, case)
        yield pair.name, given, answer(bicubic, given, case, options)


def answer(network: nn.Module, given: SuiteInput, case: SuiteCase, options: Options) -> Result[Any]:
    """What a user would get who says what the case says."""
    takes = as_model(network).takes_prior
    return super_resolve(
        given.rgb,
        given.low,
        options,
        model=network,
        unit="m",
        mask=given.low_valid,
        prior=given.prior if takes else None,
        sensor=case.sensor,
        mode=case.mode,
        any_aspect=True,
        shift="off",
    )


def opened_data(data: str | Dataset | None, captures: str | Path | None) -> dict[str, Dataset]:
    """Kind of data -> its pairs, of what was given."""
    opened: dict[str, Dataset] = {}
    if data is not None:
        is_folder = isinstance(data, str) and Path(data).is_dir()
        spec = f"synth:{data}" if is_folder else data
        opened["rendered"] = open_dataset(spec) if isinstance(spec, str) else spec
    if captures is not None:
        opened["captures"] = open_dataset(f"captures:{captures}")
    if not opened:
        raise InputError("a suite needs data: a rendered set (--data) or captures (--captures)")
    for pairs in opened.values():
        if pairs.unit != "m" or not len(pairs):
            raise InputError(f"{pairs.name} has no pairs in metres; a suite needs some")
    return opened


def spread(count: int, images: int) -> list[int]:
    """Indices of so many of `count` pairs, evenly over the set; 0 means all."""
    wanted = min(images, count) if images else count
    return [int(index) for index in np.linspace(0, count - 1, wanted)]


# ------------------------------------------------------------------------------- averages


def means(images: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Over images: geometric of ratios, the number of harmed ones, arithmetic of the rest."""
    figures = {}
    for name in (name for name in images[0] if name != "image"):
        values = [float(image[name]) for image in images]
        if name == "harmed":
            figures[name] = sum(values)
        else:
            figures[name] = geometric(values) if name in RATIOS else mean(values)
    return figures


def geometric(values: Sequence[float]) -> float:
    """Geometric mean of positive numbers; NaN of none."""
    return math.exp(mean([math.log(max(value, 1e-9)) for value in values]))


def mean(values: Sequence[float]) -> float:
    """Mean of what is known; NaN if nothing is."""
    told = [value for value in values if not math.isnan(value)]
    return sum(told) / len(told) if told else math.nan


def named_figures(rows: Sequence[SuiteRow]) -> dict[str, float]:
    """Named figures of one model: what formulas of a recipe may use.

    CASE (and CASE_near): ratio of each case. rendered_rmse, captures_rmse, captures_near:
    geometric means, of captures over ratios above 1. rendered_harmed, harmed: how many images
    with more than bicubic's error, of captures at ratios above 1; harmed_x1: captures with more
    pixels between surfaces at ratio 1; moved_x1: share of their pixels that moved. flying: percent
    of the rendered edge pixels; sigma_1, sigma_2: share of errors within one and two sigma.
    """
    figures: dict[str, float] = {}
    for row in rows:
        for name in RATIOS:
            if name in row.figures:
                figures[row.case if name == "rmse" else f"{row.case}_{name}"] = row.figures[name]
    rendered = [row for row in rows if row.data == "rendered"]
    larger = [row for row in rows if row.data == "captures" and row.ratio > 1]
    whole = [row for row in rows if row.data == "captures" and row.ratio == 1]

    def over(group: Sequence[SuiteRow], name: str) -> list[float]:
        return [row.figures[name] for row in group]

    if rendered:
        figures["rendered_rmse"] = geometric(over(rendered, "rmse"))
        figures["rendered_harmed"] = sum(over(rendered, "harmed"))
        figures["flying"] = mean(over(rendered, "flying"))
        figures |= {f"sigma_{k}": mean(over(rendered, f"within_{k}")) for k in (1, 2)}
    if larger:
        figures |= {f"captures_{name}": geometric(over(larger, name)) for name in RATIOS}
        figures["harmed"] = sum(over(larger, "harmed"))
    if whole:
        figures["harmed_x1"] = sum(over(whole, "harmed"))
        figures["moved_x1"] = mean(over(whole, "moved"))
    return figures


def figures_by_model(rows: Sequence[SuiteRow]) -> dict[str, dict[str, float]]:
    """Model -> its named figures."""
    names = dict.fromkeys(row.model for row in rows)
    return {name: named_figures([row for row in rows if row.model == name]) for name in names}


def report(
    suite: Suite, rows: Sequence[SuiteRow], networks: dict[str, nn.Module]
) -> dict[str, Any]:
    """Everything, for results.json."""
    return {
        **versions(),
        "suite": asdict(suite),
        "models": {name: describe(network) for name, network in networks.items()},
        "figures": {name: known(each) for name, each in figures_by_model(rows).items()},
        "rows": [
            {**row.as_dict(), "per_image": [known(image) for image in row.per_image]}
            for row in rows
        ],
    }


def suite_table(rows: Sequence[SuiteRow]) -> Any:
    """The rows as a rich table; ratios to bicubic, shares in percent."""
    from rich.table import Table

    result = Table(box=None, pad_edge=False)
    result.add_column("model", overflow="fold")
    result.add_column("case", no_wrap=True)
    for title in ("n", "RMSE", "near", "flying %", "within σ / 2σ %", "between %", "harmed"):
        result.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        result.add_row(row.model, row.case, str(row.images), *_cells(row.figures))
    return result


def _cells(figures: dict[str, float]) -> list[str]:
    """Figures of a row in words; what a case does not measure stays empty."""
    values = {name: figures.get(name, math.nan) for name in (*RATIOS, "flying", "flying_base")}
    cells = ["" if math.isnan(values[name]) else f"{values[name]:.3f}" for name in RATIOS]
    flies = not math.isnan(values["flying"])
    cells.append(f"{values['flying_base']:.1f} → {values['flying']:.1f}" if flies else "")
    sigma = figures.get("within_1", math.nan)
    covered = f"{100 * sigma:.0f} / {100 * figures.get('within_2', math.nan):.0f}"
    cells.append("" if math.isnan(sigma) else covered)
    before, after = (100 * figures.get(n, math.nan) for n in ("between_input", "between"))
    cells.append("" if math.isnan(after) else f"{before:.1f} → {after:.1f}")
    return [*cells, f"{figures['harmed']:.0f}"]
