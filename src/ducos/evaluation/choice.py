"""One of several candidates, chosen by formulas over named figures: a rule that can be repeated.

    choose(figures, "0.5 * captures_rmse + 0.5 * captures_near", ["harmed == 0"])

A formula has numbers, names of figures, + - * / **, min, max, abs, and comparisons joined by `and`,
`or`, `not`. Nothing else is computed.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ducos.errors import InputError

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}


@dataclass(frozen=True)
class Choice:
    """winner: name of the best candidate, or None if none may be taken.

    values: candidate -> what was minimised. broken: candidate -> conditions that do not hold.
    """

    winner: str | None
    values: dict[str, float]
    broken: dict[str, list[str]]

    def sentences(self) -> list[str]:
        """For people, the best first; those that may not be taken last."""
        order = sorted(self.values, key=lambda name: (bool(self.broken[name]), self.values[name]))
        lines = []
        for name in order:
            reason = f"; refused: {', '.join(self.broken[name])}" if self.broken[name] else ""
            mark = " (chosen)" if name == self.winner else ""
            lines.append(f"{name}: {self.values[name]:.4f}{mark}{reason}")
        return lines


def choose(
    candidates: Mapping[str, Mapping[str, float]], minimise: str, subject_to: Sequence[str] = ()
) -> Choice:
    """The candidate with the least value of those for which every condition holds."""
    values = {name: float(value_of(minimise, each)) for name, each in candidates.items()}
    broken = {
        name: [rule for rule in subject_to if not value_of(rule, each)]
        for name, each in candidates.items()
    }
    allowed = [name for name in values if not broken[name] and not math.isnan(values[name])]
    return Choice(min(allowed, key=values.__getitem__, default=None), values, broken)


def check_formula(formula: str) -> set[str]:
    """The figures that a formula names; InputError if it is none."""
    try:
        tree = ast.parse(formula.strip(), mode="eval")
    except (SyntaxError, ValueError):
        raise InputError(f"{formula!r} is no formula; write such as 0.5 * a + 0.5 * b") from None
    return _names(tree.body, formula)


def value_of(formula: str, figures: Mapping[str, float]) -> Any:
    """A formula's number, or whether its comparison holds."""
    missing = sorted(check_formula(formula) - figures.keys())
    if missing:
        raise InputError(
            f"{formula!r} names {', '.join(missing)}, which were not measured; there are:"
            f" {', '.join(figures)}"
        )
    try:
        return _value(ast.parse(formula.strip(), mode="eval").body, figures)
    except ArithmeticError as problem:
        raise InputError(f"{formula!r} cannot be computed: {problem}") from None


def _names(node: ast.AST, formula: str) -> set[str]:
    """Figures named below a node; refuses what a formula may not have."""
    below: list[ast.AST]
    match node:
        case ast.Constant(value=int() | float()):
            return set()
        case ast.Name(id=name):
            return {name}
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            below = [left, right]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            below = [operand]
        case ast.BoolOp(values=values):
            below = list(values)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            type(op) in OPERATORS for op in ops
        ):
            below = [left, *others]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS and args:
            below = list(args)
        case _:
            raise InputError(
                f"{formula!r} has {ast.unparse(node)!r}; expected numbers, figures, + - * / **,"
                " min, max, abs and comparisons"
            )
    return set().union(*(_names(each, formula) for each in below))


def _value(node: ast.AST, figures: Mapping[str, float]) -> Any:
    """What a node that `_names` has let through comes to."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return figures[name]
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](_value(left, figures), _value(right, figures))
        case ast.UnaryOp(op=op, operand=operand):
            return OPERATORS[type(op)](_value(operand, figures))
        case ast.BoolOp(op=op, values=values):
            every = [bool(_value(each, figures)) for each in values]
            return all(every) if isinstance(op, ast.And) else any(every)
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [_value(each, figures) for each in (left, *others)]
            pairs = zip(sides, ops, sides[1:])
            return all(OPERATORS[type(op)](first, second) for first, op, second in pairs)
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](*(_value(each, figures) for each in args))
    raise AssertionError(ast.dump(node))
