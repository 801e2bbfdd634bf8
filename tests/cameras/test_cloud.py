"""Clouds and meshes: there and back, files other programs read, and pixels that float."""

import numpy as np
import pytest
import trimesh

from ducos import example, files
from ducos.cameras import (
    Cloud,
    flying_pixels,
    flying_share,
    mesh,
    orbit,
    point_cloud,
    render,
    write_glb,
    write_ply,
)
from ducos.cameras.cloud import reprojected
from ducos.cameras.intrinsics import Camera, Extrinsics
from ducos.errors import InputError
from ducos.upscaling import cloud_picture, super_resolve

CAMERA = Camera.from_field_of_view(64, 48, 60)


def scene() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A slanted wall with a box before it; each pixel has its own colour."""
    v, u = np.mgrid[:48, :64]
    depth = (3 / (1 + 0.002 * u + 0.001 * v)).astype(np.float32)
    depth[15:35, 20:40] = 1.2
    valid = np.ones(depth.shape, bool)
    valid[40:44, 50:55] = False
    rgb = np.stack([u / 63, v / 47, 0 * u], -1).astype(np.float32)
    return depth, valid, rgb


def test_points_project_back_onto_their_pixels():
    depth, valid, rgb = scene()
    cloud = point_cloud(depth, valid, rgb, CAMERA.scaled(640, 480))
    assert len(cloud) == valid.sum()  # a sharp edge loses nothing
    pixels, z = reprojected(cloud, CAMERA)
    v, u = np.nonzero(valid)
    assert np.abs(pixels - np.stack([u, v], 1)).max() < 1e-4
    assert np.array_equal(z.astype(np.float32), depth[valid])
    assert np.array_equal(cloud.colours[:, 0], np.rint(255 * u / 63))


def test_ply_is_read_by_another_program(tmp_path):
    depth, valid, rgb = scene()
    cloud = point_cloud(depth, valid, rgb, CAMERA)
    write_ply(tmp_path / "a.ply", cloud)
    read = trimesh.load(tmp_path / "a.ply")
    assert np.array_equal(np.asarray(read.vertices, np.float32), cloud.points)
    assert np.array_equal(np.asarray(read.colors)[:, :3], cloud.colours)
    with pytest.raises(InputError, match=r"\.ply"):
        write_ply(tmp_path / "a.xyz", cloud)
    with pytest.raises(InputError, match="no point"):
        write_ply(tmp_path / "b.ply", Cloud(cloud.points[:0], cloud.colours[:0]))
    assert [path.name for path in tmp_path.iterdir()] == ["a.ply"]


def test_mesh_never_spans_a_jump_and_faces_the_camera(tmp_path):
    depth, valid, rgb = scene()
    surface = mesh(depth, valid, rgb, CAMERA)
    vertices, triangles = surface.vertices, surface.triangles
    corners = vertices[triangles]
    assert np.ptp(corners[..., 2], axis=1).max() < 0.1
    # As many triangles as squares within one surface: all, less the box's outline and the hole.
    squares = 47 * 63
    torn, in_hole = 4 * 20 + 4, 5 * 6
    # Each corner of box and hole leaves up to two triangles of a torn square whole.
    whole = 2 * (squares - torn - in_hole)
    assert whole <= len(triangles) <= whole + 2 * 8
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert ((normals * corners[:, 0]).sum(1) < 0).all()

    surface = mesh(depth, valid, rgb, CAMERA)
    write_glb(tmp_path / "a.glb", surface)
    count = len(surface.triangles)
    read = trimesh.load(tmp_path / "a.glb", force="mesh")
    assert len(read.faces) == count == len(triangles)
    assert np.allclose(
        read.bounds, [[corners[..., 0].min(), -corners[..., 1].max(), -corners[..., 2].max()],
                      [corners[..., 0].max(), -corners[..., 1].min(), -corners[..., 2].min()]],
        atol=1e-5,
    )  # fmt: skip
    assert read.visual.vertex_colors.shape == (len(vertices), 4)


def test_flying_pixels_are_found_and_surfaces_kept():
    depth, valid, rgb = scene()
    assert not flying_pixels(depth, valid, CAMERA).any()
    dirty = depth.copy()
    dirty[15:35, 19] = 1.9  # a curtain between box and wall
    dirty[5, 5] = 0.4  # a speck alone in the air
    found = flying_pixels(dirty, valid, CAMERA)
    assert found[16:34, 19].all()
    assert found[5, 5]
    assert found.sum() <= 20 + 1
    kept = point_cloud(dirty, valid, rgb, CAMERA)
    assert len(kept) == valid.sum() - found.sum()
    assert len(point_cloud(dirty, valid, rgb, CAMERA, drop_flying=False)) == valid.sum()


def test_doubt_flies_at_an_edge_and_stays_on_a_wall():
    """Both sides of a step of a metre; a pixel not known to 4 % of its depth is left out there."""
    depth = np.full((20, 30), 2.0, np.float32)
    depth[:, 15:] = 3.0
    valid, rgb = np.ones(depth.shape, bool), np.zeros((*depth.shape, 3), np.float32)
    sigma = np.full_like(depth, 0.07)  # 3.5 % and 2.3 %
    assert not flying_pixels(depth, valid, CAMERA, sigma).any()
    sigma[:, 5] = sigma[:, 13] = sigma[:, 17] = 0.09  # 4.5 % and 3 %
    found = flying_pixels(depth, valid, CAMERA, sigma)
    assert found[:, 13].all()
    assert found.sum() == 20
    assert len(point_cloud(depth, valid, rgb, CAMERA, sigma=sigma)) == 29 * 20
    vertices = mesh(depth, valid, rgb, CAMERA, sigma=sigma).vertices
    assert len(vertices) == 29 * 20 - 20  # and column 14, left alone beside the jump, has no side


def test_a_pixel_between_two_surfaces_flies_unless_it_is_known():
    """A ledge, too flat to be a jump: kept if known to 2 % of its depth, else it hangs there."""
    depth = np.full((20, 30), 2.0, np.float32)
    depth[:, 14] = 2.06  # 3 % from the near surface, farther from the far one
    depth[:, 15:] = 3.0
    valid = np.ones(depth.shape, bool)
    flat = Camera.from_field_of_view(30, 20, 60)  # few pixels: a step of 3 % is a slope
    for doubt, flies in ((0.03, False), (0.05, True)):  # 1.5 and 2.4 %
        found = flying_pixels(depth, valid, flat, np.full_like(depth, doubt))
        assert found[:, 14].all() == flies
        assert found.sum() == 20 * flies


def test_a_guess_in_a_hole_flies_unless_it_is_known():
    """Far from any edge: what was measured stays, however uncertain; a guess has to be known."""
    depth, valid = np.full((20, 30), 2.0, np.float32), np.ones((20, 30), bool)
    measured = valid.copy()
    measured[5:10, 5:10] = False
    sigma = np.full_like(depth, 0.2)
    sigma[5:10, 5:8] = 0.05
    found = flying_pixels(depth, valid, CAMERA, sigma, measured)
    assert found[5:10, 8:10].all()
    assert found.sum() == 10
    rgb = np.zeros((20, 30, 3), np.float32)
    kept = point_cloud(depth, valid, rgb, CAMERA, sigma=sigma, measured=measured)
    assert len(kept) == 590
    vertices = mesh(depth, valid, rgb, CAMERA, sigma=sigma, measured=measured).vertices
    assert len(vertices) == 590


def test_sigma_leaves_a_cleaner_cloud_of_the_example():
    """As `--cloud` writes it: a smaller share of what is left at edges hangs in the air."""
    truth = files.read_depth(example.TRUTH, unit="mm").depth
    result = super_resolve(example.RGB, example.LOW, unit="mm")
    camera = Camera.from_field_of_view(640, 480, 60)
    shares = []
    for known in ({}, {"sigma": result.sigma}, result.doubts):
        kept = result.valid & ~flying_pixels(result.depth, result.valid, camera, **known)
        assert kept.mean() > 0.75
        shares.append(flying_share(result.depth, kept, truth, radius=4))
    assert max(shares[1:]) < shares[0]


def test_a_steep_floor_is_a_surface():
    """A floor seen at 10° is kept: 80° from the picture plane is where surfaces end."""
    v, _ = np.mgrid[:480, :640]
    camera = Camera.from_field_of_view(640, 480, 60)
    floor = np.where(v > 340, 0.3 / np.maximum((v - 239.5) / camera.fy, 1e-3), 0)
    floor = floor.astype(np.float32)
    assert not flying_pixels(floor, floor > 0, camera).any()


def test_flying_share_by_hand():
    truth = np.full((20, 20), 2.0, np.float32)
    truth[:, :10] = 1.0
    valid = np.ones(truth.shape, bool)
    assert flying_share(truth, valid, truth) == 0
    blurred = truth.copy()
    blurred[:, 9] = 1.5  # one of the four columns within two pixels of the edge
    assert flying_share(blurred, valid, truth) == pytest.approx(0.25)
    assert flying_share(blurred * 1.01, valid, truth) == pytest.approx(0.25)  # 1 % is close
    assert flying_share(np.full_like(truth, 1.4), valid, truth) == 1
    assert flying_share(blurred, valid, np.ones_like(truth)) == 0  # no edge


def test_filter_lowers_the_flying_share_of_the_example():
    """Bicubic bridges every edge; the filter takes away most of the bridge, and little else."""
    truth = files.read_depth(example.TRUTH, unit="mm").depth
    result = super_resolve(example.RGB, example.LOW, unit="mm", model="bicubic")
    camera = Camera.from_field_of_view(640, 480, 60)
    before = flying_share(result.depth, result.valid, truth, radius=4)
    flying = flying_pixels(result.depth, result.valid, camera)
    after = flying_share(result.depth, result.valid & ~flying, truth, radius=4)
    assert before > 0.9  # ×8: nothing near an edge is on a surface
    assert after < 0.9 * before
    assert flying_pixels(truth, truth > 0, camera).mean() < 0.02


def test_render_shows_points_where_they_are():
    points = np.array([[0, 0, 2], [0, 0, 1], [0.5, 0, 2]], np.float32)
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    camera = Camera(41, 31, 40.0, 40.0, 20.0, 15.0)
    picture = render(Cloud(points, colours), camera, Extrinsics())
    assert tuple(picture[15, 20]) == (0, 255, 0)  # the nearer one hides the red
    assert tuple(picture[15, 30]) == (0, 0, 255)
    assert (picture[0] == picture[0, 0]).all()


def test_orbit_turns_about_the_middle():
    depth, valid, rgb = scene()
    cloud = point_cloud(depth, valid, rgb, CAMERA)
    pivot = np.median(cloud.points, 0).astype(np.float64)
    seen = orbit(cloud, 30, 10).apply(pivot)
    assert seen == pytest.approx(pivot * (1, 1, 1.25))
    # Seen from the left and above, what is nearer than the middle moves right and down.
    nearer = orbit(cloud, 30, 10).apply(pivot - (0, 0, 0.5)) - seen
    assert nearer[0] > 0.1
    assert nearer[1] > 0.05


def test_picture_has_both_views():
    depth, valid, rgb = scene()
    picture = cloud_picture(point_cloud(depth, valid, rgb, CAMERA), CAMERA, width=200)
    assert picture.shape[1] == 400
    left, right = picture[30:, :200], picture[30:, 200:]
    shown = [(half != 24).any(-1).mean() for half in (left, right)]
    assert min(shown) > 0.3
    assert not np.array_equal(left, right)


def test_sizes_must_agree():
    depth, valid, rgb = scene()
    with pytest.raises(InputError, match="one size"):
        point_cloud(depth, valid, rgb[:10], CAMERA)
