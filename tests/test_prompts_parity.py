"""Foundation prompts against outputs of the authors' code (see tests/parity)."""

import pytest
import torch
import torch.nn.functional as F

from ducos.prompts.depth_anything_v2 import DepthAnythingV2
from ducos.prompts.image import to_working_size
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
