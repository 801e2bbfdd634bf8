"""A network that is told what made the map: where the word comes from, and where it goes."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from ducos.batch import run_batch
from ducos.data import open_dataset
from ducos.data.pair import Pair
from ducos.data.shapes import Shapes
from ducos.errors import InputError
from ducos.evaluation.scoring import evaluate
from ducos.files import find_pairs
from ducos.hints import SENSORS
from ducos.models import Prediction, create
from ducos.models.checkpoint import (
    ModelSpec,
    load_model,
    save_model,
    stored_weights,
    write_tensors,
)
from ducos.models.strips import predict_in_strips
from ducos.models.told import Hints
from ducos.resize import bicubic
from ducos.training.augmentations import strengths
from ducos.training.config import Config
from ducos.training.loop import forward
from ducos.training.patches import SENSOR, PatchBatches
from ducos.training.run import load_start
from ducos.training.validation import validate
from ducos.upscaling import Options, predict, super_resolve
from tests.commands import ducos, ducos_here

SMALL = {"prompt_options": {"widths": [6, 6, 8, 8]}, "channels": 8}
WORDS = {"sensor": list(SENSORS)}


def network(seed: int = 0) -> nn.Module:
    """A network to which every sensor means something else."""
    torch.manual_seed(seed)
    model = create("ducos-compact", **SMALL, told=WORDS)
    nn.init.normal_(model.hints.weight)  # type: ignore[union-attr, arg-type]
    return model.eval()


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    noise = torch.Generator().manual_seed(1)
    low = 1 + torch.rand(1, 1, 12, 16, generator=noise)
    return torch.rand(1, 3, 48, 64, generator=noise), low, torch.ones_like(low, dtype=torch.bool)


def answers(model: nn.Module, memory: int | None = None) -> dict[str, Tensor]:
    with torch.inference_mode():
        return {
            name: predict(model, *inputs(), sensor=name, memory=memory).depth for name in SENSORS
        }


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A weight file of such a network."""
    spec = ModelSpec("ducos-compact", None, SMALL["prompt_options"], {"channels": 8, "told": WORDS})
    path = tmp_path / "told.safetensors"
    save_model(path, spec, stored_weights(network()), {})
    return path


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two pairs with a sensor's own map and the truth, as `folder` and `batch` read them."""
    folder = tmp_path / "recording"
    rng = np.random.default_rng(0)
    for part in ("rgb", "depth", "low"):
        (folder / part).mkdir(parents=True)
    for name in ("a", "b"):
        colours = rng.integers(0, 255, (48, 64, 3), np.uint8)
        Image.fromarray(colours).save(folder / "rgb" / f"{name}.png")
        for part, size in (("depth", (48, 64)), ("low", (12, 16))):
            codes = rng.integers(1000, 2000, size).astype(np.uint16)
            Image.fromarray(codes).save(folder / part / f"{name}.png")
    return folder


# The network


def test_a_hint_says_nothing_before_it_is_learned() -> None:
    torch.manual_seed(0)
    deaf = create("ducos-compact", **SMALL).eval()
    torch.manual_seed(0)
    fresh = create("ducos-compact", **SMALL, told=WORDS).eval()
    fresh.load_state_dict(deaf.state_dict(), strict=False)
    expected = answers(deaf)["unknown"]
    assert all(torch.equal(answer, expected) for answer in answers(fresh).values())


def test_every_sensor_is_told_apart() -> None:
    given = list(answers(network()).values())
    different = [(a - b).abs().max() > 1e-3 for i, a in enumerate(given) for b in given[:i]]
    assert len(different) == 6
    assert all(different)


def test_without_a_word_the_sensor_is_unknown() -> None:
    model = network()
    with torch.inference_mode():
        assert torch.equal(predict(model, *inputs()).depth, answers(model)["unknown"])


@pytest.mark.parametrize("name", SENSORS)
def test_strips_are_told_too(name: str) -> None:
    model, (rgb, low, valid) = network(), inputs()
    told = {"sensor": name}
    with torch.inference_mode():
        whole = model(rgb, low - 1, valid, told).depth
    tiled = predict_in_strips(model, rgb, low - 1, valid, told, memory=1).depth
    assert (tiled - whole).abs().max() < 1e-5


def test_each_of_a_batch_has_its_own() -> None:
    model, (rgb, low, valid) = network(), inputs()
    both = [x.repeat(2, 1, 1, 1) for x in (rgb, low - 1, valid)]
    with torch.inference_mode():
        first, second = model(*both, {"sensor": ["tof", "lidar"]}).depth
        alone = [model(rgb, low - 1, valid, {"sensor": n}).depth[0] for n in ("tof", "lidar")]
    torch.testing.assert_close(first, alone[0])
    torch.testing.assert_close(second, alone[1])


def test_models_that_cannot_be_told_take_no_notice() -> None:
    rgb = np.random.default_rng(0).random((24, 32, 3)).astype(np.float32)
    low = 1 + rgb[::4, ::4, 0]
    results = [super_resolve(rgb, low, unit="m", model="bicubic", sensor=s).depth for s in SENSORS]
    assert all(np.array_equal(result, results[0]) for result in results)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown sensor 'sonar'.*tof, lidar, stereo"):
        super_resolve(np.zeros((8, 8, 3)), np.ones((2, 2)), unit="m", sensor="sonar")


# Names belong to the weights


def test_a_name_that_the_weights_do_not_know_counts_as_unknown() -> None:
    """As of a file that is older than the name."""
    torch.manual_seed(0)
    old = create("ducos-compact", **SMALL, told={"sensor": ["unknown", "tof"]}).eval()
    nn.init.normal_(old.hints.weight)  # type: ignore[union-attr, arg-type]
    with torch.inference_mode():
        unknown = predict(old, *inputs()).depth
        with pytest.warns(UserWarning, match="do not know the sensor 'stereo', only unknown, tof"):
            stereo = predict(old, *inputs(), sensor="stereo").depth
        told = predict(old, *inputs(), sensor="tof").depth
    assert torch.equal(stereo, unknown)
    assert not torch.equal(told, unknown)


def test_a_new_name_in_the_code_breaks_no_file(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answers(network())["tof"]
    monkeypatch.setattr("ducos.hints.SENSORS", {"radar": "new, and first", **SENSORS})
    model = load_model(weights)[0]
    assert model.subjects == {"sensor": ("unknown", "tof", "lidar", "stereo")}
    with torch.inference_mode():
        assert torch.equal(predict(model, *inputs(), sensor="tof").depth, before)


def test_several_subjects_add_up() -> None:
    """A further subject needs no other shape of model or file."""
    words = {**WORDS, "mode": ["faithful", "repair"]}
    assert create("ducos-compact", **SMALL, told=words).subjects["mode"] == ("faithful", "repair")
    hints = Hints(words, 8)
    nn.init.normal_(hints.weight)
    rows = hints.weight
    shift = hints.shift({"mode": "repair", "sensor": ["tof", "unknown"]}, 2)[:, :, 0, 0]
    torch.testing.assert_close(shift, rows[[1, 0]] + rows[5])
    assert torch.equal(hints.shift(None, 1)[0, :, 0, 0], rows[0] + rows[4])


def test_words_must_fit_the_batch() -> None:
    with pytest.raises(InputError, match="got 2 words for the"):
        network()(*inputs(), {"sensor": ["tof", "tof"]})
    with pytest.raises(InputError, match=r"told\.sensor must be a list"):
        create("ducos-compact", **SMALL, told={"sensor": "tof"})


def test_files_from_before_names_were_stored_have_four_rows(tmp_path: Path) -> None:
    path = tmp_path / "old.safetensors"
    old = {"name": "ducos-compact", "prompt": None, "prompt_options": SMALL["prompt_options"]}
    old["kwargs"] = {"channels": 8, "hinted": True, "gather_stages": True}
    header = {"format": "ducos-1", "spec": json.dumps(old)}
    write_tensors(path, stored_weights(network()), header)
    model, spec, _ = load_model(path)
    assert spec.kwargs == {"channels": 8, "told": WORDS}
    assert all(
        torch.equal(a, b)
        for a, b in zip(answers(model).values(), answers(network()).values(), strict=True)
    )


def test_modules_from_elsewhere_need_no_protocol() -> None:
    class Mine(nn.Module):
        def forward(self, rgb: Tensor, low: Tensor, valid: Tensor) -> Prediction:
            return Prediction(bicubic(low, (rgb.shape[-2], rgb.shape[-1])))

    rgb = np.random.default_rng(0).random((24, 32, 3)).astype(np.float32)
    results = [
        super_resolve(rgb, 1 + rgb[::4, ::4, 0], unit="m", model=model, sensor="tof", tile="1MB")
        for model in (Mine(), "bicubic")
    ]
    np.testing.assert_allclose(results[0].depth, results[1].depth, atol=1e-6)


# Training


class Measured:
    """A scene with the map of a sensor."""

    name, unit, scenes = "measured", "m", ("one",)

    def __init__(self, sensor: str):
        self.sensor = sensor

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Pair:
        target = np.linspace(1, 2, 64 * 64, dtype=np.float32).reshape(64, 64)
        low = np.ascontiguousarray(target[2::4, 2::4])
        masks = np.ones_like(target, bool), np.ones_like(low, bool)
        rgb = np.repeat(target[..., None] - 1, 3, 2)
        return Pair("one", rgb, target, masks[0], low, masks[1], self.sensor)


def told(degradation: str, hint: float, dataset: object = None) -> list[str]:
    """What the networks of 64 patches are told."""
    batches = PatchBatches(
        dataset or Shapes(2),  # type: ignore[arg-type]
        batch_size=8,
        crop=32,
        scales=(4.0, 4.0),
        degradations={degradation: 1.0},
        augmentations=strengths(hint=hint),
        seed=0,
    )
    return [name for step in range(8) for name in batches[step].told["sensor"]]


@pytest.mark.parametrize("name", ["tof", "lidar", "stereo"])
def test_a_share_of_the_patches_is_told_its_sensor(name: str) -> None:
    assert set(told(name, 0.0)) == {"unknown"}
    assert set(told(name, 1.0)) == {name}
    some = told(name, 0.5)
    assert set(some) == {"unknown", name}
    assert 16 < some.count("unknown") < 48


@pytest.mark.parametrize("name", ["bicubic", "area", "noisy"])
def test_nobody_is_told_that_a_map_was_resampled(name: str) -> None:
    assert set(told(name, 1.0)) == {"unknown"}


def test_a_real_sensors_name_comes_with_its_pairs() -> None:
    assert set(told(SENSOR, 1.0, Measured("lidar"))) == {"lidar"}
    assert set(told(SENSOR, 1.0, Measured("unknown"))) == {"unknown"}


def test_hints_leave_the_patches_alone() -> None:
    common = {"batch_size": 2, "crop": 32, "scales": (4.0, 4.0), "degradations": {"tof": 1.0}}
    one, other = (
        PatchBatches(Shapes(2), **common, augmentations=strengths(hint=hint), seed=0)[3]  # type: ignore[arg-type]
        for hint in (0.0, 1.0)
    )
    assert torch.equal(one.rgb, other.rgb)
    assert torch.equal(one.low, other.low)
    assert torch.equal(one.target, other.target)


def test_weights_that_were_never_told_can_start_a_network_that_will_be(tmp_path: Path) -> None:
    deaf = create("ducos-compact", **SMALL)
    path = tmp_path / "deaf.safetensors"
    spec = ModelSpec("ducos-compact", None, SMALL["prompt_options"], {"channels": 8})
    save_model(path, spec, stored_weights(deaf), {})
    fresh = create("ducos-compact", **SMALL, told=WORDS)
    load_start(fresh, Config.model_validate({"model": {"start": str(path)}}))
    assert torch.equal(fresh.state_dict()["head.weight"], deaf.state_dict()["head.weight"])
    assert not fresh.state_dict()["hints.weight"].any()


def test_only_what_is_told_is_learned() -> None:
    model, (rgb, low, valid) = network().train(), inputs()
    model(rgb, low - 1, valid, {"sensor": "lidar"}).depth.square().mean().backward()
    gradient = model.hints.weight.grad  # type: ignore[union-attr]
    assert [bool(row.any()) for row in gradient] == [False, False, True, False]


# Where the word comes from


def test_datasets_say_what_made_their_maps(recording: Path) -> None:
    assert open_dataset(f"folder:{recording}")[0].sensor == "unknown"
    assert open_dataset(f"folder:{recording},sensor=stereo")[1].sensor == "stereo"
    with pytest.raises(InputError, match="unknown sensor 'radar'"):
        open_dataset(f"folder:{recording},sensor=radar")


def test_evaluation_tells_it_of_maps_as_they_are(recording: Path) -> None:
    def rmse(protocol: str, sensor: str) -> float:
        spec = f"folder:{recording},sensor={sensor}"
        scales = () if protocol == "real" else (4.0,)
        (row,) = evaluate({"told": network()}, spec, protocol, scales)
        return row.figures["rmse"]

    assert rmse("real", "tof") != rmse("real", "unknown")
    assert rmse("synthetic", "tof") == rmse("synthetic", "unknown")


def test_validation_tells_it(recording: Path) -> None:
    from ducos.training.dual import Dual
    from ducos.training.run import Run

    model = network()
    config = Config.model_validate({"data": {"degradations": {"sensor": 1.0}}})
    scores = {
        name: validate(
            Run(model, torch.optim.Adam(model.parameters()), Dual({}), {}),
            config,
            open_dataset(f"folder:{recording},sensor={name}"),
        )["rmse_sensor"]
        for name in ("unknown", "tof")
    }
    assert scores["tof"] != scores["unknown"]


def test_the_command_line_tells_it(recording: Path, weights: Path, tmp_path: Path) -> None:
    pair = (str(recording / "rgb" / "a.png"), str(recording / "low" / "a.png"))
    maps = {}
    for name in ("unknown", "lidar"):
        out = tmp_path / f"{name}.npy"
        done = ducos("upscale", *pair, "-o", out, "--model", weights, "--sensor", name, "--json")
        assert json.loads(done.stdout)["sensor"] == name
        maps[name] = np.load(out)
        expected = super_resolve(*pair, model=weights, sensor=name).depth
        np.testing.assert_allclose(maps[name], expected, atol=1e-5)
    assert np.abs(maps["unknown"] - maps["lidar"]).max() > 1e-3


def test_batches_tell_it(recording: Path, weights: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "pairs.csv"
    manifest.write_text("rgb,depth\n" + f"{recording}/rgb/b.png,{recording}/low/b.png\n")
    made = {}
    for name in ("unknown", "tof"):
        options = Options(model=str(weights), sensor=name, shift="off")
        summary = run_batch(
            find_pairs(manifest).pairs, tmp_path / name, options=options, suffix=".npy", workers=1
        )
        assert (summary.made, summary.failures) == (1, [])
        (out,) = (tmp_path / name).glob("*.npy")
        made[name] = np.load(out)
    assert np.abs(made["unknown"] - made["tof"]).max() > 1e-3
    with pytest.raises(InputError, match="unknown sensor"):
        run_batch(
            find_pairs(manifest).pairs, tmp_path / "no", options=Options(sensor="x"), workers=1
        )


@pytest.mark.parametrize("command", ["upscale", "batch"])
def test_help_names_the_cameras(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ducos_here(capsys, command, "--help")
    assert code == 0
    said = " ".join(out.replace("│", " ").split())
    for camera in ("Azure Kinect", "iPhone", "RealSense"):
        assert camera in said


def test_half_precision_can_be_told() -> None:
    common = {"batch_size": 2, "crop": 32, "scales": (4.0, 4.0), "degradations": {"tof": 1.0}}
    batch = PatchBatches(Shapes(2), **common, augmentations=strengths(hint=1.0), seed=0)[0]  # type: ignore[arg-type]
    model = network()
    half, full = (forward(model, batch, each).depth for each in ("bfloat16", "float32"))
    assert half.dtype == torch.float32
    assert 0 < (half - full).abs().max() < 0.1
