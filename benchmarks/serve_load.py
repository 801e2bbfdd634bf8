"""What a server does under load: throughput beside the ideal, latency, losses, memory.

python benchmarks/serve_load.py                      # 2 workers, 200 clients, 60 s, 320×240
python benchmarks/serve_load.py --latency            # one client, frame after frame, no load

The ideal is measured before and after the load, on the same machine in the same state: as many
processes as workers, each super-resolving the same pair in a loop with one thread, no server. On a
machine that others use, pairs per second swing with what they do; processor seconds per pair, of
the server with its workers and of the bare processes, do not.
"""

import argparse
import asyncio
import io
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import mean, median, quantiles

import httpx
import numpy as np
from PIL import Image

from ducos import example

LOOP = """
import sys, time
from ducos.upscaling import Upscaler
rgb, low, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
upscaler = Upscaler()
upscaler(rgb, low)
print("ready", flush=True)
sys.stdin.readline()
count, end, cpu = 0, time.monotonic() + seconds, time.process_time()
while time.monotonic() < end:
    upscaler(rgb, low).save(sys.argv[4])
    count += 1
print(count, time.process_time() - cpu, flush=True)
"""
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def pair_of(folder: Path, width: int) -> tuple[Path, Path]:
    """The bundled example, its colours at this width."""
    rgb = folder / "rgb.png"
    picture = Image.open(example.RGB).convert("RGB")
    picture.resize((width, width * 3 // 4), Image.Resampling.LANCZOS).save(rgb)
    return rgb, example.LOW


def ideal(rgb: Path, low: Path, workers: int, seconds: float) -> tuple[float, float]:
    """Pairs per second of bare processes, and processor seconds per pair."""
    loops = [
        subprocess.Popen(
            [sys.executable, "-c", LOOP, rgb, low, str(seconds), f"{rgb}.{number}.png"],
            env=ONE_THREAD,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(workers)
    ]
    for loop in loops:
        loop.stdout.readline()
    for loop in loops:
        loop.stdin.write("go\n")
        loop.stdin.flush()
    counted = [loop.communicate()[0].split() for loop in loops]
    pairs = sum(int(count) for count, _ in counted)
    return pairs / seconds, sum(float(cpu) for _, cpu in counted) / pairs


def start(workers: int) -> tuple[subprocess.Popen, str]:
    """A server and its address, ready."""
    command = [sys.executable, "-m", "ducos", "serve", "--port", "0", "--workers", str(workers)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ONE_THREAD)
    url = server.stdout.readline().split()[1]
    while True:
        try:
            if httpx.get(f"{url}/healthz").json()["workers"] == workers:
                return server, url
        except httpx.TransportError:
            pass
        time.sleep(0.2)


async def load(url: str, files: dict[str, bytes], clients: int, seconds: float) -> dict:
    """Clients that each send the next pair when they have the answer to the last."""
    statuses: Counter[int] = Counter()
    took: list[float] = []
    wrong = 0
    end = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as http:
        expected = (await http.post("/v1/upscale", files=files)).content

        async def client() -> None:
            nonlocal wrong
            while time.monotonic() < end:
                begun = time.monotonic()
                answer = await http.post("/v1/upscale", files=files)
                statuses[answer.status_code] += 1
                wrong += answer.status_code == 200 and answer.content != expected
                if answer.status_code == 200 and time.monotonic() < end:
                    took.append(time.monotonic() - begun)

        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(client())
    return {"statuses": dict(statuses), "in_time": len(took), "wrong": wrong, "took": took}


def processor(pid: int) -> float:
    """Seconds that the server and its workers have used."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ticks = 0
    for process in (str(pid), *children):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> dict[str, int]:
    """Megabytes held by the server, and by the largest of its workers."""

    def held(process: int) -> int:
        status = Path(f"/proc/{process}/status").read_text()
        line = next(row for row in status.splitlines() if row.startswith("VmRSS"))
        return int(line.split()[1]) // 1000

    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {"server": held(pid), "worker": max(held(int(child)) for child in children)}


def under_load(folder: Path, options: argparse.Namespace) -> dict:
    rgb, low = pair_of(folder, options.width)
    files = {"rgb": rgb.read_bytes(), "depth": low.read_bytes()}
    before, cpu_before = ideal(rgb, low, options.workers, options.seconds / 3)
    server, url = start(options.workers)
    try:
        at_start, cpu = memory(server.pid), processor(server.pid)
        seen = asyncio.run(load(url, files, options.clients, options.seconds))
        health = httpx.get(f"{url}/healthz").json()
        at_end, cpu = memory(server.pid), processor(server.pid) - cpu
    finally:
        server.terminate()
        server.wait()
    after, cpu_after = ideal(rgb, low, options.workers, options.seconds / 3)
    took = seen.pop("took")
    rate, best = seen["in_time"] / options.seconds, mean((before, after))
    each = cpu / (sum(seen["statuses"].values()) + 1)  # and the one before the load
    return {
        **seen,
        "waiting_at_the_end": health["waiting"],
        "pairs_per_second": round(rate, 2),
        "ideal_before_and_after": [round(before, 2), round(after, 2)],
        "share_of_ideal": round(rate / best, 3),
        "cpu_seconds_per_pair": round(each, 4),
        "cpu_seconds_per_pair_bare": [round(cpu_before, 4), round(cpu_after, 4)],
        "share_of_ideal_by_cpu": round(mean((cpu_before, cpu_after)) / each, 3),
        "p50_seconds": round(quantiles(took, n=100)[49], 2),
        "p95_seconds": round(quantiles(took, n=100)[94], 2),
        "megabytes_at_start": at_start,
        "megabytes_at_end": at_end,
    }


def latency(folder: Path, options: argparse.Namespace) -> dict:
    """Milliseconds from sending a frame to holding its depth: by stream, request, and bare.

    In turn, frame by frame, so that what else the machine does meets all of them alike.
    """
    import torch

    from ducos import Client
    from ducos.upscaling import Upscaler

    torch.set_num_threads(1)
    upscaler = Upscaler()
    rgb, low = pair_of(folder, options.width)
    colours, depth = np.asarray(Image.open(rgb)), np.asarray(Image.open(low)).astype(np.uint16)
    content = io.BytesIO()
    Image.open(rgb).save(content, "JPEG", quality=95)
    jpeg = folder / "rgb.jpg"
    jpeg.write_bytes(content.getvalue())
    server, url = start(1)
    upscaler(colours, depth)
    figures: dict[str, list[float]] = {}
    try:
        with Client(url) as client, client.stream() as frames:
            for _ in range(options.frames):
                for name, work in (
                    ("stream", lambda: frames(colours, depth)),
                    ("stream, JPEG", lambda: frames(jpeg, low)),
                    ("request", lambda: client.super_resolve(colours, depth)),
                    ("no server", lambda: upscaler(colours, depth)),
                ):
                    begun = time.perf_counter()
                    work()
                    figures.setdefault(name, []).append(time.perf_counter() - begun)
    finally:
        server.terminate()
        server.wait()
    return {
        name: {"median": round(1000 * median(took), 1), "least": round(1000 * min(took), 1)}
        for name, took in figures.items()
    }


def main() -> None:
    import tempfile

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--frames", type=int, default=20)
    parser.add_argument("--latency", action="store_true", help="milliseconds per frame")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measured = (latency if options.latency else under_load)(Path(name), options)
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
