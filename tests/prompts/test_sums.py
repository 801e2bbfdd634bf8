"""The released network with each prompt has the parameters that the paper's Table 4 points to."""

import pytest
import torch

from ducos.models import create
from ducos.prompts import PROMPTS, create_prompt
from ducos.upscaling import parameter_count
from tests.parity_kit import facts

FUSION = 9_362_635  # the depth branch; the rest of 34 381 708 is adapter and Depth Anything v2 S

VECTORS = {
    "depth-anything-v2-s": "depth_anything_v2_vits_70x98",
    "unidepth-v2-s": "unidepth_v2_vits",
    "unidepth-v2-b": "unidepth_v2_vitb",
    "unidepth-v2-l": "unidepth_v2_vitl",
    "unidepth-v2old-s": "unidepth_v2old_vits",
    "unidepth-v2old-l": "unidepth_v2old_vitl",
    "depthformer-swint": "depthformer_swint",
    "depthformer-swinl": "depthformer_swinl",
}

# Millions: what the sum gives, and what the paper prints (None: not in Table 4).
SUMS = {
    "depth-anything-v2-s": (34.38, 34.38),
    "depth-anything-v2-b": (107.17, 107.19),
    "depth-anything-v2-l": (345.08, 345.06),
    "unidepth-v2-s": (43.78, None),
    "unidepth-v2-l": (363.59, None),
    "unidepth-v2old-s": (87.20, 87.21),
    "unidepth-v2old-l": (372.97, 372.97),
    "depthformer-swinl": (283.42, 282.76),
}


def count(prompt: str) -> tuple[int, int]:
    """Parameters of the released network with a prompt, and of the prompt alone."""
    with torch.device("meta"):
        return (
            parameter_count(create("ducos-released", prompt=prompt)),
            parameter_count(create_prompt(prompt)),
        )


@pytest.mark.parametrize("prompt", VECTORS)
def test_prompts_have_the_parameters_of_their_vectors(prompt: str) -> None:
    assert count(prompt)[1] == facts(VECTORS[prompt])["parameters"]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_sum_is_fusion_adapter_and_prompt(prompt: str) -> None:
    """The adapter: a 1×1 projection to 64 channels per map, and 135 424 parameters behind them."""
    whole, alone = count(prompt)
    with torch.device("meta"):
        channels = create_prompt(prompt).channels
    projections = sum(64 * (width + 1) for width in channels)
    assert whole == FUSION + 135_424 + projections + alone
    if len(set(channels)) == 1:  # the form in which the sum is usually quoted
        assert projections == 256 * (channels[0] + 1)


@pytest.mark.parametrize("prompt", SUMS)
def test_sums_stand_to_the_printed_ones_as_documented(prompt: str) -> None:
    ours, printed = SUMS[prompt]
    assert round(count(prompt)[0] / 1e6, 2) == ours
    if prompt == "depthformer-swinl":  # does not decompose: too large even without any adapter
        assert printed is not None
        assert round((count(prompt)[1] + FUSION) / 1e6, 2) == 283.10 > printed
    elif printed is not None:
        assert abs(ours - printed) < 0.025


def test_the_default_is_exact() -> None:
    assert count("depth-anything-v2-s") == (34_381_708, 24_785_089)
