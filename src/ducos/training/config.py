"""The training configuration: a TOML file, validated; unknown keys are refused.

Every field has a default that works, so a config file states only what a run is about. Names of
degradations, augmentations, objectives and constraints are those of their tables at the moment of
reading, so an entry added from outside can be configured like one of ours.
"""

import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from ducos.degrade import DEGRADATIONS
from ducos.errors import InputError, one_line
from ducos.files import read_text
from ducos.training.augmentations import AUGMENTATIONS, RENAMED, strengths
from ducos.training.dual import DECAYS
from ducos.training.table import CONSTRAINTS, OBJECTIVES, PAPER_CONSTRAINTS, PRESETS

SENSOR = "sensor"  # a "degradation" that takes the map the pair came with
MOVED = {
    "edge_normalise": "normalise = ... in [dual.edge]",
    "edge_magnitude": "magnitude = ... in [dual.edge]",
}


def check_names(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse what is not in a table, with the list of what is."""
    for name in names:
        if name not in known:
            raise InputError(f"unknown {what} {name!r}; choose of: {', '.join(known)}")


def check_degradations(shares: dict[str, float]) -> None:
    """Known names, and shares of which one may be drawn."""
    check_names("degradation", shares, (SENSOR, *DEGRADATIONS))
    if not all(share >= 0 for share in shares.values()) or not sum(shares.values()) > 0:
        raise InputError(f"degradations are positive shares, got {shares}")


class Section(BaseModel):
    """A table of the file; it cannot be changed, and knows its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ModelConfig(Section):
    """Which network; `kwargs` are its own arguments."""

    name: str = Field("ducos-compact", description="from `ducos models`")
    version: str | None = Field(None, description='of the weights, such as "1.0"; results name it')
    prompt: str | None = Field(
        None, description='prompt name, "none" for none, unset for the default'
    )
    prompt_options: dict[str, Any] = Field(
        default_factory=dict, description="the prompt's own arguments, such as weights"
    )
    kwargs: dict[str, Any] = Field(default_factory=dict, description="the network's own arguments")
    start: str | None = Field(None, description="weight file to start from (same architecture)")
    tune: list[str] = Field(
        default_factory=list, description='parts that learn, such as "prior"; empty: all of it'
    )
    start_prompt: str | None = Field(None, description="weight file whose prompt to start from")
    start_prior: str | None = Field(
        None, description="weight file whose branch for priors to start from, laid over `start`"
    )


class DataConfig(Section):
    """What is learned from, and how low-resolution maps are made of it."""

    train: str = Field("shapes:64", description="dataset, as in `ducos eval --dataset`")
    validation: str = Field(
        "", description="held-out dataset; empty: a share of the training scenes"
    )
    validation_share: float = Field(
        0.1, ge=0, lt=1, description="of the training scenes, held out where `validation` is empty"
    )
    validation_images: int = Field(12, ge=1, description="how many images each validation uses")
    crop: int = Field(128, ge=16, le=8192, description="side of a patch in pixels")
    measurements: int = Field(
        1, ge=1, description="patches grow until their low-resolution side is at least this"
    )
    scales: tuple[float, float] = Field(
        (2.0, 16.0), description="smallest and largest; one is drawn per batch"
    )
    anisotropy: float = Field(
        0.0, ge=0, le=0.5, description="share of batches whose scale differs across and down"
    )
    degradations: dict[str, float] = Field(
        default_factory=lambda: {"bicubic": 1.0},
        description="name -> share; `sensor` takes the low-resolution maps of the dataset itself",
    )
    workers: int = Field(0, ge=0, le=1024, description="processes that load batches; 0: none")
    augmentations: dict[str, bool | float] = Field(
        default_factory=dict,
        validate_default=True,
        description="name -> strength, from `ducos train --list`; 0 or false is off",
    )
    when: dict[str, dict[str, bool | float]] = Field(
        default_factory=dict,
        description="degradation -> strengths that differ where it makes the map",
    )
    told_shrinking: float = Field(
        0.0, ge=0, le=1, description="share of patches whose network is told how maps were shrunk"
    )
    prompt_cache: str = Field("", description="folder for features of a frozen prompt; empty: none")
    prompt_cache_gb: float = Field(20.0, gt=0, description="largest size of that folder")

    @model_validator(mode="before")
    @classmethod
    def _augmentations_have_a_table(cls, tree: Any) -> Any:
        for key in tree if isinstance(tree, dict) else ():
            name = RENAMED.get(key, key)
            if name in AUGMENTATIONS:
                raise InputError(f"{key} is now data.augmentations.{name}: {name} = {tree[key]}")
        return tree

    @field_validator("augmentations")
    @classmethod
    def _known_augmentations(cls, chosen: dict[str, bool | float]) -> dict[str, bool | float]:
        return strengths(**chosen)

    @field_validator("when")
    @classmethod
    def _known_strengths(
        cls, when: dict[str, dict[str, bool | float]]
    ) -> dict[str, dict[str, bool | float]]:
        check_names("degradation", when, (SENSOR, *DEGRADATIONS))
        for differing in when.values():
            strengths(**differing)
        return when

    @field_validator("degradations")
    @classmethod
    def _known_degradations(cls, shares: dict[str, float]) -> dict[str, float]:
        check_degradations(shares)
        return shares

    @field_validator("scales")
    @classmethod
    def _scales_in_order(cls, scales: tuple[float, float]) -> tuple[float, float]:
        if not 1 <= scales[0] <= scales[1]:
            raise InputError(f"scales must be 1 <= smallest <= largest, got {scales}")
        return scales


class ConstraintConfig(Section):
    """Overrides of one constraint; see dual.Constraint. Other keys are options of its function."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)

    epsilon: float | None = Field(None, ge=0, description="what the constraint stays below")
    multiplier: float | None = Field(None, ge=0, description="the first multiplier")
    rate: float | None = Field(None, ge=0, description="of the multiplier's ascent, per epoch")
    penalty: float | None = Field(None, ge=0, description="of the augmented Lagrangian; 0: plain")

    @property
    def numbers(self) -> dict[str, float]:
        """What replaces the preset's numbers."""
        return self.model_dump(exclude_none=True, include=set(type(self).model_fields))

    @property
    def options(self) -> dict[str, Any]:
        """What is handed to the constraint's function."""
        return dict(self.model_extra or {})


class DualConfig(Section):
    """How the constraints are weighed. LD on/off of the ablation is preset "paper" or "fixed".

    Beside these keys, every constraint of the table may have a section: [dual.edge].
    """

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, ConstraintConfig] = Field(init=False)

    preset: str = Field("paper", description="fixed, paper or constrained")
    constraints: list[str] = Field(
        default=[*PAPER_CONSTRAINTS], description="names, from `ducos train --list`"
    )
    decay: str | None = Field(
        None, description="of the rates over the epochs: none, compounding or linear"
    )

    def of(self, name: str) -> ConstraintConfig:
        """The section of one constraint."""
        return (self.__pydantic_extra__ or {}).get(name, ConstraintConfig())

    @model_validator(mode="before")
    @classmethod
    def _known_sections(cls, tree: Any) -> Any:
        own = {*cls.model_fields, *CONSTRAINTS}
        for key in set(tree) - own if isinstance(tree, dict) else ():
            if key in MOVED:
                raise InputError(f"dual.{key} is now written as {MOVED[key]}")
            raise InputError(f"dual.{key} is not known; choose of: {', '.join(sorted(own))}")
        return tree

    @model_validator(mode="after")
    def _known_options(self) -> "DualConfig":
        for name, section in (self.__pydantic_extra__ or {}).items():
            known = (*ConstraintConfig.model_fields, *CONSTRAINTS[name].options)
            for key in section.options.keys() - set(known):
                raise InputError(f"dual.{name}.{key} is not known; choose of: {', '.join(known)}")
        return self

    @field_validator("constraints")
    @classmethod
    def _known_constraints(cls, names: list[str]) -> list[str]:
        check_names("constraint", names, CONSTRAINTS)
        return names

    @field_validator("preset")
    @classmethod
    def _known_preset(cls, name: str) -> str:
        check_names("preset", [name], PRESETS)
        return name

    @field_validator("decay")
    @classmethod
    def _known_decay(cls, name: str | None) -> str | None:
        check_names("decay", [name] if name else [], DECAYS)
        return name


class TrainConfig(Section):
    """The loop. Alg. 1 uses a rate of 1e-5; small networks want more."""

    steps: int = Field(1000, ge=1, description="batches in all")
    steps_per_epoch: int = Field(0, ge=0, description="0: once through the training set")
    batch_size: int = Field(4, ge=1, le=65536, description="of all processes together")
    rate: float = Field(1e-5, gt=0, description="learning rate of Adam")
    betas: tuple[float, float] = Field((0.9, 0.999), description="of Adam")
    schedule: Literal["constant", "cosine", "steps"] = Field(
        "constant", description="of the rate: constant, cosine to 1 %, or decay at milestones"
    )
    warmup: int = Field(0, ge=0, description="steps until the rate is reached")
    milestones: list[int] = Field(default_factory=list, description='steps at which "steps" decays')
    gamma: float = Field(0.5, gt=0, le=1, description="factor of the rate at each milestone")
    clip: float = Field(0.0, ge=0, description="largest gradient norm; 0: no clipping")
    average: float = Field(0.0, ge=0, lt=1, description="decay of the weight average; 0: none")
    objectives: dict[str, float] = Field(
        default_factory=lambda: {"reconstruction": 1.0},
        description="name -> weight, from `ducos train --list`",
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="of convolutions and products; weights and losses stay float32. bfloat16 is"
        " faster where the processor has it; see dev/LOG.md",
    )
    seed: int = Field(0, ge=0, lt=2**63, description="of the first weights and of all batches")
    validate_every: int = Field(500, ge=1, description="steps between held-out errors")
    save_every: int = Field(200, ge=1, description="steps between saves")
    log_every: int = Field(10, ge=1, description="steps between rows of metrics.jsonl")
    validation_scales: list[float] = Field(
        default=[4.0, 8.0, 16.0], description="ratios of the held-out errors"
    )

    @field_validator("objectives")
    @classmethod
    def _known_objectives(cls, weights: dict[str, float]) -> dict[str, float]:
        if "hanging" in weights:
            raise InputError("the objective hanging is now called edge_snap")
        check_names("objective", weights, OBJECTIVES)
        if not weights:
            raise InputError(f"name at least one objective of: {', '.join(OBJECTIVES)}")
        return weights


class Config(Section):
    """The whole file."""

    model: ModelConfig = Field(default_factory=ModelConfig)
    data: DataConfig = Field(default_factory=DataConfig)
    dual: DualConfig = Field(default_factory=DualConfig)
    train: TrainConfig = Field(default_factory=TrainConfig)


RECIPE = ("stage", "render", "choose", "embed")  # tables of a recipe, see `recipe`


def load_config(path: Path, overrides: list[str] | None = None) -> Config:
    """Read a TOML file and apply `section.key=value` overrides, whose values are TOML too."""
    tree = read_tree(path)
    for table in RECIPE:
        if table in tree:
            raise InputError(f"{path} is a recipe: it has {table}; read it with load_recipe")
    for override in overrides or []:
        set_key(tree, override)
    return validated(tree, str(path))


def read_tree(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise InputError(f"{path} is not valid TOML: {one_line(problem)}") from None


def set_key(tree: dict[str, Any], override: str) -> None:
    """Apply one `section.key=value` to the tables."""
    key, separator, text = override.partition("=")
    if not separator:
        raise InputError(f"--set takes section.key=value, got {override!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        value = text  # a bare word is a string
    branch = tree
    *parents, leaf = key.strip().split(".")
    for parent in parents:
        branch = branch.setdefault(parent, {})
        if not isinstance(branch, dict):
            raise InputError(f"--set {key}: {parent} is a value, not a section")
    branch[leaf] = value


Checked = TypeVar("Checked", bound=BaseModel)


def validated(tree: dict[str, Any], place: str) -> Config:
    """The tables as a config; place: where they stand, for complaints."""
    return checked(Config, tree, place)


def checked(kind: type[Checked], tree: Any, place: str) -> Checked:
    """Tables as what they shall be, or one sentence on the first mistake."""
    try:
        return kind.model_validate(tree)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        said = f"{first['msg']} (got {first['input']!r})"
        if first["type"] == "value_error":  # a sentence of ours, complete as it is
            said = str(first["ctx"]["error"])
        raise InputError(f"{place}: {where}: {said}") from None
