"""The shape of the package: imports go down only, nothing heavy on import, names explained."""

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import ducos
from tests.places import REPOSITORY

PACKAGE = Path(ducos.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
ROOMS = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in FILES} - {"__init__"}

# Lowest first. A room may import rooms of lower floors only, through their `__init__`; rooms of one
# floor do not know each other. A new room needs a place here: as low as its imports allow.
FLOORS = [
    {"arrays", "blas", "children", "deferred", "errors", "kernels"},
    {"filters", "hints", "lazy", "moved", "normalise", "resize", "sampling"},
    {"files", "degrade", "prompts", "runtime"},
    {"cameras", "pictures", "data", "models"},
    {"captures"},
    {"doctor"},
    {"upscaling"},
    {"evaluation", "batch", "example", "export"},
    {"sequences"},
    {"training", "serve"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
APART = {"synth"}  # runs inside Blender, whose Python has next to nothing: see APART_TOUCHES
APART_TOUCHES = {"children", "errors"}

# Beyond the floors, inside a room: the dual knows names and numbers, losses know no network.
STRANGERS = {
    "training/dual.py": {"resize", "normalise", "models", "data"},
    "training/losses.py": {"data", "files", "models", "prompts"},
    "evaluation/metrics.py": {"data", "files", "models"},
}
FORBIDDEN = {"torchvision", "timm", "einops", "mmcv", "mmengine"}


def module_of(path: Path) -> str:
    """The module, or the package, that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports_of(path: Path) -> set[str]:
    """Dotted names of everything a file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import; write the full name"
            assert all(alias.name != "*" for alias in node.names), f"{path.name} has a star import"
            found.add(str(node.module))
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def own_imports(path: Path) -> set[str]:
    """Dotted names of this package that a file imports from other rooms."""
    dotted = {name.removeprefix("ducos.") for name in imports_of(path) if name.startswith("ducos.")}
    return {name for name in dotted if name.split(".")[0] in ROOMS - {module_of(path)}}


def public_definitions(path: Path) -> list[ast.ClassDef | ast.FunctionDef]:
    return [
        node
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_every_room_has_a_place() -> None:
    assert ROOMS - set(FLOOR) - APART == set(), "add it to FLOORS, as low as its imports allow"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_imports_go_down_and_through_doors(path: Path) -> None:
    room = module_of(path)
    if room == "__init__":
        return
    for name in own_imports(path):
        other, *inside = name.split(".")
        assert other not in STRANGERS.get(relative(path), set()), f"{path.name} must not know it"
        if room in APART:
            assert other in APART_TOUCHES, f"{room} touches only {APART_TOUCHES}, not {other}"
            continue
        lower = (other in APART and room == "cli") or FLOOR.get(other, 99) < FLOOR[room]
        assert lower, f"{room} must not import {other}"
        deep = len(inside) > 0 and is_module(PACKAGE.joinpath(other, *inside))
        assert not deep or other in APART, f"enter {other} through its __init__, not ducos.{name}"


def is_module(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").is_file()


ROOM_FOLDERS = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))


@pytest.mark.parametrize("folder", ROOM_FOLDERS, ids=lambda folder: folder.name)
def test_every_room_says_what_it_is_for(folder: Path) -> None:
    words = ast.get_docstring(tree_of(folder / "__init__.py")) or ""
    assert words.count(". ") + words.count(".\n") + words.endswith(".") >= 2, words


@pytest.mark.parametrize("folder", ROOM_FOLDERS, ids=lambda folder: folder.name)
def test_every_door_opens(folder: Path) -> None:
    room = importlib.import_module(f"ducos.{folder.name}")
    for name in getattr(room, "__all__", []):
        assert getattr(room, name) is not None
        assert not is_module(folder / name), f"{name} is a module and a name of {folder.name}"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_nothing_forbidden_is_imported(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports_of(path)} & FORBIDDEN


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_everything_public_is_explained(path: Path) -> None:
    assert ast.get_docstring(tree_of(path)), f"{relative(path)} has no docstring"
    unexplained = [n.name for n in public_definitions(path) if needs_words(path, n)]
    assert not unexplained, "a public name needs a docstring (a private one an underscore)"


def needs_words(path: Path, node: ast.ClassDef | ast.FunctionDef) -> bool:
    """A chair of the scene generator or a function of three lines says what it is by its name."""
    if ast.get_docstring(node) or module_of(path) == "synth":
        return False
    return isinstance(node, ast.ClassDef) or len(node.body) > 3


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_optional_libraries_are_asked_for_by_name(path: Path) -> None:
    """A module that needs one says which extra brings it (`errors.needed`), or imports it late."""
    optional = {
        "av",
        "imagecodecs",
        "rosbags",
        "ray",
        "yaml",
        "cv2",
        "h5py",
        "OpenEXR",
        "tifffile",
        "trimesh",
        "huggingface_hub",
        "transformers",
        "onnx",
        "onnxruntime",
        "openvino",
    }
    at_once = {
        name.split(".")[0]
        for node in tree_of(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
        if name
    }
    assert module_of(path) == "synth" or not at_once & optional


def test_no_drawers_for_everything() -> None:
    names = {path.stem for path in FILES}
    assert not names & {"utils", "util", "helpers", "common", "misc", "tools"}


def run_python(program: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("module", ["ducos", "ducos.cli", "ducos.training.config", "ducos.errors"])
def test_heavy_libraries_are_not_loaded_on_import(module: str) -> None:
    heavy = ("torch", "cv2", "scipy", "transformers", "h5py")
    program = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    finished = run_python(program)
    assert finished.stdout.strip() == "[]", finished.stdout + finished.stderr


def test_importing_prompts_loads_no_foundation_library() -> None:
    program = "import sys, ducos.prompts, ducos.models; print('transformers' in sys.modules)"
    finished = run_python(program)
    assert finished.stdout.strip() == "False", finished.stdout + finished.stderr


@pytest.mark.parametrize("name", ducos.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(ducos, name) is not None
    assert name in dir(ducos)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="super_resolv"):
        ducos.super_resolv  # noqa: B018


def test_no_machine_is_mentioned() -> None:
    """Paths of a developer's machine have no place in the repository."""
    roots = "|".join(("work", "root", "home", "Users"))
    machine = re.compile(rf"(?<![\w.:~/\-\]}}])/(?:{roots})/\w")
    suffixes = {".py", ".md", ".toml", ".txt", ".cfg", ".yaml", ".yml", ".sh", ".json"}
    found = []
    for folder in (
        "src",
        "tests",
        "configs",
        "docs",
        "benchmarks",
        "scripts",
        "examples",
        ".ci",
        ".",
    ):
        every = (REPOSITORY / folder).glob("*" if folder == "." else "**/*")
        for path in every:
            if path.is_file() and (path.suffix in suffixes or path.name in {"Makefile", "run"}):
                text = path.read_text(encoding="utf-8", errors="replace")
                found += [f"{path.name}: {match.group()}" for match in machine.finditer(text)]
    assert not found


def test_the_page_shows_the_package_as_it_is() -> None:
    """Picture and flows of docs/architecture.md, drawn again: python scripts/architecture.py."""
    script = [sys.executable, str(REPOSITORY / "scripts" / "architecture.py"), "--check"]
    finished = subprocess.run(script, capture_output=True, text=True, timeout=240)
    assert finished.returncode == 0, finished.stderr


def test_the_page_sends_nobody_to_a_missing_file() -> None:
    text = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    for row in rows:
        first, *others = re.findall(r"`([\w/]+(?:\.py|/))", row.split("|")[2])
        for place in (first, *others):
            beside = PACKAGE / Path(first).parent if first.endswith(".py") else PACKAGE / first
            assert (PACKAGE / place).exists() or (beside / place).exists(), place
