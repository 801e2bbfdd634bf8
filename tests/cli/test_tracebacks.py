"""Mistakes that ended in a traceback, or were found only after the work."""

import json
import stat
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ducos.batch import run_batch
from ducos.cameras import as_camera, as_extrinsics
from ducos.errors import InputError
from ducos.example import LOW, RGB
from ducos.files import FramePair, find_pairs, result_names, write_depth
from ducos.training import load_recipe
from ducos.upscaling import Options
from tests.batch.test_batch import BICUBIC, write_folder
from tests.commands import ducos_here
from tests.places import CONFIGS

BEYOND = 10**401


@pytest.mark.parametrize("key", ["width", "fx", "cy", "distortion", "K", "pixel_centre"])
def test_numbers_of_hundreds_of_digits(key: str) -> None:
    table = {"width": 8, "height": 6, "fx": 9, "fy": 9, "cx": 4, "cy": 3}
    lists = {"distortion": [BEYOND, 0, 0, 0], "K": [[BEYOND, 0, 4], [0, 9, 3], [0, 0, 1]]}
    with pytest.raises(InputError):
        as_camera({**table, key: lists.get(key, BEYOND)})
    turn = np.eye(3).tolist()
    with pytest.raises(InputError):
        as_extrinsics({"rotation": turn, "translation": [BEYOND, 0, 0]})


def test_a_camera_file_of_many_digits_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    camera = tmp_path / "camera.json"
    camera.write_text('{"width": 1' + 5000 * "0" + "}")
    words = ["-o", tmp_path / "a.png", "--rgb-intrinsics", camera, "--cloud", tmp_path / "a.ply"]
    code, _, said = ducos_here(capsys, "upscale", RGB, LOW, *words, "--model", "bicubic")
    assert (code, said.count("\n")) == (2, 1), said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a\0b.png,d.png,x", "control characters"),
        ("a.png,d.png,x\ty", "control characters"),
        (f"{300 * 'a'}.png,d.png,x", "the limit is 240 bytes"),
        (f"a.png,d.png,{300 * 'ü'}", "the limit is 240 bytes"),
    ],
)
def test_names_in_tables_that_no_file_can_have(tmp_path: Path, row: str, said: str) -> None:
    (tmp_path / "pairs.csv").write_text(f"rgb,depth,out\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match=said):
        find_pairs(tmp_path / "pairs.csv")


@pytest.mark.parametrize(
    "name", [".unfinished/a", "journal.jsonl/a", "failures.csv", "a/" + 250 * "b", "a\nb"]
)
def test_names_of_results_that_a_batch_needs_itself(name: str) -> None:
    with pytest.raises(InputError):
        result_names([FramePair(RGB, LOW, name)], ".png")


@pytest.mark.parametrize("name", [5000 * "m", 5000 * "m" + ".safetensors", "a\0b", "/", "\n"])
def test_names_of_models_without_end(name: str) -> None:
    with pytest.raises(InputError) as problem:
        Options(model=name)
    assert len(str(problem.value)) < 1200


@pytest.mark.parametrize("degrees", ["nan", "0", "180", "1e-300", "-5", "inf"])
def test_angles_that_no_camera_has_are_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture, degrees: str
) -> None:
    words = ["-o", tmp_path / "a.png", "--cloud", tmp_path / "a.ply", "--field-of-view", degrees]
    code, _, said = ducos_here(capsys, "upscale", RGB, LOW, *words, "--model", "bicubic")
    assert code == 2
    assert "field of view" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        "train.seed=-1",
        f"train.seed={2**63}",
        "train.rate=inf",
        "train.rate=nan",
        "train.clip=inf",
        "data.crop=-8",
        "data.crop=0",
        "data.crop=1000000",
        "data.workers=100000",
        "train.batch_size=1000000000",
        "dual.edge.multiplier=inf",
    ],
)
def test_numbers_of_a_config_that_make_no_sense(change: str) -> None:
    with pytest.raises(InputError):
        load_recipe(CONFIGS / "shapes.toml", [change])


def test_a_network_without_end_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    words = ["--set", "model.kwargs.channels=100000000000", "-o", tmp_path / "run"]
    code, _, said = ducos_here(capsys, "train", CONFIGS / "shapes.toml", *words)
    assert (code, "asks for a network with an argument of 100000000000" in said) == (2, True)
    assert not (tmp_path / "run").exists()


def test_folders_where_files_belong(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "folder.png").mkdir()
    place = tmp_path / "folder.png"
    for words in (
        ["upscale", place, LOW, "-o", tmp_path / "a.png"],
        ["upscale", RGB, LOW, "-o", place],
        ["upscale", RGB, LOW, "-o", tmp_path / "a.png", "--preview", place],
        ["upscale", RGB, LOW, "-o", tmp_path / "a.png", "--mask", place],
        ["upscale", RGB, LOW, "-o", tmp_path / "a.png", "--model", place],
        ["upscale", RGB, LOW, "-o", RGB / "a.png"],
        ["doctor", RGB, LOW, "--report", place],
        ["train", place, "-o", tmp_path / "run"],
        ["train", CONFIGS / "shapes.toml", "-o", RGB],
        ["convert", "djf", place, "-o", tmp_path / "a.safetensors"],
        ["batch", tmp_path, "-o", RGB],
    ):
        code, _, said = ducos_here(capsys, *words)
        assert (code, said.count("\n")) == (2, 1), (words, said)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


READ_ONLY = Path("/proc/sys")  # also for root


@pytest.mark.skipif(not READ_ONLY.is_dir(), reason="needs Linux")
def test_places_that_cannot_be_written_to(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Said in one sentence, and nothing was made meanwhile."""
    folder = write_folder(tmp_path / "in", 1)
    for words in (
        ["upscale", RGB, LOW, "-o", READ_ONLY / "a.png", "--model", "bicubic"],
        ["upscale", RGB, LOW, "-o", tmp_path / "a.png", "--preview", READ_ONLY / "b.png"],
        ["upscale", RGB, LOW, "-o", tmp_path / "a.png", "--cloud", READ_ONLY / "b.ply",
         "--field-of-view", 60],
        ["batch", folder, "-o", READ_ONLY / "out"],
        ["doctor", RGB, LOW, "--report", READ_ONLY / "a.png"],
        ["train", CONFIGS / "shapes.toml", "-o", READ_ONLY / "run"],
        ["demo", "-o", READ_ONLY / "demo"],
        ["video", folder, "-o", READ_ONLY / "video"],
        ["eval", "--model", "bicubic", "--dataset", "shapes:1", "--out", READ_ONLY / "eval"],
        ["reproduce", "errors", "-o", READ_ONLY / "paper"],
        ["synth", "--scenes", 1, "-o", READ_ONLY / "set"],
        ["synth-assets", READ_ONLY / "assets", "--hdri", folder],
        ["convert", "djf", RGB, "-o", READ_ONLY / "a.safetensors"],
        ["export", "--model", "ducos-tiny", "-o", READ_ONLY / "a.onnx"],
    ):  # fmt: skip
        code, _, said = ducos_here(capsys, *words)
        assert (code, said.count("\n")) == (2, 1), (words, said)
        assert str(READ_ONLY) in said
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_full_disk_is_one_sentence(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    """A link to a device that is always full cannot be a result; nothing is half-written."""
    (tmp_path / "full.png").symlink_to("/dev/full")
    words = ["-o", tmp_path / "full.png", "--model", "bicubic"]
    code, _, said = ducos_here(capsys, "upscale", RGB, LOW, *words)
    assert (code, said.count("\n")) == (2, 1), said


def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    write_depth(path, np.ones((3, 3)))
    path.chmod(0o640)
    write_depth(path, np.full((3, 3), 2.0))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_batch_keeps_the_modes_of_files_that_it_replaces(tmp_path: Path) -> None:
    pairs = find_pairs(write_folder(tmp_path / "in", 1)).pairs
    path = tmp_path / "out" / "000.png"
    run_batch(pairs, path.parent, options=BICUBIC)
    path.write_bytes(b"damaged since")
    path.chmod(0o640)
    assert run_batch(pairs, path.parent, options=BICUBIC).made == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_one_mistake_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    name = tmp_path / "two\nlines.png"
    Image.new("RGB", (8, 8)).save(name, "PNG")
    name.write_bytes(name.read_bytes()[:40])
    code, _, said = ducos_here(capsys, "upscale", name, LOW, "-o", tmp_path / "a.png")
    assert (code, said.count("\n")) == (2, 1), said
    assert json.dumps(said).isascii()
