"""Options of commands that are not the command's own: generated from `ducos.upscaling.Options`."""

import inspect
from collections.abc import Callable
from dataclasses import Field
from typing import Annotated, Any

import typer

from ducos.upscaling import OPTIONS, Options

Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite", help="Replace existing files that are not results of ducos; never inputs."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def takes_options(*names: str, leave: tuple[str, ...] = ()) -> Callable[..., Callable[..., None]]:
    """A command whose parameter `options` is filled from the command line.

    Args:
        names: of the fields to show; none given: all. leave: fields that make no sense here.
    """
    chosen = [each for each in OPTIONS.values() if each.name in (names or OPTIONS)]
    shown = [each for each in chosen if each.name not in leave]

    def given(command: Callable[..., None]) -> Callable[..., None]:
        def run(**arguments: Any) -> None:
            said = {each.name: arguments.pop(each.name) for each in shown}
            command(**arguments, options=Options(**said))

        own = [
            parameter
            for parameter in inspect.signature(command, eval_str=True).parameters.values()
            if parameter.name != "options"
        ]
        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in (*own, *map(parameter_of, shown))
        ]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return given


def parameter_of(option: "Field[Any]") -> inspect.Parameter:
    """The command-line form of a field: its type, its flag and its sentence."""
    typed, flag = option.metadata["typed"], "--" + option.name.replace("_", "-")
    about = typer.Option(
        flag, help=option.metadata["help"], rich_help_panel=option.metadata["panel"]
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[typed, about],
    )
