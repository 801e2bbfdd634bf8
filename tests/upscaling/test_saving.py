"""What a 16-bit file cannot hold: refused if it was measured, stored as the farthest if not."""

from pathlib import Path

import numpy as np
import pytest

from ducos.errors import InputError
from ducos.files import read_depth
from ducos.upscaling import super_resolve


def test_a_result_beyond_the_measurements_is_stored_as_the_farthest(tmp_path: Path) -> None:
    """As with the sky of a stereo camera: bicubic goes beyond 65.4 m beside a step."""
    depth = np.full((8, 8), 2000, np.uint16)
    depth[:, 4:] = 65_400
    result = super_resolve(np.zeros((32, 32, 3), np.uint8), depth, model="bicubic", shift="off")
    assert result.depth.max() > 65.6
    written = result.save(tmp_path / "a.png")
    assert written.saturated > 0
    assert read_depth(tmp_path / "a.png", unit="mm").depth.max() == pytest.approx(65.534)


def test_measurements_beyond_it_are_refused(tmp_path: Path) -> None:
    depth = np.full((8, 8), 70.0, np.float32)
    depth[0, 0] = 2
    result = super_resolve(np.zeros((32, 32, 3), np.uint8), depth, model="bicubic", shift="off")
    with pytest.raises(InputError, match="16 bits end at"):
        result.save(tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()
