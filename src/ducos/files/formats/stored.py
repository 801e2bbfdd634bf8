"""What a file holds, before anybody asks what its numbers mean; the types all formats share."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ducos.arrays import AnyArray, Mask

Facts = Mapping[str, str]
Layers = Mapping[str, AnyArray]


@dataclass
class Stored:
    """What a file holds: the array as stored, what it says about itself, its mask if it has one.

    facts: `depth_unit`, `depth_scale`, `depth_invalid`, `depth_about`; those the file states.
    """

    array: AnyArray
    facts: dict[str, str] = field(default_factory=dict)
    valid: Mask | None = None
