"""Authors' checkpoints, in every format they come in, become our state dicts or are refused."""

import json
import os
from collections import OrderedDict
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ducos.errors import InputError
from ducos.models import create
from ducos.models.authors import arguments, convert
from tests import parity_kit
from tests.places import SHARED

METHODS = ("djf", "djfr", "cunet", "dkn", "fdkn", "fdsr", "dctnet")


def assert_same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert torch.equal(ours[name], value), name


# Formats, on files made here.


@pytest.mark.parametrize("method", METHODS)
def test_a_pickle_and_its_safetensors_copy_give_the_same_network(
    method: str, tmp_path: Path
) -> None:
    weights = parity_kit.weights(method)
    torch.save(weights, tmp_path / "net.pth")
    save_file(weights, tmp_path / "net.safetensors")
    for file in ("net.pth", "net.safetensors"):
        assert_same(convert(method, tmp_path / file), weights)


@pytest.mark.parametrize("legacy", [False, True])
def test_wrappings_of_training_scripts_come_off(legacy: bool, tmp_path: Path) -> None:
    """DataParallel's prefix, a dict around the state dict, numpy numbers, no suffix, old format."""
    weights = parity_kit.weights("fdkn")
    checkpoint = {
        "model": OrderedDict((f"module.{name}", value) for name, value in weights.items()),
        "optimizer": {"state": {0: {"exp_avg": torch.zeros(3)}}, "param_groups": [{"lr": 1e-4}]},
        "epoch": 7,
        "train_loss": np.float64(0.25),
        "history": [np.float32(0.5)],
    }
    path = tmp_path / "FDKN_8x"
    torch.save(checkpoint, path, _use_new_zipfile_serialization=not legacy)
    assert_same(convert("fdkn", path), weights)


def matconvnet_layers(weights: dict[str, Tensor]) -> list[dict[str, list[np.ndarray]]]:
    """A DJF state dict as the eleven layers of MatConvNet: (h, w, in, out), trailing ones gone."""
    layers: list[dict[str, list[np.ndarray]]] = [{} for _ in range(11)]
    for part, field, places in (
        ("guide", "weights", (0, 2, 4)),
        ("depth", "weights_depth", (0, 2, 4)),
        ("joint", "weights", (5, 7, 9)),
    ):
        for index, place in enumerate(places):
            filters = weights[f"{part}.{index}.weight"].permute(2, 3, 1, 0).numpy()
            if filters.shape[3] == 1:
                filters = filters[..., 0]
            layers[place][field] = [filters, weights[f"{part}.{index}.bias"].numpy()[None]]
    return layers


def write_matlab5(path: Path, layers: list[dict[str, list[np.ndarray]]]) -> None:
    def cell(values: list) -> np.ndarray:
        array = np.empty((1, len(values)), object)
        array[0, :] = values
        return array

    structs: list = [
        {"type": "conv", **{field: cell(arrays) for field, arrays in layer.items()}}
        for layer in layers
    ]
    scipy.io.savemat(path, {"net": {"layers": cell(structs)}, "info": {"train": 1.0}})


def write_matlab73(path: Path, layers: list[dict[str, list[np.ndarray]]]) -> None:
    with h5py.File(path, "w", userblock_size=512) as file:
        references = file.create_group("#refs#")

        def stored(array: np.ndarray) -> h5py.Reference:
            return references.create_dataset(str(len(references)), data=array.T).ref

        rows = []
        for layer in layers:
            group = references.create_group(str(len(references)))
            for field, arrays in layer.items():
                cells = np.array([[stored(array)] for array in arrays], h5py.ref_dtype)
                group.create_dataset(field, data=cells, dtype=h5py.ref_dtype)
            rows.append([group.ref])
        file.create_dataset("net/layers", data=np.array(rows, h5py.ref_dtype))
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64, HDF5 schema 1.00 .")


@pytest.mark.parametrize("write", [write_matlab5, write_matlab73])
@pytest.mark.parametrize("filters", [(96, 48, 64, 32), (128, 64, 128, 64)])
def test_matlab_networks(write, filters: tuple[int, ...], tmp_path: Path) -> None:
    torch.manual_seed(0)
    weights = create("djfr", filters=filters).state_dict()
    path = tmp_path / "Upsampling_res_4x.mat"
    write(path, matconvnet_layers(weights))
    state = convert("djfr", path)
    assert_same(state, weights)
    assert arguments("djfr", state) == {"filters": filters}


def test_converted_weights_are_our_own_copy_in_single_precision(tmp_path: Path) -> None:
    weights = {name: value.double() for name, value in parity_kit.weights("cunet").items()}
    torch.save(weights, tmp_path / "net.pth")
    state = convert("cunet", tmp_path / "net.pth")
    assert {value.dtype for value in state.values()} == {torch.float32}
    assert not any(value.requires_grad for value in state.values())


# Refusals.


class MakesFolder:
    """A pickle of this makes a folder when it is loaded carelessly."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_pickle_with_code_is_refused_and_never_run(legacy: bool, tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    checkpoint = {"model": parity_kit.weights("fdkn"), "extra": MakesFolder(evidence)}
    path = tmp_path / "net.pth"
    torch.save(checkpoint, path, _use_new_zipfile_serialization=not legacy)
    with pytest.raises(InputError, match=r"needs \w+\.mkdir, which could run code") as refusal:
        convert("fdkn", path)
    assert "weights_only" not in str(refusal.value)  # torch's own message recommends to turn it off
    assert not evidence.exists()
    torch.load(path, weights_only=False)
    assert evidence.exists()  # the file was a trap indeed


def test_a_whole_pickled_network_is_refused(tmp_path: Path) -> None:
    torch.save(create("fdsr"), tmp_path / "net.pth")
    with pytest.raises(InputError, match=r"needs ducos\.models\.baselines\.fdsr\.FDSR"):
        convert("fdsr", tmp_path / "net.pth")


def test_numpy_objects_are_no_numbers(tmp_path: Path) -> None:
    """Plain numpy numbers are let through; an object array could hold anything."""
    hidden = np.array([MakesFolder(tmp_path / "evidence")], object)
    torch.save({"model": parity_kit.weights("fdsr"), "loss": hidden}, tmp_path / "net.pth")
    with pytest.raises(InputError, match="refused"):
        convert("fdsr", tmp_path / "net.pth")
    assert not (tmp_path / "evidence").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("MSB2.conv1.bias"), r"MSB2\.conv1\.bias"),
        (lambda weights: weights.update(added=torch.zeros(1)), "added"),
        (lambda weights: weights.update({"restore.bias": torch.zeros(2)}), r"restore\.bias"),
    ],
    ids=["missing", "unexpected", "misshapen"],
)
def test_a_mismatch_names_the_tensor(change, message: str, tmp_path: Path) -> None:
    weights = parity_kit.weights("fdsr")
    change(weights)
    save_file(weights, tmp_path / "net.safetensors")
    with pytest.raises(InputError, match=message):
        convert("fdsr", tmp_path / "net.safetensors")


@pytest.mark.parametrize(("method", "written"), [("djf", "cunet"), ("dkn", "fdkn")])
def test_a_checkpoint_of_another_method(method: str, written: str, tmp_path: Path) -> None:
    torch.save(parity_kit.weights(written), tmp_path / "net.pth")
    with pytest.raises(InputError, match=r"net\.pth"):
        convert(method, tmp_path / "net.pth")


def test_a_matlab_network_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "net.mat"
    layers = matconvnet_layers(parity_kit.weights("djf"))
    write_matlab5(path, layers)
    with pytest.raises(InputError, match="only djf and djfr"):
        convert("cunet", path)
    write_matlab73(path, layers[:9])
    with pytest.raises(InputError, match=r"missing \['layers\.9\.weights\.0'"):
        convert("djf", path)
    layers[0]["weights"][1] = np.arange(6, dtype=np.uint32)[None]  # how a GPU array is stored
    write_matlab73(path, layers)
    with pytest.raises(InputError, match="gather it"):
        convert("djf", path)
    scipy.io.savemat(path, {"image": np.zeros((3, 3))})
    with pytest.raises(InputError, match="without a MatConvNet network"):
        convert("djf", path)


def test_files_that_are_no_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "net.pth"
    with pytest.raises(InputError, match=r"no such|does not exist"):
        convert("dkn", path)
    for content in (b"", b"<html>404</html>", b"PK\x03\x04 cut off", b"\x80\x02 cut off"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"net\.pth"):
            convert("dkn", path)
    whole = tmp_path / "whole.pth"
    torch.save(parity_kit.weights("dkn"), whole)
    path.write_bytes(whole.read_bytes()[:100_000])
    with pytest.raises(InputError, match=r"net\.pth"):
        convert("dkn", path)


def test_several_state_dicts_are_a_question(tmp_path: Path) -> None:
    weights = parity_kit.weights("fdsr")
    torch.save({"net": weights, "average": weights}, tmp_path / "net.pth")
    with pytest.raises(InputError, match="2 state dicts \\(net, average\\)"):
        convert("fdsr", tmp_path / "net.pth")
    torch.save([1, 2], tmp_path / "net.pth")
    with pytest.raises(InputError, match="0 state dicts"):
        convert("fdsr", tmp_path / "net.pth")


def test_unknown_method(tmp_path: Path) -> None:
    torch.save(parity_kit.weights("fdsr"), tmp_path / "net.pth")
    with pytest.raises(InputError, match="unknown model 'fdrs'"):
        convert("fdrs", tmp_path / "net.pth")


# The published files themselves.

ORIGINALS = {
    "CUNet": ("depth_ks9.pth",),
    "DCTNet": ("DCTNet_8X.pth",),
    "DJF": ("Upsampling_4x.mat", "Upsampling_8x.mat", "Upsampling_16x.mat"),
    "DJFR": ("Upsampling_res_4x.mat", "Upsampling_res_8x.mat", "Upsampling_res_16x.mat"),
    "DORNet-T": ("NYU_T_X8.pth",),
    "FDKN": ("FDKN_8x",),
}


@pytest.mark.parametrize(
    ("folder", "file"), [(folder, file) for folder, files in ORIGINALS.items() for file in files]
)
def test_published_file_equals_its_safetensors_twin(folder: str, file: str) -> None:
    released = SHARED / "parity" / "released" / folder
    if not (released / file).exists():
        pytest.skip(f"{folder}/{file} is not in the shared folder; set DUCOS_SHARED")
    sources = json.loads((released / "SOURCES.json").read_text())
    twin = released / next(entry["converted"] for entry in sources if entry["file"] == file)
    state = convert(folder.lower(), released / file)
    assert_same(state, {k.removeprefix("module."): v for k, v in load_file(twin).items()})
    assert_same(convert(folder.lower(), twin), state)
    create(folder.lower(), **arguments(folder.lower(), state)).load_state_dict(state)
