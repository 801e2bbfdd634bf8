"""A weight file is data: what it states about its network is checked before anything is built.

The metadata of a file name a model and its arguments. Whoever made the file could ask for a
network of a terabyte, name a repository to download from, or accept a licence for the user. So the
network is first built without memory, on torch's meta device, and must have exactly the tensors
that the file holds.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_modules

from ducos.errors import InputError

LONGEST_TEXT = 10_000_000  # bytes of a part of the header
DEEPEST = 30  # levels of lists and tables in it
LARGEST_NUMBER = 65_536  # of an argument: no width, depth or window of a network is larger
MOST_SPARE = 20_000  # parts of a network beyond the file's tensors: those without weights


def parsed(text: str, path: Path) -> dict[str, Any]:
    """A JSON table out of a header, of bounded length and depth."""
    deepest = level = 0
    for character in text[:LONGEST_TEXT]:
        level += (character in "[{") - (character in "]}")  # those inside texts count, too
        deepest = max(deepest, level)
    if len(text) > LONGEST_TEXT or deepest > DEEPEST:
        raise InputError(f"{path} has a header that no training writes; it is not a weight file")
    try:
        table = json.loads(text)
    except ValueError as problem:
        raise InputError(f"{path} has a broken header ({problem}); write it again") from None
    if not isinstance(table, dict):
        raise InputError(f"{path} has a broken header (no table); write it again")
    return table


def check_arguments(stated: Any, path: Path | str) -> None:
    """Refuse numbers that no network has, wherever they are in the arguments."""
    if isinstance(stated, dict):
        stated = list(stated.values())
    if isinstance(stated, list):
        for value in stated:
            check_arguments(value, path)
    elif isinstance(stated, int | float) and not abs(stated) <= LARGEST_NUMBER:
        raise InputError(f"{path} asks for a network with an argument of {str(stated)[:40]}")


def check_justified(spec: Any, weights: dict[str, Tensor], path: Path) -> None:
    """Refuse a file whose network would be another one than its tensors make up.

    Args:
        spec: the `ModelSpec` of the file, with a `build`.
    """
    check_arguments([spec.kwargs, spec.prompt_options], path)
    options = dict(spec.prompt_options)
    # Published weights of a prompt are not in the file; without them no shape changes.
    elsewhere = options.pop("weights", None)
    if elsewhere:
        options["tuning"] = options.get("tuning") or "frozen"
    bare = type(spec)(spec.name, spec.prompt, options, spec.kwargs)
    with counted(len(weights), path), torch.device("meta"):
        model = bare.build()
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    if elsewhere and model.prompt is not None:
        named = model.prompt.named_parameters(prefix="prompt")
        frozen = {name for name, value in named if not value.requires_grad}
        expected = {name: shape for name, shape in expected.items() if name not in frozen}
    compare(expected, {name: tuple(value.shape) for name, value in weights.items()}, path)


Shapes = dict[str, tuple[int, ...]]


def compare(expected: Shapes, stored: Shapes, path: Path) -> None:
    """Every stored tensor must have a place and every expected one must be stored."""
    missing, unknown = sorted(expected.keys() - stored), sorted(stored.keys() - expected)
    wrong = sorted(n for n in expected.keys() & stored.keys() if expected[n] != stored[n])
    for problem, names in (("lacks", missing), ("has unknown", unknown), ("has misshapen", wrong)):
        if names:
            raise InputError(
                f"{path} {problem} {names[0][:100]!r} and {len(names) - 1} more; "
                "it was made for another model or other arguments"
            )


@contextmanager
def counted(tensors: int, path: Path) -> Iterator[None]:
    """Stop the building of a network of far more parts than the file has tensors."""
    thread, parts = threading.get_ident(), 0

    def count(parent: nn.Module, name: str, part: object) -> None:
        nonlocal parts
        parts += threading.get_ident() == thread  # not what others build meanwhile
        if parts > 10 * tensors + MOST_SPARE:
            raise InputError(
                f"{path} holds {tensors} tensors and asks for a network of over {parts} parts; "
                "it was made for another model or other arguments"
            )

    hooks = [
        torch_modules.register_module_module_registration_hook(count),
        torch_modules.register_module_parameter_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
