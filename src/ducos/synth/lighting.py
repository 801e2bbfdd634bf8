"""Lamps, daylight and the sky."""

import numpy as np

from ducos.synth.materials import Colour, Random
from ducos.synth.placement import Pose, pose_at
from ducos.synth.scene import Light, Scene, Sky
from ducos.synth.shapes import cylinder, lathe, tube
from ducos.synth.supply import Supply


def kelvin(temperature: float) -> Colour:
    """Linear RGB of a black body, brightest channel 1; a fit good enough for lamps."""
    t = temperature / 100
    if t <= 66:
        channels = [255.0, 99.47 * np.log(t) - 161.1, 138.5 * np.log(t - 10) - 305]
    else:
        channels = [329.7 * (t - 60) ** -0.1332, 288.1 * (t - 60) ** -0.0755, 255.0]
    red, green, blue = np.clip(np.array(channels) / 255, 0, 1) ** 2.2
    return float(red), float(green), float(blue)


def shining(direction: tuple[float, float, float], at: tuple[float, float, float]) -> Pose:
    """Pose of an area light or sun at `at` whose -z axis points along `direction`."""
    back = -np.asarray(direction, np.float64)
    back /= np.linalg.norm(back)
    helper = np.array([0.0, 1.0, 0.0]) if abs(back[2]) > 0.9 else np.array([0.0, 0.0, 1.0])
    right = np.cross(helper, back)
    right /= np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3, :3] = np.stack([right, np.cross(back, right), back], 1)
    pose[:3, 3] = at
    return pose


def pendant(scene: Scene, rng: Random, supply: Supply) -> None:
    """A lamp hanging on its cable, lit."""
    width, depth, height = scene.size
    x, y = rng.uniform(-0.35, 0.35) * width, rng.uniform(-0.35, 0.35) * depth
    z, radius = rng.uniform(1.6, 2.1), rng.uniform(0.08, 0.22)
    wire = supply.palette.metals[1]
    scene.add("cable", tube([(x, y, height), (x, y, z + 0.1)], 0.003, wire))
    flare = [
        (0.02, 0.13),
        (radius * 0.6, 0.11),
        (radius, 0),
        (radius - 0.003, 0),
        (radius * 0.6, 0.1),
    ]
    scene.add("pendant", lathe(flare, supply.palette.small()).moved(x, y, z))
    scene.add("rose", cylinder(0.05, 0.02, wire, (x, y, height - 0.02)))
    power = rng.uniform(5, 60)
    scene.lights.append(Light("POINT", pose_at(x, y, z - 0.02), power, _lamp(rng), (0.04, 0.04)))


def _lamp(rng: Random) -> Colour:
    return kelvin(rng.uniform(2700, 7000))


def light_room(scene: Scene, rng: Random, supply: Supply, windows: int) -> None:
    """Ceiling panels, lamps, perhaps sun; daylight through windows belongs to the windows."""
    width, depth, height = scene.size
    colour = (rng.uniform(0.6, 1.0), rng.uniform(0.75, 1.0), 1.0)
    scene.sky = Sky(colour, rng.uniform(0.3, 1.5), supply.hdri(), rng.uniform(0, 2 * np.pi))
    for _ in range(int(rng.integers(0, 3))):
        pendant(scene, rng, supply)
    choice = rng.random()
    if choice < 0.6 or windows == 0:
        for _ in range(int(rng.integers(1, 4))):
            x, y = rng.uniform(-0.33, 0.33) * width, rng.uniform(-0.33, 0.33) * depth
            side = rng.uniform(0.2, 1.4)
            pose = shining((0, 0, -1), (x, y, height - 0.03))
            size = (side, side * rng.uniform(0.3, 1))
            scene.lights.append(Light("AREA", pose, rng.uniform(15, 90), _lamp(rng), size))
    if choice > 0.35:
        for _ in range(int(rng.integers(1, 3))):
            x, y = rng.uniform(-0.45, 0.45) * width, rng.uniform(-0.45, 0.45) * depth
            radius = rng.uniform(0.02, 0.2)
            pose = pose_at(x, y, rng.uniform(0.9, height - 0.2))
            power = rng.uniform(8, 70)
            scene.lights.append(Light("POINT", pose, power, _lamp(rng), (radius, radius)))
    if windows and rng.random() < 0.4:
        around, above = rng.uniform(0, 2 * np.pi), rng.uniform(0.4, 1.1)
        direction = (np.cos(around) * np.cos(above), np.sin(around) * np.cos(above), -np.sin(above))
        sun = kelvin(rng.uniform(4500, 6500))
        scene.lights.append(Light("SUN", shining(direction, (0, 0, 5)), rng.uniform(1, 6), sun))
