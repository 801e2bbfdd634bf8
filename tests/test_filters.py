"""Filters of numpy alone, held against scipy's."""

import numpy as np
import pytest
from scipy import fft, ndimage

from ducos import filters

RANDOM = np.random.default_rng(0)
PLANE = RANDOM.random((57, 83)).astype(np.float32)
MASK = RANDOM.random((57, 83)) < 0.45


@pytest.mark.parametrize("sigma", [0.4, 1.0, 6.3, 30.0])
@pytest.mark.parametrize("order", [(0, 0), (0, 1), (1, 0)])
def test_gaussian(sigma: float, order: tuple[int, int]) -> None:
    ours, theirs = (
        filters.gaussian(PLANE, sigma, order),
        ndimage.gaussian_filter(PLANE, sigma, order=order),
    )
    assert ours.dtype == theirs.dtype
    assert np.abs(ours - theirs).max() < 1e-6


def test_gaussian_along_some_axes() -> None:
    block = RANDOM.random((5, 21, 30))
    theirs = ndimage.gaussian_filter(block, (0, 1.5, 2.5))
    assert np.abs(filters.gaussian(block, (0, 1.5, 2.5)) - theirs).max() < 1e-12


def test_correlate() -> None:
    for axis in (0, 1):
        theirs = ndimage.correlate1d(PLANE, [1.0, -2.0, 1.0], axis)
        assert np.abs(filters.correlate(PLANE, [1.0, -2.0, 1.0], axis) - theirs).max() < 1e-6


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9, 13])
def test_extremes(size: int) -> None:
    assert (filters.maximum(PLANE, size) == ndimage.maximum_filter(PLANE, size)).all()
    assert (filters.minimum(PLANE, size) == ndimage.minimum_filter(PLANE, size)).all()
    assert (filters.minimum(MASK, size) == ndimage.minimum_filter(MASK, size)).all()


@pytest.mark.parametrize("times", [1, 2, 5])
def test_dilated_and_eroded(times: int) -> None:
    sparse = RANDOM.random((40, 50)) < 0.03
    assert (filters.dilated(sparse, times) == ndimage.binary_dilation(sparse, None, times)).all()
    full = ~sparse
    assert (filters.eroded(full, times) == ndimage.binary_erosion(full, None, times)).all()


@pytest.mark.parametrize("size", [(3, 3), (8, 5), (41, 20)])
def test_box_mean(size: tuple[int, int]) -> None:
    theirs = ndimage.uniform_filter(PLANE.astype(np.float64), size, mode="constant")
    assert np.abs(filters.box_mean(PLANE, size) - theirs).max() < 1e-12


@pytest.mark.parametrize("share", [0.0, 0.1, 0.45, 0.6, 0.8, 1.0])
def test_areas(share: float) -> None:
    mask = RANDOM.random((60, 70)) < share
    labels = ndimage.label(mask)[0]
    theirs = np.bincount(labels.ravel())[1:]
    assert sorted(filters.areas(mask)) == sorted(theirs)


def test_fast_length() -> None:
    for n in range(1, 900):
        assert filters.fast_length(n) == fft.next_fast_len(n)
