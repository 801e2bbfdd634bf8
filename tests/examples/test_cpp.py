"""examples/cpp: built as a reader builds it, against the same library that Python uses."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ducos import example, super_resolve
from ducos.files import read_depth
from tests.commands import ducos
from tests.examples.kit import EXAMPLES

HEADER = "onnxruntime_cxx_api.h"
PLACES = ("include", "include/onnxruntime", "include/onnxruntime/core/session")


def headers() -> Path:
    """The folder of onnxruntime's headers: of ONNXRUNTIME_ROOT, or of the system."""
    roots = [Path(os.environ[name]) for name in ("ONNXRUNTIME_ROOT",) if name in os.environ]
    folders = [
        root / place for root in (*roots, Path("/usr/local"), Path("/usr")) for place in PLACES
    ]
    found = next((folder for folder in folders if (folder / HEADER).is_file()), None)
    if found is None:
        pytest.skip(f"no {HEADER} here: unpack onnxruntime and set ONNXRUNTIME_ROOT")
    return found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ducos-upscale, built with headers of the machine and the library of the Python package."""
    for tool in ("cmake", "c++"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here to build the example with")
    root = tmp_path_factory.mktemp("onnxruntime")
    (root / "include").symlink_to(headers())
    import onnxruntime

    library = next(Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.1.*"), None)
    if library is None:
        pytest.skip("the Python package of onnxruntime holds no library to link with here")
    (root / "lib").mkdir()
    for name in ("libonnxruntime.so", "libonnxruntime.so.1"):
        (root / "lib" / name).symlink_to(library)
    build = root / "build"
    command = ["cmake", "-S", EXAMPLES / "cpp", "-B", build, f"-DONNXRUNTIME_ROOT={root}"]
    for step in (command, ["cmake", "--build", build]):
        done = subprocess.run(step, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stdout + done.stderr
    return build / "ducos-upscale"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx")
    path = tmp_path_factory.mktemp("graph") / "ducos-tiny.onnx"
    assert ducos("export", "-o", path).returncode == 0
    return path


def write_pictures(folder: Path) -> None:
    """A photo of 200×150 and a map of 61×47 with holes: a ratio that is no integer."""
    rgb = Image.open(example.RGB).convert("RGB").crop((100, 150, 300, 300))
    rgb.save(folder / "rgb.ppm")
    truth = np.asarray(Image.open(example.TRUTH)).astype(np.uint16)[150:300, 100:300]
    rows, columns = np.linspace(0, 149, 47).astype(int), np.linspace(0, 199, 61).astype(int)
    low = truth[rows][:, columns]
    low[20:26, 30:41] = 0
    Image.fromarray(low).save(folder / "low.png")
    header = f"P5\n# holes are 0\n{low.shape[1]} {low.shape[0]}\n65535\n".encode()
    (folder / "low.pgm").write_bytes(header + low.astype(">u2").tobytes())


def test_it_says_what_python_says(program: Path, graph: Path, tmp_path: Path) -> None:
    write_pictures(tmp_path)
    files = [tmp_path / name for name in ("rgb.ppm", "low.pgm", "sharp.pfm")]
    options = ["--sensor", "tof", "--noise", "0.002"]
    done = subprocess.run([program, graph, *files, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "61x47 -> 200x150" in done.stdout
    said = {"unit": "mm", "sensor": "tof", "noise": 0.002, "shift": "off", "runtime": "onnx"}
    own = super_resolve(files[0], tmp_path / "low.png", **said)
    there = read_depth(files[2]).depth
    assert there.shape == (150, 200)
    span = np.ptp(own.low.depth[own.low.valid])
    assert np.abs(there - own.depth).max() <= 1e-4 * span


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "GRAPH.onnx PHOTO.ppm DEPTH.pgm OUT.pfm"),
        (["rgb.ppm", "rgb.ppm", "out.pfm"], "begins with P6, expected P5"),
        (["rgb.ppm", "cut.pgm", "out.pfm"], "is cut off"),
        (["rgb.ppm", "none.pgm", "out.pfm"], "cannot read"),
        (["rgb.ppm", "low.pgm", "out.pfm", "--sensor", "sonar"], "unknown sensor sonar"),
    ],
)
def test_mistakes_are_said(
    program: Path, graph: Path, tmp_path: Path, words: list[str], sentence: str
) -> None:
    write_pictures(tmp_path)
    (tmp_path / "cut.pgm").write_bytes((tmp_path / "low.pgm").read_bytes()[:-9])
    given = [str(graph), *words] if words else []
    done = subprocess.run([program, *given], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out.pfm").exists()
