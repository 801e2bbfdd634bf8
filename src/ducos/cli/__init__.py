"""The command line: one entry point, one function per command, heavy imports inside them.

A user's mistake ends with one sentence on stderr and exit code 2; nothing half-written stays.
"""

import os
import sys
from typing import Annotated, Any

import typer

from ducos.cli import (
    batch,
    doctor,
    evaluate,
    export,
    installation,
    research,
    serve,
    synth,
    upscale,
    video,
)
from ducos.errors import InputError

app = typer.Typer(
    help="Super-resolve depth maps: a colour image and a small depth map in, a sharp one out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

# In the order of `ducos --help`.
app.command()(upscale.upscale)
app.command()(batch.batch)
app.command()(video.video)
app.command()(doctor.doctor)
app.command()(serve.serve)
app.command("models")(installation.list_models)
app.command()(research.train)
app.command("eval")(evaluate.evaluate)
app.command("reproduce")(evaluate.reproduce_table)
app.command("convert")(research.convert_weights)
app.command()(export.export)
app.command()(synth.synth)
app.command("synth-assets")(synth.synth_assets)
app.command()(installation.demo)
app.command()(installation.selftest)


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Options that belong to no command."""
    if version:
        from ducos import __version__

        print(__version__)
        raise typer.Exit


WITH_TORCH = ("torch", "safetensors", "scipy")  # of the extra; the plain install has none of them


def commands() -> Any:
    """All commands, as the parser runs them; help shows no value for flags, as they take none."""
    group = typer.main.get_command(app)
    for command in (group, *group.commands.values()):  # type: ignore[attr-defined]
        for parameter in command.params:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
    return group


def main() -> None:
    """Entry point of the console script."""
    # Threads that wait for each other by spinning make a busy machine many times slower; those that
    # sleep cost an idle one next to nothing (benchmarks/threads.py). Read when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # What numpy multiplies here is small. Read when numpy is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ["PYTHONSAFEPATH"] = "1"  # for processes that libraries start, see ducos.children
    try:
        commands()()
    except InputError as problem:
        sentence = " ".join(str(problem).splitlines())
        print(f"ducos: {sentence}", file=sys.stderr)
        sys.exit(2)
    except ModuleNotFoundError as problem:
        if problem.name not in WITH_TORCH:
            raise
        print(f"ducos: this needs {problem.name}: pip install 'ducos[torch]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
