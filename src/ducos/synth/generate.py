"""Seeds to files: a set of rendered pairs that can be stopped and continued at any time.

A set is a folder of `<id>_rgb.jpg`, `<id>_depth.png` (16-bit, 0.25 mm steps, 0 = invalid) and
`<id>.json` (camera), with one line per picture in `manifest.jsonl`. The manifest is what counts: a
scene's line block is appended only after all its files are in place, so what is listed is whole.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path
from typing import Any

from ducos.children import ONE_THREAD, environment, python_module
from ducos.errors import InputError
from ducos.synth.assets import Catalogue, licence_table
from ducos.synth.blender import require_blender
from ducos.synth.worker import BUILDERS, RECORDS, Job, job_text, view_files, view_id

MANIFEST = "manifest.jsonl"
SETTINGS = "settings.json"


@dataclass
class Progress:
    """State of a run, handed to the callback after each scene."""

    total: int
    done: int = 0
    skipped: int = 0
    failed: dict[int, str] = field(default_factory=dict)  # seed -> end of the worker's output


@dataclass(frozen=True)
class Manifest:
    """The list of finished pictures of a set."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / MANIFEST

    def records(self) -> list[dict[str, Any]]:
        """All whole lines whose files exist; one torn by a crash, or damaged, is ignored."""
        if not self.path.exists():
            return []
        records = []
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
                files = [self.folder / record[name] for name in ("rgb", "depth", "camera")]
                whole = isinstance(record["scene"], int) and isinstance(record["assets"], list)
            except (ValueError, TypeError, LookupError, RecursionError):
                continue
            if whole and all(file.exists() for file in files):
                records.append(record)
        return records

    def repair(self, views: int) -> set[int]:
        """Drop torn lines and scenes without all their views; returns the seeds that are whole."""
        records = self.records()
        count = Counter(record["scene"] for record in records)
        whole = {seed for seed, pictures in count.items() if pictures == views}
        if self.path.exists():
            partial = self.path.with_suffix(".partial")
            partial.write_text(_lines(r for r in records if r["scene"] in whole), encoding="utf-8")
            partial.replace(self.path)
        return whole

    def append(self, records: list[dict[str, Any]]) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(_lines(records))
            stream.flush()
            os.fsync(stream.fileno())


def _lines(records: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(record, sort_keys=True) + "\n" for record in records)


def generate(
    out: Path,
    scenes: int,
    views: int,
    seed: int,
    workers: int,
    assets: Path | None = None,
    size: tuple[int, int] = (480, 640),
    kind: str | None = None,
    path: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Render scenes seed .. seed + scenes - 1 into `out`, or what is missing of them.

    Args:
        views: pictures per scene.
        workers: processes, one thread each.
        assets: folder made by `prepare_assets`; None renders forms and procedural materials only.
        size: (height, width) of the pictures.
        kind: of `worker.BUILDERS`, for all scenes; None: even seeds are rooms, odd ones tabletops.
        path: the views of a scene follow each other along the path of a camera.
        progress: called after each scene.

    A scene whose worker fails is reported and left out; the others go on. Running the same call
    again tries it once more.
    """
    _check(scenes, views, workers, seed, size, kind)
    require_blender()
    catalogue = Catalogue.load(assets)
    out.mkdir(parents=True, exist_ok=True)
    _keep_settings(out, views, size, catalogue, path)
    manifest = Manifest(out)
    finished = manifest.repair(views)
    seeds = [s for s in range(seed, seed + scenes) if s not in finished]
    state = Progress(total=scenes, skipped=scenes - len(seeds))
    folder = None if assets is None else str(assets.resolve())
    with ThreadPoolExecutor(workers, initializer=core_keeper()) as pool:
        running = {
            pool.submit(_render_scene, out, Job(s, views, size, "", folder, kind, path)): s
            for s in seeds
        }
        try:
            for future in as_completed(running):
                records, trouble = future.result()
                if trouble is None:
                    manifest.append(records)
                    state.done += 1
                else:
                    state.failed[running[future]] = trouble
                if progress is not None:
                    progress(state)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            write_licences(out, catalogue)
    return state


def core_keeper() -> Callable[[], None]:
    """A function that keeps the thread that calls it, and the processes it starts, to one core, the
    next thread to the next. Blender's denoiser takes every core it sees, whatever it is told. Does
    nothing where the system has no such call."""
    if sys.platform != "linux":
        return lambda: None
    cores = cycle(sorted(os.sched_getaffinity(0)))
    return lambda: os.sched_setaffinity(0, {next(cores)})


def _check(
    scenes: int, views: int, workers: int, seed: int, size: tuple[int, int], kind: str | None
) -> None:
    for name, value in (("scenes", scenes), ("views", views), ("workers", workers)):
        if value < 1:
            raise InputError(f"got {name} = {value}, expected at least 1")
    if seed < 0:
        raise InputError(f"got seed = {seed}, expected 0 or more")
    if kind is not None and kind not in BUILDERS:
        raise InputError(f"got kind {kind!r}, expected one of: {', '.join(BUILDERS)}")
    if min(size) < 16:
        raise InputError(f"got a picture of {size[1]}x{size[0]}, expected at least 16x16")


def _keep_settings(
    out: Path, views: int, size: tuple[int, int], catalogue: Catalogue, path_of_camera: bool
) -> None:
    """Refuse to mix pictures of different settings in one set."""
    settings: dict[str, Any] = {"views": views, "size": list(size), "assets": catalogue.digest()}
    if path_of_camera:  # sets from before know no such word
        settings["path"] = True
    path = out / SETTINGS
    if path.exists():
        try:
            stored = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, RecursionError):
            raise InputError(
                f"{path} is damaged, so {out} cannot be continued; choose another folder"
            ) from None
        names = sorted(settings.keys() | stored.keys())
        different = [name for name in names if stored.get(name) != settings.get(name)]
        if different:
            raise InputError(
                f"got other {' and '.join(different)} than the set in {out} was begun with; "
                "expected the same to continue it; use them again or choose another folder"
            )
        return
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(settings) + "\n", encoding="utf-8")
    partial.replace(path)


def _render_scene(out: Path, job: Job) -> tuple[list[dict[str, Any]], str | None]:
    """Run one worker; returns its records, or the end of its output if it failed."""
    for stale in out.glob(f".scene-{job.seed:06d}-*"):  # left by a run that was killed
        shutil.rmtree(stale, ignore_errors=True)
    folder = out / f".scene-{job.seed:06d}-{os.getpid()}"
    folder.mkdir()
    try:
        worker = subprocess.run(
            python_module("ducos.synth.worker"),
            input=job_text(replace(job, folder=str(folder.resolve()))),
            env=environment(ONE_THREAD),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        report = folder / RECORDS
        if not report.exists():  # the exit code says less: Blender can crash while closing
            return [], f"exit code {worker.returncode}: {worker.stdout[-2000:]}"
        records: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))
        for view in range(job.views):
            for name in view_files(view_id(job.seed, view, job.path)):
                (folder / name).replace(out / name)
        return records, None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_licences(out: Path, catalogue: Catalogue) -> None:
    """LICENCES.md and licences.json beside the set: every asset in it, its author and licence."""
    scenes: dict[str, set[int]] = {}
    for record in Manifest(out).records():
        for key in record["assets"]:
            scenes.setdefault(key, set()).add(record["scene"])
    used = {key: len(seeds) for key, seeds in scenes.items()}
    (out / "LICENCES.md").write_text(licence_table(catalogue, used) + "\n", encoding="utf-8")
    rows = [
        {
            "key": key,
            "name": catalogue.assets[key].name,
            "author": catalogue.assets[key].author,
            "source": catalogue.assets[key].source,
            "licence": catalogue.assets[key].licence,
            "scenes": used[key],
        }
        for key in sorted(used)
    ]
    (out / "licences.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
