"""No command replaces its own input, or a file that somebody else made."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ducos.batch import run_batch
from ducos.errors import InputError
from ducos.example import LOW, RGB
from ducos.files import WRITTEN_AS, find_pairs, is_ours
from ducos.upscaling import super_resolve
from tests.batch.test_batch import BICUBIC, write_folder
from tests.commands import ducos_here


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    rgb, depth = tmp_path / "rgb.png", tmp_path / "depth.png"
    shutil.copy(RGB, rgb)
    shutil.copy(LOW, depth)
    return rgb, depth


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_upscale_never_replaces_an_input(
    tmp_path: Path, pair: tuple[Path, Path], capsys: pytest.CaptureFixture
) -> None:
    rgb, depth = pair
    (tmp_path / "link.png").symlink_to(depth)
    (tmp_path / "hard.png").hardlink_to(rgb)
    Image.new("L", Image.open(LOW).size, 255).save(tmp_path / "mask.png")
    before = contents(tmp_path)
    sharp = tmp_path / "sharp.png"
    for words in (
        ["-o", depth],
        ["-o", rgb],
        ["-o", tmp_path / "link.png"],
        ["-o", tmp_path / "hard.png"],
        ["-o", sharp, "--preview", rgb],
        ["-o", sharp, "--preview", depth, "--overwrite"],
        ["-o", tmp_path / "mask.png", "--mask", tmp_path / "mask.png", "--overwrite"],
        ["-o", sharp, "--preview", sharp],
        ["-o", sharp, "--preview", tmp_path / "." / "sharp.png", "--overwrite"],
    ):
        code, _, said = ducos_here(capsys, "upscale", rgb, depth, "--model", "bicubic", *words)
        assert code == 2, words
        assert "would be replaced" in said or "one name" in said
        assert contents(tmp_path) == before


def test_other_peoples_files_stay_unless_asked(
    tmp_path: Path, pair: tuple[Path, Path], capsys: pytest.CaptureFixture
) -> None:
    rgb, depth = pair
    thesis = tmp_path / "thesis.png"
    Image.new("RGB", (8, 8), (9, 9, 9)).save(thesis)
    kept = thesis.read_bytes()
    command = ["upscale", rgb, depth, "--model", "bicubic"]
    for words in (["-o", thesis], ["-o", tmp_path / "new.png", "--preview", thesis]):
        code, _, said = ducos_here(capsys, *command, *words)
        assert (code, thesis.read_bytes()) == (2, kept)
        assert "--overwrite" in said
        assert not (tmp_path / "new.png").exists()
    code, _, said = ducos_here(capsys, "doctor", rgb, depth, "--report", thesis)
    assert (code, thesis.read_bytes()) == (2, kept), said
    code, _, said = ducos_here(capsys, *command, "-o", thesis, "--overwrite")
    assert (code, thesis.read_bytes() != kept) == (0, True), said
    code, _, said = ducos_here(capsys, *command, "-o", thesis)  # a result of ours now
    assert code == 0, said


def test_results_of_every_kind_are_known_as_ours(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    """All that can carry a remark; NPY, PFM and BMP cannot."""
    result = super_resolve(*pair, model="bicubic", unit="mm", field_of_view=60.0, shift="off")
    names = [f"depth{suffix}" for suffix in WRITTEN_AS]
    for name in names:
        result.save(tmp_path / name)
    for suffix in (".png", ".jpg", ".webp", ".bmp"):
        result.preview(tmp_path / f"look{suffix}")
        names.append(f"look{suffix}")
    result.cloud().save(tmp_path / "cloud.ply")
    result.mesh().save(tmp_path / "mesh.glb")
    ours = {name for name in (*names, "cloud.ply", "mesh.glb") if is_ours(tmp_path / name)}
    assert {*names, "cloud.ply", "mesh.glb"} - ours == {"depth.npy", "depth.pfm", "look.bmp"}
    assert not is_ours(pair[0])
    np.savez(tmp_path / "theirs.npz", depth=np.ones((4, 4)))
    assert not is_ours(tmp_path / "theirs.npz")
    (tmp_path / "empty.png").touch()
    assert is_ours(tmp_path / "empty.png")


def test_batch_replaces_neither_inputs_nor_strangers(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "in", 2)
    pairs = find_pairs(folder).pairs
    before = contents(tmp_path)
    with pytest.raises(InputError, match="is an input"):
        run_batch(pairs, folder / "rgb", options=BICUBIC, overwrite=True)
    with pytest.raises(InputError, match="is an input"):
        run_batch(pairs, folder / "depth", options=BICUBIC)
    assert {k: v for k, v in contents(tmp_path).items() if "journal" not in k} == before

    out = tmp_path / "out"
    out.mkdir()
    shutil.copy(RGB, out / "001.png")
    with pytest.raises(InputError, match=r"001\.png is there already"):
        run_batch(pairs, out, options=BICUBIC)
    assert [path.name for path in out.iterdir()] == ["001.png"]
    assert run_batch(pairs, out, options=BICUBIC, overwrite=True).made == 2
    (out / "journal.jsonl").unlink()
    assert run_batch(pairs, out, options=BICUBIC).made == 2  # known as ours without a journal


def test_batch_keeps_lists_that_are_not_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """The table of pairs may be called failures.csv, and lie where the results go."""
    folder = write_folder(tmp_path / "in", 1)
    table = folder / "failures.csv"
    table.write_text("rgb,depth\nrgb/000.png,depth/000.png\n")
    before = contents(folder)
    code, _, said = ducos_here(capsys, "batch", table, "-o", folder, "--model", "bicubic")
    assert (code, "is an input" in said) == (2, True), said
    pairs = find_pairs(table).pairs
    with pytest.raises(InputError, match="not of an earlier batch"):
        run_batch(pairs, folder, options=BICUBIC)
    assert contents(folder) == before


def test_convert_does_not_replace_its_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / "8X.safetensors"
    file.write_bytes(b"whatever")
    code, _, said = ducos_here(capsys, "convert", "dctnet", file, "-o", file, "--overwrite")
    assert (code, "is an input" in said, file.read_bytes()) == (2, True, b"whatever")
