"""What the docs teach works: imports without a warning, names that exist, links that lead there."""

import importlib
import re
import sys
import warnings
from pathlib import Path

import pytest
import typer

from ducos.cli import app
from ducos.moved import ROOMS
from tests.places import REPOSITORY

FOLDERS = ("docs", "dev", "examples")
PAGES = sorted(
    [*REPOSITORY.glob("*.md"), *(p for name in FOLDERS for p in REPOSITORY.glob(f"{name}/**/*.md"))]
)
NAMES = {path: str(path.relative_to(REPOSITORY)) for path in PAGES}
TEXTS = {name: path.read_text(encoding="utf-8") for path, name in NAMES.items()}
IMPORT = re.compile(r"^\s*((?:from ducos[\w.]* import [\w, ]+|import ducos[\w.]*))", re.MULTILINE)
NAME = re.compile(r"(?<![\w./])ducos((?:\.[A-Za-z_]\w*){2,})")
COMMAND = re.compile(r"(?:^    |`|-m )ducos ([a-z][a-z-]*)([^`\n]*)", re.MULTILINE)
FLAG = re.compile(r"(?<=\s)--?[a-z][a-z-]*")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


@pytest.mark.parametrize("page", TEXTS)
def test_imports_work_without_a_warning(page: str) -> None:
    for line in IMPORT.findall(TEXTS[page]):
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            exec(line, {})


@pytest.mark.parametrize("page", [name for name in TEXTS if name != "CHANGELOG.md"])
def test_names_exist(page: str) -> None:
    for dotted in NAME.findall(TEXTS[page]):
        room, *names = dotted.lstrip(".").split(".")
        found = importlib.import_module(f"ducos.{room}")
        for name in names:
            if not hasattr(found, name):
                found = importlib.import_module(f"{found.__name__}.{name}")
            else:
                found = getattr(found, name)


@pytest.mark.parametrize("page", TEXTS)
def test_commands_have_the_options_that_are_shown(page: str) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, rest in COMMAND.findall(re.sub(r"\\\n\s*", "", TEXTS[page])):
        assert name in commands, f"ducos {name}"
        known = {option for each in commands[name].params for option in each.opts} | {"--help"}
        shown = set(FLAG.findall(rest.split("#")[0].split("  ")[0]))
        assert shown <= known, f"ducos {name}: {shown - known}"


@pytest.mark.parametrize("path", PAGES, ids=NAMES.get)
def test_links_lead_somewhere(path: Path) -> None:
    for place, part in LINK.findall(TEXTS[NAMES[path]]):
        target = (path.parent / place).resolve() if place else path
        assert target.exists(), place
        if part and target.suffix == ".md":
            assert part in headings(target.read_text(encoding="utf-8")), f"{place}#{part}"


def headings(text: str) -> set[str]:
    """Anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.replace(" ", "-") for title in plain}


@pytest.mark.parametrize(("old", "new"), ROOMS.items())
def test_old_imports_warn_and_the_changelog_names_them(old: str, new: str) -> None:
    assert f"| `{old}` | `{new}` |" in TEXTS["CHANGELOG.md"]
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"import from {new};"):
        module = importlib.import_module(old)
    room = importlib.import_module(new)
    names = getattr(room, "__all__", None) or [n for n in vars(room) if not n.startswith("_")]
    assert all(getattr(module, name) is getattr(room, name) for name in names)
