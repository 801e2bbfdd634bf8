"""The scene generator: forms, placement, camera, bookkeeping; and small renders where bpy is."""

import json
import os
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ducos.errors import InputError
from ducos.synth import blender, prints
from ducos.synth.assets import Asset, Catalogue, licence_table, role_of
from ducos.synth.camera import Camera, Rays, choose_camera, develop, judge, look_at
from ducos.synth.drapery import Solid, draped
from ducos.synth.furniture import bookcase, table
from ducos.synth.generate import (
    Manifest,
    _keep_settings,
    core_keeper,
    generate,
    write_licences,
)
from ducos.synth.materials import lacquer, linear, wood
from ducos.synth.mesh import join, polygons
from ducos.synth.objects import SMALL_OBJECTS
from ducos.synth.palette import Palette
from ducos.synth.placement import HeightMap, at, drop
from ducos.synth.prepare import licence_name, prepare_assets, read_catalogue
from ducos.synth.scene import Scene
from ducos.synth.shaders import PATTERNS
from ducos.synth.shapes import box, cylinder, ellipsoid, lathe, tube
from ducos.synth.walls import Opening, four_walls, wall_mesh
from ducos.synth.wavefront import read_model
from ducos.synth.worker import build_scene, encode_depth, kind_of, view_files, view_id

needs_blender = pytest.mark.skipif(find_spec("bpy") is None, reason="bpy is not installed")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(scope="module")
def palette() -> Palette:
    return Palette(np.random.default_rng(1))


# Forms --------------------------------------------------------------------------------------


def enclosed_volume(mesh) -> float:
    """Signed volume of a closed mesh: wrong face directions or gaps would change it."""
    a, b, c = (mesh.vertices[column].astype(np.float64) for column in mesh.triangles().T)
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def test_forms_enclose_their_exact_volume(rng):
    material = lacquer(rng)
    assert enclosed_volume(box((0.2, 0.3, 0.4), material)) == pytest.approx(0.024, rel=1e-5)
    beveled = enclosed_volume(box((0.2, 0.3, 0.4), material, bevel=0.01))
    # A chamfer of leg b cuts b^2/2 off each edge and leaves 12 edges of lengths 0.2, 0.3, 0.4.
    assert beveled == pytest.approx(0.024 - 4 * 0.9 * 0.01**2 / 2, rel=2e-3)
    ball = ellipsoid((0.2, 0.2, 0.2), material)
    assert abs(enclosed_volume(ball)) == pytest.approx(4 / 3 * np.pi * 0.1**3, rel=0.03)
    pole = tube([(0, 0, 0), (0, 0, 1)], 0.05, material, sides=32)
    assert abs(enclosed_volume(pole)) == pytest.approx(np.pi * 0.05**2, rel=0.02)


def test_box_puts_each_material_on_the_named_side(rng):
    plain, label = lacquer(rng), lacquer(rng)
    mesh = box((1, 1, 1), plain, sides={"front": label})
    (labelled,) = np.flatnonzero(mesh.slots == 1)
    corners = mesh.corners[4 * labelled : 4 * labelled + 4]
    assert mesh.materials[1] is label
    assert np.allclose(mesh.vertices[corners][:, 1], -0.5)


def test_grain_runs_along_the_longer_side_of_a_board(rng):
    standing = box((0.1, 0.02, 2.0), wood(rng))
    front = standing.metric[8:12]  # third side of BOX_SIDES
    assert np.ptp(front[:, 0]) == pytest.approx(2.0, abs=1e-5)
    assert np.ptp(front[:, 1]) == pytest.approx(0.1, abs=1e-5)


def test_join_keeps_geometry_and_shares_materials(rng):
    one, two = lacquer(rng), lacquer(rng)
    mesh = join([box((1, 1, 1), one), box((1, 1, 1), two, (3, 0, 0)), box((1, 1, 1), one)])
    assert mesh.materials == (one, two)
    assert np.array_equal(mesh.slots.reshape(3, 6)[:, 0], [0, 1, 0])
    assert np.allclose(mesh.bounds[1], [3.5, 0.5, 1.0])
    assert mesh.corners.max() == len(mesh.vertices) - 1


def test_lathe_flat_top_has_straight_pattern(rng):
    disc = cylinder(0.5, 0.04, wood(rng))
    faces = disc.vertices[disc.corners].reshape(-1, 4, 3)
    top = (faces[:, :, 2] > 0.0399).all(1)
    assert top.sum() == 24
    assert np.allclose(disc.metric.reshape(-1, 4, 2)[top], faces[top][..., :2], atol=1e-6)


def test_surface_points_lie_on_the_surface(rng):
    points = box((0.2, 0.4, 0.6), lacquer(rng)).surface_points(rng)
    distance = np.abs(np.abs(points - [0, 0, 0.3]) - [0.1, 0.2, 0.3]).min(1)
    assert distance.max() < 1e-6


@pytest.mark.parametrize("entry", SMALL_OBJECTS, ids=lambda entry: entry[1].__name__)
def test_every_small_object_is_sound(entry, rng, palette):
    for _ in range(3):
        mesh = entry[1](rng, palette)
        assert np.isfinite(mesh.vertices).all()
        assert 0.005 < mesh.size.max() < 1.2
        assert abs(float(mesh.bounds[0][2])) < 0.12
        assert mesh.corners.max() < len(mesh.vertices)
        assert mesh.slots.max() < len(mesh.materials)
        assert mesh.uv.shape == mesh.metric.shape == (len(mesh.corners), 2)
        assert {material.pattern for material in mesh.materials} <= set(PATTERNS)


def test_shelves_carry_their_load_inside_the_case(rng, palette):
    mesh = bookcase(rng, palette)
    low, high = mesh.bounds
    assert low[2] == pytest.approx(0, abs=1e-5)
    assert high[1] - low[1] < 0.5
    assert len(mesh.materials) > 5


# Placement ----------------------------------------------------------------------------------


def test_box_lands_on_floor_then_on_box(rng):
    ground = HeightMap(2, 2)
    cube = box((0.3, 0.3, 0.3), lacquer(rng))
    first = drop(rng, ground, cube, at(0, 0), angle=0.0)
    second = drop(rng, ground, cube, at(0, 0), angle=0.0)
    assert first is not None
    assert second is not None
    assert first[2, 3] == pytest.approx(0.0, abs=1e-4)
    assert second[2, 3] == pytest.approx(0.3, abs=1e-4)


def test_nothing_balances_on_an_edge(rng):
    ground = HeightMap(2, 2)
    cube = box((0.3, 0.3, 0.3), lacquer(rng))
    assert drop(rng, ground, cube, at(0, 0), angle=0.0) is not None
    assert drop(rng, ground, cube, at(0.25, 0), tries=1, angle=0.0) is None


def test_nothing_rests_on_an_uneven_top(rng):
    ground = HeightMap(2, 2)
    bottle = lathe([(0, 0), (0.05, 0), (0.05, 0.2), (0.01, 0.25), (0, 0.25)], lacquer(rng))
    assert drop(rng, ground, bottle, at(0, 0), level_top=0.6) is not None
    plate = box((0.06, 0.06, 0.01), lacquer(rng))
    assert drop(rng, ground, plate, at(0, 0), tries=5, min_support=0.0) is None


def test_desk_top_is_found_below_its_mirror(rng):
    top = box((1.0, 0.5, 0.7), lacquer(rng))
    mirror = box((0.6, 0.03, 0.8), lacquer(rng), (0, 0.2, 0.7))
    footprint = HeightMap(2, 2).footprint(join([top, mirror]).surface_points(rng))
    height, share = footprint.main_level()
    assert height == pytest.approx(0.7, abs=1e-3)
    assert 0.8 < share < 1
    assert footprint.level_share() < 0.2


def test_nothing_leaves_the_room(rng):
    cube = box((0.5, 0.5, 0.5), lacquer(rng))
    assert drop(rng, HeightMap(1, 1), cube, at(0.4, 0), tries=3) is None


def test_table_slides_over_a_stool_placed_before(rng, palette):
    ground = HeightMap(3, 3)
    stool = box((0.3, 0.3, 0.45), lacquer(rng))
    assert drop(rng, ground, stool, at(0, 0), on_floor=True) is not None
    desk = table(np.random.default_rng(0), palette, (1.4, 1.4), (0.8, 0.8), (0.75, 0.75))
    pose = drop(rng, ground, desk, at(0, 0), angle=0.0, on_floor=True, min_support=0)
    assert pose is not None
    assert ground.height_at(0, 0) == pytest.approx(0.75, abs=0.01)


def test_wall_has_a_hole_and_knows_it(rng):
    wall = four_walls(4, 3)[0]
    hole = Opening(1.0, 2.0, 0.8, 2.0)
    mesh = wall_mesh(wall, 2.5, [hole], lacquer(rng))
    triangles = mesh.vertices[mesh.triangles()]
    area = np.linalg.norm(
        np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]), axis=1
    )
    assert area.sum() / 2 == pytest.approx(4 * 2.5 - 1.0 * 1.2, rel=1e-5)
    wall.taken.append(hole)
    assert wall.free(1.2, 1.8, 0.0, 0.7)
    assert not wall.free(1.2, 1.8, 0.0, 1.0)


@pytest.mark.parametrize("index", range(4))
def test_objects_against_a_wall_face_the_room(index):
    wall = four_walls(4, 3)[index]
    pose = wall.stand(1.0, 0.2)
    assert np.allclose(pose[:3, :3] @ [0, -1, 0], [*wall.normal, 0])
    assert np.linalg.det(pose[:3, :3]) == pytest.approx(1)
    assert abs(pose[0, 3]) < 2
    assert abs(pose[1, 3]) < 1.5


# Cloth --------------------------------------------------------------------------------------


def test_a_solid_pushes_points_to_its_nearest_face():
    solid = Solid(1.0, 2.0, 0.5, width=0.4, depth=0.2)
    points = np.array(
        [[1.0, 2.0, 0.49], [1.19, 2.0, 0.1], [1.0, 1.91, 0.1], [1.3, 2.0, 0.1], [1.0, 2.0, 0.6]]
    )
    inside = solid.push_out(points, margin=0.01)
    assert inside.tolist() == [True, True, True, False, False]
    expected = [[1.0, 2.0, 0.51], [1.21, 2.0, 0.1], [1.0, 1.89, 0.1], [1.3, 2.0, 0.1], [1, 2, 0.6]]
    assert points == pytest.approx(np.array(expected))


def test_a_turned_solid_pushes_along_its_own_sides():
    points = np.array([[0.0, 0.19, 0.1]])
    assert Solid(0, 0, 1.0, width=0.4, depth=2.0, angle=np.pi / 2).push_out(points, 0.0).all()
    assert points == pytest.approx(np.array([[0.0, 0.2, 0.1]]))


def test_cloth_falls_over_a_table_and_stays_cloth(rng):
    """It lies on the top, hangs down beside it, enters nothing and is hardly stretched."""
    table = Solid(0.2, -0.1, 0.7, width=0.5, depth=0.5)
    fallen = draped(rng, wood(rng), [table], (0.2, -0.1), (0.9, 0.8), slack=0.05)
    x, y, z = fallen.vertices.T
    on_top = (np.abs(x - 0.2) < 0.2) & (np.abs(y + 0.1) < 0.2)
    assert z[on_top].min() > 0.7
    assert z[on_top].max() < 0.8
    assert z.min() < 0.6  # what hangs over hangs down
    within = (np.abs(x - 0.2) < 0.25) & (np.abs(y + 0.1) < 0.25) & (z < 0.7)
    assert not within.any()
    a, b, c, d = fallen.vertices[fallen.corners.reshape(-1, 4)].transpose(1, 0, 2)
    area = 0.5 * np.linalg.norm(np.cross(c - a, d - b), axis=1).sum()
    assert area == pytest.approx(0.72, rel=0.1)


# Whole scenes -------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "kind"), [(4, None), (5, None), (6, "still life")])
def test_scene_is_furnished_and_repeatable(seed, kind):
    scene, again = (build_scene(seed, 0, Catalogue(), kind) for _ in range(2))
    assert scene.kind == (kind or kind_of(seed))
    assert len(scene.things) > 25
    assert scene.lights
    assert scene.sources == set()
    width, depth, height = scene.size
    for thing in scene.things:
        if not thing.outdoor:
            points = thing.mesh.vertices @ thing.pose[:3, :3].T + thing.pose[:3, 3]
            assert points[:, 2].min() > -0.15
            assert points[:, 2].max() < height + 0.15
            assert np.abs(points[:, :2]).max() < max(width, depth) / 2 + 0.4
    for thing, twin in zip(scene.things, again.things):
        assert np.array_equal(thing.mesh.vertices, twin.mesh.vertices)
        assert np.array_equal(thing.pose, twin.pose)
    other = build_scene(seed, 1, Catalogue(), kind)
    assert scene.size != other.size


# Camera -------------------------------------------------------------------------------------


def test_camera_geometry():
    pose = look_at(np.array([1.0, -2.0, 1.5]), np.array([1.0, 3.0, 1.5]))
    camera = Camera(pose, np.radians(90))
    assert np.allclose(pose[:3, :3] @ [0, 0, -1], [0, 1, 0])
    assert np.allclose(pose[:3, :3] @ [0, 1, 0], [0, 0, 1])
    assert camera.intrinsics((480, 640)) == pytest.approx((320, 320, 319.5, 239.5))
    rays = camera.rays((480, 640), 3, 3)
    assert np.allclose(rays[4], [0, 1, 0], atol=1e-9)
    assert rays[5][0] / rays[5][1] == pytest.approx(0.95)  # 90 degrees: the rim is at slope 1


def room_caster(size: tuple[float, float, float]):
    """Distances to the inside of an empty box room; each wall is a thing of its own."""

    def cast(origin: Rays, directions: Rays) -> tuple[Rays, list[str]]:
        low = np.array([-size[0] / 2, -size[1] / 2, 0.0])
        high = np.array([size[0] / 2, size[1] / 2, size[2]])
        with np.errstate(divide="ignore"):
            reach = np.where(directions > 0, high - origin, low - origin) / directions
        axis = reach.argmin(1)
        return reach.min(1), [f"{a}{d[a] > 0}" for a, d in zip(axis, directions)]

    return cast


def test_chosen_camera_is_inside_and_sees_far_enough(rng):
    scene = Scene.empty("room", 5, 4, 2.5)
    scene.ground.heights[100:150, 100:150] = 0.8
    cast = room_caster(scene.size)
    camera = choose_camera(rng, scene, (48, 64), cast)
    assert camera is not None
    x, y, z = camera.pose[:3, 3]
    assert abs(x) < 2.5
    assert abs(y) < 2
    assert 0.9 <= z <= 1.75
    assert np.radians(45) <= camera.fov <= np.radians(80)
    assert judge(camera, scene, (48, 64), cast) is not None


def test_camera_refuses_open_sky_and_close_ups(rng):
    scene = Scene.empty("room", 5, 4, 2.5)
    camera = Camera(look_at(np.array([0.0, 0, 1.2]), np.array([1.0, 0.5, 0.5])), 1.0)

    def sky(origin: Rays, directions: Rays) -> tuple[Rays, list[str]]:
        return np.full(len(directions), np.inf), [""] * len(directions)

    def close(origin: Rays, directions: Rays) -> tuple[Rays, list[str]]:
        return np.full(len(directions), 0.1), [str(k % 5) for k in range(len(directions))]

    assert judge(camera, scene, (48, 64), sky) is None
    assert judge(camera, scene, (48, 64), close) is None
    scene.ground.heights[:] = 2.0  # nowhere to stand
    assert choose_camera(rng, scene, (48, 64), close) is None


def test_photograph_is_exposed_whatever_the_light(rng):
    ramp = np.linspace(0.2, 1.0, 64, dtype=np.float32)[None, :, None] * np.ones((48, 1, 3))
    for strength in (1e-3, 1.0, 1e3):
        image = develop((ramp * strength).astype(np.float32), np.random.default_rng(3))
        assert image.dtype == np.uint8
        assert image.shape == (48, 64, 3)
        assert 60 < image.mean() < 200
        assert image[:, -8:].mean() > image[:, :8].mean() + 30  # still a ramp
    dark, bright = (
        develop((ramp * s).astype(np.float32), np.random.default_rng(3)) for s in (1, 50)
    )
    assert np.abs(dark.astype(int) - bright).mean() < 2  # auto-exposure undoes the light's strength


def test_photograph_has_noise_and_is_repeatable(rng):
    flat = np.full((64, 64, 3), 0.3, np.float32)
    shots = [develop(flat, np.random.default_rng(k)) for k in range(8)]
    grain = [np.std(shot[28:36, 28:36].astype(float), axis=(0, 1)).mean() for shot in shots]
    assert max(grain) > 1
    assert np.ptp(grain) > 0.5  # cameras differ
    assert np.array_equal(shots[3], develop(flat, np.random.default_rng(3)))


# Prints and materials -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["poster", "cover", "spine", "page", "screen", "motif", "lattice"])
def test_prints_have_content(name, rng):
    for _ in range(4):
        image = getattr(prints, name)(rng)
        assert image.dtype == np.uint8
        assert image.ndim == 3
        assert image.std() > 1


def test_noise_wraps_around(rng):
    field = prints.noise(rng, 64, 64)
    seam = np.abs(field[:, 0] - field[:, -1]).mean()
    inside = np.abs(np.diff(field, axis=1)).mean()
    assert seam < 2 * inside
    assert field.min() == 0
    assert field.max() == 1


def test_linear_undoes_srgb():
    assert linear((0.0, 1.0, 0.5)) == pytest.approx((0, 1, 0.21404114), abs=1e-6)


# Assets -------------------------------------------------------------------------------------

OBJ = """mtllib thing.mtl
v 0 0 0
v 2 0 0
v 2 4 0
v 0 4 0
v 0 0 1
v 2 0 1
v 2 4 1
v 0 4 1
vt 0 0
vt 1 0
vt 1 1
vt 0 1
usemtl painted
f 1/1 2/2 3/3 4/4
f 5/1 6/2 7/3 8/4
usemtl plain
f -8 -7 -3 -4
f 3//1 4//1 8//1 7//1
"""
MTL = "newmtl painted\nKd 1 1 1\nmap_Kd skin.png\nnewmtl plain\nKd 0.5 0.25 0.125\nNs 200\n"


def write_object(folder: Path, obj: str = "thing.obj", texture: str = "skin.png") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / obj).write_text(OBJ)
    (folder / "thing.mtl").write_text(MTL)
    Image.fromarray(np.full((8, 8, 3), 200, np.uint8)).save(folder / texture)


def test_obj_reader_handles_textures_relative_indices_and_materials(tmp_path):
    write_object(tmp_path)
    model = read_model(tmp_path / "thing.obj")
    assert model.vertices.shape == (8, 3)
    assert model.corners[8:12].tolist() == [0, 1, 5, 4]
    assert model.uv[:4].tolist() == [[0, 0], [1, 0], [1, 1], [0, 1]]
    assert model.slots.tolist() == [0, 0, 1, 1]
    assert model.surfaces[0].texture == tmp_path / "skin.png"
    assert model.surfaces[1].colour == (0.5, 0.25, 0.125)


@pytest.fixture
def downloads(tmp_path) -> Path:
    """A furniture library, a sky package, scanned objects and textures, in their real layouts."""
    folder = tmp_path / "downloads"
    write_object(folder / "unpacked" / "lib" / "thing")
    properties = (
        "id=Test\nlicense=Creative Commons Attribution 3.0 license\n"
        "name#1=Oak table\ncategory#1=Living room\nmodel#1=/lib/thing/thing.obj\n"
        "width#1=120\ndepth#1=60\nheight#1=75\ncreator#1=Zo\\u00eb\ndoorOrWindow#1=false\n"
        "name#2=Spruce\ncategory#2=Exterior\nmodel#2=/lib/thing/thing.obj\n"
        "width#2=100\ndepth#2=100\nheight#2=300\n"
    )
    (folder / "unpacked" / "PluginFurnitureCatalog.properties").write_text(properties)
    with zipfile.ZipFile(folder / "test.sh3f", "w") as archive:
        for path in (folder / "unpacked").rglob("*"):
            archive.write(path, path.relative_to(folder / "unpacked"))
    (folder / "package" / "hdri").mkdir(parents=True)
    (folder / "package" / "hdri" / "dawn.exr.js").write_text(
        'export default "data:application/octet-stream;base64,aGVsbG8="'
    )
    write_object(folder / "scans" / "Toy_Car", "model.obj", "texture.png")
    lines = (folder / "scans" / "Toy_Car" / "model.obj").read_text().splitlines()
    small = [
        "v " + " ".join(str(float(v) * 0.05) for v in line.split()[1:])
        if line.startswith("v ")
        else line
        for line in lines
    ]
    (folder / "scans" / "Toy_Car" / "model.obj").write_text("\n".join(small))
    (folder / "pictures" / "floor").mkdir(parents=True)
    noise = np.random.default_rng(0).integers(0, 255, (2000, 1000, 3), np.uint8)
    Image.fromarray(noise).save(folder / "pictures" / "floor" / "planks.png")
    Image.fromarray(noise[:64, :64]).save(folder / "pictures" / "red_brick.jpg")
    return folder


@pytest.fixture
def assets(tmp_path, downloads) -> Path:
    folder = tmp_path / "assets"
    prepare_assets(
        folder,
        furniture=[downloads / "test.sh3f"],
        hdri=downloads / "package",
        scanned=downloads / "scans",
        textures={downloads / "pictures": "CC0-1.0"},
    )
    return folder


def test_prepare_reads_every_source(assets):
    catalogue = Catalogue.load(assets)
    kinds = {(a.kind, a.role): a for a in catalogue.assets.values()}
    assert set(kinds) == {
        ("model", "table"),
        ("model", "scanned"),
        ("hdri", "hdri"),
        ("texture", "floor"),
        ("texture", "wall"),
    }
    table_asset = kinds["model", "table"]
    assert table_asset.author == "Zoë"
    assert table_asset.licence == "CC-BY-3.0"
    mesh = catalogue.load_model(table_asset)
    assert mesh.size == pytest.approx([1.2, 0.6, 0.75], abs=1e-5)
    assert mesh.bounds[0][2] == pytest.approx(0)
    assert mesh.materials[0].image is not None
    assert mesh.materials[1].colours[0] == pytest.approx(linear((0.5, 0.25, 0.15)), abs=1e-6)
    toy = catalogue.load_model(kinds["model", "scanned"])
    assert toy.size == pytest.approx([0.1, 0.2, 0.05], abs=1e-5)
    assert (assets / kinds["hdri", "hdri"].file).read_bytes() == b"hello"
    assert max(Image.open(assets / kinds["texture", "floor"].file).size) == 768


def test_prepare_adds_to_what_is_there(assets, downloads):
    before = set(Catalogue.load(assets).assets)
    after = prepare_assets(assets, furniture=[downloads / "test.sh3f"])
    assert set(after.assets) == before
    with pytest.raises(InputError, match="does not exist"):
        prepare_assets(assets, hdri=downloads / "nothing.tgz")


def test_scene_with_assets_lists_its_sources(assets):
    catalogue = Catalogue.load(assets)
    sources: set[str] = set()
    for seed in (1, 3):
        scene = build_scene(seed, 0, catalogue)
        assert scene.sources <= set(catalogue.assets)
        sources |= scene.sources
    assert any(catalogue.assets[key].role == "scanned" for key in sources)
    assert any(catalogue.assets[key].kind == "hdri" for key in sources)


def test_catalogue_needs_an_index(tmp_path):
    with pytest.raises(InputError, match="prepare_assets"):
        Catalogue.load(tmp_path)
    assert Catalogue.load(None).assets == {}


def test_roles_and_licences(tmp_path):
    assert role_of("Office desk", "Office", (1.4, 0.7, 0.75), 0.0, False) == "table"
    assert role_of("Clock", "Miscellaneous", (0.3, 0.05, 0.3), 1.6, False) == "wall"
    assert role_of("Cup", "Kitchen", (0.1, 0.1, 0.1), 0.0, False) == "small"
    assert role_of("Door", "Doors and windows", (0.9, 0.1, 2.05), 0.0, True) == "door"
    assert role_of("Maple", "Exterior", (2.0, 2.0, 4.0), 0.0, False) is None
    assert licence_name("Public domain") == "CC0-1.0"
    assert licence_name("Creative Commons Attribution 3.0 United States license") == "CC-BY-3.0-US"
    assert licence_name("Attribution-ShareAlike 4.0") == "Attribution-ShareAlike 4.0"
    path = tmp_path / "list.properties"
    path.write_text("# note\nlicense=Public domain\nname#3=A = B\n")
    assert read_catalogue(path) == ({"license": "Public domain"}, {3: {"name": "A = B"}})


# Bookkeeping --------------------------------------------------------------------------------


def fake_records(out: Path, seed: int, views: int, assets: list[str]) -> list[dict]:
    records = []
    for view in range(views):
        identity = view_id(seed, view)
        names = view_files(identity)
        for name in names:
            (out / name).write_bytes(b"x")
        rgb, depth, camera = names
        records.append(
            {
                "id": identity,
                "scene": seed,
                "rgb": rgb,
                "depth": depth,
                "camera": camera,
                "assets": assets,
            }
        )
    return records


def test_manifest_forgets_what_is_not_whole(tmp_path):
    manifest = Manifest(tmp_path)
    assert manifest.repair(2) == set()
    for seed in (10, 11, 12):
        manifest.append(fake_records(tmp_path, seed, 2, []))
    text = manifest.path.read_text()
    manifest.path.write_text(text[:-20])  # the process died while writing the last line
    (tmp_path / "000010_1_depth.png").unlink()
    assert manifest.repair(2) == {11}
    assert [record["id"] for record in manifest.records()] == ["000011_0", "000011_1"]
    manifest.append(fake_records(tmp_path, 12, 2, []))
    assert manifest.repair(2) == {11, 12}
    assert len(manifest.path.read_text().splitlines()) == 4


def test_damaged_lines_of_a_manifest_count_for_nothing(tmp_path):
    manifest = Manifest(tmp_path)
    manifest.append(fake_records(tmp_path, 10, 2, []))
    whole = manifest.path.read_bytes()
    damage = [b"5", b"{}", b'"x"', b'{"rgb": 1}', b"[" * 50_000, b"\xff\xfe", bytes(9)]
    manifest.path.write_bytes(b"\n".join([*damage, whole]))
    assert manifest.repair(2) == {10}
    assert manifest.path.read_bytes() == whole


@pytest.mark.parametrize("stored", [b"{", b"5", b"\xff", b"[" * 50_000])
def test_damaged_settings_of_a_set_are_one_sentence(tmp_path, stored):
    (tmp_path / "settings.json").write_bytes(stored)
    with pytest.raises(InputError, match=r"damaged, so .* cannot be continued"):
        _keep_settings(tmp_path, 3, (480, 640), Catalogue(), False)


def test_settings_of_a_set_cannot_change(tmp_path):
    _keep_settings(tmp_path, 3, (480, 640), Catalogue(), False)
    _keep_settings(tmp_path, 3, (480, 640), Catalogue(), False)
    with pytest.raises(InputError, match="other path"):
        _keep_settings(tmp_path, 3, (480, 640), Catalogue(), True)
    with pytest.raises(InputError, match="other size"):
        _keep_settings(tmp_path, 3, (240, 320), Catalogue(), False)
    asset = Asset("key", "hdri", "hdri", "sky.exr", "Sky", "package", "Someone", "CC0-1.0")
    with pytest.raises(InputError, match="other assets and views"):
        _keep_settings(tmp_path, 2, (480, 640), Catalogue(tmp_path, [asset]), False)


def test_licences_count_scenes(tmp_path):
    asset = Asset("key", "model", "chair", "c.npz", "Chair", "lib.sh3f", "Ann|e", "CC-BY-3.0")
    catalogue = Catalogue(tmp_path, [asset])
    manifest = Manifest(tmp_path)
    for seed in (1, 2):
        manifest.append(fake_records(tmp_path, seed, 3, ["key"]))
    write_licences(tmp_path, catalogue)
    assert "| Chair | Ann/e | lib.sh3f | CC-BY-3.0 | 2 |" in (tmp_path / "LICENCES.md").read_text()
    (row,) = json.loads((tmp_path / "licences.json").read_text())
    assert row["scenes"] == 2
    assert "None" in licence_table(Catalogue(), {})


def test_depth_steps():
    depth = np.array([[0.0, 0.00025, 1.0], [16.38375, 16.5, 3.0001]])
    assert encode_depth(depth).tolist() == [[0, 1, 4000], [65535, 0, 12000]]


@pytest.mark.skipif(sys.platform != "linux", reason="affinity is Linux's")
def test_workers_keep_to_a_core_each() -> None:
    available = sorted(os.sched_getaffinity(0))
    ask = [sys.executable, "-c", "import os; print(*sorted(os.sched_getaffinity(0)))"]
    both = threading.Barrier(2)

    def cores_of_a_child() -> list[int]:
        both.wait()  # so that each of the two threads takes one
        return [int(n) for n in subprocess.check_output(ask, text=True).split()]

    with ThreadPoolExecutor(2, initializer=core_keeper()) as pool:
        answers = [pool.submit(cores_of_a_child) for _ in range(2)]
        seen = [answer.result() for answer in answers]
    assert sorted(core for (core,) in seen) == sorted((available * 2)[:2])
    assert sorted(os.sched_getaffinity(0)) == available


@pytest.mark.parametrize(
    "wrong",
    [
        {"scenes": 0},
        {"views": 0},
        {"workers": 0},
        {"seed": -1},
        {"size": (8, 640)},
        {"kind": "cellar"},
    ],
)
def test_generate_refuses_nonsense(tmp_path, wrong):
    arguments = {"scenes": 1, "views": 1, "seed": 0, "workers": 1, "size": (48, 64), **wrong}
    with pytest.raises(InputError, match="expected"):
        generate(tmp_path / "set", **arguments)
    assert not (tmp_path / "set").exists()


def test_missing_blender_is_explained(tmp_path, monkeypatch):
    monkeypatch.setattr(blender, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'ducos\[synth\]'"):
        generate(tmp_path / "set", 1, 1, 0, 1)


def test_importing_synth_does_not_import_blender():
    code = "import sys, ducos.synth.generate, ducos.synth.prepare; print('bpy' in sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "False"


# Rendering ----------------------------------------------------------------------------------


@needs_blender
def test_depth_is_planar_and_sharp(rng):
    """A wall seen at an angle with a box before it: every pixel against the exact answer."""
    from ducos.synth.render import Renderer

    scene = Scene.empty("room", 6, 6, 3)
    scene.add(
        "wall",
        polygons([(-9, 3, -9), (9, 3, -9), (9, 3, 9), (-9, 3, 9)], [(0, 1, 2, 3)], lacquer(rng)),
    )
    scene.add("box", box((0.6, 0.6, 0.6), lacquer(rng), (0.3, 1.5, 1.0)))
    size = (48, 64)
    camera = Camera(look_at(np.array([0.0, 0.0, 1.2]), np.array([0.5, 3.0, 1.3])), 1.0)
    depth = Renderer(scene, size).depth(camera)
    fx, fy, cx, cy = camera.intrinsics(size)
    v, u = np.mgrid[0:48, 0:64]
    local = np.stack([(u - cx) / fx, -(v - cy) / fy, -np.ones(size)], -1)
    rays = local @ camera.pose[:3, :3].T  # scaled so that planar depth is the ray's parameter
    origin = camera.pose[:3, 3]
    wall = (3 - origin[1]) / rays[..., 1]
    low, high = np.array([0.0, 1.2, 1.0]), np.array([0.6, 1.8, 1.6])
    first, second = (low - origin) / rays, (high - origin) / rays
    enter = np.minimum(first, second).max(-1)
    leave = np.maximum(first, second).min(-1)
    exact = np.where(enter < leave, enter, wall)
    error = np.abs(depth - exact)
    assert np.median(error) < 1e-4
    assert (error < 1e-3).mean() > 0.99  # a ray may fall on either side of an edge, never between
    assert 100 < (enter < leave).sum() < 1500


@needs_blender
@pytest.mark.timeout(600)
def test_generate_resumes_and_repeats(tmp_path, assets):
    """A room and a tabletop, then half of it again: same bytes, nothing done twice."""
    out, size = tmp_path / "set", (48, 64)
    calls = []
    state = generate(
        out, 2, 2, 6, 1, assets=assets, size=size, progress=lambda s: calls.append(s.done)
    )
    assert state.failed == {}
    assert calls == [1, 2]
    records = Manifest(out).records()
    assert [r["id"] for r in records] == ["000006_0", "000006_1", "000007_0", "000007_1"]
    assert [r["kind"] for r in records] == ["room", "room", "tabletop", "tabletop"]
    for record in records:
        rgb = np.asarray(Image.open(out / record["rgb"]))
        depth = np.asarray(Image.open(out / record["depth"]))
        assert rgb.shape == (48, 64, 3)
        assert rgb.std() > 5
        assert depth.dtype == np.uint16
        assert (depth > 0).mean() > 0.9
        assert 0.2 < np.median(depth) * 0.00025 < 9
        camera = json.loads((out / record["camera"]).read_text())
        assert camera["intrinsics"]["cx"] == 31.5
        assert np.allclose(np.linalg.det(np.array(camera["camera_to_world"])[:3, :3]), 1)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert "LICENCES.md" in before
    assert not [name for name in before if name.startswith(".scene")]

    # As if killed while the second scene was being written.
    lines = (out / "manifest.jsonl").read_text().splitlines(keepends=True)
    (out / "manifest.jsonl").write_text("".join(lines[:3]) + lines[3][:10])
    (out / "000007_1_depth.png").unlink()
    (out / ".scene-000007-1").mkdir()
    untouched = (out / "000006_0_rgb.jpg").stat().st_mtime_ns
    state = generate(out, 2, 2, 6, 1, assets=assets, size=size)
    assert (state.done, state.skipped, state.failed) == (1, 1, {})
    assert (out / "000006_0_rgb.jpg").stat().st_mtime_ns == untouched
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@needs_blender
def test_failed_scene_is_reported_and_the_rest_goes_on(tmp_path, assets):
    out = tmp_path / "set"
    for file in (assets / "models").iterdir():
        file.write_bytes(b"broken")
    state = generate(out, 1, 1, 1, 1, assets=assets, size=(32, 32))
    assert list(state.failed) == [1]
    assert "exit code 1" in state.failed[1]
    assert state.done == 0
    assert Manifest(out).records() == []
    assert not list(out.glob(".scene*"))
