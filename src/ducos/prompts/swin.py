"""Swin transformer (Liu et al., ICCV 2021) with window 7: the encoder of DepthFormer.

Attribute names are those of the OpenMMLab weight files that DepthFormer uses. Their patch merging
orders the 2×2 neighbourhood channel by channel; the files of Swin's own authors neighbour by
neighbour, so those do not load here.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WINDOW = 7
SHIFT = 3


def pad_end(x: Tensor, multiple: int) -> Tensor:
    """Zeros at the bottom and right of a map (B, H, W, C) up to multiples."""
    _, H, W, _ = x.shape
    return F.pad(x, (0, 0, 0, -W % multiple, 0, -H % multiple))


def to_windows(x: Tensor) -> Tensor:
    """(B, H, W, C) -> (B, windows, 49, C), windows row by row."""
    B, H, W, C = x.shape
    x = x.view(B, H // WINDOW, WINDOW, W // WINDOW, WINDOW, C)
    return x.transpose(2, 3).reshape(B, -1, WINDOW * WINDOW, C)


def from_windows(x: Tensor, H: int, W: int) -> Tensor:
    """The inverse of `to_windows`."""
    B, C = x.shape[0], x.shape[-1]
    x = x.view(B, H // WINDOW, W // WINDOW, WINDOW, WINDOW, C)
    return x.transpose(2, 3).reshape(B, H, W, C)


def relative_index() -> Tensor:
    """Row of the bias table for each (query, key) pair of a window, (49, 49)."""
    y, x = torch.meshgrid(torch.arange(WINDOW), torch.arange(WINDOW), indexing="ij")
    y, x = y.flatten(), x.flatten()
    dy = y[:, None] - y[None, :] + WINDOW - 1
    dx = x[:, None] - x[None, :] + WINDOW - 1
    return dy * (2 * WINDOW - 1) + dx


def shift_mask(H: int, W: int, like: Tensor) -> Tensor:
    """-100 between pixels that only the cyclic shift made neighbours, (windows, 49, 49)."""
    region = torch.zeros(H, W, device=like.device)
    for edge in (WINDOW, SHIFT):  # rolled-in and cut-off stripes get numbers of their own
        region[-edge:] += 1
        region[:, -edge:] += 10
    parts = to_windows(region[None, :, :, None])[0, :, :, 0]  # (windows, 49)
    same = parts[:, :, None] == parts[:, None, :]
    return torch.where(same, 0.0, -100.0).to(like.dtype)


class WindowAttention(nn.Module):
    """Self-attention within windows, with a learned bias per relative position."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * WINDOW - 1) ** 2, heads))
        self.relative_position_index: Tensor
        self.register_buffer("relative_position_index", relative_index())
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, windows: Tensor, mask: Tensor | None) -> Tensor:
        """windows (B, K, 49, C), mask (K, 49, 49) or None -> (B, K, 49, C)."""
        B, K, N, C = windows.shape
        qkv = self.qkv(windows).reshape(B, K, N, 3, self.heads, C // self.heads)
        query, key, value = qkv.permute(3, 0, 1, 4, 2, 5)  # each (B, K, heads, 49, C/heads)
        bias = self.relative_position_bias_table[self.relative_position_index]
        bias = bias.permute(2, 0, 1)  # (heads, 49, 49)
        if mask is not None:
            bias = bias + mask[:, None]  # (K, heads, 49, 49)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        return self.proj(mixed.transpose(2, 3).reshape(B, K, N, C))


class ShiftedWindows(nn.Module):
    """Cut a map into windows, every second time displaced by three pixels, and attend in each."""

    def __init__(self, width: int, heads: int, shifted: bool):
        super().__init__()
        self.shifted = shifted
        self.w_msa = WindowAttention(width, heads)

    def forward(self, x: Tensor) -> Tensor:
        _, H, W, _ = x.shape
        padded = pad_end(x, WINDOW)  # padding takes part in attention, as in the weights' training
        rows, columns = padded.shape[1:3]
        mask = None
        if self.shifted:
            padded = padded.roll((-SHIFT, -SHIFT), (1, 2))
            mask = shift_mask(rows, columns, x)
        padded = from_windows(self.w_msa(to_windows(padded), mask), rows, columns)
        if self.shifted:
            padded = padded.roll((SHIFT, SHIFT), (1, 2))
        return padded[:, :H, :W]


class FeedForward(nn.Module):
    """Two linear layers with GELU between, four times as wide inside."""

    def __init__(self, width: int):
        super().__init__()
        inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU())
        self.layers = nn.Sequential(inner, nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Block(nn.Module):
    """Pre-norm transformer block on a map (B, H, W, C)."""

    def __init__(self, width: int, heads: int, shifted: bool):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = ShiftedWindows(width, heads, shifted)
        self.norm2 = nn.LayerNorm(width)
        self.ffn = FeedForward(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.ffn(self.norm2(x))


class PatchMerging(nn.Module):
    """Half the size, twice the width."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        neighbours = F.pixel_unshuffle(pad_end(x, 2).permute(0, 3, 1, 2), 2)
        return self.reduction(self.norm(neighbours.permute(0, 2, 3, 1)))


class Stage(nn.Module):
    """Blocks of one width; all but the last stage end in a merging."""

    def __init__(self, width: int, depth: int, heads: int, *, last: bool):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, heads, bool(i % 2)) for i in range(depth))
        self.downsample: nn.Module = nn.Identity() if last else PatchMerging(width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The map of this stage, and the input of the next."""
        for block in self.blocks:
            x = block(x)
        return x, self.downsample(x)


class PatchEmbedding(nn.Module):
    """One token per 4×4 patch."""

    def __init__(self, width: int):
        super().__init__()
        self.projection = nn.Conv2d(3, width, 4, stride=4)
        self.norm = nn.LayerNorm(width)

    def forward(self, image: Tensor) -> Tensor:
        H, W = image.shape[-2:]
        tokens = self.projection(F.pad(image, (0, -W % 4, 0, -H % 4)))
        return self.norm(tokens.permute(0, 2, 3, 1))


class Swin(nn.Module):
    """Four maps at 1/4, 1/8, 1/16 and 1/32 of the image size, widths e, 2e, 4e, 8e.

    Sides that are no multiple of 32 are padded with zeros at the bottom and right where a level
    needs it.
    """

    def __init__(self, width: int, depths: Sequence[int], heads: Sequence[int]):
        super().__init__()
        self.patch_embed = PatchEmbedding(width)
        self.stages = nn.ModuleList(
            Stage(width * 2**level, depths[level], heads[level], last=level == 3)
            for level in range(4)
        )
        self.norm0 = nn.LayerNorm(width)
        self.norm1 = nn.LayerNorm(2 * width)
        self.norm2 = nn.LayerNorm(4 * width)
        self.norm3 = nn.LayerNorm(8 * width)

    def maps(self, image: Tensor) -> list[Tensor]:
        """image (B, 3, H, W) -> four (B, C, h, w), each behind its own norm."""
        x = self.patch_embed(image)
        found = []
        norms = (self.norm0, self.norm1, self.norm2, self.norm3)
        for stage, norm in zip(self.stages, norms, strict=True):
            own, x = stage(x)
            found.append(norm(own).permute(0, 3, 1, 2))
        return found
