"""What stored numbers mean: given, stated or guessed, to the word and at every border."""

import math
from typing import Any

import numpy as np
import pytest

from ducos.errors import InputError
from ducos.files.units import Meaning, given_meaning, guessed_meaning, stated_meaning


@pytest.mark.parametrize(
    ("unit", "scale", "expected"),
    [
        ("auto", None, None),
        ("m", None, Meaning("m", 1.0, "given", "metres")),
        ("cm", None, Meaning("cm", 0.01, "given", "centimetres")),
        ("mm", None, Meaning("mm", 0.001, "given", "millimetres")),
        ("relative", None, Meaning("relative", 1.0, "given", "relative levels", False)),
        ("relative", 0.5, Meaning("relative", 0.5, "given", "relative levels", False)),
        ("auto", 1.0, Meaning("m", 1.0, "given", "1 m per step")),
        ("auto", 0.01, Meaning("cm", 0.01, "given", "0.01 m per step")),
        ("auto", 0.001, Meaning("mm", 0.001, "given", "1 mm per step")),
        ("auto", 0.00025, Meaning("custom", 0.00025, "given", "0.25 mm per step")),
        ("auto", 0.5, Meaning("custom", 0.5, "given", "0.5 m per step")),
        ("auto", 99.5, Meaning("custom", 99.5, "given", "99.5 m per step")),
    ],
)
def test_what_the_caller_gives(unit: str, scale: float | None, expected: Meaning | None) -> None:
    assert given_meaning(unit, scale) == expected


@pytest.mark.parametrize(
    ("unit", "scale", "words"),
    [
        ("inch", None, "unit 'inch' is unknown; use auto, relative, m, cm, mm"),
        ("auto", 0, "a positive number; got 0"),
        ("auto", -1, "a positive number; got -1"),
        ("auto", math.nan, "a positive number; got nan"),
        ("auto", math.inf, "a positive number; got inf"),
        ("auto", "1", "a positive number; got '1'"),
        ("auto", 100, "got 100; for 100 steps per metre pass 0.01"),
        ("relative", 5000.0, "got 5000; for 5000 steps per metre pass 0.0002"),
        ("m", 0.5, "got unit 'm' and a scale; give one of the two"),
    ],
)
def test_what_the_caller_cannot_give(unit: str, scale: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        given_meaning(unit, scale)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, None),
        ({"depth_unit": "mm"}, ("mm", 0.001, "millimetres", True)),
        ({"depth_unit": "mm", "depth_scale": "0.001"}, ("mm", 0.001, "millimetres", True)),
        ({"depth_unit": "mm", "depth_scale": "0.0005"}, ("mm", 0.0005, "0.5 mm per step", True)),
        ({"depth_scale": "0.25"}, ("custom", 0.25, "0.25 m per step", True)),
        ({"depth_unit": "custom"}, ("custom", 1.0, "1 m per step", True)),
        ({"depth_unit": "relative"}, ("relative", 1.0, "relative levels", False)),
        (
            {"depth_unit": "relative", "depth_scale": "0.5"},
            ("relative", 0.5, "relative levels", False),
        ),
        (
            {"depth_unit": "relative", "depth_invalid": "0"},
            ("relative", 1.0, "relative levels", True),
        ),
        ({"depth_unit": "m", "depth_invalid": "65535"}, ("m", 1.0, "metres", False)),
    ],
)
def test_what_a_file_states(facts: dict[str, str], expected: tuple | None) -> None:
    found = stated_meaning("a.png", facts)
    if expected is None:
        assert found is None
    else:
        unit, scale, words, zero_is_hole = expected
        assert found == Meaning(unit, scale, "read from the file", words, zero_is_hole)
        assert found.note == f"unit read from the file: {words}"


@pytest.mark.parametrize(
    "facts",
    [
        {"depth_unit": "x" * 50},
        {"depth_unit": "m", "depth_scale": "0"},
        {"depth_unit": "m", "depth_scale": "-1"},
        {"depth_unit": "m", "depth_scale": "nan"},
        {"depth_unit": "m", "depth_scale": "inf"},
        {"depth_scale": "y" * 50},
    ],
)
def test_what_a_file_cannot_state(facts: dict[str, str]) -> None:
    """The sentence quotes at most 40 letters of it."""
    with pytest.raises(InputError) as caught:
        stated_meaning("a.png", facts)
    said = str(caught.value)
    assert said.startswith("a.png states the unit '")
    assert "makes no sense; write the file again" in said
    assert "x" * 41 not in said
    assert "y" * 41 not in said
    assert "x" * 40 in said or "x" not in facts.get("depth_unit", "")
    assert "y" * 40 in said or "y" not in facts.get("depth_scale", "")


def guess(*values: float, dtype: type = np.float32, holes: tuple[int, ...] = ()) -> Meaning:
    plane = np.array([values], dtype)
    valid = np.ones(plane.shape, bool)
    valid[0, list(holes)] = False
    return guessed_meaning(plane, valid)


UNUSUAL = "; a median of {} m is unusual, so pass unit or scale if this is wrong"


@pytest.mark.parametrize(
    ("found", "unit", "words"),
    [
        (guess(1, 2, 3, dtype=np.uint8), "relative", "relative levels (8-bit integers)"),
        (guess(-1, 2, dtype=np.int8), "relative", "relative levels (8-bit integers)"),
        (guess(1000, 2000, 4000, dtype=np.uint16), "mm",
         "millimetres (16-bit integers, median 2000)"),
        (guess(1000, dtype=np.int32), "mm", "millimetres (32-bit integers, median 1000)"),
        (guess(0, 0, 1500, 2500, dtype=np.uint16), "mm",
         "millimetres (16-bit integers, median 2000)"),  # zeros have no say
        (guess(8000, dtype=np.uint16), "mm", "millimetres (16-bit integers, median 8000)"),
        (guess(8100, dtype=np.uint16), "mm",
         "millimetres (16-bit integers, median 8100)" + UNUSUAL.format("8.1")),
        (guess(100, dtype=np.uint16), "mm", "millimetres (16-bit integers, median 100)"),
        (guess(99, dtype=np.uint16), "mm",
         "millimetres (16-bit integers, median 99)" + UNUSUAL.format("0.099")),
        (guess(1, dtype=np.uint16), "mm",  # of wider integers, 1 is no normalised map
         "millimetres (16-bit integers, median 1)" + UNUSUAL.format("0.001")),
        (guess(65000, dtype=np.uint16), "mm",  # for integers there is no farthest
         "millimetres (16-bit integers, median 6.5e+04)" + UNUSUAL.format("65")),
        (guess(1.5, 2.5), "m", "metres (floating point, median 2)"),
        (guess(2.0, dtype=np.float64), "m", "metres (floating point, median 2)"),
        (guess(100.0), "m", "metres (floating point, median 100)"),
        (guess(101.0), "mm", "millimetres (floating point, median 101)"),
        (guess(0.5, 1.0), "relative",
         "relative levels (floating point, largest value exactly 1)"),
        (guess(0.5, 1.5), "m", "metres (floating point, median 1)"),
        (guess(0.0, 2.0), "m", "metres (floating point, median 2)"),
        (guess(0.5, 0.75, 60_000.0), "m", "metres (floating point, median 0.625)"),  # sky
        (guess(0.5, 0.75, 59_999.5), "m", "metres (floating point, median 0.75)"),
        (guess(-3.0, 0.4, -5.0), "m", "metres (floating point, median 0.4)"),
        (guess(2.0, 900.0, 900.0, holes=(1, 2)), "m", "metres (floating point, median 2)"),
        (guess(0.05), "m", "metres (floating point, median 0.05)" + UNUSUAL.format("0.05")),
        (guess(0.0), "m", "metres (floating point, median 0)" + UNUSUAL.format("0")),
    ],
)  # fmt: skip
def test_what_is_guessed(found: Meaning, unit: str, words: str) -> None:
    scale = {"relative": 1.0, "m": 1.0, "mm": 0.001}[unit]
    assert found == Meaning(unit, scale, "guessed", words, unit != "relative")
