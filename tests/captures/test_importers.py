"""Every importer, on a small recording in its real layout: units, holes, confidence, cameras."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ducos.batch import run_batch
from ducos.batch.run import planned
from ducos.batch.worker import work_on
from ducos.cameras import Camera
from ducos.captures import IMPORTERS, find_frames, read_frame
from ducos.captures.mkv import read_calibration
from ducos.doctor import examine_recording
from ducos.errors import InputError
from ducos.files import read_colour, read_depth
from ducos.upscaling import Options, Upscaler
from tests.captures import recordings as made
from tests.captures.recordings import (
    APART,
    EXACT_COLOURS,
    GUESSED,
    NO_CAMERA,
    POSED,
    RECORDINGS,
    TRUSTED,
)
from tests.commands import ducos, ducos_here


@pytest.fixture(scope="module")
def upscaler() -> Upscaler:
    return Upscaler("bicubic", shift="off")


@pytest.fixture
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    return request.param, RECORDINGS[request.param][1](tmp_path)


every = pytest.mark.parametrize("recording", RECORDINGS, indirect=True)


def test_every_importer_is_tried() -> None:
    assert {layout for layout, _ in RECORDINGS.values()} == set(IMPORTERS)


@every
def test_frames_are_read_as_they_were(recording: tuple[str, Path]) -> None:
    name, path = recording
    found = find_frames(path)
    assert found.layout == RECORDINGS[name][0]
    assert found.unmatched == []
    assert len(found.pairs) == made.FRAMES
    for n in (2, 0, 1):  # in any order
        frame = read_frame(found.pairs[n])
        truth = made.kinect_metres(n) if name == "mkv" else made.metres(n)
        levels = made.trust(n) if name in TRUSTED else np.full(truth.shape, 2, np.uint8)
        known = (truth > 0) & (levels > 0)
        assert (frame.low.valid == known).all()
        assert np.abs(frame.low.depth - truth)[known].max() < 1e-6
        assert frame.low.guessed == (name in GUESSED)
        if name in TRUSTED:
            assert frame.low.confidence is not None
            assert np.allclose(frame.low.confidence[known], levels[known] / 2)
        colour = read_colour(frame.image)
        shown = np.kron(made.colours(n), np.ones((4, 4, 1))) if name == "mkv" else made.colours(n)
        error = np.abs(255 * colour - shown)
        assert error.mean() < (0.01 if name in EXACT_COLOURS else 6)


@every
def test_cameras_and_poses_are_those_of_the_recording(recording: tuple[str, Path]) -> None:
    name, path = recording
    pairs = find_frames(path).pairs
    frame = read_frame(pairs[1])
    if name in NO_CAMERA:
        assert frame.camera is None
        return
    assert frame.camera is not None
    if name not in ("7scenes", "tum", "mkv"):  # whose lenses are the dataset's or the device's
        assert frame.camera.scaled(made.W, made.H) == Camera(64, 48, 50, 50, 31.5, 23.5)
    if name in POSED:
        assert frame.pose is not None
        assert np.allclose(frame.pose, made.moved(1), atol=1e-5)
    assert (frame.extrinsics is not None) == (name in APART)
    if frame.extrinsics is not None:
        assert np.allclose(frame.extrinsics.translation, (-0.01, 0, 0), atol=1e-6)
        assert frame.depth_camera is not None


@every
def test_results_and_clouds_need_nothing_but_the_recording(
    recording: tuple[str, Path], tmp_path: Path, upscaler: Upscaler
) -> None:
    name, path = recording
    pair = find_frames(path).pairs[1]
    cloud = name not in (*NO_CAMERA, "tum")  # no camera; or one of 640×480
    frame = planned(pair, "a.npz", tmp_path / "unnamed", {}, False, cloud)
    answer = work_on(frame.job, upscaler)
    assert answer.error is None
    depth = read_depth(frame.job.out)
    low = read_frame(pair).low
    assert abs(np.median(depth.depth) - np.median(low.depth[low.valid])) < 0.05
    if cloud:
        head = Path(frame.job.cloud or "").read_bytes()[:300].decode(errors="replace")
        points = int(head.partition("element vertex ")[2].split()[0])
        assert points > 0.5 * depth.depth.size


@every
def test_the_doctor_reads_it(recording: tuple[str, Path]) -> None:
    report = examine_recording(find_frames(recording[1]))
    assert report.facts["frames"] == made.FRAMES
    assert len(report.facts["looked_at"]) == made.FRAMES
    assert all(each is not None and each.low is not None for each in report.reports.values())
    assert not any(finding.code in ("unreadable", "unit") for finding in report.findings)


@pytest.mark.parametrize("name", ["record3d", "ros2"])
def test_the_commands_take_a_recording_by_itself(name: str, tmp_path: Path) -> None:
    path = RECORDINGS[name][1](tmp_path)
    run = ducos("batch", path, "-o", tmp_path / "out", "--cloud", "--model", "bicubic")
    assert run.returncode == 0, run.stderr
    assert len(list((tmp_path / "out").glob("*.png"))) == made.FRAMES
    assert len(list((tmp_path / "out" / "cloud").glob("*.ply"))) == made.FRAMES
    again = ducos("batch", path, "-o", tmp_path / "out", "--cloud", "--model", "bicubic")
    assert "0 frames made, 3 were there" in again.stdout


def test_a_unit_that_was_given_goes_before_the_layouts(tmp_path: Path) -> None:
    pair = find_frames(made.tum(tmp_path)).pairs[0]
    assert abs(float(read_frame(pair).low.depth.max()) - 2.0) < 1e-6
    assert abs(float(read_frame(pair, "mm").low.depth.max()) - 10.0) < 1e-6


def test_tum_of_unknown_origin_is_guessed(tmp_path: Path) -> None:
    made.tum(tmp_path)
    for name in ("rgb", "depth", "groundtruth"):
        text = (tmp_path / f"{name}.txt").read_text()
        (tmp_path / f"{name}.txt").write_text(text.replace("freiburg", "elsewhere"))
    frame = read_frame(find_frames(tmp_path).pairs[0])
    assert frame.low.guessed
    assert frame.camera is None


def test_calibration_of_an_azure_kinect_is_the_sdks() -> None:
    """Raw numbers of a device and what its SDK says of them at 640×576 and 1920×1080."""
    depth = [0.5122697949, 0.4945123196, 0.4921168387, 0.4921667278, 3.130577, 2.324939, 0.130416,
             3.458652, 3.350115, 0.662942, 0, 0, -0.000051, 0.000081]  # fmt: skip
    colour = [0.4967627227, 0.5108628273, 0.4709070623, 0.6274453998, 0.722746, -2.88559, 1.632723,
              0.602199, -2.719626, 1.565053, 0, 0, -0.000143, 0.000783]  # fmt: skip
    table = made.kinect_calibration()
    for part, numbers in zip(table["CalibrationInformation"]["Cameras"], (depth, colour)):
        part["Intrinsics"]["ModelParameters"] = numbers
    seen, measured, _ = read_calibration(table, (1920, 1080), (640, 576), "it")
    pixels = [(c.cx, c.cy, c.fx, c.fy) for c in (measured, seen)]
    assert np.allclose(pixels[0], (332.064270, 325.880615, 503.927643, 503.978729), atol=1e-3)
    assert np.allclose(pixels[1], (953.284424, 555.142456, 904.141541, 903.521362), atol=1e-3)
    assert measured.distortion[2:4] == (0.000081, -0.000051)


def test_float_depth_of_compressed_messages_is_metres() -> None:
    """32FC1 is stored as a quantised inverse: depth = a / (value - b)."""
    import struct

    from ducos.captures.bag_images import packed_depth

    truth = made.metres(0)
    a, b = 5e4, -100.0
    stored = np.where(truth > 0, np.rint(a / np.maximum(truth, 1e-3) + b), 0).astype(np.uint16)
    head = struct.pack("<iff", 0, a, b)
    read = packed_depth(head + made.png(stored), "32FC1; compressedDepth png", "it")
    assert np.abs(read - truth).max() < 1e-4


def test_a_layout_that_nobody_knows_says_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "scans").mkdir()
    made.save(tmp_path / "a.png", made.colours(0))
    for command in (["doctor", tmp_path], ["batch", tmp_path, "-o", tmp_path / "out"]):
        code, _, said = ducos_here(capsys, *command)
        assert code == 2
        assert "scans/" in said
        assert "1 files .png" in said
        assert "Stray Scanner" in said
    (tmp_path / "walk.xyz").write_bytes(b"something")
    code, _, said = ducos_here(capsys, "doctor", tmp_path / "walk.xyz")
    assert code == 2
    assert "no recording that is known" in said
    assert not (tmp_path / "out").exists()


def test_without_the_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    path = made.bag(tmp_path)
    monkeypatch.setitem(sys.modules, "rosbags", None)
    with pytest.raises(InputError, match=r"pip install 'ducos\[captures\]'"):
        find_frames(path)


def test_clouds_without_a_camera_are_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    made.named(tmp_path / "in")
    code, _, said = ducos_here(capsys, "batch", tmp_path / "in", "-o", tmp_path / "out", "--cloud")
    assert code == 2
    assert "--field-of-view" in said
    assert not (tmp_path / "out").exists()


def test_a_camera_beside_the_frames_of_7_scenes_layout_is_taken(tmp_path: Path) -> None:
    """As tools for fusion and labelling write it; the dataset itself has none."""
    path = made.seven_scenes(tmp_path)
    assert read_frame(find_frames(path).pairs[0]).camera.fx == pytest.approx(585 * made.W / 640)
    np.savetxt(path / "camera-intrinsics.txt", made.K)
    camera = read_frame(find_frames(path).pairs[0]).camera
    assert (camera.fx, camera.cx, camera.cy) == (made.FX, made.CX, made.CY)


def test_an_open3d_camera_of_any_name_is_taken(tmp_path: Path) -> None:
    path = made.redwood(tmp_path)
    (path / "trajectory.log").unlink()
    stated = next(path.glob("*.json"))
    stated.rename(path / "cam_params_realsense.json")
    (path / "notes.json").write_text('{"place": "kitchen"}')
    found = find_frames(path)
    assert found.layout == "redwood"
    assert read_frame(found.pairs[0]).camera.fx == made.FX


def test_stray_of_older_versions_has_one_camera_for_all(tmp_path: Path) -> None:
    path = made.stray(tmp_path / "stray")
    rows = (path / "odometry.csv").read_text().splitlines()
    short = "\n".join(",".join(row.split(",")[:9]) for row in rows)
    (path / "odometry.csv").write_text(short)
    frame = read_frame(find_frames(path).pairs[1])
    assert frame.camera.fx == made.FX
    assert frame.pose == pytest.approx(made.moved(1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a, b\n1, 2\n", "no columns"),
        ("", "no columns"),
        ("timestamp, frame, x, y, z, qx, qy, qz, qw\n1, 0, 0, 0, 0, 0, 0, 0\n", "line 2"),
    ],
)
def test_odometry_of_another_kind_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = made.stray(tmp_path / "stray")
    (path / "odometry.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        find_frames(path)


@pytest.mark.parametrize("kind", ["ros2", "mkv"])
def test_a_frame_that_cannot_be_read_leaves_the_others_alone(kind: str, tmp_path: Path) -> None:
    """A worker reads ahead in a thread of its own, to which an open recording belongs."""
    pairs = find_frames(RECORDINGS[kind][1](tmp_path)).pairs
    lost = replace(pairs[1], key=dict.fromkeys(pairs[1].key, 10**9))
    options = Options(model="bicubic", shift="off")
    summary = run_batch([pairs[0], lost, pairs[2]], tmp_path / "out", options=options)
    assert summary.made == 2
    (failure,) = summary.failures
    assert "thread" not in failure.reason
    assert "Error" not in failure.reason
