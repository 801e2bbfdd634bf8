"""Sequences: less flicker, no more error, moving things sharp, videos that can be read back."""

from pathlib import Path

import av
import numpy as np
import pytest
from scipy import ndimage

from ducos.files import read_depth
from ducos.sequences import Steady
from tests.captures import recordings as made
from tests.commands import ducos, ducos_here

H, W, FRAMES = 96, 128, 8


def scene(number: int, pan: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Image (H, W, 3) and true depth (H, W): textured walls that pan, a box that moves fast."""
    rng = np.random.default_rng(0)
    texture = ndimage.gaussian_filter(rng.random((H, 3 * W)), 2)
    texture = (texture - texture.min()) / np.ptp(texture)
    wide = 2.0 + 0.6 * (np.arange(3 * W) // 40 % 2) + 0.2 * np.linspace(0, 1, H)[:, None]
    window = np.s_[:, 40 + pan * number : 40 + pan * number + W]
    depth, shade = wide[window].copy(), texture[window].copy()
    shade = 0.6 * shade + 0.3 * (depth - 2)
    left = 10 + 8 * number
    depth[30:60, left : left + 25] = 1.0
    shade[30:60, left : left + 25] = 0.95 - 0.2 * texture[30:60, :25]
    return shade[..., None].repeat(3, 2).astype(np.float32), depth.astype(np.float32)


def estimates(number: int, pan: int) -> tuple[np.ndarray, ...]:
    """As a network would give it: 10 mm of noise where measured, 60 mm of wavering in holes."""
    rng = np.random.default_rng(100 + number)
    image, truth = scene(number, pan)
    measured = np.ones((H, W), bool)
    measured[60:90, 20:100] = False
    waver = ndimage.gaussian_filter(rng.normal(size=(H, W)), 6)
    waver *= 0.06 / waver.std()
    noise = np.where(measured, 0.01 * rng.normal(size=(H, W)), waver)
    return image, truth, (truth + noise).astype(np.float32), measured


@pytest.mark.parametrize("pan", [0, 1])
def test_flicker_falls_and_error_does_not_rise(pan: int) -> None:
    steady = Steady()
    errors: dict[str, list[float]] = {"made": [], "steadied": []}
    waver: dict[str, list[float]] = {"made": [], "steadied": []}
    before = None
    for n in range(FRAMES):
        image, truth, depth, measured = estimates(n, pan)
        result = steady(image, depth, np.ones_like(measured), measured)
        now = {"made": depth - truth, "steadied": result - truth}
        for key, error in now.items():
            errors[key].append(float(np.sqrt((error**2).mean())))
            if before is not None:  # of the error, so that motion itself does not count
                waver[key].append(float(np.abs(error - before[key])[~measured].mean()))
        before = now
    mean = {key: np.mean(values[2:]) for key, values in waver.items()}
    assert mean["steadied"] < 0.5 * mean["made"]
    assert np.mean(errors["steadied"][2:]) < np.mean(errors["made"][2:])


def test_moving_things_are_not_smeared() -> None:
    steady = Steady()
    for n in range(FRAMES):
        image, truth = scene(n, 0)
        result = steady(image, truth, np.ones((H, W), bool), np.ones((H, W), bool))
        assert np.abs(result - truth).mean() < 0.002
        box = np.s_[34:56, 14 + 8 * n : 31 + 8 * n]
        assert np.abs(result - truth)[box].max() < 0.02


def test_a_camera_that_comes_nearer_is_followed_at_once() -> None:
    steady = Steady()
    image, _ = scene(0, 0)
    whole = np.ones((H, W), bool)
    for n in range(5):
        depth = np.full((H, W), 2 - 0.04 * n, np.float32)
        result = steady(image, depth, whole, whole)
        assert np.abs(result - depth).max() < 0.002


def test_the_command_writes_maps_and_videos(tmp_path: Path) -> None:
    path = made.record3d(tmp_path)
    run = ducos("video", path, "-o", tmp_path / "out", "--model", "bicubic", "--shift", "off")
    assert run.returncode == 0, run.stderr
    assert "in holes" in run.stdout
    maps = sorted((tmp_path / "out").glob("*.png"))
    assert len(maps) == made.FRAMES
    with av.open(str(tmp_path / "out" / "depth.mkv")) as video:
        frames = [frame.to_ndarray(format="gray16le") for frame in video.decode(video=0)]
    assert len(frames) == made.FRAMES
    last = read_depth(maps[-1])
    assert np.abs(frames[-1] / 1000 - last.depth)[last.valid].max() <= 0.0011
    with av.open(str(tmp_path / "out" / "preview.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) == made.FRAMES


def test_nonsense_is_refused_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    made.named(tmp_path / "in")
    code, _, said = ducos_here(capsys, "video", tmp_path / "in", "-o", tmp_path / "o", "--fps", "0")
    assert code == 2
    assert "frames per second" in said
    assert not (tmp_path / "o").exists()
