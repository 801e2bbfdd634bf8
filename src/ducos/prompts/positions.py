"""Sine embeddings of the place of a token, shared by decoders that attend over several maps."""

import torch
from torch import Tensor

from ducos.resize import Size


def count_from_one(size: Size, like: Tensor) -> tuple[Tensor, Tensor]:
    """Row numbers 1..h and column numbers 1..w, on the device and in the type of a tensor."""
    h, w = size
    return (
        torch.arange(1, h + 1, device=like.device, dtype=like.dtype),
        torch.arange(1, w + 1, device=like.device, dtype=like.dtype),
    )


def sine_position(rows: Tensor, columns: Tensor, width: int) -> Tensor:
    """Sines and cosines of where each token is, with periods of 2π up to 2π·10 000.

    Args:
        rows: (h,), columns: (w,), places in any unit; networks differ in it.
        width: numbers per token; the first half tells the row, sines and cosines take turns.

    Returns:
        (h·w, width), row by row.
    """
    index = torch.arange(width // 4, device=rows.device, dtype=rows.dtype)
    period = 10_000 ** (4 * index / width)
    halves = []
    for places in (rows, columns):
        phase = places[:, None] / period
        halves.append(torch.stack([phase.sin(), phase.cos()], -1).flatten(1))  # (h or w, width/2)
    h, w = len(rows), len(columns)
    row, column = halves[0][:, None].expand(h, w, -1), halves[1][None].expand(h, w, -1)
    return torch.cat([row, column], -1).flatten(0, 1)
