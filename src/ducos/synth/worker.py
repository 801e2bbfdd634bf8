"""One scene in one process: `python -m ducos.synth.worker`, its job on standard input as JSON.

Blender keeps global state and can crash; a process of its own makes every scene independent of the
ones before it, which is what makes a seed mean the same picture whenever it is rendered.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ducos.synth.assets import Catalogue
from ducos.synth.camera import Camera, Caster, choose_camera, develop, judge, path_from
from ducos.synth.materials import Random
from ducos.synth.render import Renderer
from ducos.synth.room import build_room
from ducos.synth.scene import Scene
from ducos.synth.still_life import build_still_life
from ducos.synth.supply import Supply
from ducos.synth.tabletop import build_tabletop

DEPTH_UNIT = 0.00025  # metres per step of the 16-bit depth image
RECORDS = "records.json"
BUILDERS = {"room": build_room, "tabletop": build_tabletop, "still life": build_still_life}
ATTEMPTS = 5  # rooms tried for a seed until one offers enough views


@dataclass(frozen=True)
class Job:
    """seed: of the scene. views: pictures of it. size: (height, width). folder: where to write.
    kind: of BUILDERS, or None for the seed's own. path: the views follow each other."""

    seed: int
    views: int
    size: tuple[int, int]
    folder: str
    assets: str | None
    kind: str | None = None
    path: bool = False


def view_id(seed: int, view: int, path: bool = False) -> str:
    """Along a path names sort as the views follow each other."""
    return f"{seed:06d}_{view:04d}" if path else f"{seed:06d}_{view}"


def view_files(identity: str) -> tuple[str, str, str]:
    """Names of the colour, depth and camera files of a view."""
    return f"{identity}_rgb.jpg", f"{identity}_depth.png", f"{identity}.json"


def kind_of(seed: int) -> str:
    """Even seeds are rooms, odd ones tabletops."""
    return "tabletop" if seed % 2 else "room"


def build_scene(seed: int, attempt: int, catalogue: Catalogue, kind: str | None = None) -> Scene:
    """The scene of a seed; `attempt` draws another one of the same kind."""
    rng = np.random.default_rng([seed, attempt])
    return BUILDERS[kind or kind_of(seed)](rng, Supply(rng, catalogue))


def run(job: Job) -> list[dict[str, Any]]:
    """Render all views of a scene into job.folder; returns one manifest record per view."""
    catalogue = Catalogue.load(Path(job.assets) if job.assets else None)
    for attempt in range(ATTEMPTS):
        scene = build_scene(job.seed, attempt, catalogue, job.kind)
        renderer = Renderer(scene, job.size)
        cast = renderer.caster()
        randoms = [np.random.default_rng([job.seed, attempt, view]) for view in range(job.views)]
        if job.path:
            cameras = along_a_path(randoms[0], scene, job, cast)
        else:
            cameras = [choose_camera(rng, scene, job.size, cast) for rng in randoms]
        usable = [camera for camera in cameras if camera is not None]
        if len(usable) == job.views:
            break
    else:
        raise RuntimeError(f"no {job.views} usable views of seed {job.seed} in {ATTEMPTS} rooms")
    records = []
    # All colour passes, then all depth passes: switching between them reloads the scene.
    lights = [renderer.light(camera, job.seed + view) for view, camera in enumerate(usable)]
    for view, camera in enumerate(usable):
        records.append(
            _write(job, scene, view, camera, lights[view], renderer.depth(camera), randoms[view])
        )
    return records


def along_a_path(rng: Random, scene: Scene, job: Job, cast: Caster) -> Sequence[Camera | None]:
    """Cameras one after the other; None for those that see too little."""
    start = choose_camera(rng, scene, job.size, cast)
    cameras = [] if start is None else path_from(rng, start, job.views)
    return [c if judge(c, scene, job.size, cast) is not None else None for c in cameras]


def encode_depth(depth: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Metres to 16-bit steps of DEPTH_UNIT; 0 where there is no depth or it does not fit."""
    steps = np.round(depth / DEPTH_UNIT)
    return np.where((steps > 0) & (steps <= 65535), steps, 0).astype(np.uint16)


def _write(
    job: Job,
    scene: Scene,
    view: int,
    camera: Camera,
    light: np.ndarray[Any, Any],
    depth: np.ndarray[Any, Any],
    rng: np.random.Generator,
) -> dict[str, Any]:
    identity, folder = view_id(job.seed, view, job.path), Path(job.folder)
    rgb_name, depth_name, camera_name = view_files(identity)
    if job.path:  # one camera: its colours stay, its noise does not
        photograph = develop(light, np.random.default_rng([job.seed, 0]), rng)
    else:
        photograph = develop(light, rng)
    Image.fromarray(photograph).save(folder / rgb_name, quality=90)
    steps = encode_depth(depth)
    Image.fromarray(steps).save(folder / depth_name)
    fx, fy, cx, cy = camera.intrinsics(job.size)
    description = {
        "seed": job.seed,
        "kind": scene.kind,
        "height": job.size[0],
        "width": job.size[1],
        "fov": camera.fov,
        "intrinsics": {"fx": fx, "fy": fy, "cx": cx, "cy": cy, "pixel_centres": "integers"},
        "camera_to_world": camera.pose.tolist(),
        "camera_axes": "x right, y up, looks along -z",
        "depth": {"unit_m": DEPTH_UNIT, "invalid": 0, "kind": "planar, first surface"},
        "assets": sorted(scene.sources),
    }
    (folder / camera_name).write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    return {
        "id": identity,
        "scene": job.seed,
        "kind": scene.kind,
        "rgb": rgb_name,
        "depth": depth_name,
        "camera": camera_name,
        "valid": round(float((steps > 0).mean()), 4),
        "assets": sorted(scene.sources),
    }


def main() -> None:
    """Read a job, render it, and only then leave the records in the job's folder."""
    fields = json.load(sys.stdin)
    fields["size"] = tuple(fields["size"])
    job = Job(**fields)
    records = run(job)
    partial = Path(job.folder) / "records.partial"
    partial.write_text(json.dumps(records), encoding="utf-8")
    partial.replace(Path(job.folder) / RECORDS)


def job_text(job: Job) -> str:
    return json.dumps(asdict(job))


if __name__ == "__main__":
    main()
