"""The Ray engine, on a real local cluster of two node processes."""

import os
import signal
import threading
import time
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ducos.batch import Cluster, run_batch
from ducos.batch.journal import JOURNAL
from ducos.batch.ray_engine import (
    MOST_DEATHS,
    job_anywhere,
    settings_anywhere,
    while_they_come,
)
from ducos.batch.worker import Job
from ducos.errors import InputError
from ducos.files import Found, find_pairs
from ducos.upscaling import Options
from tests.commands import ducos_here

pytestmark = pytest.mark.timeout(900)

FRAMES = 10
OPTIONS = Options(model="bicubic", shift="off")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of two CPUs each; what runs on them are processes of their own."""
    import ray
    from ray.cluster_utils import Cluster as Nodes

    for attempt in range(1, 6):  # Ray gives each process 30 s, too little under load
        nodes = Nodes()
        try:
            nodes.add_node(num_cpus=2)
            nodes.add_node(num_cpus=2)
            ray.init(address=nodes.address, logging_level="ERROR", log_to_driver=False)
            break
        except Exception as problem:
            ray.shutdown()
            nodes.shutdown()
            if "timed out" not in str(problem) or attempt == 5:
                raise
    yield nodes
    ray.shutdown()
    try:
        nodes.shutdown()
    except ValueError:  # a thread that a given-up batch left has connected again
        ray.shutdown()
        nodes.shutdown()


def recording(folder: Path, bad: bool = False, frames: int = FRAMES) -> Found:
    rng = np.random.default_rng(0)
    for kind in ("rgb", "depth"):
        (folder / kind).mkdir(parents=True)
    for n in range(frames):
        Image.fromarray(rng.integers(0, 255, (48, 64, 3), np.uint8)).save(
            folder / "rgb" / f"{n}.png"
        )
        depth = rng.integers(900, 2000, (12, 16)).astype(np.uint16)
        Image.fromarray(depth).save(folder / "depth" / f"{n}.png")
    if bad:
        (folder / "depth" / "3.png").write_bytes(b"no picture")
    return find_pairs(folder)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.png"))}


def actors_of(cluster: Any, before: Container[int] = ()) -> list[int]:
    """The processes in which workers of this cluster run, without those of earlier batches."""
    raylets = {
        each.process.pid
        for node in cluster.list_all_nodes()
        for each in node.all_processes["raylet"]
    }
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "cmdline").read_bytes()
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent in raylets and b"MapWorker" in name:  # not Ray's own actors
            found.append(int(process.name))
    return [number for number in found if number not in before]


@pytest.mark.slow
def test_the_cluster_makes_the_same_bytes_and_goes_on_past_a_bad_pair(
    cluster: Any, tmp_path: Path
) -> None:
    found = recording(tmp_path / "in", bad=True)
    local = run_batch(found.pairs, tmp_path / "local", options=OPTIONS, workers=1)
    there = run_batch(found.pairs, tmp_path / "ray", options=OPTIONS, workers=2, cluster=Cluster())
    assert len(local.failures) == len(there.failures) == 1
    assert there.failures[0].name == "3.png"
    assert there.made == FRAMES - 1
    assert bytes_of(tmp_path / "local") == bytes_of(tmp_path / "ray")
    again = run_batch(found.pairs, tmp_path / "ray", options=OPTIONS, workers=2, cluster=Cluster())
    assert (again.made, again.kept) == (0, FRAMES - 1)


@pytest.mark.slow
def test_a_worker_killed_on_the_way_loses_nothing_and_repeats_nothing(
    cluster: Any, tmp_path: Path
) -> None:
    frames, before = 20 * FRAMES, actors_of(cluster)  # enough to be killed on the way
    found, killed = recording(tmp_path / "in", frames=frames), list[int]()

    def kill_one() -> None:
        """SIGKILL for an actor of this cluster, once a file was made."""
        for _ in range(600):
            time.sleep(0.05)
            if list((tmp_path / "out").glob(".unfinished/*/*.png")) and (
                there := actors_of(cluster, before)
            ):
                os.kill(there[0], signal.SIGKILL)
                killed.append(there[0])
                return

    thread = threading.Thread(target=kill_one)
    thread.start()
    summary = run_batch(
        found.pairs, tmp_path / "out", options=OPTIONS, workers=2, cluster=Cluster()
    )
    thread.join()
    assert killed, "no actor was found to kill"
    assert summary.made == frames
    assert summary.failures == []
    lines = (tmp_path / "out" / JOURNAL).read_text().splitlines()
    assert len(lines) == frames
    assert len(list((tmp_path / "out").glob("*.png"))) == frames


@pytest.mark.slow
def test_a_stopped_worker_is_noticed(cluster: Any, tmp_path: Path) -> None:
    """It holds its frames for ever and dies of nothing; the other frames are made."""
    frames, before = 20 * FRAMES, actors_of(cluster)  # enough that it has some in hand
    found, stopped = recording(tmp_path / "in", frames=frames), list[int]()

    def stop_one() -> None:
        for _ in range(600):
            time.sleep(0.05)
            if list((tmp_path / "out").glob(".unfinished/*/*.png")) and (
                there := actors_of(cluster, before)
            ):
                os.kill(there[0], signal.SIGSTOP)
                stopped.append(there[0])
                return

    thread = threading.Thread(target=stop_one)
    thread.start()
    summary = run_batch(
        found.pairs, tmp_path / "out", options=OPTIONS, workers=2, cluster=Cluster(), timeout=20
    )
    thread.join()
    assert stopped, "no actor was found to stop"
    assert summary.made + len(summary.failures) == frames
    assert summary.failures
    assert all("for 20 s; see --timeout" in failure.reason for failure in summary.failures)
    os.kill(stopped[0], signal.SIGKILL)
    again = run_batch(found.pairs, tmp_path / "out", options=OPTIONS, workers=2, cluster=Cluster())
    assert (again.kept, again.made) == (summary.made, frames - summary.made)


def test_rows_that_do_not_come_are_not_waited_for() -> None:
    rows = [{"number": number} for number in range(3)]
    assert list(while_they_come(lambda: rows, 60)) == rows

    def slow() -> Iterator[dict[str, Any]]:
        yield from rows[:2]
        threading.Event().wait(60)

    assert list(while_they_come(slow, 0.2)) == rows[:2]

    def broken() -> Iterator[dict[str, Any]]:
        yield rows[0]
        raise KeyError("no row")

    came = while_they_come(broken, 60)
    assert next(came) == rows[0]
    with pytest.raises(KeyError, match="no row"):
        next(came)


@pytest.mark.slow
def test_a_pair_that_kills_every_worker_is_a_failure(cluster: Any, tmp_path: Path) -> None:
    found = recording(tmp_path / "in")
    # Frame 3 takes seconds, so that whoever works on it is found in time.
    large = np.random.default_rng(0).integers(0, 255, (3000, 4000, 3), np.uint8)
    Image.fromarray(large).save(tmp_path / "in/rgb/3.png", compress_level=0)
    killed: list[int] = []
    done = threading.Event()

    def kill_all() -> None:
        while not done.wait(0.02):
            for begun in (tmp_path / "out").glob(".unfinished/*/3.begun"):
                last = int(begun.read_text().split()[-1])
                if last not in killed:
                    os.kill(last, signal.SIGKILL)
                    killed.append(last)

    thread = threading.Thread(target=kill_all)
    thread.start()
    try:
        summary = run_batch(
            found.pairs, tmp_path / "out", options=OPTIONS, workers=2, cluster=Cluster()
        )
    finally:
        done.set()
        thread.join()
    assert len(killed) == MOST_DEATHS
    assert [(each.name, each.reason.split(",")[0]) for each in summary.failures] == [
        ("3.png", "3 workers died over it")
    ]
    assert summary.made == FRAMES - 1


def test_what_a_worker_elsewhere_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole paths, since its current folder is another one; names of models stay names."""
    monkeypatch.chdir(tmp_path)
    for name in ("mask.png", "mine.safetensors"):
        Path(name).write_bytes(b"")
    place = {"source": "a.bag", "layout": "bag", "key": {"n": 1}, "out": "0"}
    job = Job("a.bag", "a.bag", None, None, "o/.x.png", None, None, place)
    there = job_anywhere(job)
    assert [there[name] for name in ("rgb", "out", "mask")] == [
        str(tmp_path / "a.bag"),
        str(tmp_path / "o/.x.png"),
        None,
    ]
    assert there["place"] == {**place, "source": str(tmp_path / "a.bag")}
    told = settings_anywhere(Options(model="bicubic", mask="mask.png"))
    assert (told["model"], told["mask"]) == ("bicubic", str(tmp_path / "mask.png"))
    told = settings_anywhere(Options(model="mine.safetensors"))
    assert told["model"] == str(tmp_path / "mine.safetensors")


def test_options_of_the_cluster_are_checked_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    recording(tmp_path / "in")
    base = ["batch", tmp_path / "in", "-o", tmp_path / "out"]
    for more, words in (
        (["--engine", "dask"], "unknown engine"),
        (["--address", "auto"], "--engine ray"),
        (["--engine", "ray", "--worker-cpus", "0"], "CPUs"),
    ):
        code, _, said = ducos_here(capsys, *base, *more)
        assert code == 2
        assert words in said
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="GPUs"):
        Cluster(gpus=-1)
