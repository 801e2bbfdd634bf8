"""DepthFormer (Li et al., Machine Intelligence Research 2023): metric depth with Swin's eyes.

A convolution stem keeps detail, Swin gives context, and deformable attention lets all levels
exchange features (the authors' HAHI neck) before a convolution head reads depth.

Written from a description of the function; the authors' code is Apache-2.0, for their weights they
state no licence. Attribute names are those of the published weight files.
"""

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.prompts.image import imagenet, to_image_size, to_working_size
from ducos.prompts.licence import UNSTATED
from ducos.prompts.positions import count_from_one, sine_position
from ducos.prompts.prompt import Prompt
from ducos.prompts.swin import Swin
from ducos.prompts.weights import load_strictly, read_weights
from ducos.resize import Size

STEM = 64
HEADS, LEVELS, POINTS = 8, 4, 8
# Bounds the memory of sampling and keeps a portion in the processor's cache: 1.6 times as fast as
# 8192 at once. The result does not depend on it.
QUERIES_AT_ONCE = 1024


class ConvNormReLU(nn.Module):
    """Convolution without bias, batch norm, ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(x)))


class Backbone(Swin):
    """Swin, with a convolution stem at half size as a fifth, finest map."""

    def __init__(self, variant: "Variant"):
        super().__init__(variant.embed, variant.depths, variant.heads)
        self.conv1 = nn.Conv2d(3, STEM, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(STEM)

    def forward(self, image: Tensor) -> list[Tensor]:
        """image (B, 3, H, W) -> five maps from 1/2 to 1/32."""
        return [F.relu(self.bn1(self.conv1(image))), *self.maps(image)]


def pixel_centres(size: Size, like: Tensor) -> Tensor:
    """(x, y) of each pixel's centre in [0, 1], (h·w, 2)."""
    rows, columns = count_from_one(size, like)
    y, x = torch.meshgrid((rows - 0.5) / size[0], (columns - 0.5) / size[1], indexing="ij")
    return torch.stack([x, y], -1).flatten(0, 1)


class DeformableAttention(nn.Module):
    """Each query samples eight points in each of four maps around its reference, per head."""

    def __init__(self, width: int):
        super().__init__()
        self.sampling_offsets = nn.Linear(width, HEADS * LEVELS * POINTS * 2)
        self.attention_weights = nn.Linear(width, HEADS * LEVELS * POINTS)
        self.value_proj = nn.Linear(width, width)
        self.output_proj = nn.Linear(width, width)

    def forward(self, query: Tensor, reference: Tensor, value: Tensor, sizes: list[Size]) -> Tensor:
        """Read the maps at places that each query chooses.

        Args:
            query: (B, N, C). reference: (N, 2), x y in [0, 1].
            value: (B, M, C), the tokens of the four maps one after another; sizes: their h, w.

        Returns:
            (B, N, C).
        """
        B, _, C = value.shape
        tokens = self.value_proj(value).split([h * w for h, w in sizes], 1)
        maps = [
            level.transpose(1, 2).reshape(B * HEADS, C // HEADS, h, w)
            for level, (h, w) in zip(tokens, sizes, strict=True)
        ]
        parts = zip(query.split(QUERIES_AT_ONCE, 1), reference.split(QUERIES_AT_ONCE))
        read = [self.sample(some, places, maps) for some, places in parts]
        return self.output_proj(torch.cat(read, 1))

    def sample(self, query: Tensor, reference: Tensor, maps: list[Tensor]) -> Tensor:
        """Weighted mean of the sampled values, (B, n, C)."""
        B, n, _ = query.shape
        offsets = self.sampling_offsets(query).view(B, n, HEADS, LEVELS, POINTS, 2)
        weights = self.attention_weights(query).view(B, n, HEADS, LEVELS * POINTS).softmax(-1)
        weights = weights.transpose(1, 2).reshape(B * HEADS, 1, n, LEVELS, POINTS)
        mean: Tensor | None = None
        for level, values in enumerate(maps):
            h, w = values.shape[-2:]
            places = reference[:, None, None] + offsets[:, :, :, level] / offsets.new_tensor([w, h])
            grid = (2 * places - 1).transpose(1, 2).flatten(0, 1)  # (B·heads, n, points, 2)
            sampled = F.grid_sample(
                values, grid, align_corners=False
            )  # (B·heads, C/heads, n, points)
            part = (sampled * weights[:, :, :, level]).sum(-1)
            mean = part if mean is None else mean + part
        assert mean is not None
        return mean.view(B, -1, n).transpose(1, 2)


class Neck(nn.Module):
    """HAHI: levels attend to each other, the stem attends to all of them, then all are fused."""

    def __init__(self, widths: list[int], width: int):
        """widths: of the five maps, stem first; width: of the exchanged tokens."""
        super().__init__()
        stem, levels = widths[0], widths[1:]
        self.level_embed = nn.Parameter(torch.zeros(LEVELS, width))
        self.lateral_convs = nn.ModuleList(ConvNormReLU(c, c, 1) for c in widths)
        self.trans_proj = nn.ModuleList(ConvNormReLU(c, width, 1) for c in levels)
        self.trans_fusion = nn.ModuleList(ConvNormReLU(c + width, c, 3) for c in levels)
        self.conv_proj = nn.ModuleList([ConvNormReLU(stem, width, 1)])
        self.conv_fusion = nn.ModuleList([ConvNormReLU(width + stem, stem, 3)])
        self.reference_points = nn.Linear(width, 2)
        self.self_attn = DeformableAttention(width)
        self.multi_att = DeformableAttention(width)

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        """Five maps in, five of the same sizes out."""
        stem, *levels = [conv(m) for conv, m in zip(self.lateral_convs, maps, strict=True)]
        sizes = [(m.shape[-2], m.shape[-1]) for m in levels]
        projected = [conv(m) for conv, m in zip(self.trans_proj, levels, strict=True)]
        tokens = torch.cat([m.flatten(2).transpose(1, 2) for m in projected], 1)  # (B, M, C)
        width = tokens.shape[-1]
        position = torch.cat(
            [
                sine_position(*count_from_one(size, tokens), width) + self.level_embed[level]
                for level, size in enumerate(sizes)
            ]
        )
        centres = torch.cat([pixel_centres(size, tokens) for size in sizes])
        tokens = tokens + self.self_attn(tokens + position, centres, tokens, sizes)

        query = self.conv_proj[0](stem)
        size = (query.shape[-2], query.shape[-1])
        query = query.flatten(2).transpose(1, 2)
        position = sine_position(*count_from_one(size, query), width)
        reference = self.reference_points(position).sigmoid()  # the same for every image
        query = query + self.multi_att(query + position, reference, tokens, sizes)

        attended = query.transpose(1, 2).unflatten(2, size)
        fused = [self.conv_fusion[0](torch.cat([attended, stem], 1))]
        exchanged = tokens.split([h * w for h, w in sizes], 1)
        for fuse, m, t, s in zip(self.trans_fusion, levels, exchanged, sizes, strict=True):
            fused.append(fuse(torch.cat([m, t.transpose(1, 2).unflatten(2, s)], 1)))
        return fused


class PlainConv(nn.Module):
    """A convolution under the name the files give it."""

    def __init__(self, inputs: int, outputs: int, kernel: int):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


class UpBlock(nn.Module):
    """Enlarge to the next finer map, put both together, convolve twice."""

    def __init__(self, coarse: int, fine: int):
        super().__init__()
        self.convA = PlainConv(coarse + fine, fine, 3)
        self.convB = PlainConv(fine, fine, 3)

    def forward(self, x: Tensor, finer: Tensor) -> Tensor:
        x = F.interpolate(x, finer.shape[-2:], mode="bilinear", align_corners=True)
        x = F.leaky_relu(self.convA(torch.cat([x, finer], 1)))
        return F.leaky_relu(self.convB(x))


class Head(nn.Module):
    """From the coarsest map up to half size, then one convolution to metres."""

    def __init__(self, widths: list[int]):
        super().__init__()
        coarsest = PlainConv(widths[-1], widths[-1], 1)
        steps = [UpBlock(coarse, fine) for fine, coarse in pairwise(widths)]
        self.conv_list = nn.ModuleList([coarsest, *reversed(steps)])
        self.conv_depth = nn.Conv2d(widths[0], 1, 3, padding=1)

    def forward(self, maps: list[Tensor]) -> Tensor:
        """Five maps, finest first -> (B, 1, H/2, W/2) metres, at least a millimetre."""
        *finer, coarsest = maps
        x = self.conv_list[0](coarsest)
        for block, m in zip(list(self.conv_list)[1:], reversed(finer), strict=True):
            x = block(x, m)
        return F.relu(self.conv_depth(x)) + 1e-3


class Variant(NamedTuple):
    """Swin's width, depths and heads, and the width of the neck."""

    embed: int
    depths: tuple[int, int, int, int]
    heads: tuple[int, int, int, int]
    neck: int


VARIANTS = {
    "swint": Variant(96, (2, 2, 6, 2), (3, 6, 12, 24), 256),
    "swinl": Variant(192, (2, 2, 18, 2), (6, 12, 24, 48), 512),
}


class DepthFormer(nn.Module):
    """Four neck maps at 1/4, 1/8, 1/16 and 1/32 and metric depth, from a colour image.

    Batch norm always uses its stored statistics, also after `.train()`: one image is no batch.

    Args:
        size: "swint" or "swinl"; the paper's Table 4 has Swin-L trained on NYU.
        weights: the authors' checkpoint, or a folder or hub id that holds one (none is known on the
            hub); None leaves random weights.
        side: about how many pixels the shorter side has inside; None works at the image's own size
            (the authors: 480×640).
        farthest: depth is cut off here; 10 m for the NYU weights, 80 m for KITTI.
    """

    multiple_of = 32
    inverse = False
    licence = UNSTATED

    def __init__(
        self,
        size: str = "swinl",
        *,
        weights: str | Path | None = None,
        side: int | None = None,
        farthest: float = 10.0,
    ):
        super().__init__()
        if size not in VARIANTS:
            raise InputError(f"got size {size!r}, expected one of {', '.join(VARIANTS)}")
        variant = VARIANTS[size]
        self.channels = tuple(variant.embed * 2**level for level in range(4))
        self.side = side
        self.farthest = farthest
        widths = [STEM, *self.channels]
        self.backbone = Backbone(variant)
        self.neck = Neck(widths, variant.neck)
        self.decode_head = Head(widths)
        self.train()
        if weights == "hub":
            raise InputError(
                "got weights 'hub', expected a file: DepthFormer is on no hub; download the "
                "checkpoint linked in zhyever/Monocular-Depth-Estimation-Toolbox and give its path"
            )
        if weights is not None:
            load_strictly(self, read_weights(weights), weights)

    def train(self, mode: bool = True) -> "DepthFormer":
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self

    def at_working_size(self, image: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Image (B, 3, H, W) with ImageNet statistics -> four maps and metres (B, 1, H, W)."""
        maps = self.neck(self.backbone(image))
        half = self.decode_head(maps).clamp(1e-3, self.farthest)
        depth = F.interpolate(half, image.shape[-2:], mode="bilinear", align_corners=True)
        return tuple(maps[1:]), depth

    def forward(self, rgb: Tensor) -> Prompt:
        """rgb (B, 3, H, W) in [0, 1], any size -> four maps, finest first; metres (B, 1, H, W)."""
        image = imagenet(to_working_size(rgb, self.side, self.multiple_of))
        features, depth = self.at_working_size(image)
        return Prompt(features, to_image_size(depth, (rgb.shape[-2], rgb.shape[-1])))
