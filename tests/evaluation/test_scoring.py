"""Evaluation against Pillow, against figures worked out by hand, and against the field's own."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from torch import Tensor, nn

from ducos import files
from ducos.data import Subset, open_dataset
from ducos.errors import InputError
from ducos.evaluation.error_maps import error_limit
from ducos.evaluation.metrics import METRICS
from ducos.evaluation.protocols import PROTOCOLS
from ducos.evaluation.results import Row, table
from ducos.evaluation.scoring import evaluate
from ducos.models import Prediction, create
from tests.commands import ducos_here

UNIT = {"m": ("metre", 0.001), "level": ("0..255 code", 1.0)}


def make_scene(
    folder: Path, codes: np.ndarray, unit: str = "m", low: np.ndarray | None = None
) -> None:
    """One scene of a benchmark folder; in metres, 0 is a hole."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(len(folder.name))
    colour = rng.integers(0, 256, (*codes.shape, 3), dtype=np.uint8)
    Image.fromarray(colour).save(folder / "rgb.png")
    Image.fromarray(codes.astype(np.uint16)).save(folder / "depth.png")
    if low is not None:
        Image.fromarray(low.astype(np.uint16)).save(folder / "lr_depth.png")
    name, scale = UNIT[unit]
    invalid = 0 if unit == "m" else None
    about = {"unit": name, "scale_to_unit": scale, "invalid_value": invalid}
    (folder / "meta.json").write_text(json.dumps(about))


def surface(height: int, width: int, seed: int, lowest: int, highest: int) -> np.ndarray:
    """Smooth codes with a box in front of them."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.uniform(lowest, highest, (4, 5)).astype(np.float32))
    codes = np.array(coarse.resize((width, height), Image.Resampling.BILINEAR)).round()
    codes[height // 3 : height // 2, width // 4 : width // 2] = lowest
    return codes


@pytest.fixture
def rooms(tmp_path: Path) -> str:
    """Two metric scenes of odd sizes, in millimetres."""
    for number, size in enumerate([(50, 67), (40, 48)]):
        make_scene(tmp_path / "rooms" / f"room{number}", surface(*size, number, 800, 4000))
    return f"bench:{tmp_path / 'rooms'}"


@pytest.fixture
def codes(tmp_path: Path) -> str:
    """A scene in levels, a good part of which is level 0."""
    make_scene(tmp_path / "codes" / "one", surface(48, 64, 7, 0, 255), "level")
    return f"bench:{tmp_path / 'codes'}"


@pytest.fixture
def sensor(tmp_path: Path) -> str:
    """A scene with a real sensor's map of 2/5 the size, everywhere 20 mm too far."""
    depth = np.full((40, 60), 1500)
    make_scene(tmp_path / "sensor" / "one", depth, low=np.full((16, 24), 1520))
    return f"bench:{tmp_path / 'sensor'}"


def pillow_errors(target: np.ndarray, scale: int, border: int) -> np.ndarray:
    """What bicubic down and up does to a map, by Pillow alone."""
    height, width = (side // scale * scale for side in target.shape)
    target = target[:height, :width].astype(np.float32)
    image = Image.fromarray(target)
    low = image.resize((width // scale, height // scale), Image.Resampling.BICUBIC)
    error = np.array(low.resize((width, height), Image.Resampling.BICUBIC)) - target
    return error[border : height - border, border : width - border].astype(np.float64)


class Constant(nn.Module):
    """Predicts one share of whatever range it is told."""

    def __init__(self, share: float):
        super().__init__()
        self.share = share

    def forward(self, rgb: Tensor, low: Tensor, valid: Tensor | None = None) -> Prediction:
        return Prediction(torch.full_like(rgb[:, :1], self.share))


# ----------------------------------------------------------------------------------- figures


@pytest.mark.parametrize(("protocol", "border"), [("synthetic", 6), ("synthetic-nocrop", 0)])
def test_bicubic_is_what_pillow_gives_per_image(rooms: str, protocol: str, border: int) -> None:
    row = evaluate("bicubic", rooms, protocol, [4])[0]
    expected = []
    for pair in open_dataset(rooms):
        error = 100 * pillow_errors(pair.target, 4, border)
        expected.append((np.sqrt(np.mean(error**2)), np.mean(np.abs(error))))
    found = [(image["rmse"], image["mae"]) for image in row.per_image]
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-4)
    # The mean over images, each with the same weight though the first has more pixels.
    assert row.figures["rmse"] == pytest.approx(np.mean([rmse for rmse, _ in expected]), rel=1e-4)
    assert (row.model, row.dataset, row.images) == ("bicubic", "rooms", 2)
    assert (row.unit, row.scale, row.input) == ("cm", 4, "target")
    assert row.protocol_id == PROTOCOLS[protocol].id


def test_level_zero_is_a_value_and_no_hole(codes: str) -> None:
    pair = open_dataset(codes)[0]
    assert (pair.target == 0).mean() > 0.02
    row = evaluate("bicubic", codes, "synthetic-nocrop", [8])[0]
    error = pillow_errors(pair.target, 8, 0)
    assert row.figures["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-4)
    assert row.unit == "level"


def test_holes_of_the_target_are_not_scored(tmp_path: Path) -> None:
    depth = np.full((40, 48), 2000)
    depth[10:14, 20:26] = 0
    make_scene(tmp_path / "holed" / "one", depth)
    row = evaluate("bicubic", f"bench:{tmp_path / 'holed'}", "synthetic", [4])[0]
    assert row.figures["rmse"] == pytest.approx(0, abs=1e-4)
    assert math.isnan(row.figures["rmse_edge"])  # a hole is no edge either
    assert row.as_dict()["rmse_edge"] is None


def test_models_datasets_and_scales_multiply(rooms: str, codes: str) -> None:
    models = {"a": create("bicubic"), "b": Constant(0.5)}
    rows = evaluate(models, [rooms, codes], "arbitrary", [1.5, 3.4])
    assert [(row.dataset, row.scale, row.model) for row in rows] == [
        (dataset, scale, model)
        for dataset in ("rooms", "codes")
        for scale in (1.5, 3.4)
        for model in "ab"
    ]
    assert all(math.isfinite(row.figures["rmse"]) for row in rows)


def test_the_ground_truths_range_is_told_only_where_the_protocol_says_so(rooms: str) -> None:
    model = Constant(0.25).train()
    told = evaluate({"c": model}, rooms, "synthetic-gt-range", [4])[0]
    honest = evaluate({"c": model}, rooms, "synthetic", [4])[0]
    assert model.training
    for image, pair in zip(told.per_image, open_dataset(rooms), strict=True):
        height, width = (side // 4 * 4 for side in pair.target.shape)
        target = 100 * pair.target[:height, :width].astype(np.float64)
        constant = target.min() + 0.25 * (target.max() - target.min())
        error = constant - target[6:-6, 6:-6]
        assert image["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-5)
    assert honest.figures["rmse"] != pytest.approx(told.figures["rmse"], rel=1e-4)
    # Interpolation does not care about the range.
    rows = [
        evaluate("bicubic", rooms, name, [4])[0].figures
        for name in ("synthetic", "synthetic-gt-range")
    ]
    assert rows[0]["rmse"] == pytest.approx(rows[1]["rmse"], rel=1e-4)


@pytest.mark.parametrize("protocol", ["noisy", "noisy-dornet", "compressed"])
def test_noise_is_the_same_every_time_and_in_any_order(rooms: str, protocol: str) -> None:
    dataset = open_dataset(rooms)
    first = evaluate("bicubic", [dataset], protocol, [4])[0]
    torch.manual_seed(99)
    backwards = Subset(dataset, [1, 0], "backwards")
    again = evaluate("bicubic", [backwards], protocol, [4])[0]
    figures = {image["image"]: image["rmse"] for image in first.per_image}
    assert {image["image"]: image["rmse"] for image in again.per_image} == figures
    clean = evaluate("bicubic", [dataset], "arbitrary", [4])[0]
    assert first.figures["rmse"] > clean.figures["rmse"] + 1  # cm


def test_the_released_compression_leaves_nothing_and_the_sound_one_does(rooms: str) -> None:
    def rmse(protocol: str) -> float:
        return evaluate("bicubic", rooms, protocol, [4])[0].figures["rmse"]

    assert rmse("compressed-as-released-nyu") > 4 * rmse("compressed")
    assert rmse("compressed-as-released") > 4 * rmse("compressed")


def test_real_takes_the_sensors_map_and_its_scale(sensor: str, rooms: str) -> None:
    row = evaluate("bicubic", sensor, "real")[0]
    assert row.figures["rmse"] == pytest.approx(2, abs=1e-3)
    assert (row.scale, row.input) == (2.5, "sensor")
    with pytest.raises(InputError, match=r"rooms, pair room0.*real sensor"):
        evaluate("bicubic", rooms, "real")


def test_noise_goes_on_the_sensors_map_where_there_is_one(sensor: str, rooms: str) -> None:
    # The sensor's map is constant: its range is 0, so is the noise, and its offset remains.
    row = evaluate("bicubic", sensor, "noisy")[0]
    assert row.figures["mae"] == pytest.approx(2, abs=1e-3)
    assert row.input == "sensor"
    assert evaluate("bicubic", rooms, "noisy")[0].input == "target"
    assert evaluate("bicubic", sensor, "synthetic", [4])[0].input == "target"


@pytest.mark.parametrize(
    ("name", "figures"),
    [("middlebury30", (2.281, 3.983, 6.374)), ("lu6", (2.419, 4.541, 7.377))],
)
def test_bicubic_has_the_fields_figures(
    shared: Path, name: str, figures: tuple[float, ...]
) -> None:
    rows = evaluate("bicubic", f"bench:{shared / 'bench' / name}", "synthetic-nocrop")
    assert tuple(round(row.figures["rmse"], 3) for row in rows) == figures


# ------------------------------------------------------------------------------- predictions


def without_seconds(rows: list[Row]) -> list[dict]:
    return [{**row.as_dict(), "seconds": None} for row in rows]


def test_saved_predictions_score_the_same(rooms: str, codes: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    datasets = [rooms, codes]
    rows = evaluate("bicubic", datasets, scales=[4, 8], out=out, save_predictions=True)
    assert (out / "predictions/bicubic/rooms/x4/room0.npz").is_file()
    again = evaluate([], datasets, scales=[4, 8], predictions=out / "predictions/bicubic")
    assert without_seconds(again) == without_seconds(rows)


def test_somebody_elses_files_are_scored(rooms: str, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for pair in open_dataset(rooms):  # 16-bit millimetres, 1 cm too far, at the uncut size
        millimetres = (1000 * pair.target + 10).round().astype(np.uint16)
        Image.fromarray(millimetres).save(theirs / f"{pair.name}.png")
    row = evaluate("their method", rooms, scales=[4], predictions=theirs)[0]
    assert row.model == "their method"
    assert row.figures["rmse"] == pytest.approx(1, abs=1e-3)
    assert row.figures["missing"] == 0

    nameless = evaluate([], rooms, scales=[4], predictions=theirs)[0]
    assert nameless.model == "theirs"
    other_step = evaluate([], rooms, scales=[4], predictions=theirs, prediction_scale=0.002)[0]
    assert other_step.figures["delta125"] == 0


def test_eight_bit_levels_are_levels(codes: str, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    target = open_dataset(codes)[0].target
    Image.fromarray(target.astype(np.uint8)).save(theirs / "one.png")
    row = evaluate([], codes, scales=[4], predictions=theirs)[0]
    assert row.figures["rmse"] == 0
    assert row.figures["missing"] == 0  # though many are 0
    (theirs / "one.png").unlink()
    np.save(theirs / "one.npy", target + 1)
    row = evaluate([], codes, scales=[4], predictions=theirs)[0]
    assert row.figures["rmse"] == 1


def test_a_missing_pixel_is_counted_and_not_excused(tmp_path: Path) -> None:
    make_scene(tmp_path / "flat" / "one", np.full((32, 32), 2000))
    depth = np.full((32, 32), 2, np.float32)
    depth[8:12, 8:18] = np.nan  # 40 of the 20 x 20 scored pixels
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    np.save(theirs / "one.npy", depth)
    flat = f"bench:{tmp_path / 'flat'}"
    row = evaluate([], flat, scales=[4], predictions=theirs)[0]
    assert row.figures["missing"] == pytest.approx(10)
    assert row.figures["mae"] == pytest.approx(20)  # a tenth of the pixels is 200 cm off
    console = Console(width=120)
    with console.capture() as captured:
        console.print(table([row]))
    assert "missing" in captured.get()


def test_files_that_cannot_be_scored_are_explained(rooms: str, codes: str, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    with pytest.raises(InputError, match="not a folder"):
        evaluate([], rooms, predictions=theirs)
    theirs.mkdir()

    def problem(dataset: str = rooms) -> str:
        with pytest.raises(InputError) as caught:
            evaluate([], dataset, scales=[4], predictions=theirs)
        return str(caught.value)

    assert "no prediction for this pair" in problem()
    assert "room0" in problem()
    np.save(theirs / "room0.npy", np.full((7, 9), 2.0, np.float32))
    assert "9×7, but the image is 64×48" in problem()
    Image.fromarray(np.full((50, 67), 9, np.uint8)).save(theirs / "room0.png")
    assert "2 files for one pair" in problem()
    (theirs / "room0.npy").unlink()
    assert "the dataset is in metres" in problem()
    files.write_depth(theirs / "one.png", np.ones((48, 64), np.float32))
    assert "the dataset is in levels" in problem(codes)


def test_one_folder_does_not_serve_two_scales_or_datasets(
    rooms: str, codes: str, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "rooms").mkdir(parents=True)
    with pytest.raises(InputError, match=r"rooms/x4"):
        evaluate([], rooms, scales=[4, 8], predictions=theirs)
    with pytest.raises(InputError, match=r"codes/x4"):
        evaluate([], [codes, rooms], scales=[4], predictions=theirs)


# --------------------------------------------------------------------------- files and screen


def test_results_files_tell_everything(rooms: str, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    rows = evaluate({"c": create("djf")}, rooms, "synthetic", [4, 8], out=out)
    results = json.loads((out / "results.json").read_text(), parse_constant=pytest.fail)
    assert results["complete"]
    assert results["protocol"] == json.loads(json.dumps(PROTOCOLS["synthetic"].card()))
    assert results["versions"]["torch"] == torch.__version__
    assert results["models"]["c"]["parameters"] == 56_323
    assert len(results["models"]["c"]["weights_sha256"]) == 64
    assert [row["rmse"] for row in results["rows"]] == [row.figures["rmse"] for row in rows]
    assert [image["image"] for image in results["rows"][0]["per_image"]] == ["room0", "room1"]

    with (out / "results.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 4
    assert lines[3]["image"] == "room1"
    assert float(lines[3]["rmse"]) == rows[1].per_image[1]["rmse"]
    assert {line["protocol_id"] for line in lines} == {PROTOCOLS["synthetic"].id}
    assert sorted(path.name for path in out.iterdir()) == ["results.csv", "results.json"]


def test_different_weights_have_different_digests(rooms: str, tmp_path: Path) -> None:
    models = {"a": create("djf"), "b": create("djf")}
    evaluate(models, rooms, scales=[4], out=tmp_path / "out")
    about = json.loads((tmp_path / "out/results.json").read_text())["models"]
    assert about["a"]["weights_sha256"] != about["b"]["weights_sha256"]


def test_error_sheets(rooms: str, tmp_path: Path) -> None:
    models = {"bicubic": create("bicubic"), "half": Constant(0.5)}
    evaluate(models, rooms, scales=[4], out=tmp_path, pictures=5)
    folder = tmp_path / "pictures" / "rooms" / "x4"
    assert sorted(path.name for path in folder.iterdir()) == ["room0.png", "room1.png"]
    with Image.open(folder / "room0.png") as picture:
        pixels = np.asarray(picture).astype(int)
    # 64 x 48 pixels are shown four times as large; two lines of five panels under captions.
    width, line = 4 * 64, 4 * 48 + 22
    assert pixels.shape[1] == 5 * width
    assert pixels.shape[0] > 2 * line
    error = [pixels[i * line + 22 : (i + 1) * line, 4 * width :] for i in range(2)]
    pair = open_dataset(rooms)[0]
    miss = np.abs(pillow_errors(pair.target, 4, 0))
    red = error[0][2::4, 2::4, 0]
    assert red[miss > np.percentile(miss, 98)].min() > red[miss < np.percentile(miss, 50)].max()
    assert error[1].mean() > 1.5 * error[0].mean()  # the worse model is warmer, on one scale


def test_the_error_scale_is_round_and_common() -> None:
    assert error_limit([np.full(99, 3.1), np.full(1, 1000.0)]) == 4
    assert error_limit([np.array([-0.012])]) == pytest.approx(0.015)
    assert error_limit([np.zeros(5)]) == 1
    assert error_limit([np.zeros(0)]) == 1


def test_json_is_all_there_is_on_stdout(rooms: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ducos_here(
        capsys, "eval", "--model", "bicubic", "--dataset", rooms, "--scale", "4", "--json"
    )
    assert code == 0
    printed = json.loads(out)
    assert list(printed) == ["rows"]
    (row,) = printed["rows"]
    assert {"model", "dataset", "protocol", "scale", "images", *METRICS} <= row.keys()
    assert (row["model"], row["dataset"], row["scale"]) == ("bicubic", "rooms", 4)
    assert "per_image" not in row


def test_the_table_fits_a_terminal_and_names_the_protocol(
    sensor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ducos_here(
        capsys,
        "eval",
        "--model",
        "bicubic",
        "--dataset",
        sensor,
        "--protocol",
        "real",
        "--scale",
        "4",
    )
    assert code == 0
    assert PROTOCOLS["real"].label in out
    assert "2.000" in out
    assert "×2.5" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "takes the scale from the data" in err


def test_mistakes_are_explained_before_any_work(rooms: str, codes: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no dataset"):
        evaluate("bicubic", [])
    with pytest.raises(InputError, match="no model"):
        evaluate([], rooms)
    with pytest.raises(InputError, match="unknown protocol"):
        evaluate("bicubic", rooms, "synthetc")
    with pytest.raises(InputError, match="--out"):
        evaluate("bicubic", rooms, pictures=1)
    with pytest.raises(InputError, match="two datasets are called rooms"):
        evaluate("bicubic", [rooms, rooms])
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        evaluate("bicubic", rooms, out=tmp_path / "file" / "out")
    with pytest.raises(InputError, match="at most one"):
        evaluate(["a", "b"], rooms, predictions=tmp_path)
