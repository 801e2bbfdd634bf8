"""Recipes: stages are runs one after the other, exactly, and mistakes are found before the work."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from ducos.data import Subset, digest, open_dataset
from ducos.errors import InputError
from ducos.models.checkpoint import load_model, read_tensors, save_model, stored_weights
from ducos.models.header import read_about
from ducos.training import load_recipe, train, train_recipe
from ducos.training.config import load_config
from ducos.training.lineage import code_version
from ducos.upscaling import Upscaler, find_weights, version_of
from tests.training.test_loop import (
    ENVIRONMENT,
    as_toml,
    assert_same_state,
    command,
    tiny,
    wait_for,
)

STAGES = """
[[stage]]
name = "clean"

[[stage]]
name = "moved"
[stage.data]
scales = [2, 8]
[stage.data.augmentations]
shift = 1.0
[stage.train]
seed = 7
"""
SHORT: dict[str, Any] = {"steps": 3, "save_every": 1, "validate_every": 3}


def write(folder: Path, text: str = STAGES, **train_changes: Any) -> Path:
    """A recipe of two stages of three steps."""
    path = as_toml(
        tiny(train={**SHORT, **train_changes}, model={"version": "1.2"}), folder / "recipe.toml"
    )
    path.write_text(path.read_text() + "\n" + text)
    return path


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both stages without interruption."""
    folder = tmp_path_factory.mktemp("straight")
    final = train_recipe(load_recipe(write(folder)), folder / "run", quiet=True)
    assert final == folder / "run" / "final.safetensors"
    return folder / "run"


def assert_same_run(ours: Path, theirs: Path) -> None:
    for stage in ("1-clean", "2-moved"):
        assert_same_state(ours / stage / "last.safetensors", theirs / stage / "last.safetensors")
    assert_same_weights(ours / "final.safetensors", theirs / "final.safetensors")


def assert_same_weights(ours: Path, theirs: Path) -> None:
    one, two = (read_tensors(path)[0] for path in (ours, theirs))
    assert one.keys() == two.keys()
    assert all(torch.equal(value, two[name]) for name, value in one.items())


# Reading


def test_stages_override_the_base_key_by_key(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path))
    first, second = recipe.stages
    assert first.config == recipe.base
    assert (first.folder, second.folder) == ("1-clean", "2-moved")
    assert second.config.data.scales == (2, 8)
    assert second.config.data.augmentations["shift"] == 1
    assert second.config.data.augmentations["zoom"] == 0.8, "the rest is the base's"
    assert (second.config.train.seed, second.config.train.steps) == (7, 3)


def test_overrides_reach_all_stages_or_one(tmp_path: Path) -> None:
    changes = ["train.steps=5", "stage.moved.train.rate=0.25", "stage.moved.train.steps=6"]
    recipe = load_recipe(write(tmp_path), changes)
    assert [stage.config.train.steps for stage in recipe.stages] == [5, 6]
    assert [stage.config.train.rate for stage in recipe.stages] == [1e-3, 0.25]
    assert recipe.base.train.steps == 5


def test_seeds_reach_every_stage(tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path)).with_seed(9)
    assert [stage.config.train.seed for stage in recipe.stages] == [9, 9]


def test_a_config_without_stages_is_as_before(tmp_path: Path) -> None:
    path = as_toml(tiny(), tmp_path / "run.toml")
    recipe = load_recipe(path, ["train.steps=4"])
    assert recipe.stages == ()
    assert recipe.base == load_config(path, ["train.steps=4"])


def test_another_model_takes_nothing_of_the_base(tmp_path: Path) -> None:
    prompt = '[[stage]]\nname = "prompt"\n[stage.model]\nname = "prompt-alone"\nprompt = "tiny"\n'
    prompt += "[stage.model.prompt_options]\nwidths = [6, 6, 8, 8]\n"
    prompt += "[stage.dual]\nconstraints = []\n[stage.train.objectives]\nprompt = 1.0\n"
    recipe = load_recipe(write(tmp_path, prompt + STAGES))
    assert recipe.stages[0].config.model.kwargs == {}
    assert recipe.stages[1].config.model.kwargs == {"channels": 8}
    out = tmp_path / "run"
    for stage in recipe.stages:
        object.__setattr__(stage.config.train, "steps", 1)
    assert train_recipe(recipe, out, quiet=True)
    started = read_about(out / "2-clean" / "final.safetensors")
    assert started["config"]["model"]["start"] is None
    assert started["start_prompt"]["name"] == "prompt-alone"


CHOOSE = '[choose]\nrule = "least"\nminimise = "captures_rmse"\n'


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[stage]\nname = 'a'\n", r"\[\[stage\]\]"),
        ("[[stage]]\n", "name"),
        ("[[stage]]\nname = 'a/b'\n", "a/b"),
        ("[[stage]]\nname = 'a'\n[[stage]]\nname = 'a'\n", "rename"),
        ("[[stage]]\nname = 'a'\n[stage.data]\ncorp = 3\n", "stage a: data.corp"),
        ("[[stage]]\nname = 'a'\n[stage.dta]\ncrop = 3\n", "dta"),
        (STAGES + "[stage.model]\nstart = 'x.safetensors'\n", "starts from stage clean"),
        (STAGES + "[stage.model]\nname = 'fdsr'\n", "fdsr cannot start from ducos-compact"),
        ("[render]\nsets = [{folder = 'a'}]\n", "scenes"),
        ("[choose]\nminimise = 'x'\n", "rule"),
        (STAGES + CHOOSE + "stages = ['last']\n", "last"),
        (STAGES + CHOOSE + "subject_to = ['harmed = 0']\n", "no formula"),
        (STAGES + CHOOSE + "suite = 'mine'\n", "heldout"),
        ("[embed]\nnme = 'x'\n", "nme"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        load_recipe(write(tmp_path, text))


def test_load_config_sends_recipes_on(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="load_recipe"):
        load_config(write(tmp_path))


def test_unknown_stages_of_overrides_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="clean, moved"):
        load_recipe(write(tmp_path), ["stage.soft.train.steps=1"])


# Training


def test_two_stages_are_two_runs(straight: Path, tmp_path: Path) -> None:
    first, second = (stage.config for stage in load_recipe(write(tmp_path)).stages)
    one = train(first, tmp_path / "one", quiet=True)
    model = second.model.model_copy(update={"start": str(one)})
    train(second.model_copy(update={"model": model}), tmp_path / "two", quiet=True)
    for ours, theirs in (("one", "1-clean"), ("two", "2-moved")):
        assert_same_state(
            tmp_path / ours / "last.safetensors", straight / theirs / "last.safetensors"
        )
    assert_same_weights(tmp_path / "two" / "final.safetensors", straight / "final.safetensors")


@pytest.mark.parametrize("stage", ["1-clean", "2-moved"])
def test_kill_within_a_stage_and_resume(straight: Path, tmp_path: Path, stage: str) -> None:
    """A real process, killed without warning after its first save in the stage."""
    recipe, out = write(tmp_path), tmp_path / "run"
    process = subprocess.Popen(
        command(recipe, out), env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for((out / stage / "last.safetensors").exists, process)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    assert not (out / "final.safetensors").exists()
    train_recipe(load_recipe(recipe), out, resume=True, quiet=True)
    assert_same_run(out, straight)


@pytest.mark.parametrize("begun", [False, True])
def test_resume_between_stages(straight: Path, tmp_path: Path, begun: bool) -> None:
    """The first stage is done; the second has nothing, or died before its first save."""
    recipe, out = load_recipe(write(tmp_path)), tmp_path / "run"
    train(recipe.stages[0].config, out / "1-clean", quiet=True)
    if begun:
        (out / "2-moved").mkdir()
        (out / "2-moved" / "metrics.jsonl").write_text('{"step": 1, "loss": 9.0}\n')
    train_recipe(recipe, out, resume=True, quiet=True)
    assert_same_run(out, straight)
    assert "9.0" not in (out / "2-moved" / "metrics.jsonl").read_text()


def test_a_finished_recipe_is_resumed_into_nothing(straight: Path, tmp_path: Path) -> None:
    before = (straight / "2-moved" / "last.safetensors").stat().st_mtime_ns
    (straight / "final.safetensors").unlink()
    assert train_recipe(load_recipe(write(tmp_path)), straight, resume=True, quiet=True)
    assert (straight / "2-moved" / "last.safetensors").stat().st_mtime_ns == before
    assert (straight / "final.safetensors").is_file()


@pytest.mark.parametrize(
    ("changes", "resume", "named"),
    [
        ([], False, "--resume"),
        (["data.crop=48"], True, "data.crop"),
        (["stage.clean.train.steps=5"], True, "moved was begun"),
    ],
)
def test_what_is_there_is_not_overwritten_nor_mixed(
    straight: Path, tmp_path: Path, changes: list[str], resume: bool, named: str
) -> None:
    with pytest.raises(InputError, match=named):
        train_recipe(load_recipe(write(tmp_path), changes), straight, resume=resume, quiet=True)


def test_what_has_no_effect_may_change(straight: Path, tmp_path: Path) -> None:
    recipe = load_recipe(write(tmp_path), ["train.log_every=2", "data.workers=1"])
    assert train_recipe(recipe, straight, resume=True, quiet=True)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (["stage.moved.model.kwargs.channels=6"], "cannot start"),
        (["stage.moved.data.train=synth:nowhere"], "nowhere"),
    ],
)
def test_later_stages_are_checked_before_the_first(
    tmp_path: Path, changes: list[str], named: str
) -> None:
    with pytest.raises(InputError, match=named):
        train_recipe(load_recipe(write(tmp_path), changes), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to resume"):
        train_recipe(load_recipe(write(tmp_path)), tmp_path / "run", resume=True, quiet=True)


# What weights state


def test_weights_state_where_they_come_from(straight: Path) -> None:
    about = read_about(straight / "final.safetensors")
    assert (about["name"], about["version"], about["steps"]) == ("ducos-compact", "1.2", 3)
    assert about["training_set"]["pairs"] == 7  # of eight, one is held out
    assert len(about["training_set"]["sha256"]) == 64
    assert about["code"] == code_version()
    assert set(about["multipliers"]) == {"alignment", "edge"}
    assert about["config"]["train"]["seed"] == 7
    assert about["start"]["config"]["train"]["seed"] == 0
    assert "start" not in about["start"]
    assert load_model(straight / "final.safetensors")[2] == about


def test_results_name_the_version(straight: Path, tmp_path: Path) -> None:
    path = straight / "final.safetensors"
    assert version_of(path) == "1.2"
    assert Upscaler(path).name == f"{path} 1.2"
    model, spec, about = load_model(path)
    plain = tmp_path / "plain.safetensors"
    save_model(plain, spec, stored_weights(model), {"licence": about["licence"]})
    assert Upscaler(plain).name == str(plain)
    assert version_of("bicubic") is None
    assert find_weights("bicubic") is None


@pytest.mark.parametrize("content", [b"", b"no weights", b"\xff" * 64, b"\x02" + bytes(7) + b"{}"])
def test_files_that_state_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    assert read_about(tmp_path / "x.safetensors") == {}
    assert read_about(tmp_path / "nowhere") == {}


def test_the_digest_follows_names_and_sizes(tmp_path: Path) -> None:
    shapes = open_dataset("shapes:4")
    assert digest(shapes) == digest(open_dataset("shapes:4"))
    assert digest(shapes) != digest(open_dataset("shapes:5"))
    assert digest(Subset(shapes, [0, 1], "part")) == digest(Subset(shapes, [1, 0], "part"))
    assert digest(Subset(shapes, [0, 1], "part")) != digest(Subset(shapes, [0, 2], "part"))
    from PIL import Image

    for name, colour in (("a", 0), ("b", 90)):
        Image.new("RGB", (8, 8), (colour, 0, 0)).save(tmp_path / f"{name}_rgb.png")
        Image.new("I;16", (8, 8), 1000).save(tmp_path / f"{name}_depth.png")
    before = digest(open_dataset(f"folder:{tmp_path},scale=0.001"))
    Image.effect_noise((8, 8), 90).convert("RGB").save(tmp_path / "b_rgb.png")
    assert digest(open_dataset(f"folder:{tmp_path},scale=0.001")) != before
