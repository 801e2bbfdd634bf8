"""Tables: every entry explains itself, and an outsider adds one of each by one line."""

import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from ducos.data import DATASETS
from ducos.degrade import DEGRADATIONS
from ducos.evaluation import PROTOCOLS, SUITES, evaluate
from ducos.lazy import Later, options_of
from ducos.models import MODELS
from ducos.prompts import PROMPTS
from ducos.training import (
    AUGMENTATIONS,
    CONSTRAINTS,
    EVERYTHING,
    OBJECTIVES,
    PRESETS,
    TRAINING,
    load_config,
    shown,
    train,
)
from ducos.training.augmentations import MAPS, STAGES, strengths
from ducos.training.config import Config
from ducos.training.curves import loss_panels, training_curves
from tests.places import REPOSITORY

TABLES: dict[str, dict[str, Any]] = {
    "models": MODELS,
    "prompts": PROMPTS,
    "datasets": DATASETS,
    "degradations": DEGRADATIONS,
    "augmentations": AUGMENTATIONS,
    "objectives": OBJECTIVES,
    "constraints": CONSTRAINTS,
    "presets": PRESETS,
    "protocols": PROTOCOLS,
    "suites": SUITES,
}
ENTRIES = [(table, name) for table, entries in TABLES.items() for name in entries]

# Every entry


@pytest.mark.parametrize(("table", "name"), ENTRIES)
def test_every_entry_has_a_sentence_and_its_callable_resolves(table: str, name: str) -> None:
    entry = TABLES[table][name]
    assert len(entry.about.split()) >= 2
    assert "\n" not in entry.about
    function = getattr(entry, "function", getattr(entry, "build", None))
    if function is not None:
        assert callable(function.made if isinstance(function, Later) else function)


@pytest.mark.parametrize(("table", "name"), ENTRIES)
def test_defaults_read_from_the_source_are_those_of_the_signature(table: str, name: str) -> None:
    function = getattr(TABLES[table][name], "function", None)
    if isinstance(function, Later):
        parameters = inspect.signature(function).parameters.values()
        known = {p.name: p.default for p in parameters if p.default is not p.empty}
        assert options_of(function) == known


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_augmentations_are_in_range_and_in_place(name: str) -> None:
    entry = AUGMENTATIONS[name]
    assert entry.stage in STAGES
    assert set(entry.maps) <= set(MAPS)
    assert not entry.needs or entry.needs in AUGMENTATIONS
    assert strengths(**{name: entry.default})[name] == entry.default
    _sample, _strength, rng = inspect.signature(entry.function).parameters
    assert rng == "rng"


def test_stages_follow_each_other_in_the_table() -> None:
    """A reader takes the order of the table for the order of what happens."""
    order = [list(STAGES).index(entry.stage) for entry in AUGMENTATIONS.values()]
    assert order == sorted(order)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_have_numbers_for_every_preset_and_options_of_their_function(name: str) -> None:
    entry = CONSTRAINTS[name]
    assert entry.presets.keys() == PRESETS.keys()
    assert dict(entry.options) == options_of(entry.function)
    for preset, start in entry.presets.items():
        assert start.multiplier > 0 or start.rate > 0 or start.penalty > 0, preset
        assert all(isfinite(number) for number in vars(start).values())


@pytest.mark.parametrize("name", OBJECTIVES)
def test_objectives_have_a_weight(name: str) -> None:
    assert 0 < OBJECTIVES[name].weight <= 1
    assert not OBJECTIVES.keys() & CONSTRAINTS.keys(), "both are columns of metrics.jsonl"


def test_names_of_constraints_are_no_other_keys_of_their_section() -> None:
    assert not CONSTRAINTS.keys() & {"preset", "constraints", "decay"}


def test_every_loss_has_its_panel() -> None:
    panels = loss_panels()
    assert {name for names in panels.values() for name in names} == {*OBJECTIVES, *CONSTRAINTS}


# What people read


def test_the_list_needs_no_torch() -> None:
    program = (
        "import sys; from ducos.training import EVERYTHING, as_data; as_data(EVERYTHING);"
        "print([m for m in ('torch', 'cv2', 'scipy', 'h5py') if m in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout.strip() == "[]", ended.stderr


def test_the_command_lists_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    from typer.testing import CliRunner

    from ducos.cli import app

    words = CliRunner().invoke(app, ["train", "--list"]).stdout
    data = json.loads(CliRunner().invoke(app, ["train", "--list", "--json"]).stdout)
    assert list(data) == list(TRAINING)
    for table in TRAINING:
        rows = {row["name"]: row for row in data[table]}
        assert rows.keys() >= TABLES[table].keys()
        for name, row in rows.items():
            assert f"  {name}: {shown(row['defaults'])}" in words


def test_the_reference_page_is_what_the_tables_say() -> None:
    script = [sys.executable, str(REPOSITORY / "scripts" / "reference.py"), "--check"]
    ended = subprocess.run(script, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    page = (REPOSITORY / "docs" / "reference.md").read_text(encoding="utf-8")
    assert EVERYTHING.keys() == TABLES.keys()
    assert all(f"| `{name}` |" in page for _, name in ENTRIES)


# One of each, from outside

OUTSIDE = """
import torch
from torch import nn
from ducos.data import DATASETS, DatasetEntry
from ducos.data.shapes import Shapes
from ducos.degrade import DEGRADATIONS, DegradationEntry
from ducos.evaluation import PROTOCOLS, Protocol
from ducos.models import MODELS, Prediction
from ducos.models import Entry as ModelEntry
from ducos.prompts import PROMPTS, TinyPrompt
from ducos.prompts import Entry as PromptEntry
from ducos.resize import bicubic, nearest
from ducos.training import *

CALLS = {"fog": 0}

class Network(nn.Module):
    def __init__(self, prompt):
        super().__init__()
        self.prompt, self.mix = prompt, nn.Conv2d(5, 1, 3, padding=1)
    def forward(self, rgb, low, valid=None):
        up = bicubic(low, rgb.shape[-2:])
        return Prediction(up + 0.01 * self.mix(torch.cat([up, self.prompt(rgb).depth, rgb], 1)))

def small_prompt():
    return TinyPrompt(widths=(6, 6, 8, 8))

def scenes(count, seed=3):
    return Shapes(count, 48, 56, seed)

def every_second(target, valid, rgb, size, generator=None, *, unit="m", factor=1.0):
    return factor * nearest(target, size), nearest(valid.float(), size) > 0

def fog(patch, strength, rng):
    CALLS["fog"] += 1
    patch.rgb = ((1 - strength) * patch.rgb + strength * rng.random()).astype("float32")

def squared(prediction, batch):
    return ((prediction.depth - batch.target) ** 2)[batch.valid].mean()

def steep(prediction, batch, *, power=1.0):
    return prediction.depth.diff(dim=-1).abs().mean() ** power

START = Constraint(multiplier=0.1, rate=0.5)
MODELS["mine"] = ModelEntry(Network, "a convolution behind bicubic", prompt="mine")
PROMPTS["mine"] = PromptEntry(small_prompt, "Apache-2.0", "a narrow prompt")
DATASETS["mine"] = DatasetEntry(scenes, "Shapes of another seed.", "number of scenes", counted=True)
DEGRADATIONS["mine"] = DegradationEntry(every_second, "Picks pixels.", "simulated")
AUGMENTATIONS["fog"] = AugmentationEntry(fog, "How much fog there is at most.")
OBJECTIVES["squared"] = ObjectiveEntry(squared, "Mean squared error.", panel="squares")
CONSTRAINTS["steep"] = ConstraintEntry(
    steep, "Slopes stay small.", {"paper": START}, {"power": 1.0}, panel="slopes")
PROTOCOLS["mine"] = Protocol("mine", "Picked pixels.", low="mine", scales=(2.0,), border=2)
"""

CONFIG = """
[model]
name = "mine"
[data]
train = "mine:6,seed=4"
crop = 32
scales = [2, 3]
validation_images = 1
degradations = {mine = 1.0}
augmentations = {fog = 0.5, hint = 1.0}
[dual]
constraints = ["steep"]
[dual.steep]
power = 2.0
epsilon = 0.001
[train]
steps = 3
steps_per_epoch = 1
batch_size = 2
rate = 1e-3
log_every = 1
validate_every = 3
validation_scales = [2.0]
objectives = {squared = 1.0}
"""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of somebody else's; the tables are as before when it is gone."""
    before = {table: dict(entries) for table, entries in TABLES.items()}
    (tmp_path / "somebody_elses.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("somebody_elses")
    del sys.modules["somebody_elses"]
    for table, entries in TABLES.items():
        entries.clear()
        entries.update(before[table])


def test_one_line_adds_one_of_each_from_outside(outside: Any, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(CONFIG)
    config = load_config(tmp_path / "run.toml")
    assert Config.model_validate_json(config.model_dump_json()) == config
    run = tmp_path / "run"
    final = train(config, run, quiet=True)
    assert final is not None
    assert outside.CALLS["fog"] == 6  # three steps of two patches

    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if "loss" in row]
    assert len(steps) == 3
    for row in steps:
        assert isfinite(row["squared"])
        assert isfinite(row["steep"])
    first = steps[0]
    violated = first["steep"] - 0.001
    assert first["loss"] == pytest.approx(first["squared"] + 0.1 * violated, rel=1e-5)
    assert first["slack_steep"] == pytest.approx(-violated)

    assert loss_panels()["squares"] == ["squared"]
    assert loss_panels()["slopes"] == ["steep"]
    assert training_curves(run) is not None

    scored = evaluate([str(final), "bicubic"], "mine:2", "mine")
    assert len(scored) == 2
    assert all(row.protocol_id == PROTOCOLS["mine"].id for row in scored)
    for name, table in (("fog", "augmentations"), ("mine", "degradations"), ("mine", "models")):
        assert name in [row.name for row in EVERYTHING[table].rows()]


def test_an_entry_that_is_off_changes_no_run(outside: Any) -> None:
    """What a new line must not do: draw a random number while it is off."""
    from ducos.data.shapes import Shapes
    from ducos.training.patches import PatchBatches

    def batch() -> Any:
        settings: dict[str, Any] = {"batch_size": 2, "crop": 32, "scales": (2.0, 4.0), "seed": 1}
        chosen = {"colour": 0.5, "holes": 0.5}
        return PatchBatches(
            Shapes(3), degradations={"bicubic": 1.0}, augmentations=chosen, **settings
        )[0]

    with_fog = batch()
    del AUGMENTATIONS["fog"]
    without = batch()
    assert with_fog.rgb.equal(without.rgb)
    assert with_fog.low.equal(without.low)
    assert outside.CALLS["fog"] == 0


def test_a_constraint_without_numbers_for_a_preset_says_so(outside: Any) -> None:
    from ducos.errors import InputError
    from ducos.training import preset_dual

    with pytest.raises(InputError, match="steep has no numbers for preset 'fixed'"):
        preset_dual("fixed", ["steep"])
