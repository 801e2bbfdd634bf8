"""DORNet, SGNet and DADA are the authors' networks, run under our contract.

Seeded weights everywhere; the authors' released DORNet-T weights where the shared folder
(DUCOS_SHARED, or ``shared`` beside the repository) is present.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from ducos.models.baselines.dada import DADA, adjust, diffuse
from ducos.models.baselines.dornet import DORNet, deformable_convolution
from ducos.models.baselines.sgnet import SGNet
from ducos.normalise import range_of
from ducos.resize import bicubic
from tests import parity_kit
from tests.places import SHARED

RELEASED = SHARED / "parity/released"


def loaded(module: nn.Module, name: str) -> nn.Module:
    module.load_state_dict(parity_kit.weights(name))
    return module.eval()


def pair(H: int, W: int, h: int, w: int, batch: int = 1) -> tuple[Tensor, Tensor]:
    """A smooth coloured scene and its low-resolution depth; every image of the batch differs."""
    y, x = torch.meshgrid(torch.linspace(0, 1, H), torch.linspace(0, 1, W), indexing="ij")
    waves = [torch.sin(f * x + g * y) for f, g in ((9, 2), (3, 7), (5, -4))]
    rgb = torch.stack([0.5 + 0.4 * (k + 1) / batch * torch.stack(waves) for k in range(batch)])
    depth = torch.stack([(x > 0.2 * (k + 1)) * 0.5 + 0.5 * y for k in range(batch)])[:, None]
    return rgb, bicubic(depth, (h, w)).clamp(0, 1)


# DORNet


@pytest.mark.parametrize(("name", "tiny"), [("dornet", False), ("dornet_t", True)])
@torch.no_grad()
def test_dornet_is_the_authors_network(name: str, tiny: bool) -> None:
    model = DORNet(tiny=tiny)
    parity_kit.assert_equal_keys(model, name)
    assert sum(p.numel() for p in model.parameters()) == parity_kit.facts(name)["parameters"]
    stored = parity_kit.arrays(name)
    depth = loaded(model, name).restore(stored["in_rgb"], stored["in_depth"])
    parity_kit.assert_matches(depth, stored["output"])
    features, vector = model.Enc(stored["in_depth"])
    parity_kit.assert_matches(features[:, :8], stored["mid_degradation_features_first8"])
    parity_kit.assert_matches(vector, stored["mid_degradation_vector"])


def test_dornet_without_its_training_branch_has_the_keys_of_the_tofdsr_checkpoints() -> None:
    keys = set(DORNet(tiny=True, training_branch=False).state_dict())
    published = {key for key, _ in parity_kit.facts("dornet_t")["keys"]}
    assert len(published) == 337
    assert keys == {key for key in published if not key.startswith("Dab.")}
    assert len(keys) == 289


@pytest.mark.parametrize("variant", ["NYU_T_X4", "NYU_T_X8", "NYU_T_X16", "RGBDD_T"])
@torch.no_grad()
def test_released_dornet_t_gives_the_authors_output(variant: str) -> None:
    weights = RELEASED / "DORNet-T" / f"{variant}.safetensors"
    if not weights.exists():
        pytest.skip(f"released weights not here: {weights.name}")
    model = DORNet(tiny=True).eval()
    model.load_state_dict(load_file(weights))
    with np.load(RELEASED / f"DORNet-T_{variant}.npz") as file:
        stored = {key: torch.from_numpy(file[key]) for key in file.files}
    depth = model.restore(stored["in_rgb"], stored["in_depth"])
    parity_kit.assert_matches(depth, stored["output"])


@torch.no_grad()
def test_dornet_forward_stretches_the_colours_and_upsamples_by_bicubic() -> None:
    model = loaded(DORNet(tiny=True), "dornet_t")
    rgb, low = pair(30, 41, 7, 9)
    assert rgb.amin() > 0.05  # so that stretching changes something
    stretched = (rgb - rgb.min()) / (rgb.max() - rgb.min())
    expected = model.restore(stretched, bicubic(low, (30, 41)))
    parity_kit.assert_matches(model(rgb, low).depth, expected, 1e-6)


def test_deformable_convolution_without_offsets_is_a_convolution() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 3, 6, 5, generator=generator)
    weight = torch.randn(4, 3, 3, 3, generator=generator)
    still, open_mask = torch.zeros(2, 18, 6, 5), torch.ones(2, 9, 6, 5)
    plain = F.conv2d(x, weight, padding=1)
    torch.testing.assert_close(deformable_convolution(x, still, open_mask, weight), plain)

    # every tap one row down: the result of the row below, and zeros beyond the last row
    down = still.clone()
    down[:, 0::2] = 1
    moved = deformable_convolution(x, down, open_mask, weight)
    below = F.conv2d(F.pad(x, (1, 1, 0, 2)), weight)
    torch.testing.assert_close(moved, below)

    # half a pixel right on a horizontal ramp: half a step more, inside
    ramp = torch.arange(5.0).expand(1, 1, 6, 5)
    right = torch.zeros(1, 18, 6, 5)
    right[:, 1::2] = 0.5
    centre_tap = torch.zeros(1, 1, 3, 3)
    centre_tap[..., 1, 1] = 1
    sampled = deformable_convolution(ramp, right, torch.ones(1, 9, 6, 5), centre_tap)
    torch.testing.assert_close(sampled[..., :4], ramp[..., :4] + 0.5)


# SGNet


@pytest.mark.parametrize("scale", [4, 8])
@torch.no_grad()
def test_sgnet_is_the_authors_network(scale: int) -> None:
    """In float64: phases next to ±π may jump by rounding alone in float32."""
    name = f"sgnet_x{scale}"
    model = SGNet(scale=scale)
    parity_kit.assert_equal_keys(model, name)
    assert sum(p.numel() for p in model.parameters()) == parity_kit.facts(name)["parameters"]
    stored = parity_kit.arrays(name)
    model = loaded(model, name).double()
    depth, gradient = model.restore(stored["in_rgb"].double(), stored["in_depth_lr"].double())
    parity_kit.assert_matches(depth, stored["output"])
    parity_kit.assert_matches(gradient, stored["out_gradient"])


@torch.no_grad()
def test_sgnet_uses_a_map_of_its_native_ratio_untouched() -> None:
    torch.manual_seed(0)
    model = SGNet(scale=4, channels=16).eval()
    rgb, low = pair(24, 32, 6, 8)
    expected, gradient = model.restore(range_of(rgb).apply(rgb), low)
    prediction = model(rgb, low)
    parity_kit.assert_matches(prediction.depth, expected, 1e-6)
    parity_kit.assert_matches(prediction.aux["gradient"], gradient, 1e-6)


@pytest.mark.parametrize("low_size", [(6, 8), (5, 9), (17, 21)])
def test_sgnet_resamples_other_ratios_to_the_same_field_of_view(low_size: tuple[int, int]) -> None:
    """A slanted plane must arrive at the network as the same plane, padded or not."""
    model = SGNet(scale=4, channels=16)
    H, W = 26, 35
    columns = (torch.arange(low_size[1]) + 0.5) / low_size[1]
    low = columns.expand(1, 1, *low_size).contiguous()
    native = model.at_native_ratio(low, H, W)
    assert native.shape[-2:] == (7, 9)
    expected = (torch.arange(9) + 0.5) * 4 / W
    # the outer pixels see the border or the mirrored padding
    torch.testing.assert_close(native[0, 0, 3, 1:7], expected[1:7], atol=0.01, rtol=0)


def test_sgnet_trains_everything_that_reaches_its_output() -> None:
    model = SGNet(scale=4, channels=16)
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    assert frozen == set(parity_kit.facts("sgnet_x4")["unused_parameters"])
    prediction = model(*pair(16, 24, 4, 6))
    prediction.depth.abs().mean().backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is None) == (name in frozen), name
        assert parameter.grad is None or bool(parameter.grad.isfinite().all()), name


# DADA


@torch.no_grad()
def test_dada_is_the_authors_network() -> None:
    model = DADA(free_steps=12, trained_steps=8)
    parity_kit.assert_equal_keys(model, "dada")
    assert sum(p.numel() for p in model.parameters()) == parity_kit.facts("dada")["parameters"]
    stored = parity_kit.arrays("dada")
    model = loaded(model, "dada")
    known = stored["in_mask_lr"] > 0.5
    depth = model.restore(stored["in_rgb"], stored["in_depth_lr"], stored["in_depth_up"], known)
    parity_kit.assert_matches(depth, stored["output"])
    vertical, horizontal = model.conductances(stored["in_rgb"], stored["in_depth_up"])
    parity_kit.assert_matches(vertical, stored["out_vertical_coefficients"])
    parity_kit.assert_matches(horizontal, stored["out_horizontal_coefficients"])


@torch.no_grad()
def test_dada_returns_the_measurements_as_cell_means_but_not_in_holes() -> None:
    model = loaded(DADA(free_steps=5, trained_steps=0), "dada")
    rgb, low = pair(24, 36, 6, 9)
    valid = torch.ones_like(low, dtype=torch.bool)
    valid[..., 2, 3] = False
    low[..., 2, 3] = 1.0
    means = F.avg_pool2d(model(rgb, low, valid).depth, 4)
    torch.testing.assert_close(means[valid], low[valid], atol=1e-5, rtol=0)
    assert (means - low)[~valid].abs().min() > 1e-3
    means = F.avg_pool2d(model(rgb, low).depth, 4)
    torch.testing.assert_close(means, low, atol=1e-5, rtol=0)


def test_diffusion_moves_depth_and_makes_none() -> None:
    generator = torch.Generator().manual_seed(0)
    depth = torch.rand(1, 1, 7, 8, generator=generator, dtype=torch.float64)
    vertical = torch.rand(1, 1, 6, 8, generator=generator, dtype=torch.float64)
    horizontal = torch.rand(1, 1, 7, 7, generator=generator, dtype=torch.float64)
    step = diffuse(depth, vertical, horizontal)
    torch.testing.assert_close(step.sum(), depth.sum())
    assert step.var() < depth.var()
    # closed borders: nothing flows
    torch.testing.assert_close(diffuse(depth, 0 * vertical, 0 * horizontal), depth)
    low = torch.full((1, 1, 2, 2), 3.0, dtype=torch.float64)
    adjusted = adjust(depth[..., :6, :], low, torch.ones_like(low, dtype=torch.bool))
    torch.testing.assert_close(F.adaptive_avg_pool2d(adjusted, 2), low)


def test_dada_trains_through_its_last_steps() -> None:
    torch.manual_seed(0)
    model = DADA(free_steps=3, trained_steps=2).train()
    model(*pair(32, 32, 4, 4, batch=2)).depth.square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
    assert model.logk.grad is not None
    assert model.logk.grad.abs() > 0


# All of them


MODELS = {
    "dornet-t": lambda: DORNet(tiny=True),
    "sgnet": lambda: SGNet(scale=4, channels=16),
    "dada": lambda: DADA(free_steps=3, trained_steps=1),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sizes", [(33, 50, 9, 13), (31, 45, 3, 4), (16, 16, 16, 16), (5, 7, 1, 2)])
@torch.no_grad()
def test_any_size_and_ratio_and_images_do_not_mix(name: str, sizes: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    rgb, low = pair(*sizes, batch=2)
    depth = model(rgb, low).depth
    assert depth.shape == (2, 1, *sizes[:2])
    assert bool(depth.isfinite().all())
    alone = torch.cat([model(rgb[k : k + 1], low[k : k + 1]).depth for k in range(2)])
    parity_kit.assert_matches(depth, alone, 1e-3)
    assert (depth[0] - depth[1]).abs().max() > 1e-4
