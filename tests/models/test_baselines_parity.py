"""The classic baselines are the authors' networks, run under our contract.

Seeded weights everywhere; the authors' released weights and the benchmark where the shared folder
(DUCOS_SHARED, or ``shared`` beside the repository) is present.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.fft
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn

from ducos.models.baselines.cunet import CUNet
from ducos.models.baselines.dctnet import SMALLEST_SIDE, DCTNet, dct2, inverse_dct2
from ducos.models.baselines.djf import DJF
from ducos.models.baselines.dkn import DKN, sample_taps
from ducos.models.baselines.fdkn import FDKN
from ducos.models.baselines.fdsr import FDSR
from ducos.resize import bicubic
from tests import parity_kit
from tests.places import SHARED


class Baseline(NamedTuple):
    """guide: name of the stored guide; reverse: the network takes its colours as B, G, R."""

    build: Callable[..., nn.Module]
    parameters: int
    guide: str = "in_rgb"
    reverse: bool = False


BASELINES = {
    "djf": Baseline(DJF, 56_323),
    "djfr": Baseline(partial(DJF, residual=True), 56_323),
    "cunet": Baseline(CUNet, 207_375, guide="in_luma"),
    "dkn": Baseline(DKN, 1_158_070, reverse=True),
    "fdkn": Baseline(FDKN, 693_856, reverse=True),
    "fdsr": Baseline(FDSR, 601_105, reverse=True),
    "dctnet": Baseline(DCTNet, 482_865),
}
WIDE = (128, 64, 128, 64)
RELEASED = {
    "DJF_x4": ("djf", {}),
    "DJF_x8": ("djf", {}),
    "DJF_x16": ("djf", {}),
    "DJFR_x4": ("djfr", {}),
    "DJFR_x8": ("djfr", {}),
    "DJFR_x16": ("djfr", {"filters": WIDE}),
    "CUNet_depth_x4": ("cunet", {}),
    "FDKN_8x": ("fdkn", {}),
    "DCTNet_4X": ("dctnet", {}),
    "DCTNet_8X": ("dctnet", {}),
    "DCTNet_16X": ("dctnet", {}),
    "DCTNet_RealScene": ("dctnet", {}),
}

each_baseline = pytest.mark.parametrize("name", BASELINES)


def seeded(name: str) -> nn.Module:
    """The network with the parity vectors' weights."""
    model = BASELINES[name].build()
    model.load_state_dict(parity_kit.weights(name))
    return model.eval()


def scene(height: int, width: int, scale: int, name: str) -> tuple[Tensor, Tensor]:
    """The parity vectors' scene as rgb and low, such that the network sees what was stored."""
    images = parity_kit.fill.images(height, width, scale)
    rgb, low = torch.from_numpy(images["rgb"]), torch.from_numpy(images["depth_lr"])
    return (rgb.flip(1) if BASELINES[name].reverse else rgb), low


def from_shared(path: str) -> Path:
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"{path} is not in the shared folder; set DUCOS_SHARED")
    return found


def assert_forward_matches(name: str, depth: Tensor, output: Tensor) -> None:
    """DJF's stored output lacks 6 px per side and feels zero padding on 6 more; ours neither."""
    if name in ("djf", "djfr"):
        depth, output = depth[..., 12:-12, 12:-12], output[..., 6:-6, 6:-6]
    parity_kit.assert_matches(depth, output)


@each_baseline
def test_has_the_authors_keys_and_size(name: str) -> None:
    model = BASELINES[name].build()
    parity_kit.assert_equal_keys(model, name)
    assert sum(p.numel() for p in model.parameters()) == BASELINES[name].parameters


@each_baseline
def test_is_the_authors_function(name: str) -> None:
    stored = parity_kit.arrays(name)
    with torch.no_grad():
        output = seeded(name).filter(stored[BASELINES[name].guide], stored["in_depth"])
    parity_kit.assert_matches(output, stored["output"])


@each_baseline
def test_forward_prepares_what_the_authors_feed(name: str) -> None:
    stored = parity_kit.arrays(name)
    height, width = stored["in_depth"].shape[-2:]
    with torch.no_grad():
        prediction = seeded(name)(*scene(height, width, 4, name))
    assert prediction.depth.shape == (1, 1, height, width)
    assert_forward_matches(name, prediction.depth, stored["output"])


@pytest.mark.parametrize("variant", RELEASED)
def test_released_weights_give_the_authors_output(variant: str) -> None:
    name, arguments = RELEASED[variant]
    facts = json.loads(from_shared(f"parity/released/{variant}.json").read_text())
    weights = load_file(from_shared("parity/released") / facts["converted_file"])
    model = BASELINES[name].build(**arguments)
    model.load_state_dict({key.removeprefix("module."): value for key, value in weights.items()})
    model.eval()
    with np.load(from_shared(f"parity/released/{variant}.npz")) as file:
        stored = {key: torch.from_numpy(file[key]) for key in file.files}
    with torch.no_grad():
        output = model.filter(stored[BASELINES[name].guide], stored["in_depth"])
        height, width = stored["in_depth"].shape[-2:]
        prediction = model(*scene(height, width, facts["input_scale"], name))
    parity_kit.assert_matches(output, stored["output"])
    assert_forward_matches(name, prediction.depth, stored["output"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_dctnet_reproduces_its_published_figure() -> None:
    """README of its authors: 1.848 on Lu x8 (HR range, no crop, sides cut to a multiple of 8)."""
    weights = load_file(from_shared("parity/released/DCTNet/8X.safetensors"))
    model = DCTNet().eval()
    model.load_state_dict({key.removeprefix("module."): value for key, value in weights.items()})
    errors = []
    for folder in sorted(from_shared("bench/lu6").iterdir()):
        target = torch.from_numpy(np.asarray(Image.open(folder / "depth.png"), np.float32))[
            None, None
        ]
        rgb = torch.from_numpy(np.asarray(Image.open(folder / "rgb.png"), np.float32) / 255)
        height, width = (side // 8 * 8 for side in target.shape[-2:])
        target = target[..., :height, :width]
        rgb = rgb.permute(2, 0, 1)[None, :, :height, :width]
        lowest, span = target.min(), target.max() - target.min()
        low = (bicubic(target, (height // 8, width // 8)) - lowest) / span
        with torch.no_grad():
            depth = model(rgb, low).depth.clamp(0, 1) * span + lowest
        errors.append((depth - target).square().mean().sqrt().item())
    assert len(errors) == 6
    assert np.mean(errors) == pytest.approx(1.8477, abs=2e-4)


# The contract.

SIZES = {  # rgb size, low size
    "odd sides, ratios differ per axis": ((37, 53), (11, 9)),
    "just a little larger": ((33, 47), (29, 41)),
    "factor 11.6": ((58, 70), (5, 6)),
    "same size": ((19, 24), (19, 24)),
    "low larger than rgb": ((21, 18), (30, 40)),
    "smaller than every kernel": ((3, 5), (2, 2)),
    "one row": ((1, 40), (1, 5)),
    "one pixel": ((1, 1), (1, 1)),
}


@each_baseline
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_any_size_and_ratio(name: str, sizes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    size, low_size = sizes
    torch.manual_seed(0)
    rgb, low = torch.rand(2, 3, *size), torch.rand(2, 1, *low_size)
    model = seeded(name)
    with torch.no_grad():
        both = model(rgb, low, valid=torch.ones_like(low, dtype=torch.bool)).depth
        second = model(rgb[1:], low[1:]).depth
    assert both.shape == (2, 1, *size)
    assert both.isfinite().all()
    torch.testing.assert_close(both[1:], second, atol=1e-4, rtol=1e-4)


@each_baseline
def test_gradients_reach_all_that_reaches_the_output(name: str) -> None:
    model = seeded(name)
    model(*scene(32, 48, 4, name)).depth.square().mean().backward()
    untouched = {
        key
        for key, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    }
    assert untouched == set(parity_kit.facts(name)["unused_parameters"])


@each_baseline
def test_trains_from_its_initialisation(name: str) -> None:
    torch.manual_seed(0)
    model = BASELINES[name].build()
    target = torch.from_numpy(parity_kit.fill.images(32, 48, 4)["depth_hr"])
    rgb, low = scene(32, 48, 4, name)
    optimizer = torch.optim.Adam(model.parameters(), 3e-4)
    losses: list[float] = []
    while len(losses) < 30 and (not losses or losses[-1] > 0.85 * losses[0]):
        loss = (model(rgb, low).depth - target).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] <= 0.85 * losses[0], losses


# What each file does its own way.


def test_djf_border_never_sees_padding() -> None:
    """On constant images each pixel's whole surrounding is the same, up to the edge."""
    model = seeded("djfr")
    with torch.no_grad():
        depth = model(torch.full((1, 3, 30, 41), 0.3), torch.full((1, 1, 5, 7), 0.7)).depth
    torch.testing.assert_close(depth, depth[..., 15:16, 20:21].expand_as(depth))


def test_dkn_single_pass_is_the_shifted_passes() -> None:
    stored = parity_kit.arrays("dkn")
    model = seeded("dkn")
    with torch.no_grad():
        weights, guide_offsets = model.ImageKernel(stored["in_rgb"])
        _, depth_offsets = model.DepthKernel(stored["in_depth"])
    for ours, theirs in (
        (weights, "mid_guide_weights_last_shift"),
        (guide_offsets, "mid_guide_offsets_last_shift"),
        (depth_offsets, "mid_depth_offsets_last_shift"),
    ):
        parity_kit.assert_matches(ours[..., 3::4, 3::4], stored[theirs])


@pytest.mark.parametrize("spread", [0.5, 12.0])
def test_samples_come_from_the_window_of_their_pixel(spread: float) -> None:
    """Against the original's way, a stack of zero-padded 15×15 windows; far offsets leave them."""
    torch.manual_seed(1)
    up = torch.rand(2, 1, 9, 14, dtype=torch.float64)
    offsets = spread * torch.randn(2, 18, 9, 14, dtype=torch.float64)
    windows = F.unfold(up, 15, padding=7).transpose(1, 2).reshape(-1, 1, 15, 15)
    expected = torch.empty(2, 9, 9, 14, dtype=torch.float64)
    for tap in range(9):
        shift = offsets[:, 2 * tap : 2 * tap + 2].permute(0, 2, 3, 1)  # (B, H, W, 2): column, row
        index = shift + torch.tensor([7 + tap // 3, 7 + tap % 3])
        grid = (index / 15 * 2 - 1).reshape(-1, 1, 1, 2)
        samples = F.grid_sample(windows, grid, align_corners=True)
        expected[:, tap] = samples.view(2, 9, 14)
    torch.testing.assert_close(sample_taps(up, offsets), expected)


@pytest.mark.parametrize("size", [(8, 12), (7, 11), (1, 5), (16, 1)])
def test_cosine_transform_is_the_textbook_one(size: tuple[int, int]) -> None:
    torch.manual_seed(2)
    x = torch.randn(2, 3, *size, dtype=torch.float64)
    spectrum = dct2(x)
    np.testing.assert_allclose(spectrum.numpy(), scipy.fft.dctn(x.numpy(), axes=(2, 3)), atol=1e-12)
    torch.testing.assert_close(inverse_dct2(spectrum), x)


def test_dctnet_is_never_born_dead() -> None:
    """Its last ReLU must let something through, whatever the seed; one in four would not."""
    rgb, low = scene(16, 24, 4, "dctnet")
    for seed in range(12):
        torch.manual_seed(seed)
        with torch.no_grad():
            assert (DCTNet()(rgb, low).depth > 0).float().mean() > 0.9, seed


def test_dctnet_pads_only_what_is_too_small() -> None:
    """At the smallest side that the network takes by itself, forward hands over the image as is."""
    torch.manual_seed(3)
    model = seeded("dctnet")
    handed: list[tuple[int, ...]] = []
    model.WPNet.register_forward_pre_hook(lambda _, inputs: handed.append(inputs[0].shape[-2:]))
    for side in (SMALLEST_SIDE - 1, SMALLEST_SIDE, SMALLEST_SIDE + 1):
        with torch.no_grad():
            assert model(torch.rand(1, 3, side, 40), torch.rand(1, 1, 4, 5)).depth.isfinite().all()
    assert handed == [(15, 45), (15, 40), (16, 40)]
