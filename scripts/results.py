"""Measure what the results page shows, and write it: README's table and docs/results.md.

python scripts/results.py                    write the tables from what is stored in docs/results
python scripts/results.py --check            are they up to date?
python scripts/results.py --list             every run, and whether it is of the embedded weights
python scripts/results.py run --bench DIR --captures DIR --heldout DIR --priors DIR [--only lu6]
                                             measure what is missing or of other weights, then write

A run is one command and one file, written when it has finished: interrupted, it goes on where it
was. Runs whose data are not given are left as they are. `make results BENCH=… CAPTURES=…` is the
same. Files that say `"by": "hand"` hold figures that no command of this script makes, with their
source.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ducos.models import read_about
from ducos.upscaling import find_weights

REPOSITORY = Path(__file__).parent.parent
STORED = REPOSITORY / "docs" / "results"
OURS, WITH_PRIOR = "ducos-tiny", "ducos-small"
SETS, SCALES = ("middlebury30", "lu6", "nyu57"), (2, 4, 8, 16)


@dataclass(frozen=True)
class Run:
    """One command. needs: the data it takes, by the name of the option; weights: the model whose
    version makes a stored file old."""

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...]
    weights: str

    @property
    def path(self) -> Path:
        return STORED / f"{self.name}.json"


def runs() -> Iterator[Run]:
    """Everything that this script can measure. BENCH and the like stand for folders."""
    for model in ("bicubic", OURS):
        for place in SETS:
            for scale in SCALES:
                data = ("--dataset", f"bench:BENCH/{place}", "--scale", str(scale))
                yield evaluation(f"photographs-{place}-x{scale}-{model}", model, *data)
        tof = [("--dataset", f"bench:BENCH/{n},sensor=tof") for n in ("tofmark", "tofdsr_sample")]
        yield evaluation(f"tof-{model}", model, "--protocol", "real", *tof[0], *tof[1])
    suite = ("--suite", "heldout")
    yield evaluation("captures", OURS, *suite, "--captures", "CAPTURES", needs="captures")
    cost = ("python", "benchmarks/cost.py", "--rounds", "3", "--json")
    models = ("--models", f"bicubic,{OURS},fdsr,fdkn,dornet-t")
    yield Run("cost", (*cost, *models), (), OURS)
    prior = ("python", "benchmarks/priors.py", "PRIORS", "--data", "HELDOUT", "--json", "OUT")
    yield Run("priors", prior, ("priors", "heldout"), WITH_PRIOR)


def evaluation(name: str, model: str, *arguments: str, needs: str = "bench") -> Run:
    """A run of `ducos eval` with one thread."""
    return Run(
        name,
        ("ducos", "eval", "--model", model, *arguments, "--threads", "1", "--json"),
        (needs,),
        model,
    )


# -------------------------------------------------------------------------------- versions


def version_of(model: str) -> str:
    """`ducos-tiny 0.3`; models without weights have their name alone."""
    path = find_weights(model)
    return model if path is None else f"{model} {read_about(path).get('version', '?')}"


def digest_of(model: str) -> str:
    """What tells two files of one version apart."""
    path = find_weights(model)
    return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def stored(run: Run) -> dict[str, Any] | None:
    """What a run has left, or None."""
    return json.loads(run.path.read_text(encoding="utf-8")) if run.path.is_file() else None


def state(run: Run) -> str:
    """`missing`, `old` (of other weights than the embedded ones) or `up to date`."""
    found = stored(run)
    if found is None:
        return "missing"
    same = found["weights"] == version_of(run.weights) and found.get("digest") == digest_of(
        run.weights
    )
    return "up to date" if same else "old"


# -------------------------------------------------------------------------------- measuring


def measure(run: Run, places: dict[str, Path]) -> None:
    """Run the command and keep its JSON beside what made it."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        words = [with_places(word, {**places, "out": out}) for word in run.command]
        program = [sys.executable] if words[0] == "python" else [sys.executable, "-m", "ducos"]
        words = [*program, *words[1:]]
        finished = subprocess.run(words, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
        if finished.returncode:
            sys.exit(f"{run.name}: the command ended with {finished.returncode}")
        if "OUT" in run.command:
            given = {"figures": json.loads(out.read_text(encoding="utf-8"))}
        else:
            given = json.loads(finished.stdout)
    report = {
        "run": run.name,
        "command": " ".join(run.command),
        "weights": version_of(run.weights),
        "digest": digest_of(run.weights),
        "date": datetime.now(UTC).date().isoformat(),
        **rounded(given),
    }
    run.path.parent.mkdir(exist_ok=True)
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    temporary = run.path.with_suffix(".new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(run.path)


def with_places(word: str, places: dict[str, Path]) -> str:
    """BENCH/lu6 -> the folder that was given for it."""
    for name, path in places.items():
        word = word.replace(name.upper(), str(path))
    return word


def rounded(value: Any) -> Any:
    """Six digits are more than any of these figures has."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items() if name != "per_image"}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


# -------------------------------------------------------------------------------- command


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["write", "run"], default="write")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--list", action="store_true", help="show the runs")
    parser.add_argument("--only", default="", help="only runs with this in their name")
    parser.add_argument("--again", action="store_true", help="also what is up to date")
    for name in ("bench", "captures", "heldout", "priors"):
        parser.add_argument(f"--{name}", type=Path, help="folder of data")
    asked = parser.parse_args()
    chosen = [run for run in runs() if asked.only in run.name]
    if asked.list:
        for run in chosen:
            print(f"{run.name:40} {state(run)}")
        return
    if asked.what == "run":
        measure_all(chosen, asked)
    from results_page import differing, pages

    written = pages()
    if asked.check:
        old = differing(written)
        if old:
            sys.exit(f"{' and '.join(old)}: not what is stored; run: python scripts/results.py")
        return
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(REPOSITORY)}")


def measure_all(chosen: list[Run], asked: argparse.Namespace) -> None:
    """Every chosen run that is not up to date and whose data are there."""
    names = ("bench", "captures", "heldout", "priors")
    places = {n: getattr(asked, n).resolve() for n in names if getattr(asked, n)}
    for run in chosen:
        missing = [f"--{need}" for need in run.needs if need not in places]
        if state(run) == "up to date" and not asked.again:
            continue
        if missing:
            print(f"{run.name}: left out, needs {' and '.join(missing)}")
            continue
        print(f"{run.name} …", flush=True)
        measure(run, places)


if __name__ == "__main__":
    main()
