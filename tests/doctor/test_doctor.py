"""The doctor: every fault injected at a known strength is named, sound pairs stay without alarm."""

import json
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from ducos import example, files
from ducos.cameras import foretold
from ducos.data.bench import Bench
from ducos.data.shapes import Shapes
from ducos.degrade.resampling import area, nearest
from ducos.doctor import examine, examine_recording
from ducos.doctor.correction import Correction, parse_shift, shift_to_undo
from ducos.doctor.levels import quantisation_step
from ducos.doctor.orientation import UPRIGHT, orientation_shares
from ducos.doctor.picture import report_picture
from ducos.doctor.pixels import noise_level
from ducos.doctor.refinement import View
from ducos.doctor.registration import common_misalignment, misalignment
from ducos.errors import InputError
from ducos.pictures.palette import write_image

SCENES = Shapes(6, 240, 320)


def sound_pair(index: int, scale: int = 4, how: Callable = nearest) -> tuple:
    """Colour (240, 320, 3) and metres without any fault."""
    pair = SCENES[index]
    target, valid = (torch.tensor(plane)[None, None] for plane in (pair.target, pair.valid))
    low, _ = how(target, valid, None, (240 // scale, 320 // scale))
    return pair.rgb, low[0, 0].numpy()


def alarms(report) -> list[str]:
    return [finding.code for finding in report.findings if finding.severity != "note"]


def in_metres(depth: np.ndarray, valid: np.ndarray | None = None) -> files.DepthMap:
    mask = np.ones(depth.shape, bool) if valid is None else valid
    plane = np.where(mask, depth, 0).astype(np.float32)
    return files.DepthMap(plane, np.ascontiguousarray(mask), "m", 1.0, "given")


@pytest.mark.parametrize("index", range(3))
def test_sound_pairs_cause_no_alarm(index):
    rgb, z = sound_pair(index)
    report = examine(rgb, z)
    assert alarms(report) == []
    assert report.sound
    assert report.shift.certain
    assert report.shift.length < 1
    millimetres = examine(rgb, np.rint(1000 * z).astype(np.uint16))
    assert alarms(millimetres) == []
    assert millimetres.facts["quantisation_step"] == pytest.approx(0.001)


def test_the_bundled_example_is_sound():
    report = examine(example.RGB, example.LOW)
    assert alarms(report) == []
    assert report.facts["unit"] == "mm"
    assert report.facts["noise"] == pytest.approx(0.002, abs=0.002)  # made with 0.2 %


RNG = np.random.default_rng(0)
FAULTS: dict[str, tuple[str, Callable[[np.ndarray], files.DepthMap]]] = {
    "noise": ("noise", lambda z: in_metres(z * (1 + 0.03 * RNG.normal(size=z.shape)))),
    "steps": ("coarse-steps", lambda z: in_metres(np.rint(z / 0.05) * 0.05)),
    "clipped far": ("saturated-far", lambda z: in_metres(np.minimum(z, np.percentile(z, 85)))),
    "clipped near": ("saturated-near", lambda z: in_metres(np.maximum(z, np.percentile(z, 85)))),
    "holes": ("holes", lambda z: in_metres(z, RNG.random(z.shape) > 0.6)),
    "constant": ("constant", lambda z: in_metres(np.full_like(z, 1.5))),
    "flat": ("flat", lambda z: in_metres(1.5 + 0.001 * z)),
    "far": ("range", lambda z: in_metres(100 * z)),
    "near": ("range", lambda z: in_metres(0.01 * z)),
    "transposed": ("turned", lambda z: in_metres(z.T)),
    "cropped": ("aspect", lambda z: in_metres(z[:40])),
    "slightly cropped": ("aspect", lambda z: in_metres(z[:55])),
}


FLIPS = {"mirrored": np.s_[:, ::-1], "upside down": np.s_[::-1]}


@pytest.mark.parametrize("flip", FLIPS)
def test_one_flipped_pair_is_noticed_without_a_claim(flip):
    """One pair cannot prove it: an error needs a margin that no upright pair reached."""
    rgb, z = sound_pair(0)
    report = examine(rgb, in_metres(z[FLIPS[flip]]))
    found = report.find("mirrored") or report.find("perhaps-mirrored")
    assert found is not None
    assert ("left to right" if flip == "mirrored" else "top to bottom") in found.sentence


@pytest.mark.parametrize("flip", [*FLIPS, None])
def test_flipped_recordings_are_named_and_upright_ones_are_not(flip, tmp_path):
    for kind in ("rgb", "depth"):
        (tmp_path / kind).mkdir()
    for n in range(4):
        rgb, z = sound_pair(n)
        low = np.rint(1000 * z).astype(np.uint16)
        low = low if flip is None else low[FLIPS[flip]]
        Image.fromarray(np.rint(255 * rgb).astype(np.uint8)).save(tmp_path / "rgb" / f"{n}.png")
        Image.fromarray(np.ascontiguousarray(low)).save(tmp_path / "depth" / f"{n}.png")
    found = examine_recording(files.find_pairs(tmp_path))
    errors = [finding.code for finding in found.findings if finding.severity == "error"]
    assert errors == ([] if flip is None else ["mirrored"])


@pytest.mark.parametrize("fault", FAULTS)
def test_an_injected_fault_is_named(fault):
    code, spoil = FAULTS[fault]
    rgb, z = sound_pair(0)
    report = examine(rgb, spoil(z))
    finding = report.find(code)
    assert finding is not None, [(f.code, f.sentence) for f in report.findings]
    assert finding.severity in ("warning", "error")
    assert finding.sentence
    assert finding.advice
    assert finding.numbers


def test_strengths_are_estimated():
    rgb, z = sound_pair(1)
    for sigma in (0.01, 0.03):
        noisy = z * (1 + sigma * np.random.default_rng(1).normal(size=z.shape))
        measured = noise_level(noisy.astype(np.float32), z > 0, relative=False)
        assert measured == pytest.approx(sigma, rel=0.3)
    assert noise_level(z, z > 0, relative=False) < 0.001
    for step in (0.002, 0.016, 0.25):
        stepped = (np.rint(z / step) * step).astype(np.float32)
        assert quantisation_step(stepped) == pytest.approx(step, rel=1e-3)
    assert quantisation_step(z) == 0
    holes = examine(rgb, in_metres(z, np.random.default_rng(2).random(z.shape) > 0.7))
    assert holes.find("holes").numbers["share"] == pytest.approx(0.7, abs=0.03)
    clipped = examine(rgb, in_metres(np.minimum(z, np.percentile(z, 90))))
    assert clipped.find("saturated-far").numbers["share"] == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize(
    ("holes", "words"),
    [
        (np.s_[:, :12], "margin"),
        (np.s_[20:45, 20:60], "one area"),
    ],
)
def test_the_shape_of_holes_is_told(holes, words):
    rgb, z = sound_pair(0)
    valid = np.ones(z.shape, bool)
    valid[holes] = False
    finding = examine(rgb, in_metres(z, valid)).find("holes")
    assert finding.severity == "note"
    assert words in finding.sentence


def test_scattered_holes():
    rgb, z = sound_pair(0)
    valid = np.random.default_rng(0).random(z.shape) > 0.1
    assert "scattered" in examine(rgb, in_metres(z, valid)).find("holes").sentence


def test_mixed_edges_are_told_from_sharp_ones():
    for index in range(3):
        sharp, blurred = (sound_pair(index, 4, how)[1] for how in (nearest, area))
        shares = []
        for z in (sharp, blurred):
            mixed, edges = foretold(z, z > 0)
            shares.append(mixed.sum() / edges.sum())
        assert shares[0] < 0.15
        assert shares[1] > 0.2
    blurred = files.read_depth(example.LOW, unit="mm")
    assert examine(example.RGB, blurred).find("flying-pixels") is not None


# ------------------------------------------------------------------------------------------- units

STORED = {
    "metres": (lambda z: z.astype(np.float32), 1.0),
    "float millimetres": (lambda z: (1000 * z).astype(np.float32), 0.001),
    "16-bit millimetres": (lambda z: np.rint(1000 * z).astype(np.uint16), 0.001),
}


@pytest.mark.parametrize("name", STORED)
def test_usual_units_are_guessed_without_alarm(name):
    store, scale = STORED[name]
    rgb, z = sound_pair(2)
    report = examine(rgb, store(z))
    assert report.low.scale == scale
    assert alarms(report) == []


@pytest.mark.parametrize("per_metre", [5000, 10000])
def test_unusual_units_are_asked_for_with_the_truth_among_the_candidates(per_metre):
    rgb, z = sound_pair(2)
    finding = examine(rgb, np.rint(per_metre * z).astype(np.uint16)).find("unit")
    assert finding.severity == "warning"
    assert any(scale == pytest.approx(1 / per_metre) for scale in finding.numbers["candidates"])
    told = examine(rgb, np.rint(per_metre * z).astype(np.uint16), scale=1 / per_metre)
    assert told.find("unit") is None
    assert told.sound


def test_levels_in_sixteen_bits_are_no_millimetres():
    rgb, z = sound_pair(2)
    levels = np.rint(250 * z.min() / z).astype(np.uint16)
    assert examine(rgb, levels).find("unit-levels") is not None
    told = examine(rgb, levels, unit="relative")
    assert told.find("unit-levels") is None


# ---------------------------------------------------------------------------------- misalignment


def moved_pair(index: int, shift: tuple[int, int], scale: int) -> tuple:
    """The depth moved to the right and down by `shift` pixels of the colour image."""
    pair = SCENES[index]
    (x, y), m = shift, 16
    window = np.s_[m - y : 240 - m - y, m - x : 320 - m - x]
    target = torch.tensor(pair.target[window])[None, None]
    low, valid = area(target, target > 0, None, (208 // scale, 288 // scale))
    return pair.rgb[m : 240 - m, m : 320 - m], low[0, 0].numpy(), valid[0, 0].numpy()


@pytest.mark.parametrize("scale", [1, 4])
@pytest.mark.parametrize("shift", [(5, -3), (-8, 2), (2, 2)])
def test_misalignment_is_measured_to_a_pixel(scale, shift):
    for index in range(2):
        rgb, low, valid = moved_pair(index, shift, scale)
        found = misalignment(np.ascontiguousarray(rgb), low, valid)
        assert found.certain
        assert np.hypot(found.x - shift[0], found.y - shift[1]) < 1
    report = examine(rgb, in_metres(low, valid))
    assert report.find("misaligned") is not None


def test_one_depth_pixel_of_a_coarse_map_is_seen():
    low = files.read_depth(example.LOW, unit="mm")
    moved = in_metres(np.roll(low.depth, 1, 1), np.roll(low.valid, 1, 1))
    report = examine(example.RGB, moved)
    assert report.find("misaligned") is not None
    assert report.shift.x == pytest.approx(8, abs=2)
    assert report.shift.y == pytest.approx(0, abs=2)


def test_without_common_edges_the_doctor_cannot_tell():
    rng = np.random.default_rng(0)
    _, z = sound_pair(0)
    unrelated = rng.random((240, 320, 3)).astype(np.float32)
    report = examine(unrelated, z)
    assert report.find("alignment-unknown") is not None
    assert report.find("misaligned") is None
    slope = np.broadcast_to(np.linspace(1, 2, 80, dtype=np.float32), (60, 80))
    assert examine(sound_pair(0)[0], slope).find("alignment-unknown") is not None


# ---------------------------------------------------------------------------------------- reports


def test_json_holds_everything():
    rgb, z = sound_pair(0)
    report = examine(rgb, in_metres(np.minimum(z, 2)))
    content = json.loads(report.to_json())
    assert content["sound"] is False
    assert content["worst"] == "warning"
    assert content["facts"]["ratio"] == [4, 4]
    assert {"code", "severity", "sentence", "advice", "numbers"} == set(content["findings"][0])
    assert report.lines()[-1].startswith("verdict: usable")


def test_picture_shows_holes_and_verdict(tmp_path):
    rgb, z = sound_pair(0)
    valid = np.ones(z.shape, bool)
    valid[10:30, 10:30] = False
    picture = report_picture(examine(rgb, in_metres(z, valid)))
    assert picture.shape[1] == 1200
    pink = (picture == (230, 60, 200)).all(-1)
    assert pink.sum() == pytest.approx(400 / 4800 * 400 * 300, rel=0.05)
    assert not (picture == (196, 43, 43)).all(-1).any()
    bad = report_picture(examine(rgb, in_metres(np.full_like(z, 2))))
    assert (bad == (196, 43, 43)).all(-1).any()  # the red of errors
    write_image(tmp_path / "a.png", bad)


def test_unreadable_depth_is_a_finding_and_a_missing_file_an_error(tmp_path):
    rgb, _ = sound_pair(0)
    report = examine(rgb, np.zeros((60, 80), np.uint16))
    assert alarms(report) == ["unreadable"]
    assert report_picture(report).shape[1] == 400
    with pytest.raises(InputError, match="no such depth file"):
        examine(rgb, tmp_path / "absent.png")


def test_a_range_of_neighbouring_numbers_is_drawn():
    """Fewer representable numbers than bars in the histogram."""
    values = np.nextafter(np.float32(2.5), np.float32(3)) * np.ones((9, 9), np.float32)
    values[0, 0] = 2.5
    assert report_picture(examine(sound_pair(0)[0], values)).dtype == np.uint8
    tiny = np.full((9, 9), 1e-45, np.float32)
    tiny[3] = 2e-45
    assert report_picture(examine(sound_pair(0)[0], tiny, unit="relative")).dtype == np.uint8


def test_blank_and_dark_pictures():
    _, z = sound_pair(0)
    blank = examine(np.full((240, 320, 3), 0.5, np.float32), z)
    assert blank.find("colour-blank") is not None
    assert blank.worst == "warning", "a map can be made sharper without a picture, too"
    assert examine(0.1 * sound_pair(0)[0], z).find("colour-dark") is not None


@settings(max_examples=12)
@given(
    arrays.arrays(
        st.sampled_from([np.uint8, np.uint16, np.float32]),
        st.tuples(st.integers(1, 9), st.integers(1, 9)),
    ),
    st.tuples(st.integers(1, 20), st.integers(1, 20)),
)
def test_any_pair_gets_a_report(depth, size):
    rgb = np.random.default_rng(0).random((*size, 3)).astype(np.float32)
    report = examine(rgb, depth)
    json.loads(report.to_json())
    assert report_picture(report).dtype == np.uint8


# --------------------------------------------------------------------------------- real pictures


@pytest.mark.slow
@pytest.mark.parametrize("name", ["icl_nuim_livingroom1", "icl_nuim_slambook2"])
def test_rates_on_noise_free_renderings(shared, name):
    """docs/doctor.md: no alarm on sound pairs, shifts of 5 and 3 pixels to a pixel."""
    dataset = Bench(shared / "bench" / name)
    for index in range(0, len(dataset), 2):
        pair = dataset[index]
        target, valid = (torch.tensor(plane)[None, None] for plane in (pair.target, pair.valid))
        low, low_valid = area(target, valid, None, (120, 160))
        assert (
            alarms(examine(pair.rgb, in_metres(low[0, 0].numpy(), low_valid[0, 0].numpy()))) == []
        )
        moved = np.roll(pair.target, (-3, 5), (0, 1))
        found = misalignment(pair.rgb, moved, np.roll(pair.valid, (-3, 5), (0, 1)))
        assert found.certain
        assert np.hypot(found.x - 5, found.y + 3) < 1


@pytest.mark.parametrize("size", [(240, 320), (320, 240)])
def test_a_square_map_under_an_oblong_picture_is_taken_as_upright(size: tuple[int, int]) -> None:
    rgb = np.random.default_rng(0).random((*size, 3), np.float32)
    depth = np.linspace(1, 3, 60 * 60, dtype=np.float32).reshape(60, 60)
    depth[20:40, 10:30] = 0.8
    assert UPRIGHT in orientation_shares(rgb, depth, depth > 0)


@pytest.mark.parametrize("value", [-3.0, 1e-30, 2.0, 9.007199e15, 1e30])
def test_a_constant_map_has_a_report(value):
    report = examine(
        np.full((8, 8, 3), 0.5, np.float32), np.full((2, 2), value, np.float32), unit="relative"
    )
    assert report_picture(report).ndim == 3


def test_things_apart_at_the_smallest_value_were_clipped_and_one_box_was_not():
    rgb, _ = sound_pair(0)
    wall = np.linspace(2, 3, 80, dtype=np.float32) * np.ones((60, 1), np.float32)
    box, two = wall.copy(), wall.copy()
    box[20:40, 20:40] = 0.8
    two[20:40, 10:25] = two[20:40, 50:65] = 0.8
    assert examine(rgb, in_metres(box)).find("saturated-near") is None
    assert examine(rgb, in_metres(two)).find("saturated-near") is not None


# --------------------------------------------------------------------------- undoing a shift


def test_the_shift_under_a_large_picture_is_in_its_own_pixels():
    """It is shrunk before it is looked at; across and down differ here."""
    rgb, low, valid = moved_pair(0, (5, -3), 4)
    large = rgb.repeat(12, 0).repeat(10, 1)
    found = misalignment(large, low, valid)
    small = misalignment(np.ascontiguousarray(rgb), low, valid)
    assert found.certain
    assert found.x == pytest.approx(10 * small.x, abs=2)
    assert found.y == pytest.approx(12 * small.y, abs=2)
    assert small.spread < found.spread < 1.3 * 12 * small.spread


def test_frames_of_a_rig_are_measured_together():
    """Frames that cannot tell by themselves can together; a still camera is one witness."""
    together = [View(*moved_pair(index, (5, -3), 8)) for index in range(6)]
    alone = [misalignment(*view) for view in together]
    assert not all(found.certain for found in alone)
    found = common_misalignment(together)
    assert found.certain
    assert np.hypot(found.x - 5, found.y + 3) < 1
    assert found.spread < min(each.spread for each in alone if each.certain)
    still = common_misalignment([together[0]] * 4)
    for name in ("x", "y", "spread", "doubt_of_zero", "strength"):
        assert getattr(still, name) == pytest.approx(getattr(alone[0], name), rel=1e-4)


def test_frames_of_different_rigs_have_no_common_shift():
    shifts = [(10, 0), (-10, 0), (0, 10), (0, -10)]
    views = [View(*moved_pair(index, shift, 4)) for index, shift in enumerate(shifts)]
    assert all(misalignment(*view).certain for view in views)
    assert not common_misalignment(views).certain


@pytest.mark.parametrize("index", range(3))
def test_auto_undoes_what_it_measures_and_leaves_sound_pairs_alone(index):
    rgb, z = sound_pair(index)
    assert shift_to_undo("auto", rgb, in_metres(z)).note.startswith("not moved: aligned")
    beside = np.roll(z, (-2, 3), (0, 1))
    found = shift_to_undo("auto", rgb, in_metres(beside))
    assert found.x == pytest.approx(12, abs=1)
    assert found.y == pytest.approx(-8, abs=1)
    assert "moved back by" in found.note
    warned = next(f for f in examine(rgb, beside).findings if f.code == "misaligned")
    assert f"--shift {found.x:.0f},{found.y:.0f}" in warned.advice
    assert shift_to_undo("off", rgb, in_metres(beside)) == Correction()
    checked = shift_to_undo("check", rgb, in_metres(beside))
    assert (checked.x, checked.y, checked.warns) == (0, 0, True)
    assert f"{found.x:.1f} px across and {found.y:.1f} px down" in checked.note
    assert shift_to_undo("check", rgb, in_metres(z)) == Correction()


def test_auto_leaves_alone_what_it_cannot_judge():
    rgb, z = sound_pair(0)
    flat = shift_to_undo("auto", rgb, in_metres(np.full_like(z, 2.0)))
    assert (flat.x, flat.y) == (0, 0)
    assert flat.note.startswith("not moved: cannot tell")


def test_a_shift_is_read_from_words():
    given = parse_shift("12,-3.5")
    assert (given.x, given.y) == (12, -3.5)
    assert parse_shift("auto") is None
    assert parse_shift("check") is None
    for words in ("", "3", "1,2,3", "left,right", "Auto"):
        with pytest.raises(InputError, match="such as 12,-3"):
            parse_shift(words)
