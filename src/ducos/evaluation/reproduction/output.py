"""The report of a reproduction as text, CSV, LaTeX and JSON, and as files with a plot."""

import csv
import io as text_io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ducos.evaluation.reproduction.plot import as_picture
from ducos.evaluation.reproduction.report import METRICS, Block, Line, Report
from ducos.files import atomic_write
from ducos.pictures import write_image


def write_report(report: Report, out: Path) -> list[Path]:
    """table.txt, .csv, .tex and .json and, if there is accuracy to show, plot.png."""
    out.mkdir(parents=True, exist_ok=True)
    texts = {
        "table.txt": report_as_text(report),
        "table.csv": as_csv(report),
        "table.tex": as_latex(report),
        "table.json": report_as_json(report) + "\n",
    }
    written = []
    for name, text in texts.items():
        with atomic_write(out / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
        written.append(out / name)
    picture = as_picture(report)
    if picture is not None:
        write_image(out / "plot.png", picture)
        written.append(out / "plot.png")
    return written


# --------------------------------------------------------------------------------------------- text


def report_as_text(report: Report) -> str:
    """The report as aligned columns for a terminal."""
    parts = [report.title]
    for block in report.blocks:
        parts.append(f"\n{block.title}\n{_aligned(*_cells(report, block))}")
    for table in report.tables:
        parts.append(f"\n{table.title}\n{_aligned(table.header, table.rows)}")
    for heading, texts in (("Skipped", report.skipped), ("Notes", report.notes)):
        if texts:
            parts.append(f"\n{heading}\n" + "\n".join(f"- {text}" for text in texts))
    return "\n".join(parts) + "\n"


def _cells(report: Report, block: Block) -> tuple[list[str], list[list[str]]]:
    """Header (as group|title) and rows; a published column shows only metrics some line has."""
    shown = {
        column: [
            metric
            for metric in METRICS
            if any(
                getattr(line.reported[column], metric) is not None
                for line in block.lines
                if column in line.reported
            )
        ]
        for column in report.columns
    }
    groups = {"measured": list(METRICS), **shown}
    header = ["method"]
    header += [f"{group}|{METRICS[m][0]}" for group, metrics in groups.items() for m in metrics]
    rows = []
    for line in block.lines:
        row = [line.name, *(_number(line.measured.get(m), m) for m in METRICS)]
        for column, metrics in shown.items():
            figures = line.reported.get(column)
            row += [_number(getattr(figures, m) if figures else None, m) for m in metrics]
        rows.append([*row, line.status])
    return [*header, "status"], rows


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell: texts to the left, figures to the right.

    Headings of the form group|title get a line above, where each group stands once.
    """
    groups, titles = _split(header)
    table = [titles, *[list(row) for row in rows]]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    for number, group in enumerate(groups):  # a group of one column may be wider than it
        alone = groups.count(group) == 1 and bool(group)
        widths[number] = max(widths[number], len(group)) if alone else widths[number]
    last = len(widths) - 1

    def padded(number: int, cell: str) -> str:
        if number == last:
            return cell
        figures = all(_is_figure(row[number]) for row in rows)
        return cell.rjust(widths[number]) if figures else cell.ljust(widths[number])

    lines = ["  ".join(padded(n, cell) for n, cell in enumerate(row)).rstrip() for row in table]
    if any(groups):
        above = ""
        for number, group in enumerate(groups):
            if group and group not in groups[:number]:
                above = above.ljust(sum(widths[:number]) + 2 * number) + group
        lines.insert(0, above)
    return "\n".join(lines)


def _split(header: Sequence[str]) -> tuple[list[str], list[str]]:
    """group|title -> groups and titles; no group is an empty one."""
    parts = [cell.rpartition("|") for cell in header]
    return [group for group, _, _ in parts], [title for _, _, title in parts]


def _is_figure(cell: str) -> bool:
    return not cell.strip("–0123456789. ")


def _number(value: float | None, metric: str) -> str:
    return "–" if value is None else f"{value:.{METRICS[metric][1]}f}"


# ------------------------------------------------------------------------------------- CSV and JSON


def as_csv(report: Report) -> str:
    """One line per method, dataset, protocol and scale; figures of other tables after them."""
    stream = text_io.StringIO()
    columns = report.columns
    facts = ("dataset", "protocol", "scale", "unit", "method", "status", "images", "weights")
    if report.blocks:
        published = [f"{_slug(column)}_{m}" for column in columns for m in METRICS]
        writer = csv.DictWriter(stream, [*facts, *METRICS, *published], lineterminator="\n")
        writer.writeheader()
        writer.writerows(_flat(line, columns) for b in report.blocks for line in b.lines)
    for table in report.tables:
        if stream.tell():
            stream.write("\n")
        plain = csv.writer(stream, lineterminator="\n")
        plain.writerow(table.header)
        plain.writerows(table.rows)
    return stream.getvalue()


def report_as_json(report: Report) -> str:
    """One JSON object: name, lines, tables (header first) by title, skipped and notes."""
    lines = [_flat(line, report.columns) for block in report.blocks for line in block.lines]
    tables = {table.title: [table.header, *table.rows] for table in report.tables}
    return json.dumps(
        {
            "name": report.name,
            "lines": lines,
            "tables": tables,
            "skipped": report.skipped,
            "notes": report.notes,
        }
    )


def _flat(line: Line, columns: Sequence[str]) -> dict[str, Any]:
    """One line as a flat dict; None where there is no figure."""
    row: dict[str, Any] = {
        "dataset": line.dataset,
        "protocol": line.protocol,
        "scale": "" if line.scale is None else f"{line.scale:g}",
        "unit": line.unit,
        "method": line.method,
        "status": line.status,
        "images": line.images or None,
        "weights": line.weights,
    }
    for metric in METRICS:
        value = line.measured.get(metric)
        row[metric] = None if value is None else round(value, 4)
    for column in columns:
        figures = line.reported.get(column)
        for metric in METRICS:
            row[f"{_slug(column)}_{metric}"] = getattr(figures, metric) if figures else None
    return row


def _slug(column: str) -> str:
    return column.lower().replace("-", "_").replace(" ", "_")


# -------------------------------------------------------------------------------------------- LaTeX


def as_latex(report: Report) -> str:
    """booktabs tables; published figures are in italics, so that nobody takes them for ours."""
    parts = [f"% {report.title}", "% needs \\usepackage{booktabs}"]
    for block in report.blocks:
        header, rows = _cells(report, block)
        first_published = 1 + len(METRICS)
        for row in rows:
            for number in range(first_published, len(row) - 1):
                if row[number] != "–":
                    row[number] = rf"\textit{{{row[number]}}}"
        parts.append(_latex_table(block.title, header, rows))
    parts += [_latex_table(table.title, table.header, table.rows) for table in report.tables]
    return "\n".join(parts) + "\n"


def _latex_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    groups, titles = _split(header)
    above = ""
    if any(groups):
        spans = [(group, groups.count(group)) for group in dict.fromkeys(groups) if group]
        cells = [rf"\multicolumn{{{count}}}{{c}}{{{_escaped(group)}}}" for group, count in spans]
        above = " & " + " & ".join(cells) + " & \\\\\n"
    body = "\n".join(" & ".join(_escaped(cell) for cell in row) + r" \\" for row in rows)
    return "\n".join(
        (
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_escaped(title)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 2)}l}}",
            r"\toprule",
            above + " & ".join(_escaped(cell) for cell in titles) + r" \\",
            r"\midrule",
            body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        )
    )


def _escaped(text: str) -> str:
    for character in "&%#_":
        text = text.replace(character, f"\\{character}")
    return text.replace("δ1.05", r"$\delta_{1.05}$").replace("×", r"$\times$").replace("–", "--")
