"""The photographer and the camera: where to stand, and what the sensor makes of the light.

A camera looks along -z of its pose with y up (Blender's convention). Depth is planar: along the
viewing axis, not along the ray.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from ducos.synth.materials import Random
from ducos.synth.placement import Pose
from ducos.synth.scene import Scene

Rays = NDArray[np.float64]
# (origin (3,), directions (N, 3)) -> distances (N,), inf where nothing is hit, and an id per ray.
Caster = Callable[[Rays, Rays], tuple[Rays, list[str]]]

FIELD_OF_VIEW = {  # horizontal, degrees
    "room": (45.0, 80.0),
    "tabletop": (35.0, 65.0),
    "still life": (35.0, 70.0),
}
NEAREST = {"room": 0.4, "tabletop": 0.3, "still life": 0.3}  # metres; 98 % of the view lies beyond
AWAY = {"tabletop": (0.5, 1.3), "still life": (0.6, 1.9)}  # metres from what it looks at
SKY_SHARE = 0.06  # of the view may have no depth
GOOD_SCORE = 34.0
TRIES = 40


@dataclass(frozen=True)
class Camera:
    """pose: (4, 4) camera to room. fov: horizontal field of view in radians."""

    pose: Pose
    fov: float

    def intrinsics(self, size: tuple[int, int]) -> tuple[float, float, float, float]:
        """fx, fy, cx, cy in pixels for an image of (height, width); pixel centres at integers."""
        height, width = size
        focal = width / 2 / np.tan(self.fov / 2)
        return float(focal), float(focal), (width - 1) / 2, (height - 1) / 2

    def rays(self, size: tuple[int, int], rows: int, columns: int) -> Rays:
        """(rows * columns, 3) unit directions over the image, in room coordinates."""
        height, width = size
        slope = np.tan(self.fov / 2)
        x, y = np.meshgrid(
            np.linspace(-0.95, 0.95, columns) * slope,
            np.linspace(-0.95, 0.95, rows) * slope * height / width,
        )
        local = np.stack([x, y, -np.ones_like(x)], -1).reshape(-1, 3)
        world = local @ self.pose[:3, :3].T
        return world / np.linalg.norm(world, axis=1, keepdims=True)


def look_at(position: Rays, target: Rays, roll: float = 0.0) -> Pose:
    """Pose of a camera at `position` looking at `target`, horizon tilted by `roll`."""
    back = position - target
    back = back / np.linalg.norm(back)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    up = np.cross(back, right)
    c, s = np.cos(roll), np.sin(roll)
    pose = np.eye(4)
    pose[:3, :3] = np.stack([c * right + s * up, c * up - s * right, back], 1)
    pose[:3, 3] = position
    return pose


def propose(rng: Random, scene: Scene) -> Camera | None:
    """A random camera, or None if it would be outside the room."""
    low, high = FIELD_OF_VIEW[scene.kind]
    fov = np.radians(rng.uniform(low, high))
    width, depth, height = scene.size
    if scene.table is not None:
        top = scene.table
        aim = (rng.uniform(-0.25, 0.25) * top.width, rng.uniform(-0.2, 0.3) * top.depth)
        target = np.array([top.x + aim[0], top.y + aim[1], top.height + rng.uniform(0, 0.2)])
        away, around, above = (
            rng.uniform(*AWAY[scene.kind]),
            rng.uniform(-2.4, -0.75),
            rng.uniform(0.1, 0.75),
        )
        flat = np.cos(above)
        direction = np.array([flat * np.cos(around), flat * np.sin(around), np.sin(above)])
        position = target + away * direction
    else:
        ground = scene.ground
        standing = np.argwhere(ground.heights < 0.9)
        things = np.argwhere(ground.heights > 0.25)
        if not len(standing) or not len(things):
            return None
        here = ground.origin + standing[int(rng.integers(len(standing)))] * ground.cell
        cell = things[int(rng.integers(len(things)))]
        there = ground.origin + cell * ground.cell
        position = np.array([*here, rng.uniform(0.9, 1.75)])
        aim_height = min(1.3, float(ground.heights[tuple(cell)])) * rng.uniform(0.6, 1.2)
        target = np.array([*there, aim_height])
    margin = np.array([width / 2 - 0.12, depth / 2 - 0.12])
    if (np.abs(position[:2]) > margin).any() or not 0.15 < position[2] < height - 0.15:
        return None
    if np.linalg.norm(target - position) < 0.5:
        return None
    return Camera(look_at(position, target, rng.uniform(-0.06, 0.06)), float(fov))


def judge(camera: Camera, scene: Scene, size: tuple[int, int], cast: Caster) -> float | None:
    """How much there is to see: distinct things plus spread of depth. None: unusable."""
    distances, names = cast(camera.pose[:3, 3], camera.rays(size, 10, 13))
    hit = np.isfinite(distances)
    if (~hit).mean() > SKY_SHARE or np.quantile(distances, 0.02) < NEAREST[scene.kind]:
        return None
    counts = np.unique([name for name, found in zip(names, hit) if found], return_counts=True)[1]
    if counts.max() > 0.6 * hit.sum():  # one thing fills the view
        return None
    return float(len(counts) + 8 * np.std(np.log(distances[hit])))


def choose_camera(rng: Random, scene: Scene, size: tuple[int, int], cast: Caster) -> Camera | None:
    """The best of up to TRIES proposals, or the first good one; None if none is usable."""
    best: Camera | None = None
    best_score = -np.inf
    usable = 0
    for _ in range(TRIES):
        camera = propose(rng, scene)
        score = judge(camera, scene, size, cast) if camera is not None else None
        if camera is None or score is None:
            continue
        usable += 1
        if score > best_score:
            best, best_score = camera, score
        if score > GOOD_SCORE or usable >= 8:
            break
    return best


def path_from(rng: Random, start: Camera, views: int) -> list[Camera]:
    """A hand-held camera that starts there: it drifts to one side and a little ahead or back,
    turns the same way, and shakes. About 12 mm a view."""
    side, ahead = rng.choice([-1.0, 1.0]) * rng.uniform(0.008, 0.014), rng.uniform(-0.004, 0.006)
    turn = -side * rng.uniform(0.2, 0.6)  # radians from view to view
    rise = 0.01 * rng.uniform(0.3, 1.0)
    cameras = []
    for view in range(views):
        c, s = np.cos(turn * view), np.sin(turn * view)
        step = np.eye(4)
        step[:3, :3] = [[c, 0, s], [0, 1, 0], [-s, 0, c]]
        step[:3, 3] = [side * view, rise * np.sin(view / 3), -ahead * view]
        cameras.append(Camera(start.pose @ step, start.fov))
    return cameras


def develop(
    light: NDArray[np.float32], rng: Random, noise: Random | None = None
) -> NDArray[np.uint8]:
    """Linear light (H, W, 3) to an 8-bit photograph, as a camera would spoil it.

    Auto-exposure with its error, white-balance error, vignette, lens blur, shot and read noise, a
    highlight shoulder or hard clipping, sRGB, contrast. noise: draws the noise, where several
    pictures of one camera are to differ in nothing else.
    """
    height, width = light.shape[:2]
    luminance = light @ np.array([0.2126, 0.7152, 0.0722])
    key = np.exp(np.mean(np.log(luminance + 1e-4)))
    exposure = rng.uniform(0.11, 0.24) / max(key, 1e-4)
    bright = np.quantile(luminance, 0.93) * exposure
    if bright > 1.1:  # hold the highlights back, as metering does
        exposure *= (1.1 / bright) ** 0.85
    image = light * exposure * rng.uniform(0.92, 1.08, 3)

    y, x = np.mgrid[0:height, 0:width]
    off_axis = (x / width - 0.5) ** 2 + (y / height - 0.5) ** 2
    image = image * (1 - rng.uniform(0, 0.5) * off_axis)[..., None]
    blur = rng.uniform(0, 0.7)
    if blur > 0.25:
        image = gaussian_filter(image, (blur, blur, 0))

    gain = 10 ** rng.uniform(-4.2, -2.4)
    variance = np.maximum(image, 0) * gain + (1.2 * gain) ** 2
    image = image + (noise or rng).normal(0, 1, image.shape) * np.sqrt(variance)
    image = np.maximum(image, 0)
    if rng.random() < 0.6:
        image = 1.25 * image * (1 + image / 6.25) / (1 + image)
    image = np.clip(image, 0, 1)
    image = np.where(image < 0.0031308, 12.92 * image, 1.055 * image ** (1 / 2.4) - 0.055)
    image = image ** rng.uniform(0.85, 1.2)
    contrast = rng.uniform(0, 0.35)
    image = image * (1 - contrast) + contrast * (3 * image**2 - 2 * image**3)
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)
