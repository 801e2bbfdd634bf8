"""A result stays near the range of its measurements, and is in metres what it says."""

from pathlib import Path

import numpy as np
import pytest
import torch

from ducos.files import read_depth
from ducos.models import Prediction
from ducos.upscaling import super_resolve
from ducos.upscaling.prediction import predict
from ducos.upscaling.upscaler import MARGIN

SIZE = (120, 160)


def levels(kind: str) -> np.ndarray:
    """8-bit disparity (15, 20) with zeros in it."""
    rng = np.random.default_rng(3)
    low = np.zeros((15, 20), np.uint8)
    if kind == "step":
        low[:, 10:] = 255
    elif kind == "dots":
        low[3:5, 3:5], low[9, :] = 200, 3
    else:
        low[:] = rng.integers(0, 255, low.shape)
        low[0, 0] = 0
    return low


def image() -> np.ndarray:
    rgb = np.random.default_rng(4).integers(0, 255, (*SIZE, 3), dtype=np.uint8)
    rgb[:, SIZE[1] // 2 :] //= 3
    return rgb


@pytest.mark.parametrize("model", ["bicubic", "guided-filter", "ducos-tiny"])
@pytest.mark.parametrize("kind", ["step", "dots", "random"])
def test_levels_with_zeros_are_written(tmp_path: Path, model: str, kind: str) -> None:
    """They overshot below 0, and the result could not be stored after all the work."""
    low = levels(kind)
    result = super_resolve(image(), low, model=model, shift="off")
    assert not result.metric
    spare = MARGIN * (int(low.max()) - int(low.min()))
    assert float(result.depth.min()) >= 0
    assert float(result.depth.max()) <= low.max() + spare
    result.save(tmp_path / "sharp.png")
    assert read_depth(tmp_path / "sharp.png").unit == "relative"


@pytest.mark.parametrize("model", ["bicubic", "guided-filter", "ducos-tiny"])
def test_metres_stay_in_the_range_of_the_measurements(model: str) -> None:
    low = (levels("random") / 100 + 0.3).astype(np.float32)
    depth = super_resolve(image(), low, model=model, unit="m", shift="off").depth
    assert float(depth.min()) >= 0.15  # half the nearest
    assert float(depth.max()) <= low.max() + MARGIN * (low.max() - low.min()) + 1e-5


class Wild(torch.nn.Module):
    """A network that leaves the range by ten times as much, below and above."""

    def forward(self, rgb: torch.Tensor, low: torch.Tensor, *more: object) -> Prediction:
        full = torch.nn.functional.interpolate(low, rgb.shape[-2:])
        return Prediction(20 * (full - 0.5))


@pytest.mark.parametrize("mode", ["faithful", "repair"])
@pytest.mark.parametrize("unit", ["m", "relative"])
def test_whatever_a_network_says_the_range_holds(mode: str, unit: str) -> None:
    low = (levels("random") / 100 + 0.3).astype(np.float32)
    model = Wild().eval()
    depth = super_resolve(image(), low, model=model, mode=mode, unit=unit, shift="off").depth
    lowest, highest, spare = low.min(), low.max(), MARGIN * (low.max() - low.min())
    assert float(depth.min()) == pytest.approx(lowest / 2)
    assert float(depth.max()) == pytest.approx(highest + spare)


def test_negative_levels_of_floats_stay() -> None:
    low = (levels("step").astype(np.float32) - 100) / 10
    depth = super_resolve(image(), low, model="bilinear", unit="relative", shift="off").depth
    assert float(depth.min()) == pytest.approx(-10)


class Doubtful(torch.nn.Module):
    """A network that is as unsure everywhere: by a tenth of the normalised range."""

    def forward(self, rgb: torch.Tensor, low: torch.Tensor, *more: object) -> Prediction:
        full = torch.nn.functional.interpolate(low, rgb.shape[-2:])
        return Prediction(full, {"sigma": torch.full_like(full, 0.1)})


def test_sigma_is_in_metres_of_each_map() -> None:
    """Two maps of one batch, with ranges of 1 m and 7 m: a tenth of each."""
    low = torch.stack([torch.linspace(1, 2, 24), torch.linspace(2, 9, 24)]).view(2, 1, 4, 6)
    valid = torch.ones(2, 1, 4, 6, dtype=torch.bool)
    sigma = predict(Doubtful(), torch.rand(2, 3, 8, 12), low, valid).aux["sigma"]
    torch.testing.assert_close(sigma[0], torch.full((1, 8, 12), 0.1))
    torch.testing.assert_close(sigma[1], torch.full((1, 8, 12), 0.7))


def test_sigma_of_the_shipped_network_grows_with_the_scene() -> None:
    """The same scene in other metres: depth and sigma are the same in its range."""
    low = (levels("random") / 255 + 1).astype(np.float32)
    near = super_resolve(image(), low, unit="m", shift="off", noise=0.01)
    far = super_resolve(image(), 4 * low, unit="m", shift="off", noise=0.04)
    np.testing.assert_allclose(far.sigma, 4 * near.sigma, rtol=2e-3, atol=2e-4)
    assert float(np.median(far.sigma)) > 2 * float(np.median(near.sigma)) > 0
