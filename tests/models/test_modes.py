"""Two modes: faithful results agree with their measurements, repaired ones owe them nothing."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ducos import example, super_resolve
from ducos.doctor import noise_of
from ducos.errors import InputError
from ducos.files import read_low
from ducos.hints import MODES, mode_of
from ducos.models import create, predict_in_strips
from ducos.models.ducos.around import Around, linear_of, nearest_of, window_of
from ducos.models.ducos.mixing import OPERATOR, SIGMAS, tolerated
from ducos.resize import nearest

TOLD = {"mode": ["faithful", "repair"], "sensor": ["unknown", "tof"]}


def network() -> torch.nn.Module:
    """One that was never trained, and so overrules every measurement."""
    torch.manual_seed(0)
    model = create("ducos-compact", channels=8, rank=6, told=TOLD).eval()
    with torch.no_grad():
        for parameter in model.tail.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def scene(h: int, w: int, H: int, W: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(h)
    low = torch.rand(1, 1, h, w, generator=rng)  # whose edges say nothing: a mean over areas
    return torch.rand(1, 3, H, W, generator=rng), (low - low.min()) / (low.max() - low.min())


@pytest.mark.parametrize(
    ("sensor", "mode"),
    [("unknown", "faithful"), ("tof", "repair"), ("stereo", "faithful"), ("lidar", "faithful")],
)
def test_auto_is_what_fits_the_sensor(sensor: str, mode: str) -> None:
    assert mode_of("auto", sensor) == mode
    for asked in MODES:
        assert mode_of(asked, sensor) == asked


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InputError, match="unknown mode 'loyal'"):
        super_resolve(example.RGB, example.LOW, mode="loyal")


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("ratio", [1, 2, 4])
def test_a_faithful_result_agrees_with_every_measurement(ratio: int, noise: float) -> None:
    rgb, low = scene(12, 16, 12 * ratio, 16 * ratio)
    model = network()
    sigma = torch.full((1, 1, 1, 1), noise)
    with torch.inference_mode():
        faithful = model(rgb, low, None, {"mode": "faithful"}, noise=sigma).depth
        repaired = model(rgb, low, None, {"mode": "repair"}, noise=sigma).depth
    around = Around.of(rgb, low, None)
    assert around.shrinking.tolist() == [[1, 0, 0]]
    allowed = tolerated(around, sigma)
    off = (F.interpolate(faithful, size=low.shape[-2:], mode="area") - low).abs()
    assert (off <= allowed + 1e-5).all()
    assert ((F.interpolate(repaired, size=low.shape[-2:], mode="area") - low).abs() > allowed).any()
    if ratio == 1 and noise == 0:
        assert torch.allclose(faithful, low, atol=1e-6)


def test_holes_owe_nothing_and_each_map_has_its_mode() -> None:
    rgb, low = scene(12, 16, 48, 64)
    valid = torch.ones_like(low, dtype=torch.bool)
    valid[..., 4:8, 4:8] = False
    model = network()
    with torch.inference_mode():
        both = model(
            rgb.repeat(2, 1, 1, 1), low.repeat(2, 1, 1, 1), valid.repeat(2, 1, 1, 1),
            {"mode": ["faithful", "repair"]},
        ).depth  # fmt: skip
        alone = [model(rgb, low, valid, {"mode": mode}).depth for mode in MODES]
    assert torch.allclose(both, torch.cat(alone), atol=1e-5)
    off = (F.interpolate(both[:1], size=low.shape[-2:], mode="area") - low).abs()
    allowed = tolerated(Around.of(rgb, low, valid), None)
    assert (off <= allowed + 1e-5)[valid].all()
    assert (off > allowed)[~valid].any()


@pytest.mark.parametrize("size", [(48, 64), (61, 50)])
def test_strips_agree_too(size: tuple[int, int]) -> None:
    rgb, low = scene(12, 16, *size)
    model, sigma = network(), torch.full((1, 1, 1, 1), 0.01)
    told = {"mode": "faithful"}
    with torch.inference_mode():
        whole = model(rgb, low, None, told, noise=sigma).depth
    strips = predict_in_strips(model, rgb, low, None, told, noise=sigma, memory=200_000).depth
    assert torch.allclose(strips, whole, atol=2e-5)


def test_tolerance_is_for_noise_on_surfaces_and_for_edges_of_shrunk_maps() -> None:
    low = torch.zeros(1, 1, 8, 8)
    low[..., 4:] = 1
    sigma = torch.full((1, 1, 1, 1), 0.01)
    at_one = tolerated(Around.of(torch.zeros(1, 3, 8, 8), low, None), sigma)
    assert at_one[0, 0, 0, 0].item() == pytest.approx(SIGMAS * 0.01)
    assert at_one[0, 0, 0, 4].item() < 1e-3  # at an edge nothing is noise
    shrunk = tolerated(Around.of(torch.zeros(1, 3, 32, 32), low, None), sigma)
    assert shrunk[0, 0, 0, 4].item() == pytest.approx(OPERATOR * (1 - 1 / 16), abs=1e-3)
    resampled = Around.of(torch.zeros(1, 3, 32, 32), low, None, shrunk_by=torch.eye(3)[1:2])
    assert tolerated(resampled, None).max() == 0  # bicubic is the same in all programs


def test_growing_by_the_window_is_plain_resampling() -> None:
    low = torch.rand(1, 1, 5, 7)
    for size in ((5, 7), (20, 28), (13, 30)):
        window = window_of((5, 7), size, low)
        assert torch.equal(nearest_of(low, window), nearest(low, size))
        linear = F.interpolate(low, size=size, mode="bilinear")
        assert torch.allclose(linear_of(low, window), linear, atol=1e-5)


def test_the_noise_of_a_map_is_found() -> None:
    rng = np.random.default_rng(0)
    rgb = np.zeros((60, 80, 3), np.float32)
    for sigma in (0.002, 0.01):
        depth = (2 + rng.normal(0, sigma, (60, 80))).astype(np.float32)
        assert noise_of(read_low(depth, "m", None, None)) == pytest.approx(sigma, rel=0.2)
        result = super_resolve(rgb, depth, unit="m", model="bicubic", shift="off")
        assert result.noise == pytest.approx(sigma, rel=0.2)
    given = super_resolve(rgb, depth, unit="m", model="bicubic", shift="off", noise=0.5)
    assert given.noise == 0.5
    assert given.facts()["mode"] == "faithful"
