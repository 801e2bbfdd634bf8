"""The shape of the package: imports go down only, nothing heavy on import, names explained."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import ducos

PACKAGE = Path(ducos.__file__).parent
REPOSITORY = Path(__file__).parent.parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Lowest first. A module may import from lower layers only; packages count as one module.
# A new module needs a place here: as low as its imports allow.
LAYERS = [
    {"errors"},
    {"camera", "config", "dual", "files", "look", "metrics", "normalise", "processes",
     "published", "resize", "sensors", "synth", "units"},
    {"camera_files", "degrade", "formats", "losses", "protocols", "training_log"},
    {"io", "prompts", "results"},
    {"colour", "data", "models", "registration"},
    {"cases", "checkpoint", "preview", "tiling"},
    {"charts", "cloud", "convert", "infer", "pictures"},
    {"catalogue", "doctor", "evaluate", "example", "training_curves", "training_run"},
    {"batch"},
    {"validation"},
    {"reproduce", "train"},
    {"cli"},
    {"__main__"},
]  # fmt: skip
LAYER = {module: number for number, modules in enumerate(LAYERS) for module in modules}

# Beyond the layers: what must not know each other, because the method's parts stand apart.
STRANGERS = {
    "dual": {"resize", "normalise", "losses", "models", "data"},  # names and numbers only
    "models": {"colour", "data", "degrade", "dual", "io", "losses", "metrics", "units"},
    "prompts": {"data", "degrade", "dual", "losses", "metrics", "models"},
    "losses": {"data", "dual", "io", "models", "prompts", "units"},
    "data": {"checkpoint", "dual", "losses", "models"},
    "metrics": {"data", "io", "losses", "models"},
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
    """Modules of this package that a file imports, without its own."""
    dotted = {name.split(".")[1] for name in imports_of(path) if name.startswith("ducos.")}
    exists = {
        name for name in dotted if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()
    }
    return exists - {module_of(path)}


def public_definitions(path: Path) -> list[ast.ClassDef | ast.FunctionDef]:
    return [
        node
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_every_module_has_a_place() -> None:
    modules = {module_of(path) for path in FILES} - {"__init__"}
    assert modules - set(LAYER) == set(), "add it to LAYERS, as low as its imports allow"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_imports_go_down_only(path: Path) -> None:
    module = module_of(path)
    if module == "__init__":
        return
    for other in own_imports(path):
        assert LAYER[other] < LAYER[module], f"{module} must not import {other}"
        assert other not in STRANGERS.get(module, set()), f"{module} must not know {other}"


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
