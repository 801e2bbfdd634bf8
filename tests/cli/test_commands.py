"""The command line, end to end: real processes, real files, units checked on disk."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import trimesh
from PIL import Image

from ducos import files
from ducos.cameras.intrinsics import Camera
from ducos.example import LOW, RGB, TRUTH
from tests.commands import ducos, ducos_here


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A small colour image and a 16-bit depth map in millimetres."""
    rng = np.random.default_rng(0)
    rgb, depth = tmp_path / "rgb.png", tmp_path / "depth.png"
    Image.fromarray(rng.integers(0, 255, (45, 61, 3), dtype=np.uint8)).save(rgb)
    Image.fromarray(rng.integers(900, 3000, (12, 16)).astype(np.uint16)).save(depth)
    return rgb, depth


def test_upscale_writes_metres_at_the_size_of_the_image(tmp_path: Path) -> None:
    out, preview = tmp_path / "out.exr", tmp_path / "look.png"
    done = ducos(
        "upscale", RGB, LOW, "-o", out, "--preview", preview, "--model", "bicubic", "--json"
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["size"] == [480, 640]
    assert report["input_size"] == [60, 80]
    assert "millimetres" in report["unit_decision"]
    written = files.read_depth(out)
    assert written.unit == "m"
    truth = files.read_depth(TRUTH, unit="mm")
    assert abs(np.median(written.depth) - np.median(truth.depth)) < 0.02
    assert Image.open(preview).size[0] == 3 * 640


def test_upscale_explains_itself_to_people(tmp_path: Path) -> None:
    done = ducos("upscale", RGB, LOW, "-o", tmp_path / "out.png")
    assert done.returncode == 0, done.stderr
    assert "80×60 → 640×480" in done.stdout
    assert "unit guessed: millimetres" in done.stdout


def test_upscale_shows_the_result_in_space(tmp_path: Path) -> None:
    """Cloud, mesh and picture are those of the depth map beside them, without what flies."""
    out, cloud, mesh = (tmp_path / name for name in ("out.npz", "out.ply", "out.glb"))
    picture = tmp_path / "cloud.png"
    space = ("--field-of-view", 60, "--cloud", cloud, "--mesh", mesh, "--cloud-preview", picture)
    done = ducos("upscale", RGB, LOW, "-o", out, *space, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["cloud"], report["mesh"]) == (str(cloud), str(mesh))
    points = trimesh.load(cloud).vertices
    assert len(points) == report["points"]
    assert 0.75 * 640 * 480 < len(points) < 0.99 * 640 * 480
    column, row = Camera.from_field_of_view(640, 480, 60).pixels(points)
    depth = files.read_depth(out).depth[np.rint(row).astype(int), np.rint(column).astype(int)]
    assert np.abs(depth - points[:, 2]).max() < 1e-5
    assert len(trimesh.load(mesh, force="mesh").faces) > len(points)
    assert Image.open(picture).size[0] == 2 * 480

    done = ducos("upscale", RGB, LOW, "-o", out, *space, "--keep-flying")
    assert f"{640 * 480} points in space" in done.stdout
    assert len(trimesh.load(cloud).vertices) == 640 * 480
    assert done.stdout.splitlines()[-1] == f"wrote {out}, {cloud}, {mesh} and {picture}"


@pytest.mark.parametrize(
    ("options", "words"),
    [((), "--field-of-view"), (("--unit", "relative", "--field-of-view", 60), "metres")],
)
def test_a_cloud_that_cannot_be_is_refused_before_the_work(
    tmp_path: Path,
    pair: tuple[Path, Path],
    capsys: pytest.CaptureFixture,
    options: tuple[object, ...],
    words: str,
) -> None:
    out, cloud = tmp_path / "out.npz", tmp_path / "out.ply"
    code, _, err = ducos_here(capsys, "upscale", *pair, "-o", out, "--cloud", cloud, *options)
    assert code == 2
    assert words in err
    assert not out.exists()
    assert not cloud.exists()


def test_upscale_undoes_a_shift(tmp_path: Path) -> None:
    """Measured by itself it is nearer to the truth than left alone, and said in words and JSON."""
    low = files.read_depth(LOW, unit="mm")
    beside = tmp_path / "beside.png"
    files.write_depth(
        beside, np.roll(low.depth, (1, 2), (0, 1)), np.roll(low.valid, (1, 2), (0, 1))
    )
    truth = files.read_depth(TRUTH, unit="mm")
    errors = {}
    for shift in ("off", "auto"):
        out = tmp_path / f"{shift}.npy"
        done = ducos("upscale", RGB, beside, "-o", out, "--unit", "mm", "--shift", shift, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["shift"]
        error = np.abs(np.load(out) - truth.depth)[truth.valid]
        errors[shift] = float(error.mean())
    assert found["x"] == pytest.approx(16, abs=2)
    assert found["y"] == pytest.approx(8, abs=2)
    assert errors["auto"] < 0.7 * errors["off"]
    warned = ducos("upscale", RGB, beside, "-o", tmp_path / "x.npy", "--unit", "mm")
    assert "warning: the depth seems misaligned" in warned.stderr
    assert "--shift auto" in warned.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.load(tmp_path / "off.npy"))
    said = ducos("upscale", RGB, LOW, "-o", tmp_path / "x2.npy", "--shift", "-4,3")
    assert "warning" not in said.stderr
    assert "moved back by -4 px across and 3 px down" in said.stdout


def test_selftest_passes(capsys: pytest.CaptureFixture) -> None:
    code, out, _ = ducos_here(capsys, "selftest", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["ok"]
    assert report["rows"]


def test_demo_writes_depth_and_picture(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    code, out, _ = ducos_here(capsys, "demo", "-o", tmp_path / "demo", "--model", "bicubic")
    assert code == 0
    assert "RMSE" in out
    assert Image.open(tmp_path / "demo" / "bicubic-picture.png").size[0] == 4 * 640
    assert files.read_depth(tmp_path / "demo" / "bicubic.png").unit == "mm"


def test_models_lists_parameters_and_licences(capsys: pytest.CaptureFixture) -> None:
    code, out, _ = ducos_here(capsys, "models", "--json")
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out)["models"]}
    assert rows["ducos-released"]["parameters"] == 34_381_708
    assert rows["fdsr"]["parameters"] == 601_105
    assert all(row["licence"] for row in rows.values())
    code, out, _ = ducos_here(capsys, "models", "--prompts", "--json")
    prompts = {row["name"]: row for row in json.loads(out)["prompts"]}
    assert prompts["depth-anything-v2-s"]["parameters"] == 24_785_089
    assert prompts["depth-anything-v2-l"]["licence"] == "CC-BY-NC-4.0"


def test_eval_prints_json_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    code, out, _ = ducos_here(
        capsys, "eval", "--model", "bicubic", "--dataset", "shapes:2", "--scale", "4", "--json",
        "--out", tmp_path / "results",
    )  # fmt: skip
    assert code == 0
    rows = json.loads(out)["rows"]
    assert rows[0]["model"] == "bicubic"
    assert rows[0]["images"] == 2
    assert rows[0]["rmse"] > rows[0]["mae"] > 0
    assert (tmp_path / "results" / "results.csv").is_file()


def test_train_resume_and_use(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        '[data]\ntrain = "shapes:4"\ncrop = 32\nvalidation_images = 1\n'
        "[train]\nsteps = 4\nbatch_size = 2\nsave_every = 2\nvalidation_scales = [4]\n"
    )
    first = ducos("train", config, "-o", tmp_path / "run", "--set", "train.steps=2")
    assert first.returncode == 0, first.stderr
    code, _, said = ducos_here(capsys, "train", config, "-o", tmp_path / "run")
    assert code == 2
    assert "--resume" in said
    more = ducos("train", config, "-o", tmp_path / "run", "--resume")
    assert more.returncode == 0, more.stderr
    rows = [json.loads(x) for x in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert max(row["step"] for row in rows) == 4
    weights = tmp_path / "run/final.safetensors"
    used = ducos("upscale", RGB, LOW, "-o", tmp_path / "x.npz", "--model", weights)
    assert used.returncode == 0, used.stderr


def break_it(kind: str, rgb: Path, depth: Path) -> list[object]:
    """Arguments of `upscale` with one thing wrong."""
    folder = depth.parent
    if kind == "missing file":
        return [rgb, folder / "nowhere.png"]
    if kind == "missing image":
        return [folder / "nowhere.png", depth]
    if kind == "truncated PNG":
        depth.write_bytes(depth.read_bytes()[:60])
    if kind == "three channels":
        return [rgb, rgb]
    if kind == "all holes":
        Image.fromarray(np.zeros((12, 16), np.uint16)).save(depth)
    if kind == "all NaN":
        np.save(folder / "nan.npy", np.full((12, 16), np.nan, np.float32))
        return [rgb, folder / "nan.npy"]
    if kind == "zero size":
        np.save(folder / "empty.npy", np.zeros((0, 16), np.float32))
        return [rgb, folder / "empty.npy"]
    if kind == "negative depth":
        np.save(folder / "negative.npy", np.full((12, 16), -2.0, np.float32))
        return [rgb, folder / "negative.npy"]
    if kind == "turned by 90 degrees":
        np.save(folder / "turned.npy", np.full((16, 12), 2.0, np.float32))
        return [rgb, folder / "turned.npy"]
    if kind == "unknown model":
        return [rgb, depth, "--model", "nonsense"]
    if kind == "model without weights":
        return [rgb, depth, "--model", "fdsr"]
    if kind == "unreadable checkpoint":
        (folder / "bad.safetensors").write_bytes(b"not a tensor in sight")
        return [rgb, depth, "--model", folder / "bad.safetensors"]
    if kind == "pickle checkpoint":
        import torch

        torch.save({"weight": torch.ones(3)}, folder / "weights.pth")
        return [rgb, depth, "--model", folder / "weights.pth"]
    if kind == "unknown unit":
        return [rgb, depth, "--unit", "furlong"]
    if kind == "shift in one number":
        return [rgb, depth, "--shift", "12"]
    if kind == "shift out of the picture":
        return [rgb, depth, "--shift", "-4000,0"]
    return [rgb, depth]


BAD = [
    "missing file", "missing image", "truncated PNG", "three channels", "all holes", "all NaN",
    "zero size", "negative depth", "turned by 90 degrees", "unknown model", "model without weights",
    "unreadable checkpoint", "pickle checkpoint", "unknown unit", "shift in one number",
    "shift out of the picture",
]  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_sentence_and_no_file(
    kind: str, pair: tuple[Path, Path], capsys: pytest.CaptureFixture
) -> None:
    out = pair[0].parent / "out.png"
    before = set(pair[0].parent.iterdir())
    arguments = break_it(kind, *pair)
    before |= set(pair[0].parent.iterdir())
    code, printed, complaint = ducos_here(capsys, "upscale", *arguments, "-o", out)
    assert code == 2, (printed, complaint)
    assert complaint.startswith("ducos: ")
    assert complaint.count("\n") == 1
    assert "Traceback" not in complaint
    assert set(pair[0].parent.iterdir()) == before


@pytest.mark.parametrize("out", ["nowhere/out.png", "out.xyz"])
def test_bad_output_is_refused_before_the_work(
    out: str, pair: tuple[Path, Path], capsys: pytest.CaptureFixture
) -> None:
    code, _, complaint = ducos_here(capsys, "upscale", *pair, "-o", pair[0].parent / out)
    assert code == 2
    assert complaint.count("\n") == 1


def test_bad_config_is_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    config = tmp_path / "bad.toml"
    config.write_text("[train]\nstepz = 4\n")
    code, _, complaint = ducos_here(capsys, "train", config, "-o", tmp_path / "run")
    assert code == 2
    assert "stepz" in complaint
    assert not (tmp_path / "run").exists()


def test_a_broken_torchvision_does_no_harm(tmp_path: Path) -> None:
    """Its registry build fails at import beside this torch; nothing here may touch it."""
    (tmp_path / "torchvision.py").write_text("raise RuntimeError('operator does not exist')\n")
    imports = "import ducos.cli, ducos.training.loop, ducos.evaluation.scoring"
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {imports}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_synth_assets_prepares_and_explains(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    pictures, skies, out = tmp_path / "pictures", tmp_path / "skies/hdri", tmp_path / "assets"
    (pictures / "floor").mkdir(parents=True)
    skies.mkdir(parents=True)
    Image.fromarray(np.full((8, 8, 3), 90, np.uint8)).save(pictures / "floor/planks.png")
    sky = 'export default "data:application/octet-stream;base64,aGVsbG8="'
    (skies / "dawn.exr.js").write_text(sky)
    done = ducos(
        "synth-assets", out, "--hdri", tmp_path / "skies", "--textures", pictures,
        "--textures-licence", "CC0-1.0",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "skies: 1 assets",
        "pictures: 1 assets",
        f"2 assets in {out}",
    ]
    listed = json.loads((out / "index.json").read_text())
    assert "CC0-1.0" in json.dumps(listed)

    (tmp_path / "broken.sh3f").write_text("no zip")
    for arguments, words in (
        ([], "nothing to prepare"),
        (["--textures", pictures], "--textures-licence"),
        (["--hdri", tmp_path / "nowhere.tgz"], "does not exist"),
        (["--furniture", tmp_path / "broken.sh3f"], "broken.sh3f"),
        (["--furniture", tmp_path / "skies"], "no .sh3f file"),
    ):
        code, _, complaint = ducos_here(capsys, "synth-assets", out, *arguments)
        assert code == 2
        assert complaint.startswith("ducos: ")
        assert words in complaint
