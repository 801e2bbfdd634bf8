"""Damaged checkpoints: whatever their libraries do, the user gets one sentence."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from ducos.errors import InputError
from ducos.models import convert

FOUND = Path(__file__).parents[1] / "fuzz" / "found"


def test_a_file_that_crashes_its_library() -> None:
    """Found by changing bytes of a small file: scipy ends the process by a segmentation fault."""
    with pytest.raises(InputError, match=r"crashed on it|could not be read|without a MatConvNet"):
        convert("djf", FOUND / "scipy-segfault.mat")


def test_damaged_matlab_and_torch_files_give_one_sentence(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"net": np.ones((3, 3))}, do_compression=True)
    torch.save({"a": torch.ones(4)}, tmp_path / "a.pth")
    for name in ("a.mat", "a.pth"):
        content = bytearray((tmp_path / name).read_bytes())
        content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=rf"{name}.*") as problem:
            convert("djf", tmp_path / name)
        assert "\n" not in str(problem.value)
        assert len(str(problem.value)) < 400 + len(str(tmp_path))


def test_tensors_of_another_network_give_one_sentence(tmp_path: Path) -> None:
    """Shapes decide the arguments of a network: those that make no sense are refused."""
    torch.save({"layers.0.weights.0": torch.ones(2), "x": torch.ones(0, 3)}, tmp_path / "a.pth")
    for method in ("djf", "dornet"):
        with pytest.raises(InputError, match=r"a\.pth"):
            convert(method, tmp_path / "a.pth")
