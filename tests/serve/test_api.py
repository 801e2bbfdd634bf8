"""The HTTP API: results are those of the library, mistakes are sentences, jobs can be followed."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ducos import example, super_resolve
from ducos.batch import frame_result
from ducos.captures import find_frames
from ducos.doctor import examine
from ducos.serve import FORMATS
from ducos.serve.maps import facts_of, packed, unpacked
from ducos.upscaling import OPTIONS, Options, Upscaler
from tests.commands import ducos
from tests.places import REPOSITORY
from tests.serve.server import RunningServer

Pair = tuple[bytes, bytes]


@pytest.fixture
def files(pair: Pair, tmp_path: Path) -> tuple[Path, Path]:
    """The pair on disk, under the names that the server gives it."""
    paths = tmp_path / "rgb", tmp_path / "depth"
    for path, content in zip(paths, pair):
        path.write_bytes(content)
    return paths


# Results


@pytest.mark.parametrize("name", ["png", "exr", "npz", "npy", "tiff", "pfm", "ply"])
def test_files_are_those_that_the_library_writes(
    server: RunningServer, pair: Pair, files: tuple[Path, Path], name: str, tmp_path: Path
) -> None:
    options = {"sensor": "tof", "field_of_view": 60.0}
    answer = server.post("/v1/upscale", *pair, options=json.dumps(options), format=name)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == FORMATS[name].media
    result = super_resolve(*files, **options)
    path = tmp_path / f"own{FORMATS[name].suffix}"
    if name == "ply":
        result.cloud().save(path)
    else:
        result.save(path)
    assert answer.content == path.read_bytes()


def test_the_answer_is_byte_for_byte_the_commands(server: RunningServer, tmp_path: Path) -> None:
    pair = example.RGB.read_bytes(), example.LOW.read_bytes()
    answer = server.post("/v1/upscale", *pair, accept="image/png")
    command = ["upscale", example.RGB, example.LOW, "-o", tmp_path / "a.png", "--threads", "1"]
    assert ducos(*command).returncode == 0
    assert answer.content == (tmp_path / "a.png").read_bytes()


def test_links_lead_to_every_format(server: RunningServer, pair: Pair) -> None:
    answer = server.post("/v1/upscale", *pair, accept="application/json").json()
    assert answer["state"] == "done"
    assert answer["facts"]["size"] == [96, 128]
    assert answer["links"]["results"].keys() == FORMATS.keys()
    for name, place in answer["links"]["results"].items():
        got = server.http.get(place + ("?field_of_view=60" if FORMATS[name].in_space else ""))
        assert got.status_code == 200, f"{name}: {got.text}"
        assert len(got.content) > 100
    without = server.http.get(answer["links"]["results"]["ply"])
    assert without.status_code == 422
    assert "field_of_view" in without.json()["sentence"]
    assert server.http.delete(answer["links"]["self"]).status_code == 200


def test_a_result_survives_the_wire(files: tuple[Path, Path]) -> None:
    result = super_resolve(*files, sensor="stereo")
    again = unpacked(packed(result), result.image, result.options)
    assert again.facts() == result.facts()
    assert (again.depth == result.depth).all()
    assert (again.sigma == result.sigma).all()
    assert facts_of(packed(result))["low"]["unit"] == "mm"


def test_masks_confidence_and_cameras_are_parts_of_their_own(
    server: RunningServer, pair: Pair, files: tuple[Path, Path], tmp_path: Path
) -> None:
    mask = np.ones((12, 16), np.uint8)
    mask[:4] = 0
    content = io.BytesIO()
    np.save(content, mask)
    camera = {"width": 128, "height": 96, "fx": 120, "fy": 120, "cx": 63.5, "cy": 47.5}
    parts: dict[str, Any] = {
        "mask": ("m", content.getvalue()),
        "rgb_intrinsics": ("c", json.dumps(camera).encode()),
    }
    answer = server.post("/v1/upscale", *pair, format="ply", **parts)
    assert answer.status_code == 200, answer.text
    (tmp_path / "camera.json").write_text(json.dumps(camera))
    result = super_resolve(*files, mask=mask, rgb_intrinsics=tmp_path / "camera.json")
    result.cloud().save(tmp_path / "own.ply")
    assert answer.content == (tmp_path / "own.ply").read_bytes()


def rounded(x: Any) -> Any:
    """JSON with six digits of each number: more depend on the number of threads."""
    if isinstance(x, dict):
        return {key: rounded(value) for key, value in x.items()}
    if isinstance(x, list):
        return [rounded(value) for value in x]
    return float(f"{x:.6g}") if isinstance(x, float) else x


def test_the_doctor_says_what_the_command_says(
    server: RunningServer, pair: Pair, files: tuple[Path, Path]
) -> None:
    answer = server.post("/v1/doctor", *pair)
    assert rounded(answer.json()) == rounded(json.loads(examine(*files).to_json()))


# Jobs


def test_a_job_is_followed_to_its_end_and_deleted(server: RunningServer, pair: Pair) -> None:
    job = server.post("/v1/jobs", *pair)
    assert job.status_code == 202
    links = job.json()["links"]
    states = []
    with server.http.stream("GET", links["events"]) as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        for line in events.iter_lines():
            if line.startswith("data:"):
                states.append(json.loads(line[5:]))
    assert states[-1]["state"] == "done"
    assert states[-1]["kept_for"] > 800
    assert server.http.get(links["results"]["npy"]).status_code == 200
    assert server.http.delete(links["self"]).status_code == 200
    gone = server.http.get(links["self"])
    assert gone.status_code == 404
    assert "kept for 900 s" in gone.json()["sentence"]


def test_nothing_stays_of_a_request_that_wants_a_file(server: RunningServer, pair: Pair) -> None:
    before = set(server.kept())
    assert server.post("/v1/upscale", *pair, format="npy").status_code == 200
    assert server.post("/v1/doctor", *pair).status_code == 200
    assert server.post("/v1/upscale", *pair, options="{").status_code == 422
    assert set(server.kept()) == before


def test_a_cancelled_job_frees_the_worker(
    server: RunningServer, pair: Pair, slow_pair: Pair
) -> None:
    slow = server.post("/v1/jobs", *slow_pair).json()
    waiting = server.post("/v1/jobs", *slow_pair).json()
    while server.http.get(slow["links"]["self"]).json()["state"] == "queued":
        pass
    early = server.http.get(slow["links"]["results"]["png"])
    assert early.status_code == 409
    for job in (waiting, slow):
        assert server.http.delete(job["links"]["self"]).json()["state"] == "cancelled"
    answer = server.post("/v1/upscale", *pair)
    assert answer.status_code == 200, answer.text


# Information


def test_the_schema_of_options_is_made_from_options(server: RunningServer) -> None:
    schema = server.http.get("/v1/options").json()
    told = {"mask", "confidence", "prior", "depth_intrinsics", "rgb_intrinsics", "extrinsics"}
    decided = {"prompt", "device", "threads", "tile", "accept_noncommercial"}
    assert schema["properties"].keys() == OPTIONS.keys() - told - decided
    for name, entry in schema["properties"].items():
        assert entry["description"] == OPTIONS[name].metadata["help"]
    assert schema["properties"]["sensor"]["enum"] == ["unknown", "tof", "lidar", "stereo"]


def test_models_examples_recordings(server: RunningServer, recording: Path) -> None:
    models = server.http.get("/v1/models").json()["models"]
    assert [row["name"] for row in models if row["default"]] == ["ducos-tiny"]
    for pair in server.http.get("/v1/examples").json()["pairs"]:
        Options(**pair["options"])
        assert server.http.get(pair["rgb"]).content[:4] == b"\x89PNG"
        assert server.http.get(pair["depth"]).content[:4] == b"\x89PNG"
    assert server.http.get("/v1/recordings").json() == {
        "recordings": {"kitchen": 3, "walk": 3, "output": 3}
    }
    frame = server.http.get("/v1/recordings/kitchen/2/depth").content
    assert frame == (recording / "depth" / "002.png").read_bytes()
    for place in ("kitchen/3/depth", "kitchen/0/mask", "other/0/rgb", "%2e%2e/0/rgb"):
        assert server.http.get(f"/v1/recordings/{place}").status_code == 404, place


@pytest.mark.parametrize("number", [0, 1])
def test_frames_of_containers_give_what_a_batch_gives(
    server: RunningServer, containers: tuple[Path, Path], number: int
) -> None:
    """Confidence, cameras and registration included; more frames than are kept unpacked."""
    path, upscaler = containers[number], Upscaler(threads=1)
    for at in (0, 1, 2, 0):
        told = server.http.get(f"/v1/recordings/{path.stem}/{at}").json()["files"]
        more = {"confidence"} if number == 0 else {"depth_intrinsics", "extrinsics"}
        assert told.keys() == {"rgb", "depth", "rgb_intrinsics"} | more
        files = {kind: (kind, server.http.get(place).content) for kind, place in told.items()}
        answer = server.http.post("/v1/upscale", files=files, data={"format": "npy"})
        expected = frame_result(find_frames(path).pairs[at], upscaler).depth
        assert np.array_equal(np.load(io.BytesIO(answer.content)), expected)
    assert server.http.get(f"/v1/recordings/{path.stem}/3").status_code == 404
    assert server.http.get(f"/v1/recordings/{path.stem}/0/mask").status_code == 404


def test_a_prior_is_used_by_the_model_that_takes_one(
    server: RunningServer, pair: Pair, files: tuple[Path, Path], tmp_path: Path
) -> None:
    np.save(tmp_path / "prior.npy", np.linspace(1, 3, 96 * 128, dtype=np.float32).reshape(96, 128))
    content = ("prior.npy", (tmp_path / "prior.npy").read_bytes())
    answer = server.post("/v1/upscale", *pair, prior=content, format="npy")
    assert answer.status_code == 200, answer.text
    expected = super_resolve(*files, prior=tmp_path / "prior.npy")
    assert expected.model.startswith("ducos-small")
    assert np.array_equal(np.load(io.BytesIO(answer.content)), expected.depth)
    named = server.post("/v1/upscale", *pair, prior=content, options='{"model": "ducos-tiny"}')
    assert named.status_code == 422
    assert "takes no prior" in named.json()["sentence"]


@pytest.mark.parametrize("name", ["k.npy", "k.YAML", "k.txt", "k"])
def test_cameras_of_all_forms(server: RunningServer, pair: Pair, name: str, tmp_path: Path) -> None:
    matrix = np.array([[120.0, 0, 63.5], [0, 120, 47.5], [0, 0, 1]])
    if name == "k.npy":
        np.save(tmp_path / name, matrix)
    else:
        (tmp_path / name).write_text(" ".join(map(str, matrix.ravel())))
    camera = (name, (tmp_path / name).read_bytes())
    answer = server.post("/v1/upscale", *pair, rgb_intrinsics=camera, format="ply")
    assert answer.status_code == 200, answer.text
    assert answer.content.startswith(b"ply")


def test_figures_for_prometheus(server: RunningServer, pair: Pair) -> None:
    def figures() -> dict[tuple[str, str], float]:
        families = text_string_to_metric_families(server.http.get("/metrics").text)
        return {
            (
                sample.name,
                sample.labels.get("outcome", sample.labels.get("route", "")),
            ): sample.value
            for family in families
            for sample in family.samples
        }

    before = figures()
    server.post("/v1/upscale", *pair)
    after = figures()
    assert after["ducos_jobs_total", "done"] == before["ducos_jobs_total", "done"] + 1
    assert after["ducos_workers_ready", ""] == 1
    assert ("ducos_request_seconds_count", "/v1/upscale") in after


@pytest.mark.slow
def test_two_hundred_clients_for_a_minute(tmp_path: Path) -> None:
    """Nothing lost, nothing wrong, memory bounded; the figures are in docs/serve.md."""
    script = str(REPOSITORY / "benchmarks" / "serve_load.py")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    assert seen["statuses"].keys() == {"200"}
    assert seen["wrong"] == 0
    assert seen["waiting_at_the_end"] == 0
    for name, before in seen["megabytes_at_start"].items():
        assert seen["megabytes_at_end"][name] < before + 400, name
    assert seen["share_of_ideal_by_cpu"] > 0.8
