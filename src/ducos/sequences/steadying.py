"""A temporal filter that is anchored in each frame's own measurements.

The result before is carried into the present image: by the two poses, if the recording states
them and what is carried so agrees with what is measured now; and else, or where that leaves gaps,
along the optical flow (OpenCV's DIS). Flow knows nothing of depth: its level is corrected by what
the present frame measured, smoothed, so that a camera that comes nearer is followed at once. Poses
need no such correction in holes, where it would only waver.

Only then are the two averaged, and only where they show the same thing: the flow leads back to
where it came from, the colours agree, and where measured, so do the depths. Whatever moves, appears
or disappears is taken from the present frame alone. In a hole, what was measured a moment ago goes
before any guess, and a guess is the mean of all that were made for that place: the longer it was
looked at, the less a new one moves it.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import Floats, Mask
from ducos.cameras import Camera
from ducos.errors import needed
from ducos.filters import gaussian, maximum, minimum

LONGEST_SIDE = 640  # pixels at which flow is computed
MEASURED = 0.5  # weight of the frame before, where measured
MOST_GUESSES = 19  # that a mean of guesses is made of; then older ones fade
LARGEST_RETURN = 1.0  # pixels between a place and where the flow and its way back lead
LARGEST_CHANGE = 0.08  # of white, by which a colour leaves those around the place before
AROUND = 3  # pixels of their window: half a pixel beside an edge has another colour
NEAR_MEASURED, NEAR_HOLES = 0.03, 0.15  # of the depth: beyond it they are two surfaces
FADING, RECALLED = 0.95, 0.2  # of a measurement, from frame to frame; below it, it is forgotten
SMOOTHING = 0.05  # of the longest side: over so much the level is corrected


@dataclass(frozen=True)
class View:
    """camera: at the size of the image. pose: (4, 4), camera to world."""

    camera: Camera
    pose: NDArray[np.float64]


class Past(NamedTuple):
    """What is remembered of each pixel (H, W).

    depth: steadied; 0 for none. measured: 1 where it was measured, less the longer ago that was, 0
    for a guess. guesses: how many its mean is made of. x, y: where in the pixel the point lies,
        from its centre: without them a point that moves less than half a pixel would stay.
    """

    depth: Floats
    measured: Floats
    guesses: Floats
    x: Floats
    y: Floats


class Steady:
    """The filter; call it with one frame after the other."""

    def __init__(self) -> None:
        self.cv2 = needed("cv2", "formats")
        self.flow = self.cv2.DISOpticalFlow_create(self.cv2.DISOPTICAL_FLOW_PRESET_FAST)
        self.image: Floats | None = None
        self.past: Past | None = None
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
        zero, one = np.zeros_like(depth), np.ones_like(depth)
        steadied, past = depth, Past(depth, measured.astype(np.float32), one, zero, zero)
        if self.image is not None and self.past is not None and self.image.shape == image.shape:
            lowest, highest = (of(self.image, AROUND) for of in (colour_minimum, colour_maximum))
            carried, same = self.by_flow(image, lowest, highest)
            correction = self.correction(depth, carried.depth, same & measured & valid)
            if self.view is not None and view is not None:
                posed, alike = self.by_pose(image, lowest, highest, view)
                there = posed.depth > 0
                if agree(posed.depth, depth, there & alike & measured & valid):
                    carried = Past(*(np.where(there, *both) for both in zip(posed, carried)))
                    same = np.where(there, alike, same)
                    level = self.correction(depth, carried.depth, same & measured & valid)
                    correction = np.where(measured, level, np.where(there, 0, correction))
            same &= valid & (carried.depth > 0)
            before = carried.depth + correction
            apart = np.abs(before - depth) / np.maximum(depth, 1e-6)
            # Two guesses may differ as they like: kept apart, a hole would jump with each of them.
            same &= ~measured | (apart < NEAR_MEASURED)
            # What was measured a moment ago goes before a guess.
            recalled = ~measured & (carried.measured > RECALLED)
            mean = carried.guesses / (carried.guesses + 1)
            weight = np.where(
                measured, MEASURED, np.where(recalled, np.maximum(carried.measured, mean), mean)
            )
            weight = np.where(same, weight, 0).astype(np.float32)
            steadied = (weight * before + (1 - weight) * depth).astype(np.float32)
            more = np.minimum(carried.guesses + 1, MOST_GUESSES)
            past = Past(
                steadied,
                np.where(same & recalled, FADING * carried.measured, past.measured),
                np.where(same & ~measured, more, one),
                np.where(same & ~measured, carried.x, zero),
                np.where(same & ~measured, carried.y, zero),
            )
        self.past = past._replace(depth=np.where(valid, steadied, np.float32(0)))
        self.image, self.view = image, view
        return np.where(valid, steadied, depth)

    def by_flow(self, image: Floats, lowest: Floats, highest: Floats) -> tuple[Past, Mask]:
        """The past, moved to where its things are now; and where the move can be trusted."""
        assert self.image is not None
        assert self.past is not None
        there, back = self.flows(image, self.image), self.flows(self.image, image)
        returned = there + self.moved(back, there)
        same = np.hypot(returned[..., 0], returned[..., 1]) < LARGEST_RETURN
        # Nearest, not a mean: between two surfaces there is nothing.
        colours = (self.moved(plane, there, nearest=True) for plane in (lowest, highest))
        same &= outside(image, *colours) < LARGEST_CHANGE
        return Past(*(self.moved(plane, there, nearest=True) for plane in self.past)), same

    def by_pose(
        self, image: Floats, lowest: Floats, highest: Floats, view: "View"
    ) -> tuple[Past, Mask]:
        """The same for things that stand still, each pixel of before drawn where it is seen now,
        the nearest on top; depth 0 in gaps."""
        assert self.past is not None
        assert self.view is not None
        H, W = self.past.depth.shape
        row, column = np.nonzero(self.past.depth > 0)
        far = self.past.depth[row, column]
        within = self.past.x[row, column], self.past.y[row, column]
        points = self.view.camera.directions(column + within[0], row + within[1]) * far[:, None]
        step = np.linalg.inv(view.pose) @ self.view.pose
        points = points @ step[:3, :3].T + step[:3, 3]
        seen = points[:, 2] > 1e-3
        points, row, column = points[seen], row[seen], column[seen]
        x, y = view.camera.pixels(points)
        u, v = (np.rint(exact).astype(np.int64) for exact in (x, y))
        inside = (u >= 0) & (u < W) & (v >= 0) & (v < H)
        order = np.argsort(-points[inside, 2], kind="stable")  # the nearest is written last
        u, v, x, y, row, column = (each[inside][order] for each in (u, v, x, y, row, column))
        drawn = Past(*(np.zeros((H, W), np.float32) for _ in self.past))
        drawn.depth[v, u] = points[inside, 2][order]
        drawn.measured[v, u] = self.past.measured[row, column]
        drawn.guesses[v, u] = self.past.guesses[row, column]
        drawn.x[v, u], drawn.y[v, u] = x - u, y - v
        same = np.zeros((H, W), bool)
        unlike = outside(image[v, u], lowest[row, column], highest[row, column])
        same[v, u] = unlike < LARGEST_CHANGE
        return drawn, same

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


def colour_minimum(image: Floats, size: int) -> Floats:
    """Lowest of size × size pixels around each, of each colour of (H, W, 3)."""
    return np.stack([minimum(image[..., k], size) for k in range(3)], -1)


def colour_maximum(image: Floats, size: int) -> Floats:
    """Highest of them."""
    return np.stack([maximum(image[..., k], size) for k in range(3)], -1)


def outside(colours: Floats, lowest: Floats, highest: Floats) -> Floats:
    """By how much colours (..., 3) leave a range, in the channel where they do most."""
    return np.asarray(np.maximum(lowest - colours, colours - highest).max(-1).clip(0), np.float32)


def agree(carried: Floats, depth: Floats, both: Mask) -> bool:
    """Whether what poses carried is at the measured level; wrong poses show themselves there."""
    apart = np.abs(carried - depth)[both] / np.maximum(depth[both], 1e-6)
    return bool(len(apart)) and float(np.median(apart)) < NEAR_MEASURED
