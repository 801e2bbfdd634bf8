"""The empty room: floor, ceiling, walls with windows and doors, and what is fixed to the walls."""

import numpy as np

from ducos.synth import furniture, objects
from ducos.synth.materials import Material, Random, lacquer, paint, vary
from ducos.synth.mesh import Mesh, join, polygons
from ducos.synth.placement import mark
from ducos.synth.scene import Scene
from ducos.synth.shapes import box, tube
from ducos.synth.supply import Supply
from ducos.synth.walls import Opening, Wall, four_walls, upright, wall_mesh
from ducos.synth.windows import build_window


def build_shell(scene: Scene, rng: Random, supply: Supply) -> list[Wall]:
    """Floor, ceiling and walls with their fixtures; returns the walls, with what is taken."""
    width, depth, height = scene.size
    x, y = width / 2, depth / 2
    floor = polygons(
        [(-x, -y, 0), (x, -y, 0), (x, y, 0), (-x, y, 0)], [(0, 1, 2, 3)], supply.palette.floor()
    )
    white = paint(rng, vary(rng, (0.78, 0.78, 0.76), 0.08), 0.05)
    ceiling = polygons(
        [(-x, -y, height), (-x, y, height), (x, y, height), (x, -y, height)], [(0, 1, 2, 3)], white
    )
    scene.add("floor", floor)
    scene.add("ceiling", ceiling)
    walls = four_walls(width, depth)
    covering, trim = supply.palette.wall(), lacquer(rng, vary(rng, (0.7, 0.69, 0.66), 0.2))
    windows = 0
    for wall in walls:
        holes: list[Opening] = []
        if windows < 2 and rng.random() < 0.5:
            hole = build_window(scene, rng, supply, wall, height, trim)
            holes.append(hole)
            windows += 1
        elif rng.random() < 0.45:
            _door(scene, rng, supply, wall, trim)
        own = covering if rng.random() < 0.75 else supply.palette.wall()
        scene.add("wall", wall_mesh(wall, height, holes, own), wall.pose)
        _skirting(scene, wall, trim)
        _hang(scene, rng, supply, wall, height)
    return walls


def _skirting(scene: Scene, wall: Wall, trim: Material) -> None:
    doors = sorted((o.left, o.right) for o in wall.taken if o.low <= 0.0)
    edges = [0.0, *(edge for door in doors for edge in door), wall.length]
    for left, right in zip(edges[::2], edges[1::2]):
        size = (right - left, 0.09, 0.014)
        scene.add(
            "skirting", upright(size, trim, ((left + right) / 2, 0.045, 0.007), 0.003), wall.pose
        )


def _door(scene: Scene, rng: Random, supply: Supply, wall: Wall, trim: Material) -> None:
    w, h = rng.uniform(0.75, 0.95), rng.uniform(1.95, 2.1)
    hung = supply.hanging("door") if rng.random() < 0.6 else None
    if hung is not None:
        w, h = float(hung[0].size[0]), float(hung[0].size[2])
    middle = rng.uniform(w / 2 + 0.2, wall.length - w / 2 - 0.2)
    if not wall.free(middle - w / 2, middle + w / 2, 0.0, h):
        return
    wall.taken.append(Opening(middle - w / 2 - 0.06, middle + w / 2 + 0.06, 0.0, h + 0.06))
    if hung is not None:
        scene.add("door", hung[0], wall.stand(middle, float(hung[0].size[1]) / 2 - 0.03))
        return
    leaf = supply.palette.furniture()
    parts = [upright((w, h, 0.03), leaf, (middle, h / 2, 0.0))]
    for s in (-1, 1):
        jamb = (middle + s * (w / 2 + 0.03), h / 2, 0.02)
        parts.append(upright((0.07, h, 0.05), trim, jamb, 0.004))
    parts.append(upright((w + 0.13, 0.07, 0.05), trim, (middle, h + 0.03, 0.02), 0.004))
    rows = int(rng.integers(1, 4))
    for row in range(rows):
        for s in (-1, 1):
            at = (middle + s * w * 0.23, (row + 0.5) * h / rows, 0.016)
            parts.append(upright((w * 0.34, h / rows * 0.72, 0.012), leaf, at, 0.006))
    knob = [(w * 0.4, 1.0, 0.015), (w * 0.4, 1.0, 0.06), (w * 0.28, 1.0, 0.06)]
    parts.append(tube(np.array(knob) + np.array([middle, 0, 0]), 0.009, supply.palette.metals[0]))
    scene.add("door", join(parts), wall.pose)


def _hang(scene: Scene, rng: Random, supply: Supply, wall: Wall, height: float) -> None:
    """Pictures, shelves, a radiator, a switch."""
    for _ in range(int(rng.integers(0, 4))):
        w, h = rng.uniform(0.2, 0.9), rng.uniform(0.2, 0.8)
        if w + 0.3 > wall.length:
            continue
        middle, low = rng.uniform(w / 2 + 0.1, wall.length - w / 2 - 0.1), rng.uniform(1.1, 1.5)
        is_free = wall.free(middle - w / 2, middle + w / 2, low, low + h, 0.1)
        if low + h > height - 0.1 or not is_free:
            continue
        draw = rng.random()
        model = supply.hanging("wall") if draw > 0.8 else None
        if model is not None:
            mesh, asset = model
            if asset.elevation + asset.size[2] < height:
                pose = wall.stand(middle, asset.size[1] / 2, asset.elevation)
                scene.add("wall model", mesh, pose)
        elif draw < 0.6:
            scene.add("picture", _framed(rng, supply, w, h), wall.stand(middle, 0.012, low))
        else:
            scene.add("shelf", _wall_shelf(rng, supply, w + 0.2), wall.stand(middle, 0.11, low))
            h, w = 0.4, w + 0.2
        wall.taken.append(Opening(middle - w / 2, middle + w / 2, low, low + h))
    for window in [o for o in wall.taken if 0.4 < o.low < 1.05 and o.right - o.left > 0.7]:
        if rng.random() < 0.4:
            heater = furniture.radiator(rng, supply.palette)
            if heater.size[2] < window.low - 0.05:
                pose = wall.stand((window.left + window.right) / 2, 0.06)
                scene.add("radiator", heater, pose)
                mark(rng, scene.ground, heater, pose)
    x = rng.uniform(0.1, wall.length - 0.1)
    if wall.free(x - 0.05, x + 0.05, 1.05, 1.15):
        switch = lacquer(rng, (0.75, 0.75, 0.72))
        scene.add("switch", upright((0.08, 0.08, 0.012), switch, (x, 1.1, 0.006), 0.003), wall.pose)


def _framed(rng: Random, supply: Supply, w: float, h: float) -> Mesh:
    edge, deep, wide = supply.palette.furniture(), rng.uniform(0.012, 0.03), rng.uniform(0.01, 0.04)
    parts = [box((w, 0.006, h), edge, sides={"front": supply.palette.poster()})]
    parts += [box((w + 2 * wide, deep, wide), edge, (0, 0, z), 0.002) for z in (-wide, h)]
    parts += [box((wide, deep, h), edge, (s * (w + wide) / 2, 0, 0), 0.002) for s in (-1, 1)]
    return join(parts)


def _wall_shelf(rng: Random, supply: Supply, w: float) -> Mesh:
    board = supply.palette.furniture()
    parts = [box((w, 0.22, 0.022), board, bevel=0.002)]
    parts += [box((0.02, 0.18, 0.12), board, (s * w * 0.38, 0.02, -0.12), 0.002) for s in (-1, 1)]
    x = -w / 2 + 0.06
    while x < w / 2 - 0.08:
        thing = objects.small_object(rng, supply.palette)
        wide = float(thing.size[0])
        if thing.size[1] < 0.24 and thing.size[2] < 0.4 and x + wide < w / 2:
            low = thing.bounds[0]
            parts.append(thing.moved(x - float(low[0]), 0.0, 0.022 - float(low[2])))
        x += wide + rng.uniform(0.01, 0.1)
    return join(parts)
