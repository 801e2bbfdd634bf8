"""Camera files as ROS, OpenCV, MATLAB, COLMAP and phones write them."""

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from PIL import Image
from scipy.io import savemat

from ducos.cameras import Camera, Extrinsics, read_camera, read_extrinsics, register
from ducos.doctor import check_direction
from ducos.errors import InputError
from ducos.files import DepthMap
from ducos.upscaling import super_resolve

K = np.array([[500.0, 0, 320], [0, 510, 240], [0, 0, 1]])
D = [0.1, -0.05, 0.001, 0.002, 0.01]
SIZE = (480, 640)
PLAIN, BENT = Camera(640, 480, 500, 510, 320, 240), Camera(640, 480, 500, 510, 320, 240, tuple(D))


def ros(path: Path) -> None:
    """As camera_calibration writes it."""
    about = {
        "image_width": 640, "image_height": 480, "camera_name": "rgb",
        "camera_matrix": {"rows": 3, "cols": 3, "data": K.ravel().tolist()},
        "distortion_model": "plumb_bob",
        "distortion_coefficients": {"rows": 1, "cols": 5, "data": D},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(about))


def opencv(path: Path) -> None:
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
    storage.write("image_width", 640)
    storage.write("image_height", 480)
    storage.write("camera_matrix", K)
    storage.write("distortion_coefficients", np.array(D).reshape(-1, 1))
    storage.release()


def toolbox(path: Path) -> None:
    kc = np.array(D)[:, None]
    savemat(
        path, {"fc": [[500.0], [510.0]], "cc": [[320.0], [240.0]], "kc": kc, "nx": 640, "ny": 480}
    )


FILES: dict[str, tuple[Callable[[Path], object], Camera]] = {
    "ros.yaml": (ros, BENT),
    "opencv.yml": (opencv, BENT),
    "opencv.xml": (opencv, BENT),
    "matrix.txt": (lambda p: np.savetxt(p, K), PLAIN),
    "four.txt": (lambda p: p.write_text("500 510 320 240"), PLAIN),
    "four.csv": (lambda p: p.write_text("# fx, fy, cx, cy\n500, 510, 320, 240\n"), PLAIN),
    "k.npy": (lambda p: np.save(p, K), PLAIN),
    "k.npz": (lambda p: np.savez(p, mtx=K, dist=np.array([D])), BENT),
    "k.mat": (lambda p: savemat(p, {"K": K}), PLAIN),
    "toolbox.mat": (toolbox, BENT),
    "cameras.txt": (
        lambda p: p.write_text("# Camera list\n1 PINHOLE 640 480 500 510 320.5 240.5\n"), PLAIN,
    ),
    "orb.yaml": (
        lambda p: p.write_text("%YAML:1.0\n---\nCamera.fx: 500.0\nCamera.fy: 510.0\n"
                               "Camera.cx: 320\nCamera.cy: 240\n"
                               "Camera.width: 640\nCamera.height: 480\n"), PLAIN,
    ),
    "sdk.json": (
        lambda p: p.write_text(json.dumps({"width": 640, "height": 480, "fx": 500, "fy": 510,
                                           "ppx": 320, "ppy": 240, "coeffs": [0] * 5})), PLAIN,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_the_camera_is_read(name: str, tmp_path: Path) -> None:
    write, expected = FILES[name]
    write(tmp_path / name)
    read = read_camera(tmp_path / name, "colour", SIZE)
    numbers = ("width", "height", "fx", "fy", "cx", "cy", "distortion")
    assert np.allclose(
        np.hstack([getattr(read, n) for n in numbers]),
        np.hstack([getattr(expected, n) for n in numbers]),
    )
    assert read.doubts() == []


def test_a_photograph_gives_a_guess_that_says_so(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0xA405] = 26
    Image.new("RGB", (640, 480)).save(tmp_path / "a.jpg", exif=exif)
    camera = read_camera(tmp_path / "a.jpg", "colour", SIZE)
    assert abs(camera.fx - 26 / 36 * 640) < 1e-6
    assert "guess" in camera.doubts()[0]
    Image.new("RGB", (640, 480)).save(tmp_path / "b.jpg")
    with pytest.raises(InputError, match="35 mm"):
        read_camera(tmp_path / "b.jpg", "colour", SIZE)


@pytest.mark.parametrize("suffix", [".txt", ".npy", ".yaml"])
def test_poses_are_read(suffix: str, tmp_path: Path) -> None:
    pose = np.eye(4)
    pose[0, 3] = -0.03
    path = tmp_path / f"pose{suffix}"
    if suffix == ".npy":
        np.save(path, pose)
    elif suffix == ".yaml":
        path.write_text(
            yaml.safe_dump({"rotation": pose[:3, :3].tolist(), "translation": [-0.03, 0, 0]})
        )
    else:
        np.savetxt(path, pose)
    assert np.allclose(read_extrinsics(path).translation, (-0.03, 0, 0))


@pytest.mark.parametrize(
    "suffix", [".yaml", ".xml", ".npy", ".npz", ".mat", ".txt", ".json", ".jpg"]
)
def test_damaged_files_are_one_sentence(suffix: str, tmp_path: Path) -> None:
    whole = {".npy": "k.npy", ".npz": "k.npz", ".mat": "k.mat", ".xml": "opencv.xml"}
    rng = np.random.default_rng(0)
    FILES[whole.get(suffix, "ros.yaml")][0](tmp_path / f"whole{suffix}")
    content = (tmp_path / f"whole{suffix}").read_bytes()
    for number in range(15):
        data = bytearray(content[: rng.integers(1, len(content))])
        data[rng.integers(len(data))] = rng.integers(256)
        path = tmp_path / f"{number}{suffix}"
        path.write_bytes(rng.bytes(300) if number % 3 == 0 else bytes(data))
        try:
            camera = read_camera(path, "colour", SIZE)
        except InputError:
            continue
        assert camera.fx > 0


def test_what_cannot_be_right_is_warned_of(tmp_path: Path) -> None:
    assert "outside" in Camera(640, 480, 500, 500, 900, 240).doubts()[0]
    assert "field of view" in Camera(640, 480, 50_000, 50_000, 320, 240).doubts()[0]
    np.savetxt(tmp_path / "k.txt", [[50, 0, 95], [0, 50, 20], [0, 0, 1]])
    image, depth = np.full((48, 64, 3), 0.5, np.float32), np.full((24, 32), 1.5, np.float32)
    depth[5:10] = 1.0
    result = super_resolve(
        image, depth, model="bicubic", rgb_intrinsics=tmp_path / "k.txt", shift="off"
    )
    assert any("principal point" in warning for warning in result.warnings)


def test_extrinsics_the_wrong_way_round_are_named() -> None:
    """A scene of boxes seen by two cameras 5 cm apart."""
    rng = np.random.default_rng(3)
    camera = Camera(320, 240, 250, 250, 159.5, 119.5)
    depth = np.full((240, 320), 2.5, np.float32)
    shade = np.full((240, 320), 0.3, np.float32)
    for _ in range(14):
        top, left = rng.integers(10, 190), rng.integers(30, 250)
        depth[top : top + 40, left : left + 45] = rng.uniform(0.8, 1.8)
        shade[top : top + 40, left : left + 45] = rng.uniform(0.4, 1.0)
    pose = Extrinsics(np.eye(3), np.array([-0.05, 0, 0]))
    whole = np.ones(depth.shape, bool)
    seen, _, _ = register(depth, whole, camera, camera, pose, depth.shape)
    # The colour camera sees the boxes where the registered depth has them.
    levels = {round(float(d), 4): float(s) for d, s in zip(depth.ravel(), shade.ravel())}
    known = np.array(sorted(levels))
    nearest = known[np.abs(seen[..., None] - known).argmin(-1)]
    image = np.vectorize(levels.get)(nearest).astype(np.float32)[..., None].repeat(3, 2)

    def low(way: Extrinsics) -> DepthMap:
        found, there, _ = register(depth, whole, camera, camera, way, depth.shape)
        return DepthMap(found, there, "m", 1.0, "")

    assert check_direction(image, low(pose), pose, low) is None
    wrong = check_direction(image, low(pose.inverted()), pose.inverted(), low)
    assert wrong is not None
    assert "wrong way round" in wrong


def test_yaml_that_unpacks_to_millions_of_numbers(tmp_path: Path) -> None:
    """Each line repeats the one before nine times."""
    lines = ["a0: &a0 [1,1,1,1,1,1,1,1,1]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    (tmp_path / "bomb.yaml").write_text("\n".join([*lines, "K: *a11"]))
    with pytest.raises(InputError, match=r"repeats parts by \*names"):
        read_camera(tmp_path / "bomb.yaml", "depth", (480, 640))
