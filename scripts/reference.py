"""Write docs/reference.md: every table with defaults and sentences, as the code states them.

python scripts/reference.py            # after a change of any table
python scripts/reference.py --check    # is the page up to date?
"""

import argparse
import sys
from pathlib import Path

from ducos.training import EVERYTHING, Listing, Row, shown

PAGE = Path(__file__).parent.parent / "docs" / "reference.md"
HEAD = """# Reference: everything that has a name

Made by `python scripts/reference.py` from the tables of the code; do not edit it by hand.
`ducos train --list` prints what a training configuration can name. Adding an entry is one function
or file and one line: see [CONTRIBUTING.md](../CONTRIBUTING.md).
"""
REMARKS = {
    "objectives": "Minimised, each times its weight. The weight shown is a usual one.",
    "constraints": "Held below an epsilon by multipliers. In brackets: the numbers of each preset;"
    " what is not named is 0.",
    "augmentations": "Applied in this order. 0 or off leaves it out. *maps*: only for"
    " low-resolution maps of these kinds.",
    "degradations": "How low-resolution maps are made of ground truth;"
    " [degradations.md](degradations.md) explains them.",
    "protocols": "What the input is and what is scored; [protocols.md](protocols.md) has more.",
    "prompts": "Foundation models; [prompts.md](prompts.md) explains them.",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    if not options.check:
        PAGE.write_text(page(), encoding="utf-8")
        return
    if PAGE.read_text(encoding="utf-8") != page():
        sys.exit(f"{PAGE} is not what the tables say; run: python scripts/reference.py")


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(chapter(name, table) for name, table in EVERYTHING.items())])


def chapter(name: str, table: Listing) -> str:
    """One table: a heading, how to name its entries, a row for each."""
    lines = [f"## {name.capitalize()}", "", f"`{table.use}`", ""]
    if name in REMARKS:
        lines += [REMARKS[name], ""]
    return (
        "\n".join([*lines, "| name | defaults | |", "|---|---|---|", *map(row, table.rows())])
        + "\n"
    )


def row(entry: Row) -> str:
    cells = f"`{entry.name}`", shown(entry.defaults) or "–", entry.about
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


if __name__ == "__main__":
    main()
