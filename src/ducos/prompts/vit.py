"""The vision transformer of DINOv2: the encoder of Depth Anything v2, PromptDA and UniDepth v2.

It is one network with one set of weight names; what its users disagree about is stated here and
nowhere else. The 37×37 grid of position embeddings must be resized to the h×w grid of the image:

    Position.STEP  DINOv2, Depth Anything, PromptDA: bicubic, sampling step 37/(n + 0.1) instead of
                   37/n. The 0.1 once guarded a size computed by rounding; the weights were trained
                   with it, so it is part of the function.
    Position.SIZE  UniDepth (and the `transformers` port of Depth Anything): bicubic to the exact
                   size, step 37/n.

Neither antialiases, and they agree only where nothing is resized. Attribute names are those of the
published weight files.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PATCH = 14
GRID = 37  # positions per side that the weights were trained with (518 / 14)


class Shape(NamedTuple):
    """How large a vision transformer is."""

    width: int
    depth: int
    heads: int


SHAPES = {"s": Shape(384, 12, 6), "b": Shape(768, 12, 12), "l": Shape(1024, 24, 16)}


class Position(Enum):
    """How the position embedding is resized; see the top of this file."""

    STEP = "step"
    SIZE = "size"


class Tap(NamedTuple):
    """What is read after one block, behind the final norm.

    map: (B, C, h, w) patch tokens on their grid; token: (B, C) class token.
    """

    map: Tensor
    token: Tensor


class LayerScale(nn.Module):
    """A learned factor per channel."""

    def __init__(self, width: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class Attention(nn.Module):
    """Multi-head self-attention; query, key and value come from one projection."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)  # each (B, heads, N, C/heads)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return self.proj(mixed.transpose(1, 2).reshape(B, N, C))


class MLP(nn.Module):
    """Two linear layers with GELU between, four times as wide inside."""

    def __init__(self, width: int):
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """Pre-norm transformer block with layer scale."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.ls1 = LayerScale(width)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = MLP(width)
        self.ls2 = LayerScale(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.ls1(self.attn(self.norm1(x)))
        return x + self.ls2(self.mlp(self.norm2(x)))


class PatchEmbed(nn.Module):
    """One token per 14×14 patch."""

    def __init__(self, width: int):
        super().__init__()
        self.proj = nn.Conv2d(3, width, PATCH, stride=PATCH)

    def forward(self, image: Tensor) -> Tensor:
        return self.proj(image)


class VisionTransformer(nn.Module):
    """DINOv2 without its training heads.

    Args:
        shape: width, depth and heads; the published ones are in `SHAPES`.
        position: rule by which the position embedding meets an image of another size.
        register_token: UniDepth's files carry one register token. Nothing reads it.
        final_eps: epsilon of the last norm; 1e-6 in DINOv2 and Depth Anything, 1e-5 in UniDepth.
    """

    def __init__(
        self,
        shape: Shape,
        *,
        position: Position = Position.STEP,
        register_token: bool = False,
        final_eps: float = 1e-6,
    ):
        super().__init__()
        self.shape = shape
        self.position = position
        self.patch_embed = PatchEmbed(shape.width)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, shape.width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + GRID * GRID, shape.width))
        # Kept because published files have them; used only when DINOv2 itself is trained.
        self.mask_token = nn.Parameter(torch.zeros(1, shape.width))
        if register_token:
            self.register_tokens = nn.Parameter(torch.zeros(1, 1, shape.width))
        self.blocks = nn.ModuleList(Block(shape.width, shape.heads) for _ in range(shape.depth))
        self.norm = nn.LayerNorm(shape.width, eps=final_eps)
        nn.init.normal_(self.cls_token, std=0.02)
        nn.init.normal_(self.pos_embed, std=0.02)

    def positions(self, h: int, w: int) -> Tensor:
        """Position embedding of the h×w grid, (1, h·w, C)."""
        grid = (
            self.pos_embed[:, 1:].reshape(1, GRID, GRID, -1).permute(0, 3, 1, 2)
        )  # (1, C, 37, 37)
        if (h, w) != (GRID, GRID):
            if self.position is Position.STEP:
                factors = ((h + 0.1) / GRID, (w + 0.1) / GRID)
                grid = F.interpolate(grid, scale_factor=factors, mode="bicubic")
            else:
                grid = F.interpolate(grid, size=(h, w), mode="bicubic")
        return grid.flatten(2).transpose(1, 2)

    def forward(self, image: Tensor, taps: Sequence[int]) -> list[Tap]:
        """Features of an image (B, 3, 14h, 14w) after the blocks `taps`, counted from 0."""
        patches = self.patch_embed(image)  # (B, C, h, w)
        B, C, h, w = patches.shape
        tokens = patches.flatten(2).transpose(1, 2) + self.positions(h, w)
        first = (self.cls_token + self.pos_embed[:, :1]).expand(B, -1, -1)
        x = torch.cat([first, tokens], 1)  # (B, 1 + h·w, C)
        found = []
        for index, block in enumerate(self.blocks[: max(taps) + 1]):
            x = block(x)
            if index in taps:
                normed = self.norm(x)
                grid = normed[:, 1:].transpose(1, 2).reshape(B, C, h, w)
                found.append(Tap(grid, normed[:, 0]))
        return found
