"""A weight file is data: it cannot make the program build, fetch or agree to anything."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from ducos.errors import InputError
from ducos.models import ModelSpec, create, load_model, save_model, stored_weights
from ducos.models.header import read_about
from ducos.prompts.weights import known_repositories


@pytest.fixture(scope="module")
def weights() -> dict[str, Tensor]:
    return stored_weights(create("ducos-compact", prompt="tiny"))


def write(path: Path, weights: dict[str, Tensor], about: str = "{}", **spec: object) -> Path:
    stated = {"name": "ducos-compact", "prompt": "tiny", **spec}
    save_file(weights, path, {"format": "ducos-1", "spec": json.dumps(stated), "about": about})
    return path


def test_an_honest_file_still_loads(tmp_path: Path, weights: dict[str, Tensor]) -> None:
    model, spec, about = load_model(write(tmp_path / "a.safetensors", weights, '{"version": "1"}'))
    assert (spec.name, about) == ("ducos-compact", {"version": "1"})
    assert all(torch.equal(value, weights[name]) for name, value in stored_weights(model).items())
    assert {value.device.type for value in model.state_dict().values()} == {"cpu"}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"kwargs": {"channels": 30_000}}, "another model or other arguments"),
        ({"kwargs": {"channels": 10**12}}, "asks for a network with an argument of 1000000000000"),
        ({"kwargs": {"rank": 1e300}}, "asks for a network with an argument of 1e.300"),
        ({"kwargs": {"channels": -1}}, "channels must be at least 1"),
        ({"kwargs": {"told": {"sensor": ["x"] * 3_000_000}}}, "no training writes|other arguments"),
        ({"name": "ducos", "prompt": "depth-anything-v2-l"}, "another model or other arguments"),
        ({"name": "sgnet-x16", "prompt": None}, "another model or other arguments"),
        ({"surprise": 1}, "broken header"),
        ({"kwargs": {"surprise": 1}}, "surprise"),
        ({"prompt_options": {"surprise": 1}}, "surprise"),
        ({"kwargs": []}, "broken header"),
        ({"prompt_options": 7}, "broken header"),
        ({"name": ["x"]}, "broken header"),
    ],
)
def test_a_network_is_not_built_because_a_file_says_so(
    tmp_path: Path, weights: dict[str, Tensor], spec: dict, said: str
) -> None:
    path = write(tmp_path / "a.safetensors", weights, **spec)
    with pytest.raises(InputError, match=said) as problem:
        load_model(path)
    assert len(str(problem.value)) < 700 + len(str(path))


def test_a_huge_network_takes_no_memory(tmp_path: Path) -> None:
    """Of one tensor: 30 000 channels would be over 30 GB."""
    path = write(
        tmp_path / "a.safetensors", {"x": torch.ones(1)}, kwargs={"channels": 30_000, "rank": 9000}
    )
    program = r"""
        import re, resource, sys
        from ducos.errors import InputError
        from ducos.models import load_model
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        try:
            load_model(sys.argv[1])
        except InputError as problem:
            status = open("/proc/self/status").read()  # ru_maxrss begins as the parent's
            print(int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1000, problem)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    megabytes, said = done.stdout.split(" ", 1)
    assert int(megabytes) < 1000, done.stderr
    assert "other arguments" in said


def test_a_deep_network_is_stopped_early(tmp_path: Path, weights: dict[str, Tensor]) -> None:
    """Memory is not all: so many blocks would be built for minutes."""
    path = write(
        tmp_path / "a.safetensors",
        {"x": torch.ones(1)},
        name="ducos",
        prompt="tiny",
        kwargs={"channels": 1, "blocks": 65_000},
    )
    with pytest.raises(InputError, match="parts; it was made for another"):
        load_model(path)


def test_nesting_without_end_is_refused(tmp_path: Path, weights: dict[str, Tensor]) -> None:
    deep = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"
    path = write(tmp_path / "a.safetensors", weights, deep)
    with pytest.raises(InputError, match="no training writes"):
        load_model(path)
    assert read_about(path) == {}


def test_a_licence_is_accepted_by_the_user_only(tmp_path: Path) -> None:
    """Not by the file, whatever it says; with the user's word it goes on to the weights."""
    options = {"weights": str(tmp_path / "absent"), "accept_noncommercial": True}
    with torch.device("meta"):
        model = create("ducos", prompt="depth-anything-v2-b", prompt_options={"tuning": "frozen"})
    frozen = {n for n, p in model.named_parameters() if n.startswith("prompt.")}
    held = {
        name: torch.zeros(value.shape)
        for name, value in model.state_dict().items()
        if name not in frozen
    }
    path = write(
        tmp_path / "a.safetensors", held, name="ducos", prompt="depth-anything-v2-b",
        prompt_options=options,
    )  # fmt: skip
    with pytest.raises(InputError, match="--accept-noncommercial"):
        load_model(path)
    with pytest.raises(InputError, match="absent"):
        load_model(path, accept_noncommercial=True)


def test_a_repository_is_not_asked_because_a_file_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the cache is looked into: no address is even resolved."""
    import socket

    asked = []

    def resolve(*where: object) -> None:
        asked.append(where)
        raise OSError("no network in tests")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with torch.device("meta"):
        model = create("ducos", prompt="depth-anything-v2-s", prompt_options={"tuning": "frozen"})
    frozen = {n for n, p in model.named_parameters() if n.startswith("prompt.")}
    state = {n: torch.zeros(v.shape) for n, v in model.state_dict().items() if n not in frozen}
    path = write(
        tmp_path / "a.safetensors", state, name="ducos", prompt="depth-anything-v2-s",
        prompt_options={"weights": "evil/tracker"},
    )  # fmt: skip
    with pytest.raises(InputError, match="not asked because a file said so"):
        load_model(path)
    assert asked == []
    assert "evil/tracker" not in known_repositories()
    assert "facebook/dinov2-small" in known_repositories()


def test_saved_files_are_justified(tmp_path: Path) -> None:
    """What save_model writes of several kinds of networks comes back."""
    for name in ("ducos-compact", "djf", "fdsr"):
        spec = ModelSpec(name)
        model = spec.build()
        save_model(tmp_path / "a.safetensors", spec, stored_weights(model), {"licence": "x"})
        again, _, about = load_model(tmp_path / "a.safetensors")
        assert about == {"licence": "x"}
        for key, value in stored_weights(again).items():
            assert torch.equal(value, stored_weights(model)[key])
