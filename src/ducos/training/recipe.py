"""A recipe: a config whose training goes in stages, and how its weights come to be embedded.

    [data]                  # the base, as in any config
    crop = 160

    [[stage]]
    name = "clean"
    [stage.train]           # what this stage has differently, key by key
    steps = 4000

    [[stage]]               # starts from the weights of the stage before
    name = "sensors"
    [stage.data.degradations]
    tof = 0.5

A stage that names another model states all of its [model]. After a stage of `prompt-alone` the
next one starts with that prompt; all others must have the network of the stage before. [render],
[choose] and [embed] are read by scripts/make_weights.py: which sets to render, which weights are
candidates and by what rule one is chosen, what it is called.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from ducos.data import check_dataset
from ducos.errors import InputError
from ducos.evaluation import check_formula, find_suite
from ducos.training.config import (
    RECIPE,
    Config,
    Section,
    checked,
    read_tree,
    set_key,
    validated,
)

ONLY_PROMPT = "prompt-alone"


class RenderSet(Section):
    """Scenes rendered by `ducos synth`; several sets may share a folder if their views agree."""

    folder: str = Field(description="where the pairs go")
    scenes: int = Field(ge=1, description="how many")
    views: int = Field(3, ge=1, description="pictures per scene")
    seed: int = Field(0, ge=0, description="of the first scene")
    kind: str | None = Field(None, description="of all scenes; unset: rooms and tabletops")


class RenderConfig(Section):
    """What to render before training."""

    assets: str = Field("DUCOS_ASSETS", description="environment variable that names the folder")
    sets: list[RenderSet] = Field(default_factory=list, description="[[render.sets]]")


class ChooseConfig(Section):
    """Which weights are candidates, and the rule by which one of them is chosen."""

    stages: list[str] = Field(
        default_factory=list, description="whose final weights; empty: the last one's"
    )
    seeds: list[int] = Field(default_factory=list, description="of runs; empty: train.seed")
    against: list[str] = Field(
        default_factory=list, description="weight files that are candidates, too, such as the start"
    )
    between: list[float] = Field(
        default_factory=list,
        description="shares of the way from model.start to trained weights; each is a candidate",
    )
    suite: str = Field("heldout", description="of `ducos eval --suite`")
    data: str = Field("", description="rendered pairs for it, as in `ducos eval --data`")
    captures: bool = Field(True, description="whether the rule needs captures")
    images: int = Field(12, ge=0, description="how many of the rendered pairs; 0: all")
    rule: str = Field(min_length=1, description="the rule in words")
    minimise: str = Field(description="formula over named figures of the suite")
    subject_to: list[str] = Field(default_factory=list, description="formulas that must hold")

    @field_validator("minimise", "subject_to")
    @classmethod
    def _formulas(cls, formulas: Any) -> Any:
        for formula in [formulas] if isinstance(formulas, str) else formulas:
            check_formula(formula)
        return formulas

    @field_validator("suite")
    @classmethod
    def _known_suite(cls, name: str) -> str:
        return find_suite(name).name

    @field_validator("between")
    @classmethod
    def _shares(cls, shares: list[float]) -> list[float]:
        for share in shares:
            if not 0 < share < 1:
                raise InputError(f"between holds shares between 0 and 1, got {share}")
        return shares


class EmbedConfig(Section):
    """How the chosen weights are called."""

    name: str = Field("", description="empty: as the recipe's file")
    trained_on: str = Field("pairs", description="what the pairs are, after their number")
    base: str = Field("", description="network of the package that lies beside; the rest is stored")


@dataclass(frozen=True)
class Stage:
    """One training run; number: 1 for the first."""

    number: int
    name: str
    config: Config

    @property
    def folder(self) -> str:
        """Name of its folder in that of the whole run."""
        return f"{self.number}-{self.name}"


@dataclass(frozen=True)
class Recipe:
    """A whole file. base: the config without stages; stages: none in a plain config."""

    name: str
    base: Config
    stages: tuple[Stage, ...] = ()
    render: RenderConfig = field(default_factory=RenderConfig)
    choose: ChooseConfig | None = None
    embed: EmbedConfig = field(default_factory=EmbedConfig)

    def with_seed(self, seed: int) -> "Recipe":
        """The same recipe, trained with another seed in every stage."""

        def seeded(config: Config) -> Config:
            train = config.train.model_copy(update={"seed": seed})
            return config.model_copy(update={"train": train})

        stages = tuple(replace(stage, config=seeded(stage.config)) for stage in self.stages)
        return replace(self, base=seeded(self.base), stages=stages)


def load_recipe(path: Path, overrides: list[str] | None = None) -> Recipe:
    """Read a TOML file with or without stages; unknown keys are refused.

    overrides: `section.key=value` for the base and every stage, `stage.NAME.section.key=value` for
    one of them.
    """
    tree = read_tree(path)
    own = {name: tree.pop(name) for name in RECIPE if name in tree}
    listed = own.pop("stage", [])
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise InputError(f"{path}: stage must be a list of tables; write each as [[stage]]")
    names = [_name_of(table, number, path) for number, table in enumerate(listed, start=1)]
    for_all, for_one = _sorted_overrides(overrides or [], names)
    stages = []
    for number, (name, table) in enumerate(zip(names, listed), start=1):
        place = f"{path}, stage {name}"
        merged = _merged(tree, {key: part for key, part in table.items() if key != "name"})
        for override in [*for_all, *for_one[name]]:
            set_key(merged, override)
        stages.append(Stage(number, name, validated(merged, place)))
        if number > 1:
            _check_start(table, stages[-2], stages[-1], place)
    for override in for_all:
        set_key(tree, override)
    recipe = Recipe(
        Path(path).stem,
        validated(tree, str(path)),
        tuple(stages),
        checked(RenderConfig, own.get("render", {}), f"{path}: render"),
        checked(ChooseConfig, own["choose"], f"{path}: choose") if "choose" in own else None,
        checked(EmbedConfig, own.get("embed", {}), f"{path}: embed"),
    )
    _check_choice(recipe, path)
    return recipe


def _name_of(table: Mapping[str, Any], number: int, path: Path) -> str:
    name = table.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise InputError(
            f"{path}: stage {number} has the name {name!r}; expected small letters, digits and"
            ' single hyphens, such as name = "clean"'
        )
    return name


def _sorted_overrides(
    overrides: list[str], names: list[str]
) -> tuple[list[str], dict[str, list[str]]]:
    """Overrides of everything, and those of each stage without their prefix."""
    if len(set(names)) < len(names):
        raise InputError(f"two stages have one name: {', '.join(names)}; rename one")
    for_all: list[str] = []
    for_one: dict[str, list[str]] = {name: [] for name in names}
    for override in overrides:
        first, _, rest = override.strip().partition(".")
        if first != "stage":
            for_all.append(override)
            continue
        name, _, rest = rest.partition(".")
        if name not in for_one:
            known = ", ".join(names) or "none"
            raise InputError(f"--set {override}: no stage {name!r}; stages: {known}")
        for_one[name].append(rest)
    return for_all, for_one


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Tables of the base with those of a stage laid over them, key by key."""
    merged: dict[str, Any] = deepcopy(dict(base))
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(value, dict) and isinstance(below, dict) and not _other(key, below, value):
            merged[key] = _merged(below, value)
        else:
            merged[key] = deepcopy(value)
    return merged


def _other(key: str, below: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Whether a stage has another network, to which the base's arguments mean nothing."""
    return key == "model" and value.get("name", below.get("name")) != below.get("name")


def _check_start(table: Mapping[str, Any], before: Stage, stage: Stage, place: str) -> None:
    """A stage goes on with what the one before has made."""
    stated = table.get("model", {})
    if "start" in stated or "start_prompt" in stated:
        raise InputError(f"{place} starts from stage {before.name}; leave out its model.start")
    names = before.config.model.name, stage.config.model.name
    if names[0] not in (names[1], ONLY_PROMPT):
        raise InputError(f"{place}: {names[1]} cannot start from {names[0]} of {before.name}")


def _check_choice(recipe: Recipe, path: Path) -> None:
    if recipe.choose is None:
        return
    known = [stage.name for stage in recipe.stages]
    for name in recipe.choose.stages:
        if name not in known:
            raise InputError(f"{path}: choose.stages: no stage {name!r}; stages: {known}")
    if recipe.choose.between and recipe.base.model.start is None:
        raise InputError(
            f"{path}: choose.between starts from the weights of model.start; name them"
        )
    data = recipe.choose.data
    if ":" in data:
        check_dataset(data)
