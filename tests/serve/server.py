"""`ducos serve` as people start it: a process of its own, at a free port, with a folder of ours."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from ducos.serve.problems import STATUS

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
assert STATUS["worker"] == 503


class RunningServer:
    """A server until the `with` ends. port 0: any that is free."""

    def __init__(self, folder: Path, *arguments: object, port: int = 0, token: str | None = None):
        self.folder = folder
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        command = [sys.executable, "-m", "ducos", "serve", "--port", str(port)]
        given = {"DUCOS_TOKEN": token} if token else {}
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ENVIRONMENT, **given, "TMPDIR": str(folder)},
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = re.search(r"http://[\w.:\[\]]+", said)
        assert found, said
        self.url = found.group()
        self.http = httpx.Client(base_url=self.url, headers=self.headers, timeout=60)

    def __enter__(self) -> "RunningServer":
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                if self.http.get("/healthz").status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        self.stop()
        raise AssertionError("the server did not become ready")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def stop(self, how: int = signal.SIGTERM) -> None:
        self.http.close()
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(timeout=20)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def workers(self) -> list[int]:
        """Process ids of its workers."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
                line = (entry / "cmdline").read_bytes()
            except (OSError, ValueError):
                continue
            if int(words[1]) == self.process.pid and b"ducos.serve.worker" in line:
                found.append(int(entry.name))
        return found

    def kept(self) -> list[Path]:
        """All files in its private folder, but its lock."""
        return [
            path
            for path in self.folder.glob("ducos-serve-*/**/*")
            if path.is_file() and path.name != "lock"
        ]

    def post(self, path: str, rgb: bytes, depth: bytes, **form: Any) -> httpx.Response:
        files = {"rgb": ("a", rgb), "depth": ("b", depth)}
        files |= {name: form.pop(name) for name in list(form) if isinstance(form[name], tuple)}
        accept = {"Accept": form.pop("accept")} if "accept" in form else {}
        return self.http.post(path, files=files, data=form, headers=accept)

    def wait(self, job: dict[str, Any], seconds: float = 60) -> dict[str, Any]:
        """The job when it has ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            state: dict[str, Any] = self.http.get(job["links"]["self"]).json()
            if state["state"] in ("done", "failed", "cancelled"):
                return state
            time.sleep(0.05)
        raise AssertionError(f"the job is still {state['state']}")
