"""Files of points, projected, spread and super-resolved."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ducos.cameras import Camera, Extrinsics, points_as_map
from ducos.data import open_dataset
from ducos.doctor import examine
from ducos.errors import InputError
from ducos.files import DepthMap, read_depth, read_points
from ducos.upscaling import super_resolve
from tests.commands import ducos_here
from tests.files.point_files import POINT_FILES, colmap_text, csv, pcd, ply

CAMERA = Camera(64, 48, 60.0, 60.0, 31.5, 23.5)


def places(count: int = 50) -> np.ndarray:
    rng = np.random.default_rng(0)
    u, v, z = rng.uniform(0, 63, count), rng.uniform(0, 47, count), rng.uniform(1, 3, count)
    return CAMERA.directions(u, v) * z[:, None]


@pytest.mark.parametrize("name", POINT_FILES)
def test_every_kind_of_file_holds_the_same_points(name: str, tmp_path: Path) -> None:
    there = read_points(POINT_FILES[name](tmp_path, places()))
    np.testing.assert_allclose(there.places, places(), atol=1e-5)


def test_a_declared_size_is_not_believed(tmp_path: Path) -> None:
    for path in (ply(tmp_path / "p.ply", places()), pcd(tmp_path / "p.pcd", places())):
        for lie in (b"5000000000", b"51"):
            content = path.read_bytes().replace(b"vertex 50", b"vertex " + lie)
            (tmp_path / f"lie{path.suffix}").write_bytes(
                content.replace(b"POINTS 50", b"POINTS " + lie)
            )
            with pytest.raises(InputError, match="too short"):
                read_points(tmp_path / f"lie{path.suffix}")
    bomb = pcd(tmp_path / "bomb.pcd", np.zeros((100_000, 3)), "binary_compressed")
    bomb.write_bytes(bomb.read_bytes()[:400])
    with pytest.raises(InputError, match="truncated"):
        read_points(bomb)


def test_points_lie_where_the_camera_sees_them(tmp_path: Path) -> None:
    known = np.array([[0.0, 0.0, 2.0], [0.5, -0.25, 1.0], [0.0, 0.0, 5.0], [0.0, 0.0, -1.0]])
    low, sentence = points_as_map(ply(tmp_path / "p.ply", known), (48, 64), CAMERA)
    assert low.depth[24, 32] == 2  # the nearer of two; what is behind the camera is not seen
    assert low.depth[round(23.5 - 15), round(31.5 + 30)] == 1
    assert low.valid.sum() == 2
    assert "3 of 4 points" in sentence
    turned = Extrinsics(np.diag([1.0, -1.0, -1.0]), np.array([0.0, 0.0, 4.0]))
    other, _ = points_as_map(ply(tmp_path / "p.ply", known), (48, 64), CAMERA, turned)
    assert other.depth[24, 32] == 2  # 4 - 2


def test_a_pose_the_wrong_way_round_is_named(tmp_path: Path) -> None:
    path = ply(tmp_path / "p.ply", places() + np.array([0, 0, 50]))
    to_camera = Extrinsics(translation=np.array([0.0, 0.0, -50.0]))
    assert points_as_map(path, (48, 64), CAMERA, to_camera)[0].valid.sum() > 40
    behind = ply(tmp_path / "p.ply", places() - np.array([0, 0, 50]))
    with pytest.raises(InputError, match=r"inverted .* do: .*colour_to_depth"):
        points_as_map(behind, (48, 64), CAMERA, to_camera)


def test_colmap_knows_which_points_an_image_shows(tmp_path: Path) -> None:
    points = colmap_text(tmp_path / "points3D.txt", places(5))
    images = tmp_path / "images.txt"
    images.write_text(
        "# IMAGE_ID, QW, QX, QY, QZ, TX, TY, TZ, CAMERA_ID, NAME\n"
        "1 1 0 0 0 0 0 0 1 other.png\n1 1 4\n"
        "2 1 0 0 0 0 0 0.5 1 walk/a b.png\n10 10 0 20 20 2 30 30 -1\n"
    )
    low, _ = points_as_map(points, (48, 64), CAMERA, images, image="/x/a b.png")
    np.testing.assert_allclose(
        sorted(low.depth[low.valid]), sorted(places(5)[[0, 2], 2] + 0.5), rtol=1e-4
    )
    with pytest.raises(InputError, match=r"no line for c\.png"):
        points_as_map(points, (48, 64), CAMERA, images, image="c.png")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("30 -1", "30 nan"),
        ("30 -1", "30 1e300"),
        ("0.5 1", "x 1"),
        ("2 1 0", "2 9 0"),
        ("2 1 0", "2 nan 0"),
    ],
)
def test_damaged_poses_of_colmap_are_one_sentence(tmp_path: Path, old: str, new: str) -> None:
    points = colmap_text(tmp_path / "points3D.txt", places(5))
    images = tmp_path / "images.txt"
    images.write_text("2 1 0 0 0 0 0 0.5 1 a.png\n20 20 2 30 30 -1\n".replace(old, new))
    with pytest.raises(InputError, match=r"a\.png"):
        points_as_map(points, (48, 64), CAMERA, images, image="a.png")


def test_a_table_of_pixels_needs_no_camera(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("u,v,depth\n10,20,1500\n30,5,2500\n")
    low, _ = points_as_map(tmp_path / "p.csv", (48, 64), unit="mm")
    assert low.depth[20, 10] == np.float32(1.5)
    assert low.valid.sum() == 2
    with pytest.raises(InputError, match="rgb-intrinsics"):
        points_as_map(csv(tmp_path / "q.csv", places()), (48, 64))


@pytest.fixture(scope="module")
def scene() -> tuple[np.ndarray, np.ndarray, DepthMap]:
    """Colours, ground truth, and 300 points of it (0.4 % of the pixels)."""
    pair = open_dataset("shapes:1")[0]
    rng = np.random.default_rng(0)
    valid = np.zeros(pair.target.size, bool)
    valid[rng.choice(valid.size, 300, replace=False)] = True
    valid = valid.reshape(pair.target.shape)
    return (
        pair.rgb,
        pair.target,
        DepthMap(np.where(valid, pair.target, 0).astype(np.float32), valid, "m", 1.0, "given"),
    )


def test_points_are_spread_and_not_smeared(scene: tuple) -> None:
    rgb, truth, low = scene
    assert low.is_scattered
    result = super_resolve(rgb, low, model="bicubic")
    assert result.low is low
    assert any("spread" in note for note in result.notes)
    # As points, not as a dense map: what lies between them is inferred.
    assert (result.source == 1).sum() == 300
    from scipy.ndimage import distance_transform_edt

    nearest = low.depth[
        tuple(distance_transform_edt(~low.valid, return_distances=False, return_indices=True))
    ]
    ours, theirs = (np.sqrt(np.square(x - truth).mean()) for x in (result.depth, nearest))
    assert ours < 0.8 * theirs
    kept = super_resolve(rgb, low, model="bicubic", keep_holes=True)
    assert np.array_equal(kept.valid, low.valid)


def test_no_network_is_asked_unless_it_is_named(scene: tuple) -> None:
    """From pixel to pixel is nearer to the ground truth than with a network, and points stay."""
    rgb, truth, low = scene
    ours = super_resolve(rgb, low)
    assert ours.model == "membrane"
    named = super_resolve(rgb, low, model="ducos-tiny")
    assert named.model.startswith("ducos-tiny")
    error, other = (np.sqrt(np.square(each.depth - truth).mean()) for each in (ours, named))
    assert error < other
    assert np.abs(ours.depth - low.depth)[low.valid].max() < 0.05
    assert low.depth[low.valid].min() <= ours.depth.min() <= ours.depth.max() <= 1.001 * truth.max()


@pytest.mark.parametrize("shift", ["off", (3, -2)])
def test_points_of_a_coarse_map_lie_in_the_middle_of_its_pixels(shift: object) -> None:
    """Also moved: the result is moved back onto the image."""
    rgb = np.full((48, 64, 3), 0.5, np.float32)
    depth = np.zeros((24, 32), np.float32)
    depth[6, 8], depth[18, 24] = 1, 3
    result = super_resolve(rgb, DepthMap(depth, depth > 0, "m", 1.0, ""), shift=shift)
    right, down = (0, 0) if shift == "off" else shift
    assert result.depth[13 - down, 17 - right] == pytest.approx(1, abs=0.05)
    assert result.depth[37 - down, 49 - right] == pytest.approx(3, abs=0.05)


def test_a_map_with_holes_is_no_set_of_points() -> None:
    plane = np.zeros((60, 80), np.float32)
    plane[20:34, 20:40] = 2  # one object of 6 %
    assert not DepthMap(plane, plane > 0, "m", 1.0, "").is_scattered
    lines = np.zeros((64, 80), np.float32)
    lines[::16] = 2  # sweeps of a LiDAR
    assert DepthMap(lines, lines > 0, "m", 1.0, "").is_scattered
    assert not DepthMap(
        np.ones((2, 2), np.float32), np.ones((2, 2), bool), "m", 1.0, ""
    ).is_scattered


def test_the_doctor_knows_points(scene: tuple, tmp_path: Path) -> None:
    rgb, _, low = scene
    report = examine(rgb, low)
    found = report.find("scattered")
    assert found is not None
    assert found.numbers["points"] == 300
    assert report.sound
    path = ply(tmp_path / "p.ply", places(5))
    few = examine(np.zeros((480, 640, 3), np.float32), path, camera=CAMERA)
    assert few.find("scattered").severity == "warning"
    assert examine(rgb, path).find("unreadable") is not None  # and it says that a camera is needed


def test_the_command_takes_points(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 255, (48, 64, 3), np.uint8)).save(tmp_path / "rgb.png")
    (tmp_path / "camera.json").write_text(
        json.dumps({"width": 64, "height": 48, "fx": 60, "fy": 60, "cx": 31.5, "cy": 23.5})
    )
    (tmp_path / "pose.txt").write_text("1 0 0 0\n0 1 0 0\n0 0 1 0.5\n0 0 0 1\n")
    ply(tmp_path / "p.ply", places())
    base = ["upscale", tmp_path / "rgb.png", tmp_path / "p.ply", "-o", tmp_path / "out.npy"]
    cameras = ["--rgb-intrinsics", tmp_path / "camera.json", "--extrinsics", tmp_path / "pose.txt"]
    code, said, _ = ducos_here(
        capsys, *base, *cameras, "--model", "bicubic", "--cloud", tmp_path / "c.ply"
    )
    assert code == 0
    assert "50 of 50 points" in said
    depth = read_depth(tmp_path / "out.npy", "m").depth
    assert depth.shape == (48, 64)
    assert 1.4 < depth.min() < depth.max() < 3.6  # moved back by half a metre
    code, _, said = ducos_here(capsys, *base[:-1], tmp_path / "new.npy", "--model", "bicubic")
    assert (code, "--rgb-intrinsics" in said) == (2, True)
    Image.fromarray(np.full((12, 16), 1500, np.uint16)).save(tmp_path / "d.png")
    code, _, said = ducos_here(
        capsys,
        "upscale",
        tmp_path / "rgb.png",
        tmp_path / "d.png",
        "-o",
        tmp_path / "o.png",
        *cameras,
    )
    assert (code, "registration needs all" in said) == (2, True)
