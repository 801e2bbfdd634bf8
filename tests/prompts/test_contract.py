"""One contract for every prompt: what DuCos may rely on, whichever it gets."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ducos.errors import InputError
from ducos.prompts import PROMPTS, Prompt, PromptModel, create_prompt, set_tuning
from ducos.prompts.tiny import TinyPrompt
from ducos.resize import bilinear

# Small enough to build for every run; the others differ from these in width and depth only.
QUICK: dict[str, dict[str, Any]] = {
    "tiny": {"widths": (6, 6, 8, 8)},
    "depth-anything-v2-s": {"side": 28},
    "dinov2-s": {"side": 28},
}
SIZES = [(32, 64), (33, 47), (45, 31), (5, 7), (1, 1)]


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(params=[name for name in QUICK if name in PROMPTS])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def build(name: str, **options: Any) -> Any:
    torch.manual_seed(0)
    return create_prompt(name, **QUICK[name], **options).eval()


def test_it_declares_itself(name: str) -> None:
    prompt = build(name)
    assert isinstance(prompt, PromptModel)
    assert len(prompt.channels) == 4
    assert all(isinstance(c, int) and c > 0 for c in prompt.channels)
    assert prompt.multiple_of >= 1
    assert isinstance(prompt.inverse, bool)
    assert prompt.licence == PROMPTS[name].licence


@pytest.mark.parametrize("size", SIZES)
def test_it_takes_any_size(name: str, size: tuple[int, int]) -> None:
    prompt = build(name)
    rgb = noise(2, 3, *size)
    kept = rgb.clone()
    with torch.no_grad():
        said = prompt(rgb)
    assert isinstance(said, Prompt)
    assert torch.equal(rgb, kept)
    assert len(said.features) == 4
    for feature, channels in zip(said.features, prompt.channels, strict=True):
        assert feature.shape[:2] == (2, channels)
        assert feature.isfinite().all()
    if said.depth is not None:
        assert said.depth.shape == (2, 1, *size)
        assert said.depth.isfinite().all()


def test_a_batch_is_its_images(name: str) -> None:
    prompt, rgb = build(name), noise(2, 3, 33, 47)
    with torch.no_grad():
        together = prompt(rgb)
        alone = prompt(rgb[1:])
    for a, b in zip(together.features, alone.features, strict=True):
        torch.testing.assert_close(a[1:], b, rtol=1e-3, atol=1e-4)


def test_it_is_deterministic(name: str) -> None:
    prompt, rgb = build(name), noise(1, 3, 33, 47)
    with torch.no_grad():
        first = prompt(rgb).features[3]
        prompt(noise(1, 3, 20, 20))
        assert torch.equal(prompt(rgb).features[3], first)


def test_tuning_chooses_what_is_trained(name: str) -> None:
    def trained(tuning: str) -> set[str]:
        prompt = build(name, tuning=tuning).train()
        return {n for n, p in prompt.named_parameters() if p.requires_grad}

    everything = {n for n, _ in build(name).named_parameters()}
    assert trained("frozen") == set()
    assert trained("full") == everything
    assert trained("bias") == {n for n in everything if n.endswith(".bias")}
    assert trained("bias")
    with pytest.raises(InputError, match="frozen"):
        build(name, tuning="some")


def test_random_weights_are_trained_by_default(name: str) -> None:
    """Freezing random numbers helps nobody; only published weights are frozen unasked."""
    assert all(p.requires_grad for p in build(name).parameters())


def test_a_frozen_prompt_builds_no_graph(name: str) -> None:
    said = build(name, tuning="frozen").train()(noise(1, 3, 32, 32))
    assert not any(f.requires_grad for f in said.features)


def test_tuning_can_be_changed_later() -> None:
    prompt = TinyPrompt(widths=(6, 6, 8, 8))
    set_tuning(prompt, "frozen")
    set_tuning(prompt, "full")
    assert all(p.requires_grad for p in prompt.parameters())


def test_every_entry_tells_its_licence() -> None:
    for name, entry in PROMPTS.items():
        assert entry.licence, name
        assert entry.about, name


def test_mistakes_name_what_is_wrong() -> None:
    with pytest.raises(InputError, match="tiny"):
        create_prompt("small")
    with pytest.raises(InputError, match="wdths"):
        create_prompt("tiny", wdths=3)
    with pytest.raises(InputError, match="widths"):
        create_prompt("tiny", widths=[8, 8, 8])


# `tiny` itself


@pytest.mark.parametrize("size", [(33, 47), (64, 70), (20, 100)])
def test_tinys_maps_cover_exactly_the_image(size: tuple[int, int]) -> None:
    """The same picture, stretched to the next multiple of 32, has the same features."""
    prompt = build("tiny")
    rgb = noise(1, 3, *size)
    whole = tuple(-(-side // 32) * 32 for side in size)
    with torch.no_grad():
        here, there = prompt(rgb), prompt(bilinear(rgb, whole))  # type: ignore[arg-type]
    for feature, stride, expected in zip(here.features, (32, 16, 8, 4), there.features):
        assert feature.shape[-2:] == (whole[0] // stride, whole[1] // stride)
        torch.testing.assert_close(feature, expected)


def test_tinys_maps_run_from_coarse_to_fine() -> None:
    with torch.no_grad():
        features = build("tiny")(noise(1, 3, 64, 96)).features
    assert [tuple(f.shape[-2:]) for f in features] == [(2, 3), (4, 6), (8, 12), (16, 24)]


def test_tiny_learns_through_features_and_depth() -> None:
    prompt = build("tiny", tuning="full").train()
    said = prompt(noise(1, 3, 40, 40))
    total = said.depth.square().mean() + sum(f.square().mean() for f in said.features)
    total.backward()
    for parameter_name, parameter in prompt.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().sum() > 0, parameter_name
