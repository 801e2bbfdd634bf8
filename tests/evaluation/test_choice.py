"""Choosing by formulas: exact answers, and nothing but arithmetic."""

import math

import pytest

from ducos.errors import InputError
from ducos.evaluation import check_formula, choose
from ducos.evaluation.choice import value_of

FIGURES = {"a": 2.0, "b": 0.5, "harmed": 0.0}


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("0.5 * a + 0.5 * b", 1.25),
        ("a ** 2 - b / 2", 3.75),
        ("-(a + 1)", -3),
        ("max(a, b, 3)", 3),
        ("min(a, abs(-b))", 0.5),
        ("harmed == 0", True),
        ("0 < b <= 0.5 < a", True),
        ("a < 1 or not harmed > 0", True),
        ("a < 1 and b < 1", False),
        ("a != 2", False),
    ],
)
def test_formulas(formula: str, value: float) -> None:
    assert value_of(formula, FIGURES) == value


@pytest.mark.parametrize(
    "formula",
    ["", "a +", "a = 1", "__import__('os')", "a.b", "a[0]", "(lambda: 1)()", "open(a)", "'x'",
     "max()", "[a]", "a if b else 1", "max(a, key=b)", "a & b"],
)  # fmt: skip
def test_anything_else_is_refused(formula: str) -> None:
    with pytest.raises(InputError):
        check_formula(formula)


def test_names_are_found_and_missing_ones_listed() -> None:
    assert check_formula("0.5 * a + max(b, 1)") == {"a", "b"}
    with pytest.raises(InputError, match=r"c.*there are: a, b, harmed"):
        value_of("a + c", FIGURES)
    with pytest.raises(InputError, match="cannot be computed"):
        value_of("1 / harmed", FIGURES)


def test_the_least_of_the_allowed_wins() -> None:
    candidates = {
        "first": {"error": 0.8, "harmed": 0.0},
        "best but harmful": {"error": 0.5, "harmed": 2.0},
        "second": {"error": 0.7, "harmed": 0.0},
        "unknown": {"error": math.nan, "harmed": 0.0},
    }
    choice = choose(candidates, "error", ["harmed == 0"])
    assert choice.winner == "second"
    assert choice.broken["best but harmful"] == ["harmed == 0"]
    assert choice.sentences()[0] == "second: 0.7000 (chosen)"
    assert choice.sentences()[-1] == "best but harmful: 0.5000; refused: harmed == 0"
    assert choose(candidates, "error", ["harmed > 5"]).winner is None
