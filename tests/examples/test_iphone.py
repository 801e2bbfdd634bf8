"""examples/iphone: small recordings of the two apps to clouds, by the script and by the commands
of its README."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.captures import recordings as made
from tests.captures.recordings import RECORDINGS
from tests.commands import ducos
from tests.examples.kit import EXAMPLES, run

SCRIPT = "iphone/recording_to_clouds.py"
VERTEX = np.dtype([("place", "<f4", 3), ("colour", "u1", 3)])


def read_ply(path: Path) -> np.ndarray:
    """Points of a binary .ply as `ducos` writes it."""
    head, _, body = path.read_bytes().partition(b"end_header\n")
    count = int(re.search(rb"element vertex (\d+)", head)[1])  # type: ignore[index]
    return np.frombuffer(body, VERTEX, count)


@pytest.fixture(params=["record3d", "stray"])
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return RECORDINGS[request.param][1](tmp_path / "walk" if request.param == "stray" else tmp_path)


def test_the_script_writes_a_cloud_of_all_frames_and_of_each(
    recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "clouds"
    finished = run(SCRIPT, recording, "-o", out, "--each", "--cube", 0.05)
    assert finished.returncode == 0, finished.stderr
    assert "points of 3 frames" in finished.stdout
    assert len(list(out.glob("*.ply"))) == 1 + made.FRAMES
    fused = read_ply(out / "fused.ply")
    for points in (fused, *(read_ply(path) for path in out.glob("0*.ply"))):
        assert len(points) > 500
    # The world of the first pose, whose camera looked along z.
    depths = fused["place"][:, 2]
    assert abs(np.median(depths) - 2.0) < 0.05
    assert np.abs(depths - 1.2).min() < 0.02
    # Kept is what two cameras saw: the second and third stood 0.1 and 0.2 m to the right.
    reach = 2.0 * (made.W - 1 - made.CX) / made.FX
    assert reach + 0.05 < fused["place"][:, 0].max() < reach + 0.15


def test_every_second_frame(tmp_path: Path) -> None:
    recording = made.record3d(tmp_path)
    finished = run(SCRIPT, recording, "-o", tmp_path / "clouds", "--every", 2)
    assert finished.returncode == 0, finished.stderr
    assert "points of 2 frames" in finished.stdout
    assert [path.name for path in (tmp_path / "clouds").iterdir()] == ["fused.ply"]


@pytest.mark.parametrize("wrong", [["missing.r3d"], [".", "--every", "0"]], ids=["path", "every"])
def test_mistakes_are_sentences(tmp_path: Path, wrong: list[str]) -> None:
    finished = run(SCRIPT, *wrong, "-o", tmp_path / "clouds")
    assert finished.returncode == 2
    assert "got" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert not (tmp_path / "clouds").exists()


def commands() -> list[str]:
    text = (EXAMPLES / "iphone/README.md").read_text(encoding="utf-8")
    return re.findall(r"^    ducos (.+?)(?:  +#.*)?$", text, re.MULTILINE)


def test_the_commands_of_the_readme_do_the_same(tmp_path: Path) -> None:
    recording = made.record3d(tmp_path)
    places = {
        "walk.r3d": str(recording), "clouds": str(tmp_path / "clouds"),
        "maps": str(tmp_path / "maps"), "scene.ply": str(tmp_path / "scene.ply"),
    }  # fmt: skip
    assert len(commands()) == 2
    for line in commands():
        finished = ducos(*(places.get(word, word) for word in shlex.split(line)))
        assert finished.returncode == 0, finished.stderr
    assert len(list((tmp_path / "clouds" / "cloud").glob("*.ply"))) == made.FRAMES
    assert len(read_ply(tmp_path / "scene.ply")) > 500
