"""Cameras: files as SDKs write them, rescaling, and registration against ray-cast scenes."""

import contextlib
import json
from dataclasses import asdict, replace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ducos.cameras.calibration import as_camera, as_extrinsics, read_camera, read_extrinsics
from ducos.cameras.intrinsics import Camera, Extrinsics
from ducos.cameras.registration import register, registered
from ducos.errors import InputError
from ducos.files import as_depth

DEPTH = Camera(160, 120, 150.0, 151.0, 80.3, 58.9)
COLOUR = Camera(640, 480, 610.0, 612.0, 318.7, 241.2)


def turned(yaw: float, pitch: float, shift: tuple[float, float, float]) -> Extrinsics:
    rotation, _ = cv2.Rodrigues(np.radians([pitch, yaw, 0.4]))
    return Extrinsics(rotation, np.array(shift))


def cast(camera: Camera, pose: Extrinsics, planes: list) -> np.ndarray:
    """Depth (h, w) of planes n.X = d, each cut to |X - centre| < half, seen by X' = R X + t.

    A tiny ray caster of its own: it shares no projection code with what it checks, but the
    camera's directions, and those are checked against OpenCV.
    """
    v, u = np.mgrid[: camera.height, : camera.width].astype(float)
    rays = np.stack([(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, np.ones_like(u)], -1)
    origin = -pose.rotation.T @ pose.translation
    world = rays @ pose.rotation  # R^T applied to each ray
    nearest = np.full(u.shape, np.inf)
    for normal, distance, centre, half in planes:
        along = (distance - origin @ normal) / (world @ normal)
        hit = origin + world * along[..., None]
        inside = (np.abs(hit - centre) <= half).all(-1) & (along > 0)
        nearest = np.where(inside & (along < nearest), along, nearest)
    return np.where(np.isfinite(nearest), nearest, 0)


EVERYWHERE = np.array([np.inf] * 3)
WALL = (np.array([0.1, 0.2, 1.0]), 2.5, np.zeros(3), EVERYWHERE)
BOARD = (np.array([-0.3, 0.0, 1.0]), 1.2, np.array([0.1, 0, 1.2]), np.array([0.3, 0.25, 1.0]))
HERE = Extrinsics()


@pytest.mark.parametrize(
    "pose",
    [
        HERE,
        turned(0, 0, (0.05, 0, 0)),
        turned(2.0, -1.5, (-0.04, 0.015, 0.01)),
        turned(-4.0, 3.0, (0.1, -0.05, -0.08)),
    ],
)
def test_registration_equals_a_picture_taken_by_the_colour_camera(pose):
    depth = cast(DEPTH, HERE, [WALL, BOARD]).astype(np.float32)
    result, valid, occluded = register(depth, depth > 0, DEPTH, COLOUR, pose)
    height, width = result.shape
    truth = cast(COLOUR.scaled(width, height), pose, [WALL, BOARD])
    off = np.abs(result - truth)
    # Away from silhouettes (one pixel) the planes are exact: far below what one pixel would make.
    spread = cv2.dilate(truth, np.ones((3, 3))) - cv2.erode(truth, np.ones((3, 3)))
    smooth = valid & (spread < 0.1)
    assert smooth.mean() > 0.6
    assert off[smooth].max() < 1e-5
    # What is invalid within the depth camera's view is explained by parallax, and only that.
    assert not (valid & occluded).any()
    if pose is HERE:
        # The colour camera's field of view reaches beyond the depth camera's in places.
        assert not occluded.any()
    # Silhouettes: the board's outline is off by less than a pixel, so by less than its rim's area.
    wrong = valid & (off > 0.1)
    rim = (spread > 0.1).sum()
    assert wrong.sum() < 0.5 * rim


def test_silhouettes_land_within_a_fraction_of_a_pixel():
    """The outline's centroid, over many rows, tells sub-pixel shifts."""
    wall = (np.array([0, 0, 1.0]), 3.0, np.zeros(3), EVERYWHERE)
    errors = []
    for shift in np.linspace(0, 0.02, 9):  # the board moves over three depth pixels
        pose = turned(0, 0, (0.05 - 2 * shift, 0, 0))
        board = (np.array([0, 0, 1.0]), 1.0, np.array([shift, 0, 1.0]), np.array([0.2, 9, 1.0]))
        depth = cast(DEPTH, HERE, [wall, board]).astype(np.float32)
        result, valid, _ = register(depth, depth > 0, DEPTH, COLOUR, pose)
        height, width = result.shape
        truth = cast(COLOUR.scaled(width, height), pose, [wall, board])
        rows = valid.sum(1) > 0
        columns = np.arange(width)
        near, true_near = (valid & (result < 2))[rows], (truth < 2)[rows]
        found = (near * columns).sum() / near.sum()
        errors.append(found - (true_near * columns).sum() / true_near.sum())
    assert np.abs(errors).max() < 0.6  # each outline is on the grid of one of the two cameras
    assert abs(np.mean(errors)) < 0.15  # no systematic shift


def test_occluded_is_what_the_near_board_hid():
    """Moved to the left, the colour camera sees wall that the board hid from the depth camera."""
    pose = turned(0, 0, (0.1, 0, 0))
    wall = (np.array([0, 0, 1.0]), 3.0, np.zeros(3), EVERYWHERE)
    board = (np.array([0, 0, 1.0]), 1.0, np.array([0.0, 0, 1.0]), np.array([0.2, 0.2, 1.0]))
    depth = cast(DEPTH, HERE, [wall, board]).astype(np.float32)
    result, valid, occluded = register(depth, depth > 0, DEPTH, COLOUR, pose)
    height, width = result.shape
    camera = COLOUR.scaled(width, height)
    # Shadow: the parallax of board and wall differ by f b (1/1 - 1/3) pixels, over its height.
    broad = camera.fx * 0.1 * (1 / 1 - 1 / 3)
    tall = camera.fy * 0.4 / 1.0
    assert occluded.sum() == pytest.approx(broad * tall, rel=0.15)
    # Cast the truth back into the depth camera: every occluded wall point is behind the board.
    v, u = np.nonzero(occluded)
    points = camera.directions(u, v) * 3.0 - pose.translation
    du, dv = DEPTH.pixels(points)
    hidden = depth[np.rint(dv).astype(int), np.rint(du).astype(int)] < 2
    assert hidden.mean() > 0.9
    # And holes of the sensor are not called occluded.
    holes = depth.copy()
    holes[20:30, 20:30] = 0
    _, valid_holes, occluded_holes = register(holes, holes > 0, DEPTH, COLOUR, pose)
    assert (valid & ~valid_holes).sum() > 60
    assert not (occluded_holes & valid).any()


def test_registration_by_files(tmp_path):
    """The whole way of the command line, with refusals that say what is wrong."""
    depth = cast(DEPTH, HERE, [WALL]).astype(np.float32)
    low = as_depth(depth, unit="m")
    names = [tmp_path / name for name in ("depth.json", "colour.json", "pose.json")]
    pose = turned(1, 0, (0.05, 0, 0))
    for path, content in zip(
        names,
        (
            asdict(DEPTH),
            asdict(COLOUR),
            {"rotation": pose.rotation.tolist(), "translation": pose.translation.tolist()},
        ),
        strict=True,
    ):
        path.write_text(json.dumps(content))
    result, sentence = registered(low, (480, 640), *names)
    expected, valid, _ = register(depth, depth > 0, DEPTH, COLOUR, pose)
    assert np.array_equal(result.depth, expected)
    assert np.array_equal(result.valid, valid)
    assert "50.0 mm apart" in sentence
    with pytest.raises(InputError, match="cropped or turned"):
        registered(low, (640, 480), *names)
    names[2].write_text(json.dumps({"matrix": np.diag([-1, 1, -1, 1]).tolist()}))
    with pytest.raises(InputError, match="no depth pixel falls"):
        registered(low, (480, 640), *names)
    with pytest.raises(InputError, match="relative"):
        registered(as_depth(depth, unit="relative"), (480, 640), *names)


def test_registration_of_a_curved_surface_has_no_cracks():
    v, u = np.mgrid[:120, :160]
    depth = (1.5 + 0.3 * np.sin(u / 9) * np.cos(v / 7)).astype(np.float32)
    _, valid, _ = register(depth, depth > 0, DEPTH, COLOUR, turned(3, 0, (0.05, 0, 0)))
    inner = valid[20:-20, 25:-25]
    assert inner.mean() > 0.97


def test_registration_obeys_distortion_of_both_cameras():
    bent_depth = replace(DEPTH, distortion=(0.1, -0.05, 0.001, 0.002, 0.01))
    bent_colour = replace(COLOUR, distortion=(-0.08, 0.02, 0.001, -0.001))
    v, u = np.mgrid[:120, :160].astype(float)
    rays = bent_depth.directions(u, v)
    depth = (2.5 / (rays @ np.array([0.1, 0.2, 1.0]))).astype(np.float32)
    pose = turned(1, 1, (0.03, 0.01, 0))
    result, valid, _ = register(depth, depth > 0, bent_depth, bent_colour, pose)
    height, width = result.shape
    camera = bent_colour.scaled(width, height)
    v, u = np.nonzero(valid)
    points = pose.inverted().apply(camera.directions(u, v) * result[v, u][:, None])
    assert np.abs(points @ np.array([0.1, 0.2, 1.0]) - 2.5).max() < 2e-3


def test_huge_triangles_are_drawn_too():
    """A wall a hand's breadth from a long lens: each depth pixel covers many colour pixels."""
    coarse = Camera(4, 3, 3.0, 3.0, 1.5, 1.0)
    depth = np.full((3, 4), 0.5, np.float32)
    result, valid, _ = register(depth, depth > 0, coarse, COLOUR, HERE, size=(480, 640))
    assert valid.all()
    assert np.allclose(result, 0.5, atol=1e-6)


# ------------------------------------------------------------------------------------- the camera


@given(st.floats(0.1, 8), st.floats(0.1, 8), st.floats(0, 1), st.floats(0, 1))
def test_scaling_keeps_the_place_of_every_point(across, down, x, y):
    """Under the pixel-centre rule, a point at a share of the picture stays at that share."""
    small = COLOUR.scaled(max(1, round(640 * across)), max(1, round(480 * down)))
    u, v = 640 * x - 0.5, 480 * y - 0.5
    ray = COLOUR.directions(u, v)
    u2, v2 = small.pixels(ray)
    assert (u2 + 0.5) / small.width == pytest.approx(x, abs=1e-9)
    assert (v2 + 0.5) / small.height == pytest.approx(y, abs=1e-9)


def test_projection_is_opencvs():
    camera = replace(COLOUR, distortion=(0.1, -0.2, 0.003, -0.002, 0.05, 0.01, 0.02, -0.01))
    points = np.random.default_rng(0).uniform((-1, -1, 1), (1, 1, 3), (50, 3))
    matrix = np.array([[camera.fx, 0, camera.cx], [0, camera.fy, camera.cy], [0, 0, 1]])
    expected, _ = cv2.projectPoints(
        points, np.zeros(3), np.zeros(3), matrix, np.array(camera.distortion)
    )
    u, v = camera.pixels(points)
    assert np.abs(np.stack([u, v], -1) - expected[:, 0]).max() < 1e-9
    mild = replace(COLOUR, distortion=(0.1, -0.05, 0.001, 0.002))
    u, v = mild.pixels(points)
    inside = (np.abs(u - 320) < 400) & (np.abs(v - 240) < 300)
    back = mild.directions(u[inside], v[inside])
    assert np.abs(back - (points / points[:, 2:])[inside]).max() < 1e-6


def test_field_of_view():
    camera = Camera.from_field_of_view(640, 480, 60)
    left, right = (camera.directions(u, 239.5)[0] for u in (-0.5, 639.5))
    assert np.degrees(np.arctan(right) - np.arctan(left)) == pytest.approx(60)
    with pytest.raises(InputError, match=r"179\.9"):
        Camera.from_field_of_view(640, 480, 200)


# ---------------------------------------------------------------------------------- files of SDKs

SAME = {"width": 640, "height": 480, "fx": 610.0, "fy": 612.0, "cx": 318.7, "cy": 241.2}
ROWS = [610.0, 0, 318.7, 0, 612.0, 241.2, 0, 0, 1]
COLUMNS = np.reshape(ROWS, (3, 3)).T.ravel().tolist()
FILES = {
    "plain": SAME,
    "realsense": {
        "width": 640, "height": 480, "fx": 610.0, "fy": 612.0, "ppx": 318.7, "ppy": 241.2,
        "model": "distortion.inverse_brown_conrady", "coeffs": [0, 0, 0, 0, 0],
    },
    "open3d": {"width": 640, "height": 480, "intrinsic_matrix": COLUMNS},
    "ros": {"width": 640, "height": 480, "distortion_model": "plumb_bob", "d": [0] * 5, "k": ROWS},
    "opencv": {"image_width": 640, "image_height": 480,
               "camera_matrix": {"rows": 3, "cols": 3, "data": ROWS}},
    "record3d": {"w": 640, "h": 480, "K": COLUMNS},
    "nerfstudio": {"w": 640, "h": 480, "fl_x": 610.0, "fl_y": 612.0, "cx": 319.2, "cy": 241.7,
                   "pixel_centre": 0.5},
    "nested": {"K": np.reshape(ROWS, (3, 3)).tolist(), "width": 640, "height": 480},
    "both": {"depth": {"fx": 1}, "color": SAME},
    "wrapped": {"resolution": {"width": 640, "height": 480},
                "intrinsics": {"parameters": {k: SAME[k] for k in ("fx", "fy", "cx", "cy")}}},
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_intrinsics_of(name, tmp_path):
    path = tmp_path / "k.json"
    path.write_text(json.dumps(FILES[name]))
    camera = read_camera(path, "colour")
    assert (camera.width, camera.height, camera.distortion) == (640, 480, ())
    numbers = (camera.fx, camera.fy, camera.cx, camera.cy)
    assert numbers == pytest.approx((610.0, 612.0, 318.7, 241.2))


def test_size_may_come_from_the_picture():
    camera = as_camera({"K": ROWS}, (480, 640))
    assert (camera.width, camera.height) == (640, 480)


TURN, _ = cv2.Rodrigues(np.radians([1.0, 5.0, -2.0]))
SHIFT = np.array([0.0148, -0.0003, 0.0002])
SQUARE = np.block([[TURN, SHIFT[:, None]], [np.zeros(3), 1]])
POSES = {
    "realsense": {"rotation": TURN.T.ravel().tolist(), "translation": SHIFT.tolist()},
    "azure": {"rotation": TURN.ravel().tolist(), "translation": (1000 * SHIFT).tolist()},
    "orbbec": {"rot": TURN.ravel().tolist(), "trans": (1000 * SHIFT).tolist()},
    "nested": {"rotation": TURN.tolist(), "translation": SHIFT.tolist()},
    "said": {"rotation": TURN.ravel().tolist(), "translation": SHIFT.tolist(), "order": "row"},
    "matrix": {"matrix": SQUARE.tolist()},
    "columns": {"depth_to_color": SQUARE.T.ravel().tolist()},
    "inverse": {"matrix": np.linalg.inv(SQUARE).tolist(), "direction": "color_to_depth"},
    "part": {"extrinsics": {"R": TURN.tolist(), "t": SHIFT.tolist()}},
}


@pytest.mark.parametrize("name", POSES)
def test_extrinsics_of(name, tmp_path):
    path = tmp_path / "pose.json"
    path.write_text(json.dumps(POSES[name]))
    pose = read_extrinsics(path)
    assert np.abs(pose.rotation - TURN).max() < 1e-12
    assert np.abs(pose.translation - SHIFT).max() < 1e-12
    assert "14.8 mm apart" in pose.note


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"fx": 600}, "does not state width, height, fy, cx, cy"),
        ({**SAME, "fx": "wide"}, "must be a number"),
        ({**SAME, "fx": -600}, "positive"),
        ({**SAME, "fx": float("nan")}, "must be a number"),
        ({**SAME, "coeffs": [0.1, 0, 0, 0, 0], "model": "inverse_brown_conrady"}, "undistort"),
        ({**SAME, "coeffs": [0.1, 0, 0]}, "4, 5 or 8"),
        ({"width": 640, "height": 480, "K": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, "0 0 1"),
        ({"width": 640, "height": 480, "K": [[1, 2], [3]]}, "does not state"),
        ({**SAME, "pixel_centre": 0.3}, "pixel_centre"),
    ],
)
def test_bad_intrinsics_are_refused(content, words):
    with pytest.raises(InputError, match=words):
        as_camera(content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "no rotation"),
        ({"rotation": [1, 2, 3], "translation": [0, 0, 0]}, "9 numbers"),
        ({"rotation": [1, 1, 0, 0, 1, 0, 0, 0, 1], "translation": [0, 0, 0]}, "no rotation matrix"),
        ({"rotation": np.eye(3).tolist(), "translation": [0, 0, "x"]}, "numbers belong"),
        ({"rotation": np.eye(3).tolist(), "translation": [0, 0, 0], "unit": "ft"}, "m or mm"),
        ({"matrix": np.ones((4, 4)).tolist()}, "0 0 0 1"),
    ],
)
def test_bad_extrinsics_are_refused(content, words):
    with pytest.raises(InputError, match=words):
        as_extrinsics(content)


KEYS = st.sampled_from(
    ["width", "height", "fx", "K", "rotation", "translation", "depth", "intrinsics", "D", "matrix"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, JSON, max_size=8) | JSON)
def test_any_json_is_read_or_refused(tmp_path, content):
    path = tmp_path / "any.json"
    path.write_text(json.dumps(content))
    with contextlib.suppress(InputError):  # any other exception fails the test
        assert read_camera(path, "depth", (3, 4)).fx > 0
    with contextlib.suppress(InputError):
        assert read_extrinsics(path).rotation.shape == (3, 3)


def test_no_json_is_refused(tmp_path):
    path = tmp_path / "k.json"
    path.write_bytes(b"\xff\x00 nonsense")
    with pytest.raises(InputError, match=r"as a \.json camera file"):
        read_camera(path, "depth")
    with pytest.raises(InputError, match="does not exist"):
        read_extrinsics(tmp_path / "absent.json")
