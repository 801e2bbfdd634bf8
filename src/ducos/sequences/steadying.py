"""A temporal filter that is anchored in each frame's own measurements.

The result before is carried along the optical flow (OpenCV's DIS) into the present image. Its
level is then corrected by what the present frame measured, smoothed, so that a camera that comes
nearer is followed at once. Only then are the two averaged, and only where they show the same thing:
the flow leads back to where it came from, the colours agree, and so do the depths. Whatever moves,
appears or disappears is taken from the present frame alone.
"""

from typing import Any

import numpy as np

from ducos.arrays import Floats, Mask
from ducos.errors import needed
from ducos.filters import gaussian

LONGEST_SIDE = 640  # pixels at which flow is computed
MEASURED, HOLES = 0.5, 0.8  # weight of the frame before, where measured and where guessed
LARGEST_RETURN = 1.0  # pixels between a place and where the flow and its way back lead
LARGEST_CHANGE = 0.08  # of white, between the colours of the two places
NEAR_MEASURED, NEAR_HOLES = 0.03, 0.15  # of the depth: beyond it they are two surfaces
SMOOTHING = 0.02  # of the longest side: over so much the level is corrected


class Steady:
    """The filter; call it with one frame after the other."""

    def __init__(self) -> None:
        self.cv2 = needed("cv2", "formats")
        self.flow = self.cv2.DISOpticalFlow_create(self.cv2.DISOPTICAL_FLOW_PRESET_FAST)
        self.image: Floats | None = None
        self.depth: Floats | None = None

    def __call__(self, image: Floats, depth: Floats, valid: Mask, measured: Mask) -> Floats:
        """The steadied depth (H, W).

        Args:
            image: (H, W, 3) in [0, 1]. depth: (H, W), the network's; valid: (H, W), where it says
            anything. measured: (H, W), pixels that are no guess in a hole.
        """
        steadied = depth
        if self.image is not None and self.depth is not None and self.image.shape == image.shape:
            carried, same = self.carried(image)
            same &= valid & (carried > 0)
            carried = carried + self.correction(depth, carried, same & measured)
            apart = np.abs(carried - depth) / np.maximum(depth, 1e-6)
            same &= apart < np.where(measured, NEAR_MEASURED, NEAR_HOLES)
            weight = np.where(same, np.where(measured, MEASURED, HOLES), 0).astype(np.float32)
            steadied = (weight * carried + (1 - weight) * depth).astype(np.float32)
        self.image, self.depth = image, np.where(valid, steadied, np.float32(0))
        return np.where(valid, steadied, depth)

    def carried(self, image: Floats) -> tuple[Floats, Mask]:
        """The depth before, moved to where its things are now; and where that can be trusted."""
        assert self.image is not None
        assert self.depth is not None
        there, back = self.flows(image, self.image), self.flows(self.image, image)
        returned = there + self.moved(back, there)
        same = np.hypot(returned[..., 0], returned[..., 1]) < LARGEST_RETURN
        same &= np.abs(self.moved(self.image, there) - image).max(-1) < LARGEST_CHANGE
        # Nearest, not a mean: between two surfaces there is nothing.
        return self.moved(self.depth, there, nearest=True), same

    def flows(self, first: Floats, second: Floats) -> Floats:
        """(H, W, 2): where each pixel of the first image is in the second, as a step."""
        cv2 = self.cv2
        H, W = first.shape[:2]
        shrink = min(1.0, LONGEST_SIDE / max(H, W))
        size = (max(16, round(W * shrink)), max(16, round(H * shrink)))
        grey = [
            cv2.resize(cv2.cvtColor(np.rint(255 * x).astype(np.uint8), cv2.COLOR_RGB2GRAY), size)
            for x in (first, second)
        ]
        flow = cv2.resize(self.flow.calc(*grey, None), (W, H))
        return np.asarray(flow * (W / size[0], H / size[1]), np.float32)

    def moved(self, plane: Floats, flow: Floats, nearest: bool = False) -> Floats:
        """A plane (H, W[, C]) looked up where the flow leads."""
        cv2 = self.cv2
        H, W = flow.shape[:2]
        rows, columns = np.mgrid[:H, :W].astype(np.float32)
        how = cv2.INTER_NEAREST if nearest else cv2.INTER_LINEAR
        places: Any = (columns + flow[..., 0], rows + flow[..., 1])
        return np.asarray(
            cv2.remap(plane, *places, how, borderMode=cv2.BORDER_REPLICATE), np.float32
        )

    def correction(self, depth: Floats, carried: Floats, known: Mask) -> Floats:
        """What the present measurements say about the level of what was carried; smooth."""
        step = np.where(known, depth - carried, 0).astype(np.float32)
        close = known & (np.abs(step) < NEAR_HOLES * np.maximum(depth, 1e-6))
        width = SMOOTHING * max(depth.shape)
        total = gaussian(np.where(close, step, 0).astype(np.float32), width)
        share = gaussian(close.astype(np.float32), width)
        return np.where(share > 1e-3, total / np.maximum(share, 1e-3), 0).astype(np.float32)
