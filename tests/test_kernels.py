"""The one rule of resampling, held against torch's own kernels."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ducos.kernels import antialiased_weights, area_weights, nearest_index, padded_index

SIZES = [(7, 30), (30, 7), (13, 13), (43, 131), (131, 43), (1, 5), (5, 1), (480, 60)]


def axes(n: int, N: int):
    return np.arange(N)[:, None], np.arange(n)[None]


def units(n: int) -> torch.Tensor:
    """(1, 1, n, n + 2): what torch makes of unit rows are its weights; two columns for torch."""
    return torch.eye(n, n + 2, dtype=torch.float64)[None, None]


@pytest.mark.parametrize(("n", "N"), SIZES)
@pytest.mark.parametrize("kind", ["bicubic", "bilinear"])
def test_antialiased_weights_are_torchs(kind: str, n: int, N: int) -> None:
    ours = antialiased_weights(kind, *axes(n, N), n, N, max(n, N))
    theirs = F.interpolate(units(n), (N, n + 2), mode=kind, antialias=True)[0, 0, :, :n].numpy()
    assert np.abs(ours - theirs).max() < 1e-12


@pytest.mark.parametrize(("n", "N"), SIZES)
def test_area_weights_are_torchs(n: int, N: int) -> None:
    ours = area_weights(*axes(n, N), n, N)
    theirs = F.adaptive_avg_pool2d(units(n), (N, n + 2))[0, 0, :, :n].numpy()
    assert np.abs(ours - theirs).max() < 1e-12


@pytest.mark.parametrize(("n", "N"), SIZES)
def test_nearest_holds_the_centre(n: int, N: int) -> None:
    i = np.arange(N)
    index = nearest_index(i, n, N)
    centre = (2 * i + 1) * n  # in halves of 1/N of a source pixel
    assert (2 * N * index <= centre).all()
    assert (centre < 2 * N * (index + 1)).all()


def test_padding_mirrors_or_repeats() -> None:
    assert padded_index(np.arange(7), 4, 1).tolist() == [0, 1, 2, 3, 2, 1, 0]
    assert padded_index(np.arange(7), 4, 0).tolist() == [0, 1, 2, 3, 3, 3, 3]
