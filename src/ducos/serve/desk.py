"""The desk where pairs are handed in: uploads become files of a job, under names of ours."""

import asyncio
import os
import shutil
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Annotated, Any

from fastapi import Depends, File, Form, Request, UploadFile

from ducos.cameras import ENDINGS
from ducos.errors import InputError
from ducos.serve.jobs import Job, Jobs
from ducos.serve.outputs import BY_MEDIA, FORMATS
from ducos.serve.problems import Problem
from ducos.serve.schema import options_of

CAMERAS = ("depth_intrinsics", "rgb_intrinsics", "extrinsics")
EXAMPLE = '{"sensor": "tof", "unit": "mm", "keep_holes": false}'


class Handed:
    """A pair with what belongs to it, as it came over the wire."""

    def __init__(
        self,
        rgb: Annotated[
            UploadFile, File(description="Colour image: PNG, JPEG, TIFF, WebP, ...; or .npy.")
        ],
        depth: Annotated[
            UploadFile,
            File(description="Depth map of the same view: PNG, TIFF, EXR, NPY, NPZ, PFM, HDF5."),
        ],
        mask: Annotated[
            UploadFile | None, File(description="Image that is 0 where depth is invalid.")
        ] = None,
        confidence: Annotated[
            UploadFile | None, File(description="How far each measurement is trusted.")
        ] = None,
        prior: Annotated[
            UploadFile | None,
            File(description="Relative depth of the image from any monocular model."),
        ] = None,
        depth_intrinsics: Annotated[
            UploadFile | None, File(description="Of the depth camera, to register: JSON, YAML, ...")
        ] = None,
        rgb_intrinsics: Annotated[
            UploadFile | None, File(description="Of the colour camera: JSON, YAML, ...")
        ] = None,
        extrinsics: Annotated[
            UploadFile | None, File(description="Depth to colour camera.")
        ] = None,
        options: Annotated[
            str,
            Form(
                description="JSON object; GET /v1/options gives its schema.",
                examples=["{}", EXAMPLE],
            ),
        ] = "{}",
    ):
        self.pair = {"rgb": rgb, "depth": depth}
        further = {
            "mask": mask,
            "confidence": confidence,
            "prior": prior,
            "depth_intrinsics": depth_intrinsics,
            "rgb_intrinsics": rgb_intrinsics,
            "extrinsics": extrinsics,
        }
        self.further = {
            name: file
            for name, file in further.items()
            if file is not None and (file.size or file.filename)
        }
        self.options = options

    async def fill(self, jobs: Jobs) -> Job:
        """A new job with these files, its options checked; nothing stays if they are refused."""
        for name, file in {**self.pair, **self.further}.items():
            if not file.size:
                raise InputError(f"the file {name} is empty; choose another")
        job = jobs.new()
        try:
            places = {name: job.folder / name for name in self.pair}
            places |= {
                name: job.folder / own_name(name, file) for name, file in self.further.items()
            }
            for name, file in {**self.pair, **self.further}.items():
                await asyncio.to_thread(copy, file, places[name])
            ours = {name: str(places[name]) for name in self.further}
            job.options = options_of(self.options, ours, jobs.settings)
        except InputError as problem:
            jobs.drop(job)
            raise InputError(str(problem).replace(f"{job.folder}/", "")) from None
        except BaseException:
            jobs.drop(job)
            raise
        return job


def own_name(option: str, file: UploadFile) -> str:
    """Of a camera's file the client's ending is kept, if it is one that says how to read it."""
    ending = PurePath(file.filename or "").suffix.lower()
    return option + (ending if option in CAMERAS and ending in ENDINGS else "")


def copy(file: UploadFile, path: Path) -> None:
    """An upload into a private file."""
    with open(path, "xb", opener=private) as target:
        shutil.copyfileobj(file.file, target)


def private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


Pair = Annotated[Handed, Depends()]


def wanted_format(asked: str | None, accept: str) -> str:
    """The format of an answer: said outright, or by the Accept header; `json` means links."""
    if asked:
        if asked not in FORMATS and asked != "json":
            names = ", ".join((*FORMATS, "json"))
            raise InputError(f"unknown format {asked!r}; choose one of: {names}")
        return asked
    for media in by_preference(accept):
        if media in BY_MEDIA:
            return BY_MEDIA[media]
        if media in ("*/*", "image/*", ""):
            return "png"
        if media in ("application/json", "application/*"):
            return "json"
    raise Problem("accept", f"got Accept: {accept}; expected one of: {', '.join(BY_MEDIA)}")


def by_preference(accept: str) -> list[str]:
    """Media types of an Accept header, the most wanted first; those with q=0 are left out."""
    weighted = []
    for part in accept.split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                with suppress(ValueError):
                    weight = float(parameter[2:])
        if weight > 0:
            weighted.append((weight, media.lower()))
    return [media for _, media in sorted(weighted, key=lambda each: -each[0])]


async def unless_left(request: Request, work: Any) -> Any:
    """Wait for work, but only as long as the client waits too."""
    working = asyncio.ensure_future(work)
    try:
        while not working.done():
            await asyncio.wait((working,), timeout=0.5)
            if not working.done() and await request.is_disconnected():
                raise Problem("cancelled", "the client left")
        return working.result()
    finally:
        working.cancel()
