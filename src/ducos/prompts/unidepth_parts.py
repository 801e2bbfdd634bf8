"""What both releases of UniDepth v2 share: attention, the pinhole camera, and what they return."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.prompts.vit import PATCH, SHAPES, LayerScale, Position, Shape, VisionTransformer
from ducos.prompts.weights import load_strictly, read_weights
from ducos.resize import Size, bilinear


class Estimate(NamedTuple):
    """What UniDepth says about an image (B, 3, H, W) at its working size.

    features: four (B, C, h, w). depth: (B, 1, H, W) metres along the optical axis. confidence:
    (B, 1, H, W), see the network's own documentation. camera: (B, 4), fx fy cx cy in pixels. rays:
    (B, 3, H, W) unit viewing directions of that camera.
    """

    features: tuple[Tensor, ...]
    depth: Tensor
    confidence: Tensor
    camera: Tensor
    rays: Tensor


class Mlp(nn.Module):
    """Norm, linear, GELU, linear; no residual."""

    def __init__(self, width: int, *, expansion: int = 4, out: int | None = None):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.proj1 = nn.Linear(width, expansion * width)
        self.proj2 = nn.Linear(expansion * width, width if out is None else out)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj2(F.gelu(self.proj1(self.norm(x))))


class AttentionBlock(nn.Module):
    """Tokens look at a context, or at themselves, then pass a residual MLP.

    Queries and context have a norm each, also where they are the same tokens. Positions are added
    after the projections, so values never carry them.

    Args:
        bias: of the three projections. scaled: with a learned factor per channel on both branches.
    """

    def __init__(self, width: int, heads: int, *, bias: bool, scaled: bool):
        super().__init__()
        self.heads = heads
        self.norm_attnx = nn.LayerNorm(width)
        self.norm_attnctx = nn.LayerNorm(width)
        self.q = nn.Linear(width, width, bias=bias)
        self.kv = nn.Linear(width, 2 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.ls1: nn.Module = LayerScale(width) if scaled else nn.Identity()
        self.mlp = Mlp(width)
        self.ls2: nn.Module = LayerScale(width) if scaled else nn.Identity()

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        query_position: Tensor | None = None,
        key_position: Tensor | None = None,
    ) -> Tensor:
        """x (B, N, C), context (B, M, C), positions of the same lengths -> (B, N, C)."""
        query = self.q(self.norm_attnx(x))
        key, value = self.kv(self.norm_attnctx(x if context is None else context)).chunk(2, -1)
        if query_position is not None:
            query = query + query_position
        if key_position is not None:
            key = key + key_position
        x = x + self.ls1(self.out(self.attend(query, key, value)))
        return x + self.ls2(self.mlp(x))

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """(B, N, C), (B, M, C), (B, M, C) -> (B, N, C)."""
        heads = (self.heads, query.shape[-1] // self.heads)
        split = [t.unflatten(-1, heads).transpose(1, 2) for t in (query, key, value)]
        return F.scaled_dot_product_attention(*split).transpose(1, 2).flatten(2)


def pinhole_rays(camera: Tensor, size: Size) -> Tensor:
    """Unit viewing directions of all pixels.

    Args:
        camera: (B, 4), fx fy cx cy in pixels of an image of this size.

    Returns:
        (B, 3, H, W): x to the right, y down, z forward.
    """
    H, W = size
    fx, fy, cx, cy = camera[:, :, None, None].unbind(1)  # each (B, 1, 1)
    x = (torch.arange(W, device=camera.device, dtype=camera.dtype) + 0.5 - cx) / fx
    y = (torch.arange(H, device=camera.device, dtype=camera.dtype)[:, None] + 0.5 - cy) / fy
    x, y = torch.broadcast_tensors(x, y)
    return F.normalize(torch.stack([x, y, torch.ones_like(x)], 1), dim=1)


def intrinsics(camera: Tensor) -> Tensor:
    """fx fy cx cy (B, 4) -> the matrix (B, 3, 3)."""
    fx, fy, cx, cy = camera.unbind(1)
    zero, one = torch.zeros_like(fx), torch.ones_like(fx)
    return torch.stack([fx, zero, cx, zero, fy, cy, zero, zero, one], 1).view(-1, 3, 3)


def frequencies(count: int, size: Size, like: Tensor) -> Tensor:
    """Frequencies from π to about π·(longer side)/2, evenly spaced in octaves."""
    highest = math.log2(max(1, max(size) // 2))
    octaves = torch.linspace(0.0, highest, count, device=like.device, dtype=like.dtype)
    return math.pi * 2**octaves


def resized_rays(rays: Tensor, size: Size) -> Tensor:
    """Rays (B, 3, H, W) on another grid, again of unit length, as tokens (B, h·w, 3)."""
    return F.normalize(bilinear(rays, size), dim=1).flatten(2).transpose(1, 2)


class UniDepth(nn.Module):
    """Encoder, decoder and weights of a UniDepth; see the versions for the arguments."""

    multiple_of = PATCH
    inverse = False
    licence = "CC-BY-NC-4.0"
    variants: Mapping[str, Any]  # size -> taps and hub of that version

    def __init__(
        self, size: str = "s", *, weights: str | Path | None = None, side: int | None = None
    ):
        super().__init__()
        if size not in self.variants:
            raise InputError(f"got size {size!r}, expected one of {', '.join(self.variants)}")
        variant, shape = self.variants[size], SHAPES[size]
        self.taps = variant.taps
        self.channels = (shape.width,) * 4
        self.side = side
        self.pixel_encoder = VisionTransformer(
            shape, position=Position.SIZE, register_token=True, final_eps=1e-5
        )
        self.pixel_decoder: Any = self.decoder(variant, shape)
        if weights is not None:
            source = variant.hub if weights == "hub" else weights
            load_strictly(self, read_weights(source), source)

    def decoder(self, variant: Any, shape: Shape) -> nn.Module:
        """The version's own."""
        raise TypeError(f"{type(self).__name__} has no decoder")
