"""What clients must not be able to do: exhaust, read, write, outlive or stop what is not theirs."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ducos.errors import InputError
from ducos.serve import Settings
from ducos.serve.desk import wanted_format
from ducos.serve.outputs import FORMATS
from ducos.serve.problems import Problem
from ducos.serve.schema import options_of
from ducos.serve.settings import bytes_of
from ducos.serve.store import Store
from tests.commands import ducos_here
from tests.serve.conftest import TOKEN, png_of
from tests.serve.server import RunningServer

Pair = tuple[bytes, bytes]


# Who may use it


def test_without_the_token_only_health_and_page_answer(strict: RunningServer) -> None:
    with httpx.Client(base_url=strict.url) as stranger:
        assert stranger.get("/healthz").status_code == 200
        assert stranger.get("/").status_code == 200
        for path in ("/v1/models", "/v1/options", "/metrics", "/v1/jobs/abc"):
            answer = stranger.get(path)
            assert answer.status_code == 401, path
            assert answer.headers["www-authenticate"] == "Bearer"
        wrong = {"Authorization": f"Bearer {TOKEN}x"}
        assert stranger.get("/v1/models", headers=wrong).status_code == 401
    assert strict.http.get("/v1/models").status_code == 200


def test_pages_of_other_sites_and_other_names_are_refused(server: RunningServer) -> None:
    other = server.http.get("/v1/models", headers={"Origin": "https://example.org"})
    assert other.status_code == 403
    assert "access-control-allow-origin" not in other.headers
    rebound = server.http.get("/v1/models", headers={"Host": "example.org"})
    assert rebound.status_code == 421
    own = server.http.get("/v1/models", headers={"Origin": server.url})
    assert own.status_code == 200
    assert "access-control-allow-origin" not in own.headers


@pytest.mark.parametrize("path", ["/", "/page.js", "/v1/models", "/nothing", "/openapi.json"])
def test_every_answer_has_the_security_headers_and_no_cookie(
    server: RunningServer, path: str
) -> None:
    headers = server.http.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers
    assert "server" not in headers


def test_the_page_loads_nothing_from_elsewhere(server: RunningServer) -> None:
    for name in ("/", "/page.css"):
        text = server.http.get(name).text
        assert "//" not in text.replace("http://www.w3.org", ""), name


# What reaches the disk


@pytest.mark.parametrize(
    "model", ["/etc/passwd", "../weights.safetensors", "djf", "http://x/y", ""]
)
def test_only_listed_models_run(server: RunningServer, pair: Pair, model: str) -> None:
    answer = server.post("/v1/upscale", *pair, options=json.dumps({"model": model}))
    assert answer.status_code == 422
    assert "choose one of: ducos-tiny" in answer.json()["sentence"]


@pytest.mark.parametrize("name", ["mask", "device", "threads", "tile", "rgb_intrinsics"])
def test_paths_and_the_servers_own_options_are_refused(
    server: RunningServer, pair: Pair, name: str
) -> None:
    answer = server.post("/v1/upscale", *pair, options=json.dumps({name: "/etc/passwd"}))
    assert answer.status_code == 422
    assert "unknown option" in answer.json()["sentence"]


def test_a_pickle_is_not_opened(server: RunningServer, pair: Pair, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "opened"),)

    content = io.BytesIO()
    np.save(content, np.array([[Evil()]], object), allow_pickle=True)
    for files in ((content.getvalue(), pair[1]), (pair[0], content.getvalue())):
        assert server.post("/v1/upscale", *files).status_code == 422
    assert not (tmp_path / "opened").exists()


def test_the_folder_is_private_and_goes_with_the_server(pair: Pair, tmp_path: Path) -> None:
    with RunningServer(tmp_path, "--workers", 1) as first:
        assert first.post("/v1/jobs", *pair).status_code == 202
        (folder,) = tmp_path.glob("ducos-serve-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        assert all(path.stat().st_mode & 0o077 == 0 for path in folder.glob("*/rgb"))
        workers = first.workers()
        first.stop(signal.SIGKILL)
    assert folder.exists()  # a killed server cannot clear up
    until = time.monotonic() + 30
    while any(Path(f"/proc/{each}").exists() for each in workers):
        assert time.monotonic() < until, "workers outlive their server"
        time.sleep(0.1)
    store = Store(1000, tmp_path)
    store.open()
    assert not folder.exists()  # but the next one does
    store.close()
    assert not list(tmp_path.glob("ducos-serve-*"))


def test_sentences_name_no_folder_of_the_server(server: RunningServer, pair: Pair) -> None:
    for files in ((b"text", pair[1]), (pair[0], b"text"), (pair[0], pair[0])):
        answer = server.post("/v1/upscale", *files)
        assert answer.status_code == 422
        assert "ducos-serve" not in answer.text


# Bounds


def test_a_body_that_is_too_large_is_refused(strict: RunningServer, pair: Pair) -> None:
    answer = strict.post("/v1/upscale", pair[0], bytes(3_000_000))
    assert answer.status_code == 413
    assert "2 MB" in answer.json()["sentence"]

    def endless() -> Any:
        yield b"--x\r\nContent-Disposition: form-data; name=rgb; filename=a\r\n\r\n"
        for _ in range(400):
            yield bytes(10_000)

    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    try:
        chunked = strict.http.post("/v1/upscale", content=endless(), headers=kind)
        assert chunked.status_code == 413
    except httpx.TransportError:
        pass  # the connection was cut while it was still sending


def test_too_many_pixels_are_refused_unread(strict: RunningServer, pair: Pair) -> None:
    large = png_of(np.zeros((3000, 3000), np.uint8))
    answer = strict.post("/v1/upscale", large, pair[1])
    assert answer.status_code == 413
    assert "9.0 megapixels" in answer.json()["sentence"]


def test_the_time_limit_frees_the_worker(
    strict: RunningServer, pair: Pair, slow_pair: Pair
) -> None:
    (worker,) = strict.workers()
    answer = strict.post("/v1/upscale", *slow_pair)
    assert answer.status_code == 504, answer.text
    assert "3 s" in answer.json()["sentence"]
    assert strict.post("/v1/upscale", *pair).status_code == 200
    assert worker not in strict.workers()


def test_a_killed_worker_is_a_503_and_the_others_jobs_are_done(
    server: RunningServer, pair: Pair, slow_pair: Pair
) -> None:
    answers: list[httpx.Response] = []

    def ask() -> None:
        answers.append(server.post("/v1/upscale", *slow_pair))

    asking = threading.Thread(target=ask)
    asking.start()
    while server.http.get("/healthz").json()["busy"] == 0:
        time.sleep(0.02)
    other = server.post("/v1/jobs", *pair).json()
    for each in server.workers():
        os.kill(each, signal.SIGKILL)
    asking.join()
    assert answers[0].status_code == 503
    assert answers[0].json()["code"] == "worker"
    assert "retry-after" in answers[0].headers
    assert server.wait(other)["state"] == "done"


def test_a_client_that_leaves_frees_the_worker(
    server: RunningServer, pair: Pair, slow_pair: Pair
) -> None:
    files = {"rgb": slow_pair[0], "depth": slow_pair[1]}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.url}/v1/upscale", files=files, timeout=httpx.Timeout(60, read=0.5))
    assert server.post("/v1/upscale", *pair).status_code == 200


def test_a_full_queue_says_so(strict: RunningServer, slow_pair: Pair) -> None:
    jobs = [strict.post("/v1/jobs", *slow_pair) for _ in range(4)]
    refused = [job for job in jobs if job.status_code == 503]
    assert refused
    assert refused[0].json()["code"] == "busy"
    assert "retry-after" in refused[0].headers
    for job in jobs:
        if job.status_code == 202:
            strict.http.delete(job.json()["links"]["self"])


def test_results_go_when_their_time_is_over(strict: RunningServer, pair: Pair) -> None:
    job = strict.post("/v1/jobs", *pair).json()
    assert strict.wait(job)["state"] == "done"
    assert strict.kept()
    until = time.monotonic() + 20
    while strict.http.get(job["links"]["self"]).status_code != 404:
        assert time.monotonic() < until
        time.sleep(0.2)
    assert not strict.kept()


def test_the_folder_has_a_bound(strict: RunningServer, pair: Pair) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (700, 900, 3), dtype=np.uint8)
    answers = [strict.post("/v1/jobs", png_of(noise), pair[1]) for _ in range(4)]
    refused = [answer for answer in answers if answer.status_code == 503]
    assert refused  # on a slow machine the last one may come when old results have gone
    assert all("results" in answer.json()["sentence"] for answer in refused)
    for answer in answers:
        if answer.status_code == 202:
            strict.http.delete(answer.json()["links"]["self"])


def test_a_full_disk_is_a_503(pair: Pair, tmp_path: Path) -> None:
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(tmp_path)]
    if mount is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here: this needs root")
    try:
        noise = np.random.default_rng(0).integers(0, 255, (480, 640, 3), dtype=np.uint8)
        with RunningServer(tmp_path, "--workers", 1) as full:
            for path in ("/v1/upscale", "/v1/jobs", "/v1/doctor"):
                answer = full.post(path, png_of(noise), pair[1])
                assert answer.status_code == 503, answer.text
                assert answer.json()["code"] == "disk"
            assert full.post("/v1/upscale", *pair).status_code == 200
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


# Whatever arrives

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)
NAMES = ["unit", "scale", "mode", "noise", "sensor", "shift", "model", "keep_holes", "any_aspect"]
SETTINGS = Settings()


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from([*NAMES, "field_of_view", "x"]), json_values) | json_values)
def test_any_json_is_options_or_a_sentence(value: Any) -> None:
    with contextlib.suppress(InputError):
        made = options_of(json.dumps(value), {}, SETTINGS)
        assert made["model"] in SETTINGS.models.values()


@given(st.text(max_size=40), st.text(alphabet="aimge/*png,;q=01. ", max_size=60))
def test_any_format_and_accept_is_a_format_or_a_refusal(asked: str, accept: str) -> None:
    for name in (asked, None):
        with contextlib.suppress(InputError, Problem):
            assert wanted_format(name, accept) in {*FORMATS, "json"}


@settings(max_examples=15)
@given(st.binary(max_size=300), st.sampled_from(["rgb", "depth", "mask", "rgb_intrinsics"]))
def test_any_bytes_get_an_answer(
    server: RunningServer, pair: Pair, content: bytes, part: str
) -> None:
    files = {"rgb": pair[0], "depth": pair[1], part: content}
    answer = server.http.post("/v1/upscale", files=files)
    assert answer.status_code in (200, 413, 422), answer.text


# Mistakes of whoever starts it


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-body", "many"], "a size is a number with a unit"),
        (["--model", "no-such-model"], "unknown model"),
        (["--recording", "no-such-folder"], "does not exist"),
        (["--token", "short"], "too short"),
        (["--port", "99999"], "0 to 65535"),
        (["--workers", "0"], "workers must be above 0"),
        (["--max-disk", "1MB"], "raise the disk limit"),
    ],
)
def test_mistakes_are_sentences(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    code, _, said = ducos_here(capsys, "serve", *arguments)
    assert code == 2
    assert words in said


def test_a_port_that_is_taken_is_a_sentence(
    server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, said = ducos_here(capsys, "serve", "--port", server.port)
    assert code == 2
    assert "choose another" in said


def test_sizes() -> None:
    assert bytes_of("64MB") == 64_000_000
    assert bytes_of("1.5gb") == 1_500_000_000


def test_the_server_itself_stays_light() -> None:
    """Networks live in the workers; the process that answers holds none of their libraries."""
    program = (
        "import sys; from ducos.serve import Settings, create_app; create_app(Settings());"
        "print([name for name in ('torch', 'scipy', 'cv2') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout.strip() == "[]", ended.stderr
