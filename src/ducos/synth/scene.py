"""The description of one scene: what stands where, what lights it. Still no Blender in it."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ducos.synth.materials import Colour
from ducos.synth.mesh import Mesh
from ducos.synth.placement import HeightMap, Pose


@dataclass(frozen=True)
class Thing:
    """A mesh at a pose. Outdoor things are seen by the camera but neither light nor shade."""

    name: str
    mesh: Mesh
    pose: Pose
    outdoor: bool = False


@dataclass(frozen=True)
class Light:
    """kind: "AREA" (shines along -z of its pose), "POINT" or "SUN". power: watts (sun: W/m2).

    size: (width, height) of an area light in metres, or (radius, radius).
    """

    kind: str
    pose: Pose
    power: float
    colour: Colour
    size: tuple[float, float] = (0.1, 0.1)


@dataclass(frozen=True)
class Sky:
    """What lies beyond the windows: one colour for lighting, an HDRI to look at if there is one."""

    colour: Colour
    strength: float
    hdri: Path | None = None
    turn: float = 0.0


@dataclass(frozen=True)
class TableTop:
    """The table a tabletop scene is about: centre, size and height of its top."""

    x: float
    y: float
    width: float
    depth: float
    height: float


@dataclass
class Scene:
    """size: width, depth and height of the room, centred on the origin, floor at z = 0.

    sources: keys of the catalogue's entries that appear in it.
    """

    kind: str
    size: tuple[float, float, float]
    ground: HeightMap
    things: list[Thing] = field(default_factory=list)
    lights: list[Light] = field(default_factory=list)
    sky: Sky = Sky((0.7, 0.8, 1.0), 0.5)
    table: TableTop | None = None
    sources: set[str] = field(default_factory=set)

    @classmethod
    def empty(cls, kind: str, width: float, depth: float, height: float) -> "Scene":
        return cls(kind, (width, depth, height), HeightMap(width, depth))

    def add(self, name: str, mesh: Mesh, pose: Pose | None = None, outdoor: bool = False) -> None:
        self.things.append(Thing(name, mesh, np.eye(4) if pose is None else pose, outdoor))
