"""The simulated monocular depth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from ducos.degrade import monocular


def scene(side: int = 96) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    depth = np.tile(np.linspace(2, 4, side, dtype=np.float32), (side, 1))
    depth[20:60, 30:70] = 1.0
    return depth, np.ones_like(depth, bool), rng.random((side, side, 3)).astype(np.float32)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_it_is_finite_and_in_range(seed: int) -> None:
    said = monocular(*scene(48), np.random.default_rng(seed))
    assert said.shape == (48, 48)
    assert said.dtype == np.float32
    assert np.isfinite(said).all()
    assert 0 <= said.min() <= said.max() <= 1


def test_the_same_seed_says_the_same() -> None:
    one, two = (monocular(*scene(), np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(one, two)


def test_most_of_them_order_the_scene_rightly() -> None:
    depth, valid, rgb = scene()
    ranks = [
        abs(spearmanr(depth.ravel(), monocular(depth, valid, rgb, rng).ravel()).statistic)
        for rng in map(np.random.default_rng, range(40))
    ]
    assert np.median(ranks) > 0.85
    assert min(ranks) < 0.5  # some are of another image, or noise


@pytest.mark.parametrize("valid", [np.zeros((32, 32), bool), np.eye(32, dtype=bool)])
def test_holes_are_far_away_and_nothing_breaks(valid: np.ndarray) -> None:
    depth = np.where(valid, 1.0, np.nan).astype(np.float32)
    said = monocular(depth, valid, np.zeros((32, 32, 3), np.float32), np.random.default_rng(1))
    assert np.isfinite(said).all()
