"""ducos.Client: the same call, the same result."""

import inspect
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import ducos
from ducos.cameras import Camera, Extrinsics
from ducos.errors import InputError
from ducos.files import as_depth
from ducos.serve import Client, ServerError
from tests.serve.conftest import TOKEN
from tests.serve.server import RunningServer

Pair = tuple[bytes, bytes]


@pytest.fixture
def arrays(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    rgb, low = (np.asarray(Image.open(io.BytesIO(content))) for content in pair)
    return rgb, low.astype(np.uint16)


def same(there: Any, here: Any) -> None:
    assert type(there.depth) is type(here.depth)
    for name in ("depth", "valid", "source", "sigma"):
        assert np.array_equal(np.asarray(getattr(there, name)), np.asarray(getattr(here, name)))
    assert there.low.depth.shape == here.low.depth.shape
    assert there.residual == here.residual


def test_the_signature_is_that_of_the_function() -> None:
    own = dict(inspect.signature(Client.super_resolve).parameters)
    del own["self"]
    assert own == dict(inspect.signature(ducos.super_resolve).parameters)
    assert "keep_holes: Leave holes invalid" in str(Client.super_resolve.__doc__)


def test_files_arrays_tensors_and_maps(
    server: RunningServer, pair: Pair, arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    rgb, low = arrays
    (tmp_path / "rgb.png").write_bytes(pair[0])
    (tmp_path / "low.png").write_bytes(pair[1])
    inputs: list[tuple[Any, Any]] = [
        (tmp_path / "rgb.png", tmp_path / "low.png"),
        (rgb, low),
        (Image.fromarray(rgb), low),
        ((rgb / 255).astype(np.float32) ** 1.1, low.astype(np.float32)),
        (torch.tensor(rgb).permute(2, 0, 1), torch.tensor(low.astype(np.int32))),
    ]
    with ducos.Client(server.url) as client:
        for one, other in inputs:
            options: dict[str, Any] = {"sensor": "tof", "unit": "mm"}
            there = client.super_resolve(one, other, **options)
            here = ducos.super_resolve(one, other, **options)
            same(there, here)
            assert there.sentences() == here.sentences()
        depth = as_depth(low, unit="mm")
        same(client.super_resolve(rgb, depth), ducos.super_resolve(rgb, depth))
        assert client.doctor(rgb, low)["facts"]["depth_size"] == [12, 16]
        assert client.models()[0]["name"] == "ducos-tiny"


def test_results_can_be_saved_and_looked_at(
    server: RunningServer, arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    mask = arrays[1] > 0
    mask[:3] = False
    told: dict[str, Any] = {"mask": mask, "field_of_view": 60.0, "keep_holes": True}
    with ducos.Client(server.url) as client:
        there = client.super_resolve(*arrays, **told)
    here = ducos.super_resolve(*arrays, **told)
    same(there, here)
    assert (there.cloud().points == here.cloud().points).all()
    for name, result in (("there", there), ("here", here)):
        result.save(tmp_path / f"{name}.npz")
        result.preview(tmp_path / f"{name}.png")
    assert (tmp_path / "there.png").read_bytes() == (tmp_path / "here.png").read_bytes()


def test_priors_and_cameras_from_memory(
    server: RunningServer, arrays: tuple[np.ndarray, np.ndarray]
) -> None:
    camera = Camera(128, 96, 120, 121, 63.5, 47.5, (0.1, 0.0, 0.0, 0.0))
    moved = Extrinsics(np.eye(3), np.array([0.01, 0, 0]))
    prior = np.linspace(1, 3, 48 * 64, dtype=np.float32).reshape(48, 64)
    prior[:4] = np.nan
    seen = Camera(16, 12, 15, 15.1, 7.5, 5.5)
    told: dict[str, Any] = {"prior": prior, "rgb_intrinsics": camera}
    told |= {"depth_intrinsics": seen, "extrinsics": moved}
    with ducos.Client(server.url) as client:
        there = client.super_resolve(*arrays, **told)
    here = ducos.super_resolve(*arrays, **told)
    assert there.model == here.model
    same(there, here)
    assert (there.cloud().points == here.cloud().points).all()


def test_frames_of_a_stream(server: RunningServer, arrays: tuple[np.ndarray, np.ndarray]) -> None:
    expected = ducos.super_resolve(*arrays, sensor="stereo").depth
    with ducos.Client(server.url) as client, client.stream(sensor="stereo") as frames:
        for _ in range(3):
            assert (frames(*arrays) == expected).all()
        with pytest.raises(InputError, match="no valid pixel"):
            frames(arrays[0], np.zeros((12, 16), np.uint16))
        assert (frames(*arrays) == expected).all()  # a bad frame does not end the stream


def test_mistakes_are_those_of_the_function(
    server: RunningServer, arrays: tuple[np.ndarray, np.ndarray]
) -> None:
    with ducos.Client(server.url) as client:
        with pytest.raises(InputError, match="unknown sensor"):
            client.super_resolve(*arrays, sensor="sonar")
        with pytest.raises(InputError, match="unknown option"):
            client.super_resolve(*arrays, sensors="tof")
        with pytest.raises(InputError, match="whoever starts the server"):
            client.super_resolve(*arrays, threads=2)
        with pytest.raises(InputError, match="no model 'djf'"):
            client.super_resolve(*arrays, model="djf")
        with pytest.raises(InputError, match="does not exist"):
            client.super_resolve("no.png", arrays[1])
        with pytest.raises(InputError, match="aspect"):
            client.super_resolve(arrays[0][:40], arrays[1])


def test_a_token_and_a_server_that_is_not_there(strict: RunningServer) -> None:
    with ducos.Client(strict.url) as stranger, pytest.raises(ServerError, match="token"):
        stranger.models()
    with ducos.Client(strict.url, token=TOKEN) as friend:
        assert [row["name"] for row in friend.models()] == ["ducos-tiny"]
    with (
        ducos.Client("http://127.0.0.1:9") as nobody,
        pytest.raises(ServerError, match="no answer"),
    ):
        nobody.models()
