"""Named suites: lists of cases by which weights are judged and chosen.

A case makes one input of every pair of its data and asks for the ground truth. Its figure is the
ratio of our RMSE to that of mask-aware bicubic on the same input; below 1 is better. Ratios are
averaged as geometric means, over images and over cases. How they are measured: `suite_scoring`.
"""

from dataclasses import dataclass
from typing import Literal

from ducos.errors import InputError

BLOCKS = "blocks"
"""A `low` that is no degradation: the mean of the valid pixels of each block, a hole if fewer than
half of them are valid."""

IMAGES = {
    "given": "as it is",
    "dark": "black",
    "wrong": "cut in four and put together crosswise: nothing lies where it was",
    "shifted": "6 pixels too far right of the depth",
}
"""What becomes of the image of a case."""

PRIORS = {
    "none": "no monocular depth",
    "simulated": "what a foundation model would say, made of the ground truth",
    "wrong": "the same of a scene that is cut in four and put together crosswise",
}
"""Which monocular depth comes with a case; models that take none are not given any."""


@dataclass(frozen=True)
class SuiteCase:
    """One input per pair, and how the model is asked.

    data: "rendered" pairs, which have ground truth, or "captures" of cameras, whose own map is
        asked back. low: the degradation (or BLOCKS) by `ratio`; at ratio 1 the map is given whole.
    image: of IMAGES. holes: discs are cut out of the low-resolution map. soft: pixels by which the
        ground truth is blurred, since measured depth is softer than rendered depth. grain: noise
        of the ground truth in spots, root mean square as a share of its range.
    sensor, mode: as a user would say them.
    """

    name: str
    ratio: int
    low: str = "bicubic"
    data: Literal["rendered", "captures"] = "rendered"
    image: str = "given"
    holes: bool = False
    soft: float = 0.0
    grain: float = 0.0
    prior: str = "none"
    sensor: str = "unknown"
    mode: str = "auto"


@dataclass(frozen=True)
class Suite:
    """A list of cases with a sentence for people."""

    name: str
    about: str
    cases: tuple[SuiteCase, ...]


_RENDERED = (
    *(SuiteCase(f"bicubic_x{ratio}", ratio) for ratio in (2, 4, 8, 16)),
    *(SuiteCase(f"area_x{ratio}", ratio, low="area") for ratio in (4, 8)),
    *(SuiteCase(f"soft_x{ratio}", ratio, soft=0.7) for ratio in (2, 4)),
    *(SuiteCase(f"grainy_x{ratio}", ratio, soft=0.7, grain=0.005) for ratio in (2, 4, 8)),
    SuiteCase("nearest_x4", 4, low="nearest"),
    SuiteCase("holes_x1", 1, holes=True),
    SuiteCase("holes_x4", 4, holes=True),
    SuiteCase("noisy_x4", 4, low="noisy"),
    *(
        SuiteCase(f"{image}_x{ratio}", ratio, image=image)
        for image in ("dark", "wrong", "shifted")
        for ratio in (4, 8)
    ),
    *(SuiteCase(f"tof_x{ratio}", ratio, low="tof", sensor="tof") for ratio in (4, 8)),
)
_CAPTURES = tuple(
    SuiteCase(f"captures_x{ratio}", ratio, low=BLOCKS, data="captures") for ratio in (1, 2, 4, 8)
)

SUITES: dict[str, Suite] = {
    "heldout": Suite(
        "heldout",
        "What weights are chosen by: held-out rendered scenes, and maps of real cameras.",
        (*_RENDERED, *_CAPTURES),
    ),
    "priors": Suite(
        "priors",
        "What a monocular depth is worth: without one, with a simulated one, with a wrong one.",
        tuple(
            SuiteCase(f"{prior}_prior_x{ratio}", ratio, low="area", prior=prior)
            for prior in PRIORS
            for ratio in (8, 16)
        ),
    ),
}


def find_suite(name: str) -> Suite:
    """The suite of this name, or an error that lists them."""
    if name not in SUITES:
        raise InputError(f"unknown suite {name!r}; choose one of: {', '.join(SUITES)}")
    return SUITES[name]
