"""examples/realsense: the arithmetic with the SDK's numbers, always; the whole recipe where the SDK
is installed, on a recording that the SDK itself writes from its software device."""

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ducos.errors import InputError
from ducos.files import read_depth
from tests.captures import recordings as made
from tests.examples.kit import loaded, run

try:
    import pyrealsense2
except ImportError:  # also where its libusb is missing
    pyrealsense2 = None

COLOR = {"width": made.W, "height": made.H, "fx": made.FX, "fy": made.FX,
         "ppx": made.CX, "ppy": made.CY, "coeffs": [0.0] * 5}  # fmt: skip
DEPTH = {**COLOR, "width": made.w, "height": made.h, "fx": made.FX / 2, "fy": made.FX / 2,
         "ppx": (made.CX + 0.5) / 2 - 0.5, "ppy": (made.CY + 0.5) / 2 - 0.5}  # fmt: skip
TURN = [0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 1.0]  # by columns: x becomes y, y becomes -x
ASIDE = SimpleNamespace(rotation=np.eye(3).ravel().tolist(), translation=[0.01, 0.0, 0.0])


@pytest.fixture(scope="module")
def live() -> ModuleType:
    return loaded("realsense/live.py")


@pytest.fixture
def rs() -> Any:
    if pyrealsense2 is None:
        pytest.skip("RealSense's SDK is not installed (pip install pyrealsense2, and libusb-1.0)")
    return pyrealsense2


def numbers(values: dict[str, Any], model: str = "distortion.brown_conrady") -> SimpleNamespace:
    return SimpleNamespace(**values, model=model)


def test_frames_are_registered_and_sharp(live: ModuleType) -> None:
    """Steps of 0.25 mm, cameras 10 mm apart: the box and the wall are in place."""
    upscaler = live.upscaler_for(numbers(DEPTH), numbers(COLOR), ASIDE, 0.00025)
    result = upscaler(made.colours(1), made.steps(1, 4000))
    assert result.depth.shape == (made.H, made.W)
    assert abs(result.depth[24, 32] - 1.2) < 0.02
    assert abs(result.depth[40, 6] - 2.0) < 0.02
    assert any("registered" in note for note in result.notes)


def test_rotations_are_stored_by_columns(live: ModuleType) -> None:
    way = live.way_of(SimpleNamespace(rotation=TURN, translation=[0.01, 0.0, 0.0]))
    assert np.allclose(way.apply(np.array([1.0, 2.0, 3.0])), [-1.99, 1.0, 3.0])


def test_a_lens_that_ducos_does_not_know_is_refused(live: ModuleType) -> None:
    bent = {**COLOR, "coeffs": [-0.05, 0.06, 0.0, 0.0, -0.02]}
    with pytest.raises(InputError, match="undistort"):
        live.camera_of(numbers(bent, "distortion.inverse_brown_conrady"))


def test_the_sdk_moves_points_as_the_example_does(live: ModuleType, rs: Any) -> None:
    way = rs.extrinsics()
    way.rotation, way.translation = TURN, [0.01, 0.0, 0.0]
    theirs = rs.rs2_transform_point_to_point(way, [1.0, 2.0, 3.0])
    assert np.allclose(live.way_of(way).apply(np.array([1.0, 2.0, 3.0])), theirs)


def recorded(rs: Any, path: Path) -> Path:
    """Three frames of `recordings`, as the SDK's recorder stores them."""
    device = rs.software_device()
    sensors, profiles = [], []
    for name, kind, form, size, values in (
        ("Depth", rs.stream.depth, rs.format.z16, 2, DEPTH),
        ("Color", rs.stream.color, rs.format.rgb8, 3, COLOR),
    ):
        lens = rs.intrinsics()
        for field, value in values.items():
            setattr(lens, field, value)
        lens.model = rs.distortion.brown_conrady
        stream = rs.video_stream()
        stream.type, stream.fmt, stream.bpp, stream.intrinsics = kind, form, size, lens
        stream.uid, stream.index, stream.fps = size, 0, 30
        stream.width, stream.height = lens.width, lens.height
        sensors.append(device.add_sensor(name))
        profiles.append(sensors[-1].add_video_stream(stream))
    sensors[0].add_read_only_option(rs.option.depth_units, 0.001)
    way = rs.extrinsics()
    way.rotation, way.translation = ASIDE.rotation, ASIDE.translation
    profiles[0].register_extrinsics_to(profiles[1], way)

    recorder = rs.recorder(str(path), device)
    queue = rs.frame_queue(10)
    opened = recorder.query_sensors()
    for sensor, profile in zip(opened, profiles):
        sensor.open(profile)
        sensor.start(queue)
    for n in range(made.FRAMES):
        planes = (made.steps(n), made.colours(n))
        for sensor, profile, plane in zip(sensors, profiles, planes):
            frame = rs.software_video_frame()
            frame.pixels, frame.stride = np.ascontiguousarray(plane), plane.strides[0]
            frame.bpp, frame.profile = plane.strides[1], profile.as_video_stream_profile()
            frame.timestamp, frame.frame_number = 1000 + 33.3 * n, n + 1
            frame.domain, frame.depth_units = rs.timestamp_domain.system_time, 0.001
            sensor.on_video_frame(frame)
        for _ in planes:
            queue.wait_for_frame(5000)
    for sensor in opened:
        sensor.stop()
        sensor.close()
    return path


def test_the_recipe_plays_a_recording_of_the_sdk(rs: Any, tmp_path: Path) -> None:
    path = recorded(rs, tmp_path / "walk.db3")
    finished = run("realsense/live.py", "--play", path, "-o", tmp_path / "sharp")
    assert finished.returncode == 0, finished.stderr
    results = sorted((tmp_path / "sharp").glob("*.png"))
    assert len(results) == made.FRAMES
    for n, result in enumerate(results):
        metres = read_depth(result).depth
        assert abs(metres[24, 28 + 4 * n] - 1.2) < 0.02
        assert abs(metres[40, 6] - 2.0) < 0.02


def test_a_missing_recording_is_one_sentence(rs: Any, tmp_path: Path) -> None:
    missing = tmp_path / "none.db3"
    finished = run("realsense/live.py", "--play", missing, "-o", tmp_path / "sharp")
    assert finished.returncode == 2
    assert "Traceback" not in finished.stderr
    assert not (tmp_path / "sharp").exists()


@pytest.mark.skipif(pyrealsense2 is not None, reason="the SDK is installed")
def test_without_the_sdk_it_says_so(tmp_path: Path) -> None:
    finished = run("realsense/live.py", "-o", tmp_path / "sharp")
    assert finished.returncode == 2
    assert "pip install pyrealsense2" in finished.stderr
    assert "Traceback" not in finished.stderr
