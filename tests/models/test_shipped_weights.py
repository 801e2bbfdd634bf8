"""The weights that ship with the package keep what the README says of them."""

import pytest
import torch

from ducos import files
from ducos.degrade.devices import tof
from ducos.example import LOW, RGB, TRUTH, scores
from ducos.models.checkpoint import load_model
from ducos.upscaling import WEIGHTS, default_model, parameter_count, super_resolve

FILES = sorted(WEIGHTS.glob("*.safetensors"))


def test_there_are_weights_and_they_are_the_default() -> None:
    assert [path.stem for path in FILES] == ["ducos-small", "ducos-tiny"]
    assert default_model() == "ducos-tiny"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_weight_file_is_small_and_states_its_terms(path) -> None:
    model, spec, about = load_model(path)
    assert path.stat().st_size < 6_000_000
    assert parameter_count(model) < 1_500_000
    assert spec.name == "ducos-compact"
    assert about["licence"] == "Apache-2.0"
    assert about["trained_on"]
    assert about["figures"]


def test_the_example_is_better_than_bicubic() -> None:
    ours, bicubic = (
        scores(super_resolve(RGB, LOW, unit="mm", model=name)) for name in ("ducos-tiny", "bicubic")
    )
    assert ours["rmse_cm"] < 0.9 * bicubic["rmse_cm"]
    assert ours["mae_cm"] < 0.7 * bicubic["mae_cm"]


def test_the_picture_is_looked_at() -> None:
    """Networks of this kind can learn to sharpen the depth map alone; these weights must not."""
    picture = files.read_rgb(RGB)
    coloured, grey = (
        scores(super_resolve(image, LOW, unit="mm")) for image in (picture, 0 * picture + 0.5)
    )
    assert coloured["rmse_cm"] < 0.95 * grey["rmse_cm"]


def test_a_picture_that_tells_nothing_does_no_harm() -> None:
    """In the dark, or with the picture of another scene, the map alone must do."""
    picture = files.read_rgb(RGB)
    for useless in (0 * picture, picture[::-1, ::-1].copy()):
        ours, bicubic = (
            scores(super_resolve(useless, LOW, unit="mm", model=name))
            for name in ("ducos-tiny", "bicubic")
        )
        assert ours["rmse_cm"] < bicubic["rmse_cm"]


def test_a_sensors_name_helps() -> None:
    """Of a simulated ToF map of the example: better than bicubic, and better still if told."""
    truth, picture = files.read_depth(TRUTH, unit="mm"), files.read_rgb(RGB)
    planes = [torch.tensor(plane)[None, None] for plane in (truth.depth, truth.valid)]
    colours = torch.tensor(picture).permute(2, 0, 1)[None]
    noise = torch.Generator().manual_seed(0)
    low, known = (x[0, 0].numpy() for x in tof(*planes, colours, (120, 160), noise))
    bicubic, unknown, told = (
        scores(super_resolve(picture, low, mask=known, unit="m", model=model, sensor=sensor))
        for model, sensor in (("bicubic", "unknown"), (None, "unknown"), (None, "tof"))
    )
    assert told["rmse_cm"] < unknown["rmse_cm"] < bicubic["rmse_cm"]
