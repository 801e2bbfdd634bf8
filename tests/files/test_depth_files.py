"""Files, units, holes, colours: round trips, guesses, foreign files, bad input, atomic writes."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import cv2
import h5py
import numpy as np
import OpenEXR
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from ducos.errors import InputError
from ducos.files import as_depth, as_rgb, read_depth, read_mask, read_rgb, write_depth, writing
from ducos.files.formats import read_stored
from ducos.files.formats.pictures import open_picture, upright
from ducos.files.paths import atomic_write, check_output
from ducos.pictures.palette import PALETTES, colourise, write_image

STATES_UNIT = (".png", ".exr", ".npz", ".tif", ".h5")
SILENT = (".npy", ".pfm")
FLOAT = (".exr", ".npz", ".tif", ".h5", *SILENT)
IN_CHILD = (".exr", ".tif", ".h5")

quietly = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def scene(height: int = 13, width: int = 7, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Metres in [0.4, 6] and a mask with holes."""
    rng = np.random.default_rng(seed)
    depth = rng.uniform(0.4, 6, (height, width)).astype(np.float32)
    return depth, rng.random((height, width)) > 0.3


@st.composite
def maps(draw: st.DrawFn, lowest: float, highest: float) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(st.tuples(st.integers(1, 17), st.integers(1, 17)))
    values = st.floats(lowest, highest, width=32)
    depth = draw(hnp.arrays(np.float32, shape, elements=values))
    valid = draw(hnp.arrays(bool, shape))
    valid[draw(st.integers(0, shape[0] - 1)), draw(st.integers(0, shape[1] - 1))] = True
    return depth, valid


# Round trips


def check_float_round_trip(path: Path, depth: np.ndarray, valid: np.ndarray, unit: str) -> None:
    written = write_depth(path, depth, valid, unit="relative" if unit == "relative" else None)
    back = read_depth(path, "auto" if written.states_unit else unit)
    assert back.depth.dtype == np.float32
    assert back.unit == unit
    np.testing.assert_array_equal(back.valid, valid)
    np.testing.assert_array_equal(back.depth, np.where(valid, depth, 0))
    assert written.holes == (~valid).sum()


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pfm"])
@settings(quietly, max_examples=40)
@given(scene=maps(2.0**-10, 1000))
def test_metres_survive_exactly(tmp_path: Path, suffix: str, scene: tuple) -> None:
    check_float_round_trip(tmp_path / f"a{suffix}", *scene, "m")


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pfm"])
@settings(quietly, max_examples=40)
@given(scene=maps(-300, 300))
def test_levels_survive_exactly_with_zeros_and_signs(
    tmp_path: Path, suffix: str, scene: tuple
) -> None:
    check_float_round_trip(tmp_path / f"a{suffix}", *scene, "relative")


@pytest.mark.parametrize("suffix", IN_CHILD)
@pytest.mark.parametrize("unit", ["m", "relative"])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (31, 17)])
def test_formats_with_a_child_survive_exactly(
    tmp_path: Path, suffix: str, unit: str, height: int, width: int
) -> None:
    depth, valid = scene(height, width)
    valid[0, 0] = True
    depth = depth - 3 if unit == "relative" else depth
    check_float_round_trip(tmp_path / f"a{suffix}", depth, valid, unit)


@settings(quietly, max_examples=60)
@given(scene=maps(2.0**-14, 65.5), step=st.sampled_from([None, "finest"]))
def test_png_is_exact_to_half_a_step(tmp_path: Path, scene: tuple, step: str | None) -> None:
    depth, valid = scene
    written = write_depth(tmp_path / "a.png", depth, valid, scale=step)
    back = read_depth(tmp_path / "a.png")
    np.testing.assert_array_equal(back.valid, valid)
    assert back.scale == written.scale
    # What lies below half a step is kept as one step, so that it stays measured.
    expected = np.maximum(depth[valid], written.scale)
    assert np.abs(back.depth[valid] - expected).max() <= 0.5 * written.scale * (1 + 1e-3) + 4e-6
    again = write_depth(tmp_path / "b.png", back.depth, back.valid, scale=back.scale)
    assert again.scale == written.scale
    np.testing.assert_array_equal(read_depth(tmp_path / "b.png").depth, back.depth)


@settings(quietly, max_examples=40)
@given(scene=maps(0, 255))
def test_relative_png_keeps_zero_as_a_value(tmp_path: Path, scene: tuple) -> None:
    depth, valid = scene
    written = write_depth(tmp_path / "a.png", depth, valid, unit="relative")
    back = read_depth(tmp_path / "a.png")
    assert back.unit == "relative"
    np.testing.assert_array_equal(back.valid, valid)
    assert np.abs(back.depth - depth)[valid].max() <= 0.5 * written.scale * (1 + 1e-3) + 1e-5


def test_png_is_sixteen_bit_millimetres_for_everybody(tmp_path: Path) -> None:
    depth = np.array([[1.834, 0.5], [65.534, 9]], np.float32)
    write_depth(tmp_path / "a.png", depth, [[1, 1], [1, 0]])
    picture = Image.open(tmp_path / "a.png")
    np.testing.assert_array_equal(np.asarray(picture), [[1834, 500], [65534, 0]])
    assert np.asarray(picture).dtype == np.uint16
    assert picture.text == {"depth_unit": "mm", "depth_scale": "0.001", "depth_invalid": "0"}


@pytest.mark.parametrize("suffix", STATES_UNIT)
@pytest.mark.parametrize(
    ("choice", "unit", "scale"),
    [({"unit": "cm"}, "cm", 0.01), ({"scale": 0.00025}, "custom", 0.00025)],
)
def test_every_file_states_its_unit(
    tmp_path: Path, suffix: str, choice: dict, unit: str, scale: float
) -> None:
    depth, valid = scene()
    written = write_depth(tmp_path / f"a{suffix}", depth, valid, about={"method": "x4"}, **choice)
    back = read_depth(tmp_path / f"a{suffix}")
    assert (back.unit, back.scale) == (unit, scale) == (written.unit, written.scale)
    assert written.states_unit
    assert not back.guessed
    assert back.note.startswith("unit read from the file: ")
    assert back.about == {"method": "x4"}
    assert np.abs(back.depth - depth)[valid].max() <= (0.51 * scale if suffix == ".png" else 1e-6)


def test_the_caller_overrules_the_file(tmp_path: Path) -> None:
    write_depth(tmp_path / "a.png", np.full((2, 2), 1.5))
    back = read_depth(tmp_path / "a.png", unit="cm")
    assert back.depth[0, 0] == 15
    assert back.note == "unit given: centimetres (the file states millimetres)"


@pytest.mark.parametrize("suffix", [".npz", ".exr", ".h5"])
def test_layers_lie_beside_the_depth(tmp_path: Path, suffix: str) -> None:
    depth, valid = scene()
    sigma = (0.01 * depth).astype(np.float32)
    source = valid.astype(np.uint8) * 3
    path = tmp_path / f"a{suffix}"
    write_depth(path, depth, valid, layers={"sigma": sigma, "source": source})
    np.testing.assert_array_equal(read_depth(path).depth, np.where(valid, depth, 0))
    np.testing.assert_array_equal(read_stored(path, "sigma").array, sigma)
    np.testing.assert_array_equal(read_stored(path, "source").array, source)


def test_npz_can_be_used_without_us(tmp_path: Path) -> None:
    depth, valid = scene()
    write_depth(tmp_path / "a.npz", depth, valid)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        assert str(file["unit"]) == "m"
        assert float(file["scale"]) == 1
        np.testing.assert_array_equal(file["valid"], valid)
        np.testing.assert_array_equal(file["depth"], np.where(valid, depth, 0))


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    depth, valid = scene()
    for suffix in (*STATES_UNIT, *SILENT):
        write_depth(tmp_path / f"a{suffix}", depth, valid)
        write_depth(tmp_path / f"b{suffix}", depth, valid)
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


# Units


def millimetres(dtype: type, hole: float = 0) -> np.ndarray:
    depth, valid = scene(40, 30)
    return np.where(valid, np.rint(depth * 1000), hole).astype(dtype)


def metres(dtype: type, hole: float) -> np.ndarray:
    depth, valid = scene(40, 30)
    return np.where(valid, depth, hole).astype(dtype)


SENSORS = {
    # name: (array, arguments, unit, guessed)
    "RealSense z16": (millimetres(np.uint16), {}, "mm", True),
    "Kinect v2, 65535 codes": (millimetres(np.uint16, 65535), {}, "mm", True),
    "Orbbec in int32": (millimetres(np.int32), {}, "mm", True),
    "iPhone LiDAR": (metres(np.float32, 0), {}, "m", True),
    "Record3D float16": (metres(np.float16, np.nan), {}, "m", True),
    "ZED": (metres(np.float32, np.nan), {}, "m", True),
    "ZED too far": (metres(np.float32, np.inf), {}, "m", True),
    "ZED too near": (metres(np.float32, -np.inf), {}, "m", True),
    "renderer, sky at 1e10": (metres(np.float64, 1e10), {}, "m", True),
    "half EXR, sky at its largest number": (metres(np.float16, 65504), {}, "m", True),
    "float millimetres": (millimetres(np.float32, np.nan), {}, "mm", True),
    "float millimetres, code": (millimetres(np.float32, 65535), {}, "mm", True),
    "TUM": ((metres(np.float64, 0) * 5000).astype(np.uint16), {"scale": 1 / 5000}, "custom", False),
    "KITTI": ((metres(np.float64, 0) * 256).astype(np.uint16), {"scale": 1 / 256}, "custom", False),
    "cm": ((metres(np.float64, 0) * 100).astype(np.uint16), {"unit": "cm"}, "cm", False),
}


@pytest.mark.parametrize("sensor", SENSORS)
def test_typical_sensors(sensor: str) -> None:
    array, arguments, unit, guessed = SENSORS[sensor]
    depth, valid = scene(40, 30)
    back = as_depth(array, **arguments)
    assert back.unit == unit
    assert back.guessed == guessed
    assert back.note.startswith("unit guessed: " if guessed else "unit given: ")
    assert "unusual" not in back.note
    np.testing.assert_array_equal(back.valid, valid)
    step = {np.float16: 0.004}.get(array.dtype.type, 1e-6) if unit == "m" else back.scale
    assert np.abs(back.depth - depth)[valid].max() <= step
    assert (back.depth[~valid] == 0).all()


@pytest.mark.parametrize("sensor", ["RealSense z16", "Kinect v2, 65535 codes", "TUM", "cm"])
@pytest.mark.parametrize("suffix", [".png", ".npy"])
def test_a_file_and_its_array_follow_one_rule(tmp_path: Path, sensor: str, suffix: str) -> None:
    array, arguments, *_ = SENSORS[sensor]
    path = tmp_path / f"a{suffix}"
    Image.fromarray(array).save(path) if suffix == ".png" else np.save(path, array)
    ours, theirs = as_depth(array, **arguments), read_depth(path, **arguments)
    np.testing.assert_array_equal(ours.depth, theirs.depth)
    np.testing.assert_array_equal(ours.valid, theirs.valid)
    assert (ours.unit, ours.note) == (theirs.unit, theirs.note)


def test_the_guess_is_a_sentence_to_print() -> None:
    array = np.full((3, 3), 1834, np.uint16)
    assert as_depth(array).note == "unit guessed: millimetres (16-bit integers, median 1834)"
    assert as_depth(array).depth[0, 0] == np.float32(1.834)


def test_an_unlikely_guess_says_so() -> None:
    tum_like = np.full((3, 3), 14_700, np.uint16)  # 2.94 m in steps of 1/5000 m
    for array in (tum_like, np.full((3, 3), 20, np.uint16)):
        assert "unusual, so pass unit or scale" in as_depth(array).note
    assert "unusual" in as_depth(np.full((3, 3), 0.01)).note


def test_eight_bits_are_levels_and_zero_is_one_of_them() -> None:
    array = np.array([[0, 128, 255]], np.uint8)
    back = as_depth(array)
    assert back.unit == "relative"
    assert back.note == "unit guessed: relative levels (8-bit integers)"
    assert back.valid.all()
    np.testing.assert_array_equal(back.depth, array)
    assert as_depth(array, invalid_zero=True).valid.tolist() == [[False, True, True]]


def test_a_normalised_map_is_relative() -> None:
    back = as_depth(np.array([[0, 0.25, 1]], np.float32))
    assert back.unit == "relative"
    assert back.valid.all()
    assert as_depth(np.array([[0, 0.25, 0.9]], np.float32)).unit == "m"


def test_relative_keeps_negative_values_when_asked() -> None:
    array = np.array([[-2.0, 0, 3, np.nan]])
    back = as_depth(array, unit="relative")
    np.testing.assert_array_equal(back.depth, [[-2, 0, 3, 0]])
    assert back.valid.tolist() == [[True, True, True, False]]


def test_the_sky_has_no_say_even_when_it_fills_the_picture() -> None:
    array = np.full((10, 10), 1e10, np.float32)
    array[9] = 12.5
    back = as_depth(array)
    assert (back.unit, back.valid.sum(), back.depth.max()) == ("m", 10, 12.5)


# Invalid pixels never count


@settings(quietly, max_examples=60)
@given(
    code=st.sampled_from([0, 65535, np.nan, np.inf, -np.inf, -1, 2**31 - 1]),
    share=st.floats(0, 0.95),
    dtype=st.sampled_from([np.uint16, np.int32, np.float32]),
)
def test_codes_do_not_move_the_guess(code: float, share: float, dtype: type) -> None:
    if not np.isfinite(code) and dtype is not np.float32:
        code = 65535
    if code in (-1, 2**31 - 1) and dtype is not np.int32:
        code = 0
    if code == -1:
        share *= 0.1  # more of them are an error
    array = np.full((20, 20), 2000, dtype)
    array.flat[: int(share * 400)] = dtype(code)
    back = as_depth(array)
    assert back.unit == "mm"
    assert "median 2000" in back.note
    assert back.valid.sum() == 400 - int(share * 400)
    assert set(np.unique(back.depth)) <= {np.float32(0), np.float32(2)}
    assert (back.depth[back.valid] == 2).all()


def test_range_and_masks_only_take_away(tmp_path: Path) -> None:
    array = np.array([[0.5, 1, 2], [0, 4, 5]], np.float32)
    keep = np.array([[1, 1, 0], [1, 1, 1]], np.uint8) * 255
    expected = [[False, True, False], [False, True, False]]
    Image.fromarray(keep).save(tmp_path / "mask.png")
    np.save(tmp_path / "depth.npy", array)
    limits = {"min_depth": 0.75, "max_depth": 4}
    assert as_depth(array, mask=keep, **limits).valid.tolist() == expected
    for mask in (keep, tmp_path / "mask.png", str(tmp_path / "mask.png"), keep[None] > 0):
        back = read_depth(tmp_path / "depth.npy", mask=mask, **limits)
        assert back.valid.tolist() == expected
    masked = np.ma.masked_array(array, keep == 0)
    assert as_depth(masked, **limits).valid.tolist() == expected


def test_limits_are_metres_whatever_is_stored() -> None:
    array = np.array([[400, 900, 5000]], np.uint16)
    assert as_depth(array, min_depth=0.5, max_depth=3).valid.tolist() == [[False, True, False]]


def test_a_few_negative_pixels_are_holes() -> None:
    array = np.full((10, 10), 1.5, np.float32)
    array[0, :10] = -0.2
    back = as_depth(array)
    assert back.valid.sum() == 90
    assert back.depth.min() == 0


@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 1), (1, 5, 4)])
def test_one_plane_in_any_of_the_usual_shapes(shape: tuple) -> None:
    assert as_depth(np.full(shape, 1.5)).depth.shape == (5, 4)


# Foreign files


def test_other_peoples_tiffs(tmp_path: Path) -> None:
    depth, _ = scene(33, 20)
    whole = (depth * 1000).astype(np.uint16)
    path = tmp_path / "a.tif"
    kinds = {
        "float64": lambda: tifffile.imwrite(path, depth.astype(np.float64)),
        "float16": lambda: tifffile.imwrite(path, depth.astype(np.float16)),
        "BigTIFF": lambda: tifffile.imwrite(path, depth, bigtiff=True),
        "big-endian": lambda: tifffile.imwrite(path, depth, byteorder=">"),
        "tiles": lambda: tifffile.imwrite(path, depth, tile=(16, 16), compression="zlib"),
        "LZW": lambda: Image.fromarray(depth).save(path, compression="tiff_lzw"),
        "float predictor": lambda: cv2.imwrite(str(path), depth),
        "16-bit LZW": lambda: Image.fromarray(whole).save(path, compression="tiff_lzw"),
        "16-bit predictor": lambda: tifffile.imwrite(path, whole, compression="zlib", predictor=2),
        "first of five pages": lambda: tifffile.imwrite(path, np.stack([depth] * 5)),
    }
    for name, write in kinds.items():
        write()
        back = read_depth(path)
        tolerance = 0.003 if name == "float16" else 0.0011 if "16" in name else 0
        assert np.abs(back.depth - depth).max() <= tolerance, name
        assert back.guessed, name


def test_other_peoples_exrs(tmp_path: Path) -> None:
    depth, _ = scene()
    path = tmp_path / "a.exr"
    zero = np.zeros_like(depth)

    def write(channels: dict, **header: object) -> None:
        with OpenEXR.File({"type": OpenEXR.scanlineimage, **header}, channels) as file:
            file.write(str(path))

    def normals(prefix: str) -> dict:
        return {f"{prefix}.{axis}": zero for axis in "XYZ"}

    for channels in (
        {"Y": depth},
        {"Z": depth, "R": zero, "G": zero, "B": zero},
        {"ViewLayer.Depth.Z": depth, **normals("ViewLayer.Normal")},
        {"R": depth, "G": depth, "B": depth},
        {"anything": depth},
    ):
        write(channels, compression=OpenEXR.PIZ_COMPRESSION)
        np.testing.assert_array_equal(read_depth(path).depth, depth)
    write({"Z": depth.astype(np.float16)})
    np.testing.assert_array_equal(read_depth(path).depth, depth.astype(np.float16))
    write({"R": depth, "G": zero, "B": zero})
    with pytest.raises(InputError, match=r"no channel Z but 'B', 'G', 'R'; say which"):
        read_depth(path)
    np.testing.assert_array_equal(read_depth(path, key="R").depth, depth)
    with pytest.raises(InputError, match="no channel 'Q'"):
        read_depth(path, key="Q")


def test_a_cropped_exr_is_refused(tmp_path: Path) -> None:
    window = (np.array([2, 2], np.int32), np.array([8, 14], np.int32))
    header = {"type": OpenEXR.scanlineimage, "dataWindow": window}
    with OpenEXR.File(header, {"Z": scene()[0]}) as file:
        file.write(str(tmp_path / "a.exr"))
    with pytest.raises(InputError, match="stores only a crop"):
        read_depth(tmp_path / "a.exr")


def test_other_peoples_hdf5(tmp_path: Path) -> None:
    depth, _ = scene()
    path = tmp_path / "matlab.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["group/depths"] = depth
        file["name"] = "a string"
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file")
    np.testing.assert_array_equal(read_depth(path).depth, depth)
    with h5py.File(path, "a") as file:
        file["other"] = depth + 1
    with pytest.raises(InputError, match=r"say which with key="):
        read_depth(path)
    np.testing.assert_array_equal(read_depth(path, key="other").depth, depth + 1)
    with pytest.raises(InputError, match="no array 'absent'"):
        read_depth(path, key="absent")


def test_hdf5_may_not_point_to_other_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(range(1, 65)))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("depth", (8, 8), np.uint8, external=[(str(tmp_path / "secret"), 0, 64)])
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["inner"] = np.ones((4, 4))
        file["depth"] = h5py.ExternalLink(str(tmp_path / "c.h5"), "depth")
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["depth"] = np.ones((4, 4))
    with pytest.raises(InputError, match="in another file"):
        read_depth(tmp_path / "a.h5")
    with pytest.raises(InputError, match=r"no array 'depth'; it has 'inner'"):
        read_depth(tmp_path / "b.h5", key="depth")


def test_other_peoples_numpy_files(tmp_path: Path) -> None:
    depth, _ = scene()
    np.save(tmp_path / "fortran.npy", np.asfortranarray(depth))
    np.save(tmp_path / "big.npy", depth.astype(">f8"))
    np.savez(tmp_path / "one.npz", K=np.eye(3)[0], d=depth, name="scene")
    np.savez(tmp_path / "two.npz", a=depth, b=depth + 1)
    for name in ("fortran.npy", "big.npy", "one.npz"):
        np.testing.assert_array_equal(read_depth(tmp_path / name).depth, depth)
    np.testing.assert_array_equal(read_depth(tmp_path / "two.npz", key="b").depth, depth + 1)
    with pytest.raises(InputError, match=r"no array 'depth' but 'a', 'b'; say which with key="):
        read_depth(tmp_path / "two.npz")


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple:
            return os.mkdir, (str(tmp_path / "exploded"),)

    array = np.array([Bomb()], object)
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    np.savez(tmp_path / "a.npz", depth=array)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(InputError, match="pickled Python objects, which are never loaded"):
            read_depth(tmp_path / name)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("order", ["<", ">"])
def test_pfm_of_both_byte_orders(tmp_path: Path, order: str) -> None:
    depth = np.array([[1, 2], [3, np.inf]], np.float32)
    sign = "-" if order == "<" else ""
    head = f"Pf\n2 2\n{sign}0.0039\n".encode()
    (tmp_path / "a.pfm").write_bytes(head + depth[::-1].astype(f"{order}f4").tobytes())
    back = read_depth(tmp_path / "a.pfm")
    np.testing.assert_array_equal(back.depth, [[1, 2], [3, 0]])
    assert back.valid.tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize("largest", [5000, 65535])
def test_pgm_is_not_stretched(tmp_path: Path, largest: int) -> None:
    """Millimetres stay millimetres, whatever the header states as the largest value."""
    steps = np.array([[1000, 2000, 0], [3000, 4000, 5000]], ">u2")
    head = f"P5 # by hand\n3\n2 {largest}\n".encode()
    (tmp_path / "a.pgm").write_bytes(head + steps.tobytes())
    back = read_depth(tmp_path / "a.pgm", unit="mm")
    np.testing.assert_allclose(back.depth, steps / 1000)
    assert back.valid.sum() == 5


def test_the_content_decides_not_the_suffix(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", scene()[0])
    (tmp_path / "a.npy").rename(tmp_path / "a.png")
    np.testing.assert_array_equal(read_depth(tmp_path / "a.png").depth, scene()[0])


def test_masks_of_all_kinds(tmp_path: Path) -> None:
    mask = scene()[1]
    grey = mask.astype(np.uint8) * 255
    coloured = np.zeros((*mask.shape, 4), np.uint8)
    coloured[..., 1], coloured[..., 3] = grey, 255
    Image.fromarray(grey).save(tmp_path / "grey.png")
    Image.fromarray(grey).convert("1").save(tmp_path / "bits.png")
    Image.fromarray(grey).convert("1").save(tmp_path / "bits.tif", compression="group4")
    Image.fromarray(coloured).save(tmp_path / "rgba.png")
    Image.fromarray(coloured[..., :3]).quantize(2).save(tmp_path / "palette.png")
    np.save(tmp_path / "bool.npy", mask)
    for path in sorted(tmp_path.iterdir()):
        np.testing.assert_array_equal(read_mask(path), mask, err_msg=path.name)
    np.savez(tmp_path / "keyed.npz", depth=scene()[0], keep=mask)
    np.testing.assert_array_equal(read_mask(tmp_path / "keyed.npz", key="keep"), mask)
    np.save(tmp_path / "stack.npy", np.ones((2, 3, 4, 5)))
    with pytest.raises(InputError, match="shape"):
        read_mask(tmp_path / "stack.npy")


# Bad input: one sentence, nothing written


def bad_files(folder: Path) -> dict[str, tuple[Path, str]]:
    """Name -> (file, what its sentence must say)."""
    depth, _ = scene(50, 40)
    whole = (depth * 1000).astype(np.uint16)

    def save(name: str, array: np.ndarray) -> Path:
        path = folder / name
        np.save(path, array) if path.suffix == ".npy" else Image.fromarray(array).save(path)
        return path

    def cut(name: str) -> Path:
        path = folder / name
        write_depth(path, depth)
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * 0.7)])
        return path

    def raw(name: str, content: bytes) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    broken = bytearray(save("flipped.png", whole).read_bytes())
    broken[len(broken) // 2] ^= 1
    os.mkfifo(folder / "pipe.png")
    two = [("depth", depth), ("valid", np.ones((3, 3), bool))]
    with h5py.File(folder / "mismatch.h5", "w") as file:
        file.update(dict(two))
    with h5py.File(folder / "text.h5", "w") as file:
        file["depth"] = [b"a", b"b"]
    return {
        "missing": (folder / "absent.png", "does not exist"),
        "missing folder": (folder / "absent/a.png", "does not exist"),
        "below a file": (folder / "flipped.png/a.png", "does not exist"),
        "folder": (folder, "is a folder"),
        "pipe": (folder / "pipe.png", "pipe or device"),
        "nul": (Path("a\0b.png"), "no readable file"),
        "long name": (folder / ("a" * 300), "no readable file"),
        "empty": (raw("empty.png", b""), "is empty"),
        "text": (raw("text.png", b"not a picture at all"), "not a format that holds depth"),
        "JPEG": (save("a.jpg", np.ones((9, 9), np.uint8)), "not a format that holds depth"),
        "flipped bit": (raw("flipped2.png", bytes(broken)), "damaged"),
        "3 channels": (save("c.png", np.ones((9, 9, 3), np.uint8)), "has 3 channels"),
        "alpha": (save("c4.png", np.ones((9, 9, 4), np.uint8)), "has 4 channels"),
        "all zero": (save("zero.png", np.zeros((9, 9), np.uint16)), "no valid pixel"),
        "all 65535": (save("code.png", np.full((9, 9), 65535, np.uint16)), "no valid pixel"),
        "all NaN": (save("nan.npy", np.full((9, 9), np.nan)), "no valid pixel"),
        "all inf": (save("inf.npy", np.full((9, 9), np.inf)), "no valid pixel"),
        "negative": (save("negative.npy", np.full((9, 9), -1.0)), "negative depth in 100 %"),
        "no pixel": (save("none.npy", np.ones((0, 9))), "zero size"),
        "scalar": (save("scalar.npy", np.float64(3)), "one map at a time"),
        "stack": (save("stack.npy", np.ones((5, 9, 9))), "one map at a time"),
        "bool": (save("bool.npy", np.ones((9, 9), bool)), "a mask (bool)"),
        "complex": (save("complex.npy", np.ones((9, 9), complex)), "of type complex128"),
        "strings": (save("strings.npy", np.array([["a"]])), "of type <U1"),
        "mask of another size": (folder / "mismatch.h5", "mask of shape (3, 3)"),
        "strings in HDF5": (folder / "text.h5", "text.h5"),
        "cut EXR": (cut("cut.exr"), "its pixels are incomplete"),
        "cut TIFF": (cut("cut.tif"), "ends before its last row"),
        "cut HDF5": (cut("cut.h5"), "truncated file"),
    }


def test_bad_files_give_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    for name, (path, expected) in bad_files(tmp_path).items():
        with pytest.raises(InputError) as caught:
            read_depth(path)
        sentence = str(caught.value)
        assert expected in sentence, (name, sentence)
        assert "\n" not in sentence, name
        assert len(sentence) < 400 + len(str(path)), name
        assert name == "nul" or path.name in sentence, (name, sentence)
    assert capfd.readouterr() == ("", ""), "libraries must not print on their own"


@pytest.mark.parametrize("suffix", [".png", ".npz", ".npy", ".pfm"])
def test_truncated_files_are_refused_at_any_length(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    write_depth(path, *scene())
    content = path.read_bytes()
    spare = 4 if suffix == ".png" else 0  # the checksum of the empty last chunk
    for length in range(0, len(content) - spare, 3 if suffix == ".npz" else 1):
        path.write_bytes(content[:length])
        with pytest.raises(InputError):
            read_depth(path)


@pytest.mark.parametrize("suffix", IN_CHILD)
def test_truncated_files_of_a_child_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    write_depth(path, *scene(40, 30))
    content = path.read_bytes()
    for length in (len(content) - 1, len(content) - 40, len(content) // 3, 20):
        path.write_bytes(content[:length])
        with pytest.raises(InputError):
            read_depth(path)


@pytest.mark.parametrize("suffix", [".png", ".npz"])
def test_checksums_are_checked(tmp_path: Path, suffix: str) -> None:
    """Bytes damaged in turn: the file is refused, or the damage changed nothing we read."""
    path = tmp_path / f"a{suffix}"
    write_depth(path, *scene())
    sound = read_depth(path)
    content = path.read_bytes()
    places = range(0, len(content), 3 if suffix == ".npz" else 1)
    refused = 0
    for at in places:
        damaged = bytearray(content)
        damaged[at] ^= 1 << (at % 8)
        path.write_bytes(damaged)
        try:
            back = read_depth(path)
        except InputError:
            refused += 1
            continue
        np.testing.assert_array_equal(back.depth, sound.depth, err_msg=f"byte {at}")
        np.testing.assert_array_equal(back.valid, sound.valid, err_msg=f"byte {at}")
        # A damaged name of a chunk or member hides it; what is left is then guessed, and says so.
        assert back.unit == sound.unit or back.guessed
    assert refused > 0.5 * len(places)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_permissions_give_one_sentence(tmp_path: Path) -> None:
    write_depth(tmp_path / "a.png", np.ones((2, 2)))
    (tmp_path / "a.png").chmod(0)
    with pytest.raises(InputError, match="may not be read"):
        read_depth(tmp_path / "a.png")
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="no permission"):
        write_depth(tmp_path / "b.png", np.ones((2, 2)))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"unit": "inch"}, "unit 'inch' is unknown; use auto, relative, m, cm, mm"),
        ({"scale": 0}, "positive number"),
        ({"scale": -1}, "positive number"),
        ({"scale": np.nan}, "positive number"),
        ({"scale": "5000"}, "positive number"),
        ({"scale": 5000}, "for 5000 steps per metre pass 0.0002"),
        ({"unit": "mm", "scale": 0.001}, "give one of the two"),
        ({"mask": np.ones((3, 2))}, "make them equal"),
        ({"mask": np.zeros((2, 3))}, "no valid pixel"),
        ({"mask": np.full((2, 3), "x")}, "of type"),
        ({"min_depth": 3, "max_depth": 2}, "must not be above"),
        ({"min_depth": np.nan}, "must not be above"),
        ({"min_depth": 100}, "no valid pixel"),
    ],
)
def test_bad_arguments_give_one_sentence(arguments: dict, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        as_depth(np.full((2, 3), 1.5), **arguments)


def test_bad_arrays_give_one_sentence() -> None:
    for array in (
        [[1, 2], [3]],
        "depth.png",
        None,
        np.ones((2, 3, 3)),
        np.ones(4),
        np.ones((0, 3)),
    ):
        with pytest.raises(InputError):
            as_depth(array)


def test_a_file_that_lies_about_its_unit_is_refused(tmp_path: Path) -> None:
    for unit, scale in (("m", "nan"), ("m", "-1"), ("m", "abc"), ("parsec", "1"), ("mm", "0")):
        np.savez(tmp_path / "a.npz", depth=np.ones((3, 3)), unit=unit, scale=scale)
        with pytest.raises(InputError, match="makes no sense"):
            read_depth(tmp_path / "a.npz")


# Writing what cannot be written


def test_saturation_is_an_error_that_says_what_would_fit(tmp_path: Path) -> None:
    depth = np.array([[1, 80.2]], np.float32)
    with pytest.raises(InputError, match=r"16 bits end at 65.534; .*\(0.002 would fit\)"):
        write_depth(tmp_path / "a.png", depth)
    assert not list(tmp_path.iterdir())
    written = write_depth(tmp_path / "a.png", depth, saturate=True)
    assert written.saturated == 1
    np.testing.assert_allclose(read_depth(tmp_path / "a.png").depth, [[1, 65.534]], rtol=1e-6)
    written = write_depth(tmp_path / "a.png", depth, scale="finest")
    assert (written.saturated, written.scale) == (0, 0.002)
    np.testing.assert_allclose(read_depth(tmp_path / "a.png").depth, depth, atol=0.001)


@given(largest=st.floats(1e-6, 1e6))
def test_the_finest_step_fits_and_a_finer_one_would_not(largest: float) -> None:
    step = writing._finest_step(largest)
    assert largest / step <= 65534
    assert largest / step > 65534 / 2.6
    assert f"{step:e}"[0] in "125"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("a.jpg", {}, "no depth format has this suffix; use .png"),
        ("a", {}, "no depth format has this suffix"),
        ("absent/a.png", {}, "does not exist"),
        ("a.png", {"valid": np.zeros((2, 2))}, "no valid pixel"),
        ("a.png", {"valid": np.ones((3, 2))}, "make them equal"),
        ("a.png", {"unit": "auto"}, "is for reading"),
        ("a.png", {"unit": "relative", "depth": [[-1, 1]]}, "negative levels"),
        ("a.png", {"depth": np.ones((2, 2, 3))}, "has 3 channels"),
        ("a.png", {"depth": [["x"]]}, "of type"),
        ("a.png", {"layers": {"sigma": np.ones((2, 2))}}, "write .npz, .exr or .h5"),
        ("a.npz", {"layers": {"sigma": np.ones((3, 2))}}, "must be numbers"),
        ("a.npz", {"layers": {"valid": np.ones((2, 2))}}, "needs another name"),
        ("a.npy", {"unit": "mm"}, "so holds metres"),
        ("a.pfm", {"scale": 0.5}, "so holds metres"),
    ],
)
def test_bad_writes_write_nothing(
    tmp_path: Path, name: str, arguments: dict, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        write_depth(tmp_path / name, **{"depth": np.ones((2, 2)), **arguments})
    assert not list(tmp_path.iterdir())


# Atomic writes


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt, OSError])
def test_a_failing_write_leaves_what_was_there(tmp_path: Path, problem: type) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def fail() -> None:
        with atomic_write(path) as temporary:
            temporary.write_bytes(b"half of the new")
            raise problem("on purpose")

    with pytest.raises(InputError if problem is OSError else problem):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    write_depth(path, np.ones((4, 4)))
    before = path.read_bytes()
    program = f"""
        import time
        from ducos.files.paths import atomic_write
        with atomic_write({str(path)!r}) as temporary:
            temporary.write_bytes(b"half")
            print("writing", flush=True)
            time.sleep(60)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        process.send_signal(signal.SIGKILL)
    assert path.read_bytes() == before


def test_a_full_disk_gives_one_sentence_and_no_file(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk; it needs a process of its own."""
    program = f"""
        import json, resource
        import numpy as np
        from ducos.errors import InputError
        from ducos.pictures.palette import write_image
        from ducos.files import write_depth
        depth = np.random.default_rng(0).uniform(1, 5, (200, 200))
        image = np.random.default_rng(0).integers(0, 255, (200, 200, 3)).astype(np.uint8)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        said = {{}}
        for write, written, suffixes in (
            (write_depth, depth, {(*STATES_UNIT, *SILENT)!r}),
            (write_image, image, (".jpg", ".webp", ".bmp", ".png")),
        ):
            for suffix in suffixes:
                name = write.__name__ + suffix
                try:
                    write({str(tmp_path)!r} + "/" + name, written)
                    said[name] = "written"
                except InputError as problem:
                    said[name] = str(problem)
        print(json.dumps(said))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=True
    )
    said = json.loads(done.stdout)
    assert all("cannot be written" in sentence for sentence in said.values()), said
    assert len(said) == 11
    assert not list(tmp_path.iterdir())


def test_output_is_checked_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, expected in (
        (tmp_path / "absent" / "a.png", "does not exist"),
        (tmp_path / "file" / "a.png", "does not exist"),
        (tmp_path, "folder or a device"),
        ("/dev/null", "folder or a device"),
        ("a\0.png", "cannot be written"),
    ):
        with pytest.raises(InputError, match=expected):
            check_output(path)


def test_links_are_followed_and_modes_are_the_users(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.npy"
    link.symlink_to(tmp_path / "real" / "a.npy")
    before = os.umask(0o027)
    try:
        write_depth(link, np.ones((2, 2)))
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert (tmp_path / "real" / "a.npy").stat().st_mode & 0o777 == 0o640


# Colour


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".webp", ".tif", ".ppm", ".jpg"])
def test_eight_bit_colour(tmp_path: Path, suffix: str) -> None:
    ramp = np.linspace(0, 255, 24).astype(np.uint8)
    image = np.stack(np.broadcast_arrays(ramp[None], ramp[:16, None], np.uint8(90)), axis=2)
    options = {"lossless": True} if suffix == ".webp" else {}
    Image.fromarray(image).save(tmp_path / f"a{suffix}", **options)
    rgb = read_rgb(tmp_path / f"a{suffix}")
    assert rgb.shape == (16, 24, 3)
    assert rgb.dtype == np.float32
    assert np.abs(rgb - image / 255).max() <= (0.1 if suffix == ".jpg" else 1e-6)


def test_modes_of_colour(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (9, 7, 3)).astype(np.uint8)
    path = tmp_path / "a.png"
    modes = {
        "L": image[..., 0],
        "RGBA": np.dstack([image, image[..., :1] // 2]),
        "LA": image[..., :2],
    }
    for mode, array in modes.items():
        Image.fromarray(array, mode=None).save(path)
        expected = array[..., :3] if mode == "RGBA" else array.reshape(9, 7, -1)[..., :1]
        np.testing.assert_allclose(
            read_rgb(path), np.broadcast_to(expected / 255, (9, 7, 3)), atol=1e-6, err_msg=mode
        )
    palette = Image.fromarray(image).quantize(16)
    palette.save(path)
    np.testing.assert_allclose(read_rgb(path), np.asarray(palette.convert("RGB")) / 255, atol=1e-6)
    palette.save(tmp_path / "a.tif")
    np.testing.assert_array_equal(read_rgb(tmp_path / "a.tif"), read_rgb(path))
    Image.fromarray(image).convert("CMYK").save(tmp_path / "a.tif")
    assert np.abs(read_rgb(tmp_path / "a.tif") - image / 255).max() < 0.01


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_sixteen_bit_colour_keeps_its_precision(tmp_path: Path, suffix: str, channels: int) -> None:
    image = np.random.default_rng(0).integers(0, 65536, (9, 7, channels)).astype(np.uint16)
    path = tmp_path / f"a{suffix}"
    if suffix == ".tif":
        tifffile.imwrite(path, image.squeeze(), photometric="rgb" if channels > 1 else None)
    elif channels == 1:
        Image.fromarray(image[..., 0]).save(path)
    else:
        cv2.imwrite(str(path), image[..., [2, 1, 0, 3][:channels]])
    expected = np.broadcast_to(image[..., :3] / 65535, (9, 7, 3))
    assert np.abs(read_rgb(path) - expected).max() <= 1e-6


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_stand_upright(tmp_path: Path, orientation: int) -> None:
    """What the camera stored turned must come out as the scene was."""
    rng = np.random.default_rng(0)
    scene8 = np.kron(rng.integers(0, 256, (3, 2, 3)), np.ones((16, 16, 1))).astype(np.uint8)
    turn_back = {
        1: lambda a: a,
        2: np.fliplr,
        3: lambda a: np.rot90(a, 2),
        4: np.flipud,
        5: lambda a: np.swapaxes(a, 0, 1),
        6: lambda a: np.rot90(a, 1),
        7: lambda a: np.rot90(np.swapaxes(a, 0, 1), 2),
        8: lambda a: np.rot90(a, -1),
    }[orientation]
    stored = np.ascontiguousarray(turn_back(scene8))
    tag = Image.Exif()
    tag[0x0112] = orientation
    for suffix in (".png", ".jpg", ".webp"):
        Image.fromarray(stored).save(tmp_path / f"a{suffix}", exif=tag, quality=100)
        assert np.abs(read_rgb(tmp_path / f"a{suffix}") - scene8 / 255).mean() < 0.03, suffix
    if orientation == 6:
        turned = [(274, "H", 1, orientation, True)]
        tifffile.imwrite(tmp_path / "a.tif", stored, photometric="rgb", extratags=turned)
        Image.fromarray(stored).save(tmp_path / "b.tif", compression="tiff_lzw", exif=tag)
        for name in ("a.tif", "b.tif"):
            assert np.abs(read_rgb(tmp_path / name) - scene8 / 255).max() < 1e-6, name
    np.testing.assert_array_equal(upright(stored, orientation), scene8)


def test_colour_arrays() -> None:
    grey = np.array([[0, 255]], np.uint8)
    np.testing.assert_array_equal(as_rgb(grey), [[[0, 0, 0], [1, 1, 1]]])
    assert as_rgb(np.zeros((3, 9, 8), np.uint16)).shape == (9, 8, 3)
    assert as_rgb(np.zeros((9, 8, 4), np.float64)).shape == (9, 8, 3)
    assert as_rgb(np.full((2, 2, 3), 1.0005)).max() == 1
    for array, expected in (
        (np.full((2, 2, 3), 128.0), "divide by 255"),
        (np.full((2, 2, 3), np.nan), "must be in"),
        (np.zeros((2, 2, 3), np.int64), "of type int64"),
        (np.zeros((2, 2, 5), np.uint8), r"an image is \(H, W, 3\)"),
        (np.zeros((0, 2, 3), np.uint8), "zero size"),
        (np.zeros(3, np.uint8), "an image is"),
    ):
        with pytest.raises(InputError, match=expected):
            as_rgb(array)


def test_bad_pictures_give_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3)).astype(np.uint8)
    for suffix in (".png", ".jpg", ".bmp", ".webp", ".tif"):
        path = tmp_path / f"a{suffix}"
        Image.fromarray(noise).save(path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "empty.jpg").write_bytes(b"")
    np.save(tmp_path / "depth.npy", noise)
    for path in [*sorted(tmp_path.iterdir()), tmp_path / "absent.png", tmp_path]:
        with pytest.raises(InputError) as caught:
            read_rgb(path)
        assert path.name in str(caught.value)
        assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_colourise_maps_the_range_to_the_palette() -> None:
    ramp = np.linspace(2, 4, 256).reshape(16, 16)
    picture = colourise(ramp, lowest=2, highest=4)
    levels = np.arange(256, dtype=np.uint8)[:, None]
    turbo = cv2.applyColorMap(levels, cv2.COLORMAP_TURBO)[:, 0, ::-1]
    np.testing.assert_array_equal(picture.reshape(-1, 3), turbo)
    for palette in PALETTES:
        assert len(np.unique(colourise(ramp, palette=palette).reshape(-1, 3), axis=0)) > 100
    with pytest.raises(InputError, match="use turbo, viridis"):
        colourise(ramp, palette="jet")


def test_colourise_never_looks_at_holes() -> None:
    depth, valid = scene(40, 30)
    clean = colourise(np.where(valid, depth, 1), valid)
    for junk in (0, 1e9, np.nan, -np.inf):
        np.testing.assert_array_equal(colourise(np.where(valid, depth, junk), valid), clean)
    assert (clean[~valid] == 48).all()
    outlier = depth.copy()
    outlier[0, 0] = 1e6
    far = np.abs(colourise(outlier, valid).astype(int) - clean)[valid]
    assert far[1:].max() <= 8, "one outlier must not wash out the picture"


def test_colourise_of_nothing_and_of_a_constant() -> None:
    assert (colourise(np.full((3, 3), np.nan)) == 48).all()
    assert len(np.unique(colourise(np.ones((3, 3))).reshape(-1, 3), axis=0)) == 1
    with pytest.raises(InputError, match="lowest <= highest"):
        colourise(np.ones((3, 3)), lowest=2, highest=1)


def test_pictures_are_written_atomically(tmp_path: Path) -> None:
    picture = colourise(*scene(20, 30))
    for suffix in (".png", ".jpg", ".webp", ".bmp"):
        write_image(tmp_path / f"a{suffix}", picture)
        assert read_rgb(tmp_path / f"a{suffix}").shape == (20, 30, 3)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.png")), picture)
    assert len(list(tmp_path.iterdir())) == 4
    for path, array in (("a.exr", picture), ("b.png", picture.astype(float)), ("b.png", [1, 2])):
        with pytest.raises(InputError):
            write_image(tmp_path / path, array)
    assert len(list(tmp_path.iterdir())) == 4


# Size and cost


def test_declared_sizes_are_refused_before_they_are_allocated(tmp_path: Path) -> None:
    """Files of a few bytes that claim gigapixels."""

    def npy(shape: str, descr: str = "<f4") -> bytes:
        text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}".encode()
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text

    Image.new("I;16", (4, 4)).save(tmp_path / "a.png")
    png = bytearray((tmp_path / "a.png").read_bytes())
    tifffile.imwrite(tmp_path / "a.tif", np.ones((4, 4), np.float32))
    tiff = (tmp_path / "a.tif").read_bytes()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("depth", (10**6, 10**6), np.float32, chunks=(100, 100))
    with OpenEXR.File({"type": OpenEXR.scanlineimage}, {"Z": np.ones((4, 4), np.float32)}) as file:
        file.write(str(tmp_path / "a.exr"))
    exr = (tmp_path / "a.exr").read_bytes()
    corner, far = np.array([3, 3], "<i4").tobytes(), np.array([99999, 99999], "<i4").tobytes()

    (tmp_path / "a.npy").write_bytes(npy("(1000000, 1000000)"))
    (tmp_path / "short.npy").write_bytes(npy("(10000, 10000)"))
    (tmp_path / "wide.npy").write_bytes(npy("(2, 2)", "<U400000000"))
    (tmp_path / "header.npy").write_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b"x" * 100)
    (tmp_path / "a.pfm").write_bytes(b"Pf\n99999 99999\n-1\n1234")
    (tmp_path / "short.pfm").write_bytes(b"Pf\n9999 9999\n-1\n1234")
    (tmp_path / "a.exr").write_bytes(exr.replace(corner, far))
    (tmp_path / "a.tif").write_bytes(tiff.replace(b"\x04\0\0\0", b"\xff\xff\xff\x0f"))
    for name, side in (("a.png", 99999), ("short.png", 19999)):
        png[16:24] = side.to_bytes(4, "big") * 2
        png[29:33] = zlib.crc32(bytes(png[12:29])).to_bytes(4, "big")
        (tmp_path / name).write_bytes(png)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("depth.npy", npy("(1000000, 1000000)"))
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("depth.npy", npy("(2, 2)") + bytes(16))
        archive.writestr("unit.npy", npy("()", "<U9999999") + bytes(4 * 9999999))

    tracemalloc.start()
    started = time.perf_counter()
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(InputError) as caught:
            read_depth(path)
        assert path.name in str(caught.value)
    seconds, peak = time.perf_counter() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
    assert seconds < 30


def test_a_small_picture_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    """1.25 GB of zeros in one strip of a TIFF that declares 40 x 40 pixels."""
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.ones((40, 40), np.float32), compression="zlib")
    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        at, length = (page.tags[tag].valueoffset for tag in ("StripOffsets", "StripByteCounts"))
    packer = zlib.compressobj(1)
    start = packer.compress(bytes(10_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb = start + 124 * start[2:]  # after a full flush the blocks of a stream can be repeated
    content = bytearray(path.read_bytes())
    content[at : at + 4] = len(content).to_bytes(4, "little")
    content[length : length + 4] = len(bomb).to_bytes(4, "little")
    path.write_bytes(content + bomb)
    # In a process of its own: a forked child begins with the size of its parent, here pytest.
    program = """
        import resource, sys
        from ducos.errors import InputError
        from ducos.files import read_depth
        try:
            read_depth(sys.argv[1])
        except InputError:
            print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    kilobytes = int(subprocess.check_output(command, text=True))
    assert kilobytes < 1_100_000


def test_large_maps_fit_into_the_child(tmp_path: Path) -> None:
    depth = np.ones((2000, 3000), np.float32)
    for suffix in IN_CHILD:
        write_depth(tmp_path / f"a{suffix}", depth)
        assert read_depth(tmp_path / f"a{suffix}").valid.all()


def test_ordinary_large_pictures_are_no_bombs(tmp_path: Path) -> None:
    """Pillow alone warns from 89 and refuses from 179 megapixels; phones make 200."""
    Image.new("L", (14000, 13000)).save(tmp_path / "a.png", compress_level=1)
    limit = Image.MAX_IMAGE_PIXELS
    with open_picture(tmp_path / "a.png", ("PNG",)) as picture:
        assert picture.size == (14000, 13000)
    assert limit == Image.MAX_IMAGE_PIXELS


def test_importing_io_is_light() -> None:
    program = "import sys, ducos.files; print([m for m in sys.argv[1:] if m in sys.modules])"
    heavy = ["torch", "cv2", "PIL", "OpenEXR", "h5py", "tifffile", "scipy"]
    done = subprocess.run(
        [sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
