"""Recordings and results behind addresses: a real HTTP server that speaks S3, real workers."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ducos.batch.journal import JOURNAL
from ducos.batch.storage import Places, Store, at_hand, mirrored
from ducos.errors import InputError
from tests.captures import recordings as made
from tests.commands import ducos, ducos_here

pytest.importorskip("s3fs")
moto = pytest.importorskip("moto.server")
QUICK = ("--model", "bicubic", "--shift", "off", "--workers", "2")
FRAMES = 4


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    told = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    before = dict(os.environ)
    os.environ.update(told)
    yield told["AWS_ENDPOINT_URL"]
    os.environ.clear()
    os.environ.update(before)
    running.stop()


@pytest.fixture
def bucket(server: str, tmp_path: Path) -> Any:
    """An empty bucket of its own, as a file system of fsspec."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem()
    files.mkdir(f"b-{tmp_path.name.replace('_', '-')[:50]}")
    return files, f"b-{tmp_path.name.replace('_', '-')[:50]}"


def recording(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    for kind in ("rgb", "depth"):
        (folder / kind).mkdir(parents=True)
    for n in range(FRAMES):
        picture = rng.integers(0, 255, (48, 64, 3), np.uint8)
        Image.fromarray(picture).save(folder / "rgb" / f"{n}.png")
        depth = rng.integers(900, 2000, (12, 16)).astype(np.uint16)
        Image.fromarray(depth).save(folder / "depth" / f"{n}.png")
    return folder


def test_a_batch_from_bucket_to_bucket(bucket: Any, tmp_path: Path) -> None:
    """Same bytes as here; kept when repeated; what was lost or damaged there is made again."""
    files, name = bucket
    here = recording(tmp_path / "in")
    files.put(str(here), f"{name}/in", recursive=True)
    assert ducos("batch", here, "-o", tmp_path / "out", *QUICK).returncode == 0

    def there(*more: str) -> dict[str, Any]:
        run = ducos("batch", f"s3://{name}/in", "-o", f"s3://{name}/out", "--json", *QUICK, *more)
        assert run.returncode == 0, run.stderr
        summary: dict[str, Any] = json.loads(run.stdout)
        return summary

    first = there()
    assert (first["made"], first["kept"], first["out"]) == (FRAMES, 0, f"s3://{name}/out")
    for n in range(FRAMES):
        assert files.cat(f"{name}/out/{n}.png") == (tmp_path / f"out/{n}.png").read_bytes()
    lines = files.cat(f"{name}/out/{JOURNAL}").decode().splitlines()
    assert len(lines) == FRAMES
    assert sorted(Path(path).name for path in files.find(f"{name}/out")) == [
        *(f"{n}.png" for n in range(FRAMES)),
        JOURNAL,
    ]
    assert there()["kept"] == FRAMES
    files.rm(f"{name}/out/1.png")
    files.pipe(f"{name}/out/2.png", b"cut off")
    again = there()
    assert (again["made"], again["kept"], again["remade"]) == (2, 2, {"damaged": 2})
    assert files.cat(f"{name}/out/2.png") == (tmp_path / "out/2.png").read_bytes()


def test_failures_name_the_address(bucket: Any, tmp_path: Path) -> None:
    files, name = bucket
    here = recording(tmp_path / "in")
    (here / "depth/1.png").write_bytes(b"no picture")
    files.put(str(here), f"{name}/in", recursive=True)
    run = ducos("batch", f"s3://{name}/in", "-o", f"s3://{name}/out", *QUICK)
    assert run.returncode == 1
    assert f"s3://{name}/in/depth/1.png" in run.stderr
    assert "ducos-" not in run.stderr
    listed = files.cat(f"{name}/out/failures.csv").decode()
    assert f"s3://{name}/in/rgb/1.png" in listed


def test_foreign_objects_are_not_replaced(bucket: Any, tmp_path: Path) -> None:
    files, name = bucket
    files.put(str(recording(tmp_path / "in")), f"{name}/in", recursive=True)
    files.pipe(f"{name}/out/0.png", b"mine")
    run = ducos("batch", f"s3://{name}/in", "-o", f"s3://{name}/out", *QUICK)
    assert run.returncode == 2
    assert "--overwrite" in run.stderr
    assert files.cat(f"{name}/out/0.png") == b"mine"


def test_recordings_with_cameras_and_containers(bucket: Any, tmp_path: Path) -> None:
    """A folder whose frames name more files, and a recording that is one file; results here."""
    files, name = bucket
    for kind in ("scanner_app", "record3d"):
        (tmp_path / kind).mkdir()
        path = getattr(made, kind)(tmp_path / kind)
        files.put(str(path), f"{name}/{path.name}", recursive=path.is_dir())
        out = tmp_path / f"out-{kind}"
        run = ducos("batch", f"s3://{name}/{path.name}", "-o", out, "--cloud", *QUICK)
        assert run.returncode == 0, run.stderr
        assert len(list((out / "cloud").glob("*.ply"))) == made.FRAMES


@pytest.mark.parametrize("key", ["rgb/" + "x" * 300 + ".png", "rgb/0.png/1.png"])
def test_names_that_no_file_can_have_are_one_sentence(
    bucket: Any, tmp_path: Path, key: str
) -> None:
    files, name = bucket
    for each in ("rgb/0.png", key):
        files.pipe_file(f"{name}/in/{each}", b"x")
    with pytest.raises(InputError, match="which cannot be a file here"):
        mirrored(Places(str(tmp_path / "mirror"), f"s3://{name}/in"))


def test_files_are_hollow_but_while_they_are_needed(bucket: Any, tmp_path: Path) -> None:
    files, name = bucket
    here = recording(tmp_path / "in")
    files.put(str(here), f"{name}/in", recursive=True)
    places = Places(str(tmp_path / "mirror"), f"s3://{name}/in")
    folder = mirrored(places)
    picture, content = folder / "rgb/0.png", (here / "rgb/0.png").read_bytes()
    before = picture.stat()
    assert before.st_size == len(content)
    assert picture.read_bytes() == bytes(len(content))
    with at_hand(places, [picture]):
        assert picture.read_bytes() == content
    after = picture.stat()
    assert picture.read_bytes() == bytes(len(content))
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_names_that_lead_out_of_the_folder_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text("a")
    store = Store(f"file://{tmp_path}/in")
    listed = store.files.find

    def find(root: str, detail: bool) -> dict[str, Any]:
        return {**listed(root, detail=detail), f"{root}/../b.txt": {"size": 1}}

    store.files.find = find
    try:
        assert list(store.listed()) == ["a.txt"]
    finally:
        store.files.find = listed


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s3://no-such-bucket/x", "cannot be reached"),
        ("nonsense://x/y", "cannot be opened"),
        ("memory://x", "one process alone"),
    ],
)
def test_addresses_that_lead_nowhere_are_refused(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture, address: str, words: str
) -> None:
    code, _, said = ducos_here(capsys, "batch", address, "-o", tmp_path / "out")
    assert code == 2
    assert words in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_an_address_of_a_file_is_a_path(tmp_path: Path) -> None:
    here = recording(tmp_path / "a recording")
    run = ducos("batch", here.as_uri(), "-o", (tmp_path / "out").as_uri(), *QUICK)
    assert run.returncode == 0, run.stderr
    assert len(list((tmp_path / "out").glob("*.png"))) == FRAMES
