"""The tables of README.md and the site, from the stored runs (see results.py)."""

import re
from functools import partial
from pathlib import Path
from typing import Any

from ducos.evaluation import SUITES
from ducos.upscaling import find_weights, version_of
from results_cells import (
    OURS,
    PAPERS,
    REPOSITORY,
    SETS,
    capture_rows,
    caution,
    harmed,
    header_of,
    label,
    lines,
    measured_version,
    number,
    papers,
    photographs,
    report,
    reports,
    seconds,
)

README, PAGE = REPOSITORY / "README.md", REPOSITORY / "docs" / "results.md"
HOME = REPOSITORY / "docs" / "index.md"
HOLES = REPOSITORY / "docs" / "units-and-holes.md"
PRIOR = REPOSITORY / "docs" / "prior.md"


def summary() -> str:
    """The one table of the README and of the site's first page."""
    scales = (4, 8, 16)
    head = ["RMSE at ×4 / ×8 / ×16", "Middlebury, levels", "Lu, levels", "NYU v2, of bicubic's"]
    rows = [
        [label(model), *photographs(model, scales), harmed(model), seconds(model)]
        for model in ("bicubic", OURS, "fdkn", "dornet-t")
    ]
    rows += [[PAPERS[m][0], *papers(m, PAPERS[m][1], scales), "–", "–"] for m in ("ducos", "wave")]
    return lines([*head, "real captures harmed", "CPU s"], rows) + "\n" + caution()


def all_photographs() -> str:
    scales = (2, 4, 8, 16)
    head = ["RMSE at ×2 / ×4 / ×8 / ×16", "Middlebury 30, levels", "Lu 6, levels"]
    rows = [[label(m), *photographs(m, scales)] for m in ("bicubic", OURS, "fdkn", "dornet-t")]
    rows += [[name, *papers(m, table, scales)] for m, (name, table) in PAPERS.items()]
    return lines([*head, "NYU v2, of bicubic's"], rows)


def details() -> str:
    """Every measured figure of photographs, with more metrics."""
    head = ["set", "scale", "model", "images", "RMSE", "MAE", "δ1.05", "edges", "flying %"]
    rows = []
    for place in SETS:
        for each in reports():
            for row in each.get("rows", []):
                if row.get("dataset") == place and "mae" in row:
                    more = [number(row[n]) for n in ("rmse", "mae", "delta105", "rmse_edge")]
                    facts = [place, f"×{row['scale']:g}", row["model"], str(row["images"])]
                    rows.append((row["scale"], [*facts, *more, number(row["flying"], 1)]))
    ordered = sorted(rows, key=lambda each: (list(SETS).index(each[1][0]), each[0], each[1][2]))
    return lines(head, [row for _, row in ordered])


def captures() -> str:
    """Per ratio: errors relative to bicubic, and how many were harmed."""
    head = ["model", "ratio", "harmed", "RMSE, of bicubic's", "near, of bicubic's"]
    rows = []
    for model in (OURS, "fdkn", "dornet-t"):
        for row in capture_rows(model):
            ratio = row["case"].rpartition("_x")[2]
            hurt = f"{row['harmed']:.0f} of {row['images']}"
            rows.append(
                [label(model), f"×{ratio}", hurt, number(row.get("rmse")), number(row.get("near"))]
            )
    named = report("captures").get("figures", {}).get(OURS, {})
    if named:
        means = [number(named.get(n)) for n in ("captures_rmse", "captures_near")]
        rows.append([label(OURS), "×2 ×4 ×8 together", f"{named['harmed']:.0f} of 21", *means])
    return lines(head, rows)


def heldout() -> str:
    """From the header of the weight file, which keeps what it was chosen by."""
    named = header_of(OURS).get("figures", {}).get("heldout", {})
    cases = {case.name for case in SUITES["heldout"].cases if case.data == "rendered"}
    rows = [[n.replace("_", " "), number(v, 3)] for n, v in named.items() if n in cases]
    return lines(["case", f"{OURS} {version_of(OURS)}, RMSE of bicubic's"], rows)


def sigma() -> str:
    """How often sigma covers the error, as the weight file states it."""
    named = header_of(OURS).get("figures", {}).get("heldout", {})
    if "sigma_1" not in named:
        return f"The embedded weights do not state how often it covers the error ({OURS})."
    one, two = (f"{100 * named[f'sigma_{k}']:.0f} %" for k in (1, 2))
    return (
        f"On held-out scenes {one} of the errors stay below it where something was measured, and"
        f" {two} below twice (`ducos eval --suite heldout`, {OURS} {version_of(OURS)})."
    )


def time_of_flight() -> str:
    head = ["pair", "bicubic, cm", f"{measured_version()}, cm"]
    found = {m: report(f"tof-{m}").get("rows", []) for m in ("bicubic", OURS)}
    if not all(found.values()):
        return "Not measured with the embedded weights yet."
    rows = [
        [base["dataset"], number(base["rmse"]), number(ours["rmse"])]
        for base, ours in zip(found["bicubic"], found[OURS])
    ]
    return lines(head, rows)


def cost() -> str:
    head = ["model", "parameters", "CPU s", "of FDSR's"]
    found = report("cost").get("rows", [])
    base = next((row["seconds"] for row in found if row["model"] == "fdsr"), None)
    rows = [
        [
            row["model"],
            f"{row['parameters']:,}",
            number(row["seconds"]),
            number(row["seconds"] / base),
        ]
        for row in found
        if base
    ]
    return lines(head, rows) if rows else "Not measured with the embedded weights yet."


def priors() -> str:
    head = ["images", "without a prior", "with it", "wrong prior", "prior fitted, no network"]
    found = report("priors").get("figures", {})
    rows = [
        [
            name.replace("exc", "boxes").replace("zed", "ZED"),
            *(number(each[n], 3) for n in ("without", "with", "wrong", "fitted")),
        ]
        for name, each in found.items()
        if "without" in each
    ]
    return f"`{report('priors').get('weights')}`:\n\n{lines(head, rows)}"


def every_run() -> str:
    """Protocol, command, weights and date of all of them."""
    head = ["run", "protocol", "weights", "date", "command or source"]
    rows = []
    for each in reports():
        ids = {
            f"{r['protocol']}@{r['protocol_id']}"
            for r in each.get("rows", [])
            if "protocol_id" in r
        }
        told = each.get("source", "") + ("; " if "source" in each else "")
        made = f"`{each['command']}`" if each["command"] != "none here" else ""
        rows.append(
            [each["run"], " ".join(sorted(ids)) or "–", each["weights"], each["date"], told + made]
        )
    return lines(head, rows)


def card(model: str) -> str:
    """What a weight file states about itself, in the words of its header."""
    path, about = find_weights(model), header_of(model)
    blend = about.get("blend")
    facts = {
        "version": about.get("version"),
        "file": f"`{path.name}`, {path.stat().st_size / 1e6:.1f} MB" if path else None,
        "licence": about.get("licence"),
        "trained on": about.get("trained_on"),
        "steps": about.get("steps"),
        "training set": about.get("training_set", {}).get("sha256", "")[:12],
        "lineage": about.get("lineage"),
        "blend": f"{blend['share']:g} of the way from the start to the end" if blend else None,
        "code": about.get("code"),
    }
    return lines(["", model], [[name, str(value)] for name, value in facts.items() if value])


BLOCKS = {
    README: {"summary": summary},
    HOME: {"summary": summary},
    PAGE: {
        "summary": summary,
        "photographs": all_photographs,
        "captures": captures,
        "heldout": heldout,
        "tof": time_of_flight,
        "cost": cost,
        "priors": priors,
        "details": details,
        "runs": every_run,
    },
    HOLES: {"sigma": sigma},
    PRIOR: {"priors": priors},
    **{
        REPOSITORY / "docs" / "models" / f"{m}.md": {f"card-{m}": partial(card, m)}
        for m in (OURS, "ducos-small")
    },
}


def pages() -> dict[Path, str]:
    """Every page with its tables as they are stored now."""
    return {path: filled(path, blocks) for path, blocks in BLOCKS.items()}


def filled(path: Path, blocks: dict[str, Any]) -> str:
    """A page with what stands between `<!-- results: NAME -->` and `<!-- end -->` written anew."""
    text = path.read_text(encoding="utf-8")
    for name, table in blocks.items():
        mark = re.compile(rf"(<!-- results: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not mark.search(text):
            raise SystemExit(f"{path.name} has no place for {name}: <!-- results: {name} -->")
        block = f"\n{table().strip()}\n\n"
        text = mark.sub(lambda found, block=block: found[1] + block + found[2], text)
    return text


def differing(written: dict[Path, str]) -> list[str]:
    """Names of the pages that are not what is stored."""
    return [p.name for p, text in written.items() if p.read_text(encoding="utf-8") != text]
