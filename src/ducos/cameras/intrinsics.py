"""Cameras: a pinhole with distortion, and where two cameras stand to each other.

Conventions, the same everywhere in the project (`docs/cameras.md` shows them at work):

- x to the right, y down, z forward, metres; depth is z (planar), not the length of the ray;
- the centre of the top-left pixel is (0, 0), as in OpenCV, RealSense, Azure Kinect and ARKit. With
  it the project's pixel-centre rule turns a resize by s into cx' = (cx + 0.5) s - 0.5;
- extrinsics map points from the depth camera to the colour camera: X_colour = R X_depth + t.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ducos.errors import InputError

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Camera:
    """A pinhole camera with OpenCV's distortion.

    width, height: pixels. fx, fy: focal lengths in pixels. cx, cy: principal point, where (0, 0) is
    the centre of the top-left pixel. distortion: k1 k2 p1 p2 [k3 [k4 k5 k6]], empty for none.
    note: what is to be known about where the numbers come from.
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: tuple[float, ...] = ()
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        numbers = (self.fx, self.fy, self.cx, self.cy, *self.distortion)
        if min(self.width, self.height) < 1 or not all(map(math.isfinite, numbers)):
            raise InputError(f"these are no intrinsics: {self}")
        if min(self.fx, self.fy) <= 0:
            raise InputError(f"focal lengths are positive pixels, got fx {self.fx}, fy {self.fy}")
        if len(self.distortion) not in (0, 4, 5, 8):
            raise InputError(
                f"distortion has 4, 5 or 8 coefficients (k1 k2 p1 p2 k3 k4 k5 k6), got "
                f"{len(self.distortion)}"
            )

    @staticmethod
    def from_field_of_view(width: int, height: int, degrees: float) -> "Camera":
        """A camera with this horizontal angle of view, looking through the image's centre."""
        if not 0.01 <= degrees <= 179.9:
            raise InputError(f"the field of view is an angle of 0.01 to 179.9°, got {degrees:g}")
        focal = 0.5 * width / math.tan(math.radians(degrees) / 2)
        return Camera(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)

    def scaled(self, width: int, height: int) -> "Camera":
        """The same camera with its image resized to width × height."""
        across, down = width / self.width, height / self.height
        return replace(
            self,
            width=width,
            height=height,
            fx=self.fx * across,
            fy=self.fy * down,
            cx=(self.cx + 0.5) * across - 0.5,
            cy=(self.cy + 0.5) * down - 0.5,
        )

    def doubts(self) -> list[str]:
        """Sentences on what is hard to believe about these numbers, and on guesses."""
        found = [self.note] if self.note else []
        if not (0 <= self.cx < self.width and 0 <= self.cy < self.height):
            found.append(
                f"the principal point ({self.cx:.0f}, {self.cy:.0f}) lies outside the "
                f"{self.width}×{self.height} image; are these the intrinsics of another size?"
            )
        across = 2 * math.degrees(math.atan(0.5 * self.width / self.fx))
        if not 10 <= across <= 150:
            found.append(
                f"the field of view is {across:.0f}° across, unusual for a depth camera; is the "
                f"focal length {self.fx:g} in pixels of this size?"
            )
        if max(self.fx / self.fy, self.fy / self.fx) > 1.2:
            found.append(f"fx {self.fx:g} and fy {self.fy:g} differ by more than a fifth")
        return found

    @property
    def undistorted(self) -> bool:
        return not any(self.distortion)

    def directions(self, u: ArrayLike, v: ArrayLike) -> Doubles:
        """(..., 3) points at z = 1 seen at pixel coordinates u, v."""
        u, v = np.asarray(u, np.float64), np.asarray(v, np.float64)
        x, y = (u - self.cx) / self.fx, (v - self.cy) / self.fy
        if not self.undistorted:
            seen_x, seen_y = x, y
            for _ in range(40):  # fixed point; the distortion of a depth camera is mild
                bent_x, bent_y = self._bent(x, y)
                x, y = x + seen_x - bent_x, y + seen_y - bent_y
        return np.stack([x, y, np.ones_like(x)], -1)

    def pixels(self, points: Doubles) -> tuple[Doubles, Doubles]:
        """Pixel coordinates u, v (...) of points (..., 3) in front of the camera."""
        x, y = points[..., 0] / points[..., 2], points[..., 1] / points[..., 2]
        if not self.undistorted:
            x, y = self._bent(x, y)
        return self.fx * x + self.cx, self.fy * y + self.cy

    def _bent(self, x: Doubles, y: Doubles) -> tuple[Doubles, Doubles]:
        """Where the lens puts a point that a pinhole would show at x, y (at z = 1)."""
        k1, k2, p1, p2, k3, k4, k5, k6 = (*self.distortion, *(0.0,) * 8)[:8]
        r = x * x + y * y
        radial = (1 + r * (k1 + r * (k2 + r * k3))) / (1 + r * (k4 + r * (k5 + r * k6)))
        return (
            x * radial + 2 * p1 * x * y + p2 * (r + 2 * x * x),
            y * radial + p1 * (r + 2 * y * y) + 2 * p2 * x * y,
        )


@dataclass(frozen=True)
class Extrinsics:
    """X_colour = rotation @ X_depth + translation, in metres. note: how the file was read."""

    rotation: Doubles = field(default_factory=lambda: np.eye(3))
    translation: Doubles = field(default_factory=lambda: np.zeros(3))
    note: str = "the two cameras are one"

    def __post_init__(self) -> None:
        turn, shift = np.asarray(self.rotation, float), np.asarray(self.translation, float)
        if turn.shape != (3, 3) or shift.shape != (3,):
            raise InputError(
                f"extrinsics are a 3×3 rotation and 3 numbers, got {turn.shape} and {shift.shape}"
            )
        if not (np.isfinite(turn).all() and np.isfinite(shift).all()):
            raise InputError("the extrinsics hold NaN or infinity")
        if np.abs(turn @ turn.T - np.eye(3)).max() > 1e-3 or np.linalg.det(turn) < 0:
            raise InputError(
                "the rotation of the extrinsics is no rotation matrix; check its order"
            )
        object.__setattr__(self, "rotation", turn)
        object.__setattr__(self, "translation", shift)

    def inverted(self) -> "Extrinsics":
        return Extrinsics(self.rotation.T, -self.rotation.T @ self.translation, self.note)

    def apply(self, points: Doubles) -> Doubles:
        """Points (..., 3) of the depth camera in the colour camera."""
        return points @ self.rotation.T + self.translation
