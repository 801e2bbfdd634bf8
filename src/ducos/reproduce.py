"""The tables and figures of the DuCos paper as commands: `ducos reproduce NAME`.

A recipe names the datasets, protocols and scales of one table. What is here is measured, what is
missing is skipped by name with how to get it, and the published figures stand beside. Released
weights enter as converted files; methods without weights keep their published figures, marked so.
"""

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ducos import published
from ducos.cases import scale_name
from ducos.catalogue import gmac, parameter_count
from ducos.checkpoint import load_model
from ducos.data import Dataset, Subset, open_dataset
from ducos.errors import InputError
from ducos.evaluate import evaluate
from ducos.infer import default_model, load
from ducos.models import MODELS, Prediction, create
from ducos.prompts import create_prompt
from ducos.protocols import UNITS, Protocol, find
from ducos.reproduce_output import METRICS, Block, Line, Plain, Report, as_text, flat, write_report

CONSTANT = 0.36  # of the ground truth's range; reproduces the published compressed rows on NYU v2


@dataclass(frozen=True)
class Part:
    """One dataset of a table. scales: () where the sensor decides. tables: published figures."""

    dataset: str
    protocol: str
    scales: tuple[float, ...] = ()
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """One table or figure of the paper.

    variants: networks to train for an ablation, name -> settings of `ducos train` that differ;
        `training` holds those they share. Their weights come back as NAME=FILE.
    pictures: error-map sheets per dataset and scale. with_constant: also score a constant.
    """

    title: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    variants: Mapping[str, tuple[str, ...]] | None = None
    training: tuple[str, ...] = ()
    pictures: int = 0
    curves: bool = False
    with_constant: bool = False


SYNTHETIC = (2.0, 4.0, 8.0, 16.0)
ARBITRARY = (1.5, 2.7, 3.4, 5.3, 11.6)
FIVE = ("middlebury", "lu", "nyu", "rgbdd", "tofdsr")
TABLE_1 = ("synthetic", "synthetic_wave", "synthetic_nyu_trained")

FIXED, NONE = "dual.preset=fixed", "dual.constraints=[]"
ADD, EDGE = "model.kwargs.fusion=add", 'dual.constraints=["edge"]'
COMPONENTS = {
    "naive": ("model.prompt=none", ADD, FIXED, NONE),
    "prompt": (ADD, FIXED, NONE),
    "cf-without-alignment": (FIXED, NONE),
    "cf": (FIXED, 'dual.constraints=["alignment"]'),
    "gr-without-normalisation": (ADD, FIXED, EDGE, "dual.edge_normalise=false"),
    "gr": (ADD, FIXED, EDGE),
    "cf-gr": (FIXED,),
    "cf-gr-ld": (),
}
FUSION: dict[str, tuple[str, ...]] = {
    **{f"iterations-{n}": (f"model.kwargs.iterations={n}",) for n in (1, 2, 3, 4, 5, 6)},
    "fusion-add": (ADD,),
    "fusion-concat": ("model.kwargs.fusion=concat",),
}
ON_RGBDD = (  # as near to the real-world table as training from ground truth comes
    "data.train=rgbdd:DIR,split=train",
    "data.crop=288",
    "data.scales=[2.67, 2.67]",
    "train.validation_scales=[2.67]",
)
AT_16 = ("data.train=hypersim:DIR", "data.scales=[16, 16]", "train.validation_scales=[16.0]")
PROMPTS = tuple(row["prompt"] for row in published.raw("prompt_cost"))
ABLATION_NOTE = (
    "the paper's ablation was apparently trained on the real sensor maps of RGB-D-D; `ducos train`"
    " makes its low-resolution maps from the ground truth (data.degradations), so only the order of"
    " the variants can be compared, not the absolute figures"
)

RECIPES: dict[str, Recipe] = {
    "synthetic": Recipe(
        "Table 1: synthetic depth super-resolution",
        tuple(Part(dataset, "synthetic", SYNTHETIC, TABLE_1) for dataset in FIVE),
        (
            "released weights were trained on NYU v2: compare them with the NYU-trained column;"
            " the Hypersim-trained one is the paper's, where all methods were trained anew",
            "published NYU v2 rows tell the network the ground truth's range"
            " (--protocol synthetic-gt-range); the default here does not",
        ),
    ),
    "arbitrary": Recipe(
        "Figure: arbitrary scales",
        tuple(Part(dataset, "arbitrary", ARBITRARY) for dataset in FIVE),
        (
            "the paper prints this figure without numbers; its text gives mean gains of DuCos over"
            " all methods: RMSE 20.6 %, MAE 22.3 %, δ 0.47 points",
        ),
        curves=True,
    ),
    "real": Recipe(
        "Table 2, left: real-world depth super-resolution",
        tuple(Part(name, "real", (), ("real",)) for name in ("rgbdd-real", "tofdsr-real")),
    ),
    "noisy": Recipe(
        "Table 2, right: real-world depth super-resolution with noise",
        (
            Part("rgbdd-real", "noisy", (4.0,), ("noisy",)),
            Part("tofdsr-real", "noisy-tofdsr", (4.0,), ("noisy",)),
        ),
        ("DORNet's noisy weights belong to another protocol: --protocol noisy-dornet",),
    ),
    "compressed": Recipe(
        "Table 3: compressed depth super-resolution, sound and as released",
        (
            Part("nyu", "compressed", (8.0,)),
            Part("nyu", "compressed-as-released-nyu", (8.0,), ("compressed",)),
            Part("rgbdd", "compressed", (8.0,)),
            Part("rgbdd", "compressed-as-released", (8.0,), ("compressed",)),
            Part("tofdsr", "compressed", (8.0,)),
            Part("tofdsr", "compressed-as-released", (8.0,), ("compressed",)),
        ),
        (
            "as released, the depth input is destroyed before the network sees it; the line"
            f" `constant` predicts {CONSTANT} of the ground truth's range for every pixel of every"
            " image and knows nothing else",
            "GDNet: " + published.methods()["gdnet"].missing,
        ),
        with_constant=True,
    ),
    "components": Recipe(
        "Figure: components of DuCos on real-world RGB-D-D",
        (Part("rgbdd-real", "real"),),
        (ABLATION_NOTE,),
        variants=COMPONENTS,
        training=ON_RGBDD,
    ),
    "fusion": Recipe(
        "Figure: iterations and fusion on real-world RGB-D-D",
        (Part("rgbdd-real", "real"),),
        (
            ABLATION_NOTE,
            "the paper gives differences, not figures, for addition and concatenation, and no"
            " figure for the single iteration counts",
        ),
        variants=FUSION,
        training=ON_RGBDD,
    ),
    "prompts": Recipe(
        "Table 4: foundation models as prompts",
        tuple(
            Part(dataset, "synthetic", (16.0,), ("prompts",)) for dataset in ("nyu", "middlebury")
        ),
        (
            "parameters are those of the released network with each prompt; with Depth Anything"
            " v2-S they equal the paper's exactly, so its figures come from that network",
            "the paper's two UniDepth v2 rows are the first release, now called v2old: the present"
            " v2-S and v2-L would give 43.78 and 363.59 M",
            "DepthFormer is Swin-L (Swin-T has 47.6 M); 0.34 M less than network and fusion"
            " together, without any adapter, so something of it was cut, and the paper does not"
            " say what",
            "time in the paper: one RTX 4090, image size not stated; "
            + published.sources()["prompt_cost"]["remarks"],
        ),
        variants={name: (f"model.prompt={name}",) for name in PROMPTS},
        training=AT_16,
    ),
    "errors": Recipe(
        "Figures: error maps",
        (
            Part("nyu", "synthetic", (4.0,), TABLE_1),
            Part("middlebury", "synthetic", (4.0,), TABLE_1),
            Part("lu", "synthetic", (4.0,), TABLE_1),
            Part("rgbdd-real", "real", (), ("real",)),
        ),
        ("the paper shows NYU v2 ×4 and real-world RGB-D-D; Middlebury and Lu are added",),
        pictures=2,
    ),
}


@dataclass(frozen=True)
class Contestant:
    """Something to measure. source: model name or weight file; scale: None for every scale."""

    method: str
    source: str
    scale: float | None = None


def reproduce(
    name: str,
    *,
    datasets: Sequence[str] = (),
    data: Path | None = None,
    places: Sequence[str] = (),
    models: Sequence[str] = (),
    weights: Sequence[str] = (),
    scales: Sequence[float] = (),
    protocol: str | None = None,
    out: Path | None = None,
    pictures: int | None = None,
    images: int = 0,
    timed: bool = False,
    progress: bool = True,
) -> Report:
    """Measure one table or figure of the paper as far as data and weights are here.

    Args:
        name: one of `RECIPES`.
        datasets: which of the recipe's datasets; all if empty.
        data: folder that holds datasets, in any of the layouts of published/datasets.toml.
        places: DATASET=SPEC, such as middlebury=bench:DIR; stronger than `data`.
        models: names or weight files to measure at every scale; by default bicubic and the
            embedded model.
        weights: METHOD=FILE, or METHOD=FILE@SCALE for weights of one scale.
        scales: instead of the recipe's. protocol: instead of the recipe's.
        out: folder for the report, results of each run and pictures.
        pictures: error-map sheets per dataset and scale, instead of the recipe's number.
        images: measure only so many images of each dataset, evenly spread; 0 for all.
        timed: for `prompts`, also measure seconds of each prompt on one image.
    """
    if name not in RECIPES:
        raise InputError(f"nothing to reproduce as {name!r}; choose one of: {', '.join(RECIPES)}")
    recipe = RECIPES[name]
    if protocol is not None:
        find(protocol)
    parts = _chosen_parts(recipe, datasets)
    contestants = _contestants(recipe, models, weights)
    specs = locate({part.dataset for part in parts}, data, places)
    sheets = recipe.pictures if pictures is None else pictures
    if sheets and out is None:
        raise InputError("error maps need a folder to go to; pass out (-o DIR)")

    for contestant in contestants:  # a wrong file is to fail now, not after an hour
        _network(recipe, contestant)

    report = Report(name, f"{recipe.title} ({name})", notes=list(recipe.notes))
    report.curves = recipe.curves
    unused = set(contestants)
    absent: list[Block] = []
    for part in parts:
        chosen = find(protocol or part.protocol)
        present = part.dataset in specs
        dataset = _limited(open_dataset(specs[part.dataset]), images) if present else None
        for scale in _scales(part, chosen, scales):
            lines: list[Line] = []
            if dataset is not None:
                entered = [c for c in contestants if c.scale is None or c.scale == scale]
                unused -= set(entered)
                folder = None if out is None else out / "runs" / part.dataset / chosen.name
                lines = _measure(
                    recipe, part.dataset, dataset, chosen, scale, entered, folder, sheets, progress
                )
            block = _block(recipe, part, scale, dataset, chosen.label, lines)
            (report.blocks if present else absent).append(block)
    # Tables of datasets that are not here still show what is published.
    report.blocks += [block for block in absent if block.lines]
    _describe(report, recipe, name, parts, specs, images, unused)
    if name == "prompts":
        report.tables.insert(0, prompt_table(timed))
    if out is not None:
        report.pictures = sorted((out / "runs").rglob("pictures/**/*.png"))
        write_report(report, out)
    return report


def run_reproduction(
    name: str,
    *,
    datasets: str,
    data: Path | None,
    places: Sequence[str],
    models: Sequence[str],
    weights: Sequence[str],
    scales: Sequence[float],
    protocol: str | None,
    out: Path | None,
    pictures: int | None,
    images: int,
    timed: bool,
    as_json: bool,
) -> None:
    """`ducos reproduce`: measure, write the files, print the table, or one JSON object."""
    folder = out or Path("reproduce") / name
    report = reproduce(
        name,
        datasets=[each.strip() for each in datasets.split(",") if each.strip()],
        data=data,
        places=places,
        models=models,
        weights=weights,
        scales=scales,
        protocol=protocol,
        out=folder,
        pictures=pictures,
        images=images,
        timed=timed,
        progress=not as_json,
    )
    if as_json:
        lines = [flat(line, report.columns) for block in report.blocks for line in block.lines]
        tables = {table.title: [table.header, *table.rows] for table in report.tables}
        print(
            json.dumps(
                {
                    "name": name,
                    "lines": lines,
                    "tables": tables,
                    "skipped": report.skipped,
                    "notes": report.notes,
                }
            )
        )
        return
    print(as_text(report))
    plot = " and plot.png" if (folder / "plot.png").is_file() else ""
    print(f"wrote table.txt, table.csv, table.tex{plot} into {folder}")
    if report.pictures:
        print(f"{len(report.pictures)} error-map sheets, first {report.pictures[0]}")


# ------------------------------------------------------------------------------------ datasets


def locate(
    wanted: set[str], data: Path | None, places: Sequence[str]
) -> dict[str, str]:  # dataset -> specification for open_dataset
    """Where each dataset lies; those that are nowhere are left out."""
    known = published.benchmarks()
    found: dict[str, str] = {}
    if data is not None:
        if not data.is_dir():
            raise InputError(f"{data} is not a folder; --data takes the one that holds datasets")
        for name in known:
            for place in known[name].places:
                loader, _, below = place.partition(":")
                if (data / below).exists():
                    found.setdefault(name, f"{loader}:{data / below}")
    for place in places:
        name, equals, spec = place.partition("=")
        if not equals or not spec or name not in known:
            raise InputError(
                f"--dataset takes NAME=SPEC, such as middlebury=bench:DIR; got {place!r};"
                f" names: {', '.join(known)}"
            )
        found[name] = spec
    return {name: spec for name, spec in found.items() if name in wanted}


def _chosen_parts(recipe: Recipe, datasets: Sequence[str]) -> list[Part]:
    names = list(dict.fromkeys(part.dataset for part in recipe.parts))
    for name in datasets:
        if name not in names:
            raise InputError(f"{recipe.title} has no dataset {name!r}; it has: {', '.join(names)}")
    return [part for part in recipe.parts if not datasets or part.dataset in datasets]


def _limited(dataset: Dataset, images: int) -> Dataset:
    if not 0 < images < len(dataset):
        return dataset
    spread = np.linspace(0, len(dataset) - 1, images).round().astype(int).tolist()
    return Subset(dataset, spread, dataset.name)


def _scales(part: Part, protocol: Protocol, asked: Sequence[float]) -> tuple[float | None, ...]:
    """What was asked for, else the recipe's; None where the protocol leaves it to the data."""
    return protocol.checked_scales(tuple(asked or part.scales))


# --------------------------------------------------------------------------------- contestants


class Constant(nn.Module):
    """The same value everywhere, whatever the input: what a method must beat to have seen depth."""

    def __init__(self, value: float):
        super().__init__()
        self.value = value

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        return Prediction(torch.full_like(rgb[:, :1], self.value))


def _contestants(recipe: Recipe, models: Sequence[str], weights: Sequence[str]) -> list[Contestant]:
    entered = [
        Contestant(published.method_of(Path(model).stem), model)
        for model in models or dict.fromkeys(("bicubic", default_model()))
    ]
    names = [*MODELS] if recipe.variants is None else [*recipe.variants]
    for text in weights:
        method, equals, rest = text.partition("=")
        if not equals or not rest or method not in names:
            raise InputError(
                f"--weights takes METHOD=FILE or METHOD=FILE@SCALE, got {text!r};"
                f" methods: {', '.join(names)}"
            )
        method = published.method_of(method)
        file, at, scale = rest.rpartition("@")
        try:
            entered.append(
                Contestant(method, file, float(scale)) if at else Contestant(method, rest)
            )
        except ValueError:
            raise InputError(f"the scale after @ is a number such as 8, got {text!r}") from None
    seen: set[tuple[str, float | None]] = set()
    for each in entered:
        if (each.method, each.scale) in seen or (each.scale and (each.method, None) in seen):
            raise InputError(f"{each.method} has two weight files for one scale; give one")
        seen.add((each.method, each.scale))
    return entered


def _network(recipe: Recipe, contestant: Contestant) -> nn.Module:
    source = Path(contestant.source)
    if source.suffix != ".safetensors":
        return load(contestant.source)
    model, spec, _ = load_model(source)
    is_variant = recipe.variants is not None and contestant.method in recipe.variants
    known = contestant.method in MODELS or contestant.method in published.methods()
    if known and not is_variant and published.method_of(spec.name) != contestant.method:
        raise InputError(
            f"{source} holds weights of {spec.name}, not of {contestant.method}; name it so"
        )
    return model


# --------------------------------------------------------------------------------------- lines


def _measure(
    recipe: Recipe,
    name: str,
    dataset: Dataset,
    protocol: Protocol,
    scale: float | None,
    contestants: Sequence[Contestant],
    out: Path | None,
    pictures: int,
    progress: bool,
) -> list[Line]:
    """Run the contestants on one dataset at one scale."""
    networks = {c.method: _network(recipe, c) for c in contestants}
    files = {c.method: Path(c.source) for c in contestants}
    if recipe.with_constant and protocol.normalisation == "target":
        networks["constant"] = Constant(CONSTANT)
    rows = evaluate(
        networks,
        [dataset],
        protocol,
        () if scale is None else (scale,),
        out=None if out is None else out / scale_name(scale),
        pictures=pictures,
        progress=progress,
    )
    lines = []
    for row in rows:
        file = files.get(row.model, Path())
        lines.append(
            Line(
                name,
                protocol.label,
                scale,
                row.unit,
                row.model,
                _display(row.model),
                "measured",
                row.images,
                file.name if file.suffix == ".safetensors" else "",
                {metric: row.figures[metric] for metric in METRICS},
            )
        )
    return lines


def _block(
    recipe: Recipe,
    part: Part,
    scale: float | None,
    dataset: Dataset | None,
    label: str,
    lines: list[Line],
) -> Block:
    """Measured lines with their published figures, then methods that are only published."""
    known = published.benchmarks()[part.dataset]
    by_method = {line.method: line for line in lines}
    level = part.dataset in ("middlebury", "lu")
    unit = UNITS[dataset.unit][0] if dataset is not None else ("level" if level else "cm")
    for column, figures in _published(recipe, part, scale):
        line = by_method.get(figures.method)
        if line is None:
            method = published.methods().get(figures.method)
            status = "reported" if method is None else method.status
            line = Line(
                part.dataset, label, scale, unit, figures.method, _display(figures.method), status
            )
            by_method[figures.method] = line
        line.reported[column] = figures
    x = "" if scale is None else f" ×{scale:g}"
    counted = f"{len(dataset)} of {known.images} images" if dataset is not None else "not here"
    title = f"{known.name}{x}, {unit}, {label}, {counted}"
    return Block(title, list(by_method.values()))


def _published(
    recipe: Recipe, part: Part, scale: float | None
) -> list[tuple[str, published.Figures]]:
    """(column, figures) of this dataset and scale, from all tables of the part."""
    found = []
    for name in part.tables:
        table = published.table(name)
        for figures in table.rows:
            at_scale = figures.scale is None or figures.scale == scale
            if figures.dataset == part.dataset and at_scale:
                found.append((table.column, figures))
    if recipe.variants is not None and not part.tables:
        column = published.sources()["ablations"]["column"]
        for row in published.raw("ablations"):
            if row["variant"] in recipe.variants:
                figures = published.Figures(row["variant"], part.dataset, None, float(row["rmse"]))
                found.append((column, figures))
    return found


def _display(method: str) -> str:
    known = published.methods().get(method)
    return known.name if known else method


# --------------------------------------------------------------------------------------- notes


def _describe(
    report: Report,
    recipe: Recipe,
    name: str,
    parts: Sequence[Part],
    specs: Mapping[str, str],
    images: int,
    unused: set[Contestant],
) -> None:
    """Everything a reader must know besides the figures."""
    known = published.benchmarks()
    for dataset in dict.fromkeys(part.dataset for part in parts):
        if dataset not in specs:
            report.skipped.append(
                f"{known[dataset].name} ({dataset}): not found; pass --data ROOT or"
                f" --dataset {dataset}=SPEC. To get it: {known[dataset].get}"
            )
    if images:
        report.notes.append(f"--images {images}: a part of each dataset, not the published figure")
    for table in dict.fromkeys(each for part in parts for each in part.tables):
        about = published.sources()[table]
        report.notes.append(f"{about['column']}: {about['source']}. {about['remarks']}")
    if recipe.variants is not None:
        report.tables.append(training_commands(name))
    rows = [row for row in published.raw("ablations") if row["study"] == name]
    if rows:
        about = published.sources()["ablations"]
        told = "; ".join(f"{row['variant']} {row['rmse']} {row['how']}" for row in rows)
        report.notes.append(f"{about['column']}: {about['source']}. {told}")
    shown = {line.method for block in report.blocks for line in block.lines}
    for method, facts in published.methods().items():
        if method in shown and facts.missing:
            report.notes.append(f"{facts.name}: {facts.missing}")
    given = [each for each in unused if each.source.endswith(".safetensors")]
    for each in sorted(given, key=lambda c: (c.method, c.scale or 0)):
        at = "" if each.scale is None else f" at ×{each.scale:g}"
        report.notes.append(f"{each.method} ({each.source}) was not used: nothing here{at}")


def training_commands(name: str) -> Plain:
    """How each network of an ablation is trained; its weights then come back with --weights."""
    recipe = RECIPES[name]
    rows = []
    for variant, settings in (recipe.variants or {}).items():
        command = ["ducos", "train", "configs/paper.toml", "-o", f"runs/{name}/{variant}"]
        prompt = () if "model.prompt=none" in settings else ("model.prompt_options.weights=FILE",)
        for setting in (*recipe.training, *settings, *prompt):
            command += ["--set", setting]
        rows.append([variant, shlex.join(command)])
    weights = f"--weights NAME=runs/{name}/NAME/best.safetensors"
    title = f"To train, and then to score with `ducos reproduce {name} {weights}`"
    return Plain(title, ["variant", "command"], rows)


def prompt_table(timed: bool) -> Plain:
    """Parameters and MACs of the released network with each prompt, beside the paper's."""
    header = ["prompt", "printed as", "parameters M", "paper M", "difference M", "GMAC 640×480"]
    header += ["paper ms"] + (["prompt CPU s"] if timed else [])
    rows = []
    for row in published.raw("prompt_cost"):
        network = released_network(row["prompt"])
        millions = parameter_count(network) / 1e6
        try:
            macs = f"{gmac(network):.1f}"
        except RuntimeError:  # the released adapter joins maps of one size; DepthFormer's differ
            macs = "–"
        printed = float(row["parameters_m"])
        cells = [row["prompt"], row["printed_as"], f"{millions:.2f}", f"{printed:.2f}"]
        cells += [f"{millions - printed:+.2f}", macs, row["milliseconds"]]
        rows.append(cells + ([f"{prompt_seconds(row['prompt']):.2f}"] if timed else []))
    return Plain("Size and cost with each prompt (random weights)", header, rows)


def released_network(prompt: str) -> nn.Module:
    """The authors' network with this prompt, as shapes only: enough to count."""
    with torch.device("meta"):
        return create("ducos-released", prompt=prompt).eval()


def prompt_seconds(name: str) -> float:
    """CPU seconds of one prompt alone on one 640×480 image; random weights cost the same."""
    prompt = create_prompt(name).eval()
    rgb = torch.rand(1, 3, 480, 640)
    with torch.inference_mode():
        started = time.process_time()
        prompt(rgb)
        return time.process_time() - started
