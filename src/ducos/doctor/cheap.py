"""The checks that cost next to nothing, as warnings of every super-resolution."""

from ducos.doctor.units import check_range, check_unit
from ducos.files import DepthMap


def cheap_warnings(low: DepthMap) -> list[str]:
    """Sentences about a unit that is hard to believe; the doctor's own words and advice."""
    found = [*check_unit(low)]
    if not found:
        found = [*check_range(low)]
    return [f"{each.sentence}: {each.advice}" for each in found if each.severity == "warning"]
