"""A run whose files were damaged on disk: one sentence, or what is whole goes on."""

from pathlib import Path
from typing import Any

import pytest
import torch

from ducos.errors import InputError
from ducos.training import load_recipe
from ducos.training.curves import training_curves
from ducos.training.dual import Dual
from ducos.training.log import MetricsLog
from ducos.training.preparation import model_spec, start_run
from ducos.training.run import Run, restore, save
from ducos.training.state import load_training, save_training
from tests.places import CONFIGS

ROWS = '{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.25}\n'


@pytest.fixture(scope="module")
def run() -> Run:
    config = load_recipe(CONFIGS / "shapes.toml", []).base
    return start_run(config, model_spec(config), torch.device("cpu"))


@pytest.mark.parametrize(
    "change",
    [
        {"step": "x"},
        {"step": None},
        {"best": []},
        {"dual": 5},
        {"dual": {}},
        {"dual": {"multipliers": {}}},
        "step",
        "dual",
    ],
    ids=str,
)
def test_damaged_values_of_a_state_are_one_sentence(tmp_path: Path, run: Run, change: Any) -> None:
    path = tmp_path / "last.safetensors"
    save(run, path)
    groups, values = load_training(path)
    if isinstance(change, str):
        del values[change]
    else:
        values |= change
    save_training(path, groups, values)
    with pytest.raises(InputError):
        restore(run, path)


@pytest.mark.parametrize("name", ["model", "rng", "optimizer"])
def test_damaged_tensors_of_a_state_are_one_sentence(tmp_path: Path, run: Run, name: str) -> None:
    path = tmp_path / "last.safetensors"
    save(run, path)
    groups, values = load_training(path)
    groups[name] = {"torch": torch.ones(3), "x.exp_avg": torch.ones(2)}
    save_training(path, groups, values)
    with pytest.raises(InputError) as caught:
        restore(run, path)
    assert "last.safetensors" in str(caught.value)


def test_values_that_are_no_table_are_one_sentence(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "last.safetensors"
    save(run, path)
    groups, _ = load_training(path)
    save_training(path, groups, [])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="damaged training state"):
        restore(run, path)


@pytest.mark.parametrize(
    "damage",
    [b"5", b"[]", b'"x"', b'{"step": null}', b'{"step": 2, "loss": "x"}', b"[" * 50_000,
     b"\xff\xfe", bytes(7), b'{"step": 1', b'{"step": 1' + b"0" * 400 + b"}"],
    ids=lambda damage: str(damage[:30]),
)  # fmt: skip
def test_damaged_rows_of_metrics_are_lost_and_no_more(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(damage + b"\n" + ROWS.encode())
    log = MetricsLog(tmp_path, 2)
    log.write(3, {"loss": 0.1}, Dual({}), None)
    log.close()
    assert path.read_text() == ROWS + '{"step": 3, "loss": 0.1}\n'
    training_curves(tmp_path)
