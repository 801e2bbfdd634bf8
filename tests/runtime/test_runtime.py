"""The package without torch: the same results, from the same weights, in less room."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from ducos import super_resolve
from ducos.errors import InputError
from ducos.example import LOW, PAIRS, RGB
from ducos.export import LIMIT
from ducos.files import read_colour, read_depth
from ducos.runtime import PIECES, PRIOR_PIECES, Network, described, network, open_network, place
from ducos.sampling import area
from ducos.upscaling import WEIGHTS, Options, chosen_runtime

EMBEDDED = sorted(WEIGHTS.glob("*.safetensors"))
TINY = WEIGHTS / "ducos-tiny.safetensors"


def both(rgb: Any, depth: Any, **options: Any) -> tuple[Any, Any]:
    return tuple(super_resolve(rgb, depth, runtime=name, **options) for name in ("onnx", "torch"))


def assert_alike(ours: Any, torchs: Any) -> None:
    span = float(np.ptp(torchs.low.depth[torchs.low.valid]))
    assert np.abs(ours.depth - torchs.depth).max() < LIMIT * span
    assert (ours.source == torchs.source).all()
    assert (ours.valid == torchs.valid).all()
    assert ours.facts()["residual"] == pytest.approx(torchs.facts()["residual"], abs=1e-4 * span)
    if torchs.sigma is not None:
        assert np.abs(ours.sigma - torchs.sigma).max() < LIMIT * span


@pytest.mark.parametrize("name", PAIRS)
def test_the_bundled_pairs_say_what_torch_says(name: str) -> None:
    pair = PAIRS[name]
    assert_alike(*both(pair.rgb, pair.depth, **pair.options))


@pytest.mark.parametrize("model", ["bicubic", "bilinear", "nearest"])
def test_interpolation_says_what_torch_says(model: str) -> None:
    assert_alike(*both(RGB, LOW, unit="mm", model=model))


@pytest.fixture(scope="module")
def odd() -> tuple[np.ndarray, np.ndarray]:
    """A pair of odd sizes with holes; nothing is a multiple of anything."""
    return read_colour(RGB)[:203, :331], read_depth(PAIRS["tof"].depth, unit="mm").depth[:61, :97]


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "repair", "sensor": "lidar"},
        {"shift": (7, -4)},
        {"keep_holes": True, "unit": "relative"},
        {"noise": 0.02, "threads": 2},
    ],
    ids=str,
)
def test_options_mean_what_they_mean_on_torch(odd: Any, options: dict[str, Any]) -> None:
    assert_alike(*both(*odd, any_aspect=True, **{"unit": "m", "shift": "off", **options}))


def test_a_confidence_weighs_as_on_torch(odd: Any) -> None:
    trust = np.random.default_rng(1).random(odd[1].shape, dtype=np.float32)
    trust[20:30, 40:60] = 0
    assert_alike(*both(*odd, unit="m", confidence=trust, any_aspect=True, shift="off"))


def test_a_map_finer_than_its_image_is_shrunk_as_on_torch(odd: Any) -> None:
    colours = read_colour(RGB)[::8, ::8]
    assert_alike(*both(colours, odd[1], unit="m", any_aspect=True, shift="off"))


def test_a_faithful_result_agrees_with_its_measurements(odd: Any) -> None:
    """Within two sigmas of the noise, away from edges and holes."""
    result = super_resolve(*odd, unit="m", runtime="onnx", noise=0.01, any_aspect=True, shift="off")
    low = result.low
    missing = np.abs(area(result.depth, low.depth.shape) - low.depth)[low.valid]
    assert np.quantile(missing, 0.9) < 2.2 * 0.01


@pytest.mark.parametrize("prior", ["bent", "flat"])
def test_a_prior_says_what_it_says_on_torch(odd: Any, prior: str) -> None:
    """Of another size, without a scale, and nearer is more; a flat one is not used."""
    rgb, depth = odd
    scene = read_depth(PAIRS["tof"].depth, unit="mm").depth[:61, :97]
    nearer = 1 / np.where(scene > 0, scene, scene.max()) ** 2
    given = area(nearer, (50, 80)) if prior == "bent" else np.ones((20, 30), np.float32)
    options = {"model": "ducos-small", "prior": given, "any_aspect": True, "unit": "m"}
    ours, torchs = both(rgb, depth, shift="off", **options)
    assert_alike(ours, torchs)
    assert np.abs(ours.leaned - torchs.leaned).max() < 1e-4
    assert (ours.leaned.max() > 0.1) == (prior == "bent")
    for result in (ours, torchs):
        assert any("prior was not used" in said for said in result.warnings) == (prior == "flat")


def test_tensors_in_tensors_out() -> None:
    import torch

    low = torch.from_numpy(read_depth(LOW, unit="mm").depth)
    result = super_resolve(RGB, low, unit="m", runtime="onnx")
    assert isinstance(result.depth, torch.Tensor)


# Strips


@pytest.mark.parametrize(("rows", "model"), [(8, "tiny"), (40, "small"), (4096, "tiny")])
def test_rows_that_pass_together_do_not_matter(
    odd: Any, monkeypatch: pytest.MonkeyPatch, rows: int, model: str
) -> None:
    given: dict[str, Any] = {"unit": "m", "runtime": "onnx", "any_aspect": True, "shift": "off"}
    given |= {"prior": odd[0].mean(-1)} if model == "small" else {}
    whole = super_resolve(*odd, **given)
    monkeypatch.setattr(network, "ROWS", rows)
    monkeypatch.setattr("ducos.runtime.surroundings.AT_ONCE", 0)
    parts = super_resolve(*odd, **given, tile="1MB")
    span = np.ptp(whole.low.depth[whole.low.valid])
    assert np.abs(parts.depth - whole.depth).max() < 2e-5 * span
    assert np.abs(parts.sigma - whole.sigma).max() < 2e-5 * span


# One set of weights


@pytest.mark.parametrize("weights", EMBEDDED, ids=lambda path: path.stem)
def test_graphs_and_weights_are_of_one_training(weights: Path) -> None:
    """If this fails: `ducos export --to pieces --model NAME`, after every training."""
    about = described(weights)
    for name, digest in about["weights"].items():
        assert hashlib.sha256((WEIGHTS / name).read_bytes()).hexdigest() == digest
    for piece in (*PIECES, *PRIOR_PIECES) if about["takes_prior"] else PIECES:
        graph = onnx.load(place(weights, piece), load_external_data=False).graph
        stored = [tensor for tensor in graph.initializer if tensor.data_location == 1]
        assert {e.value for t in stored for e in t.external_data if e.key == "location"} <= set(
            about["weights"]
        )
        assert sum(len(tensor.raw_data) for tensor in graph.initializer) < 20_000


def test_graphs_of_other_weights_are_refused(tmp_path: Path) -> None:
    for file in WEIGHTS.glob("ducos-tiny.*"):
        shutil.copy(file, tmp_path)
    weights = tmp_path / TINY.name
    assert Network(weights).words["mode"] == ["faithful", "repair"]
    changed = bytearray(weights.read_bytes())
    changed[-1] ^= 1
    weights.write_bytes(changed)
    with pytest.raises(InputError, match="made for another ducos-tiny"):
        Network(weights)


def test_a_network_is_opened_once() -> None:
    assert open_network(TINY, 1) is open_network(TINY, 1)


# Which runtime


def test_auto_takes_what_starts_faster() -> None:
    assert chosen_runtime(Options()) == "onnx"
    assert chosen_runtime(Options(model="guided-filter")) == "torch"
    assert chosen_runtime(Options(runtime="torch")) == "torch"
    assert chosen_runtime(Options(prior=RGB)) == "onnx"
    assert chosen_runtime(Options(device="cuda")) == "torch"


def test_what_onnx_cannot_is_said() -> None:
    with pytest.raises(InputError, match=r"guided-filter runs on torch; choose --runtime torch"):
        super_resolve(RGB, LOW, unit="mm", model="guided-filter", runtime="onnx")
    with pytest.raises(InputError, match="runtime must be one of"):
        Options(runtime="tvm")


# Without torch


BLOCKED = """
import sys
sys.modules.update(dict.fromkeys(("torch", "scipy", "cv2", "safetensors")))
from ducos.cli import main
sys.argv = ["ducos", *sys.argv[1:]]
main()
"""


def without_torch(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCKED, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_upscale_needs_no_torch(tmp_path: Path) -> None:
    out, picture, cloud = (tmp_path / name for name in ("out.npz", "look.png", "cloud.ply"))
    space = ("--cloud", cloud, "--field-of-view", 60)
    done = without_torch(
        "upscale", RGB, LOW, "-o", out, "--unit", "mm", "--preview", picture, *space, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 10_000
    assert cloud.stat().st_size > 10_000
    right = super_resolve(RGB, LOW, unit="mm", runtime="torch")
    assert np.abs(np.load(out)["depth"] - right.depth).max() < LIMIT * np.ptp(right.low.depth)
    assert json.loads(done.stdout)["model"] == right.model


def test_doctor_models_and_selftest_need_no_torch(tmp_path: Path) -> None:
    report = tmp_path / "report.png"
    for command in (("doctor", RGB, LOW, "--report", report), ("models",), ("selftest",)):
        done = without_torch(*command)
        assert done.returncode == 0, done.stderr
    assert report.stat().st_size > 10_000


def test_batch_needs_no_torch(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    for number in range(2):
        shutil.copy(RGB, pairs / f"{number}_rgb.png")
        shutil.copy(LOW, pairs / f"{number}_depth.png")
    done = without_torch("batch", pairs, "-o", tmp_path / "out", "--unit", "mm")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").glob("*.png"))) == 2


@pytest.mark.parametrize(
    "command",
    [
        ("upscale", RGB, LOW, "-o", "x.png", "--unit", "mm", "--model", "guided-filter"),
        ("upscale", RGB, LOW, "-o", "x.png", "--unit", "mm", "--runtime", "torch"),
        ("eval", "--model", "bicubic", "--dataset", "shapes:1"),
        ("export", "-o", "x.onnx"),
    ],
    ids=lambda words: " ".join(map(str, words[:1])),
)
def test_what_needs_torch_says_how_to_get_it(command: tuple[Any, ...], tmp_path: Path) -> None:
    words = [str(tmp_path / word) if str(word).startswith("x.") else word for word in command]
    done = without_torch(*words)
    assert done.returncode == 2, done.stderr
    assert "pip install 'ducos[torch]'" in done.stderr
    assert "Traceback" not in done.stderr
