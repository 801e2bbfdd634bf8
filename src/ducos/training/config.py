"""The training configuration: a TOML file, validated; unknown keys are refused.

Every field has a default that works, so a config file states only what a run is about.
"""

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ducos.errors import InputError

# losses.OBJECTIVES, without its torch
OBJECTIVES = ("reconstruction", "rms", "hanging", "sigma", "prompt")


class Section(BaseModel):
    """A table of the file; it cannot be changed, and knows its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelConfig(Section):
    """Which network; `kwargs` are its own arguments."""

    name: str = "ducos-compact"
    prompt: str | None = Field(
        None, description='prompt name, "none" for none, unset for the default'
    )
    prompt_options: dict[str, Any] = Field(default_factory=dict)
    kwargs: dict[str, Any] = Field(default_factory=dict)
    start: str | None = Field(None, description="weight file to start from (same architecture)")
    start_prompt: str | None = Field(None, description="weight file whose prompt to start from")


class DataConfig(Section):
    """What is learned from, and how low-resolution maps are made of it."""

    train: str = Field("shapes:64", description="dataset, as in `ducos eval --dataset`")
    validation: str = Field(
        "", description="held-out dataset; empty: a share of the training scenes"
    )
    validation_share: float = Field(0.1, ge=0, lt=1)
    validation_images: int = Field(12, ge=1, description="how many images each validation uses")
    crop: int = Field(128, ge=16, description="side of a patch in pixels")
    measurements: int = Field(
        1, ge=1, description="patches grow until their low-resolution side is at least this"
    )
    scales: tuple[float, float] = (2.0, 16.0)
    degradations: dict[str, float] = Field(
        default_factory=lambda: {"bicubic": 1.0},
        description="name -> share; `sensor` takes the low-resolution maps of the dataset itself",
    )
    workers: int = Field(0, ge=0)
    flip: bool = True
    turn: bool = True
    zoom: float = Field(1.0, gt=0, le=1)
    invert: float = Field(0.0, ge=0, le=1)
    quantise: float = Field(0.0, ge=0, le=1)
    waver: float = Field(0.0, ge=0, le=1)
    soften: float = Field(0.0, ge=0, le=1)
    remeasure: float = Field(0.0, ge=0, le=1)
    grain: float = Field(0.0, ge=0, le=1)
    spoil: float = Field(0.0, ge=0, le=1)
    shade: float = Field(0.0, ge=0, le=1)
    colour: float = Field(0.0, ge=0, le=1)
    shift: float = Field(0.0, ge=0)
    misplace: float = Field(0.0, ge=0)
    holes: float = Field(0.0, ge=0, le=1)
    hint: float = Field(0.0, ge=0, le=1)
    prompt_cache: str = Field("", description="folder for features of a frozen prompt; empty: none")
    prompt_cache_gb: float = Field(20.0, gt=0, description="largest size of that folder")

    @model_validator(mode="after")
    def _scales_in_order(self) -> "DataConfig":
        if not 1 <= self.scales[0] <= self.scales[1]:
            raise ValueError(f"scales must be 1 <= smallest <= largest, got {self.scales}")
        shares = self.degradations.values()
        if not all(share >= 0 for share in shares) or not sum(shares) > 0:
            raise ValueError(f"degradations are positive shares, got {self.degradations}")
        return self


class ConstraintConfig(Section):
    """Overrides of one constraint; see dual.Constraint."""

    epsilon: float | None = Field(None, ge=0)
    multiplier: float | None = Field(None, ge=0)
    rate: float | None = Field(None, ge=0)
    penalty: float | None = Field(None, ge=0)


class DualConfig(Section):
    """How the constraints are weighed. LD on/off of the ablation is preset "paper" or "fixed"."""

    preset: Literal["fixed", "paper", "constrained"] = "paper"
    constraints: list[Literal["alignment", "edge"]] = Field(default=["alignment", "edge"])
    decay: Literal["none", "compounding", "linear"] | None = None
    alignment: ConstraintConfig = ConstraintConfig()
    edge: ConstraintConfig = ConstraintConfig()
    edge_normalise: bool = True
    edge_magnitude: bool = True


class TrainConfig(Section):
    """The loop. Alg. 1 uses a rate of 1e-5; small networks want more."""

    steps: int = Field(1000, ge=1)
    steps_per_epoch: int = Field(0, ge=0, description="0: once through the training set")
    batch_size: int = Field(4, ge=1, description="of all processes together")
    rate: float = Field(1e-5, gt=0)
    betas: tuple[float, float] = (0.9, 0.999)
    schedule: Literal["constant", "cosine", "steps"] = "constant"
    warmup: int = Field(0, ge=0)
    milestones: list[int] = Field(default_factory=list, description='steps at which "steps" decays')
    gamma: float = Field(0.5, gt=0, le=1)
    clip: float = Field(0.0, ge=0, description="largest gradient norm; 0: no clipping")
    average: float = Field(0.0, ge=0, lt=1, description="decay of the weight average; 0: none")
    objectives: dict[str, float] = Field(
        default_factory=lambda: {"reconstruction": 1.0}, description="losses.OBJECTIVES and weights"
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="of convolutions and products; weights and losses stay float32. bfloat16 is"
        " faster where the processor has it; see docs/experiments.md",
    )
    seed: int = 0
    validate_every: int = Field(500, ge=1)
    save_every: int = Field(200, ge=1)
    log_every: int = Field(10, ge=1)
    validation_scales: list[float] = Field(default=[4.0, 8.0, 16.0])

    @model_validator(mode="after")
    def _known_objectives(self) -> "TrainConfig":
        unknown = sorted(set(self.objectives) - set(OBJECTIVES))
        if unknown or not self.objectives:
            raise ValueError(f"objectives are {', '.join(OBJECTIVES)}; got {unknown or 'none'}")
        return self


class Config(Section):
    """The whole file."""

    model: ModelConfig = ModelConfig()
    data: DataConfig = DataConfig()
    dual: DualConfig = DualConfig()
    train: TrainConfig = TrainConfig()


def load_config(path: Path, overrides: list[str] | None = None) -> Config:
    """Read a TOML file and apply `section.key=value` overrides, whose values are TOML too."""
    try:
        tree = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise InputError(f"cannot read the config {path}: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{path} is not valid TOML: {problem}") from None
    for override in overrides or []:
        key, separator, text = override.partition("=")
        if not separator:
            raise InputError(f"--set takes section.key=value, got {override!r}")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text  # a bare word is a string
        branch = tree
        *parents, leaf = key.strip().split(".")
        for parent in parents:
            branch = branch.setdefault(parent, {})
            if not isinstance(branch, dict):
                raise InputError(f"--set {key}: {parent} is a value, not a section")
        branch[leaf] = value
    try:
        return Config.model_validate(tree)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {where}: {first['msg']} (got {first['input']!r})") from None
