"""UniDepth v2 as first released (May 2024 to February 2025), today called v2old.

These are the UniDepth rows of the paper's Table 4: only this network has their parameter counts. As
its successor it guesses a pinhole camera first and reads depth in the light of its rays, but with a
global scale and shift, and with another decoder.

Written from a description of the function; the authors' own code and, as far as stated, the weights
are CC BY-NC 4.0. Attribute names are those of the published weight files.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.prompts.image import imagenet, to_image_size, to_working_size
from ducos.prompts.positions import count_from_one, sine_position
from ducos.prompts.prompt import Prompt
from ducos.prompts.unidepth_parts import (
    AttentionBlock,
    Estimate,
    Mlp,
    UniDepth,
    frequencies,
    pinhole_rays,
    resized_rays,
)
from ducos.prompts.vit import PATCH, Shape
from ducos.resize import Size, bilinear

WIDTH = 512
RAY_NUMBERS = 99  # three components, and 32 sines of each


def embed_rays(rays: Tensor, size: Size) -> Tensor:
    """Components of each ray on a grid and sines of them, (B, h·w, 99)."""
    components = resized_rays(rays, size)
    waves = frequencies(32, size, components)
    return torch.cat([(components[..., None] * waves).sin().flatten(2), components], -1)


class Adapters(nn.Module):
    """Norm, linear and GELU per tap, from the encoder's width to the decoder's."""

    def __init__(self, inputs: int, count: int):
        super().__init__()
        self.input_adapters = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(inputs), nn.Linear(inputs, WIDTH), nn.GELU())
            for _ in range(count)
        )

    def forward(self, taps: list[Tensor]) -> list[Tensor]:
        return [adapt(tap) for adapt, tap in zip(self.input_adapters, taps, strict=True)]


class CameraHead(nn.Module):
    """Four class tokens look at all patch tokens and become fx, fy, cx and cy."""

    def __init__(self) -> None:
        super().__init__()
        self.latents_pos = nn.Parameter(torch.zeros(1, 4, WIDTH))
        self.in_features = Mlp(WIDTH, expansion=2)
        self.project_cls = Mlp(WIDTH)
        self.aggregate1 = AttentionBlock(WIDTH, 1, bias=True, scaled=True)
        self.aggregate2 = AttentionBlock(WIDTH, 1, bias=True, scaled=True)
        self.out = Mlp(WIDTH, expansion=2, out=1)

    def forward(self, tokens: Tensor, context: Tensor, size: Size) -> Tensor:
        """tokens (B, 4, C), context (B, M, C) -> fx fy cx cy (B, 4) in pixels of this size."""
        tokens = self.project_cls(tokens)
        context = torch.cat([self.in_features(context), tokens], 1)
        tokens = self.aggregate1(tokens, context, query_position=self.latents_pos)
        tokens = self.aggregate2(tokens, context, query_position=self.latents_pos)
        fx, fy, cx, cy = self.out(tokens)[..., 0].unbind(1)
        H, W = size
        focal = max(H, W) / 2
        return torch.stack(
            [focal * fx.exp(), focal * fy.exp(), W * cx.sigmoid(), H * cy.sigmoid()], 1
        )


class GlobalHead(nn.Module):
    """Two class tokens look at patch tokens and rays and become log scale and shift."""

    def __init__(self) -> None:
        super().__init__()
        self.in_features = nn.Linear(WIDTH, WIDTH)
        self.project_rays = nn.Linear(RAY_NUMBERS, WIDTH)
        self.project_cls = Mlp(WIDTH)
        self.aggregate1 = AttentionBlock(WIDTH, 1, bias=True, scaled=True)
        self.aggregate2 = AttentionBlock(WIDTH, 1, bias=True, scaled=True)
        self.out = Mlp(WIDTH, expansion=2, out=1)

    def forward(self, tokens: Tensor, maps: Tensor, rays: Tensor) -> Tensor:
        """tokens (B, 2, C), maps (B, 4·h·w, C), rays (B, h·w, 99) -> (B, 2)."""
        tokens = self.project_cls(tokens)
        context = self.in_features(maps + self.project_rays(rays).repeat(1, 4, 1))
        context = torch.cat([context, tokens], 1)
        tokens = self.aggregate2(self.aggregate1(tokens, context), context)
        return self.out(tokens)[..., 0]


class HeadMixing(AttentionBlock):
    """Attention among the heads of each token, none among tokens.

    The release calls it Nyström attention; the axes it hands over make it this, and the weights
    were trained so.
    """

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        heads = (self.heads, query.shape[-1] // self.heads)
        split = [t.unflatten(-1, heads) for t in (query, key, value)]  # (B, N, heads, C/heads)
        return F.scaled_dot_product_attention(*split).flatten(2)


class ConvNext(nn.Module):
    """7×7 per channel, norm, MLP over channels, times a factor per channel, plus the input."""

    def __init__(self, width: int):
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.pwconv1 = nn.Linear(width, 4 * width)
        self.pwconv2 = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = self.gamma * self.pwconv2(F.gelu(self.pwconv1(y)))
        return x + y.permute(0, 3, 1, 2)


class Upsample(nn.Module):
    """Two ConvNeXt blocks, then half the width at twice the size, by two ways added up."""

    def __init__(self, width: int):
        super().__init__()
        half, quarter = width // 2, width // 4
        self.convs = nn.ModuleList([ConvNext(width), ConvNext(width)])
        self.up = nn.Sequential(
            nn.PixelShuffle(2),
            nn.Conv2d(quarter, quarter, 7, padding=3, groups=quarter),
            nn.ReLU(),
            nn.Conv2d(quarter, half, 3, padding=1),
        )
        self.residual = nn.Sequential(
            nn.Conv2d(width, half, 1),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        for block in self.convs:
            x = block(x)
        return self.up(x) + self.residual(x)


class DepthHead(nn.Module):
    """Latent tokens gather the four maps and the rays, then grow to 8 times the token grid."""

    def __init__(self) -> None:
        super().__init__()
        self.features_channel_cat = nn.Linear(4 * WIDTH, WIDTH)
        self.to_latents = Mlp(WIDTH, expansion=2)
        self.aggregate_16 = AttentionBlock(WIDTH, 1, bias=True, scaled=True)
        self.prompt_camera = AttentionBlock(WIDTH, 1, bias=True, scaled=True)
        mixing = [HeadMixing(WIDTH, 8, bias=True, scaled=True) for _ in range(6)]
        self.process_layers = nn.ModuleList([nn.ModuleList(mixing)])
        widths = (WIDTH, WIDTH // 2, WIDTH // 4)
        self.rays_layers = nn.ModuleList(nn.Linear(RAY_NUMBERS, width) for width in widths)
        self.ups = nn.ModuleList(Upsample(width) for width in widths)
        self.depth_mlp = nn.ModuleList(Mlp(width // 2, expansion=1, out=16) for width in widths)
        self.confidence_mlp = nn.ModuleList(
            Mlp(width // 2, expansion=1, out=16) for width in widths
        )
        self.to_depth = nn.Conv2d(48, 1, 7, padding=3, padding_mode="reflect")
        self.to_confidence = nn.Conv2d(48, 1, 7, padding=3, padding_mode="reflect")

    def forward(
        self, tokens: list[Tensor], position: Tensor, rays: Tensor, grid: Size
    ) -> tuple[Tensor, Tensor]:
        """Four (B, h·w, C), their positions (4·h·w, C), rays (B, 3, H, W) -> two (B, 1, H, W)."""
        size = (rays.shape[-2], rays.shape[-1])
        sizes = [(grid[0] * factor, grid[1] * factor) for factor in (1, 2, 4)]
        embeddings = [
            layer(embed_rays(rays, s)) for layer, s in zip(self.rays_layers, sizes, strict=True)
        ]
        latents = self.features_channel_cat(torch.cat(tokens, -1))
        latents = latents + self.to_latents(latents)
        latents = self.aggregate_16(latents, torch.cat(tokens, 1), key_position=position)
        latents = self.prompt_camera(latents, embeddings[0])
        for block in self.process_layers[0].children():
            latents = block(latents, query_position=embeddings[0])

        x = latents.transpose(1, 2).unflatten(2, grid)  # (B, C, h, w)
        stages = []
        for up, embedding, s in zip(self.ups, embeddings, sizes, strict=True):
            x = up(x + embedding.transpose(1, 2).unflatten(2, s))
            stages.append(x.permute(0, 2, 3, 1))
        depth = self.read(stages, self.depth_mlp, size)
        confidence = self.read(stages, self.confidence_mlp, size)
        return self.to_depth(depth), self.to_confidence(confidence)

    def read(self, stages: list[Tensor], heads: nn.ModuleList, size: Size) -> Tensor:
        """16 channels of each stage at full size, finest first, (B, 48, H, W)."""
        maps = [head(x).permute(0, 3, 1, 2) for head, x in zip(heads, stages, strict=True)]
        return torch.cat([to_image_size(map, size) for map in reversed(maps)], 1)


class Decoder(nn.Module):
    """Everything behind the encoder."""

    def __init__(self, inputs: int):
        super().__init__()
        self.level_embeds = nn.Parameter(torch.zeros(4, WIDTH))
        self.level_embed_layer = nn.Sequential(
            nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        )
        self.input_adapter = Adapters(inputs, 4)
        self.camera_token_adapter = Adapters(inputs, 4)
        self.global_token_adapter = Adapters(inputs, 2)
        self.camera_layer = CameraHead()
        self.global_layer = GlobalHead()
        self.depth_layer = DepthHead()

    def positions(self, grid: Size) -> Tensor:
        """Where each token of the four maps is, and in which map, (4·h·w, C)."""
        levels = self.level_embed_layer(self.level_embeds)  # (4, C)
        rows, columns = count_from_one(grid, levels)
        turn = 2 * math.pi
        rows, columns = rows / (grid[0] + 1e-6) * turn, columns / (grid[1] + 1e-6) * turn
        return (levels[:, None] + sine_position(rows, columns, WIDTH)).flatten(0, 1)


class Variant(NamedTuple):
    """What differs between the sizes."""

    taps: tuple[int, int, int, int]
    hub: str


VARIANTS = {
    "s": Variant((8, 9, 10, 11), "lpiccinelli/unidepth-v2old-vits14"),
    "l": Variant((20, 21, 22, 23), "lpiccinelli/unidepth-v2old-vitl14"),
}
PATCHES = 2400


def working_size(size: Size) -> Size:
    """The authors' size: about 2400 patches in the image's format."""
    ratio = size[1] / size[0]
    rows = max(1, math.ceil(math.sqrt(PATCHES / ratio) - 0.5))
    columns = max(1, math.ceil(rows * ratio - 0.5))
    return rows * PATCH, columns * PATCH


class UniDepthV2Old(UniDepth):
    """Four encoder maps on the 1/14 grid and metric depth, from a colour image.

    Confidence lies in [0, 1]; what it was trained to mean is not published.

    Args:
        size: "s" or "l".
        weights: "hub" for the published weights, another hub id, a folder, or the authors' file;
            None leaves random weights.
        side: about how many pixels the shorter side has inside; None follows the authors: about
            2400 patches of 14×14, whatever the size of the image.
    """

    variants = VARIANTS

    def decoder(self, variant: Variant, shape: Shape) -> nn.Module:
        return Decoder(shape.width)

    def at_working_size(self, image: Tensor) -> Estimate:
        """Everything about an image (B, 3, 14h, 14w) with ImageNet statistics, taken as it is."""
        size = (image.shape[-2], image.shape[-1])
        taps = self.pixel_encoder(image, self.taps)
        maps = tuple(tap.map for tap in taps)
        grid = (maps[0].shape[-2], maps[0].shape[-1])
        _, third_last, second_last, last = [tap.token for tap in taps]
        decoder = self.pixel_decoder

        tokens = decoder.input_adapter([map.flatten(2).transpose(1, 2) for map in maps])
        every = torch.cat(tokens, 1)  # (B, 4·h·w, C)
        position = decoder.positions(grid)
        camera_tokens = decoder.camera_token_adapter([third_last, second_last, last, second_last])
        camera = decoder.camera_layer(torch.stack(camera_tokens, 1), every + position, size)
        rays = pinhole_rays(camera, size)

        global_tokens = torch.stack(decoder.global_token_adapter([second_last, last]), 1)
        scale_shift = decoder.global_layer(global_tokens, every, embed_rays(rays, grid))
        log_scale, shift = scale_shift[:, :, None, None, None].unbind(1)  # each (B, 1, 1, 1)
        log_depth, confidence = decoder.depth_layer(tokens, position, rays, grid)
        # Only the shape of the log-depth counts; its mean and spread come from scale and shift.
        relative = F.layer_norm(log_depth, log_depth.shape[1:]).exp()
        depth = F.softplus((relative + shift) * log_scale.exp(), beta=10)
        return Estimate(maps, depth, confidence.sigmoid(), camera, rays)

    def forward(self, rgb: Tensor) -> Prompt:
        """rgb (B, 3, H, W) in [0, 1], any size -> four (B, C, h, w) and metres (B, 1, H, W)."""
        size = (rgb.shape[-2], rgb.shape[-1])
        if self.side is None:
            image = bilinear(rgb, working_size(size))
        else:
            image = to_working_size(rgb, self.side, self.multiple_of)
        found = self.at_working_size(imagenet(image))
        return Prompt(found.features, to_image_size(found.depth, size))
