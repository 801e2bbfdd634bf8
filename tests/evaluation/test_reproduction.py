"""`ducos reproduce` measures what is here, quotes what is not, and never mixes the two."""

import csv
import io
import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ducos.errors import InputError
from ducos.evaluation import published
from ducos.evaluation.reproduction import RECIPES, Report, reproduce
from ducos.evaluation.reproduction.ablations import released_network, training_commands
from ducos.evaluation.reproduction.inputs import locate
from ducos.evaluation.reproduction.recipes import CONSTANT, PROMPTS
from ducos.evaluation.reproduction.report import Line
from ducos.evaluation.scoring import evaluate
from ducos.models import create
from ducos.models.checkpoint import ModelSpec, save_model
from ducos.pictures.charts import (
    PALETTE,
    Bar,
    Curve,
    Panel,
    Point,
    bar_panels,
    curve_panels,
    scatter,
)
from ducos.prompts.depth_anything_v2 import DepthAnythingV2
from ducos.training.config import load_config
from ducos.training.loop import train
from ducos.upscaling import parameter_count
from tests.commands import ducos_here
from tests.places import CONFIGS

BASELINES = [
    *("djf", "djfr", "cunet", "fdkn", "dkn", "fdsr", "dctnet", "dada", "sgnet-x8"),
    *("dornet", "dornet-t"),
]
MakeDataset = Callable[..., Path]


@pytest.fixture
def make_dataset(tmp_path: Path) -> MakeDataset:
    """A folder of scenes below tmp_path/data: a step in depth where the colour has one too."""

    def make(name: str, *, unit: str = "0..255 code", scale: float = 1.0, count: int = 2) -> Path:
        for number in range(count):
            scene = tmp_path / "data" / name / f"{number:02}"
            scene.mkdir(parents=True)
            codes = np.full((48, 64), 50, np.uint16)
            codes[:, 20 + 5 * number :] = 170
            codes[10:30, 40:60] += 20
            colour = np.stack([codes.astype(np.uint8)] * 3, axis=-1)
            Image.fromarray(codes).save(scene / "depth.png")
            Image.fromarray(colour).save(scene / "rgb.png")
            about = {"unit": unit, "scale_to_unit": scale, "invalid_value": None}
            (scene / "meta.json").write_text(json.dumps(about))
        return tmp_path / "data"

    return make


def weight_file(path: Path, method: str) -> Path:
    model = create(method)
    save_model(path, ModelSpec(method), dict(model.state_dict()), {})
    return path


def lines(report: Report) -> dict[tuple[str, float | None, str], Line]:
    return {(x.dataset, x.scale, x.method): x for b in report.blocks for x in b.lines}


# ------------------------------------------------------------------------ measured and published


def test_measured_figures_are_those_of_evaluate(make_dataset: MakeDataset) -> None:
    data = make_dataset("middlebury30")
    report = reproduce(
        "synthetic", datasets=["middlebury"], data=data, models=["bicubic"], scales=[4, 8]
    )
    rows = evaluate("bicubic", f"bench:{data / 'middlebury30'}", "synthetic", [4, 8])
    for row in rows:
        line = lines(report)["middlebury", row.scale, "bicubic"]
        assert line.measured["rmse"] == row.figures["rmse"] > 0
        assert line.measured["delta105"] == row.figures["delta105"]
        assert line.status == "measured"
        assert line.protocol == f"synthetic@{row.protocol_id}"


def test_published_rows_stand_beside_with_their_status(make_dataset: MakeDataset) -> None:
    data = make_dataset("middlebury30")
    report = reproduce(
        "synthetic", datasets=["middlebury"], data=data, models=["bicubic"], scales=[8]
    )
    found = lines(report)
    ducos = found["middlebury", 8, "ducos"]
    assert ducos.measured == {}
    assert ducos.status == "reported"
    assert ducos.reported["Hypersim-trained"].rmse == 2.23
    assert found["middlebury", 8, "dctnet"].reported["NYU-trained"].rmse == 2.05
    assert found["middlebury", 8, "ssdnet"].status == "reported, not reproduced"
    assert any(note.startswith("SSDNet: no code") for note in report.notes)
    assert "2 of 30 images" in report.blocks[0].title


def test_absent_datasets_are_skipped_by_name_and_still_quoted(make_dataset: MakeDataset) -> None:
    data = make_dataset("middlebury30")
    report = reproduce("synthetic", data=data, models=["bicubic"], scales=[4])
    assert [text.split(" (")[0] for text in report.skipped] == ["Lu", "NYU v2", "RGB-D-D", "TOFDSR"]
    assert "signed agreement" in report.skipped[2]
    assert lines(report)["tofdsr", 4, "ducos"].reported["Hypersim-trained"].rmse == 2.09
    assert ("tofdsr", 4, "bicubic") not in lines(report)


def test_weights_of_one_scale_are_used_at_that_scale_only(
    make_dataset: MakeDataset, tmp_path: Path
) -> None:
    data = make_dataset("lu6")
    file = weight_file(tmp_path / "own.safetensors", "fdsr")
    report = reproduce(
        "synthetic",
        datasets=["lu"],
        data=data,
        models=["bicubic"],
        weights=[f"fdsr={file}@4", f"fdsr={file}@16"],
        scales=[4, 8],
    )
    at_4, at_8 = (lines(report)["lu", scale, "fdsr"] for scale in (4, 8))
    assert at_4.measured["rmse"] > 0
    assert at_4.weights == "own.safetensors"
    assert at_4.reported["Hypersim-trained"].rmse == 1.95
    assert (at_4.status, at_8.status) == ("measured", "reported")
    assert at_8.measured == {}
    assert any("fdsr" in note and "×16" in note for note in report.notes)


def test_a_constant_scores_what_it_must(make_dataset: MakeDataset) -> None:
    data = make_dataset("nyu57", unit="metre", scale=0.02, count=1)
    report = reproduce("compressed", datasets=["nyu"], data=data, models=["bicubic"])
    sound, as_released = report.blocks
    assert "constant" not in {line.method for line in sound.lines}
    codes = np.asarray(Image.open(data / "nyu57" / "00" / "depth.png"))[6:-6, 6:-6]
    metres = codes.astype(float) * 0.02
    guess = 1.0 + CONSTANT * (190 * 0.02 - 1.0)
    expected = 100 * float(np.sqrt(np.mean((metres - guess) ** 2)))
    found = {line.method: line for line in as_released.lines}
    assert found["constant"].measured["rmse"] == pytest.approx(expected, rel=1e-5)
    assert found["dctnet"].reported["published"].rmse == 118.45


def test_only_some_images(make_dataset: MakeDataset) -> None:
    data = make_dataset("lu6", count=3)
    report = reproduce(
        "synthetic", datasets=["lu"], data=data, models=["bicubic"], scales=[2], images=2
    )
    assert lines(report)["lu", 2, "bicubic"].images == 2
    assert any("--images 2" in note for note in report.notes)


def test_bicubic_on_the_benchmark(shared: Path) -> None:
    report = reproduce(
        "synthetic", datasets=["lu"], data=shared / "bench", models=["bicubic"], scales=[8]
    )
    assert lines(report)["lu", 8, "bicubic"].measured["rmse"] == pytest.approx(4.64, abs=0.01)


# ----------------------------------------------------------------------------------------- files


def test_all_four_forms_agree(make_dataset: MakeDataset, tmp_path: Path) -> None:
    data, out = make_dataset("middlebury30"), tmp_path / "out"
    report = reproduce(
        "synthetic", datasets=["middlebury"], data=data, models=["bicubic"], scales=[4], out=out
    )
    rmse = lines(report)["middlebury", 4, "bicubic"].measured["rmse"]

    text = (out / "table.txt").read_text()
    assert next(x for x in text.splitlines() if x.startswith("bicubic")).split()[1] == f"{rmse:.2f}"

    with (out / "table.csv").open(newline="") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert float(rows["bicubic"]["rmse"]) == pytest.approx(rmse, abs=1e-4)
    assert rows["bicubic"]["hypersim_trained_rmse"] == ""
    assert rows["ducos"]["hypersim_trained_rmse"] == "1.45"
    assert rows["ducos"]["rmse"] == ""

    latex = (out / "table.tex").read_text()
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 1
    columns = latex.split(r"\begin{tabular}{")[1].split("}")[0]
    body = latex.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert {line.count("&") + 1 for line in body} == {len(columns)}
    assert r"\textit{1.45}" in latex

    with Image.open(out / "plot.png") as picture:
        assert picture.size[0] > 600
    assert (out / "runs/middlebury/synthetic/x4/results.json").is_file()


def test_error_maps_are_drawn(make_dataset: MakeDataset, tmp_path: Path) -> None:
    data = make_dataset("lu6", count=3)
    report = reproduce(
        "errors", datasets=["lu"], data=data, models=["bicubic"], out=tmp_path / "out"
    )
    assert len(report.pictures) == 2
    assert all(path.is_file() for path in report.pictures)


def test_arbitrary_scales_become_curves(make_dataset: MakeDataset, tmp_path: Path) -> None:
    data = make_dataset("lu6", count=1)
    report = reproduce("arbitrary", datasets=["lu"], data=data, models=["bicubic"], out=tmp_path)
    measured = [line.measured["rmse"] for block in report.blocks for line in block.lines]
    assert len(measured) == 5
    assert measured[0] < measured[-1]
    assert (tmp_path / "plot.png").is_file()


def test_the_command_prints_json_and_nothing_else(
    make_dataset: MakeDataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = make_dataset("lu6", count=1)
    code, out, _ = ducos_here(
        capsys, "reproduce", "synthetic", "--datasets", "lu, nyu", "--data", data,
        "--model", "bicubic", "--scale", 4, "-o", tmp_path / "out", "--json",
    )  # fmt: skip
    assert code == 0
    printed = json.loads(out)
    assert printed["name"] == "synthetic"
    assert {line["dataset"] for line in printed["lines"]} == {"lu", "nyu"}
    assert len(printed["skipped"]) == 1


# ------------------------------------------------------------------------------------- ablations


@pytest.mark.parametrize("name", ["components", "fusion", "prompts"])
def test_every_training_command_is_a_valid_one(name: str) -> None:
    commands = training_commands(name).rows
    assert [variant for variant, _ in commands] == list(RECIPES[name].variants or {})
    settings = set()
    for variant, command in commands:
        words = shlex.split(command)
        assert words[:3] == ["ducos", "train", "configs/paper.toml"]
        overrides = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
        config = load_config(CONFIGS / "paper.toml", overrides)
        with torch.device("meta"):
            create(config.model.name, prompt=config.model.prompt, **config.model.kwargs)
        without_file = variant in ("naive", "tiny", "none")
        assert ("weights" in config.model.prompt_options) != without_file
        settings.add(config.model_dump_json())
    # Four iterations are what the defaults are; all others must differ from one another.
    assert len(settings) == len(commands)


def test_published_ablation_figures_stand_beside_their_variants() -> None:
    found = lines(reproduce("components", models=["bicubic"]))
    assert found["rgbdd-real", None, "cf-gr-ld"].reported["published"].rmse == 3.68
    assert found["rgbdd-real", None, "naive"].reported["published"].rmse == 3.97
    assert found["rgbdd-real", None, "cf-gr-ld"].status == "reported"


def test_parameters_with_each_prompt_against_the_papers() -> None:
    printed = {row["prompt"]: float(row["parameters_m"]) for row in published.raw("prompt_cost")}
    assert set(printed) < set(PROMPTS)
    counted = {name: parameter_count(released_network(name)) for name in printed}
    assert counted["depth-anything-v2-s"] == 34_381_708
    differences = {name: counted[name] / 1e6 - printed[name] for name in printed}
    assert differences.pop("depthformer-swinl") == pytest.approx(0.66, abs=0.01)
    assert max(map(abs, differences.values())) <= 0.025


def test_table_4_shows_size_cost_and_why() -> None:
    report = reproduce("prompts", models=["bicubic"])
    rows = {row[0]: row for row in report.tables[0].rows}
    assert rows["depth-anything-v2-s"][2:5] == ["34.38", "34.38", "+0.00"]
    assert float(rows["depth-anything-v2-s"][5]) > 2800  # GMAC: nearly all of it is fusion
    assert any("v2old" in note for note in report.notes)


# ---------------------------------------------------------------------------------------- errors


def test_mistakes_are_explained(make_dataset: MakeDataset, tmp_path: Path) -> None:
    data = make_dataset("lu6", count=1)
    fdsr = weight_file(tmp_path / "fdsr.safetensors", "fdsr")
    cases = [
        ({"name": "table1"}, "choose one of: synthetic, arbitrary"),
        ({"name": "real", "datasets": ["lu"]}, "it has: rgbdd-real, tofdsr-real"),
        ({"data": tmp_path / "none"}, "is not a folder"),
        ({"places": ["lu:bench:x"]}, "NAME=SPEC"),
        ({"weights": ["fdsr"]}, "METHOD=FILE"),
        ({"weights": [f"fdsr={fdsr}@big"]}, "number such as 8"),
        ({"weights": [f"fdsr={fdsr}", f"fdsr={fdsr}@4"]}, "two weight files"),
        ({"weights": [f"fdsr={fdsr}@4", f"fdsr={fdsr}"]}, "two weight files"),
        ({"weights": [f"fdkn={fdsr}"]}, "holds weights of fdsr, not of fdkn"),
        ({"protocol": "none"}, "unknown protocol"),
        ({"pictures": 1}, "pass out"),
    ]
    for arguments, message in cases:
        given = {"name": "synthetic", "data": data, "scales": [4.0], **arguments}
        with pytest.raises(InputError, match=message):
            reproduce(**given)  # type: ignore[arg-type]


def test_named_places_are_stronger_than_the_folder(make_dataset: MakeDataset) -> None:
    data = make_dataset("lu6", count=1)
    assert locate({"lu"}, data, []) == {"lu": f"bench:{data / 'lu6'}"}
    assert locate({"lu"}, data, ["lu=lu:elsewhere"]) == {"lu": "lu:elsewhere"}
    assert locate({"nyu"}, data, []) == {}


# ---------------------------------------------------------------------------------------- charts


def test_bars_are_as_long_as_their_figures() -> None:
    panel = Panel("x", [Bar("long", filled=4.0), Bar("short", filled=1.0, outline=2.0)])
    picture = bar_panels("title", [panel], "key")
    blue = (picture == PALETTE[0]).all(-1)
    lengths = [int(row.sum()) for row in blue if row.any()]
    assert max(lengths) / min(lengths) == pytest.approx(4, rel=0.05)


def test_curves_and_points_land_in_the_frame() -> None:
    curves = [Curve("a", [(2, 1.0), (16, 8.0)]), Curve("b", [(2, 2.0), (16, 9.0)], dashed=True)]
    picture = curve_panels("title", [("panel", curves)], "scale")
    assert all((picture == colour).all(-1).sum() > 100 for colour in PALETTE[:2])
    dots = scatter("title", [Point("one", 0.5, 2.0), Point("two", 50, 1.0)], "s", "RMSE")
    rows, columns = np.nonzero((dots == PALETTE[0]).all(-1))
    other_rows, other_columns = np.nonzero((dots == PALETTE[1]).all(-1))
    assert columns.mean() < other_columns.mean()  # cheaper lies to the left
    assert rows.mean() < other_rows.mean()  # worse lies higher


# ------------------------------------------------------------------------------------- baselines


def test_the_common_config_is_plain_supervision() -> None:
    config = load_config(CONFIGS / "baseline.toml")
    assert config.dual.constraints == []
    assert config.train.objectives == {"reconstruction": 1.0}
    paper = load_config(CONFIGS / "paper.toml")
    assert paper.train.rate == 1e-5
    assert (paper.dual.preset, paper.model.prompt) == ("paper", "depth-anything-v2-s")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_trains_with_the_common_config(name: str, tmp_path: Path) -> None:
    settings = [f"model.name={name}", "data.train=shapes:4", "data.validation_share=0.25"]
    settings += ["data.crop=64", "data.validation_images=1", "train.steps=2", "train.log_every=1"]
    if name == "dada":
        settings += ["model.kwargs.free_steps=8", "model.kwargs.trained_steps=8"]
    config = load_config(CONFIGS / "baseline.toml", settings)
    final = train(config, tmp_path, quiet=True)
    text = (tmp_path / "metrics.jsonl").read_text()
    losses = [row["loss"] for row in map(json.loads, io.StringIO(text)) if "loss" in row]
    assert len(losses) == 2
    assert all(np.isfinite(losses))
    assert final.is_file()


def test_every_recipe_names_known_tables_and_datasets() -> None:
    for recipe in RECIPES.values():
        for part in recipe.parts:
            assert part.dataset in published.benchmarks()
            assert set(part.tables) <= published.sources().keys()


# ---------------------------------------------------------------------- stored foundation depths


@pytest.fixture
def stored_priors(tmp_path: Path) -> Path:
    """Two sources in the layout of stored outputs: disparity with one model, metres with another;
    each prior has exactly the edges of its reference."""
    for name, kind, model in (
        ("box_0", "disparity", "Model A, relative"),
        ("zed0_1", "depth", "B"),
    ):
        scene = tmp_path / "priors" / name
        scene.mkdir(parents=True)
        codes = np.full((96, 128), 8000, np.uint16)
        codes[24:70, 37:90] = 16000
        codes[:, 110:] += 2000
        Image.fromarray(codes).save(scene / "depth.png")
        Image.fromarray(40000 - 2 * codes).save(scene / "mono.png")
        rng = np.random.default_rng(0)
        Image.fromarray(rng.integers(0, 255, (96, 128, 3), np.uint8)).save(scene / "rgb.png")
        about = {"kind": kind, "scale_to_unit": 0.001, "mono": model}
        (scene / "meta.json").write_text(json.dumps(about))
    return tmp_path / "priors"


def test_prompts_are_measured_with_stored_outputs(
    stored_priors: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """Where the image tells nothing and the prior everything, the rows show it."""
    out = tmp_path / "out"
    code, said, trouble = ducos_here(
        capsys, "reproduce", "prompts", "--priors", stored_priors, "-o", out
    )
    assert code == 0, trouble
    assert "stored: Model A" in said
    report = json.loads((out / "table.json").read_text())
    title, (header, *rows) = next(iter(report["tables"].items()))
    assert title.startswith("RMSE relative to bicubic's")
    assert header == ["prompt", "images", "box ×8", "box ×16", "zed ×8", "zed ×16", "CPU s"]
    figures = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert list(figures) == ["ducos-tiny", "stored: B", "stored: Model A"]
    plain, ours = figures["ducos-tiny"], figures["stored: Model A"]
    assert ours["zed ×8"] == "–"
    assert float(ours["box ×8"]) < float(plain["box ×8"])
    assert float(figures["stored: B"]["zed ×16"]) < float(plain["zed ×16"])
    assert float(plain["CPU s"]) > 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("real", "--priors", "."), "belong to `reproduce prompts`"),
        (("real", "--prompt", "depth-anything-v2-s"), "belong to `reproduce prompts`"),
        (("prompts", "--priors", "."), "holds no stored outputs"),
        (("prompts", "--prompt", "depth-anything-v2-l"), "--accept-noncommercial"),
        (("prompts", "--prompt", "depth-anything-v2-s=absent.pth"), "no weights of"),
    ],
)
def test_prompts_and_priors_are_checked_before_the_work(
    arguments: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, trouble = ducos_here(capsys, "reproduce", *arguments)
    assert code == 2
    assert sentence in trouble


def test_a_broken_folder_of_stored_outputs_is_named(stored_priors: Path) -> None:
    (stored_priors / "box_0" / "meta.json").write_text("{}")
    with pytest.raises(InputError, match="must state kind"):
        reproduce("prompts", models=["bicubic"], priors=stored_priors)
    Image.fromarray(np.ones((5, 5), np.uint16)).save(stored_priors / "zed0_1" / "mono.png")
    shutil.rmtree(stored_priors / "box_0")
    with pytest.raises(InputError, match="differ in size"):
        reproduce("prompts", models=["bicubic"], priors=stored_priors)


def test_a_prompt_with_weights_stands_beside_its_published_row(
    make_dataset: MakeDataset, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    network = DepthAnythingV2("s")
    torch.save(network.state_dict(), tmp_path / "vits.pth")
    data = make_dataset("middlebury30", count=1)
    report = reproduce(
        "prompts",
        datasets=["middlebury"],
        places=[f"middlebury=bench:{data / 'middlebury30'}"],
        models=["bicubic"],
        prompts=[f"depth-anything-v2-s={tmp_path / 'vits.pth'}"],
        scales=[4],
    )
    line = lines(report)["middlebury", 4, "depth-anything-v2-s"]
    assert line.status == "measured"
    assert line.measured["rmse"] > 0
    assert any("not the paper's network" in note for note in report.notes)
