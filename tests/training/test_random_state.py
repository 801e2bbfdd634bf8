"""A resumed run draws the numbers that an uninterrupted one would have drawn."""

from pathlib import Path

import torch

from ducos.training import load_recipe
from ducos.training.preparation import model_spec, start_run
from ducos.training.run import restore, save
from tests.places import CONFIGS


def test_the_random_state_comes_back(tmp_path: Path) -> None:
    """Another process has another state at this place; after `restore` it has the saved one."""
    config = load_recipe(CONFIGS / "shapes.toml", []).base
    run = start_run(config, model_spec(config), torch.device("cpu"))
    torch.rand(5)  # as a step with dropout would
    save(run, tmp_path / "last.safetensors")
    expected = torch.rand(8)

    again = start_run(config, model_spec(config), torch.device("cpu"))
    assert not torch.equal(torch.rand(8), expected)
    restore(again, tmp_path / "last.safetensors")
    assert torch.equal(torch.rand(8), expected)
