"""A mistake that can be known without arithmetic is refused before torch is imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ducos import example

PAIR = [str(example.RGB), str(example.LOW)]
UPSCALE = ["upscale", *PAIR, "-o"]

RUN = """
import json, sys
from ducos import cli
sys.argv = ["ducos", *json.loads(sys.argv[1])]
try:
    cli.main()
    code = 0
except SystemExit as stop:
    code = stop.code or 0
heavy = [name for name in ("torch", "scipy", "cv2") if name in sys.modules]
print("\\n" + json.dumps([code, heavy]))
"""


def outcome(folder: Path, *arguments: str) -> tuple[int, list[str], str]:
    """Exit code, which heavy libraries were imported, and stderr of `ducos arguments`."""
    finished = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
    )
    code, heavy = json.loads(finished.stdout.splitlines()[-1])
    return code, heavy, finished.stderr


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["models"], ["models", "--prompts"], ["upscale", "--help"]],
    ids=" ".join,
)
def test_questions_about_ducos_import_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    assert outcome(tmp_path, *arguments)[:2] == (0, [])


MISTAKES = {
    "missing image": (["upscale", "no.png", PAIR[1], "-o", "a.png"], "no.png does not exist"),
    "missing depth": (["upscale", PAIR[0], "no.png", "-o", "a.png"], "no.png does not exist"),
    "missing mask": ([*UPSCALE, "a.png", "--mask", "no.png"], "no.png does not exist"),
    "suffix of depth": ([*UPSCALE, "a.jpg"], "no depth format has this suffix"),
    "suffix of preview": (
        [*UPSCALE, "a.png", "--preview", "b.exr"],
        "no image format has this suffix",
    ),
    "suffix of cloud": ([*UPSCALE, "a.png", "--cloud", "b.pcd"], "written as .ply"),
    "suffix of mesh": ([*UPSCALE, "a.png", "--mesh", "b.obj"], "written as .glb"),
    "suffix of cloud picture": (
        [*UPSCALE, "a.png", "--cloud-preview", "b.ply"],
        "no image format has this suffix",
    ),
    "cloud without camera": ([*UPSCALE, "a.png", "--cloud", "b.ply"], "needs --rgb-intrinsics"),
    "cloud of no metres": (
        [*UPSCALE, "a.png", "--cloud", "b.ply", "--unit", "relative"],
        "a cloud needs metres",
    ),
    "one name twice": ([*UPSCALE, "a.png", "--preview", "a.png"], "out and preview have one name"),
    "folder": ([*UPSCALE, "no/a.png"], "does not exist"),
    "unit": ([*UPSCALE, "a.png", "--unit", "inch"], "unit 'inch' is unknown"),
    "scale": ([*UPSCALE, "a.png", "--scale", "-1"], "scale"),
    "sensor": ([*UPSCALE, "a.png", "--sensor", "sonar"], "unknown sensor 'sonar'"),
    "shift": ([*UPSCALE, "a.png", "--shift", "left"], "shift is check, auto, off"),
    "tile": ([*UPSCALE, "a.png", "--tile", "big"], "tile is auto, off or a size"),
    "device": ([*UPSCALE, "a.png", "--device", "tpu"], "unknown device 'tpu'"),
    "threads": ([*UPSCALE, "a.png", "--threads", "0"], "threads must be 1 or more"),
    "model": ([*UPSCALE, "a.png", "--model", "nope"], "unknown model 'nope'"),
    "weights": ([*UPSCALE, "a.png", "--model", "fdkn"], "fdkn has no weights in this package"),
    "cameras": ([*UPSCALE, "a.png", "--extrinsics", PAIR[0]], "registration needs all of"),
    "batch source": (["batch", "no", "-o", "out"], "does not exist"),
    "batch suffix": (["batch", "pairs", "-o", "out", "--suffix", ".jpg"], "the suffix '.jpg'"),
    "doctor": (["doctor", "no.png", PAIR[1]], "no.png does not exist"),
    "doctor report": (["doctor", *PAIR, "--report", "a.txt"], "no image format has this suffix"),
    "eval model": (["eval", "--model", "no", "--dataset", "shapes:2"], "unknown model 'no'"),
    "eval dataset": (["eval", "--dataset", "no:2"], "unknown dataset 'no'"),
    "eval protocol": (["eval", "--dataset", "shapes:2", "--protocol", "no"], "unknown protocol"),
    "train config": (["train", "no.toml"], "no.toml"),
    "reproduce": (["reproduce", "no"], "nothing to reproduce as 'no'"),
    "convert file": (["convert", "fdkn", "no.pth", "-o", "a.safetensors"], "does not exist"),
    "convert method": (["convert", "no", PAIR[0], "-o", "a.safetensors"], "unknown model 'no'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_refused_before_torch_is_imported(mistake: str, tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    for name, file in (("rgb", example.RGB), ("depth", example.LOW)):
        (tmp_path / "pairs" / f"a_{name}.png").write_bytes(file.read_bytes())
    before = sorted(tmp_path.rglob("*"))
    arguments, sentence = MISTAKES[mistake]
    code, heavy, said = outcome(tmp_path, *arguments)
    assert sentence in said
    assert code == 2
    assert "torch" not in heavy
    assert sorted(tmp_path.rglob("*")) == before  # nothing was made
