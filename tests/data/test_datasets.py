"""Each loader reads a tiny folder in its dataset's official layout, made here file by file."""

import csv
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from ducos.data import DATASETS, FileDataset, PairFiles, open_dataset, split_by_scene
from ducos.data.hypersim import planar_depth, standard_camera, tone_mapped
from ducos.data.nyu import COUNT
from ducos.errors import InputError

H, W = 12, 16
RNG = np.random.default_rng(0)


def save(path: Path, array: np.ndarray) -> np.ndarray:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npy":
        np.save(path, array)
    else:
        Image.fromarray(array).save(path)
    return array


def save_picture(path: Path, size: tuple[int, int] = (H, W)) -> np.ndarray:
    return save(path, RNG.integers(0, 256, (*size, 3), dtype=np.uint8))


def save_codes(path: Path, size: tuple[int, int] = (H, W), highest: int = 60000) -> np.ndarray:
    return save(path, RNG.integers(1, highest, size, dtype=np.uint16))


def save_hdf5(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["dataset"] = array


def assert_is_pair(pair) -> None:
    size = pair.target.shape
    assert pair.rgb.shape == (*size, 3)
    assert pair.rgb.dtype == pair.target.dtype == np.float32
    assert pair.rgb.min() >= 0
    assert pair.rgb.max() <= 1
    assert pair.valid.shape == size
    assert pair.valid.dtype == np.bool_
    assert np.isfinite(pair.target).all()
    assert (pair.low is None) == (pair.low_valid is None)
    if pair.low is not None:
        assert pair.low.dtype == np.float32
        assert pair.low.shape == pair.low_valid.shape


# -------------------------------------------------------------------------------------- bench


def bench_scene(folder: Path, unit: str = "metre", invalid: int | None = 0, **more) -> np.ndarray:
    save_picture(folder / "rgb.png")
    codes = save_codes(folder / "depth.png")
    about = {"unit": unit, "scale_to_unit": 0.0002, "invalid_value": invalid, **more}
    (folder / "meta.json").write_text(json.dumps(about))
    return codes


def test_bench_scales_masks_and_takes_the_folders_name(tmp_path):
    codes = bench_scene(tmp_path / "icl" / "b")
    codes[3, 4] = 0
    save(tmp_path / "icl" / "b" / "depth.png", codes)
    bench_scene(tmp_path / "icl" / "a", offset=1.5)
    dataset = open_dataset(f"bench:{tmp_path / 'icl'}")
    assert (dataset.name, dataset.unit, len(dataset)) == ("icl", "m", 2)
    first, second = dataset[0], dataset[1]
    assert (first.name, second.name) == ("a", "b")
    assert_is_pair(second)
    np.testing.assert_array_equal(second.target, (codes * 0.0002).astype(np.float32))
    assert not second.valid[3, 4]
    assert second.valid.sum() == H * W - 1
    assert first.target.min() > 1.5


def test_bench_levels_have_no_holes_and_real_maps_are_read(tmp_path):
    codes = bench_scene(tmp_path / "set" / "one", unit="0..255 code", invalid=None)
    codes[0, 0] = 0
    save(tmp_path / "set" / "one" / "depth.png", codes)
    low = save_codes(tmp_path / "set" / "one" / "lr_depth.png", (5, 7))
    dataset = open_dataset(f"bench:{tmp_path / 'set'}")
    pair = dataset[0]
    assert dataset.unit == "level"
    assert pair.valid.all()
    np.testing.assert_array_equal(pair.low, (low * 0.0002).astype(np.float32))


def test_bench_parent_folder_lists_its_datasets(tmp_path):
    bench_scene(tmp_path / "lu6" / "01")
    with pytest.raises(InputError, match="lu6"):
        open_dataset(f"bench:{tmp_path}")


# --------------------------------------------------------------------------- Middlebury and Lu


@pytest.mark.parametrize("folders", [("", ""), ("RGB", "Depth")])
@pytest.mark.parametrize("name", ["middlebury", "lu"])
def test_levels(tmp_path, name, folders):
    colour, depth = folders
    codes = {}
    for stem in ("Set_02", "Set_01"):
        save_picture(
            tmp_path / colour / f"{stem}_{'ouput' if name == 'lu' else 'output'}_color.png"
        )
        codes[stem] = save(
            tmp_path / depth / f"{stem}_output_depth.png",
            RNG.integers(0, 256, (H, W), dtype=np.uint8),
        )
    dataset = open_dataset(f"{name}:{tmp_path}")
    assert (dataset.name, dataset.unit, len(dataset)) == (name, "level", 2)
    pair = dataset[0]
    assert pair.name == "Set_01"
    assert_is_pair(pair)
    np.testing.assert_array_equal(pair.target, codes["Set_01"].astype(np.float32))
    assert pair.valid.all()


def test_levels_miss_a_partner(tmp_path):
    save_picture(tmp_path / "Set_01_output_color.png")
    with pytest.raises(InputError, match="Set_01"):
        open_dataset(f"middlebury:{tmp_path}")


# ---------------------------------------------------------------------------------------- NYU


@pytest.fixture(scope="module")
def nyu_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("nyu") / "nyu_depth_v2_labeled.mat"
    with h5py.File(path, "w") as file:
        # MATLAB writes (H, W, 3, N) column by column; HDF5 sees the axes reversed.
        file["images"] = RNG.integers(0, 256, (COUNT, 3, W, H), dtype=np.uint8)
        file["depths"] = RNG.uniform(0.7, 9, (COUNT, W, H)).astype(np.float32)
        names = [
            file.create_dataset(f"#refs#/{i}", data=[[ord(c)] for c in f"room_{i}"]) for i in (0, 1)
        ]
        references = [names[int(i >= 1200)].ref for i in range(COUNT)]
        file.create_dataset("scenes", (1, COUNT), h5py.ref_dtype)[0] = references
    return path


def test_nyu_split_and_transposition(nyu_file):
    train, test = (
        open_dataset(f"nyu:{nyu_file.parent},split=train"),
        open_dataset(f"nyu:{nyu_file}"),
    )
    assert (len(train), len(test)) == (1000, 449)
    pair = test[3]
    assert pair.name == "1004"  # NYU counts from 1
    assert_is_pair(pair)
    assert pair.target.shape == (H, W)
    with h5py.File(nyu_file) as file:
        images, depths = file["images"][1003], file["depths"][1003]
    for y, x in ((0, 0), (H - 1, 2), (5, W - 1)):
        assert pair.target[y, x] == depths[x, y]
        np.testing.assert_allclose(pair.rgb[y, x] * 255, images[:, x, y], rtol=1e-6)
    assert pair.valid.all()
    assert test.scenes[199:201] == ["room_0", "room_1"]


def test_nyu_refuses_other_files(tmp_path, nyu_file):
    with pytest.raises(InputError, match="split must be one of train, test, all"):
        open_dataset(f"nyu:{nyu_file},split=val")
    with pytest.raises(InputError, match=r"nyu_depth_v2_labeled\.mat"):
        open_dataset(f"nyu:{tmp_path}")
    other = tmp_path / "other.mat"
    other.write_bytes(b"not HDF5")
    with pytest.raises(InputError, match="not the labelled set"):
        open_dataset(f"nyu:{other}")
    with h5py.File(other, "w") as file:
        file["depths"] = np.zeros((3, W, H))
    with pytest.raises(InputError, match="holds 3 pairs"):
        open_dataset(f"nyu:{other}")


# ----------------------------------------------------------------------------------- Hypersim


def hypersim_frame(
    root: Path, scene: str, camera: str, frame: int, preview: bool = True
) -> np.ndarray:
    images = root / scene / "images"
    distance = RNG.uniform(1, 6, (H, W)).astype(np.float16)
    distance[0, 0] = np.nan
    stem = f"frame.{frame:04d}"
    save_hdf5(images / f"scene_{camera}_geometry_hdf5" / f"{stem}.depth_meters.hdf5", distance)
    if preview:
        save_picture(images / f"scene_{camera}_final_preview" / f"{stem}.tonemap.jpg")
    else:
        radiance = RNG.uniform(0, 3, (H, W, 3)).astype(np.float16)
        save_hdf5(images / f"scene_{camera}_final_hdf5" / f"{stem}.color.hdf5", radiance)
    return distance.astype(np.float32)


def test_hypersim_distance_becomes_planar_depth(tmp_path):
    distance = hypersim_frame(tmp_path, "ai_001_002", "cam_03", 7)
    hypersim_frame(tmp_path, "ai_001_001", "cam_00", 0, preview=False)
    dataset = open_dataset(f"hypersim:{tmp_path}")
    assert dataset.scenes == ["ai_001_001", "ai_001_002"]
    assert_is_pair(dataset[0])
    pair = dataset[1]
    assert pair.name == "ai_001_002_cam_03_0007"
    assert not pair.valid[0, 0]
    assert pair.target[0, 0] == 0
    # Directly: depth = distance × f / |(x, y, f)| with x, y measured from the image centre.
    focal = W / 2 / np.tan(np.pi / 6)
    for y, x in ((0, W - 1), (4, 9), (H - 1, 0)):
        offset_x, offset_y = x + 0.5 - W / 2, y + 0.5 - H / 2
        cosine = focal / np.sqrt(offset_x**2 + offset_y**2 + focal**2)
        assert pair.target[y, x] == pytest.approx(distance[y, x] * cosine, rel=1e-6)


def test_hypersim_standard_camera_has_the_published_focal_length():
    depth = planar_depth(np.ones((768, 1024), np.float32), standard_camera((768, 1024)))
    x, y = 1023 + 0.5 - 512, 0.5 - 384
    assert depth[0, 1023] == pytest.approx(886.81 / np.sqrt(x**2 + y**2 + 886.81**2), rel=1e-6)


def test_hypersim_uses_a_scenes_own_camera(tmp_path):
    distance = hypersim_frame(tmp_path, "ai_001_001", "cam_00", 0)
    matrix = [[0.3, 0.0, 0.05], [0.0, 0.2, 0.0], [0.1, 0.0, -1.0]]  # narrow, shifted and tilted
    row = {f"M_cam_from_uv_{i}{j}": matrix[i][j] for i in range(3) for j in range(3)}
    with (tmp_path / "metadata_camera_parameters.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["scene_name", *row])
        writer.writeheader()
        writer.writerow({"scene_name": "ai_001_001", **row})
    y, x = 2, 13
    ray = np.array(matrix) @ [(2 * x + 1) / W - 1, 1 - (2 * y + 1) / H, 1]
    expected = distance[y, x] * -ray[2] / np.linalg.norm(ray)
    assert open_dataset(f"hypersim:{tmp_path}")[0].target[y, x] == pytest.approx(expected, rel=1e-6)


def test_hypersim_split(tmp_path):
    for frame in range(3):
        hypersim_frame(tmp_path, "ai_001_001", "cam_00", frame)
    with pytest.raises(InputError, match=r"metadata_images_split_scene_v1\.csv"):
        open_dataset(f"hypersim:{tmp_path},split=train")
    (tmp_path / "metadata_images_split_scene_v1.csv").write_text(
        "scene_name,camera_name,frame_id,included_in_public_release,exclude_reason,split_partition_name\n"
        "ai_001_001,cam_00,0,True,,train\nai_001_001,cam_00,1,False,logo,\nai_001_001,cam_00,2,True,,val\n"
    )
    names = [pair.name[-4:] for pair in open_dataset(f"hypersim:{tmp_path},split=val")]
    assert names == ["0002"]
    with pytest.raises(InputError, match="no frames of split test"):
        open_dataset(f"hypersim:{tmp_path},split=test")


def test_hypersim_exposure_brings_the_90th_percentile_to_four_fifths():
    radiance = np.repeat(RNG.uniform(0, 5, (200, 200, 1)), 3, axis=2).astype(np.float32)
    picture = tone_mapped(radiance)
    assert np.percentile(picture, 90) == pytest.approx(0.8, abs=0.01)
    assert tone_mapped(np.zeros((4, 4, 3), np.float32)).max() == 0


# ------------------------------------------------------------------------- RGB-D-D and TOFDSR


def rgbdd_files(
    root: Path, name: str, kind: str, split: str, flat: bool
) -> tuple[np.ndarray, np.ndarray]:
    if flat:
        parts = [root / split.capitalize() / f"RGBDD_{part}" for part in ("RGB", "GT", "LR")]
    else:
        parts = [root / kind / f"{kind}_{split}" / name] * 3
    save_picture(parts[0] / f"{name}_RGB.jpg")
    depth = save_codes(parts[1] / f"{name}_HR_gt.png", highest=5000)
    return depth, save_codes(parts[2] / f"{name}_LR_fill_depth.png", (5, 6), highest=5000)


@pytest.mark.parametrize("flat", [False, True])
def test_rgbdd(tmp_path, flat):
    depth, low = rgbdd_files(tmp_path, "20200518160957", "plants", "test", flat)
    rgbdd_files(tmp_path, "20200518160958", "portraits", "test", flat)
    rgbdd_files(tmp_path, "20200518160959", "models", "train", flat)
    real = open_dataset(f"rgbdd-real:{tmp_path}")
    synthetic = open_dataset(f"rgbdd:{tmp_path}")
    assert (len(real), len(synthetic), len(open_dataset(f"rgbdd:{tmp_path},split=train"))) == (
        2,
        2,
        1,
    )
    pair = real[0]
    assert_is_pair(pair)
    assert pair.name == "20200518160957"
    np.testing.assert_array_equal(pair.target, (depth / 1000).astype(np.float32))
    np.testing.assert_array_equal(pair.low, (low / 1000).astype(np.float32))
    assert synthetic[0].low is None
    np.testing.assert_array_equal(synthetic[0].target, pair.target)


def test_rgbdd_says_which_file_is_missing(tmp_path):
    rgbdd_files(tmp_path, "1", "plants", "test", False)
    (tmp_path / "plants" / "plants_test" / "1" / "1_LR_fill_depth.png").unlink()
    with pytest.raises(InputError, match=r"1_LR_fill_depth\.png does not exist"):
        open_dataset(f"rgbdd-real:{tmp_path}")[0]
    assert open_dataset(f"rgbdd:{tmp_path}")[0].low is None


def tofdsr_files(data: Path, name: str, split: str = "Test") -> tuple[np.ndarray, np.ndarray]:
    save_picture(data / split / "RGB" / f"{name}_rgb_crop.png")
    depth = save_codes(data / split / "GT" / f"{name}_tgv_gt_crop.png", highest=4900)
    depth[0, :6] = [0, 99, 100, 5000, 5001, 60000]
    save(data / split / "GT" / f"{name}_tgv_gt_crop.png", depth)
    low = save_codes(data / split / "LR_Filled" / f"{name}_depth_crop_fill.png", (5, 6))
    return depth, low


def test_tofdsr_scores_between_100_and_5000_millimetres(tmp_path):
    # Ids of the second kind end in _rgb themselves.
    for name in ("20200716_104505", "2020_09_21_21_29_46_695_rgb"):
        depth, low = tofdsr_files(tmp_path / "TOFDC_split", name)
    real, synthetic = open_dataset(f"tofdsr-real:{tmp_path}"), open_dataset(f"tofdsr:{tmp_path}")
    assert [row.name for row in real.files] == ["20200716_104505", "2020_09_21_21_29_46_695_rgb"]
    pair = real[1]
    assert_is_pair(pair)
    np.testing.assert_array_equal(pair.valid, (depth >= 100) & (depth <= 5000))
    assert pair.target[0, 5] == 60  # metres: kept, only not scored
    np.testing.assert_array_equal(pair.low, (low / 1000).astype(np.float32))
    assert synthetic[0].low is None
    assert not synthetic[0].valid[0, 0]


def test_tofdsr_list_decides(tmp_path):
    for name in ("a", "b", "c"):
        tofdsr_files(tmp_path, name)  # the folder itself is what the lists call TOFDC_split
    lines = [
        f"TOFDC_split/Test/RGB/{n}_rgb_crop.png,TOFDC_split/Test/GT/{n}_tgv_gt_crop.png,"
        f"TOFDC_split/Test/LR_Filled/{n}_depth_crop_fill.png"
        for n in ("c", "a")
    ]
    (tmp_path / "TOFDSR_Test.txt").write_text("\n".join(lines))
    assert [pair.name for pair in open_dataset(f"tofdsr:{tmp_path}")] == ["c", "a"]
    (tmp_path / "TOFDSR_Test.txt").write_text("one,two")
    with pytest.raises(InputError, match="line 1"):
        open_dataset(f"tofdsr:{tmp_path}")


# ------------------------------------------------------------------------ the user's own pairs


@pytest.mark.parametrize("by_folder", [True, False])
def test_folder_layouts(tmp_path, by_folder):
    root = tmp_path / "kitchen"
    name = "{0}/{1}{2}" if by_folder else "{1}_{0}{2}"
    codes = {}
    for stem in ("2", "1"):
        save_picture(root / name.format("rgb", stem, ".jpg"))
        codes[stem] = save_codes(root / name.format("depth", stem, ".png"))
        save_codes(root / name.format("low", stem, ".png"), (5, 6))
    dataset = open_dataset(f"folder:{root}")
    assert (dataset.name, dataset.unit, len(dataset)) == ("kitchen", "m", 2)
    pair = dataset[0]
    assert_is_pair(pair)
    assert pair.name == "1"
    assert pair.low.shape == (5, 6)
    np.testing.assert_array_equal(pair.target, (codes["1"] * 0.001).astype(np.float32))


def test_folder_units_from_arguments_side_car_and_number_type(tmp_path):
    save_picture(tmp_path / "rgb" / "a.png")
    codes = save_codes(tmp_path / "depth" / "a.png")
    codes[1, 1] = 65535
    save(tmp_path / "depth" / "a.png", codes)

    pair = open_dataset(f"folder:{tmp_path},scale=0.0002,invalid=65535")[0]
    np.testing.assert_array_equal(pair.target[2:], (codes[2:] * 0.0002).astype(np.float32))
    assert not pair.valid[1, 1]
    assert pair.target[1, 1] == 0

    levels = open_dataset(f"folder:{tmp_path},unit=level")
    assert levels.unit == "level"
    known = codes != 65535  # a hole in 16 bits, whatever the unit, as everywhere in ducos
    np.testing.assert_array_equal(levels[0].valid, known)
    np.testing.assert_array_equal(levels[0].target, np.where(known, codes, 0).astype(np.float32))

    (tmp_path / "dataset.json").write_text('{"scale": 0.01, "invalid": null}')
    stated = open_dataset(f"folder:{tmp_path}")[0]
    np.testing.assert_array_equal(stated.valid, known)
    np.testing.assert_array_equal(stated.target[2:], (codes[2:] * 0.01).astype(np.float32))

    (tmp_path / "dataset.json").write_text('{"scal": 0.01}')
    with pytest.raises(InputError, match="scal"):
        open_dataset(f"folder:{tmp_path}")


@pytest.mark.parametrize(
    "stated", [b"{", b"[]", b"5", b"\xff\xfe", b"[" * 50_000, b'{"scale": []}', b'{"unit": 3}'], ids=str
)
def test_folder_a_damaged_file_beside_the_maps_is_one_sentence(tmp_path, stated):
    save_picture(tmp_path / "a_rgb.png")
    save_codes(tmp_path / "a_depth.png")
    (tmp_path / "dataset.json").write_bytes(stated)
    with pytest.raises(InputError):
        open_dataset(f"folder:{tmp_path}")


@pytest.mark.parametrize("stated", ["{", "[]", '{"unit": 1, "scale_to_unit": "x", "invalid_value": 0}'])
def test_bench_a_damaged_file_beside_the_maps_is_one_sentence(tmp_path, stated):
    bench_scene(tmp_path / "icl" / "a")
    (tmp_path / "icl" / "a" / "meta.json").write_text(stated)
    with pytest.raises(InputError, match=r"meta\.json"):
        open_dataset(f"bench:{tmp_path / 'icl'}")


def test_folder_floating_point_is_metres_and_nan_a_hole(tmp_path):
    save_picture(tmp_path / "a_rgb.png")
    depth = RNG.uniform(0.5, 4, (H, W)).astype(np.float32)
    depth[0, 0], depth[0, 1] = np.nan, 0
    save(tmp_path / "a_depth.npy", depth)
    pair = open_dataset(f"folder:{tmp_path}")[0]
    assert_is_pair(pair)
    assert (~pair.valid).sum() == 2
    np.testing.assert_array_equal(pair.target[1:], depth[1:])


def test_folder_mistakes_are_named(tmp_path):
    with pytest.raises(InputError, match="not a folder"):
        open_dataset(f"folder:{tmp_path / 'nowhere'}")
    with pytest.raises(InputError, match="no pairs"):
        open_dataset(f"folder:{tmp_path}")
    save_picture(tmp_path / "a_rgb.png")
    with pytest.raises(InputError, match=r"a: it has no depth file"):
        open_dataset(f"folder:{tmp_path}")
    save_codes(tmp_path / "a_depth.png", (6, 8))
    save_picture(tmp_path / "b_rgb.png")
    with pytest.raises(InputError, match=r"rgb and depth .* for b;"):
        open_dataset(f"folder:{tmp_path}")
    (tmp_path / "b_rgb.png").unlink()
    with pytest.raises(InputError, match=r"8×6 but .* is 16×12"):
        open_dataset(f"folder:{tmp_path}")[0]
    save_picture(tmp_path / "a_depth.png")
    with pytest.raises(InputError, match="depth has one"):
        open_dataset(f"folder:{tmp_path}")[0]
    save_picture(tmp_path / "a_rgb.jpg")
    with pytest.raises(InputError, match="same name"):
        open_dataset(f"folder:{tmp_path}")


def test_csv(tmp_path):
    save_picture(tmp_path / "pictures" / "a.png")
    codes = save_codes(tmp_path / "maps" / "x.png")
    save_codes(tmp_path / "maps" / "y.png", (3, 4))
    table = tmp_path / "pairs.csv"
    table.write_text(
        "rgb,depth,low,scale\npictures/a.png,maps/x.png,,\npictures/a.png,maps/x.png,maps/y.png,0.0001\n"
    )
    dataset = open_dataset(f"csv:{table}")
    assert (dataset.name, len(dataset)) == ("pairs", 2)
    assert_is_pair(dataset[1])
    assert dataset[0].low is None
    assert dataset[1].low.shape == (3, 4)
    np.testing.assert_array_equal(dataset[0].target, (codes * 0.001).astype(np.float32))
    np.testing.assert_array_equal(dataset[1].target, (codes * 0.0001).astype(np.float32))

    table.write_text("rgb,low\na,b\n")
    with pytest.raises(InputError, match="columns rgb, low"):
        open_dataset(f"csv:{table}")
    table.write_text("rgb,depth,scale\na,b,mm\n")
    with pytest.raises(InputError, match="line 2"):
        open_dataset(f"csv:{table}")


# ------------------------------------------------------------------------- rendered and drawn


def test_synth_unit_and_scenes(tmp_path):
    codes = {}
    for name in ("010000_0", "010000_1", "010001_0"):
        save_picture(tmp_path / f"{name}_rgb.jpg")
        codes[name] = save_codes(tmp_path / f"{name}_depth.png")
        (tmp_path / f"{name}.json").write_text("{}")
    dataset = open_dataset(f"synth:{tmp_path}")
    assert dataset.scenes == ["010000", "010000", "010001"]
    expected = (codes["010000_1"] * 0.00025).astype(np.float32)
    np.testing.assert_array_equal(dataset[1].target, expected)
    assert open_dataset(f"synth:{tmp_path},scenes=1").scenes == ["010000", "010000"]


def views(scenes: int, views_each: int) -> FileDataset:
    files = [
        PairFiles(f"{scene:03d}_{view}", Path(), Path(), scene=f"{scene:03d}")
        for scene in range(scenes)
        for view in range(views_each)
    ]
    return FileDataset("views", "m", files)


@pytest.mark.parametrize("fraction", [0.01, 0.25, 0.99])
def test_split_by_scene_shares_no_scene(fraction):
    dataset = views(20, 3)
    train, validation = split_by_scene(dataset, fraction, seed=5)
    assert not set(train.scenes) & set(validation.scenes)
    assert sorted([*train.scenes, *validation.scenes]) == sorted(dataset.scenes)
    assert len(validation) == 3 * min(max(round(20 * fraction), 1), 19)
    assert split_by_scene(dataset, fraction, seed=5)[1].indices == validation.indices


def test_split_by_scene_depends_on_the_seed_and_needs_two_scenes():
    chosen = {tuple(split_by_scene(views(20, 1), 0.3, seed)[1].indices) for seed in range(4)}
    assert len(chosen) > 1
    with pytest.raises(InputError, match="two or more"):
        split_by_scene(views(1, 5), 0.5)
    with pytest.raises(InputError, match="between 0 and 1"):
        split_by_scene(views(5, 1), 1.0)


def test_subset_reads_the_right_pair():
    shapes = open_dataset("shapes:6,height=16,width=20")
    _, validation = split_by_scene(shapes, 0.4)
    for position, index in enumerate(validation.indices):
        np.testing.assert_array_equal(validation[position].target, shapes[index].target)


def test_shapes_are_deterministic_and_plausible():
    dataset = open_dataset("shapes:8,height=90,width=140,seed=3")
    again = open_dataset("shapes:20,height=90,width=140,seed=3")
    other = open_dataset("shapes:8,height=90,width=140,seed=4")
    for index in range(8):
        pair = dataset[index]
        assert_is_pair(pair)
        np.testing.assert_array_equal(pair.rgb, again[index].rgb)
        np.testing.assert_array_equal(pair.target, again[index].target)
        assert not np.array_equal(pair.target, other[index].target)
        assert pair.target.min() >= 0.5
        assert pair.target.max() <= 5.0
    with pytest.raises(IndexError):
        dataset[8]


def test_shapes_have_sharp_silhouettes_that_mostly_show_in_colour():
    at_edges, elsewhere, edges = [], [], 0
    for pair in open_dataset("shapes:12"):
        jump = np.abs(np.diff(pair.target, axis=1)) > 0.1
        colour = np.abs(np.diff(pair.rgb, axis=1)).max(-1)
        # An antialiased silhouette spreads over two differences.
        colour = np.maximum(colour, np.roll(colour, 1, axis=1))
        edges += jump.sum()
        at_edges.append(colour[jump] > 0.08)
        elsewhere.append(colour[~jump] > 0.08)
    assert edges > 12 * 50
    assert np.concatenate(at_edges).mean() > 0.75
    assert np.concatenate(elsewhere).mean() < 0.35


# ------------------------------------------------------------------------------ names and specs


@pytest.mark.parametrize("name", sorted(set(DATASETS) - {"shapes"}))
def test_every_dataset_says_what_it_expects_when_nothing_is_there(tmp_path, name):
    with pytest.raises(InputError, match="expected"):
        open_dataset(f"{name}:{tmp_path / 'nothing'}")
    if name not in ("nyu", "csv"):
        with pytest.raises(InputError, match="expected"):
            open_dataset(f"{name}:{tmp_path}")


@pytest.mark.parametrize("spec", ["nyu", "nyu:", "nyuv2:somewhere", ":x"])
def test_bad_specs_list_the_names(spec):
    with pytest.raises(InputError, match="bench, captures, csv, folder, hypersim"):
        open_dataset(spec)


def test_options_are_checked_and_paths_may_hold_commas(tmp_path):
    root = tmp_path / "a,b=c,d"
    save_picture(root / "1_rgb.png")
    save_codes(root / "1_depth.png")
    assert len(open_dataset(f"folder:{root},scale=0.001")) == 1
    with pytest.raises(InputError, match="no option sclae; it has: scale, invalid, unit"):
        open_dataset(f"folder:{root},sclae=0.001")
    with pytest.raises(InputError, match="number of scenes"):
        open_dataset("shapes:many")
    with pytest.raises(InputError, match="unit must be one of m, level"):
        open_dataset(f"folder:{root},unit=feet")
    with pytest.raises(InputError, match="scale must be a number"):
        open_dataset(f"folder:{root},scale=mm")
