"""A temporal filter that is anchored in each frame's own measurements.

The result before is carried into the present image: by the two poses, if the recording states
them, and else, or where that leaves gaps, along the optical flow (OpenCV's DIS). Its
level is then corrected by what the present frame measured, smoothed, so that a camera that comes
nearer is followed at once. Only then are the two averaged, and only where they show the same thing:
the flow leads back to where it came from, the colours agree, and so do the depths. Whatever moves,
appears or disappears is taken from the present frame alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import Floats, Mask
from ducos.cameras import Camera
from ducos.errors import needed
from ducos.filters import gaussian

LONGEST_SIDE = 640  # pixels at which flow is computed
MEASURED, HOLES = 0.5, 0.8  # weight of the frame before, where measured and where guessed
LARGEST_RETURN = 1.0  # pixels between a place and where the flow and its way back lead
LARGEST_CHANGE = 0.08  # of white, between the colours of the two places
NEAR_MEASURED, NEAR_HOLES = 0.03, 0.15  # of the depth: beyond it they are two surfaces
FADING, RECALLED = 0.95, 0.2  # of a measurement, from frame to frame; below it, it is forgotten
SMOOTHING = 0.02  # of the longest side: over so much the level is corrected


@dataclass(frozen=True)
class View:
    """camera: at the size of the image. pose: (4, 4), camera to world."""

    camera: Camera
    pose: NDArray[np.float64]


class Steady:
    """The filter; call it with one frame after the other."""

    def __init__(self) -> None:
        self.cv2 = needed("cv2", "formats")
        self.flow = self.cv2.DISOpticalFlow_create(self.cv2.DISOPTICAL_FLOW_PRESET_FAST)
        self.image: Floats | None = None
        self.depth: Floats | None = None
        self.seen: Floats | None = None
        self.view: View | None = None

    def __call__(
        self, image: Floats, depth: Floats, valid: Mask, measured: Mask, view: "View | None" = None
    ) -> Floats:
        """The steadied depth (H, W).

        Args:
            image: (H, W, 3) in [0, 1]. depth: (H, W), the network's; valid: (H, W), where it says
            anything. measured: (H, W), pixels that are no guess in a hole. view: camera and pose
            of the frame, if they are known.
        """
        steadied, seen = depth, measured.astype(np.float32)
        if self.image is not None and self.depth is not None and self.image.shape == image.shape:
            carried, known, same = self.carried(image)
            if self.view is not None and view is not None:
                posed = self.carried_by_pose(image, view)
                there = posed[0] > 0
                carried, known, same = (
                    np.where(there, by_pose, by_flow)
                    for by_pose, by_flow in zip(posed, (carried, known, same))
                )
            same &= valid & (carried > 0)
            carried = carried + self.correction(depth, carried, same & measured)
            apart = np.abs(carried - depth) / np.maximum(depth, 1e-6)
            # Two guesses may differ as they like: kept apart, a hole would jump with each of them.
            same &= ~measured | (apart < NEAR_MEASURED)
            # What was measured a moment ago goes before a guess.
            recalled = ~measured & (known > RECALLED)
            weight = np.where(
                measured, MEASURED, np.where(recalled, np.maximum(known, HOLES), HOLES)
            )
            weight = np.where(same, weight, 0).astype(np.float32)
            steadied = (weight * carried + (1 - weight) * depth).astype(np.float32)
            seen = np.where(same & recalled, FADING * known, seen).astype(np.float32)
        self.image, self.depth = image, np.where(valid, steadied, np.float32(0))
        self.seen, self.view = seen, view
        return np.where(valid, steadied, depth)

    def carried(self, image: Floats) -> tuple[Floats, Floats, Mask]:
        """The depth before, moved to where its things are now; how far it was measured; and where
        the move can be trusted."""
        assert self.image is not None
        assert self.depth is not None
        assert self.seen is not None
        there, back = self.flows(image, self.image), self.flows(self.image, image)
        returned = there + self.moved(back, there)
        same = np.hypot(returned[..., 0], returned[..., 1]) < LARGEST_RETURN
        same &= np.abs(self.moved(self.image, there) - image).max(-1) < LARGEST_CHANGE
        # Nearest, not a mean: between two surfaces there is nothing.
        known = self.moved(self.seen, there, nearest=True)
        return self.moved(self.depth, there, nearest=True), known, same

    def carried_by_pose(self, image: Floats, view: "View") -> tuple[Floats, Floats, Mask]:
        """The same for things that stand still, each pixel of before drawn where it is seen now,
        the nearest on top; 0 in gaps."""
        assert self.image is not None
        assert self.depth is not None
        assert self.seen is not None
        assert self.view is not None
        H, W = self.depth.shape
        row, column = np.nonzero(self.depth > 0)
        far = self.depth[row, column]
        points = self.view.camera.directions(column, row) * far[:, None]
        step = np.linalg.inv(view.pose) @ self.view.pose
        points = points @ step[:3, :3].T + step[:3, 3]
        seen = points[:, 2] > 1e-3
        points, row, column = points[seen], row[seen], column[seen]
        u, v = (np.rint(x).astype(np.int64) for x in view.camera.pixels(points))
        inside = (u >= 0) & (u < W) & (v >= 0) & (v < H)
        order = np.argsort(-points[inside, 2], kind="stable")  # the nearest is written last
        u, v, row, column = (x[inside][order] for x in (u, v, row, column))
        carried = np.zeros((H, W), np.float32)
        carried[v, u] = points[inside, 2][order]
        same = np.zeros((H, W), bool)
        unlike = np.abs(self.image[row, column] - image[v, u]).max(-1)
        same[v, u] = unlike < LARGEST_CHANGE
        known = np.zeros((H, W), np.float32)
        known[v, u] = self.seen[row, column]
        return carried, known, same

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
