"""The empty room: floor, ceiling, walls with windows and doors, and what is fixed to the walls."""

from dataclasses import dataclass, field, replace

import numpy as np

from ducos.synth import furniture, objects
from ducos.synth.lighting import kelvin, shining
from ducos.synth.materials import Material, Random, bricks, lacquer, paint, plaster, vary
from ducos.synth.placement import Pose
from ducos.synth.scene import Light, Scene
from ducos.synth.shapes import Mesh, box, grid, join, polygons, tube
from ducos.synth.supply import Supply


@dataclass
class Opening:
    """A rectangle on a wall: from `left` to `right` along it, from `low` to `high` above floor."""

    left: float
    right: float
    low: float
    high: float

    def overlaps(self, left: float, right: float, low: float, high: float, gap: float) -> bool:
        sideways = right > self.left - gap and left < self.right + gap
        return sideways and high > self.low - gap and low < self.high + gap


@dataclass
class Wall:
    """One wall; positions on it are (along, up), `along` from 0 to `length`, left to right."""

    origin: tuple[float, float]
    normal: tuple[float, float]  # into the room
    length: float
    taken: list[Opening] = field(default_factory=list)

    @property
    def pose(self) -> Pose:
        """Wall coordinates (along, up, into the room) to the room's."""
        x, y = self.normal
        pose = np.eye(4)
        pose[:3, 0], pose[:3, 1], pose[:3, 2] = (-y, x, 0), (0, 0, 1), (x, y, 0)
        pose[:2, 3] = self.origin
        return pose

    def stand(self, along: float, out: float, up: float = 0.0) -> Pose:
        """Pose of an upright object at this place of the wall, facing the room."""
        x, y = self.normal
        pose = np.eye(4)
        pose[:3, 0], pose[:3, 1] = (-y, x, 0), (-x, -y, 0)
        pose[:3, 3] = (self.pose @ [along, up, out, 1.0])[:3]
        return pose

    @property
    def angle(self) -> float:
        """Turn around z that makes an object face the room."""
        x, y = self.normal
        return float(np.arctan2(x, -y))

    def free(self, left: float, right: float, low: float, high: float, gap: float = 0.05) -> bool:
        inside = left > gap and right < self.length - gap
        return inside and not any(o.overlaps(left, right, low, high, gap) for o in self.taken)


def four_walls(width: float, depth: float) -> list[Wall]:
    x, y = width / 2, depth / 2
    return [
        Wall((-x, y), (0.0, -1.0), width),
        Wall((x, y), (-1.0, 0.0), depth),
        Wall((x, -y), (0.0, 1.0), width),
        Wall((-x, -y), (1.0, 0.0), depth),
    ]


def wall_mesh(wall: Wall, height: float, holes: list[Opening], material: Material) -> Mesh:
    """The wall in its own coordinates (along, up), with rectangular holes."""
    xs = sorted({0.0, wall.length, *(v for hole in holes for v in (hole.left, hole.right))})
    ys = sorted({0.0, height, *(v for hole in holes for v in (hole.low, hole.high))})
    points, faces = [], []
    for left, right in zip(xs, xs[1:]):
        for low, high in zip(ys, ys[1:]):
            x, y = (left + right) / 2, (low + high) / 2
            if any(h.left < x < h.right and h.low < y < h.high for h in holes):
                continue
            first = len(points)
            points += [(left, low, 0), (right, low, 0), (right, high, 0), (left, high, 0)]
            faces.append((first, first + 1, first + 2, first + 3))
    return polygons(points, faces, material)


def _upright(
    size: tuple[float, float, float],
    material: Material,
    at: tuple[float, float, float],
    bevel: float = 0.0,
) -> Mesh:
    """A box centred on `at` in wall coordinates (along, up, out)."""
    return box(size, material, (at[0], at[1], at[2] - size[2] / 2), bevel)


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
            hole = _window(scene, rng, supply, wall, height, trim)
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
            "skirting", _upright(size, trim, ((left + right) / 2, 0.045, 0.007), 0.003), wall.pose
        )


def _window(
    scene: Scene, rng: Random, supply: Supply, wall: Wall, height: float, trim: Material
) -> Opening:
    w = rng.uniform(0.8, min(2.2, wall.length - 0.8))
    low = rng.uniform(0.5, 1.0) if rng.random() < 0.85 else 0.12
    h = min(rng.uniform(0.9, 1.5) if low > 0.4 else 2.0, height - low - 0.2)
    left = rng.uniform(0.3, wall.length - w - 0.3)
    hole = Opening(left, left + w, low, low + h)
    wall.taken.append(hole)
    cx, cy, deep = left + w / 2, low + h / 2, rng.uniform(0.1, 0.25)
    parts = []
    for s in (-1, 1):  # reveal, then frame
        parts.append(_upright((0.01, h, deep), trim, (cx + s * (w / 2 + 0.005), cy, -deep / 2)))
        parts.append(
            _upright((w + 0.02, 0.01, deep), trim, (cx, cy + s * (h / 2 + 0.005), -deep / 2))
        )
    for offset in np.linspace(-w / 2, w / 2, int(rng.integers(2, 5))):
        parts.append(_upright((0.05, h, 0.06), trim, (cx + offset, cy, -deep), 0.006))
    for offset in np.linspace(-h / 2, h / 2, int(rng.integers(2, 4))):
        parts.append(_upright((w, 0.05, 0.06), trim, (cx, cy + offset, -deep), 0.006))
    parts.append(_upright((w + 0.12, 0.03, 0.16), trim, (cx, low - 0.015, 0.06), 0.006))
    scene.add("window", join(parts), wall.pose)
    daylight = shining((*wall.normal, 0.0), tuple((wall.pose @ [cx, cy, -0.12, 1])[:3]))
    power = rng.uniform(20, 140) * w * h
    scene.lights.append(Light("AREA", daylight, power, kelvin(rng.uniform(5000, 9000)), (w, h)))
    draw = rng.random()
    if draw < 0.3:
        _blinds(scene, rng, wall, hole, trim)
    elif draw < 0.65:
        _curtains(scene, rng, supply, wall, hole, height)
    _outside(scene, rng, wall, hole, supply)
    return hole


def _blinds(scene: Scene, rng: Random, wall: Wall, hole: Opening, trim: Material) -> None:
    slat = trim if rng.random() < 0.6 else lacquer(rng)
    w, h = hole.right - hole.left, hole.high - hole.low
    middle, tilt = (hole.left + hole.right) / 2, rng.uniform(0.2, 0.9)
    one = box((w - 0.01, 0.002, 0.035), slat, (0, 0, -0.0175)).turned(tilt, "x")
    count = int(h / 0.05 * rng.uniform(0.3, 1))
    slats = [one.moved(middle, hole.high - 0.03 - 0.05 * k, 0.03) for k in range(max(count, 1))]
    cords = [
        tube(
            [
                (middle + s * w * 0.4, hole.high, 0.03),
                (middle + s * w * 0.4, hole.high - 0.05 * count, 0.03),
            ],
            0.0015,
            slat,
        )
        for s in (-1, 1)
    ]
    rail = _upright((w, 0.04, 0.05), slat, (middle, hole.high - 0.01, 0.03))
    scene.add("blinds", join([rail, *slats, *cords]), wall.pose)


def _curtains(
    scene: Scene, rng: Random, supply: Supply, wall: Wall, hole: Opening, height: float
) -> None:
    fabric = supply.palette.cloth()
    top = min(hole.high + rng.uniform(0.1, 0.25), height - 0.05)
    low = 0.03 if rng.random() < 0.4 else max(0.05, hole.low - rng.uniform(0.1, 0.3))
    for side, edge in ((-1, hole.left), (1, hole.right)):
        wide = rng.uniform(0.2, 0.5)
        share = np.linspace(0, 1, 90)
        folds = rng.uniform(4, 9)
        up = np.linspace(0, 1, 8)[:, None]
        x = edge - side * (share * wide - 0.08) * (1 - 0.15 * np.sin(np.pi * up))
        out = 0.09 + (0.035 + 0.01 * up) * np.sin(2 * np.pi * folds * share + 0.6 * up)
        sheet = np.stack([x, low + (top - low) * up + 0 * share, out], -1)
        scene.add("curtain", grid(sheet, fabric), wall.pose)
    rod = tube(
        [(hole.left - 0.25, top + 0.01, 0.09), (hole.right + 0.25, top + 0.01, 0.09)],
        0.012,
        supply.palette.metal(),
    )
    scene.add("rod", rod, wall.pose)


def _outside(scene: Scene, rng: Random, wall: Wall, hole: Opening, supply: Supply) -> None:
    """A house across the way, ground and a tree: real geometry, so that its depth is true.

    Outdoor materials glow by themselves, which stands for daylight at no cost in light paths.
    """
    glow = rng.uniform(0.8, 3.0)

    def lit(material: Material, share: float = 1.0) -> Material:
        return replace(material, emission=glow * share, bump=0.0)

    away, sink = rng.uniform(3.0, 8.0), rng.uniform(0.3, 5.0)
    middle, span = (hole.left + hole.right) / 2, 1.6 * away + 3.0
    facade = lit(bricks(rng) if rng.random() < 0.5 else plaster(rng))
    glass, border = lit(lacquer(rng, (0.03, 0.04, 0.06)), 0.5), lit(paint(rng))
    front = _upright((2 * span, 12.0, 0.2), facade, (middle, 6.0 - sink, -away - 0.1))
    parts = [front]
    pitch = rng.uniform(1.6, 2.8)
    for x in np.arange(-span + 1, span - 1, pitch):
        for y in np.arange(1.0 - sink, 10 - sink, rng.uniform(2.4, 3.2)):
            at = (middle + float(x), float(y) + 0.7, -away + 0.02)
            parts.append(_upright((1.0, 1.4, 0.04), glass, at))
            parts.append(_upright((1.25, 0.1, 0.2), border, (at[0], at[1] - 0.75, -away + 0.1)))
            parts.append(_upright((0.06, 1.4, 0.07), border, at))
    lawn = Material("carpet", ((0.05, 0.12, 0.02), (0.12, 0.2, 0.05)), 0.05, 1.0)
    ground = lit(lawn if rng.random() < 0.5 else paint(rng, (0.25, 0.25, 0.25)), 0.8)
    parts.append(_upright((2 * span, 0.05, away + 0.5), ground, (middle, -sink, -away / 2 - 0.25)))
    scene.add("outside", join(parts), wall.pose, outdoor=True)
    if rng.random() < 0.7:
        tree = objects.plant(rng, supply.palette, rng.uniform(0.8, 1.3))
        size = rng.uniform(1.5, 3.0)
        shaded = replace(tree, materials=tuple(lit(m, 0.7) for m in tree.materials))
        pose = wall.stand(
            middle + rng.uniform(-1.5, 1.5), -rng.uniform(0.35, 0.7) * away, -sink * 0.6
        )
        scene.add("tree", shaded.transformed(np.diag([size] * 3)), pose, outdoor=True)


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
    parts = [_upright((w, h, 0.03), leaf, (middle, h / 2, 0.0))]
    for s in (-1, 1):
        parts.append(
            _upright(
                (0.07, h + 0.07, 0.05),
                trim,
                (middle + s * (w / 2 + 0.03), h / 2 + 0.03, 0.02),
                0.004,
            )
        )
    parts.append(_upright((w + 0.13, 0.07, 0.05), trim, (middle, h + 0.03, 0.02), 0.004))
    rows = int(rng.integers(1, 4))
    for row in range(rows):
        for s in (-1, 1):
            at = (middle + s * w * 0.23, (row + 0.5) * h / rows, 0.016)
            parts.append(_upright((w * 0.34, h / rows * 0.72, 0.012), leaf, at, 0.006))
    knob = [(w * 0.4, 1.0, 0.015), (w * 0.4, 1.0, 0.06), (w * 0.28, 1.0, 0.06)]
    parts.append(tube(np.array(knob) + [middle, 0, 0], 0.009, supply.palette.metals[0]))
    scene.add("door", join(parts), wall.pose)


def _hang(scene: Scene, rng: Random, supply: Supply, wall: Wall, height: float) -> None:
    """Pictures, shelves, a radiator, a switch."""
    for _ in range(int(rng.integers(0, 4))):
        w, h = rng.uniform(0.2, 0.9), rng.uniform(0.2, 0.8)
        if w + 0.3 > wall.length:
            continue
        middle, low = rng.uniform(w / 2 + 0.1, wall.length - w / 2 - 0.1), rng.uniform(1.1, 1.5)
        if low + h > height - 0.1 or not wall.free(
            middle - w / 2, middle + w / 2, low, low + h, 0.1
        ):
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
                scene.ground.add(
                    scene.ground.footprint(
                        heater.surface_points(rng, 3000) @ pose[:3, :3].T.astype(np.float32)
                    ),
                    pose[0, 3],
                    pose[1, 3],
                    0.0,
                )
    x = rng.uniform(0.1, wall.length - 0.1)
    if wall.free(x - 0.05, x + 0.05, 1.05, 1.15):
        switch = lacquer(rng, (0.75, 0.75, 0.72))
        scene.add(
            "switch", _upright((0.08, 0.08, 0.012), switch, (x, 1.1, 0.006), 0.003), wall.pose
        )


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
