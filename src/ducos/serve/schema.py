"""The shapes of what goes over the wire; those of options are made from `Options`."""

from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ducos.errors import InputError
from ducos.hints import MODES, SENSORS
from ducos.serve.settings import OWN, Settings
from ducos.upscaling import OPTIONS, Options

FILES = tuple(name for name, each in OPTIONS.items() if each.metadata["typed"] == Path | None)
"""Options that are files: parts of the request of their own."""


class ProblemModel(BaseModel):
    """Why there is no result."""

    code: str = Field(description="For programs.", examples=["input"])
    sentence: str = Field(
        description="For people: what was got, what is expected, what to do.",
        examples=["depth is empty; give a PNG, TIFF, EXR, NPY, NPZ, PFM or HDF5 file"],
    )


class LinksModel(BaseModel):
    """Where more about a job is."""

    self: str
    events: str
    results: dict[str, str] = Field(description="Format -> where to get it.")


class JobModel(BaseModel):
    """A job and what has become of it."""

    id: str
    state: str = Field(description="queued, running, done, failed or cancelled")
    ahead: int = Field(description="Tasks that come first.")
    share: float = Field(description="Of the work that is done; strips of large images only.")
    seconds: float = Field(description="Since it was handed over, until it ended.")
    kept_for: float | None = Field(description="Seconds until its files are deleted.")
    problem: ProblemModel | None
    facts: dict[str, Any] | None = Field(description="What `ducos upscale --json` prints.")
    links: LinksModel


class FindingModel(BaseModel):
    """One thing that the doctor found."""

    code: str
    severity: str = Field(description="error, warning or note")
    sentence: str
    advice: str
    numbers: dict[str, Any]


class ReportModel(BaseModel):
    """What the doctor found, worst first."""

    sound: bool
    worst: str
    findings: list[FindingModel]
    facts: dict[str, Any]


class ModelRow(BaseModel):
    """A model that this server runs."""

    name: str
    version: str | None
    parameters: int | None
    licence: str
    about: str
    default: bool


class ModelsModel(BaseModel):
    """All models that this server runs."""

    models: list[ModelRow]


class PairModel(BaseModel):
    """A pair that the server has, with the places of its files."""

    name: str
    about: str
    rgb: str
    depth: str
    options: dict[str, Any] = Field(description="Options that fit it.")


class PairsModel(BaseModel):
    """Pairs that the server has."""

    pairs: list[PairModel]


class RecordingsModel(BaseModel):
    """Recordings that were listed when the server started."""

    recordings: dict[str, int] = Field(description="Name -> number of frames.")


class FrameModel(BaseModel):
    """A frame of a recording; its files are parts of `POST /v1/upscale` by the same names."""

    files: dict[str, str] = Field(description="Kind -> where to get it.")


class HealthModel(BaseModel):
    """Whether the server can work."""

    ready: bool
    version: str
    workers: int = Field(description="Processes that are ready.")
    busy: int
    waiting: int
    limits: dict[str, float]


@cache
def _body(default: str, models: tuple[str, ...]) -> type[BaseModel]:
    choices = {
        "model": list(models),
        "mode": ["auto", *MODES],
        "sensor": list(SENSORS),
        "unit": ["auto", "m", "mm", "cm", "relative"],
    }
    fields: dict[str, Any] = {}
    for name, option in OPTIONS.items():
        if name in FILES or (name in OWN and name != "model"):
            continue
        typed = str | tuple[float, float] if name == "shift" else option.metadata["typed"]
        extra: Any = {"enum": choices[name]} if name in choices else None
        value: Any = default if name == "model" else option.default
        fields[name] = (
            str if name == "model" else typed,
            Field(
                default=value,
                description=option.metadata["help"],
                json_schema_extra=extra,
            ),
        )
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    return create_model("UpscaleOptions", __config__=config, **fields)


def options_model(settings: Settings) -> type[BaseModel]:
    """The options that a client can give, with their sentences, as a model."""
    return _body(settings.default, tuple(settings.models))


def options_of(text: str, files: dict[str, str], settings: Settings) -> dict[str, Any]:
    """Options for a worker, checked, from a client's JSON; files: paths of ours by option."""
    model = options_model(settings)
    try:
        read = model.model_validate_json(text, strict=False)
    except ValidationError as problem:
        raise InputError(sentence_of(problem)) from None
    said = read.model_dump()
    if "prior" in files and "model" not in read.model_fields_set:
        said["model"] = settings.default_for(prior=True)
    if said["model"] not in settings.models:
        raise InputError(
            f"this server has no model {said['model']!r}; choose one of: "
            + ", ".join(settings.models)
        )
    said["model"] = settings.models[said["model"]]
    made = Options(**{**said, **files, "device": settings.device})
    return made.plain()


def sentence_of(problem: ValidationError) -> str:
    """What pydantic found wrong with options, in one sentence."""
    first = problem.errors()[0]
    place = ".".join(map(str, first["loc"])) or "options"
    if first["type"] == "extra_forbidden":
        names = ", ".join(name for name in OPTIONS if name not in FILES and name not in OWN[1:])
        return f"unknown option {place!r}; choose from: {names}; files are parts of their own"
    return f"option {place}: {first['msg']}"
