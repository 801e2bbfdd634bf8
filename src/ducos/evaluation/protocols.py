"""Named evaluation protocols: what the low-resolution input is, what is cut off, what is averaged.

Figures of two papers can be compared only if all of this agrees, and often it does not. So every
figure printed or stored here carries the name of its protocol and a short id, a digest of whatever
could change the figure. docs/protocols.md tells which published tables each one matches.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ducos.arrays import Size
from ducos.errors import InputError

UNITS = {"m": ("cm", 100.0), "level": ("level", 1.0)}
"""Unit of a dataset -> unit of its figures, and the factor between them."""


@dataclass(frozen=True)
class Protocol:
    """One way to turn ground truth into an input and a prediction into figures.

    low: name of the degradation that makes the input, with its constants in `details`.
        "as given": nothing is done to the sensor's map.
    source: what is degraded: the target; the pair's real sensor map ("sensor"); or the sensor map
        where there is one, else the target ("any").
    scales: the published ones, used when none is asked for; () when the data decide.
    modcrop: the image is first cut, at its right and bottom, to multiples of the scale, or of this
        number; 1 leaves it whole.
    border: pixels dropped on every side of the prediction before it is scored.
    normalisation: what the network's [0, 1] stands for: the range of the low-resolution input, or
        that of the ground truth, which no user has.
    averaging: figures are computed per image and averaged with equal weight, never pooled.
    seed: of the noise; with the pair's name it fixes the input of every image, whatever the order.
    """

    name: str
    about: str
    low: str = "bicubic"
    details: str = "Pillow's bicubic on float values, to floor(side / scale)"
    source: Literal["target", "sensor", "any"] = "target"
    scales: tuple[float, ...] = (4.0, 8.0, 16.0)
    modcrop: Literal["scale"] | int = "scale"
    border: int = 6
    normalisation: Literal["low", "target"] = "low"
    averaging: Literal["per image"] = "per image"
    seed: int = 0

    @property
    def id(self) -> str:
        """Eight hexadecimal digits that change with anything that can change a figure."""
        facts = asdict(self)
        for without_effect in ("name", "about", "scales"):
            del facts[without_effect]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def label(self) -> str:
        """What stands beside every figure."""
        return f"{self.name}@{self.id}"

    def card(self) -> dict[str, Any]:
        """Everything about the protocol, for results files."""
        return {"id": self.id, **asdict(self)}

    def checked_scales(self, scales: tuple[float, ...]) -> tuple[float | None, ...]:
        """The scales to run; (None,) stands for what the data give."""
        if not self.scales:
            return (None,)
        for scale in scales:
            if not 1 <= scale < float("inf"):
                raise InputError(f"a scale is 1 or more, such as 4 for ×4; got {scale}")
            if self.modcrop == "scale" and scale != int(scale):
                raise InputError(
                    f"{self.name} cuts images to multiples of the scale, which must be whole;"
                    f" got {scale:g}: use the protocol `arbitrary`"
                )
        return tuple(dict.fromkeys(float(scale) for scale in scales or self.scales))

    def cut(self, size: "Size", scale: float | None) -> "Size":
        """Size of the image after cutting it at the right and bottom."""
        step = self.modcrop if self.modcrop != "scale" else int(scale or 1)
        if min(size) < step:
            raise InputError(f"an image of {size[1]}×{size[0]} is too small to be cut to {step} px")
        return size[0] // step * step, size[1] // step * step

    def scored(self, size: "Size") -> tuple[slice, slice]:
        """Rows and columns that count."""
        if min(size) <= 2 * self.border:
            raise InputError(
                f"an image of {size[1]}×{size[0]} has nothing left within a border of"
                f" {self.border}; use larger images or the protocol `synthetic-nocrop`"
            )
        return slice(self.border, size[0] - self.border), slice(self.border, size[1] - self.border)


_NOISE = "blur 3.6 px, noise 0.07 of {}, clipped to the clean map's range, on the {} grid"
_BITS = "16-bit mm or 8-bit levels lose their last 4 bits; noise 0.02 × value + 0.05 of the range; "

_TABLE = (
    Protocol(
        "synthetic",
        "The field's main table: bicubic downsampling of the ground truth, 6-px border dropped.",
    ),
    Protocol("synthetic-nocrop", "As `synthetic`, scored up to the image border.", border=0),
    Protocol(
        "synthetic-gt-range",
        "As `synthetic`, but the network gets the ground truth's range, as NYU rows often are.",
        normalisation="target",
    ),
    Protocol(
        "synthetic-point",
        "As `synthetic`, but one pixel of each block is the input: DJF's and DJFR's training.",
        low="last-pixel",
        details="the last pixel of each block of the scale's side",
    ),
    Protocol(
        "arbitrary",
        "Bicubic downsampling by any factor, also a broken one; images are not cut.",
        scales=(1.5, 2.7, 3.4, 5.3, 11.6),
        modcrop=1,
    ),
    Protocol(
        "real",
        "The map of a real sensor against a better sensor's; the data decide the scale.",
        low="as given",
        details="untouched",
        source="sensor",
        scales=(),
        modcrop=1,
    ),
    Protocol(
        "noisy",
        "DuCos's noisy rows on RGB-D-D: blur and noise on the low-resolution grid.",
        low="noisy",
        details=_NOISE.format("the map's own range", "low-resolution"),
        source="any",
        scales=(4.0,),
        modcrop=1,
    ),
    Protocol(
        "noisy-tofdsr",
        "DuCos's noisy rows on TOFDSR: as `noisy`, with noise of 0.35 m whatever the scene.",
        low="noisy-tofdsr",
        details=_NOISE.format("5 m or 255 levels", "low-resolution"),
        source="any",
        scales=(4.0,),
        modcrop=1,
    ),
    Protocol(
        "noisy-dornet",
        "DORNet's noisy rows: blur and noise on the high-resolution grid, a much milder blur.",
        low="noisy-dornet",
        details=_NOISE.format("5 m or 255 levels", "high-resolution"),
        source="any",
        scales=(4.0,),
        modcrop=1,
    ),
    Protocol(
        "compressed",
        "Fewer bits, fewer pixels and noise, in an order that leaves the depth readable.",
        low="compressed",
        details=_BITS + "bicubic, bits shifted back before normalising",
        scales=(8.0,),
        modcrop=1,
    ),
    Protocol(
        "compressed-as-released",
        "The published compressed rows on RGB-D-D and TOFDSR: the input is nearly all noise.",
        low="compressed-as-released",
        details=_BITS + "spline zoom of order 2, bits never shifted back",
        scales=(8.0,),
        modcrop=1,
        normalisation="target",
    ),
    Protocol(
        "compressed-as-released-nyu",
        "The published compressed rows on NYU: the input is noise and nothing else.",
        low="compressed-as-released-nyu",
        details=_BITS + "cast after normalising, so nothing is left; spline zoom of order 2",
        scales=(8.0,),
        modcrop=1,
        normalisation="target",
    ),
)

PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in _TABLE}


def find(name: str) -> Protocol:
    """The protocol of this name, or an error that lists them."""
    if name not in PROTOCOLS:
        raise InputError(f"unknown protocol {name!r}; choose one of: {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
