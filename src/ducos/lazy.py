"""Doors of rooms: a package's public names, imported when they are first asked for.

A room lists its names once, as ordinary imports under ``if TYPE_CHECKING:``, where editors and type
checkers see them. At run time the same list says which module to import for a name. So a command
that only lists models never waits for torch.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

IMPORT = re.compile(r"^    from (\S+) import (?:\(([^)]*)\)|(.+))$", re.MULTILINE)


def doors(room: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of the package called `room`."""
    homes = dict(listed(room))

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[room], name, value)  # the next look finds it without this function
        return value

    return get, lambda: sorted(homes), sorted(homes)


def listed(room: str) -> Iterator[tuple[str, str]]:
    """(name, module) for every import under ``if TYPE_CHECKING:`` in a package's source."""
    spec = sys.modules[room].__spec__
    source: str = spec.loader.get_source(room)  # type: ignore[union-attr]
    # By pattern, not by `ast`: a dozen rooms are read before a command prints its help.
    _, _, block = source.partition("\nif TYPE_CHECKING:\n")
    for module, several, one in IMPORT.findall(block.partition("\nelse:\n")[0]):
        names = (name.strip() for name in (several or one).split(","))
        yield from ((name, module) for name in names if name)


class Later:
    """A callable of a table, named by where it lies: imported when it is first called.

    So the table itself, with its names and sentences, costs nothing to read.
    """

    def __init__(self, place: str, **given: Any):
        self.place = place
        self.given = given

    @cached_property
    def made(self) -> Callable[..., Any]:
        """What the place names, with the given arguments filled in."""
        module, _, name = self.place.partition(":")
        found = getattr(import_module(module), name)
        return partial(found, **self.given) if self.given else found

    @property
    def options(self) -> dict[str, Any]:
        """Arguments that have a default, read from the source: nothing is imported for them."""
        module, _, name = self.place.partition(":")
        spec = find_spec(module)
        body = ast.parse(spec.loader.get_source(module)).body  # type: ignore[union-attr]
        return {**_defaults(body, name), **self.given}

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.made)

    def __call__(self, *parts: Any, **arguments: Any) -> Any:
        return self.made(*parts, **arguments)

    def __repr__(self) -> str:
        return f"Later({self.place!r})"


def options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Arguments of a table's callable that have a default -> that default."""
    if isinstance(function, Later):
        return function.options
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _defaults(body: list[ast.stmt], name: str) -> dict[str, Any]:
    """Defaults of a function, or of a class's `__init__`, as its module's source states them."""
    constants = {
        target.id: node.value
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _defaults(node.body, "__init__")
        if isinstance(node, ast.FunctionDef) and node.name == name:
            spec = node.args
            ordered = spec.args[len(spec.args) - len(spec.defaults) :]
            given = [*zip(ordered, spec.defaults), *zip(spec.kwonlyargs, spec.kw_defaults)]
            return {a.arg: _value(value, constants) for a, value in given if value is not None}
    return {}


def _value(node: ast.expr, constants: dict[str, ast.expr]) -> Any:
    """What a default says: a literal, a constant of the module, or else its own text."""
    if isinstance(node, ast.Name) and node.id in constants:
        node = constants[node.id]
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
