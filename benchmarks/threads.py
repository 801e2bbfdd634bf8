"""How many threads, and how they wait for each other, on an idle and on a busy machine.

    python benchmarks/threads.py

Method: for each setting a new process super-resolves the bundled example (640×480, ×8) once to warm
up and then FRAMES times; wall and CPU seconds per frame. "busy" runs it beside one endless loop per
core. OMP_WAIT_POLICY=PASSIVE lets threads that wait sleep instead of spin; commands set it.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

FRAMES = 5

TIMED = f"""
import sys, time
from ducos import example
from ducos.upscaling import Upscaler
upscaler = Upscaler(threads=int(sys.argv[1]), unit="mm", shift="off")
upscaler(example.RGB, example.LOW)
wall, cpu = time.perf_counter(), time.process_time()
for _ in range({FRAMES}):
    upscaler(example.RGB, example.LOW)
print((time.perf_counter() - wall) / {FRAMES}, (time.process_time() - cpu) / {FRAMES})
"""


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many endless loops beside the work."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measured(threads: int, policy: str) -> tuple[float, float]:
    """Wall and CPU seconds per frame."""
    environment = {**os.environ, "OMP_WAIT_POLICY": policy}
    command = [sys.executable, "-c", TIMED, str(threads)]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    wall, cpu = map(float, printed.stdout.split())
    return wall, cpu


if __name__ == "__main__":
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0]
    print(f"{cores} cores, load {load:.1f} before the start; seconds per frame, wall and CPU")
    print(f"{'threads':>7} {'waiting':>8} {'idle':>12} {'busy':>12}")
    for threads in dict.fromkeys((1, cores)):
        for policy in ("ACTIVE", "PASSIVE"):
            idle = measured(threads, policy)
            with busy(cores):
                loaded = measured(threads, policy)
            figures = " ".join(f"{wall:6.2f} {cpu:5.2f}" for wall, cpu in (idle, loaded))
            print(f"{threads:7} {policy.lower():>8} {figures}")
