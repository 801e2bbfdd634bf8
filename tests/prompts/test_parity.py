"""Foundation prompts against outputs of the authors' code (see tests/parity)."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.prompts.depth_anything_v2 import DepthAnythingV2
from ducos.prompts.depthformer import DepthFormer
from ducos.prompts.image import to_working_size
from ducos.prompts.unidepth_parts import intrinsics
from ducos.prompts.unidepth_v2 import UniDepthV2
from ducos.prompts.unidepth_v2old import UniDepthV2Old
from tests.parity_kit import arrays, assert_equal_keys, assert_matches, facts, weights


@pytest.fixture(scope="module")
def depth_anything() -> DepthAnythingV2:
    """DA v2-S with the seeded weights that both of its vectors share."""
    model = DepthAnythingV2("s")
    assert_equal_keys(model, "depth_anything_v2_vits_70x98")
    model.load_state_dict(weights("depth_anything_v2_vits_70x98"))
    return model.requires_grad_(False)


@pytest.mark.parametrize("size", ["70x98", "98x126"])
def test_depth_anything_v2_equals_the_authors(depth_anything: DepthAnythingV2, size: str) -> None:
    reference = arrays(f"depth_anything_v2_vits_{size}")
    features, depth = depth_anything.at_working_size(reference["in_image"])
    assert_matches(depth[:, 0], reference["output"], 1e-5)
    for feature, block in zip(features, (3, 6, 9, 12), strict=True):
        tokens = feature.flatten(2).transpose(1, 2)
        assert_matches(tokens, reference[f"out_tokens_block_{block}"], 1e-5)


def test_depth_anything_v2_has_the_authors_parameters(depth_anything: DepthAnythingV2) -> None:
    count = sum(parameter.numel() for parameter in depth_anything.parameters())
    assert count == facts("depth_anything_v2_vits_70x98")["parameters"] == 24_785_089


def test_working_size_is_that_of_the_released_ducos() -> None:
    """64×96 works at 70×112, plain [0, 1]; the released depth is then resized corner on corner."""
    prefix = "depth_anything."
    every = weights("ducos_vits_64x96")
    model = DepthAnythingV2("s", imagenet=False)
    model.load_state_dict(
        {key.removeprefix(prefix): value for key, value in every.items() if key.startswith(prefix)}
    )
    reference = arrays("ducos_vits_64x96")
    image = to_working_size(reference["in_rgb"], None, model.multiple_of)
    assert image.shape[-2:] == (70, 112)
    with torch.no_grad():
        _, depth = model.at_working_size(image)
    depth = F.interpolate(depth, (64, 96), mode="bicubic", align_corners=True)
    assert_matches(depth, reference["out_foundation_depth"], 1e-5)


def assert_within_rounding(name: str, output: str, ours: Tensor) -> None:
    """Ten times what the authors' own network differs by between two ways to compute it."""
    about = facts(name)
    kinds = ("float32_vs_float64_max_abs", "without_mkldnn_max_abs")
    rounding = max((about.get(kind) or {}).get(output, 0.0) for kind in kinds)
    theirs = arrays(name)["output" if output == "output" else f"out_{output}"]
    assert ours.shape == theirs.shape
    error = (ours - theirs).abs().max().item()
    assert error <= 10 * rounding + 1e-5 * theirs.abs().max().item(), (output, error, rounding)


def seeded(model: nn.Module, name: str) -> nn.Module:
    assert_equal_keys(model, name)
    assert sum(p.numel() for p in model.parameters()) == facts(name)["parameters"]
    model.load_state_dict(weights(name))
    return model.requires_grad_(False)


@pytest.mark.parametrize(
    ("network", "name", "blocks"),
    [
        (UniDepthV2, "unidepth_v2_vits", (3, 6, 9, 12)),
        (UniDepthV2Old, "unidepth_v2old_vits", (9, 10, 11, 12)),
    ],
)
def test_unidepth_equals_the_authors(network: type, name: str, blocks: tuple[int, ...]) -> None:
    model = seeded(network("s"), name)
    found = model.at_working_size(arrays(name)["in_image"])
    assert_within_rounding(name, "output", found.depth)
    assert_within_rounding(name, "confidence", found.confidence)
    assert_within_rounding(name, "intrinsics", intrinsics(found.camera))
    for feature, block in zip(found.features, blocks, strict=True):
        assert_within_rounding(name, f"encoder_block_{block}", feature.permute(0, 2, 3, 1))
    if network is UniDepthV2:
        assert_within_rounding(name, "rays", found.rays)


def test_depthformer_equals_the_authors() -> None:
    """At 62×90, where patches, windows and mergings all need padding."""
    name = "depthformer_swint"
    model = seeded(DepthFormer("swint"), name)
    image = arrays(name)["in_image"]
    for level, feature in enumerate(model.backbone(image)):
        assert_within_rounding(name, f"backbone_{level}", feature)
    features, depth = model.at_working_size(image)
    for level, feature in enumerate(features, start=1):
        assert_within_rounding(name, f"neck_{level}", feature)
    assert_within_rounding(name, "output", depth)


@pytest.mark.parametrize(
    ("network", "size", "name"),
    [
        (UniDepthV2, "b", "unidepth_v2_vitb"),
        (UniDepthV2, "l", "unidepth_v2_vitl"),
        (UniDepthV2Old, "l", "unidepth_v2old_vitl"),
        (DepthFormer, "swinl", "depthformer_swinl"),
    ],
)
def test_larger_networks_have_the_authors_keys(network: type, size: str, name: str) -> None:
    with torch.device("meta"):
        model = network(size)
    assert_equal_keys(model, name)
    assert sum(p.numel() for p in model.parameters()) == facts(name)["parameters"]
