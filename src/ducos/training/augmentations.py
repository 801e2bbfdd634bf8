"""The table of augmentations: what varies from patch to patch, in the order it is applied.

    AUGMENTATIONS["fog"] = AugmentationEntry(fog, "Share of patches with fog in the image.")

A function takes (sample, strength, rng) and changes the sample in place. Batches are a pure
function of seed and step, so every random number comes from `rng`. An augmentation at strength 0 is
not called and draws nothing: a new line in the table leaves existing runs as they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from ducos.errors import InputError
from ducos.lazy import Later

if TYPE_CHECKING:
    from numpy.random import Generator

Stage = Literal["image", "patch", "scene", "reference", "input"]
STAGES: dict[Stage, str] = {
    "image": "the whole image, before a square is cut out of it",
    "patch": "one square of image and ground truth",
    "scene": "what the degradation sees, of the whole batch",
    "reference": "the ground truth of the whole batch, after the input was made of the scene",
    "input": "image and low-resolution map of the whole batch",
}
"""Stage -> what the augmentation gets: a `Patch` at the first two, a `Patches` at the others."""

MADE = ("resampled", "noisy", "simulated")
MAPS = (*MADE, "real")  # kinds of low-resolution maps: of DEGRADATIONS, and a dataset's own
SENSORS_ONLY = ("simulated",)


@dataclass(frozen=True)
class AugmentationEntry:
    """One thing that varies, with the strength a config gives it.

    function(sample, strength, rng). about: a sentence for people.
    default: the strength where a config is silent; 0 or False is off.
    range: smallest and largest strength; None: a switch, true or false.
    stage: one of STAGES. maps: kinds of low-resolution maps whose samples it may change.
    needs: another augmentation without which this one is off.
    draws_when_off: is called at strength 0, too, since it has always drawn its random numbers then;
        so the patches of a seed do not depend on whether it is on.
    """

    function: "Callable[[Any, float, Generator], None]"
    about: str
    default: float = 0.0
    range: tuple[float, float] | None = (0.0, 1.0)
    stage: Stage = "patch"
    maps: tuple[str, ...] = MAPS
    needs: str = ""
    draws_when_off: bool = False


def own(name: str) -> Later:
    """A function of `augment`, imported when it is used."""
    return Later(f"ducos.training.augment:{name}")


AUGMENTATIONS: dict[str, AugmentationEntry] = {
    "zoom": AugmentationEntry(
        own("zoom"),
        "Smallest factor by which an image is shrunk before cropping: more edges per patch.",
        default=1.0,
        range=(0.01, 1.0),
        stage="image",
        maps=MADE,
    ),
    "prior": AugmentationEntry(
        own("prior"),
        "Share of patches that come with a simulated monocular model's relative depth.",
        maps=MADE,
    ),
    "shift": AugmentationEntry(
        own("shift"),
        "Largest misalignment of image and depth in pixels; most are far smaller.",
        range=(0.0, inf),
        maps=MADE,
    ),
    "flip": AugmentationEntry(
        own("flip"),
        "Mirror half of the patches left to right.",
        default=True,
        range=None,
        draws_when_off=True,
    ),
    "turn": AugmentationEntry(
        own("turn"),
        "Also turn patches upside down and transpose them, half of them each. Without it the floor"
        " stays at the bottom, and a prompt can learn from that.",
        default=True,
        range=None,
        needs="flip",
        draws_when_off=True,
    ),
    "fatten": AugmentationEntry(
        own("fatten"),
        "Share of patches whose ground truth has silhouettes that are fattened or shrunk by 1 to 5"
        " pixels, mostly 1 or 2, as the maps of real cameras have.",
        maps=("resampled",),
    ),
    "ragged": AugmentationEntry(
        own("ragged"),
        "Share of patches whose ground truth has ragged edges, in blocks of 2 to 8 pixels, as"
        " stereo and structured light leave them.",
        maps=("resampled",),
    ),
    "disparity_steps": AugmentationEntry(
        own("disparity_steps"),
        "Share of patches whose ground truth is rounded in inverse depth, with 20 to 400 steps at"
        " the median depth.",
        maps=("resampled",),
    ),
    "invert": AugmentationEntry(
        own("invert"),
        "Share of resampled patches turned into inverse depth, as in Middlebury.",
        maps=MADE,
        draws_when_off=True,
    ),
    "edge_jitter": AugmentationEntry(
        own("edge_jitter"),
        "Share of patches whose ground truth has edges that waver about the image's by a pixel, as"
        " measured ground truth does.",
        maps=("resampled",),
    ),
    "blur_target": AugmentationEntry(
        own("blur_target"),
        "Share of patches whose ground truth is blurred by 0.3 to 4.5 pixels; a network that knows"
        " only sharp ground truth sharpens what should stay soft.",
        maps=("resampled",),
    ),
    "grain_noise": AugmentationEntry(
        own("grain_noise"),
        "Share of patches whose ground truth has grain; otherwise a network takes grain for the"
        " mark of a sensor.",
        maps=("resampled",),
    ),
    "quantise": AugmentationEntry(
        own("quantise"),
        "Share of patches rounded to 60 to 255 levels, as 8-bit benchmarks are.",
        maps=MADE,
        draws_when_off=True,
    ),
    "colour": AugmentationEntry(
        own("colour"),
        "Strength of gamma, gain, tint, noise, blur and JPEG on the image.",
    ),
    "misalign": AugmentationEntry(
        own("misalign"),
        "Largest misalignment of a simulated sensor's map with image and ground truth, in pixels of"
        " that map; most are far smaller.",
        range=(0.0, inf),
        stage="scene",
        maps=SENSORS_ONLY,
    ),
    "reference_noise": AugmentationEntry(
        own("reference_noise"),
        "Share of simulated sensors' patches whose ground truth is what another device would have"
        " measured: wavering edges, soft, a little misaligned.",
        stage="reference",
        maps=SENSORS_ONLY,
    ),
    "shadows": AugmentationEntry(
        own("shadows"),
        "Share of patches whose image has shadows across it, and spots where its edges are lost.",
        stage="input",
    ),
    "corrupt_rgb": AugmentationEntry(
        own("corrupt_rgb"),
        "Share of patches whose image is grey, framed, faded or of something else, so that the"
        " network does not fail in the dark.",
        stage="input",
    ),
    "holes": AugmentationEntry(
        own("holes"),
        "Share of patches whose low-resolution map gets holes.",
        stage="input",
        draws_when_off=True,
    ),
    "shadow_holes": AugmentationEntry(
        own("shadow_holes"),
        "Share of patches whose low-resolution map has holes beside near things, on one side of"
        " them, as wide as an occlusion shadow, and a few specks.",
        stage="input",
        maps=("resampled", "simulated"),
    ),
    "input_noise": AugmentationEntry(
        own("input_noise"),
        "Share of patches whose low-resolution map has noise of 0.1 to 1.5 % of its range that the"
        " ground truth does not have; the batch says how much.",
        stage="input",
        maps=("resampled",),
    ),
    "hint": AugmentationEntry(
        own("hint"),
        "Share of the patches of a real or simulated sensor whose network is told which it is.",
        stage="input",
        maps=("simulated", "real"),
    ),
}

RENAMED = {
    "waver": "edge_jitter",
    "soften": "blur_target",
    "remeasure": "reference_noise",
    "grain": "grain_noise",
    "spoil": "corrupt_rgb",
    "shade": "shadows",
    "misplace": "misalign",
}


def strengths(**chosen: float) -> dict[str, float]:
    """The strength of every augmentation: the chosen ones checked, the table's defaults else."""
    for name, value in chosen.items():
        _check(name, value)
    every = {name: chosen.get(name, entry.default) for name, entry in AUGMENTATIONS.items()}
    needs = {name: entry.needs for name, entry in AUGMENTATIONS.items() if entry.needs}
    return every | {name: type(every[name])(0) for name in needs if not every[needs[name]]}


def augment(stage: Stage, sample: Any, chosen: Mapping[str, float], rng: "Generator") -> None:
    """Apply the augmentations of one stage to a sample, in the order of the table."""
    for name, entry in AUGMENTATIONS.items():
        concerned = entry.stage == stage and sample.kind in entry.maps
        if concerned and (chosen[name] or entry.draws_when_off):
            entry.function(sample, chosen[name], rng)


def _check(name: str, value: Any) -> None:
    if name in RENAMED:
        raise InputError(f"the augmentation {name} is now called {RENAMED[name]}")
    if name not in AUGMENTATIONS:
        raise InputError(f"unknown augmentation {name!r}; choose of: {', '.join(AUGMENTATIONS)}")
    entry = AUGMENTATIONS[name]
    if entry.range is None:
        if not isinstance(value, bool):
            raise InputError(f"{name} is true or false, got {value!r}. {entry.about}")
        return
    lowest, highest = entry.range
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and lowest <= value <= highest):
        raise InputError(f"{name} is {lowest:g} to {highest:g}, got {value!r}. {entry.about}")
