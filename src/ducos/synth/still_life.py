"""Still lifes: things under and on a cloth on a table, before a sheet that hangs in folds.

What rooms and tabletops hardly have, and photographs of depth cameras do: fabric before the same
fabric, so that colours do not show where depth jumps, and creases and prints where it does not.
"""

from dataclasses import replace

import numpy as np

from ducos.synth import furniture, prints
from ducos.synth.drapery import Solid, draped
from ducos.synth.materials import Material, Random, lacquer, paint, printed, weave
from ducos.synth.mesh import Mesh, join
from ducos.synth.palette import Palette, mixture
from ducos.synth.placement import mark, pose_at
from ducos.synth.room import Furnisher
from ducos.synth.scene import Scene, TableTop
from ducos.synth.shapes import box, grid
from ducos.synth.supply import Supply


def build_still_life(rng: Random, supply: Supply) -> Scene:
    """A table in the middle of a small room, its front towards -y, the sheet behind it."""
    scene = Scene.empty(
        "still life", rng.uniform(3.0, 4.6), rng.uniform(3.2, 4.6), rng.uniform(2.4, 3.0)
    )
    crew = Furnisher(scene, rng, supply)
    scene.table = top = _table(crew)
    solids = [Solid(top.x, top.y, top.height, top.width, top.depth)]
    solids += [_carton(crew, top) for _ in range(int(rng.integers(1, 5)))]
    _cover(crew, solids, rng.uniform(0.8, 1.4) * top.width)
    for _ in range(int(rng.integers(0, 3))):
        _cover(crew, solids, rng.uniform(0.3, 0.9) * top.width)
    if rng.random() < 0.75:
        _sheet(crew, top)
    for role in ("bookcase", "case", "other"):
        if rng.random() < 0.6:
            crew.against_wall(role, supply.furniture(role))
    if rng.random() < 0.5:
        crew.anywhere("chair", supply.furniture("chair"))

    def spot() -> tuple[float, float]:
        x = rng.uniform(-0.5, 0.5) * (top.width - 0.06) + top.x
        y = rng.uniform(-0.5, 0.5) * (top.depth - 0.06) + top.y
        return float(x), float(y)

    crew.clutter(int(rng.integers(2, 22)), spot, top.height + 0.6)
    return crew.finished()


def _table(crew: Furnisher) -> TableTop:
    rng, scene, palette = crew.rng, crew.scene, crew.supply.palette
    width, depth = rng.uniform(0.7, 1.6), rng.uniform(0.5, 0.9)
    height, thick = rng.uniform(0.4, 0.8), rng.uniform(0.02, 0.04)
    plate = box((width, depth, thick), palette.furniture(), (0, 0, height - thick), 0.004)
    mesh = join([plate, *furniture.legs(rng, palette, width, depth, height - thick)])
    pose = pose_at(rng.uniform(-0.3, 0.3), rng.uniform(-0.1, 0.3), 0.0)
    scene.add("table", mesh, pose)
    mark(rng, scene.ground, mesh, pose)
    return TableTop(float(pose[0, 3]), float(pose[1, 3]), width, depth, height)


def _carton(crew: Furnisher, top: TableTop) -> Solid:
    """A box on the table, or on the floor beside it; they may stand in each other."""
    rng, scene = crew.rng, crew.scene
    width, depth, height = rng.uniform((0.12, 0.1, 0.06), (0.55, 0.4, 0.4))
    on_table = rng.random() < 0.85
    reach = 0.4 if on_table else 0.7
    x = top.x + rng.uniform(-reach, reach) * top.width
    y = top.y + rng.uniform(-reach, reach) * top.depth
    base = top.height if on_table else 0.0
    angle = rng.normal(0, 0.5)
    mesh, pose = (
        box((width, depth, height), crew.supply.palette.small(), bevel=0.002),
        pose_at(x, y, base, angle),
    )
    scene.add("carton", mesh, pose)
    mark(rng, scene.ground, mesh, pose)
    return Solid(x, y, base + height, width, depth, angle)


def _cover(crew: Furnisher, solids: list[Solid], wide: float) -> None:
    """A cloth over one of the solids and what is around it: smooth, creased, or in a heap."""
    rng, scene = crew.rng, crew.scene
    size = (wide, wide * rng.uniform(0.5, 1.0))
    below = solids[int(rng.integers(len(solids)))]
    at = (below.x + rng.normal(0, 0.15), below.y + rng.normal(0, 0.15))
    slack = float(rng.choice([0.02, 0.1, 0.3, 0.8])) * rng.uniform(0.5, 1.5)
    layer = 0.006 * sum(thing.name == "cover" for thing in scene.things)
    thicker = [replace(s, z=s.z + layer) for s in solids]
    cloth = draped(rng, fabric(rng, crew.supply.palette), thicker, at, size, slack=slack)
    scene.add("cover", cloth)
    mark(rng, scene.ground, cloth, np.eye(4))


def _sheet(crew: Furnisher, top: TableTop) -> None:
    """A sheet hanging behind the table from above the picture down to the floor."""
    rng, scene = crew.rng, crew.scene
    width, depth, height = scene.size
    behind = top.y + top.depth / 2 + rng.uniform(0.08, 0.8)
    sheet = hanging_sheet(
        rng, rng.uniform(1.6, width - 0.2), height - 0.1, fabric(rng, crew.supply.palette)
    )
    middle = rng.uniform(-0.2, 0.2)
    scene.add("sheet", sheet, pose_at(middle, min(behind, depth / 2 - 0.15), 0.05))


def hanging_sheet(rng: Random, width: float, height: float, material: Material) -> Mesh:
    """Fabric (width x height) in the plane y = 0, gathered in folds that change on the way down."""
    columns, rows = 260, 24
    along, up = np.linspace(0, 1, columns)[None], np.linspace(0, 1, rows)[:, None]
    out, sway = np.zeros((rows, columns)), np.zeros((rows, columns))
    deep, folds = rng.uniform(0.01, 0.09), rng.uniform(2, 9) * width
    for _ in range(5):
        waves, lean = folds * rng.uniform(0.3, 1.3), rng.normal(0, 1.5)
        phase = 2 * np.pi * waves * along + lean * up + rng.uniform(0, 2 * np.pi)
        strength = deep * rng.uniform(0.1, 0.6) * (1 + rng.uniform(-0.8, 0.8) * up)
        out += strength * np.sin(phase)
        sway += 0.6 * strength * np.cos(phase)
    x = (along - 0.5) * width + sway
    z = up * height + 0 * along
    return grid(np.stack([x, out, z], -1), material)


def fabric(rng: Random, palette: Palette) -> Material:
    """Mostly one colour, so that only creases show; else printed or checked."""
    return mixture(
        rng,
        (4, weave),
        (2, lambda rng: paint(rng, gloss=0.0)),
        (1, lacquer),
        (2, lambda rng: printed(prints.lattice(rng), rng, rng.uniform(0.05, 0.4))),
        (3, lambda rng: palette.cloth()),
    )
