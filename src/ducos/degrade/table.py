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
`sensors` models of real sensors, `contract` what they all share. A hole of the target never bleeds:
whatever is stored in it, the result is the same.
"""

from functools import partial
from typing import Protocol

from torch import Generator, Tensor

from ducos.arrays import Size
from ducos.degrade.contract import Low
from ducos.degrade.devices import lidar, misregister, stereo, tof
from ducos.degrade.noise import compressed, compressed_as_released, noisy, noisy_dornet
from ducos.degrade.resampling import area, bicubic, last_pixel, nearest


class Degradation(Protocol):
    """See the head of this file."""

    def __call__(
        self,
        target: Tensor,
        valid: Tensor,
        rgb: Tensor | None,
        size: Size,
        generator: Generator | None = None,
        *,
        unit: str = "m",
    ) -> Low: ...


DEGRADATIONS: dict[str, Degradation] = {
    "bicubic": bicubic,
    "nearest": nearest,
    "last-pixel": last_pixel,
    "area": area,
    "noisy": noisy,
    "noisy-tofdsr": partial(noisy, own_range=False),
    "noisy-dornet": noisy_dornet,
    "compressed": compressed,
    "compressed-as-released": compressed_as_released,
    "compressed-as-released-nyu": partial(compressed_as_released, normalised_first=True),
    "tof": tof,
    "lidar": lidar,
    "stereo": stereo,
    "misregister": misregister,
}
