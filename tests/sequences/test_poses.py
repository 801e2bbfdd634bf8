"""Frames whose poses are known: steadied by them, and fused into one cloud."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ducos.cameras import Camera, Cloud
from ducos.sequences import Fused, Steady, View
from tests.captures import recordings as made
from tests.commands import ducos, ducos_here

H, W = 72, 96
CAMERA = Camera(W, H, 90.0, 90.0, 47.5, 35.5)


def room(number: int) -> tuple[np.ndarray, np.ndarray, View]:
    """Colours without texture, true depth and view of a corner, from a camera that moves a lot."""
    pose = np.eye(4)
    pose[0, 3] = 0.06 * number
    rays = CAMERA.directions(*np.meshgrid(np.arange(W), np.arange(H)))
    wall = np.full((H, W), 3.0)
    left = (-1.0 - pose[0, 3]) / np.minimum(rays[..., 0], -1e-9)  # the plane x = -1
    depth = np.minimum(wall, left).astype(np.float32)
    image = np.where((left < wall)[..., None], (0.8, 0.5, 0.3), (0.4, 0.5, 0.6)).astype(np.float32)
    return image, depth, View(CAMERA, pose)


def wavering(truth: np.ndarray, number: int) -> np.ndarray:
    """An estimate with 60 mm of error, another one in each frame."""
    return truth + np.float32(0.06 * (-1) ** number)


@pytest.mark.parametrize("posed", [True, False])
def test_poses_carry_where_flow_has_nothing_to_see(posed: bool) -> None:
    steady, before, steps = Steady(), None, []
    for n in range(6):
        image, truth, view = room(n)
        unknown, whole = np.zeros((H, W), bool), np.ones((H, W), bool)
        result = steady(image, wavering(truth, n), whole, unknown, view if posed else None)
        error = result - truth
        if before is not None:
            steps.append(float(np.abs(error - before)[:, 20:].mean()))
        before = error
    assert steps[0] < 0.12
    assert np.mean(steps[2:]) < (0.06 if posed else 0.12)


def test_the_same_place_from_two_poses_is_one_point() -> None:
    def result(shift: float) -> SimpleNamespace:
        points = np.array(
            [[0.005 - shift, 0.005, 2.005], [1.005 - shift, 0.005, 2.005]], np.float32
        )
        return SimpleNamespace(cloud=lambda: Cloud(points, np.full((2, 3), 100, np.uint8)))

    fused = Fused(0.01)
    for shift in (0.0, 0.5):
        pose = np.eye(4)
        pose[0, 3] = shift
        fused.add(result(shift), pose)
    lonely = SimpleNamespace(
        cloud=lambda: Cloud(np.array([[9, 9, 9]], np.float32), np.zeros((1, 3), np.uint8))
    )
    fused.add(lonely, np.eye(4))  # seen once: an accident
    cloud = fused.cloud()
    np.testing.assert_allclose(
        cloud.points[np.argsort(cloud.points[:, 0])],
        [[0.005, 0.005, 2.005], [1.005, 0.005, 2.005]],
        atol=1e-5,
    )
    assert (cloud.colours == 100).all()


def test_the_command_fuses_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = made.rendered(tmp_path / "in")
    run = ducos("video", path, "-o", tmp_path / "out", "--fuse", tmp_path / "scene.ply",
                "--model", "bicubic", "--shift", "off", "--no-videos",
                "--no-steady")  # fmt: skip  # these frames are of no one scene
    assert run.returncode == 0, run.stderr
    content = (tmp_path / "scene.ply").read_bytes()
    assert content.startswith(b"ply")
    points = int(content.partition(b"element vertex ")[2].split()[0])
    assert 500 < points < made.FRAMES * made.W * made.H
    assert f"{points} points" in run.stdout
    base = ["video", made.named(tmp_path / "n"), "-o", tmp_path / "o", "--model", "bicubic"]
    for more, words in ((["--fuse", tmp_path / "s.ply"], "states none"),
                        (["--fuse", tmp_path / "s.xyz"], ".ply")):  # fmt: skip
        code, _, said = ducos_here(capsys, *base, *more)
        assert (code, words in said) == (2, True), said
    assert not (tmp_path / "o").exists()
