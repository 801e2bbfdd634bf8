"""UniDepth v2 (Piccinelli et al., 2025), as released since February 2025: metric depth and camera.

The network first guesses a pinhole camera from the class tokens, then reads depth from the patch
tokens in the light of the viewing rays of that camera. As a prompt it gives the four encoder maps
and metric depth. The paper's Table 4 used its predecessor, `unidepth_v2old.py`.

Written from a description of the function; the authors' own code and, as far as stated, the weights
are CC BY-NC 4.0. Attribute names are those of the published weight files.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.prompts.image import imagenet, to_working_size
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
from ducos.resize import Size


def embed_rays(rays: Tensor, size: Size, width: int) -> Tensor:
    """Sines of the polar and the azimuth angle of each ray on a grid, (B, h·w, width)."""
    x, y, z = resized_rays(rays, size).unbind(-1)
    safe_x = torch.where(x < 0, x.clamp(max=-1e-3), x.clamp(min=1e-3))
    angles = torch.stack([z.clamp(-1, 1).acos(), torch.atan2(y, safe_x)], -1)
    waves = frequencies(width // 2, size, angles)
    return (angles[..., None] * waves).sin().flatten(2)


class Adapters(nn.Module):
    """One linear layer per tap, from the encoder's width to the decoder's."""

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.input_adapters = nn.ModuleList(nn.Linear(inputs, width) for _ in range(4))

    def forward(self, taps: list[Tensor]) -> list[Tensor]:
        return [adapt(tap) for adapt, tap in zip(self.input_adapters, taps, strict=True)]


class CameraHead(nn.Module):
    """Four class tokens become fx, fy, cx and cy, one number each."""

    def __init__(self, width: int):
        super().__init__()
        self.latents_pos = nn.Parameter(torch.zeros(1, 4, width))
        self.project = Mlp(width, expansion=1)
        self.aggregate1 = AttentionBlock(width, 8, bias=False, scaled=True)
        self.aggregate2 = AttentionBlock(width, 8, bias=False, scaled=True)
        self.out_pinhole = Mlp(width, expansion=1, out=1)

    def forward(self, tokens: Tensor, size: Size) -> Tensor:
        """tokens (B, 4, C) -> fx fy cx cy (B, 4) in pixels of an image of this size."""
        tokens = self.project(tokens)
        tokens = self.aggregate1(tokens, query_position=self.latents_pos)
        tokens = self.aggregate2(tokens, query_position=self.latents_pos)
        fx, fy, cx, cy = self.out_pinhole(tokens)[..., 0].unbind(1)
        H, W = size
        focal = 0.7 * math.hypot(H, W)
        return torch.stack(
            [focal * fx.exp(), focal * fy.exp(), W * cx.sigmoid(), H * cy.sigmoid()], 1
        )


class Conditioning(nn.Module):
    """Patch tokens look at the ray embedding."""

    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.ModuleList([AttentionBlock(width, 8, bias=False, scaled=False)])

    def forward(self, tokens: Tensor, rays: Tensor) -> Tensor:
        return self.layers[0](tokens, rays)


class ResidualUnit(nn.Module):
    """LeakyReLU - conv - LeakyReLU - conv, times a factor per channel, plus the input."""

    def __init__(self, width: int):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.gamma = nn.Parameter(torch.ones(1, width, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.gamma * self.conv2(F.leaky_relu(self.conv1(F.leaky_relu(x))))


class Upsample(nn.Module):
    """Two residual units, a change of width, twice the size."""

    def __init__(self, width: int, out: int):
        super().__init__()
        self.convs = nn.ModuleList([ResidualUnit(width), ResidualUnit(width)])
        self.up = nn.Sequential(
            nn.Conv2d(width, out, 1),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        for unit in self.convs:
            x = unit(x)
        return self.up(x)


def _fine_head(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(width, 32, 3, padding=1, padding_mode="reflect"),
        nn.LeakyReLU(),
        nn.Conv2d(32, 1, 1),
    )


class DepthHead(nn.Module):
    """Condition the four maps on the rays, merge them, read depth and confidence."""

    def __init__(self, width: int):
        super().__init__()
        half, quarter, eighth = width // 2, width // 4, width // 8
        self.prompt_camera = nn.ModuleList(Conditioning(width) for _ in range(4))
        self.to_latents = nn.Linear(width, width)
        self.process_features = nn.ModuleList(
            [
                nn.ConvTranspose2d(width, width, 1, stride=1),
                nn.ConvTranspose2d(width, width, 2, stride=2),
                nn.ConvTranspose2d(width, half, 4, stride=4),
            ]
        )
        self.ups = nn.ModuleList(
            [Upsample(width, width), Upsample(width, half), Upsample(half, quarter)]
        )
        mixing = nn.Sequential(nn.LayerNorm(quarter), nn.Linear(quarter, quarter))
        # Only the finest of three planned depth outputs exists in the release.
        self.depth_mlp = nn.ModuleList([nn.Identity(), nn.Identity(), mixing])
        self.confidence_mlp = nn.Sequential(nn.LayerNorm(quarter), nn.Linear(quarter, quarter))
        self.to_depth_lr = nn.Conv2d(quarter, eighth, 3, padding=1, padding_mode="reflect")
        self.to_confidence_lr = nn.Conv2d(quarter, eighth, 3, padding=1, padding_mode="reflect")
        self.to_depth_hr = _fine_head(eighth)
        self.to_confidence_hr = _fine_head(eighth)

    def forward(self, tokens: list[Tensor], rays: Tensor, grid: Size) -> tuple[Tensor, Tensor]:
        """Four (B, h·w, C) and rays (B, 3, H, W) -> log radius and log error, each (B, 1, H, W)."""
        size = (rays.shape[-2], rays.shape[-1])
        embedding = embed_rays(rays, grid, tokens[0].shape[-1])
        tokens = [block(t, embedding) for block, t in zip(self.prompt_camera, tokens, strict=True)]
        x = self.to_latents(tokens[0]).transpose(1, 2).unflatten(2, grid)  # (B, C, h, w)
        for lift, up, finer in zip(self.process_features, self.ups, tokens[1:], strict=True):
            x = up(x + lift(finer.transpose(1, 2).unflatten(2, grid)))
        x = x.permute(0, 2, 3, 1)  # (B, 8h, 8w, C/4)
        depth = self.to_depth_lr(self.depth_mlp[2](x).permute(0, 3, 1, 2))
        error = self.to_confidence_lr(self.confidence_mlp(x).permute(0, 3, 1, 2))
        depth = F.interpolate(depth, size, mode="bilinear", align_corners=True)
        error = F.interpolate(error, size, mode="bilinear", align_corners=True)
        return self.to_depth_hr(depth), self.to_confidence_hr(error)


class Decoder(nn.Module):
    """Everything behind the encoder."""

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.input_adapter = Adapters(inputs, width)
        self.camera_token_adapter = Adapters(inputs, width)
        self.camera_layer = CameraHead(width)
        self.depth_layer = DepthHead(width)
        self.level_embeds = nn.Parameter(
            torch.zeros(1, 1, 4, width)
        )  # in the files, read by nothing


class Variant(NamedTuple):
    """What differs between the sizes."""

    width: int
    taps: tuple[int, int, int, int]
    hub: str


VARIANTS = {
    "s": Variant(256, (2, 5, 8, 11), "lpiccinelli/unidepth-v2-vits14"),
    "b": Variant(384, (2, 5, 8, 11), "lpiccinelli/unidepth-v2-vitb14"),
    "l": Variant(512, (5, 11, 17, 23), "lpiccinelli/unidepth-v2-vitl14"),
}
PIXELS = (200_000, 600_000)
RATIOS = (0.5, 2.5)


def padding_for(size: Size) -> tuple[int, int, int, int]:
    """Margins (left, right, top, bottom) that bring W/H into the range the network knows."""
    H, W = size
    missing_rows = max(0, round(W / RATIOS[1]) - H)
    missing_columns = max(0, round(H * RATIOS[0]) - W)
    left, top = missing_columns // 2, missing_rows // 2
    return left, missing_columns - left, top, missing_rows - top


def working_size(size: Size) -> Size:
    """The authors' size: 200 000 to 600 000 pixels, then sides rounded up to multiples of 14."""
    pixels = size[0] * size[1]
    factor = math.sqrt(min(max(pixels, PIXELS[0]), PIXELS[1]) / pixels)
    return (
        math.ceil(int(size[0] * factor) / PATCH) * PATCH,
        math.ceil(int(size[1] * factor) / PATCH) * PATCH,
    )


def cut_margins(feature: Tensor, margins: tuple[int, int, int, int], size: Size) -> Tensor:
    """The part of a feature map of the padded image that shows the image of this size.

    Margins are seldom whole tokens, so the remaining window is sampled on a grid of its own.
    """
    left, right, top, bottom = margins
    if not any(margins):
        return feature
    (H, W), (h, w) = size, feature.shape[-2:]
    padded_H, padded_W = H + top + bottom, W + left + right
    rows, columns = math.ceil(h * H / padded_H), math.ceil(w * W / padded_W)
    # Window in grid_sample's units: the padded image spans [-1, 1] in both directions.
    x = torch.tensor([[W / padded_W, 0.0, (left - right) / padded_W]])
    y = torch.tensor([[0.0, H / padded_H, (top - bottom) / padded_H]])
    window = torch.stack([x, y], 1).to(feature).expand(len(feature), -1, -1)  # (B, 2, 3)
    grid = F.affine_grid(window, [len(feature), 1, rows, columns], align_corners=False)
    return F.grid_sample(feature, grid, padding_mode="border", align_corners=False)


class UniDepthV2(UniDepth):
    """Four encoder maps on the 1/14 grid and metric depth, from a colour image.

    Confidence points the other way: larger is less certain. It is exp of the expected absolute
    error of the median-scaled depth, made to rank pixels within one image.

    Args:
        size: "s", "b" or "l".
        weights: "hub" for the published weights, another hub id, a folder, or the authors' file;
            None leaves random weights.
        side: about how many pixels the shorter side has inside; None follows the authors: 200 000
            to 600 000 pixels, extreme formats padded to a ratio between 1:2 and 5:2.
    """

    variants = VARIANTS

    def decoder(self, variant: Variant, shape: Shape) -> nn.Module:
        return Decoder(shape.width, variant.width)

    def at_working_size(self, image: Tensor) -> Estimate:
        """Everything about an image (B, 3, 14h, 14w) with ImageNet statistics, taken as it is."""
        size = (image.shape[-2], image.shape[-1])
        taps = self.pixel_encoder(image, self.taps)
        decoder = self.pixel_decoder
        class_tokens = decoder.camera_token_adapter([tap.token for tap in taps])
        camera = decoder.camera_layer(torch.stack(class_tokens, 1), size)
        rays = pinhole_rays(camera, size)
        maps = tuple(tap.map for tap in taps)
        grid = (maps[0].shape[-2], maps[0].shape[-1])
        tokens = decoder.input_adapter([map.flatten(2).transpose(1, 2) for map in maps])
        log_radius, log_error = decoder.depth_layer(tokens, rays, grid)
        radius = (log_radius.clamp(-8, 8) + 2).exp()
        return Estimate(maps, radius * rays[:, 2:], log_error.clamp(-8, 8).exp(), camera, rays)

    def forward(self, rgb: Tensor) -> Prompt:
        """rgb (B, 3, H, W) in [0, 1], any size -> four (B, C, h, w) and metres (B, 1, H, W)."""
        H, W = rgb.shape[-2:]
        image = imagenet(rgb)
        if self.side is not None:
            found = self.at_working_size(to_working_size(image, self.side, self.multiple_of))
            return Prompt(found.features, F.interpolate(found.depth, (H, W), mode="bilinear"))
        margins = padding_for((H, W))
        padded = F.pad(image, margins)  # zero is the mean colour here
        size = (padded.shape[-2], padded.shape[-1])
        found = self.at_working_size(F.interpolate(padded, working_size(size), mode="bilinear"))
        depth = F.interpolate(found.depth, size, mode="bilinear")
        left, _, top, _ = margins
        features = tuple(cut_margins(feature, margins, (H, W)) for feature in found.features)
        return Prompt(features, depth[..., top : top + H, left : left + W])
