"""What `upscale` and `batch` warn of before anybody asks the doctor."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ducos.batch import run_batch
from ducos.data.shapes import Shapes
from ducos.doctor import cheap_warnings
from ducos.doctor.colour import check_orientation, is_misaligned
from ducos.doctor.orientation import FLIPS
from ducos.doctor.refinement import View
from ducos.doctor.registration import common_misalignment
from ducos.files import DepthMap, as_depth, find_pairs
from ducos.upscaling import Options, super_resolve

SCENES = Shapes(4, 120, 160)


def stored(index: int, flipped: bool = False) -> np.ndarray:
    """Millimetres in 16 bits at a quarter of the size."""
    low = np.rint(1000 * SCENES[index].target[2::4, 2::4]).astype(np.uint16)
    return np.ascontiguousarray(low[:, ::-1]) if flipped else low


@pytest.mark.parametrize("flipped", [True, False])
def test_a_mirrored_map_is_warned_of(flipped: bool) -> None:
    result = super_resolve(SCENES[0].rgb, stored(0, flipped), model="bicubic")
    assert any("mirrored left to right" in each for each in result.warnings) == flipped
    unasked = super_resolve(SCENES[0].rgb, stored(0, flipped), model="bicubic", shift="off")
    assert unasked.warnings == ()


@pytest.mark.parametrize(
    ("change", "scale"),
    [
        (lambda z: (5 * z).astype(np.uint16), 1 / 5000),
        (lambda z: (z / 20).astype(np.float32), 0.01),
    ],
    ids=["TUM's 5000 per metre", "centimetres of a desk"],
)
def test_a_unit_that_is_hard_to_believe_is_warned_of(change, scale: float) -> None:
    millimetres = np.linspace(1200, 4200, 300).reshape(15, 20)
    found = cheap_warnings(as_depth(change(millimetres)))
    assert any(f"--scale {scale:g}" in each for each in found)
    assert cheap_warnings(as_depth(millimetres.astype(np.uint16))) == []


def test_inverse_depth_in_floats_is_warned_of() -> None:
    """As monocular networks give it: larger is nearer, and the farthest is 0."""
    inverse = np.linspace(0, 30, 300, dtype=np.float32).reshape(15, 20)
    assert any("unusual for a depth camera" in each for each in cheap_warnings(as_depth(inverse)))


@pytest.mark.parametrize("flipped", [True, False])
def test_a_mirrored_recording_is_warned_of(flipped: bool, tmp_path: Path) -> None:
    for kind in ("rgb", "depth"):
        (tmp_path / "in" / kind).mkdir(parents=True)
    for n in range(4):
        image = np.rint(255 * SCENES[n].rgb).astype(np.uint8)
        Image.fromarray(image).save(tmp_path / "in" / "rgb" / f"{n}.png")
        Image.fromarray(stored(n, flipped)).save(tmp_path / "in" / "depth" / f"{n}.png")
    pairs = find_pairs(tmp_path / "in").pairs
    summary = run_batch(pairs, tmp_path / "out", options=Options(model="bicubic"))
    assert any("mirrored left to right" in each for each in summary.warnings) == flipped
    assert summary.made == 4


@pytest.mark.parametrize("moved", [(0, 0), (0, 2), (3, 0), (-6, 5)])
@pytest.mark.parametrize("index", range(3))
def test_haste_does_not_change_what_is_done_about_a_shift(index: int, moved: tuple[int, int]):
    """`--shift check` measures no further than it must; its verdict is that of the whole way."""
    pair = SCENES[index]
    depth = np.roll(pair.target, moved, (0, 1))[1::4, 1::4].copy()
    view = View(pair.rgb, depth, depth > 0)
    full, hasty = common_misalignment([view]), common_misalignment([view], in_haste=True)
    assert is_misaligned(hasty, 4) == is_misaligned(full, 4)
    if is_misaligned(full, 4):
        assert hasty == full


@pytest.mark.parametrize("undo", FLIPS.values(), ids=FLIPS)
def test_haste_does_not_change_what_is_said_of_a_mirrored_map(undo):
    pair = SCENES[0]
    plane = undo(pair.target[1::4, 1::4]).copy()
    low = DepthMap(plane, plane > 0, "m", 1.0, "given")
    full = [*check_orientation(pair.rgb, low, {"noise": 0.0})]
    assert [*check_orientation(pair.rgb, low, {"noise": 0.0}, in_haste=True)] == full
