"""Recordings that were listed at the start: their frames as files that a client can take.

Files of plain folders are sent as they lie there. A frame inside a container, or of a layout with
its own unit or cameras, is unpacked by a worker into colours, metres and cameras.
"""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ducos.cameras import Camera, Extrinsics
from ducos.captures import FrameRef, find_frames, read_frame
from ducos.files import read_colour, write_depth, write_pixels
from ducos.serve.jobs import Job, Jobs
from ducos.serve.pool import Task
from ducos.serve.problems import Problem

PATHS = ("rgb", "depth", "source", "mask", "confidence")  # of a FrameRef
KINDS = (
    *("rgb", "depth", "mask", "confidence"),
    *("rgb_intrinsics", "depth_intrinsics", "extrinsics"),
)
SUFFIX = {"rgb": ".png", "depth": ".npz", "confidence": ".npy"}  # of unpacked ones; else .json
OPEN = 4  # unpacked frames that are kept


class Recordings:
    """Name -> frames."""

    def __init__(self, places: dict[str, Path], jobs: Jobs):
        self.pairs = {name: find_frames(place).pairs for name, place in places.items()}
        self.jobs = jobs
        self.unpacked: dict[tuple[str, int], Job] = {}
        self.lock = asyncio.Lock()

    def frames(self) -> dict[str, int]:
        return {name: len(pairs) for name, pairs in self.pairs.items()}

    async def files(self, name: str, number: int) -> dict[str, Path]:
        """Kind -> file of one frame."""
        pairs = self.pairs.get(name, [])
        if number >= len(pairs):
            raise Problem("unknown", f"the recordings have no such frame: {name!r} {number}")
        pair = pairs[number]
        if isinstance(pair, FrameRef):
            async with self.lock:
                folder = (await self.unpack(name, number, pair)).folder
            there = {kind: folder / kind_file(kind) for kind in KINDS}
        else:
            there = {kind: path for kind in KINDS[:4] if (path := getattr(pair, kind)) is not None}
        return {kind: path for kind, path in there.items() if path.is_file()}

    async def unpack(self, name: str, number: int, frame: FrameRef) -> Job:
        """A folder with the frame's files; the frames asked for last are kept."""
        known = self.unpacked.pop((name, number), None)
        job = known or self.jobs.new()
        if known is None:
            place = {key: str(path) for key in PATHS if (path := getattr(frame, key)) is not None}
            plain = {"layout": frame.layout, "key": frame.key, "out": frame.out}
            message = {"task": "unpack", "folder": str(job.folder), "frame": plain, "place": place}
            task = Task(message)
            try:
                await (await self.jobs.pool.submit(task, urgent=True)).answer
                self.jobs.store.measure(job.name)
            except BaseException:
                self.jobs.drop(job)
                raise
        self.unpacked[name, number] = job
        while len(self.unpacked) > OPEN:
            self.jobs.drop(self.unpacked.pop(next(iter(self.unpacked))))
        return job


def unpack(frame: dict[str, Any], place: dict[str, str], folder: Path) -> None:
    """In a worker: write the files of a frame that the server named."""
    paths: dict[str, Any] = {key: Path(path) for key, path in place.items()}
    read = read_frame(FrameRef(**frame, **paths))
    colours = np.rint(255 * read_colour(read.image)).clip(0, 255).astype(np.uint8)
    write_pixels(folder / kind_file("rgb"), colours, "PNG")
    write_depth(folder / kind_file("depth"), read.low.depth, read.low.valid)
    if read.low.confidence is not None:
        np.save(folder / kind_file("confidence"), read.low.confidence)
    apart = read.extrinsics is not None
    tables = {
        "rgb_intrinsics": read.camera,
        "depth_intrinsics": read.depth_camera if apart else None,
        "extrinsics": read.extrinsics,
    }
    for kind, table in tables.items():
        if table is not None:
            (folder / kind_file(kind)).write_text(plain_camera(table))


def plain_camera(camera: Camera | Extrinsics) -> str:
    """A camera, or where it stands, as the JSON that `ducos.cameras` reads."""
    if isinstance(camera, Extrinsics):
        way = {"rotation": camera.rotation.tolist(), "translation": camera.translation.tolist()}
        return json.dumps({**way, "unit": "m", "order": "row"})
    return json.dumps(asdict(camera))


def kind_file(kind: str) -> str:
    return f"{kind}{SUFFIX.get(kind, '.json')}"
