"""What a training run says: metrics.jsonl, TensorBoard, and a progress bar."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ducos.files import atomic_write
from ducos.training.dual import Dual


class MetricsLog:
    """metrics.jsonl, always; TensorBoard events where it is installed."""

    def __init__(self, out: Path, step: int = 0):
        """step: where the run goes on; rows of later steps were lost with a killed process."""
        path = out / "metrics.jsonl"
        if path.exists():
            rows = path.read_text(errors="replace").splitlines(keepends=True)
            with atomic_write(path) as temporary:
                temporary.write_text("".join(row for row in rows if _step_of(row) <= step))
        self.file = path.open("a", buffering=1)
        try:
            from torch.utils.tensorboard import SummaryWriter

            self.board: Any = SummaryWriter(str(out))
        except ImportError:
            self.board = None

    def write(
        self, step: int, numbers: dict[str, float], dual: Dual, means: dict[str, float] | None
    ) -> None:
        """Losses, constraint values and multipliers; after a dual step (`means`) also the slack."""
        row: dict[str, Any] = {"step": step, **numbers}
        for name, multiplier in dual.multipliers.items():
            row[f"multiplier_{name}"] = multiplier
            if means:
                row[f"slack_{name}"] = dual.constraints[name].epsilon - means[name]
        self.put(row)

    def write_validation(self, step: int, score: dict[str, float]) -> None:
        self.put({"step": step, **{f"validation_{n}": v for n, v in score.items()}})

    def put(self, row: dict[str, Any]) -> None:
        self.file.write(json.dumps(row) + "\n")
        if self.board:
            for name, value in row.items():
                if name != "step":
                    self.board.add_scalar(name, value, row["step"])

    def close(self) -> None:
        self.file.close()
        if self.board:
            self.board.close()


class ProgressBar:
    """A bar with loss and time left: `with ProgressBar(...) as (advance, say)`, where advance(text)
    takes a step and say(text) prints a line above the bar."""

    def __init__(self, total: int, done: int, *, disable: bool):
        self.progress = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[text]}"),
            TimeRemainingColumn(),
            disable=disable,
            refresh_per_second=2,
        )
        self.task = self.progress.add_task("", total=total, completed=done, text="")

    def __enter__(self) -> tuple[Callable[[str], None], Callable[[str], None]]:
        self.progress.start()

        def advance(text: str) -> None:
            self.progress.update(self.task, advance=1, text=text)

        return advance, self.progress.console.print

    def __exit__(self, *problem: object) -> None:
        self.progress.stop()


def _step_of(row: str) -> float:
    """The step of a line of metrics.jsonl; one that was torn by a kill, or damaged, is lost."""
    try:
        numbers = {name: float(value) for name, value in json.loads(row).items()}
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        numbers = {}
    return numbers.get("step", float("inf"))
