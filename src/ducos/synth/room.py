"""Rooms: a shell, furniture in groups that belong together, clutter, light.

The groups (a desk with its chair, a sofa with table and rug, a bed between nightstands) stand
where people put them; loose pieces and clutter fill the rest at random.
"""

import numpy as np

from ducos.synth import furniture, objects
from ducos.synth.lighting import light_room
from ducos.synth.materials import Random
from ducos.synth.mesh import Mesh
from ducos.synth.placement import Pose, Spot, at, drop
from ducos.synth.scene import Scene
from ducos.synth.shapes import smooth_path
from ducos.synth.shell import build_shell
from ducos.synth.supply import Supply
from ducos.synth.walls import Opening, Wall

THEMES = ("living", "bedroom", "study", "dining", "kitchen", "store")
LEVEL_TOP = 0.65  # cartons, books and cans carry others; bottles, frames and balls do not


class Furnisher:
    """Builds the shell of an empty scene and puts furniture into it: against a wall, next to
    something, or anywhere."""

    def __init__(self, scene: Scene, rng: Random, supply: Supply) -> None:
        self.scene, self.rng, self.supply = scene, rng, supply
        self.walls: list[Wall] = build_shell(scene, rng, supply)

    def finished(self) -> Scene:
        """The scene, lit."""
        windows = sum(1 for thing in self.scene.things if thing.name == "window")
        light_room(self.scene, self.rng, self.supply, windows)
        self.scene.sources = self.supply.sources(self.scene)
        return self.scene

    def stand(self, name: str, mesh: Mesh, x: float, y: float, angle: float) -> Pose | None:
        """On the floor at exactly this place, if it is free."""
        pose = drop(
            self.rng,
            self.scene.ground,
            mesh,
            at(x, y),
            tries=1,
            angle=angle,
            min_support=0.0,
            on_floor=True,
            level_top=LEVEL_TOP if name in ("plant", "lamp") else 0.0,
        )
        if pose is not None:
            self.scene.add(name, mesh, pose)
        return pose

    def against_wall(self, name: str, mesh: Mesh, tries: int = 10) -> Pose | None:
        """With its back to a wall, clear of doors and, if it is tall, of windows."""
        low, high = mesh.bounds
        wide, tall = float(high[0] - low[0]), float(high[2])
        for _ in range(tries):
            wall = self.walls[int(self.rng.integers(len(self.walls)))]
            if wide + 0.1 > wall.length:
                continue
            along = self.rng.uniform(wide / 2 + 0.04, wall.length - wide / 2 - 0.04)
            left, right = along - wide / 2, along + wide / 2
            if not wall.free(left, right, 0.0, tall, 0.02):
                continue
            place = wall.stand(along, float(high[1]) + 0.03)
            pose = self.stand(name, mesh, place[0, 3], place[1, 3], wall.angle)
            if pose is not None:
                wall.taken.append(Opening(left, right, 0.0, tall))
                return pose
        return None

    def beside(
        self, anchor: Pose, name: str, mesh: Mesh, right: float, front: float, turn: float = 0.0
    ) -> Pose | None:
        """Relative to something already placed: metres to its right and in front of it."""
        x, y = (anchor @ [right, -front, 0.0, 1.0])[:2]
        angle = float(np.arctan2(anchor[1, 0], anchor[0, 0])) + turn
        return self.stand(name, mesh, x, y, angle)

    def anywhere(self, name: str, mesh: Mesh, tries: int = 12) -> Pose | None:
        width, depth, _ = self.scene.size
        quarter = self.rng.integers(4) * np.pi / 2 + self.rng.normal(0, 0.15)
        for _ in range(tries):
            x, y = self.rng.uniform(-0.42, 0.42) * width, self.rng.uniform(-0.42, 0.42) * depth
            pose = self.stand(name, mesh, x, y, float(quarter))
            if pose is not None:
                return pose
        return None

    # Groups ---------------------------------------------------------------------------------

    def seating(self) -> None:
        rng, supply = self.rng, self.supply
        sofa = supply.furniture("sofa")
        anchor = self.against_wall("sofa", sofa)
        if anchor is None:
            return
        reach = float(sofa.size[1]) / 2
        if rng.random() < 0.6:
            rug = furniture.rug(rng, supply.palette, rng.uniform(1.4, 2.4), rng.uniform(1.0, 1.8))
            self.beside(anchor, "rug", rug, 0.0, reach + float(rug.size[1]) * 0.5 + 0.05)
        low_table = supply.furniture("low table")
        gap = rng.uniform(0.3, 0.5) + float(low_table.size[1]) / 2
        self.beside(anchor, "low table", low_table, rng.normal(0, 0.15), reach + gap)
        for side in (-1, 1):
            if rng.random() < 0.4:
                seat = supply.furniture("armchair")
                out = float(sofa.size[0]) / 2 + rng.uniform(0.3, 0.6)
                self.beside(
                    anchor, "armchair", seat, side * out, reach + 0.6, side * rng.uniform(1.1, 1.9)
                )
        if rng.random() < 0.4:
            out = float(sofa.size[0]) / 2 + 0.3
            self.beside(
                anchor, "lamp", supply.furniture("lamp"), float(rng.choice([-1, 1])) * out, 0.0
            )

    def work_place(self) -> None:
        rng, supply = self.rng, self.supply
        desk, seat = supply.furniture("desk"), supply.furniture("office chair")
        anchor = self.against_wall("desk", desk)
        if anchor is None:
            return
        reach = float(desk.size[1]) / 2 + float(seat.size[1]) / 2
        self.beside(
            anchor,
            "chair",
            seat,
            rng.normal(0, 0.1),
            reach + rng.uniform(0, 0.3),
            np.pi + rng.normal(0, 0.4),
        )
        turn = float(np.arctan2(anchor[1, 0], anchor[0, 0]))
        for make, share, right, back in (
            (objects.monitor, 0.8, rng.normal(0, 0.1), 0.12),
            (objects.keyboard, 0.6, rng.normal(0, 0.1), -0.15),
            (objects.table_lamp, 0.5, rng.choice([-0.45, 0.45]), 0.12),
        ):
            if rng.random() < share:
                x, y = (anchor @ [right, back, 0, 1])[:2]
                self.rest("desk", make(rng, supply.palette), at(x, y), turn)

    def dining(self) -> None:
        rng, supply = self.rng, self.supply
        table, chair = supply.furniture("table"), supply.furniture("chair")
        width, depth, _ = self.scene.size
        x, y = rng.uniform(-0.2, 0.2) * width, rng.uniform(-0.2, 0.2) * depth
        angle = float(rng.choice([0.0, np.pi / 2]))
        w, d = float(table.size[0]), float(table.size[1])
        anchor = np.eye(4)
        anchor[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        anchor[:2, 3] = x, y
        seats = [(s * w * 0.25, side) for side in (-1, 1) for s in ((-1, 1) if w > 1.2 else (0,))]
        pushed = float(chair.size[1]) / 2 + d / 2 + rng.uniform(-0.15, 0.15)
        for right, side in seats:
            if rng.random() < 0.85:
                turn = (np.pi if side > 0 else 0.0) + rng.normal(0, 0.15)
                out = pushed + abs(rng.normal(0, 0.1))
                self.beside(anchor, "chair", chair, right + rng.normal(0, 0.04), side * out, turn)
        if self.stand("table", table, x, y, angle) is None:
            self.anywhere("table", table)

    def sleeping(self) -> None:
        rng, supply = self.rng, self.supply
        bed = supply.furniture("bed")
        anchor = self.against_wall("bed", bed)
        if anchor is None:
            return
        for side in (-1, 1):
            if rng.random() < 0.75:
                stand = supply.furniture("nightstand")
                out = float(bed.size[0] + stand.size[0]) / 2 + 0.05
                back = float(bed.size[1] - stand.size[1]) / 2
                self.beside(anchor, "nightstand", stand, side * out, -back)

    def cooking(self) -> None:
        for _ in range(int(self.rng.integers(1, 4))):
            self.against_wall("counter", self.supply.furniture("counter"))

    # Clutter --------------------------------------------------------------------------------

    def rest(
        self, name: str, mesh: Mesh, spot: Spot, angle: float | None = None, limit: float = 1.75
    ) -> bool:
        """Lower a small thing onto whatever is below it."""
        pose = drop(
            self.rng,
            self.scene.ground,
            mesh,
            spot,
            angle=angle,
            max_height=limit,
            level_top=LEVEL_TOP,
        )
        if pose is not None:
            self.scene.add(name, mesh, pose)
        return pose is not None

    def surface_spot(self) -> tuple[float, float]:
        """Mostly on furniture of table height, else anywhere on the floor."""
        ground, (width, depth, _) = self.scene.ground, self.scene.size
        if self.rng.random() < 0.8:
            raised = np.argwhere((ground.heights > 0.3) & (ground.heights < 1.6))
            if len(raised):
                x, y = ground.origin + raised[int(self.rng.integers(len(raised)))] * ground.cell
                return float(x), float(y)
        return float(self.rng.uniform(-0.5, 0.5) * width), float(
            self.rng.uniform(-0.5, 0.5) * depth
        )

    def clutter(self, count: int, spot: Spot, limit: float = 1.75) -> int:
        """Strew small things; returns how many found a place."""
        placed = 0
        for _ in range(count):
            placed += self.rest("clutter", self.supply.small(), spot, limit=limit)
        return placed

    def cables(self, count: int, spot: Spot) -> None:
        """Leads lying on the surfaces below them; one that would have to climb is left out."""
        for _ in range(count):
            ends = [np.array([*spot(), 0.0], np.float32) for _ in range(2)]
            path = smooth_path(self.rng, ends[0], ends[1], 0.08, 60)
            surface = [self.scene.ground.height_at(float(x), float(y)) for x, y, _ in path]
            if np.abs(np.diff(surface)).max() < 0.03:
                path[:, 2] = np.array(surface) + 0.004
                self.scene.add("cable", objects.cable(self.rng, path))


def build_room(rng: Random, supply: Supply) -> Scene:
    """A furnished room of 3-6.5 m."""
    scene = Scene.empty("room", rng.uniform(3.0, 6.5), rng.uniform(3.0, 6.5), rng.uniform(2.4, 3.2))
    crew = Furnisher(scene, rng, supply)
    theme = str(rng.choice(THEMES))
    groups = {
        "living": (crew.seating, crew.seating, crew.dining),
        "bedroom": (crew.sleeping, crew.work_place),
        "study": (crew.work_place, crew.work_place, crew.seating),
        "dining": (crew.dining, crew.seating),
        "kitchen": (crew.cooking, crew.dining),
        "store": (crew.work_place,),
    }[theme]
    for group in groups:
        group()
    cases = {
        "living": ("television", "bookcase", "bookcase", "case"),
        "bedroom": ("case", "case", "bookcase", "other"),
        "study": ("bookcase", "bookcase", "case", "bookcase"),
        "dining": ("case", "case", "bookcase", "other"),
        "kitchen": ("case", "other", "bookcase"),
        "store": ("case", "bookcase", "case", "other", "other"),
    }[theme]
    rounds = 2 if scene.size[0] * scene.size[1] > 16 else 1  # large rooms hold more
    for role in cases * rounds:
        if rng.random() < 0.8:
            crew.against_wall(role, supply.furniture(role))
    for role in ("table", "chair", "other", "sofa", "chair", "case"):
        if rng.random() < 0.4:
            crew.anywhere(role, supply.furniture(role))
    for _ in range(int(rng.integers(0, 4))):
        crew.anywhere("plant", supply.plant())
    crew.clutter(int(rng.integers(20, 44)), crew.surface_spot)
    crew.cables(8, crew.surface_spot)
    return crew.finished()
