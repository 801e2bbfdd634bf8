"""Metres to network range and back, from valid pixels alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ducos.normalise import Range, range_of

METRES = st.floats(0.015625, 8192, width=32)


def test_only_valid_pixels_count() -> None:
    low = torch.tensor([[[[1.0, 2.0], [-7.0, torch.nan]]], [[[5.0, 9.0], [6.0, 0.0]]]])
    valid = torch.tensor([[[[True, True], [False, False]]], [[[True, False], [True, False]]]])
    limits = range_of(low, valid)
    assert limits.lowest.flatten().tolist() == [1, 5]
    assert limits.highest.flatten().tolist() == [2, 6]
    assert limits.lowest.shape == limits.highest.shape == (2, 1, 1, 1)


def test_every_image_has_its_own_range() -> None:
    low = torch.rand(3, 1, 5, 4) * torch.tensor([1.0, 10.0, 100.0])[:, None, None, None]
    normalised = range_of(low).apply(low)
    assert (normalised.amin((1, 2, 3)) == 0).all()
    torch.testing.assert_close(normalised.amax((1, 2, 3)), torch.ones(3))


@given(values=st.lists(METRES, min_size=2, max_size=12))
def test_round_trip(values: list[float]) -> None:
    low = torch.tensor(values).reshape(1, 1, 1, -1)
    limits = range_of(low)
    back = limits.undo(limits.apply(low))
    torch.testing.assert_close(back, low, rtol=1e-6, atol=1e-6 * float(limits.span.max()))


@given(value=METRES)
def test_a_constant_map_becomes_zero_and_comes_back(value: float) -> None:
    low = torch.full((1, 1, 3, 3), value)
    limits = range_of(low)
    assert (limits.apply(low) == 0).all()
    assert torch.equal(limits.undo(limits.apply(low)), low)
    assert limits.span.item() == 1


def test_an_image_without_valid_pixels_stays_finite() -> None:
    low = torch.full((1, 1, 2, 2), torch.nan)
    limits = range_of(low, torch.zeros_like(low, dtype=torch.bool))
    assert limits.lowest.item() == limits.highest.item() == 0
    assert limits.undo(limits.apply(torch.ones(1, 1, 2, 2))).tolist() == [[[[1, 1], [1, 1]]]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype: torch.dtype) -> None:
    low = torch.rand(1, 1, 2, 2, dtype=dtype)
    limits = range_of(low, torch.ones_like(low, dtype=torch.bool))
    assert limits.apply(low).dtype == limits.undo(low).dtype == dtype


def test_the_map_is_affine_beyond_the_range() -> None:
    """Networks may predict beyond what was measured; that must not be clipped."""
    limits = Range(torch.tensor(2.0), torch.tensor(4.0))
    assert limits.undo(torch.tensor([-0.5, 1.5])).tolist() == [1, 5]
    assert limits.apply(torch.tensor([1.0, 5.0])).tolist() == [-0.5, 1.5]
