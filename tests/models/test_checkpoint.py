"""Weight files: strict, safe, atomic, and complete."""

import json
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.models import DuCos, checkpoint
from ducos.models.checkpoint import (
    ModelSpec,
    load_model,
    load_strictly,
    read_tensors,
    save_model,
    stored_weights,
    write_tensors,
)
from ducos.training.state import (
    load_optimizer,
    load_training,
    optimizer_tensors,
    save_training,
)

SPEC = ModelSpec(
    "ducos-compact",
    prompt="tiny",
    prompt_options={"widths": [6, 6, 8, 8]},
    kwargs={"channels": 8, "blocks": 1},
)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(1)
    return SPEC.build().eval()


@pytest.fixture
def path(model: nn.Module, tmp_path: Path) -> Path:
    path = tmp_path / "weights.safetensors"
    save_model(
        path, SPEC, stored_weights(model), {"licence": "Apache-2.0", "figures": {"rmse": 1.5}}
    )
    return path


def header_of(path: Path) -> dict[str, str]:
    return read_tensors(path)[1]


# Round trip


def test_the_file_alone_brings_the_model_back(model: nn.Module, path: Path) -> None:
    torch.manual_seed(99)
    again, spec, about = load_model(path)
    assert spec == SPEC
    assert about == {"licence": "Apache-2.0", "figures": {"rmse": 1.5}}
    assert not again.training
    rgb, low = noise(1, 3, 24, 20), noise(1, 1, 6, 5)
    with torch.no_grad():
        assert torch.equal(again(rgb, low).depth, model(rgb, low).depth)


def test_the_header_says_what_the_file_is(path: Path) -> None:
    header = header_of(path)
    assert header["format"] == "ducos-1"
    assert json.loads(header["spec"])["name"] == "ducos-compact"
    assert json.loads(header["about"])["licence"] == "Apache-2.0"


def test_what_was_written_does_not_change_with_the_model(model: nn.Module, tmp_path: Path) -> None:
    weights = stored_weights(model)
    assert not any(value.requires_grad for value in weights.values())
    write_tensors(tmp_path / "a.safetensors", weights, {})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    tensors, _ = read_tensors(tmp_path / "a.safetensors")
    assert any(value.any() for value in tensors.values())


def test_the_same_weights_give_the_same_bytes(model: nn.Module, tmp_path: Path) -> None:
    written = []
    for number in range(8):
        file = tmp_path / f"{number}.safetensors"
        save_model(file, SPEC, stored_weights(model), {"licence": "CC0", "steps": 3})
        written.append(file.read_bytes())
    assert set(written) == {written[0]}


def test_views_and_transposes_are_stored_by_value(tmp_path: Path) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    tensors = {"a": base, "b": base[1:], "c": base.T, "d": base.expand(2, 3, 4), "e": base[0, 0]}
    write_tensors(tmp_path / "a.safetensors", tensors, {"note": "views"})
    again, header = read_tensors(tmp_path / "a.safetensors")
    assert header["note"] == "views"
    for name, value in tensors.items():
        assert torch.equal(again[name], value), name


# Strictness


def test_a_missing_tensor_is_named(model: nn.Module, path: Path) -> None:
    weights = stored_weights(model)
    del weights["head.weight"]
    save_model(path, SPEC, weights, {})
    with pytest.raises(InputError, match=r"lacks.*head\.weight"):
        load_model(path)


def test_an_unknown_tensor_is_named(model: nn.Module, path: Path) -> None:
    save_model(path, SPEC, {**stored_weights(model), "haed.weight": torch.zeros(1)}, {})
    with pytest.raises(InputError, match=r"unknown.*haed\.weight"):
        load_model(path)


def test_a_misshapen_tensor_is_named(model: nn.Module, path: Path) -> None:
    save_model(path, SPEC, {**stored_weights(model), "head.bias": torch.zeros(9)}, {})
    with pytest.raises(InputError, match=r"misshapen.*head\.bias"):
        load_model(path)


def test_refusing_leaves_the_model_alone(model: nn.Module, path: Path) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    wrong = {name: value + 1 for name, value in stored_weights(model).items()}
    del wrong["head.bias"]
    with pytest.raises(InputError):
        load_strictly(model, wrong, path)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_weights_of_another_architecture_are_refused(path: Path, model: nn.Module) -> None:
    other = ModelSpec(**{**vars(SPEC), "kwargs": {"channels": 8, "blocks": 2}})
    save_model(path, other, stored_weights(model), {})
    with pytest.raises(InputError, match="lacks"):
        load_model(path)


# Foreign, broken and malicious files


class Bomb:
    """Unpickling it leaves a trace."""

    def __init__(self, trace: Path):
        self.trace = trace

    def __reduce__(self) -> tuple:
        return (Path.touch, (self.trace,))


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".safetensors"])
def test_pickles_are_refused_and_never_run(tmp_path: Path, suffix: str) -> None:
    trace, path = tmp_path / "it ran", tmp_path / f"weights{suffix}"
    path.write_bytes(pickle.dumps(Bomb(trace)))
    with pytest.raises(InputError, match="pickle"):
        load_model(path)
    torch.save({"weight": torch.zeros(3), "bomb": Bomb(trace)}, path)
    with pytest.raises(InputError, match="pickle"):
        load_model(path)
    assert not trace.exists()


@pytest.mark.parametrize("content", [b"", b"\0", b"garbage" * 100, b"\xff" * 64, b"{}" * 8])
def test_garbage_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match="safetensors"):
        load_model(path)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.99, 0.9999])
def test_a_truncated_file_is_refused(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match="safetensors"):
        load_model(path)


def test_a_folder_or_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such"):
        load_model(tmp_path / "nothing.safetensors")
    with pytest.raises(InputError):
        load_model(tmp_path)


def test_foreign_safetensors_are_refused_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "foreign.safetensors"
    save_file({"weight": torch.zeros(3)}, path)
    with pytest.raises(InputError, match="convert"):
        load_model(path)


@pytest.mark.parametrize(
    "spec",
    [
        "{", "[]", "3", "null", "{}",
        '{"name": "bicubic", "surprise": 1}',
        '{"name": "no such model"}',
        '{"name": 3}',
        '{"name": "bicubic", "kwargs": "channels"}',
        '{"name": "bicubic", "kwargs": {"surprise": 1}}',
        '{"name": "ducos-compact", "prompt": "no such prompt"}',
        '{"name": "ducos-compact", "prompt_options": {"surprise": 1}}',
        '{"name": "ducos-compact", "prompt_options": [1]}',
        '{"name": "ducos-compact", "kwargs": {"channels": "eight"}}',
    ],
)  # fmt: skip
def test_a_broken_header_is_refused(tmp_path: Path, spec: str) -> None:
    path = tmp_path / "weights.safetensors"
    write_tensors(path, {"a": torch.zeros(1)}, {"format": "ducos-1", "spec": spec, "about": "{}"})
    with pytest.raises(InputError):
        load_model(path)


def test_a_broken_about_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    header = {"format": "ducos-1", "spec": json.dumps({"name": "bicubic"}), "about": "{"}
    write_tensors(path, {}, header)
    with pytest.raises(InputError):
        load_model(path)


def test_training_states_and_weights_are_not_confused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="training state"):
        load_training(path)
    state = tmp_path / "last.safetensors"
    save_training(state, {"model": {"a": torch.zeros(1)}}, {"step": 1})
    with pytest.raises(InputError, match="not a ducos model"):
        load_model(state)


def test_a_training_state_without_values_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "last.safetensors"
    for header in ({"format": "ducos-1-training"}, {"format": "ducos-1-training", "values": "{"}):
        write_tensors(path, {"model/a": torch.zeros(1)}, header)
        with pytest.raises(InputError):
            load_training(path)


# Atomic writing


def test_an_error_while_writing_keeps_what_was_there(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises((TypeError, ValueError)):
        save_model(path, SPEC, {"a": torch.zeros(1)}, {"not json": object()})
    assert path.read_bytes() == before
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever safetensors makes of it
        write_tensors(path, {"a": torch.zeros(1)}, {"metadata": 3})  # type: ignore[dict-item]
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name], "a temporary file was left behind"


def test_a_writer_killed_at_any_moment_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    """Rewrites a file for ever, is killed; the file must be readable, and one of the versions."""
    path = tmp_path / "weights.safetensors"
    program = (
        "import sys, torch\n"
        "from pathlib import Path\n"
        "from ducos.models.checkpoint import write_tensors\n"
        "n = 0\n"
        "while True:\n"
        "    write_tensors(Path(sys.argv[1]), {'a': torch.full((200_000,), float(n))}, {})\n"
        "    n += 1\n"
        "    print(n, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < 5:
            pass
        writer.kill()
    tensors, _ = read_tensors(path)
    assert len(tensors["a"].unique()) == 1
    assert tensors["a"].shape == (200_000,)


def test_others_may_read_what_is_written(path: Path) -> None:
    """As any new file: the umask decides, not a private temporary file."""
    reference = path.with_name("reference")
    reference.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(reference.stat().st_mode)


def test_a_folder_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        write_tensors(tmp_path / "nowhere" / "a.safetensors", {"a": torch.zeros(1)}, {})


# Training state


def test_training_state_round_trip(tmp_path: Path) -> None:
    groups = {
        "model": {"a.weight": noise(3, 2), "odd/name": noise(2)},
        "rng": {"torch": torch.get_rng_state()},
        "counters": {"step": torch.tensor(7), "half": torch.tensor(0.5, dtype=torch.float64)},
    }
    values = {"step": 3, "best": float("inf"), "dual": {"multipliers": {"edge": 0.1 + 0.2}}}
    path = tmp_path / "last.safetensors"
    save_training(path, groups, values)
    groups_again, values_again = load_training(path)
    assert values_again == values  # floats to the last bit
    assert groups_again.keys() == groups.keys()
    for group, tensors in groups.items():
        assert groups_again[group].keys() == tensors.keys()
        for name, value in tensors.items():
            assert groups_again[group][name].dtype == value.dtype
            assert torch.equal(groups_again[group][name], value)


def test_optimizer_round_trip_continues_bit_for_bit(tmp_path: Path) -> None:
    def fresh() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Linear(1, 1))
        net[3].weight.requires_grad_(False)
        trainable = [p for p in net.parameters() if p.requires_grad]
        return net, torch.optim.Adam(trainable, lr=0.01, betas=(0.8, 0.99))

    def advance(net: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
        for step in steps:
            optimizer.zero_grad()
            net(noise(5, 4, seed=step)).square().sum().backward()
            optimizer.step()

    straight, optimizer = fresh()
    advance(straight, optimizer, range(3))
    path = tmp_path / "last.safetensors"
    save_training(
        path, {"model": stored_weights(straight), "optimizer": optimizer_tensors(optimizer)}, {}
    )
    advance(straight, optimizer, range(3, 6))

    groups, _ = load_training(path)
    resumed, other = fresh()
    load_strictly(resumed, groups["model"], path)
    load_optimizer(other, groups["optimizer"])
    assert other.param_groups[0]["betas"] == (0.8, 0.99)
    advance(resumed, other, range(3, 6))
    for a, b in zip(straight.parameters(), resumed.parameters()):
        assert torch.equal(a, b)
    theirs = optimizer_tensors(optimizer)
    for name, value in optimizer_tensors(other).items():
        assert torch.equal(value, theirs[name]), name


# Prompts with a source of their own


def foundation(tmp_path: Path, tuning: str) -> tuple[ModelSpec, Path]:
    """A spec whose prompt comes from a weight file of its own."""
    from ducos.prompts.depth_anything_v2 import DepthAnythingV2

    source = tmp_path / "foundation.safetensors"
    if not source.exists():
        torch.manual_seed(5)
        save_file(DepthAnythingV2("s", side=28).state_dict(), source)
    options: dict[str, Any] = {"side": 28, "weights": str(source), "tuning": tuning}
    kwargs = {"channels": 8, "blocks": 1, "iterations": 1}
    return ModelSpec("ducos", "depth-anything-v2-s", options, kwargs), source


@pytest.mark.parametrize("tuning", ["frozen", "bias"])
def test_frozen_foundation_weights_are_not_stored_again(tmp_path: Path, tuning: str) -> None:
    spec, source = foundation(tmp_path, tuning)
    model = spec.build().eval()
    assert isinstance(model, DuCos)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.01)
    path = tmp_path / "weights.safetensors"
    save_model(path, spec, stored_weights(model), {})
    stored = read_tensors(path)[0]
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained <= set(stored)
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    assert frozen
    assert not frozen & set(stored)
    assert path.stat().st_size < source.stat().st_size / 4

    again, _, _ = load_model(path)
    with torch.no_grad():
        rgb, low = noise(1, 3, 24, 20), noise(1, 1, 6, 5)
        assert torch.equal(again(rgb, low).depth, model(rgb, low).depth)


def test_a_fully_trained_foundation_is_stored_whole(tmp_path: Path) -> None:
    spec, _ = foundation(tmp_path, "full")
    model = spec.build()
    assert set(stored_weights(model)) == set(model.state_dict())


def test_nothing_of_this_module_unpickles() -> None:
    source = Path(checkpoint.__file__).read_text()
    assert "torch.load" not in source
    assert "import pickle" not in source
