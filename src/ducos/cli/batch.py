"""`ducos batch`: thousands of pairs, resumable, with a report of what went wrong."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ducos.cli.options import Json, Overwrite, takes_options
from ducos.errors import InputError
from ducos.upscaling import Options

if TYPE_CHECKING:
    from ducos.batch import Cluster, Summary

MOST_FAILURES_SHOWN = 20


@takes_options(leave=("mask", "confidence"))
def batch(
    options: Options,
    source: Annotated[
        str,
        typer.Argument(
            help="Recording: a folder (rgb/ and depth/, NAME_rgb.* and NAME_depth.*, TUM, 7-Scenes,"
            " ScanNet, Redwood, 3D Scanner App, Stray Scanner, ARKitScenes, ROS 2 bag), a file"
            " (.sens, .r3d, .mkv, .bag, .mcap), or a CSV file with the columns rgb, depth, and"
            " maybe mask, confidence, out."
            " Also an address such as s3://bucket/recording."
        ),
    ],
    out: Annotated[
        str,
        typer.Option("-o", "--out", help="Folder for the results, or s3://bucket/results."),
    ],
    suffix: Annotated[
        str, typer.Option(help="Format of the results: .png, .exr, .npz, .npy, .tif, .pfm, .h5")
    ] = ".png",
    preview: Annotated[
        bool,
        typer.Option(
            "--preview",
            help="Also write overview images to OUT/preview: maps, crops, an edge profile.",
        ),
    ] = False,
    cloud: Annotated[
        bool,
        typer.Option(
            "--cloud", help="Also write point clouds to OUT/cloud/NAME.ply; needs the intrinsics."
        ),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes, one thread each. Default: one per core, at most 4."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds that a frame may take; then it counts as failed.")
    ] = 600.0,
    overwrite: Overwrite = False,
    engine: Annotated[
        str, typer.Option(help="local (processes) or ray (a cluster, see docs/cluster.md).")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="Address of a running Ray cluster. Default: start one on this machine."),
    ] = None,
    worker_cpus: Annotated[float, typer.Option(help="Ray: CPUs of each worker.")] = 1.0,
    worker_gpus: Annotated[
        float, typer.Option(help="Ray: GPUs of each worker; fractions such as 0.25 share one.")
    ] = 0.0,
    temporal: Annotated[
        bool, typer.Option("--temporal", help="Not here: `ducos video` makes steady sequences.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Super-resolve many pairs. After an interruption, run it again: it continues.

    A bad pair does not stop the rest: OUT/failures.csv lists it, and the exit code is 1.

    Results are those of `ducos upscale` with OMP_NUM_THREADS=1, byte for byte.

    Example: ducos batch recording -o sharp --suffix .exr --workers 4
    """
    if temporal:
        raise InputError(
            "a steady sequence needs each frame's result before the next, and a batch makes them "
            f"in any order; run: ducos video {source} -o {out}"
        )
    cluster = cluster_of(engine, address, worker_cpus, worker_gpus)
    from ducos.batch import opened_places, run_batch
    from ducos.captures import find_frames

    with opened_places(source, out) as (recording, results, places):
        found = find_frames(recording)
        with progress_bar(quiet=as_json) as progress, resumable():
            summary = run_batch(
                found.pairs,
                results,
                options=options,
                suffix=suffix,
                preview=preview,
                cloud=cloud,
                workers=default_workers() if workers is None else workers,
                cluster=cluster,
                unmatched=found.unmatched,
                overwrite=overwrite,
                timeout=timeout,
                source=recording,
                places=places,
                progress=progress,
            )
    if found.layout == "tum" and options.unit == "auto" and options.scale is None:
        summary.warnings.append(
            "TUM's own recordings store 5000 steps per metre: if this is one, pass --scale 0.0002"
        )
    if as_json:
        print(json.dumps(summary.facts()))
    else:
        tell(summary)
    if summary.failures:
        raise typer.Exit(1)


def cluster_of(engine: str, address: str | None, cpus: float, gpus: float) -> "Cluster | None":
    """What --engine and its options ask for; None is this machine's own processes."""
    if engine == "ray":
        from ducos.batch import Cluster

        return Cluster(address, cpus, gpus)
    if engine != "local":
        raise InputError(f"unknown engine {engine!r}; choose local or ray")
    if address is not None or cpus != 1 or gpus:
        raise InputError("--address, --worker-cpus and --worker-gpus are for --engine ray; add it")
    return None


@contextmanager
def resumable() -> Iterator[None]:
    """Ctrl-C loses nothing; say so."""
    try:
        yield
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        raise


def default_workers() -> int:
    """One per core that this process may use, at most 4: each holds the model and a frame."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(4, usable or 1)


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[["Summary"], None] | None]:
    """A bar on stderr with frames per second and the time left; kept frames do not count."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    bar = Progress(*columns, console=Console(stderr=True))
    task = bar.add_task("super-resolving", total=None, rate="")
    before: int | None = None

    def show(summary: "Summary") -> None:
        nonlocal before
        if before is None:  # the first call: now it is known what is to do
            before = summary.finished
            bar.start()
            bar.reset(task, total=summary.total - before)
        done, elapsed = summary.finished - before, bar.tasks[task].elapsed
        rate = f"{done / elapsed:.2f} frames/s" if done and elapsed else ""
        bar.update(task, completed=done, rate=rate)

    if bar.console.is_interactive:  # else a mistake would be said below a bar that never moved
        bar.start()
    try:
        yield show
    finally:
        bar.live.transient = before is None
        if bar.live.is_started:
            bar.stop()


def tell(summary: "Summary") -> None:
    """The summary for people: results on stdout, trouble on stderr."""
    for why, count in summary.remade.items():
        reason = {
            "settings": "were made with other settings",
            "inputs": "were made from other inputs",
            "damaged": "were missing or damaged",
        }[why]
        print(f"{count} frames of an earlier run {reason} and were made again")
    rate = f", {summary.made / summary.seconds:.2f} frames/s" if summary.made else ""
    print(
        f"{summary.made} frames made, {summary.kept} were there, {len(summary.failures)} failed, "
        f"in {summary.seconds:.1f} s{rate}; results in {summary.out}"
    )
    if summary.shift.note and not summary.shift.warns:  # warnings are among the warnings
        print(summary.shift.note)
    for warning in summary.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for failure in summary.failures[:MOST_FAILURES_SHOWN]:
        print(f"{failure.name}: {failure.reason}", file=sys.stderr)
    if summary.failures:
        print(f"all that failed: {summary.out}/failures.csv", file=sys.stderr)
