"""Ground truth -> what a low-resolution sensor or a published protocol would hand to the network.

Every degradation has one form, so that they can be swapped by name:

    low, low_valid = DEGRADATIONS[name](target, valid, rgb, size, generator, unit="m")

    target (B, 1, H, W), valid (B, 1, H, W) bool: ground truth; what invalid pixels hold is ignored.
    rgb (B, 3, H, W) in [0, 1] or None: only sensors that depend on reflectance look at it.
    size (h, w): of the result, any ratio per axis.
    generator: source of all randomness; the same seed gives the same map. None: torch's own.
    unit: "m", or "level" for 8-bit codes (Middlebury, Lu).
    low (B, 1, h, w) in the target's unit, 0 where low_valid (B, 1, h, w) is False.

`resampling` holds plain resamplings, `noise` the protocols of the field with noise and compression,
`devices` models of real sensors, `contract` what they all share. A hole of the target never bleeds:
whatever is stored in it, the result is the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ducos.lazy import Later, options_of

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from ducos.arrays import Size
    from ducos.degrade.contract import Low

Kind = Literal["resampled", "noisy", "simulated"]


@dataclass(frozen=True)
class DegradationEntry:
    """A degradation by name; call it as the head of this file says.

    function: the degradation itself. about: a sentence for people.
    kind: "resampled" maps have no noise of their own, so training may blur, invert or roughen the
        ground truth they are made of; "simulated" ones come from the model of a sensor, which needs
        metres and the true scene, and which a network can be told; "noisy" ones are neither.
    """

    function: "Callable[..., Low]"
    about: str
    kind: Kind

    def __call__(
        self,
        target: "Tensor",
        valid: "Tensor",
        rgb: "Tensor | None",
        size: "Size",
        generator: "Generator | None" = None,
        *,
        unit: str = "m",
        **options: Any,
    ) -> "Low":
        """See the head of this file; options: the degradation's own."""
        return self.function(target, valid, rgb, size, generator, unit=unit, **options)

    @property
    def defaults(self) -> dict[str, Any]:
        """The degradation's own options with their defaults."""
        shared = ("generator", "unit")
        return {n: v for n, v in options_of(self.function).items() if n not in shared}


def own(place: str, **given: Any) -> Later:
    """A callable of this room, imported when it is used."""
    return Later(f"ducos.degrade.{place}", **given)


DEGRADATIONS: dict[str, DegradationEntry] = {
    "bicubic": DegradationEntry(
        own("resampling:bicubic"),
        "Pillow's bicubic downsampling, the field's synthetic protocol.",
        "resampled",
    ),
    "nearest": DegradationEntry(
        own("resampling:nearest"),
        "The value at the centre of each low-resolution pixel: sharp and aliased.",
        "resampled",
    ),
    "last-pixel": DegradationEntry(
        own("resampling:last_pixel"),
        "The last pixel of each low-resolution pixel's block, as DJF and DJFR were trained.",
        "resampled",
    ),
    "area": DegradationEntry(
        own("resampling:area"),
        "The mean of the valid part of each pixel's area; a hole if less than half is valid.",
        "resampled",
    ),
    "noisy": DegradationEntry(
        own("noise:noisy"),
        "Bicubic, then blur and noise on the low-resolution grid: DuCos's noisy rows.",
        "noisy",
    ),
    "noisy-tofdsr": DegradationEntry(
        own("noise:noisy", own_range=False),
        "As `noisy`, with noise of 0.35 m whatever the range of the scene.",
        "noisy",
    ),
    "noisy-dornet": DegradationEntry(
        own("noise:noisy_dornet"),
        "Bicubic down and up again, then blur and noise at the image's size: DORNet's noisy rows.",
        "noisy",
    ),
    "compressed": DegradationEntry(
        own("noise:compressed"),
        "Four bits fewer, downsampling and noise, in an order that keeps the depth readable.",
        "noisy",
    ),
    "compressed-as-released": DegradationEntry(
        own("noise:compressed_as_released"),
        "The published compression code with its defects: signal and noise are about equal.",
        "noisy",
    ),
    "compressed-as-released-nyu": DegradationEntry(
        own("noise:compressed_as_released", normalised_first=True),
        "The same for a map already in [0, 1]: only noise is left.",
        "noisy",
    ),
    "tof": DegradationEntry(
        own("devices:tof"),
        "Model of a time-of-flight camera: flying pixels, soft ragged edges, noise in the dark.",
        "simulated",
    ),
    "lidar": DegradationEntry(
        own("devices:lidar"),
        "Model of a phone's LiDAR: sparse laser spots interpolated to a map.",
        "simulated",
    ),
    "stereo": DegradationEntry(
        own("devices:stereo"),
        "Model of a stereo camera: occlusion shadows, disparity steps, noise that grows with z².",
        "simulated",
    ),
    "misregister": DegradationEntry(
        own("devices:misregister"),
        "Bicubic of a depth map that is misaligned with the image by a few pixels.",
        "noisy",
    ),
}
