"""Confidence: how far a measurement is trusted, from its file to the result."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ducos import example, super_resolve
from ducos.errors import InputError
from ducos.files import read_low, write_depth
from ducos.files.images import as_confidence
from ducos.resize import fill_holes
from tests.commands import ducos_here


def pair() -> tuple[np.ndarray, np.ndarray]:
    """A wall at 2 m with one wild measurement."""
    depth = np.full((12, 16), 2.0, np.float32)
    depth[6, 8] = 3.0
    return np.full((48, 64, 3), 0.5, np.float32), depth


@pytest.mark.parametrize(
    ("stored", "meant"),
    [
        (np.array([[0, 128, 255]], np.uint8), [0, 128 / 255, 1]),
        (np.array([[0, 1, 2]], np.uint8), [0, 0.5, 1]),  # ARKit
        (np.array([[0, 1000, 65535]], np.uint16), [0, 1000 / 65535, 1]),
        (np.array([[0, 0.25, 1]], np.float32), [0, 0.25, 1]),
        (np.array([[False, True, True]]), [0, 1, 1]),
    ],
    ids=["8 bits", "ARKit", "16 bits", "floats", "mask"],
)
def test_every_way_to_store_it(stored: np.ndarray, meant: list[float]) -> None:
    assert as_confidence(stored)[0] == pytest.approx(meant)


@pytest.mark.parametrize("bad", [[[-1, 0]], [[0.5, 1.5]], [[np.nan, 0.5]]])
def test_what_is_no_confidence_is_refused(bad: list[list[float]]) -> None:
    with pytest.raises(InputError, match="confidence"):
        as_confidence(bad)


def test_full_confidence_changes_nothing_and_none_makes_a_hole() -> None:
    rgb, depth = pair()
    plain = super_resolve(rgb, depth, unit="m", shift="off")
    full = super_resolve(rgb, depth, unit="m", shift="off", confidence=np.ones_like(depth))
    assert np.array_equal(plain.depth, full.depth)
    nothing = np.ones_like(depth)
    nothing[6, 8] = 0
    without = super_resolve(rgb, depth, unit="m", shift="off", confidence=nothing)
    masked = super_resolve(rgb, depth, unit="m", shift="off", mask=nothing)
    assert np.array_equal(without.depth, masked.depth)
    assert not without.low.valid[6, 8]


def test_the_less_a_measurement_is_trusted_the_less_it_shows() -> None:
    """The mixing tail weighs it down, and below half it is drawn towards its surroundings: the bump
    that a wild value leaves shrinks steadily, to nothing."""
    rgb, depth = pair()
    bumps = []
    for trust in (1.0, 0.6, 0.3, 0.1, 0.01):
        confidence = np.ones_like(depth)
        confidence[6, 8] = trust
        result = super_resolve(rgb, depth, unit="m", shift="off", confidence=confidence)
        bumps.append(float(np.abs(result.depth - 2).mean()))
    assert all(less < more for more, less in pairwise(bumps))
    assert bumps[2] < 0.7 * bumps[0]
    assert bumps[4] < 0.05 * bumps[0]


def test_holes_are_filled_from_what_is_trusted() -> None:
    x = torch.zeros(1, 1, 2, 4)
    x[..., 0, :] = torch.tensor([1.0, 3.0, 0.0, 0.0])
    trust = torch.zeros_like(x)
    trust[..., 0, :2] = torch.tensor([1.0, 0.25])
    even, weighted = fill_holes(x, trust > 0), fill_holes(x, trust)
    assert torch.equal(even[trust > 0], x[trust > 0])
    assert torch.equal(weighted[trust > 0], x[trust > 0])
    assert even[..., 1, 0].item() == pytest.approx((1 + 3) / 2)
    assert weighted[..., 1, 0].item() == pytest.approx((1 + 0.25 * 3) / 1.25)


def test_other_models_take_it_as_a_mask() -> None:
    rgb, depth = pair()
    some = np.full_like(depth, 0.5)
    half = super_resolve(rgb, depth, unit="m", shift="off", model="bicubic", confidence=some)
    plain = super_resolve(rgb, depth, unit="m", shift="off", model="bicubic")
    assert np.array_equal(half.depth, plain.depth)


def test_it_must_fit_the_depth_and_leave_something() -> None:
    rgb, depth = pair()
    with pytest.raises(InputError, match="make them equal"):
        super_resolve(rgb, depth, unit="m", confidence=np.ones((3, 4)))
    with pytest.raises(InputError, match="nothing is left"):
        super_resolve(rgb, depth, unit="m", confidence=np.zeros_like(depth))


def test_command_and_batch_read_it(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    low = read_low(example.LOW, "mm", None, None)
    levels = np.full(low.depth.shape, 255, np.uint8)
    levels[:, :40] = 90
    folder = tmp_path / "in"
    folder.mkdir()
    Image.fromarray(levels).save(folder / "a_confidence.png")
    (folder / "a_rgb.png").write_bytes(example.RGB.read_bytes())
    write_depth(folder / "a_depth.png", low.depth, low.valid)
    given = [folder / "a_rgb.png", folder / "a_depth.png", "--shift", "off", "--threads", 1]
    one, plain = tmp_path / "one.npy", tmp_path / "plain.npy"
    confidence = ["--confidence", folder / "a_confidence.png"]
    assert ducos_here(capsys, "upscale", *given, "-o", one, *confidence)[0] == 0
    assert ducos_here(capsys, "upscale", *given, "-o", plain)[0] == 0
    out = tmp_path / "out"
    code, _, _ = ducos_here(
        capsys, "batch", folder, "-o", out, "--suffix", ".npy", "--shift", "off", "--workers", 1
    )
    assert code == 0
    assert (out / "a.npy").read_bytes() == one.read_bytes() != plain.read_bytes()
