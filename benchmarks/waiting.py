"""What commands cost before they do any work, in CPU seconds.

    python benchmarks/waiting.py

Method: each command in a new process, RUNS times; user and system seconds of the process, the
smallest of them, so that another program on the machine counts as little as possible.
"""

import resource
import subprocess
import sys
import tempfile

from ducos import example

RUNS = 3
PAIR = [str(example.RGB), str(example.LOW)]

COMMANDS = {
    "python -c 'import torch'": ["-c", "import torch"],
    "ducos --version": ["-m", "ducos", "--version"],
    "ducos --help": ["-m", "ducos", "--help"],
    "ducos models": ["-m", "ducos", "models"],
    "upscale, missing file": ["-m", "ducos", "upscale", "no.png", PAIR[1], "-o", "a.png"],
    "upscale, wrong suffix": ["-m", "ducos", "upscale", *PAIR, "-o", "a.jpg"],
    "eval, unknown model": ["-m", "ducos", "eval", "--model", "no", "--dataset", "shapes:2"],
    "upscale, 640×480": ["-m", "ducos", "upscale", *PAIR, "-o", "a.png"],
    "upscale, 640×480, bicubic": [
        "-m",
        "ducos",
        "upscale",
        *PAIR,
        "-o",
        "a.png",
        "--model",
        "bicubic",
    ],
}


def cpu_seconds(arguments: list[str], folder: str) -> float:
    """Of one process; whatever it prints is dropped."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    print(__doc__.split("Method: ")[1].strip())
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in COMMANDS.items():
            least = min(cpu_seconds(arguments, folder) for _ in range(RUNS))
            print(f"{least:6.2f}  {name}")
