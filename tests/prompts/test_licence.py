"""Licences of prompt weights: refused, shown, noted; and frozen prompts that keep no graph."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from ducos.errors import InputError
from ducos.models import create
from ducos.models.checkpoint import stored_weights
from ducos.prompts import PROMPTS, create_prompt, run_prompt

NONCOMMERCIAL = [name for name, entry in PROMPTS.items() if "NC" in entry.licence]


def weight_file(name: str, folder: Path) -> Path:
    prompt = create_prompt(name)
    inner = prompt.encoder if name.startswith("dinov2") else prompt
    path = folder / f"{name}.safetensors"
    save_file(inner.state_dict(), path)
    return path


def test_table_and_networks_state_the_same_licence() -> None:
    for name, entry in PROMPTS.items():
        with torch.device("meta"):
            assert create_prompt(name).licence == entry.licence, name
    assert set(NONCOMMERCIAL) == {
        *(f"depth-anything-v2-{size}" for size in "bl"),
        *(f"unidepth-v2-{size}" for size in "sbl"),
        *(f"unidepth-v2old-{size}" for size in "sl"),
    }


@pytest.mark.parametrize("name", NONCOMMERCIAL)
@pytest.mark.parametrize("weights", ["hub", "absent.safetensors"])
def test_noncommercial_weights_are_refused_before_anything_is_read(name: str, weights: str) -> None:
    with pytest.raises(InputError, match=r"CC-BY-NC-4\.0") as refusal:
        create_prompt(name, weights=weights)
    for way in ("--accept-noncommercial", "prompt_options.accept_noncommercial = true"):
        assert way in str(refusal.value)
    assert "commercially" in str(refusal.value)


def test_models_refuse_them_too() -> None:
    with pytest.raises(InputError, match="--accept-noncommercial"):
        create("ducos", prompt="unidepth-v2-s", prompt_options={"weights": "hub"})


def test_accepted_weights_load_and_are_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = weight_file("unidepth-v2-s", tmp_path)
    assert caplog.messages == []  # random weights have no terms to show
    prompt = create_prompt("unidepth-v2-s", weights=path, accept_noncommercial=True)
    (said,) = caplog.messages
    assert "unidepth-v2-s" in said
    assert "CC-BY-NC-4.0; non-commercial use only" in said
    assert str(path) in said
    assert not any(parameter.requires_grad for parameter in prompt.parameters())


def test_unstated_licences_get_a_note(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    create_prompt("depthformer-swint", weights=weight_file("depthformer-swint", tmp_path))
    assert "licence none stated; without one the authors keep all rights" in caplog.text


def test_free_weights_load_without_a_word_about_terms(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = weight_file("dinov2-s", tmp_path)
    create_prompt("dinov2-s", weights=path)
    assert caplog.messages == [f"dinov2-s: weights from {path}, licence Apache-2.0"]


def test_checkpoints_leave_loaded_frozen_weights_out(tmp_path: Path) -> None:
    options = {"weights": str(weight_file("dinov2-s", tmp_path))}
    frozen = create("ducos", prompt="dinov2-s", prompt_options=options, channels=8)
    assert not any(name.startswith("prompt.") for name in stored_weights(frozen))
    options["tuning"] = "bias"
    tuned = create("ducos", prompt="dinov2-s", prompt_options=options, channels=8)
    kept = [name for name in stored_weights(tuned) if name.startswith("prompt.")]
    assert kept
    assert all(name.endswith("bias") for name in kept)


# Frozen prompts


def kept_for_backward(prompt: torch.nn.Module, rgb: Tensor) -> tuple[int, list[Tensor]]:
    """How many tensors a run keeps for a backward pass, and its feature maps."""
    count = 0

    def pack(tensor: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        features, _ = run_prompt(prompt, rgb)
    return count, list(features)


@pytest.mark.parametrize("name", ["tiny", "dinov2-s", "depth-anything-v2-s", "depthformer-swint"])
def test_frozen_prompts_keep_no_graph(name: str) -> None:
    options = {} if name == "tiny" else {"side": 42}
    rgb = torch.rand(1, 3, 64, 64)
    frozen = create_prompt(name, tuning="frozen", **options).train()
    for image in (rgb, rgb.clone().requires_grad_()):
        count, features = kept_for_backward(frozen, image)
        assert count == 0
        assert not any(feature.requires_grad for feature in features)
    biased = create_prompt(name, tuning="bias", **options)
    count, features = kept_for_backward(biased, rgb)
    assert count > 0
    assert all(feature.requires_grad for feature in features)


def test_running_a_prompt_leaves_the_gradient_switch_as_it_was() -> None:
    prompt = create_prompt("tiny", tuning="frozen")
    rgb = torch.rand(1, 3, 32, 32)
    run_prompt(prompt, rgb)
    assert torch.is_grad_enabled()
    with torch.no_grad():
        run_prompt(create_prompt("tiny", tuning="full"), rgb)
        assert not torch.is_grad_enabled()
