"""The whole prediction as a program of torch: `torch.export`, with every size left open."""

import torch
from torch import Tensor
from torch.fx.experimental import _config as shapes

from ducos.errors import InputError
from ducos.export.refusal import reason
from ducos.export.whole_pass import INPUTS, WholePass

LARGEST = 8200
"""Pixels a side of the map that it is traced with; it has no values and takes no memory. A side of
one pixel would count as stretched to any other, for ever; holes are filled by halving 13 times, and
no half of this map is as small as that."""


def program(whole: WholePass) -> torch.export.ExportedProgram:
    """Of a pass in evaluation mode."""
    open_ = torch.export.Dim.AUTO
    feed = example()
    axes = {
        name: dict.fromkeys((0, 2, 3) if x.ndim == 4 else (0,), open_) for name, x in feed.items()
    }
    before = shapes.backed_size_oblivious
    shapes.backed_size_oblivious = True  # else a batch of one would need a program of its own
    try:
        with torch.no_grad():
            made = torch.export.export(whole, tuple(feed.values()), dynamic_shapes=axes)
    except Exception as problem:  # whatever a model does that torch cannot follow
        raise InputError(
            f"torch.export cannot follow {type(whole.network).__name__}: {reason(problem)}; "
            "choose ducos-tiny, or --to onnx"
        ) from None
    finally:
        shapes.backed_size_oblivious = before
    made.example_inputs = None  # else they go into the file: gigabytes of nothing
    return made


def example() -> dict[str, Tensor]:
    """Inputs of a size that none of the others has; only their shapes are looked at."""
    low = (2, 1, LARGEST, LARGEST + 5)
    feed = {
        "image": torch.empty(2, 3, LARGEST + 96, LARGEST + 190),
        "depth": torch.empty(low),
        "trust": torch.empty(low),
        "noise": torch.empty(2),
        "metric": torch.empty(2),
        "mode": torch.zeros(2, dtype=torch.int64),
        "sensor": torch.zeros(2, dtype=torch.int64),
    }
    return {name: feed[name] for name in INPUTS}
