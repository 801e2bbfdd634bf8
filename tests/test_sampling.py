"""Resampling of arrays, held against that of tensors."""

import numpy as np
import pytest
import torch

from ducos import resize, sampling
from ducos.models.ducos.around import spline_mean, window_of

RANDOM = np.random.default_rng(0)
SIZES = [((7, 9), (30, 41)), ((30, 41), (7, 9)), ((13, 13), (13, 13)), ((31, 43), (97, 131))]
SIZES += [((97, 131), (31, 131)), ((1, 5), (5, 1)), ((120, 160), (480, 640))]


def tensor(x: np.ndarray) -> torch.Tensor:
    return torch.tensor(x)[None, None]


@pytest.mark.parametrize(("size", "target"), SIZES)
@pytest.mark.parametrize("kind", ["bicubic", "bilinear"])
def test_antialiased(kind: str, size: tuple[int, int], target: tuple[int, int]) -> None:
    x = RANDOM.random(size).astype(np.float32)
    ours = getattr(sampling, kind)(x, target)
    theirs = getattr(resize, kind)(tensor(x), target)[0, 0].numpy()
    assert ours.dtype == np.float32
    assert np.abs(ours - theirs).max() < 5e-6
    some = (target[0] // 3, target[0])
    if some[1] > some[0]:
        part = getattr(sampling, kind)(x, target, some)
        assert np.abs(part - ours[slice(*some)]).max() < 1e-6


@pytest.mark.parametrize(("size", "target"), SIZES)
def test_area_and_nearest(size: tuple[int, int], target: tuple[int, int]) -> None:
    x = RANDOM.random(size).astype(np.float32)
    assert (sampling.nearest(x, target) == resize.nearest(tensor(x), target)[0, 0].numpy()).all()
    assert (
        np.abs(sampling.area(x, target) - resize.area(tensor(x), target)[0, 0].numpy()).max() < 1e-6
    )


@pytest.mark.parametrize(("size", "target"), [SIZES[0], SIZES[3], SIZES[6]])
def test_spline_mean(size: tuple[int, int], target: tuple[int, int]) -> None:
    x = RANDOM.random(size)
    window = window_of(size, target, torch.zeros(1))
    theirs = spline_mean(tensor(x), window)[0, 0].numpy()
    assert np.abs(sampling.spline_mean(x, target) - theirs).max() < 1e-14


@pytest.mark.parametrize("holes", [0.0, 0.02, 0.5, 0.97])
@pytest.mark.parametrize("far", [0.0, 2.0])
def test_holes(holes: float, far: float) -> None:
    low = 1 + RANDOM.random((37, 52)).astype(np.float32)
    valid = RANDOM.random(low.shape) >= holes
    image = RANDOM.random((3, 111, 160)).astype(np.float32)
    guide = sampling.area(image, low.shape)
    theirs = resize.fill_holes(tensor(low), tensor(valid), torch.tensor(image)[None], far)
    ours = sampling.fill_holes(low, valid, guide, far)
    assert np.abs(ours - theirs[0, 0].numpy()).max() < 5e-6
    smooth = resize.fill_holes(tensor(low), tensor(valid))[0, 0].numpy()
    assert np.abs(sampling.fill_holes(low, valid) - smooth).max() < 5e-6


def test_weights_of_doubt() -> None:
    from ducos.upscaling import doubted

    low = 1 + RANDOM.random((37, 52)).astype(np.float32)
    trust = RANDOM.random(low.shape).astype(np.float32)
    trust[RANDOM.random(low.shape) < 0.1] = 0
    image = RANDOM.random((3, 111, 160)).astype(np.float32)
    theirs = doubted(tensor(low), tensor(trust), torch.tensor(image)[None], 2.0)[0, 0].numpy()
    ours = sampling.doubted(low, trust, sampling.area(image, low.shape), 2.0)
    assert np.abs(ours - theirs).max() < 5e-6


def test_shrinking_around_holes() -> None:
    low = 1 + RANDOM.random((37, 52)).astype(np.float32)
    valid = RANDOM.random(low.shape) >= 0.2
    ours, mask = sampling.masked_bicubic(low, valid, (20, 31))
    theirs, there = resize.masked_bicubic(tensor(low), tensor(valid), (20, 31))
    assert np.abs(ours - theirs[0, 0].numpy()).max() < 5e-6
    assert (mask == there[0, 0].numpy()).all()


def test_moved() -> None:
    x = RANDOM.random((9, 14)).astype(np.float32)
    for step in ((0, 0), (3, -2), (-5, 4)):
        assert (sampling.moved(x, *step) == resize.moved(torch.tensor(x), *step).numpy()).all()
        theirs = resize.moved(torch.tensor(x), *step, beyond=3).numpy()
        assert (sampling.moved(x, *step, beyond=3) == theirs).all()


def test_padded_axes() -> None:
    for size in ((40, 70), (33, 65), (3, 200), (64, 32)):
        for ours, theirs in zip(sampling.padded_axes(size, 32), resize.padded_axes(size, 32)):
            assert (ours == theirs.numpy()).all()


def test_a_map_without_any_measurement_is_zero() -> None:
    nothing, guide = np.zeros((2, 3), bool), np.zeros((3, 2, 3), np.float32)
    filled = sampling.fill_holes(np.ones((2, 3), np.float32), nothing, guide, 2.0)
    assert (filled == 0).all()
