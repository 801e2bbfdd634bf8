"""Which models and prompts can be exported, and how far the file is from torch.

    python benchmarks/exportable.py --write docs/export.md
    python benchmarks/exportable.py --names fdsr,fdkn

Each model gets random weights (`ducos-tiny` and `ducos-small` their own), becomes an ONNX file with
the whole prediction (`ducos.export`), and is compared with torch on six pairs of other sizes than
that of the trace. The largest difference of depth or sigma is shown, as a share of the range of the
measurements; `ducos export` refuses beyond 1e-4. Prompts are exported alone: their features and
their depth, as a share of the range of each. Every one runs in a process of its own.

--write puts the rows into the table of that page; those that were not asked for stay.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

MODELS_HERE = ("ducos-tiny", "ducos-small")
LARGER = ("-b", "-l", "-swinl", "-x8", "-x16")
BEGIN, END = "<!-- exportable -->", "<!-- /exportable -->"
HEAD = "| | ONNX: largest difference from torch | |\n|---|---|---|\n"
SIZES = ((98, 126), (75, 99), (161, 83))  # of images, for prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--names", default="", help="comma-separated; default: all")
    parser.add_argument("--seconds", type=int, default=600, help="CPU seconds allowed for each")
    parser.add_argument("--write", type=Path, help="page whose table is to have the rows")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(tried(asked.one)))
        return
    for name in asked.names.split(",") if asked.names else every():
        said = apart(name, asked.seconds)
        print(f"| `{name}` | {said[0]} | {said[1]} |", flush=True)
        if asked.write:
            put(asked.write, name, said)


def every() -> list[str]:
    """All models and prompts, in the order of the table; of several sizes of one, the smallest."""
    from ducos.models import MODELS
    from ducos.prompts import PROMPTS

    names = [*MODELS_HERE, *MODELS, *(f"prompt {name}" for name in PROMPTS)]
    return [name for name in names if not name.endswith(LARGER)]


def apart(name: str, seconds: int) -> tuple[str, str]:
    """`tried` in a process of its own: difference, or "no"; and why."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    done = subprocess.run(
        [sys.executable, __file__, "--one", name],
        capture_output=True, text=True, preexec_fn=limited,
    )  # fmt: skip
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [""])[-1]
        return "no", said or f"not within {seconds} CPU seconds (exit code {done.returncode})"
    difference, why = json.loads(done.stdout.splitlines()[-1])
    return difference, why


def tried(name: str) -> tuple[str, str]:
    """The largest difference, or "no"; and why."""
    import torch

    from ducos.errors import InputError

    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        if name.startswith("prompt "):
            return prompt_tried(name.removeprefix("prompt "))
        return model_tried(name)
    except InputError as problem:
        said = str(problem).split("; choose ducos-tiny")[0]
        return "no", said.split(" cannot be exported: ")[-1]


def model_tried(name: str) -> tuple[str, str]:
    from ducos.export import LIMIT, measured, onnx_graph
    from ducos.export.formats import run_onnx
    from ducos.export.refusal import reason
    from ducos.models import create
    from ducos.upscaling import load

    model = load(name) if name in MODELS_HERE else create(name).eval()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "graph.onnx"
        file.write_bytes(onnx_graph(model, {}))
        try:
            rows = measured(model, run_onnx(file))
        except Exception as problem:  # onnxruntime's have no common class
            return "no", reason(problem)
    worst = max(rows, key=lambda row: (row.source, max(row.depth, row.sigma)))
    apart = max(max(row.depth, row.sigma) for row in rows)
    if all(row.sound for row in rows):
        return f"{apart:.1e}", ""
    return f"no, {apart:.1e}", f"differs beyond {LIMIT:.0e} on the pair “{worst.pair.name}”"


def prompt_tried(name: str) -> tuple[str, str]:
    """The same of a prompt: image in; features and depth out."""
    import numpy as np
    import onnxruntime
    import torch

    from ducos.export.refusal import reason
    from ducos.prompts import create_prompt

    prompt = create_prompt(name).eval()

    class Seen(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.prompt = prompt

        def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
            features, depth = self.prompt(image)
            return (*features, *([] if depth is None else [depth]))

    seen = Seen().eval()
    with TemporaryDirectory() as folder, torch.no_grad():
        file = Path(folder) / "graph.onnx"
        try:
            torch.onnx.export(
                seen, (torch.rand(1, 3, 84, 112),), file, input_names=["image"],
                dynamic_axes={"image": {0: "batch", 2: "height", 3: "width"}},
                opset_version=18, dynamo=False,
            )  # fmt: skip
        except Exception as problem:
            return "no", reason(problem)
        try:
            session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        except Exception as problem:
            return "no", reason(problem)
        apart = 0.0
        for size in SIZES:
            image = torch.rand(1, 3, *size)
            try:
                answers = session.run(None, {"image": image.numpy()})
            except Exception as problem:
                return "no", reason(problem)
            for right, answer in zip(seen(image), answers, strict=True):
                if right.shape != answer.shape:
                    return "no", f"at {size[1]}×{size[0]} the graph has the size of the trace"
                apart = max(apart, float(np.abs(right.numpy() - answer).max() / np.ptp(answer)))
    why = "" if apart <= 1e-4 else "the graph keeps sizes of the trace"
    return f"{apart:.1e}" if apart <= 1e-4 else f"no, {apart:.1e}", why


def put(page: Path, name: str, said: tuple[str, str]) -> None:
    """The row of that name in the table of a page."""
    before, table = page.read_text(encoding="utf-8").split(BEGIN)
    table, behind = table.split(END)
    rows = {row.split("`")[1]: row for row in table.splitlines() if "`" in row[:3]}
    rows[name] = f"| `{name}` | {said[0]} | {said[1]} |"
    order = [each for each in every() if each in rows]
    body = HEAD + "".join(rows[each] + "\n" for each in order)
    page.write_text(f"{before}{BEGIN}\n\n{body}\n{END}{behind}", encoding="utf-8")


if __name__ == "__main__":
    main()
