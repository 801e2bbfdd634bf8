"""What the numbers of a map mean: distances or their inverse, TUM's steps, swapped files."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ducos.doctor import examine
from ducos.errors import InputError
from ducos.upscaling import super_resolve

H, W = 180, 240


def room(noise: float = 0.0) -> np.ndarray:
    """(180, 240) metres: a floor, two slanted walls and a box."""
    v, u = (np.mgrid[:H, :W] + 0.5) / W - 0.5
    floor, left, right = 0.5 / np.maximum(v + 0.3, 0.08), 1 / (0.45 + 0.5 * u), 1 / (0.42 - 0.4 * u)
    depth = np.minimum(np.minimum(floor, left), right)
    depth[90:130, 100:140] = 1.1
    return (depth * (1 + noise * np.random.default_rng(0).normal(size=depth.shape))).astype("f4")


def colours() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 255, (H, W, 3), np.uint8)


@pytest.mark.parametrize("scale", [3.0, 700.0])
def test_inverse_depth_in_floats_is_named(scale: float) -> None:
    """As of a depth network, whatever its scale; `upscale` warns, too."""
    inverse = scale / room()
    finding = examine(colours(), inverse).find("inverse")
    assert finding is not None
    assert finding.severity == "warning"
    result = super_resolve(colours(), inverse, model="bicubic")
    assert any("inverse depth" in warning for warning in result.warnings)


@pytest.mark.parametrize("noise", [0.0, 0.002, 0.02])
def test_metres_are_not_called_inverse(noise: float) -> None:
    assert examine(colours(), room(noise)).find("inverse") is None


def test_who_gives_the_unit_is_not_doubted() -> None:
    assert examine(colours(), 3 / room(), unit="m").find("inverse") is None
    assert examine(colours(), 3 / room(), unit="relative").find("inverse") is None


def test_close_up_of_5000_per_metre_is_asked_about() -> None:
    """Its median, read as millimetres, is nothing unusual; but all steps are of five."""
    millimetres = np.rint(400 * room()).astype(np.uint16)
    finding = examine(colours(), 5 * millimetres).find("unit")
    assert finding is not None
    assert "--scale 0.0002" in finding.advice
    assert examine(colours(), 5 * millimetres, unit="mm").find("unit") is None
    for other in (millimetres, 10 * (millimetres // 4)):  # centimetres in steps of a millimetre
        assert examine(colours(), other).find("unit") is None


def test_centimetres_of_a_close_up_are_offered() -> None:
    finding = examine(colours(), np.rint(40 * room()).astype(np.uint16)).find("unit-levels")
    assert finding is not None
    assert "--unit cm" in finding.advice


def test_swapped_files_are_asked_about(tmp_path: Path) -> None:
    depth, jpeg, png = tmp_path / "depth.png", tmp_path / "rgb.jpg", tmp_path / "rgb.png"
    Image.fromarray(np.rint(1000 * room()).astype(np.uint16)).save(depth)
    Image.fromarray(colours()).save(jpeg)
    Image.fromarray(colours()).save(png)
    for image in (jpeg, png):
        with pytest.raises(InputError, match="swapped"):
            super_resolve(depth, image, model="bicubic")
