"""Tabletops: a table full of small things, seen close, with a furnished room behind."""

from ducos.synth import furniture, objects
from ducos.synth.materials import Random
from ducos.synth.mesh import Mesh
from ducos.synth.placement import at, drop, mark, pose_at
from ducos.synth.room import Furnisher
from ducos.synth.scene import Scene, TableTop
from ducos.synth.shapes import box
from ducos.synth.supply import Supply


def build_tabletop(rng: Random, supply: Supply) -> Scene:
    """A cluttered table in a small room. The table is in the middle, its front towards -y."""
    scene = Scene.empty(
        "tabletop", rng.uniform(2.6, 4.5), rng.uniform(2.6, 4.5), rng.uniform(2.4, 3.0)
    )
    crew = Furnisher(scene, rng, supply)
    scene.table = _table(crew)
    for role in ("bookcase", "case", "other", "case"):
        if rng.random() < 0.7:
            crew.against_wall(role, supply.furniture(role))
    for _ in range(int(rng.integers(0, 3))):
        crew.anywhere("chair", supply.furniture("chair"))
    if rng.random() < 0.5:
        crew.anywhere("plant", supply.plant())
    top = scene.table

    def spot() -> tuple[float, float]:
        if rng.random() < 0.06:
            return crew.surface_spot()
        x = rng.uniform(-0.5, 0.5) * (top.width - 0.06) + top.x
        y = rng.uniform(-0.5, 0.5) * (top.depth - 0.06) + top.y
        return float(x), float(y)

    crew.cables(3, spot)
    crew.clutter(int(rng.integers(34, 64)), spot, top.height + 0.35)
    return crew.finished()


def _table(crew: Furnisher) -> TableTop:
    """The table itself, perhaps with a cloth on it and a board standing behind."""
    rng, scene, supply = crew.rng, crew.scene, crew.supply
    mesh, height = _level_table(crew)
    x, y = rng.uniform(-0.3, 0.3), rng.uniform(-0.1, 0.4)
    scene.add("table", mesh, pose_at(x, y, 0.0))
    mark(rng, scene.ground, mesh, pose_at(x, y, 0.0))
    width, depth = float(mesh.size[0]), float(mesh.size[1])
    if rng.random() < 0.35:
        wide, deep = width * rng.uniform(0.5, 0.9), depth * rng.uniform(0.5, 0.9)
        cloth = objects.cloth(rng, supply.palette, wide, deep)
        pose = drop(
            rng,
            scene.ground,
            cloth,
            at(x, y),
            tries=1,
            angle=0.0,
            min_support=0.95,  # it would float over the edge of a round table
        )
        if pose is not None:
            scene.add("cloth", cloth, pose)
    if rng.random() < 0.45:
        size = (width * rng.uniform(0.7, 1.2), 0.02, rng.uniform(0.5, 1.1))
        behind = pose_at(x + rng.normal(0, 0.05), y + depth / 2 + 0.06, height - 0.15)
        scene.add("board", box(size, supply.palette.wall()), behind)
    return TableTop(x, y, width, depth, height)


def _level_table(crew: Furnisher) -> tuple[Mesh, float]:
    """A table with room on it, and the height of its top; models may be mostly something else."""
    for _ in range(5):
        mesh = crew.supply.furniture("table")
        footprint = crew.scene.ground.footprint(mesh.surface_points(crew.rng))
        height, share = footprint.main_level()
        if share > 0.6 and 0.3 < height < 1.1 and mesh.size[:2].min() > 0.4:
            return mesh, height
    mesh = furniture.table(crew.rng, crew.supply.palette)
    return mesh, float(mesh.size[2])
