"""PromptDA: parity with the authors' code, with its port in `transformers`, and our contract."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from ducos.errors import InputError
from ducos.models.baselines.promptda import PromptDA, authors_weights
from ducos.prompts.image import imagenet
from ducos.prompts.transformers_layout import from_authors_keys
from ducos.prompts.vit import Position
from tests.parity_kit import arrays, assert_matches, facts, weights

NAME = "promptda_vits"


@pytest.fixture(scope="module")
def model() -> PromptDA:
    """With the seeded weights of the parity vector."""
    model = PromptDA("s")
    model.load_state_dict(authors_weights(weights(NAME)))
    return model.requires_grad_(False)


def test_keys_and_parameters_are_the_authors(model: PromptDA) -> None:
    theirs = {key: list(shape) for key, shape in facts(NAME)["keys"]}
    ours = {key: list(value.shape) for key, value in model.state_dict().items()}
    assert theirs == ours | {"_mean": [1, 3, 1, 1], "_std": [1, 3, 1, 1]}
    assert sum(p.numel() for p in model.parameters()) == facts(NAME)["parameters"] == 25_083_073


def test_equals_the_authors(model: PromptDA) -> None:
    reference = arrays(NAME)
    ours = model(reference["in_rgb"], reference["in_prompt_depth"]).depth
    rounding = facts(NAME)["without_mkldnn_max_abs"]["output"]
    assert (ours - reference["output"]).abs().max() <= 10 * rounding


@pytest.mark.parametrize("form", ["checkpoint", "transformers"])
def test_published_files_load(model: PromptDA, tmp_path: Path, form: str) -> None:
    if form == "checkpoint":
        path = tmp_path / "model.ckpt"
        state = {f"pipeline.{key}": value for key, value in weights(NAME).items()}
        torch.save({"state_dict": state, "epoch": 1}, path)
    else:
        state = from_authors_keys(model.state_dict())
        path = tmp_path / "model.safetensors"
        save_file({key: value.contiguous() for key, value in state.items()}, path)
    loaded = PromptDA("s", weights=tmp_path)
    for key, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], value), key


def test_transformers_computes_the_same_under_its_position_rule(
    model: PromptDA, tmp_path: Path
) -> None:
    from transformers import PromptDepthAnythingConfig, PromptDepthAnythingForDepthEstimation

    config = PromptDepthAnythingConfig(depth_estimation_type="metric")
    config.backbone_config.set_output_features_output_indices(None, [3, 6, 9, 12])
    config.save_pretrained(tmp_path)
    state = from_authors_keys(model.state_dict())
    written = {key: value.contiguous() for key, value in state.items()}
    save_file(written, tmp_path / "model.safetensors", metadata={"format": "pt"})
    theirs = PromptDepthAnythingForDepthEstimation.from_pretrained(tmp_path).eval()

    ours = PromptDA("s", weights=tmp_path)
    ours.pretrained.position = Position.SIZE
    reference = arrays(NAME)
    image, measured = imagenet(reference["in_rgb"]), reference["in_prompt_depth"]
    with torch.no_grad():
        expected = theirs(image, prompt_depth=measured).predicted_depth
        assert_matches(ours.at_working_size(image, measured)[:, 0], expected, 1e-5)


@pytest.mark.parametrize(("size", "low_size"), [((61, 83), (9, 31)), ((30, 47), (30, 47))])
def test_any_size_and_ratio(
    model: PromptDA, size: tuple[int, int], low_size: tuple[int, int]
) -> None:
    generator = torch.Generator().manual_seed(0)
    rgb, low = torch.rand(2, 3, *size, generator=generator), torch.rand(2, 1, *low_size)
    depth = model(rgb, low).depth
    assert depth.shape == (2, 1, *size)
    for one, measured in zip(depth, low):
        assert measured.min() <= one.min()
        assert one.max() <= measured.max()
    torch.testing.assert_close(model(rgb[1:], low[1:]).depth, depth[1:], atol=1e-5, rtol=1e-4)


def test_large_images_are_shrunk_inside(model: PromptDA) -> None:
    small = PromptDA("s", longest=70)
    small.load_state_dict(model.state_dict())
    seen: list[Tensor] = []
    small.pretrained.patch_embed.register_forward_hook(
        lambda _, inputs, out: seen.append(inputs[0])
    )
    with torch.no_grad():
        depth = small(torch.rand(1, 3, 120, 160), torch.rand(1, 1, 12, 16)).depth
    assert depth.shape == (1, 1, 120, 160)
    assert max(seen[0].shape[-2:]) == 70


def test_a_constant_map_stays_constant(model: PromptDA) -> None:
    """The original divides by zero here."""
    depth = model(torch.rand(1, 3, 42, 42), torch.full((1, 1, 5, 5), 0.25)).depth
    assert torch.equal(depth, torch.full((1, 1, 42, 42), 0.25))


def test_sizes_without_weights_say_so() -> None:
    with pytest.raises(InputError, match="expected one with weights: s, l"):
        PromptDA("b", weights="hub")
    with pytest.raises(InputError, match="expected one of s, b, l"):
        PromptDA("xl")
