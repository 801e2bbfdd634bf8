"""DuCos: prompt learning for depth super-resolution (section 3.1 of the paper, in its order).

The constraints (Eq. 7 and 9-10) are in `losses`, the Lagrangian duality (section 3.2) in `dual`.
`docs/paper.md` maps every equation to its function and lists the choices the text leaves open.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.hints import SENSORS
from ducos.models.blocks import ResidualGroup, pearson
from ducos.models.ducos.guide import WINDOWS, follow
from ducos.models.ducos.mixing import (
    MixingTail,
    Window,
    gather,
    local_contrast,
    spline_mean,
    window_of,
)
from ducos.models.prediction import Prediction
from ducos.prompts import Prompt, PromptModel, run_prompt
from ducos.resize import bicubic, bilinear, pad_to_multiple

FUSIONS = ("pearson", "add", "concat")
RECURRENCES = ("literal", "reweight")
TAILS = ("convolution", "mixing")
COMPACT_MULTIPLE = 32  # compact networks pad to it; the coarsest map of `tiny` then fits exactly


class ImageBranch(nn.Module):
    """No foundation model: four residual groups over RGB, the naive model of the ablation."""

    inverse = False

    def __init__(self, channels: int, stride: int, blocks: int):
        super().__init__()
        self.channels = (channels,) * 4
        self.stride = stride
        self.head = nn.Conv2d(3 * stride**2, channels, 3, padding=1)
        self.groups = nn.ModuleList(ResidualGroup(channels, blocks) for _ in range(4))

    def forward(self, rgb: Tensor) -> Prompt:
        x = self.head(F.pixel_unshuffle(rgb, self.stride))
        features = []
        for group in self.groups:
            x = group(x)
            features.append(x)
        return Prompt(tuple(features), None)


class Lift(nn.Module):
    """Bring a prompt feature to the depth feature's width and size: F̂_i of Eq. 2a."""

    def __init__(self, prompt_channels: int, channels: int, *, deconvolve: bool):
        super().__init__()
        self.project = nn.Conv2d(prompt_channels, channels, 1)
        self.deconvolve = (
            nn.ConvTranspose2d(channels, channels, 4, stride=4) if deconvolve else nn.Identity()
        )

    def forward(self, feature: Tensor, size: tuple[int, int]) -> Tensor:
        return bilinear(self.deconvolve(self.project(feature)), size)  # (B, C, H, W)


class CorrelativeFusion(nn.Module):
    """Blend prompt and depth features by their correlation, several times (Eq. 2b-6).

    Args:
        iterations: passes in all; the paper's ablation settles on 4 (once, then three refinements).
        fusion: "pearson" (Eq. 3-4); "add" or "concat" for the ablation of fusion.
        recurrence: "literal" sends the blended map back through the residual group, as the text
            says; "reweight" keeps the depth side of the blend and recomputes only the weights, as
            the authors' released network does.
    """

    def __init__(
        self, channels: int, *, iterations: int, fusion: str, recurrence: str, blocks: int
    ):
        super().__init__()
        self.iterations = iterations
        self.fusion = fusion
        self.recurrence = recurrence
        self.group = ResidualGroup(channels, blocks)
        if fusion == "concat":
            self.merge = nn.Conv2d(2 * channels, channels, 1)
        self.out = nn.Conv2d(channels, channels, 3, padding=1)

    def blend(self, prompt: Tensor, depth: Tensor, reference: Tensor) -> Tensor:
        """Mix prompt and depth (B, C, H, W) by the prompt's correlation with `reference`."""
        if self.fusion == "add":
            return prompt + depth
        if self.fusion == "concat":
            return self.merge(torch.cat([prompt, depth], 1))
        alpha = torch.sigmoid(pearson(prompt, reference))  # Eq. 3-4a, (B, C, 1, 1)
        return torch.lerp(depth, prompt, alpha)  # α prompt + (1 − α) depth, Eq. 4b

    def forward(self, prompt: Tensor, depth: Tensor) -> tuple[Tensor, Tensor]:
        """prompt F̂_i and depth D_i, both (B, C, H, W) -> D_{i+1} and the blended map D̃_i."""
        grouped = self.group(depth)  # Eq. 2b
        blended = self.blend(prompt, grouped, grouped)
        for _ in range(self.iterations - 1):
            if self.recurrence == "literal":
                grouped = self.group(blended)
                blended = self.blend(prompt, grouped, grouped)
            else:
                blended = self.blend(prompt, grouped, blended)
        return self.out(blended), blended  # Eq. 5


class Alignment(nn.Module):
    """H of Eq. 7: a 1×1 convolution to one channel, min-max normalised to [0, 1] per image."""

    def __init__(self, channels: int):
        super().__init__()
        self.project = nn.Conv2d(channels, 1, 1, bias=False)  # min-max would remove a bias

    def forward(self, x: Tensor) -> Tensor:
        x = self.project(x)
        lowest = x.amin((2, 3), keepdim=True)
        return (x - lowest) / (x.amax((2, 3), keepdim=True) - lowest + 1e-6)


class DuCos(nn.Module):
    """The paper's network. Defaults follow its text; `configs/` and `MODELS` name other readings.

    Args:
        prompt: the foundation model, built outside; None for the ablation without one.
        channels: width C of every depth feature.
        stages: correlative fusions in series. Eq. 8 feeds "D_4, produced from the fourth module"
            into the tail; by Eq. 5 that map is D_5. 4 means the fourth module; 3 means D_4.
        stride: 1 works at H×W as the paper does; 4 is the compact form for CPUs, space-to-depth
            in and learned upsampling out.
        deconvolve: lift prompt features by deconvolution and interpolation, or interpolation only
            (for prompts whose maps are already fine).
        stage_residual: add each stage's input to its output.
        gather_stages: hand all stages to the tail instead of the last alone.
        residual: the tail predicts the difference from the bicubic input.
        tail: "convolution" (Eq. 8) or "mixing" (see models.mixing).
        corrections: how often the mixing tail hands back what the shrunk result misses.
        guided: with the mixing tail, also regress the measurements on the colours (see
            models.guide), show both to the body and let the tail follow the fit.
        wide: if guided, regress over a wide neighbourhood, too.
        align: project every stage for the alignment constraint.
        hinted: can be told which of SENSORS made the map.
    """

    def __init__(
        self,
        prompt: PromptModel | None,
        *,
        channels: int = 64,
        iterations: int = 4,
        stages: int = 4,
        blocks: int = 2,
        fusion: str = "pearson",
        recurrence: str = "literal",
        stride: int = 1,
        deconvolve: bool = True,
        stage_residual: bool = False,
        gather_stages: bool = False,
        residual: bool = False,
        tail: str = "convolution",
        corrections: int = 4,
        guided: bool = False,
        wide: bool = False,
        align: bool = True,
        hinted: bool = False,
    ):
        super().__init__()
        _check("fusion", fusion, FUSIONS)
        _check("recurrence", recurrence, RECURRENCES)
        _check("tail", tail, TAILS)
        counts = {
            "channels": channels,
            "iterations": iterations,
            "blocks": blocks,
            "stride": stride,
        }
        for name, value in counts.items():
            if value < 1:
                raise InputError(f"{name} must be at least 1, got {value}")
        if corrections < 0:
            raise InputError(f"corrections must be 0 or more, got {corrections}")
        if guided and tail != "mixing":
            raise InputError(f"guided needs the mixing tail, got tail={tail!r}")
        if wide and not guided:
            raise InputError("wide needs guided, got guided=False")
        if not 1 <= stages <= 4:
            raise InputError(f"stages must be 1 to 4 (a prompt has four features), got {stages}")
        self.prompt: Any = ImageBranch(channels, stride, blocks) if prompt is None else prompt
        self.stride = stride
        self.multiple = 1 if stride == 1 else COMPACT_MULTIPLE
        self.residual = residual
        self.stage_residual = stage_residual
        self.mixes = tail == "mixing"
        self.windows = list(WINDOWS)[: 1 + wide] if guided else []

        inputs = stride**2
        if self.mixes:
            inputs = 2 * stride**2 + 2 * stride + 4
        if guided:
            inputs += (3 + len(self.windows)) * stride**2
        self.head = nn.Conv2d(inputs, channels, 3, padding=1)  # F_τ1 of Eq. 1b
        self.hints = nn.Embedding(len(SENSORS), channels) if hinted else None
        if self.hints is not None:
            nn.init.zeros_(self.hints.weight)  # at first, a hint changes nothing
        self.lifts = nn.ModuleList(
            Lift(self.prompt.channels[i], channels, deconvolve=deconvolve) for i in range(stages)
        )
        self.fusions = nn.ModuleList(
            CorrelativeFusion(
                channels,
                iterations=iterations,
                fusion=fusion,
                recurrence=recurrence,
                blocks=blocks,
            )
            for _ in range(stages)
        )
        self.alignments = nn.ModuleList(Alignment(channels) for _ in range(stages if align else 0))
        self.gathered = nn.Conv2d(channels * (stages + 1), channels, 1) if gather_stages else None
        self.tail: Any
        if self.mixes:
            self.tail = MixingTail(
                channels, stride=stride, corrections=corrections, guides=len(self.windows)
            )
        else:
            self.tail = nn.Conv2d(channels, stride**2, 3, padding=1)  # F_τ3 of Eq. 8

    def forward(
        self,
        rgb: Tensor,
        low: Tensor,
        valid: Tensor | None = None,
        prompt: Prompt | None = None,
        sensor: Tensor | None = None,
    ) -> Prediction:
        """rgb (B, 3, H, W) in [0, 1], low (B, 1, h, w) normalised -> depth (B, 1, H, W).

        prompt: what the foundation model says about exactly this rgb, where training has it stored.
        sensor: (B,) which of SENSORS made each map, for hinted networks; None: unknown.
        """
        size = (rgb.shape[-2], rgb.shape[-1])
        H, W = size
        if valid is not None and bool(valid.all()):
            valid = None
        if prompt is None:
            prompt = run_prompt(self.prompt, pad_to_multiple(rgb, self.multiple))  # Eq. 1a
        guided = None
        up = bicubic(low, size)  # X of the paper
        if self.mixes:
            window = window_of((low.shape[-2], low.shape[-1]), size, low)
            neighbours = gather(low, window)
            mean, contrast = local_contrast(low, window)
            if self.windows:
                guided = follow(rgb, low, valid, up, contrast, self.windows)
            inputs = self.describe(up, mean, contrast, window, low, valid, rgb, guided)
        else:
            inputs = F.pixel_unshuffle(pad_to_multiple(up, self.multiple), self.stride)
        depth = self.told(self.head(inputs), sensor)  # D_1, Eq. 1b

        maps, alignment = [depth], []
        for i, fusion in enumerate(self.fusions):
            lifted = self.lifts[i](prompt.features[i], depth.shape[-2:])  # F̂_i, Eq. 2a
            fused, blended = fusion(lifted, depth)
            depth = depth + fused if self.stage_residual else fused
            maps.append(depth)
            if self.alignments and torch.is_grad_enabled():  # only the constraint needs them
                alignment.append((self.alignments[i](blended), self.alignments[i](lifted)))
        if self.gathered is not None:
            depth = self.gathered(torch.cat(maps, 1))

        if self.mixes:
            prediction = self.tail(depth, low, valid, up, window, neighbours, contrast, guided)
        else:
            out = F.pixel_shuffle(self.tail(depth), self.stride)[..., :H, :W]  # Eq. 8
            prediction = Prediction(up + out if self.residual else out)
        prediction.aux["alignment"] = alignment
        if prompt.depth is not None:
            prediction.aux["prompt_depth"] = prompt.depth[..., :H, :W]
            prediction.aux["prompt_inverse"] = self.prompt.inverse
        return prediction

    def told(self, depth: Tensor, sensor: Tensor | None) -> Tensor:
        """D_1 (B, C, H, W), shifted by what is learned about its sensor (B,)."""
        if self.hints is None:
            return depth
        if sensor is None:
            sensor = torch.zeros(len(depth), dtype=torch.long, device=depth.device)
        return depth + self.hints(sensor)[:, :, None, None].to(depth.dtype)

    def describe(
        self,
        up: Tensor,
        mean: Tensor,
        contrast: Tensor,
        window: Window,
        low: Tensor,
        valid: Tensor | None,
        rgb: Tensor,
        guided: Tensor | None,
    ) -> Tensor:
        """What the compact body sees: the bicubic map as it is and relative to its surroundings,
        the guided depths relative to it and the colours where the network is guided, the local
        contrast, the position between measurements, the ratio, and where holes are.

        Returns (B, 2 s² + 2 s + 4, H/s, W/s) for stride s, 3 s² channels more if guided and s² for
        each guided depth.
        """
        s = self.stride
        B, _, H, W = up.shape
        relative = (up - mean) / (contrast + 1e-3)
        log_contrast = (contrast + 1e-3).log() / 4
        hole = torch.zeros_like(up)
        if valid is not None:
            hole = spline_mean((~valid).to(up.dtype), window)
        full = pad_to_multiple(torch.cat([up, relative, log_contrast, hole], 1), self.multiple)
        detail = [F.pixel_unshuffle(full[:, :2], s)]  # (B, 2 s², H/s, W/s)
        if guided is not None:
            leads = (guided - up) / (contrast + 1e-3)
            ahead = torch.cat([leads[:, :1], rgb * 2 - 1, leads[:, 1:]], 1)
            detail.append(F.pixel_unshuffle(pad_to_multiple(ahead, self.multiple), s))
        coarse = F.avg_pool2d(full[:, 2:], s)  # (B, 2, H/s, W/s)
        # The phase depends on the row or the column alone: s values each suffice per cell.
        phase = pad_to_multiple(window.phase, self.multiple)
        rows = F.pixel_unshuffle(phase[:, :1], s)[:, ::s]
        columns = F.pixel_unshuffle(phase[:, 1:], s)[:, :s]
        position = torch.cat([rows, columns], 1).expand(B, -1, -1, -1)
        ratio = up.new_tensor([H / low.shape[-2], W / low.shape[-1]]).log2() / 4
        ratio = ratio[None, :, None, None].expand(B, 2, *coarse.shape[-2:])
        return torch.cat([*detail, coarse, position, ratio], 1)


def _check(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
