"""Draw docs/pictures/rooms.svg and the flows of docs/architecture.md from the code itself.

python scripts/architecture.py            # after a change of imports or of the way data takes
python scripts/architecture.py --check    # are picture and page up to date?

The picture comes from the import statements. The flows come from real runs: every call that goes
from one room to another is recorded, the first time it happens.
"""

import argparse
import ast
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ducos

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is imported
REPOSITORY = Path(__file__).parent.parent
PACKAGE = Path(ducos.__file__).parent
PICTURE = REPOSITORY / "docs" / "pictures" / "rooms.svg"
PAGE = REPOSITORY / "docs" / "architecture.md"
Edges = dict[str, set[str]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    drawn = {PICTURE: picture(), PAGE: page(PAGE.read_text(encoding="utf-8"))}
    if not parser.parse_args().check:
        for path, text in drawn.items():
            path.write_text(text, encoding="utf-8")
        return
    old = [path.name for path, text in drawn.items() if path.read_text(encoding="utf-8") != text]
    if old:
        sys.exit(
            f"{' and '.join(old)}: not what the code says; run: python scripts/architecture.py"
        )


# Rooms and their imports


def room_of(path: Path) -> str:
    """The package, or the single file, that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rooms() -> list[str]:
    """Packages of the project, without those that hold no code."""
    return sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def single_files() -> list[str]:
    """Modules beside the rooms."""
    return sorted(path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__"))


def imports() -> Edges:
    """Room -> the rooms that any of its files imports, also inside functions."""
    known = set(rooms())
    found: Edges = {room: set() for room in known}
    for path in sorted(PACKAGE.glob("*/**/*.py")):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            parts = (name.split(".") for name in names)
            found[room_of(path)] |= {each[1] for each in parts if each[0] == "ducos"} & known
    return {room: others - {room} for room, others in found.items()}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def below(room: str, edges: Edges) -> set[str]:
    """Every room that a room imports, directly or through others."""
    direct = edges[room]
    return direct.union(*(below(other, edges) for other in direct))


def reduced(edges: Edges) -> Edges:
    """Without the imports that follow from others: a -> c where a -> b -> c."""
    return {
        room: {
            each
            for each in others
            if not any(each in below(other, edges) for other in others - {each})
        }
        for room, others in edges.items()
    }


def floors(edges: Edges) -> dict[str, int]:
    """Room -> floor: one above the highest room that it imports."""

    @cache
    def floor(room: str) -> int:
        return max((1 + floor(other) for other in edges[room]), default=0)

    return {room: floor(room) for room in edges}


def first_sentence(text: str | None) -> str:
    """Up to the first full stop, on one line."""
    line = " ".join((text or "").split("\n\n")[0].split())
    return re.split(r"(?<=[^.])\.(?:\s|$)", line, maxsplit=1)[0]


def about(name: str) -> str:
    """What a room or a single file is for, in its own words."""
    folder = PACKAGE / name / "__init__.py"
    path = folder if folder.is_file() else PACKAGE / f"{name}.py"
    return first_sentence(ast.get_docstring(tree(path)))


# The picture

# Where a room stands on its floor, so that arrows cross as little as possible. A room that is not
# listed takes the first free place.
COLUMNS = {
    "cli": 3.0,
    "training": 1.0,
    "evaluation": 1.0,
    "batch": 3.0,
    "example": 4.0,
    "upscaling": 4.0,
    "doctor": 2.5,
    "data": 1.0,
    "cameras": 2.0,
    "pictures": 3.0,
    "models": 4.0,
    "degrade": 0.0,
    "files": 2.0,
    "prompts": 4.0,
    "synth": 5.0,
}
WIDE, HIGH, ACROSS, DOWN, MARGIN = 172, 106, 188, 142, 20
LINE, LETTER = 14, 6.2  # of the small text: height, and width of a usual letter, in pixels
STYLE = """
text { font-family: system-ui, sans-serif; font-size: 11px; fill: #1f2328; }
.name { font-weight: bold; font-size: 14px; }
.grey { fill: #59636e; }
.room { fill: #f6f8fa; stroke: #8c959f; }
.arrow { fill: none; stroke: #4078c0; stroke-width: 1.5; marker-end: url(#head); }
"""


@dataclass(frozen=True)
class Box:
    """Left upper corner of a room in the picture."""

    x: float
    y: float

    @property
    def middle(self) -> float:
        return self.x + WIDE / 2


def picture() -> str:
    """The rooms by floor, an arrow for each import that does not follow from others."""
    edges = imports()
    placed = places(floors(edges))
    width = max(box.x for box in placed.values()) + WIDE + MARGIN
    foot = max(box.y for box in placed.values()) + HIGH + 36
    lines = [*single_file_lines(foot, width)]
    height = foot + 2 * LINE + LINE * -(-len(single_files()) // 2) + MARGIN + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="Rooms of ducos by floor">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#4078c0"/></marker></defs>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *(
            arrow(placed[room], placed[other])
            for room, others in sorted(reduced(edges).items())
            for other in sorted(others)
        ),
        *(drawn(room, box) for room, box in sorted(placed.items())),
        *lines,
        text(
            MARGIN,
            height - MARGIN,
            "An arrow is an import. Not drawn: imports that follow from the arrows "
            "(a → b → c covers a → c), and those of the single files.",
            "grey",
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def places(floor: dict[str, int]) -> dict[str, Box]:
    """Room -> its box; the highest floor on top."""
    top = max(floor.values())
    taken: dict[int, set[float]] = {}
    for room, number in floor.items():
        if room in COLUMNS:
            taken.setdefault(number, set()).add(COLUMNS[room])
    found = {}
    for room, number in sorted(floor.items()):
        column = COLUMNS.get(room)
        if column is None:
            others = taken.setdefault(number, set())
            column = next(c for c in map(float, range(99)) if all(abs(c - o) >= 1 for o in others))
            others.add(column)
        found[room] = Box(MARGIN + column * ACROSS, MARGIN + (top - number) * DOWN)
    return found


def text(x: float, y: float, words: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{named}>{escape(words)}</text>'


def drawn(room: str, box: Box) -> str:
    """A box with the room's name and sentence."""
    lines = textwrap.wrap(about(room), int((WIDE - 16) / LETTER))
    return "\n".join(
        [
            f'<rect class="room" x="{box.x:g}" y="{box.y:g}" width="{WIDE}" height="{HIGH}" '
            'rx="6"/>',
            text(box.x + 9, box.y + 20, room, "name"),
            *(
                text(box.x + 9, box.y + 37 + LINE * number, line, "grey")
                for number, line in enumerate(lines)
            ),
        ]
    )


def arrow(start: Box, end: Box) -> str:
    """From a room down to one that it imports: a curve to the next floor, else round the side."""
    sideways = end.middle - start.middle
    y, tip = start.y + HIGH, end.y - 1
    if end.y - start.y > DOWN and abs(sideways) > WIDE / 2:
        way = 1 if sideways > 0 else -1
        side, level = start.middle + way * WIDE / 2, start.y + HIGH / 2
        path = f"M{side:g} {level:g}H{end.middle - way * 10:g}q{way * 10} 0 {way * 10} 10V{tip:g}"
    else:
        # Arrows to and from one box lie side by side.
        leave, reach = start.middle + sideways / 14, end.middle - sideways / 14
        bend = (y + tip) / 2
        path = f"M{leave:g} {y:g}C{leave:g} {bend:g} {reach:g} {bend:g} {reach:g} {tip:g}"
    return f'<path class="arrow" d="{path}"/>'


def single_file_lines(top: float, width: float) -> Iterator[str]:
    """A wide box at the foot: the single files with their sentences, in two columns."""
    names = single_files()
    rows = -(-len(names) // 2)
    yield (
        f'<rect class="room" x="{MARGIN}" y="{top:g}" width="{width - 2 * MARGIN:g}" '
        f'height="{2 * LINE + LINE * rows + 10:g}" rx="6"/>'
    )
    yield text(MARGIN + 9, top + 20, "single files, for every room", "name")
    for number, name in enumerate(names):
        x = MARGIN + 9 + (width - 2 * MARGIN) / 2 * (number // rows)
        y = top + 40 + LINE * (number % rows)
        yield text(x, y, name)
        yield text(x + 70, y, textwrap.shorten(about(name), 84, placeholder=" …"), "grey")


# The flows

UNSEEN = {"arrays", "deferred", "errors", "lazy", "moved"}  # on the way, but no step of it
LONGEST = 74  # letters of a sentence beside a step
SHOWN = {"__init__": "", "__post_init__": "", "__call__": "()", "__getitem__": "[…]"}


@dataclass
class Step:
    """A call into another room, and the calls into further rooms that were made from there."""

    name: str
    about: str
    steps: dict[str, "Step"] = field(default_factory=dict)


Place = tuple[str, Step | None]  # the room, and the step below which further ones go; None: hidden


@dataclass
class Recorder:
    """A profile function that keeps the calls from one room into another.

    Under each step a function is kept once; what it calls in turn, where it came first.
    """

    start: Step
    seen: set[str] = field(default_factory=set)
    stack: list[Place] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            place = self.stack[-1] if self.stack else ("", self.start)
            self.stack.append(self.entered(frame.f_code, *place))
        elif event == "return" and self.stack:
            self.stack.pop()

    def entered(self, code: CodeType, room: str, step: Step | None) -> Place:
        """Where the walk is after a call from this place."""
        if code.co_name == "<module>":
            return room, None  # what happens while something is imported is no part of the flow
        other = room_behind(code.co_filename)
        if step is None or other is None or other == room:
            return room, step
        name = shown_name(code)
        if name is None:
            return other, step
        dotted = f"{other}.{name}"
        if dotted in self.seen:
            step.steps.setdefault(dotted, Step(dotted, ""))
            return other, Step(dotted, "")  # not in the tree: its steps stand where it came first
        self.seen.add(dotted)
        step.steps[dotted] = Step(dotted, described(code.co_filename, code.co_qualname))
        return other, step.steps[dotted]


@cache
def room_behind(file: str) -> str | None:
    """The room of a source file; None for other projects' files and for modules on the way."""
    path = Path(file)
    if not path.is_relative_to(PACKAGE) or path == PACKAGE / "__init__.py":
        return None
    return None if room_of(path) in UNSEEN else room_of(path)


def shown_name(code: CodeType) -> str | None:
    """A public function as its callers write it; None for all others."""
    *outer, last = code.co_qualname.split(".")
    if last in SHOWN:
        return ".".join(outer) + SHOWN[last]
    if any(part.startswith(("_", "<")) for part in (*outer, last)):
        return None
    return code.co_qualname


@cache
def described(file: str, name: str) -> str:
    """The first sentence of a function's docstring, or of its class."""
    node: Any = tree(Path(file))
    for part in re.sub(r"\.__(post_)?init__$", "", name).split("."):
        named = [n for n in ast.iter_child_nodes(node) if getattr(n, "name", "") == part]
        if not named:
            return ""
        node = named[-1]  # after its overloads
    return first_sentence(ast.get_docstring(node))


def recorded(run: Callable[[], Any]) -> Step:
    """Run something and keep the calls between rooms."""
    start = Step("", "")
    before = sys.getprofile()
    sys.setprofile(Recorder(start))
    try:
        run()
    finally:
        sys.setprofile(before)
    return start


def upscale() -> None:
    """One pair of files with the embedded network."""
    from ducos.example import LOW, RGB

    ducos.super_resolve(RGB, LOW, model="ducos-tiny")


def train() -> None:
    """One step of a small network on generated shapes."""
    from ducos.training import load_config
    from ducos.training import train as run

    changes = ["train.steps=1", "train.steps_per_epoch=1", "train.log_every=1", "data.crop=32"]
    with tempfile.TemporaryDirectory() as folder:
        config = load_config(REPOSITORY / "configs" / "shapes.toml", changes)
        run(config, Path(folder) / "run", quiet=True)


def evaluate() -> None:
    """One image, one model, one scale."""
    from ducos.evaluation import evaluate as score

    score("bicubic", "shapes:1", "synthetic", [4])


FLOWS = {"upscale": upscale, "train": train, "eval": evaluate}


def page(written: str) -> str:
    """The page with its flows as they are now."""
    train()  # imports what all of them need: that takes twice as long while it is recorded
    for name, run in FLOWS.items():
        block = "\n".join(["```text", *as_lines(recorded(run)), "```"])
        mark = re.compile(rf"(<!-- flow: {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        if not mark.search(written):
            sys.exit(f"{PAGE.name} has no place for the flow {name}: <!-- flow: {name} -->")
        written = mark.sub(lambda found: found[1] + block + found[2], written)  # noqa: B023
    return written


def as_lines(step: Step, depth: int = 0) -> Iterator[str]:
    """A line for each step below this one, indented by how deep it was called."""
    for each in step.steps.values():
        name = "    " * depth + each.name
        yield f"{name:<40}  {short(each.about)}".rstrip()
        yield from as_lines(each, depth + 1)


def short(sentence: str) -> str:
    """Its first clause, if it is long."""
    clause = sentence if len(sentence) <= LONGEST else re.split(r"[:;]| -> ", sentence)[0]
    return textwrap.shorten(clause, LONGEST, placeholder=" …")


if __name__ == "__main__":
    main()
