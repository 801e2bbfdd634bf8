"""The tables of objectives, constraints and presets: one line adds one, from inside or outside.

    CONSTRAINTS["smooth"] = ConstraintEntry(smooth, "Second differences stay small.", {...})

Configuration, `ducos train --list`, the reference page and the training curves read these entries;
nothing else knows a name. Reading them costs no torch.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ducos.errors import InputError
from ducos.lazy import Later
from ducos.training.dual import Constraint, Dual

if TYPE_CHECKING:
    from torch import Tensor

Loss = Callable[..., "Tensor"]


@dataclass(frozen=True)
class ObjectiveEntry:
    """Something to minimise: function(prediction, batch) -> scalar.

    about: a sentence for people. weight: a usual one beside `reconstruction` at 1.
    panel: title of the chart that shows it; "" for none.
    """

    function: Loss
    about: str
    weight: float = 1.0
    panel: str = "objectives (smoothed)"

    def __call__(self, prediction: Any, batch: Any) -> "Tensor":
        return self.function(prediction, batch)


@dataclass(frozen=True)
class ConstraintEntry:
    """Something to hold below an epsilon: function(prediction, batch, **options) -> scalar.

    about: a sentence for people.
    presets: preset -> epsilon, first multiplier, rate and penalty under it.
    options: the function's own switches with their defaults; a config sets them beside epsilon.
    panel: title of the chart that shows the values; "" for none.
    """

    function: Loss
    about: str
    presets: Mapping[str, Constraint]
    options: Mapping[str, Any] = field(default_factory=dict)
    panel: str = "constraints (smoothed)"

    def __call__(self, prediction: Any, batch: Any, **options: Any) -> "Tensor":
        return self.function(prediction, batch, **{**self.options, **options})


@dataclass(frozen=True)
class Preset:
    """A way to weigh constraints; their numbers under it are in their own entries.

    decay: how the rates of ascent shrink over the epochs; see `Dual`.
    """

    about: str
    decay: str = "none"


def own(name: str) -> Later:
    """A function of `losses`, imported when it is used."""
    return Later(f"ducos.training.losses:{name}")


OBJECTIVES: dict[str, ObjectiveEntry] = {
    "reconstruction": ObjectiveEntry(
        own("reconstruction"), "Mean absolute error over valid pixels (Eq. 11)."
    ),
    "rms": ObjectiveEntry(
        own("rms"), "Root mean square error of each image, which is what evaluation reports."
    ),
    "edge_snap": ObjectiveEntry(
        own("edge_snap"),
        "Distance to the nearer of the two surfaces at depth edges: no pixel hangs in between.",
        weight=0.4,
    ),
    "sigma": ObjectiveEntry(
        own("sigma"),
        "Trains the uncertainty to be the error that 68.3 % of the pixels stay below.",
        weight=0.02,
        panel="uncertainty objective (smoothed)",
    ),
    "prompt": ObjectiveEntry(
        own("prompt_depth"),
        "Trains the prompt's relative depth: L1 plus gradients, without scale and shift.",
        weight=0.05,
        panel="prompt objective (smoothed)",
    ),
}

PRESETS: dict[str, Preset] = {
    "fixed": Preset("Constant weights, as in the authors' released trainer."),
    "paper": Preset("Alg. 1 as printed: no epsilon, one ascent per epoch.", decay="compounding"),
    "constrained": Preset(
        "A real epsilon: multipliers start at 0, rise while violated and fall after."
    ),
}

CONSTRAINTS: dict[str, ConstraintEntry] = {
    "alignment": ConstraintEntry(
        own("alignment"),
        "Depth and prompt features, projected to one map each, agree at every stage (Eq. 7).",
        {
            "fixed": Constraint(multiplier=0.05),
            "paper": Constraint(multiplier=0.01, rate=0.01),
            "constrained": Constraint(epsilon=0.02, rate=0.1),
        },
    ),
    "edge": ConstraintEntry(
        own("edge"),
        "The prediction has the edges of the foundation model's depth (Eq. 9 and 10).",
        {
            "fixed": Constraint(multiplier=0.1),
            "paper": Constraint(multiplier=0.05, rate=0.01),
            "constrained": Constraint(epsilon=0.01, rate=0.1),
        },
        options={"normalise": True, "magnitude": True},
    ),
    "consistency": ConstraintEntry(
        own("consistency"),
        "A faithful result agrees with its measurements before it is made to; RMS, of the range.",
        {
            "fixed": Constraint(multiplier=0.5),
            "paper": Constraint(multiplier=0.01, rate=0.01),
            "constrained": Constraint(epsilon=0.003, rate=0.5),
        },
    ),
    "flying": ConstraintEntry(
        own("flying"),
        "Share of the pixels at depth edges that are on neither surface.",
        {
            "fixed": Constraint(multiplier=0.01),
            "paper": Constraint(multiplier=0.01, rate=0.01),
            "constrained": Constraint(epsilon=0.35, rate=0.01),
        },
        options={"radius": 4},
    ),
    "coverage": ConstraintEntry(
        own("coverage"),
        "The share of errors below one sigma is 68.3 %, give or take epsilon.",
        {
            "fixed": Constraint(multiplier=0.02),
            "paper": Constraint(multiplier=0.01, rate=0.01),
            "constrained": Constraint(epsilon=0.03, rate=0.05),
        },
    ),
}
PAPER_CONSTRAINTS = ("alignment", "edge")


def preset_dual(preset: str, names: Iterable[str] = PAPER_CONSTRAINTS) -> Dual:
    """The multipliers of a preset for these constraints."""
    constraints = {}
    for name in names:
        if preset not in CONSTRAINTS[name].presets:
            raise InputError(f"constraint {name} has no numbers for preset {preset!r} in its entry")
        constraints[name] = CONSTRAINTS[name].presets[preset]
    return Dual(constraints, decay=PRESETS[preset].decay)
