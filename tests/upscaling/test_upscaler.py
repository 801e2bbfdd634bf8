"""Upscaler, Options and Result: one way in for the library, commands and workers."""

import inspect
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest
import torch

from ducos import example, files
from ducos.cameras import Camera, registered
from ducos.errors import InputError
from ducos.models import create
from ducos.upscaling import OPTIONS, Options, Upscaler, super_resolve
from tests.commands import ducos_here


def pair(h: int = 12, w: int = 16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(h)
    return rng.random((48, 64, 3)).astype(np.float32), (1 + rng.random((h, w))).astype(np.float32)


# Options


def test_every_option_explains_itself_and_has_a_form_on_the_command_line() -> None:
    for each in fields(Options):
        assert each.metadata["help"].endswith((".", ")"))
        assert each.metadata["typed"] is not None


def test_help_and_signature_of_super_resolve_come_from_the_options() -> None:
    signature = inspect.signature(super_resolve)
    for name, each in OPTIONS.items():
        assert signature.parameters[name].default == each.default
        assert each.metadata["help"] in str(super_resolve.__doc__)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"unit": "inch"}, "unit 'inch' is unknown"),
        ({"scale": -1.0}, "scale"),
        ({"sensor": "sonar"}, "unknown sensor"),
        ({"mode": "loyal"}, "unknown mode"),
        ({"noise": -1.0}, "standard deviation"),
        ({"shift": "left"}, "shift is check, auto, off"),
        ({"tile": "big"}, "tile is auto, off or a size"),
        ({"device": "tpu"}, "unknown device"),
        ({"threads": 0}, "threads must be 1 or more"),
        ({"model": "nope"}, "unknown model"),
        ({"mask": "no.png"}, "does not exist"),
        ({"confidence": "no.png"}, "does not exist"),
        ({"field_of_view": 200.0}, "0.01 to 179.9 degrees"),
        ({"extrinsics": Path(__file__)}, "registration needs all of"),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
def test_options_check_themselves(wrong: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Options(**wrong)


def test_options_are_frozen_and_unknown_ones_refused() -> None:
    with pytest.raises(FrozenInstanceError):
        Options().unit = "m"  # type: ignore[misc]
    with pytest.raises(InputError, match=r"unknown option 'unti'; choose from: model, unit"):
        super_resolve(*pair(), unti="m")


def test_options_travel_as_json() -> None:
    options = Options(model="bicubic", unit="cm", shift=(3.0, -2.0), keep_holes=True, threads=1)
    back = json.loads(json.dumps(options.plain()))
    again = Options(**{**back, "shift": tuple(back["shift"])})
    assert again == options
    with pytest.raises(InputError, match="mask must be a name or a file"):
        Options(mask=np.ones((2, 2))).plain()


def test_options_as_one_object_or_one_by_one() -> None:
    rgb, depth = pair()
    options = Options(model="bicubic", unit="m", keep_holes=True)
    whole = super_resolve(rgb, depth, options)
    single = super_resolve(rgb, depth, model="bicubic", unit="m", keep_holes=True)
    both = super_resolve(rgb, depth, Options(model="bicubic"), unit="m", keep_holes=True)
    assert np.array_equal(whole.depth, single.depth)
    assert np.array_equal(whole.depth, both.depth)
    assert both.options == options


# Upscaler


def test_threads_get_what_one_after_another_gets() -> None:
    upscaler = Upscaler(unit="m", shift="off")
    pairs = [pair(12, 16), pair(10, 16), pair(12, 14), pair(6, 8)] * 2
    alone = [upscaler(*each).depth for each in pairs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda each: upscaler(*each).depth, pairs))
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one, other)


def test_a_model_is_loaded_once() -> None:
    assert Upscaler().network is Upscaler("ducos-tiny").network


def test_what_is_fixed_stays_fixed() -> None:
    upscaler = Upscaler("bicubic", unit="m")
    with pytest.raises(InputError, match="model is fixed when an Upscaler is made"):
        upscaler(*pair(), model="ducos-tiny")
    assert upscaler(*pair(), unit="m", keep_holes=True).options.keep_holes


def test_a_module_in_training_is_left_in_training_also_from_threads() -> None:
    torch.manual_seed(0)
    network = create("ducos-compact", channels=8).train()
    upscaler = Upscaler(network, unit="m", shift="off")
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: upscaler(*pair()).depth, range(4)))
    assert network.training
    assert all(np.array_equal(results[0], each) for each in results)


def test_threads_of_the_processor_are_given_back() -> None:
    before = torch.get_num_threads()
    Upscaler("bicubic", threads=1, unit="m")(*pair())
    assert torch.get_num_threads() == before


# The command is the function


def test_the_command_writes_the_bytes_of_the_function(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    low = files.read_depth(example.LOW, unit="mm")
    beside = tmp_path / "beside.png"
    moved = np.roll(low.depth, (1, 2), (0, 1)), np.roll(low.valid, (1, 2), (0, 1))
    files.write_depth(beside, *moved)
    given = ["--unit", "mm", "--shift", "auto", "--threads", 1]
    code, said, _ = ducos_here(
        capsys, "upscale", example.RGB, beside, "-o", tmp_path / "command.npz", *given
    )
    assert code == 0
    result = super_resolve(example.RGB, beside, unit="mm", shift="auto", threads=1)
    result.save(tmp_path / "function.npz")
    assert (tmp_path / "command.npz").read_bytes() == (tmp_path / "function.npz").read_bytes()
    assert result.shift.x == pytest.approx(16, abs=2)
    assert result.shift.note in said


def test_a_doubtful_place_is_a_warning_not_a_print(capsys: pytest.CaptureFixture) -> None:
    low = files.read_depth(example.LOW, unit="mm")
    moved = np.roll(np.where(low.valid, low.depth, 0), (1, 2), (0, 1))
    result = super_resolve(example.RGB, moved, unit="m", model="bicubic")
    assert capsys.readouterr() == ("", "")
    (warning,) = result.warnings
    assert "--shift auto moves it back" in warning
    assert super_resolve(example.RGB, moved, unit="m", model="bicubic", shift="off").warnings == ()


def test_registration_is_on_the_way(tmp_path: Path) -> None:
    rgb, depth = pair()
    names = {}
    for name, (width, height) in {"depth": (16, 12), "rgb": (64, 48)}.items():
        camera = Camera.from_field_of_view(width, height, 60)
        names[name] = tmp_path / f"{name}.json"
        names[name].write_text(
            json.dumps(
                {key: getattr(camera, key) for key in ("width", "height", "fx", "fy", "cx", "cy")}
            )
        )
    pose = tmp_path / "pose.json"
    pose.write_text(
        json.dumps({"rotation": np.eye(3).tolist(), "translation": [0.05, 0, 0], "unit": "m"})
    )
    cameras = {
        "depth_intrinsics": names["depth"],
        "rgb_intrinsics": names["rgb"],
        "extrinsics": pose,
    }
    ours = super_resolve(rgb, depth, unit="m", model="bicubic", shift="off", **cameras)
    low, sentence = registered(
        files.read_low(depth, "m", None, None), (48, 64), *(str(path) for path in cameras.values())
    )
    by_hand = super_resolve(rgb, low, model="bicubic", shift="off")
    assert np.array_equal(ours.depth, by_hand.depth)
    assert sentence in ours.notes
    assert len(ours.cloud()) > 0  # the colour camera is known


# Result


def test_a_result_writes_itself(tmp_path: Path) -> None:
    result = super_resolve(example.RGB, example.LOW, unit="mm", field_of_view=60.0)
    result.save(tmp_path / "a.npz")
    stored = np.load(tmp_path / "a.npz")
    assert np.array_equal(stored["source"], result.source)
    assert np.array_equal(stored["sigma"], result.sigma)
    result.preview(tmp_path / "a.png")
    assert files.read_rgb(tmp_path / "a.png").shape[2] == 3
    result.cloud().save(tmp_path / "a.ply")
    result.mesh().save(tmp_path / "a.glb")
    assert (tmp_path / "a.ply").stat().st_size > 1_000_000
    assert (tmp_path / "a.glb").stat().st_size > 1_000_000
    assert len(result.cloud(keep_flying=True)) == result.valid.sum() > len(result.cloud())
    with pytest.raises(InputError, match=r"written as \.ply"):
        result.cloud().save(tmp_path / "a.pcd")


def test_a_cloud_needs_a_camera_and_metres() -> None:
    rgb, depth = pair()
    with pytest.raises(InputError, match="needs the colour camera"):
        super_resolve(rgb, depth, unit="m", model="bicubic").cloud()
    levels = super_resolve(rgb, depth, unit="relative", model="bicubic")
    with pytest.raises(InputError, match="needs metres"):
        levels.cloud(Camera.from_field_of_view(64, 48, 60))


def test_tensors_stay_tensors_and_facts_are_plain() -> None:
    rgb, depth = pair()
    result = super_resolve(rgb, torch.from_numpy(depth), unit="m")
    assert isinstance(result.depth, torch.Tensor)
    assert isinstance(result.sigma, torch.Tensor)
    facts = json.loads(json.dumps(result.facts()))
    assert facts["size"] == [48, 64]
    assert facts["mode"] == "faithful"
    assert any("ducos-tiny" in line for line in result.sentences())
