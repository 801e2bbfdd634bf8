"""Draw the drawings of the docs: the paper's method, the badges, the bars of the findings.

python scripts/diagrams.py            # after a change, into docs/pictures
python scripts/diagrams.py --check    # are they up to date?
"""

import argparse
import json
import re
import sys
import tomllib
from html import escape
from pathlib import Path

import ducos

REPOSITORY = Path(__file__).parent.parent
FOLDER = REPOSITORY / "docs" / "pictures"
FINDINGS = REPOSITORY / "docs" / "results" / "findings.json"
FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
BLUE, AMBER, GREEN, GREY = "#2f6fb5", "#b7791f", "#2f855a", "#5f6b76"


def svg(width: float, height: float, label: str, parts: list[str]) -> str:
    """A drawing on white, so that it can be read on a dark page, too."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}" '
            f'font-family="{FONT}">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto">'
            f'<path d="M0 0 8 4 0 8z" fill="{GREY}"/></marker></defs>',
            f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def words(
    x: float, y: float, text: str, size: float = 13, colour: str = "#1f2328", at: str = "middle"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{colour}" text-anchor="{at}">'
        f"{escape(text)}</text>"
    )


def box(x: float, y: float, width: float, height: float, colour: str, lines: list[str]) -> str:
    """A rounded box with centred lines; the first one larger."""
    top = y + height / 2 - 8 * (len(lines) - 1) + 4.5
    told = [
        words(x + width / 2, top + 17 * n, line, 14 if n == 0 else 11.5, colour if n == 0 else GREY)
        for n, line in enumerate(lines)
    ]
    shape = (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7" '
        f'fill="{colour}" fill-opacity="0.09" stroke="{colour}" stroke-width="1.4"/>'
    )
    return "\n".join([shape, *told])


def way(path: str, dashed: bool = False) -> str:
    """An arrow."""
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return line(path, f'{dash} marker-end="url(#tip)"')


def line(path: str, more: str = "") -> str:
    return f'<path d="{path}" fill="none" stroke="{GREY}" stroke-width="1.5"{more}/>'


def method() -> str:
    """The paper's pipeline: prompt flow above, depth flow in the middle, duality below."""
    parts = [
        box(20, 26, 120, 62, BLUE, ["RGB image I", "H × W × 3"]),
        box(186, 26, 190, 62, BLUE, ["foundation model", "its features and its depth"]),
        way("M140 57H183"),
        box(846, 26, 134, 62, BLUE, ["relative depth Y′", "sharp edges"]),
        way("M376 42H843"),
        box(20, 182, 120, 62, GREEN, ["depth map", "low resolution"]),
        box(164, 182, 84, 62, GREEN, ["bicubic", "X"]),
        box(272, 182, 76, 62, GREEN, ["head", "3×3, Eq. 1b"]),
        way("M140 213H161"),
        way("M248 213H269"),
        way("M348 213H373"),
    ]
    for n in range(4):
        x = 376 + 112 * n
        parts += [
            box(x, 182, 92, 62, GREEN, [f"fusion {n + 1}", "CF, Eq. 2–6"]),
            way(f"M{x + 46:g} 104V179"),
            words(x + 58, 146, f"F{'₁₂₃₄'[n]}", 13, BLUE),
        ]
        if n < 3:
            parts.append(way(f"M{x + 92:g} 213H{x + 109:g}"))
    parts += [
        line(f"M281 88V104H{376 + 112 * 3 + 46}"),
        box(846, 182, 134, 62, GREEN, ["result Y", "tail 3×3, Eq. 8"]),
        way("M804 213H843"),
        box(376, 296, 230, 58, AMBER, ["alignment constraint", "L_cf: both features agree, Eq. 7"]),
        box(646, 296, 190, 58, AMBER, ["edge constraint", "L_gr: edges as in Y′, Eq. 10"]),
        box(866, 296, 114, 58, AMBER, ["reconstruction", "L_rec, Eq. 11"]),
        way("M491 244V293", dashed=True),
        way("M902 244L780 293", dashed=True),
        way("M923 244V293", dashed=True),
        way("M980 57H992V270H810L760 293", dashed=True),
        box(
            20,
            296,
            316,
            58,
            AMBER,
            ["L_rec + λ L_cf + μ L_gr", "λ, μ rise while violated, fall after (Eq. 13–17)"],
        ),
        way("M376 325H339", dashed=True),
        way("M741 354V367H178V357", dashed=True),
        line("M923 354V367H741", ' stroke-dasharray="5 4"'),
    ]
    return svg(1004, 384, "The method of DuCos: prompt, correlative fusion, constraints", parts)


def badge(name: str, value: str, colour: str) -> str:
    """Two words on a small plate."""
    left, right = (14 + 6.6 * len(each) for each in (name, value))
    width = left + right
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="20" role="img" '
        f'aria-label="{escape(name)}: {escape(value)}" font-family="Verdana, {FONT}" '
        'font-size="11" fill="#ffffff" text-anchor="middle">'
        f'<rect width="{width:g}" height="20" rx="4" fill="#4b535c"/>'
        f'<path d="M{left:g} 0h{right - 4:g}a4 4 0 0 1 4 4v12a4 4 0 0 1-4 4H{left:g}z" '
        f'fill="{colour}"/>'
        f'<text x="{left / 2:g}" y="14">{escape(name)}</text>'
        f'<text x="{left + right / 2:g}" y="14">{escape(value)}</text></svg>\n'
    )


def badges() -> dict[str, str]:
    """What pyproject.toml and the package say."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    python = re.sub(r">=(.*)", r"\1+", project["requires-python"])
    return {
        "badge-version": badge("version", ducos.__version__, BLUE),
        "badge-python": badge("Python", python, BLUE),
        "badge-licence": badge("licence", project["license"], GREEN),
    }


def bars(title: str, rows: list[tuple[str, float]], unit: str) -> str:
    """Horizontal bars with their numbers."""
    wide, left, top, step = 760, 300, 44, 26
    longest = max(value for _, value in rows)
    parts = [words(16, 26, title, 14, "#1f2328", "start")]
    for n, (name, value) in enumerate(rows):
        y = top + step * n
        length = (wide - left - 90) * value / longest
        parts += [
            words(left - 8, y + 13, name, 12, GREY, "end"),
            f'<rect x="{left}" y="{y}" width="{length:.1f}" height="18" rx="3" fill="{BLUE}"/>',
            words(left + length + 6, y + 13, f"{value:g}{unit}", 12, "#1f2328", "start"),
        ]
    return svg(wide, top + step * len(rows) + 10, title, parts)


def findings() -> dict[str, str]:
    """One chart for each finding; its figures are stored with their commands."""
    stored = json.loads(FINDINGS.read_text(encoding="utf-8"))["findings"]
    return {
        f"finding-{name}": bars(each["title"], list(map(tuple, each["rows"])), each["unit"])
        for name, each in stored.items()
    }


def drawn() -> dict[Path, str]:
    every = {"method": method(), **badges(), **findings()}
    return {FOLDER / f"{name}.svg": text for name, text in every.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    asked = parser.parse_args()
    for path, text in drawn().items():
        if not asked.check:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name}: not as it is drawn now; run: python scripts/diagrams.py")


if __name__ == "__main__":
    main()
