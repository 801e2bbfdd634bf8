"""Metrics against answers worked out by hand."""

import math

import numpy as np
import pytest
import torch

from ducos.evaluation.metrics import (
    METRICS,
    boundary_f1,
    delta,
    flying,
    mae,
    measure,
    rmse,
    rmse_near_edges,
)

FLAT = np.full((3, 3), 2.0)


def wall_and_box(edge: int = 6, near: float = 100.0, far: float = 200.0) -> np.ndarray:
    """(12, 12): `near` in the first `edge` columns, `far` in the others."""
    return np.where(np.arange(12) < edge, near, far) * np.ones((12, 1))


def test_rmse_and_mae_of_one_wrong_pixel() -> None:
    prediction = FLAT.copy()
    prediction[1, 2] += 3
    assert rmse(prediction, FLAT) == 1.0  # sqrt(9 / 9)
    assert mae(prediction, FLAT) == pytest.approx(3 / 9, abs=1e-15)


def test_only_valid_pixels_count_whatever_the_others_hold() -> None:
    prediction = FLAT.copy()
    prediction[0] = [np.nan, 1e9, 4.0]
    valid = np.ones((3, 3), bool)
    valid[0, :2] = False
    assert rmse(prediction, FLAT, valid) == pytest.approx(math.sqrt(4 / 7))
    assert mae(prediction, FLAT, valid) == pytest.approx(2 / 7)
    assert delta(prediction, FLAT, valid) == pytest.approx(100 * 6 / 7)


def test_delta_counts_ratios_below_the_threshold_either_way_up() -> None:
    target = np.full((3, 3), 100.0)
    prediction = np.array([[100, 104.9, 105.1], [114.9, 115.1, 124.9], [125.1, 95.3, 95.2]])
    assert delta(prediction, target, threshold=1.05) == pytest.approx(100 * 3 / 9)
    assert delta(prediction, target, threshold=1.15) == pytest.approx(100 * 6 / 9)
    assert delta(prediction, target, threshold=1.25) == pytest.approx(100 * 8 / 9)
    assert delta(target, prediction, threshold=1.05) == delta(prediction, target, threshold=1.05)


def test_delta_at_zero_and_below() -> None:
    # A target of 0 is met by nothing but 0; a negative prediction is wrong, as it should be.
    assert delta(np.array([[1e-3, 0.0, -5.0, 5.0]]), np.array([[0.0, 0.0, 5.0, 5.0]])) == 50


def test_edge_rmse_sees_what_lies_within_reach_of_an_edge_and_no_more() -> None:
    target = wall_and_box()  # edge between columns 5 and 6: columns 2 to 9 are near it
    prediction = target.copy()
    prediction[:, [0, 1, 10, 11]] += 50
    assert rmse_near_edges(prediction, target) == 0
    prediction = target.copy()
    prediction[:, 9] += 8
    assert rmse_near_edges(prediction, target) == pytest.approx(math.sqrt(64 / 8))


def test_a_step_below_the_edge_ratio_is_no_edge() -> None:
    slope = wall_and_box(near=100, far=109)
    assert math.isnan(rmse_near_edges(slope, slope))
    assert not math.isnan(rmse_near_edges(slope, wall_and_box(near=100, far=111)))


def test_a_hole_makes_no_edge() -> None:
    target = wall_and_box(far=0.0)
    assert math.isnan(rmse_near_edges(target, target, target > 0))
    assert rmse_near_edges(target, target) == 0


def test_flying_pixels_hang_between_two_surfaces() -> None:
    target = wall_and_box()
    assert flying(target, target) == 0
    prediction = target.copy()
    prediction[:, 5] = 150  # in the air
    prediction[:, 6] = 101  # on the near surface: wrong, but not flying
    prediction[:, 7] = 204  # on the far surface, within 2 %
    prediction[:, 0] = 150  # far from the edge
    assert flying(prediction, target) == pytest.approx(100 / 4)  # columns 4 to 7 see both surfaces


def test_flying_pixels_ignore_surfaces_in_holes() -> None:
    target = wall_and_box()
    target[:, 4] = 150
    valid = np.ones(target.shape, bool)
    prediction = wall_and_box()
    prediction[:, 5] = 150
    assert flying(prediction, target, valid) > 0  # between the nearest and the farthest
    valid[:, 6:] = False
    assert flying(prediction, target, valid) == 0  # nothing known lies behind it


def test_boundary_f1_forgives_one_pixel_and_not_a_blur() -> None:
    target = wall_and_box()
    assert boundary_f1(target, target) == 100
    assert boundary_f1(wall_and_box(edge=7), target) == pytest.approx(100)
    assert boundary_f1(wall_and_box(edge=10), target) == 0
    ramp = np.linspace(100, 200, 12) * np.ones((12, 1))  # 9 % from column to column
    assert boundary_f1(ramp, target) == 0
    assert boundary_f1(np.full((12, 12), 100.0), target) == 0
    assert math.isnan(boundary_f1(target, np.full((12, 12), 100.0)))


def test_boundary_f1_weighs_missed_and_invented_edges() -> None:
    target = wall_and_box()
    half = target.copy()
    half[6:] = 100  # the lower half of the edge is gone, a horizontal one invented
    # True: columns 5 and 6 of 12 rows, of which rows 0 to 7 have a found pixel beside them.
    # Found: columns 5 and 6 of rows 0 to 5, columns 6 to 11 of rows 5 and 6: 12 + 12 - 1 in common;
    # of these all in columns 5 to 7 have a true pixel beside them: 12 + 4 - 1.
    recall, precision = 16 / 24, 15 / 23
    expected = 200 * precision * recall / (precision + recall)
    assert boundary_f1(half, target) == pytest.approx(expected)


def test_edges_of_depth_and_of_its_inverse_are_the_same() -> None:
    rng = np.random.default_rng(0)
    target, prediction = rng.uniform(1, 2, (2, 20, 20)).round(2)
    assert boundary_f1(1 / prediction, 1 / target) == pytest.approx(boundary_f1(prediction, target))


def test_measure_takes_tensors_and_returns_every_metric() -> None:
    target = torch.from_numpy(wall_and_box()).float()
    valid = torch.ones(12, 12, dtype=torch.bool)
    found = measure(target + 1, target, valid)
    assert list(found) == list(METRICS)
    assert found["rmse"] == found["mae"] == found["rmse_edge"] == 1
    assert found["delta105"] == found["delta115"] == found["delta125"] == 100
    assert found["flying"] == 0
    assert found["boundary_f1"] == 100


def test_nothing_to_score_is_unknown_and_not_zero() -> None:
    assert all(math.isnan(x) for x in measure(FLAT, FLAT, np.zeros((3, 3), bool)).values())


def test_sums_are_in_double_precision() -> None:
    # In float32 the mean of a million squares of this size is off in the third digit.
    target = np.zeros((1000, 1000), np.float32)
    prediction = np.full((1000, 1000), 1e-3, np.float32)
    prediction[0, 0] = 1000
    assert rmse(prediction, target) == pytest.approx(math.sqrt(1 + 1e-6), rel=1e-9)


def test_batches_are_refused() -> None:
    with pytest.raises(ValueError, match="per image"):
        rmse(np.zeros((2, 3, 3)), np.zeros((2, 3, 3)))
    with pytest.raises(ValueError, match="must be"):
        rmse(np.zeros((3, 3)), np.zeros((3, 4)))
