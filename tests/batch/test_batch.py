"""Many pairs at once: real files, real worker processes, real kills."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ducos import files
from ducos.batch import Summary, run_batch
from ducos.batch.journal import Record
from ducos.batch.run import Frame
from ducos.batch.team import Worker
from ducos.batch.worker import Job
from ducos.doctor import examine_recording
from ducos.doctor.rig import spread_out
from ducos.errors import InputError
from ducos.example import LOW, RGB
from ducos.files import FramePair, find_pairs
from ducos.upscaling import Options
from tests.commands import ducos, ducos_here
from tests.doctor.test_doctor import moved_pair

BICUBIC = Options(model="bicubic")
NO_RECORD = Record("", {}, {}, {})


def write_pair(rgb: Path, depth: Path, seed: int = 0, size: tuple[int, int] = (24, 32)) -> None:
    """A colour image and a depth map of a quarter of its size, in millimetres if it is a PNG."""
    rng = np.random.default_rng(seed)
    rgb.parent.mkdir(parents=True, exist_ok=True)
    depth.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(rng.integers(0, 255, (*size, 3), dtype=np.uint8)).save(rgb)
    low = rng.integers(900, 3000, (size[0] // 4, size[1] // 4)).astype(np.uint16)
    if depth.suffix == ".npy":
        np.save(depth, (low / 1000).astype(np.float32))
    else:
        Image.fromarray(low).save(depth)


def write_folder(folder: Path, count: int, size: tuple[int, int] = (24, 32)) -> Path:
    for number in range(count):
        name = f"{number:03d}.png"
        write_pair(folder / "rgb" / name, folder / "depth" / name, number, size)
    return folder


def results(folder: Path, pattern: str = "*.png") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob(pattern))}


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.png")}


# The same as one by one


def test_bytes_are_those_of_upscale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a mask, layers, holes and the embedded network, by two workers."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "1")
    folder = tmp_path / "recording"
    for number in range(3):
        write_pair(folder / f"{number}_rgb.png", folder / f"{number}_depth.png", number)
    mask = np.ones((6, 8), np.uint8)
    mask[2:4, 3:5] = 0
    Image.fromarray(255 * mask).save(folder / "0_mask.png")
    out = tmp_path / "out"
    done = ducos(
        "batch", folder, "-o", out, "--suffix", ".npz", "--preview", "--keep-holes",
        "--unit", "mm", "--shift", "3,-1", "--workers", 2, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["made"] == 3
    alone, look = tmp_path / "alone.npz", tmp_path / "look.png"
    upscaled = ducos(
        "upscale", folder / "0_rgb.png", folder / "0_depth.png", "--mask", folder / "0_mask.png",
        "-o", alone, "--preview", look, "--keep-holes", "--unit", "mm", "--shift", "3,-1",
        "--threads", 1,  # as a worker has
    )  # fmt: skip
    assert upscaled.returncode == 0, upscaled.stderr
    assert (out / "0.npz").read_bytes() == alone.read_bytes()
    assert (out / "preview/0.png").read_bytes() == look.read_bytes()
    masked = (slice(9, 17), slice(9, 17))  # the hole, moved back by 3 px across and -1 px down
    assert not files.read_depth(out / "0.npz").valid[masked].any()
    assert files.read_depth(out / "1.npz").valid[masked].any()


# One shift for all frames


def write_recording(folder: Path, count: int, shift: tuple[int, int]) -> Path:
    """Frames of 208×288 whose depth, of a quarter the size, lies beside the picture."""
    for kind in ("rgb", "depth"):
        (folder / kind).mkdir(parents=True)
    for number in range(count):
        rgb, low, _ = moved_pair(number, shift, 4)
        Image.fromarray((255 * rgb).round().astype(np.uint8)).save(folder / f"rgb/{number}.png")
        files.write_depth(folder / f"depth/{number}.png", low, low > 0)
    return folder


def test_a_recording_is_moved_back_as_one(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Every frame by the same whole pixels, which the summary names; resuming keeps them."""
    folder, out = write_recording(tmp_path / "in", 4, (8, -4)), tmp_path / "out"
    (folder / "rgb" / "4.png").write_bytes(b"no picture")
    (folder / "depth" / "4.png").write_bytes(b"no map")
    arguments = ["batch", folder, "-o", out, "--model", "bicubic", "--shift", "auto"]
    code, printed, _ = ducos_here(capsys, *arguments, "--json")
    summary = json.loads(printed)
    assert code == 1  # for the broken pair
    assert (summary["made"], len(summary["failures"])) == (4, 1)
    assert (summary["shift"]["x"], summary["shift"]["y"]) == (8, -4)
    assert "looked at 4 of 5 frames" in summary["shift"]["note"]
    alone = tmp_path / "alone.png"
    for number in range(4):
        rgb, depth = folder / f"rgb/{number}.png", folder / f"depth/{number}.png"
        given = ["--model", "bicubic", "--shift", "8,-4"]
        code, _, _ = ducos_here(capsys, "upscale", rgb, depth, "-o", alone, *given)
        assert code == 0
        assert alone.read_bytes() == (out / f"{number}.png").read_bytes()
    _, printed, _ = ducos_here(capsys, *arguments)
    assert "0 frames made, 4 were there" in printed
    assert "the depth is moved back by" in printed


def test_a_recording_beside_its_pictures_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """By default nothing is moved; sound recordings and `off` cause no word."""
    beside = write_recording(tmp_path / "beside", 3, (8, -4))
    sound = write_recording(tmp_path / "sound", 3, (0, 0))
    bicubic = ["--model", "bicubic"]
    _, printed, said = ducos_here(capsys, "batch", beside, "-o", tmp_path / "a", *bicubic)
    assert "warning: the depth seems misaligned" in said
    assert "--shift auto moves it back; looked at 3 of 3 frames" in said
    assert "moved back by" not in printed
    for number, quiet in enumerate(([sound], [beside, "--shift", "off"])):
        out = tmp_path / f"quiet{number}"
        _, printed, said = ducos_here(capsys, "batch", *quiet, "-o", out, *bicubic)
        assert "beside" not in said
        assert "moved" not in printed
    assert results(tmp_path / "a") == results(tmp_path / "quiet1")


def test_pairs_of_different_sizes_are_no_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = write_recording(tmp_path / "in", 2, (8, -4))
    write_pair(folder / "rgb/other.png", folder / "depth/other.png")
    arguments = ["batch", folder, "-o", tmp_path / "out", "--model", "bicubic", "--shift", "auto"]
    code, printed, _ = ducos_here(capsys, *arguments, "--json")
    summary = json.loads(printed)
    assert (code, summary["made"]) == (0, 3)
    assert (summary["shift"]["x"], summary["shift"]["y"]) == (0, 0)
    assert "not of one rig" in summary["warnings"][0]


# The doctor looks at a recording


def test_the_doctor_looks_at_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """One answer about alignment, accidents told from faults of the camera, a picture."""
    folder, look = write_recording(tmp_path / "in", 4, (8, -4)), tmp_path / "look.png"
    (folder / "rgb/4.png").write_bytes(b"no picture")
    (folder / "depth/4.png").write_bytes(b"no map")
    (folder / "depth/5.png").write_bytes((folder / "depth/3.png").read_bytes())
    code, printed, _ = ducos_here(capsys, "doctor", folder, "--json", "--report", look)
    assert code == 0, "one bad frame of five does not make a recording unusable"
    told = json.loads(printed)
    findings = {finding["code"]: finding for finding in told["findings"]}
    assert len(findings) == len(told["findings"])
    assert findings["misaligned"]["numbers"]["x"] == pytest.approx(8, abs=1)
    assert findings["misaligned"]["numbers"]["y"] == pytest.approx(-4, abs=1)
    assert findings["unreadable"]["severity"] == "warning"
    assert findings["unreadable"]["numbers"]["frames"] == ["4"]
    assert findings["unreadable"]["sentence"].startswith("in 1 of 5 frames, such as 4: ")
    assert findings["unmatched"]["numbers"]["names"] == ["5"]
    assert told["facts"]["looked_at"] == ["0", "1", "2", "3", "4"]
    assert told["facts"]["sizes"] == [{"colour": [208, 288], "depth": [52, 72]}]
    with Image.open(look) as picture:
        assert picture.size[0] > 500
    _, printed, _ = ducos_here(capsys, "doctor", folder)
    assert printed.rstrip().endswith("verdict: usable, with the above in mind")


def test_the_picture_of_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The shift of all frames is in it; without a readable frame it is said that there is none."""
    folder, look = write_recording(tmp_path / "in", 3, (8, -4)), tmp_path / "look.png"
    shown = examine_recording(find_pairs(folder)).worst_frame
    assert shown is not None
    assert shown.find("misaligned") is not None
    assert shown.shift is not None
    assert shown.shift.x == pytest.approx(8, abs=1)
    for picture in (folder / "rgb").iterdir():
        picture.write_bytes(b"no picture")
    code, _, said = ducos_here(capsys, "doctor", folder, "--report", look)
    assert code == 1
    assert "no frame could be read: nothing to show" in said
    assert not look.exists()


def test_the_doctor_compares_frames(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Different sizes have no common shift; what spoils every frame is an error."""
    folder = write_recording(tmp_path / "in", 2, (8, -4))
    write_pair(folder / "rgb/other.png", folder / "depth/other.npy")
    _, printed, _ = ducos_here(capsys, "doctor", folder, "--json")
    codes = {finding["code"] for finding in json.loads(printed)["findings"]}
    assert {"units-differ", "sizes-differ"} <= codes
    assert not {"misaligned", "alignment-unknown"} & codes
    constant = tmp_path / "constant"
    for number in range(2):
        write_pair(constant / f"{number}_rgb.png", constant / f"{number}_depth.png", number)
        Image.fromarray(np.full((6, 8), 1500, np.uint16)).save(constant / f"{number}_depth.png")
    code, printed, _ = ducos_here(capsys, "doctor", constant)
    assert code == 1
    assert "error: in 2 of 2 frames, such as 0: " in printed


def test_the_doctor_refuses_half_a_pair(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = write_recording(tmp_path / "in", 1, (0, 0))
    for words, message in (
        ([RGB], "expected its depth map too"),
        ([folder, "--mask", RGB], "--mask is for one pair"),
        ([tmp_path / "nowhere"], "which does not exist"),
        ([tmp_path], "no pairs in"),
    ):
        code, _, said = ducos_here(capsys, "doctor", *words)
        assert code == 2
        assert message in said


def test_large_recordings_are_looked_at_in_parts(tmp_path: Path) -> None:
    """At most sixteen frames, first and last among them; fewer of large pictures."""
    (tmp_path / "small.png").write_bytes(b"")
    Image.new("1", (2000, 3000)).save(tmp_path / "large.png")
    for name, frames, count in (("small", 100, 16), ("small", 3, 3), ("large", 100, 2)):
        pairs = [FramePair(tmp_path / f"{name}.png", Path("x"), str(n)) for n in range(frames)]
        chosen = [int(pair.out) for pair in spread_out(pairs)]
        assert len(chosen) == count
        assert (chosen[0], chosen[-1]) == (0, frames - 1)
        assert sorted(set(chosen)) == chosen


# Going on


def test_a_killed_batch_goes_on_without_loss(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder, out = write_folder(tmp_path / "in", 40, (240, 320)), tmp_path / "out"
    arguments = ["batch", folder, "-o", out, "--model", "bicubic", "--preview", "--workers", "1"]
    running = subprocess.Popen(
        [sys.executable, "-m", "ducos", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while len(times(out)) < 3 and running.poll() is None:
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.wait()
    finished = times(out)
    assert 3 <= len(finished) < 40, "it was to be killed in the middle"
    with (out / "journal.jsonl").open("a") as journal:
        journal.write('{"out": "torn')  # as a crash of the machine may leave it

    code, printed, _ = ducos_here(capsys, *arguments, "--json")
    assert code == 0
    summary = json.loads(printed)
    # The last one may lack its preview or its line in the journal, and is then made again.
    assert len(finished) - summary["kept"] in (0, 1)
    assert summary["kept"] + summary["made"] == 40
    now = times(out)
    assert sum(now[name] == when for name, when in finished.items()) == summary["kept"]
    assert len(results(out)) == len(results(out / "preview")) == 40
    assert {path.name for path in out.iterdir()} - set(times(out)) == {
        "journal.jsonl",
        "journal.damaged",  # the torn line, set aside
        "preview",
    }

    reference = run_batch(find_pairs(folder).pairs[-2:], tmp_path / "reference", options=BICUBIC)
    for name, content in results(reference.out).items():
        assert (out / name).read_bytes() == content


def test_only_what_changed_is_made_again(tmp_path: Path) -> None:
    folder, out = write_folder(tmp_path / "in", 3), tmp_path / "out"
    pairs = find_pairs(folder).pairs
    first = run_batch(pairs, out, options=BICUBIC)
    assert (first.made, first.kept, first.units) == (3, 0, {"mm": 3})
    before = times(out)

    again = run_batch(pairs, out, options=BICUBIC)
    assert (again.made, again.kept, times(out)) == (0, 3, before)

    (out / "000.png").write_bytes((out / "000.png").read_bytes()[:-20])
    write_pair(pairs[1].rgb, pairs[1].depth, seed=77)
    repaired = run_batch(pairs, out, options=BICUBIC)
    assert repaired.remade == {"damaged": 1, "inputs": 1}
    assert (repaired.made, repaired.kept) == (2, 1)
    assert times(out)["002.png"] == before["002.png"]

    other = run_batch(pairs, out, options=Options(model="bicubic", unit="cm"))
    assert (other.made, other.remade) == (3, {"settings": 3})
    assert float(files.read_depth(out / "000.png").depth.max()) > 8.9


def test_two_batches_do_not_share_a_folder(tmp_path: Path) -> None:
    pairs = find_pairs(write_folder(tmp_path / "in", 1)).pairs
    complaints = []

    def start_another(summary: Summary) -> None:
        with pytest.raises(InputError) as problem:
            run_batch(pairs, tmp_path / "out", options=BICUBIC)
        complaints.append(str(problem.value))

    run_batch(pairs, tmp_path / "out", options=BICUBIC, progress=start_another)
    assert complaints
    assert all("another batch is writing" in text for text in complaints)


# Trouble


def test_bad_pairs_are_reported_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder, out = write_folder(tmp_path / "in", 4), tmp_path / "out"
    (folder / "depth/001.png").write_bytes(b"no picture")
    (folder / "depth/002.png").unlink()
    write_pair(folder / "rgb/metres.png", folder / "depth/metres.npy")
    code, printed, complaint = ducos_here(
        capsys, "batch", folder, "-o", out, "--model", "bicubic", "--workers", "1"
    )
    assert code == 1
    assert set(results(out)) == {"000.png", "003.png", "metres.png"}
    assert "3 frames made, 0 were there, 2 failed" in printed
    assert "different units: mm for 2 (such as 000.png), m for 1 (such as metres.png)" in complaint
    with (out / "failures.csv").open(newline="") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"001.png", "002"}
    assert "not a format" in rows["001.png"]["reason"]
    assert rows["001.png"]["depth"] == str(folder / "depth/001.png")
    assert "no depth file" in rows["002"]["reason"]
    assert all(f"{name}: {row['reason']}" in complaint for name, row in rows.items())

    write_pair(folder / "rgb/001.png", folder / "depth/001.png")
    write_pair(folder / "rgb/002.png", folder / "depth/002.png")
    code, printed, _ = ducos_here(
        capsys, "batch", folder, "-o", out, "--model", "bicubic", "--workers", "1"
    )
    assert code == 0
    assert "2 frames made, 3 were there, 0 failed" in printed
    assert not (out / "failures.csv").exists()


def worker_processes() -> list[int]:
    """Living workers of this very process."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            command = (place / "cmdline").read_bytes()
        except OSError:
            continue  # it ended meanwhile
        if parent == os.getpid() and b"ducos.batch.worker" in command:
            found.append(int(place.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find the worker")
def test_a_worker_killed_once_costs_no_frame(tmp_path: Path) -> None:
    """Frames take about a second, so a worker is in the middle of one soon after the last."""
    pairs = [FramePair(RGB, LOW, f"{number}") for number in range(4)]
    killed = []

    def kill_once(summary: Summary) -> None:
        if summary.made == 1 and not killed:
            time.sleep(0.2)
            killed.extend(worker_processes())
            for process in killed:
                os.kill(process, signal.SIGKILL)

    summary = run_batch(pairs, tmp_path / "out", workers=1, progress=kill_once)
    assert len(killed) == 1
    assert summary.failures == []
    assert set(results(tmp_path / "out")) == {f"{number}.png" for number in range(4)}
    assert worker_processes() == []


class Cursed(Worker):
    """A worker whose process dies whenever it is given one certain job."""

    def send(self, job: Job) -> None:
        super().send(job)
        if Path(job.out).name == "bad.png":
            assert self.process is not None
            self.process.kill()


def test_a_frame_over_which_workers_die_fails_alone(tmp_path: Path) -> None:
    """The worker held another frame, too: it is not to blame, and neither are those after it."""
    frames = deque(
        Frame(Job(str(RGB), str(LOW), None, None, str(tmp_path / name), None), {}, NO_RECORD)
        for name in ("0.png", "bad.png", "1.png", "2.png", "3.png")
    )
    worker = Cursed(BICUBIC, seconds=100)
    try:
        answers = worker.answers(lambda busy: frames.popleft() if frames else None)
        said = {Path(frame.job.out).name: answer.error for frame, answer in answers}
    finally:
        worker.close()
    assert list(said) == ["0.png", "bad.png", "1.png", "2.png", "3.png"]
    assert "was killed" in str(said.pop("bad.png"))
    assert set(said.values()) == {None}


def test_the_last_frames_are_for_idle_workers(tmp_path: Path) -> None:
    """Nobody takes a second frame while another worker has none."""
    pairs = [FramePair(RGB, LOW, f"{number}") for number in range(2)]
    seen: list[int] = []

    def look(summary: Summary) -> None:
        if summary.made == 1:
            seen.append(len(worker_processes()))

    summary = run_batch(pairs, tmp_path / "out", options=BICUBIC, workers=2, progress=look)
    assert (summary.made, seen) == (2, [2])


# Usage


def wrong_arguments(kind: str, folder: Path) -> list[object]:
    """Arguments of `batch` with one thing wrong; the folder is sound."""
    out = folder.parent / "out"
    usual: list[object] = [folder, "-o", out, "--model", "bicubic"]
    if kind == "no such folder":
        return [folder / "nowhere", "-o", out]
    if kind == "no pairs":
        (folder.parent / "empty").mkdir()
        return [folder.parent / "empty", "-o", out]
    if kind == "results replace inputs":
        return [folder, "-o", folder / "depth", "--model", "bicubic"]
    if kind == "out is a file":
        out.write_text("mine")
        return usual
    extra: dict[str, list[object]] = {
        "unknown suffix": ["--suffix", ".jpg"],
        "steady": ["--temporal"],
        "unknown unit": ["--unit", "furlong"],
        "bad scale": ["--scale", "5000"],
        "no workers": ["--workers", "0"],
        "bad tile": ["--tile", "big"],
        "bad shift": ["--shift", "left"],
        "unknown model": ["--model", "nonsense"],
        "model without weights": ["--model", "fdsr"],
    }
    if kind in extra:
        return [*usual, *extra[kind]]
    table = folder / "table.csv"
    rows = {
        "manifest without depth": "rgb,mask\nrgb/000.png,x.png\n",
        "manifest with unknown column": "rgb,depth,lense\nrgb/000.png,depth/000.png,1\n",
        "manifest with a gap": "rgb,depth\nrgb/000.png,\n",
        "one name twice": "rgb,depth\nrgb/000.png,depth/000.png\nrgb/000.png,depth/001.png\n",
        "out elsewhere": "rgb,depth,out\nrgb/000.png,depth/000.png,../x.png\n",
    }
    table.write_text(rows[kind])
    return [table, *usual[1:]]


WRONG = [
    "no such folder", "no pairs", "steady", "results replace inputs", "out is a file",
    "unknown suffix",
    "unknown unit", "bad scale", "no workers", "bad tile", "bad shift", "unknown model",
    "model without weights", "manifest without depth", "manifest with unknown column",
    "manifest with a gap", "one name twice", "out elsewhere",
]  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_a_mistake_is_one_sentence(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = write_folder(tmp_path / "in", 2)
    arguments = wrong_arguments(kind, folder)
    before = set(tmp_path.rglob("*"))
    code, printed, complaint = ducos_here(capsys, "batch", *arguments, "--json")
    assert code == 2, (printed, complaint)
    assert complaint.startswith("ducos: ")
    assert complaint.count("\n") == 1
    assert printed == ""
    assert set(tmp_path.rglob("*")) == before


# Layouts


def test_folders_and_suffixes_pair_by_name(tmp_path: Path) -> None:
    write_pair(tmp_path / "a/rgb/1.jpg", tmp_path / "a/depth/1.png")
    write_pair(tmp_path / "a/rgb/2.png", tmp_path / "a/depth/2.npy")
    write_pair(tmp_path / "a/mask/2.png", tmp_path / "a/depth/alone.png")
    (tmp_path / "a/depth/1.json").write_text("{}")
    found = find_pairs(tmp_path / "a")
    assert [(p.rgb.name, p.depth.name, p.out) for p in found.pairs] == [
        ("1.jpg", "1.png", "1"),
        ("2.png", "2.npy", "2"),
    ]
    assert [pair.mask and pair.mask.name for pair in found.pairs] == [None, "2.png"]
    assert [failure.name for failure in found.unmatched] == ["alone"]

    write_pair(tmp_path / "b/x_rgb.png", tmp_path / "b/x_depth.npy")
    (pair,) = find_pairs(tmp_path / "b").pairs
    assert (pair.rgb.name, pair.depth.name, pair.out) == ("x_rgb.png", "x_depth.npy", "x")


def test_time_stamps_pair_nearest_once(tmp_path: Path) -> None:
    stamps = "# color images\n10.000 rgb/10.000.png\n10.033 rgb/10.033.png\n10.500 rgb/x.png\n"
    (tmp_path / "rgb.txt").write_text(stamps)
    # 10.020 is in reach of both images and nearer to the second, 10.012 remains for the first.
    (tmp_path / "depth.txt").write_text("10.012 depth/a.png\n10.020 depth/b.png\n11 depth/c.png\n")
    found = find_pairs(tmp_path)
    assert found.layout == "tum"
    assert [(p.rgb.name, p.depth.name) for p in found.pairs] == [
        ("10.000.png", "a.png"),
        ("10.033.png", "b.png"),
    ]
    assert found.pairs[0].out == "10.000"

    (tmp_path / "associations.txt").write_text("1 depth/0.png 1 rgb/0.png\n")
    (pair,) = find_pairs(tmp_path).pairs
    assert (pair.rgb, pair.depth) == (tmp_path / "rgb/0.png", tmp_path / "depth/0.png")


def test_a_manifest_names_masks_and_results(tmp_path: Path) -> None:
    for scene in ("one", "two"):
        write_pair(tmp_path / scene / "rgb.png", tmp_path / scene / "depth.png")
    Image.fromarray(np.full((6, 8), 255, np.uint8)).save(tmp_path / "all.png")
    (tmp_path / "table.csv").write_text(
        "rgb,depth,mask,out\n"
        "one/rgb.png,one/depth.png,all.png,first/1305.25\n"
        "two/rgb.png,two/depth.png,,second.exr\n"
    )
    pairs = find_pairs(tmp_path / "table.csv").pairs
    assert [pair.mask for pair in pairs] == [tmp_path / "all.png", None]
    summary = run_batch(pairs, tmp_path / "out", options=BICUBIC, preview=True)
    assert summary.made == 2
    written = {str(p.relative_to(summary.out)) for p in summary.out.rglob("*") if p.is_file()}
    assert written == {
        "first/1305.25.png", "preview/first/1305.25.png", "second.exr", "preview/second.png",
        "journal.jsonl",
    }  # fmt: skip
