"""Suites: inputs and figures with known answers, the table, the command."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ducos.data import Pair, open_dataset
from ducos.degrade import DEGRADATIONS
from ducos.errors import InputError
from ducos.evaluation import SUITES, figures_by_model, find_suite, score_suite, suite_table
from ducos.evaluation.suite_figures import between, compared, nearest_distance
from ducos.evaluation.suite_inputs import HOLES, block_means, discs, image_of, suite_input
from ducos.evaluation.suite_scoring import SuiteRow, means, named_figures, spread
from ducos.evaluation.suites import BLOCKS, IMAGES, PRIORS, SuiteCase
from ducos.hints import SENSORS, mode_of
from tests.commands import ducos_here


def pair_of(target: Any, valid: Any = None) -> Pair:
    depth = np.asarray(target, np.float32)
    mask = np.ones(depth.shape, bool) if valid is None else np.asarray(valid, bool)
    rgb = np.random.default_rng(0).random((*depth.shape, 3)).astype(np.float32)
    return Pair("one", rgb, depth, mask)


def write_capture(folder: Path, depth: np.ndarray, **about: Any) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    Image.fromarray(rng.integers(0, 255, (*depth.shape, 3), np.uint8)).save(folder / "rgb.png")
    Image.fromarray(depth.astype(np.uint16)).save(folder / "depth.png")
    (folder / "meta.json").write_text(json.dumps({"scale": 0.001, **about}))


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    """Two maps of 48×48: a step from 1 m to 2 m, and a plane."""
    step = np.full((48, 48), 1000)
    step[:, 25:] = 2000
    write_capture(tmp_path / "captures" / "step", step, sensor="stereo")
    rows = np.broadcast_to(1000 + 10 * np.arange(48)[:, None], (48, 48))
    write_capture(tmp_path / "captures" / "plane", rows)
    return tmp_path / "captures"


# The table


@pytest.mark.parametrize("name", SUITES)
def test_every_case_names_what_there_is(name: str) -> None:
    cases = SUITES[name].cases
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        assert case.name.isidentifier(), "formulas use it"
        assert case.low in (*DEGRADATIONS, BLOCKS)
        assert case.image in IMAGES
        assert case.prior in PRIORS
        assert case.sensor in SENSORS
        assert case.ratio >= 1


def test_time_of_flight_is_asked_to_be_repaired() -> None:
    told = {case.sensor: mode_of(case.mode, case.sensor) for case in SUITES["heldout"].cases}
    assert told == {"unknown": "faithful", "tof": "repair"}


def test_soft_ground_truth_is_blurred_beside_holes_too() -> None:
    step = np.ones((32, 32), np.float32)
    step[:, 16:] = 2
    pair = pair_of(step)
    pair.valid[:4] = False
    given = suite_input(pair, SuiteCase("soft", 2, soft=0.7))
    ramp = given.truth[16]
    assert 1 < ramp[15] < 1.5 < ramp[16] < 2
    assert ramp[12] == pytest.approx(1, abs=1e-3)
    assert np.allclose(given.truth[4:], ramp, atol=1e-5)


def test_grain_is_as_strong_as_stated() -> None:
    plane = np.tile(np.linspace(1, 3, 64, dtype=np.float32), (64, 1))
    given = suite_input(pair_of(plane), SuiteCase("grainy", 2, grain=0.01))
    assert (given.truth - plane).std() == pytest.approx(0.01 * 2, rel=0.05)


def test_a_simulated_prior_is_of_the_scene_and_a_wrong_one_is_not() -> None:
    depth = np.full((64, 64), 4, np.float32)
    depth[10:40, 5:30] = 1
    depth[30:60, 40:60] = 2
    given = {
        prior: suite_input(pair_of(depth), SuiteCase("case", 8, prior=prior)).prior
        for prior in PRIORS
    }
    assert given["none"] is None
    assert abs(np.corrcoef(given["simulated"].ravel(), 1 / depth.ravel())[0, 1]) > 0.6
    assert abs(np.corrcoef(given["wrong"].ravel(), 1 / depth.ravel())[0, 1]) < 0.6


def test_unknown_suites_are_refused_with_the_list() -> None:
    with pytest.raises(InputError, match="heldout"):
        find_suite("held-out")


# Inputs


def test_blocks_are_the_mean_of_what_is_valid() -> None:
    depth = np.array([[1, 3, 5, 9], [0, 0, 9, 9]], np.float32)
    valid = np.array([[1, 1, 1, 0], [0, 0, 0, 0]], bool)
    low, known = block_means(depth, valid, 2)
    assert low.tolist() == [[2, 0]]  # half of the first block suffices, a quarter does not
    assert known.tolist() == [[True, False]]


def test_an_input_is_cut_to_whole_blocks() -> None:
    given = suite_input(pair_of(np.ones((9, 11))), SuiteCase("x", 4, low=BLOCKS))
    assert given.rgb.shape == (8, 8, 3)
    assert given.low.shape == (2, 2)
    assert given.truth.shape == given.valid.shape == (8, 8)


def test_inputs_are_the_same_every_time_and_differ_by_case() -> None:
    pair = pair_of(1 + np.random.default_rng(2).random((32, 32)))
    first, again = (suite_input(pair, SuiteCase("a", 4, low="noisy")) for _ in range(2))
    other = suite_input(pair, SuiteCase("b", 4, low="noisy"))
    assert np.array_equal(first.low, again.low)
    assert not np.array_equal(first.low, other.low)


def test_images_are_changed_as_they_are_called() -> None:
    rgb = pair_of(np.ones((8, 12))).rgb
    assert image_of(rgb, "given") is rgb
    assert not image_of(rgb, "dark").any()
    assert np.array_equal(image_of(rgb, "wrong")[0, 0], rgb[4, 6])
    assert np.array_equal(image_of(rgb, "shifted")[:, 6:], rgb[:, :-6])


def test_holes_are_cut_and_hold_nothing() -> None:
    given = suite_input(pair_of(np.ones((40, 40))), SuiteCase("holes", 1, holes=True))
    assert HOLES <= (~given.low_valid).mean() < 0.6
    assert not given.low[~given.low_valid].any()
    assert given.valid.all(), "the truth stays"
    assert discs((1, 1), np.random.default_rng(0)).all()


# Figures


def test_between_counts_pixels_on_neither_surface() -> None:
    depth = np.ones((10, 10), np.float32)
    depth[:, 5:] = 2
    valid = np.ones_like(depth, bool)
    assert between(depth, valid) == 0
    depth[3, 4] = 1.5
    assert between(depth, valid) == pytest.approx(1 / 45)
    # Four columns of ten see both surfaces, and five pixels the one between.
    assert between(depth, np.zeros_like(valid)) == 0


def test_the_nearest_value_forgives_a_small_move_but_no_mixture() -> None:
    truth = np.ones((6, 8), np.float32)
    truth[:, 4:] = 2
    valid = np.ones_like(truth, bool)
    moved = np.roll(truth, 1, 1)
    moved[:, 0] = 1
    assert nearest_distance(moved, truth, valid, 1).max() == 0
    mixed = np.where(truth == 1, 1.5, truth).astype(np.float32)
    assert nearest_distance(mixed, truth, valid, 1)[:, 3].tolist() == [0.5] * 6
    assert np.isinf(nearest_distance(moved, truth, ~valid, 1)).all()


def test_two_results_without_error_are_equally_good() -> None:
    assert compared("rmse", 0, 0)["rmse"] == 1
    assert compared("rmse", 1, 2)["rmse"] == pytest.approx(0.5)


def test_averages() -> None:
    images = [
        {"image": "a", "rmse": 0.5, "flying": 1.0, "harmed": False},
        {"image": "b", "rmse": 2.0, "flying": math.nan, "harmed": True},
    ]
    assert means(images) == {"rmse": pytest.approx(1), "flying": 1, "harmed": 1}
    assert spread(10, 3) == [0, 4, 9]
    assert spread(3, 0) == spread(3, 9) == [0, 1, 2]


def row(case: str, data: str, ratio: int, **figures: float) -> SuiteRow:
    return SuiteRow("m", case, data, ratio, 2, figures, [])


def test_named_figures() -> None:
    rendered = {"flying": 2.0, "within_1": 0.6, "within_2": 0.9}
    figures = named_figures(
        [
            row("a_x2", "rendered", 2, rmse=0.5, harmed=0, **rendered),
            row("b_x4", "rendered", 4, rmse=2.0, harmed=2, **rendered),
            row("captures_x1", "captures", 1, moved=0.1, between=0.2, harmed=1),
            row("captures_x2", "captures", 2, rmse=0.4, near=0.1, harmed=0),
            row("captures_x4", "captures", 4, rmse=0.9, near=0.4, harmed=3),
        ]
    )
    assert figures["rendered_rmse"] == pytest.approx(1)
    assert figures["captures_rmse"] == pytest.approx(0.6)
    assert figures["captures_near"] == pytest.approx(0.2)
    assert (figures["harmed"], figures["harmed_x1"], figures["rendered_harmed"]) == (3, 1, 2)
    assert (figures["a_x2"], figures["captures_x4_near"]) == (0.5, 0.4)
    assert (figures["flying"], figures["sigma_1"], figures["moved_x1"]) == (2.0, 0.6, 0.1)


# Whole suites


def test_captures_are_read(captures: Path, tmp_path: Path) -> None:
    pairs = open_dataset(f"captures:{captures}")
    assert [pairs[i].name for i in range(len(pairs))] == ["plane", "step"]
    assert pairs[1].sensor == "stereo"
    assert np.unique(pairs[1].target).tolist() == [1, 2]
    assert pairs[1].valid.all()
    write_capture(tmp_path / "far" / "one", np.array([[1000, 5000]] * 2), farthest=3)
    far = open_dataset(f"captures:{tmp_path / 'far'}")[0]
    assert far.valid.tolist() == [[True, False]] * 2
    assert far.target.tolist() == [[1, 0]] * 2


def test_images_of_captures_come_to_the_size_of_the_map(tmp_path: Path) -> None:
    write_capture(tmp_path / "one", np.full((4, 6), 1000))
    checks = np.zeros((8, 12, 3), np.uint8)
    checks[::2] = 255
    Image.fromarray(checks).save(tmp_path / "one" / "rgb.png")
    pair = open_dataset(f"captures:{tmp_path}")[0]
    assert pair.rgb.shape == (4, 6, 3)
    assert np.allclose(pair.rgb, 0.5)


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda folder: (folder / "meta.json").write_text("{}"), "scale"),
        (lambda folder: (folder / "rgb.png").unlink(), "rgb"),
        (lambda folder: (folder / "depth.npy").write_bytes(b""), "depth"),
    ],
)
def test_broken_captures_are_named(tmp_path: Path, spoil: Any, named: str) -> None:
    write_capture(tmp_path / "one", np.full((4, 4), 1000))
    spoil(tmp_path / "one")
    with pytest.raises(InputError, match=named):
        open_dataset(f"captures:{tmp_path}")


def test_bicubic_is_as_good_as_bicubic(captures: Path, tmp_path: Path) -> None:
    """Every ratio is 1 and nothing is harmed, whatever the case."""
    rows = score_suite(
        "bicubic", data="shapes:2,height=48,width=64", captures=captures, out=tmp_path / "out"
    )
    assert [row.case for row in rows] == [case.name for case in SUITES["heldout"].cases]
    for each in rows:
        assert each.figures["harmed"] == 0
        assert each.figures.get("rmse", 1) == each.figures.get("near", 1) == 1
    figures = figures_by_model(rows)["bicubic"]
    assert figures["rendered_rmse"] == figures["captures_rmse"] == figures["captures_near"] == 1
    assert figures["moved_x1"] == 0
    assert math.isnan(figures["sigma_1"]), "bicubic has no sigma"
    stored = json.loads((tmp_path / "out" / "results.json").read_text())
    assert stored["figures"]["bicubic"]["sigma_1"] is None
    assert len(stored["rows"][0]["per_image"]) == 2
    assert suite_table(rows).row_count == len(rows)


def test_the_command_prints_the_figures(captures: Path, capsys: pytest.CaptureFixture) -> None:
    arguments = ("eval", "--suite", "heldout", "--captures", captures, "--model", "bicubic")
    code, out, _ = ducos_here(capsys, *arguments, "--json")
    assert code == 0
    assert json.loads(out)["figures"]["bicubic"]["harmed"] == 0
    code, out, _ = ducos_here(capsys, *arguments)
    assert code == 0
    assert "captures_x8" in out
    assert "captures_rmse 1," in out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--suite", "heldout"], "--data"),
        (["--suite", "nothing", "--data", "shapes:1"], "heldout"),
        (["--suite", "heldout", "--data", "shapes:1", "--dataset", "shapes:1"], "--dataset"),
        (["--suite", "heldout", "--captures", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_refused(capsys: pytest.CaptureFixture, arguments: Any, named: str) -> None:
    code, _, errors = ducos_here(capsys, "eval", "--model", "bicubic", *arguments)
    assert code == 2
    assert named in errors
