"""Prompt features meet depth features (section 3.1 of the paper, Eq. 2-7).

`CorrelativeFusion` is F_ψ of Eq. 6: D_{i+1} = F_ψ(F_i, D_i).
"""

import torch
from torch import Tensor, nn

from ducos.deferred import exporting, kept
from ducos.errors import InputError
from ducos.models.blocks import ResidualGroup, moments
from ducos.resize import Size, grown

FUSIONS = ("pearson", "add", "concat")
RECURRENCES = ("literal", "reweight")


class Lift(nn.Module):
    """Bring a prompt feature to the depth feature's width and size: F̂_i of Eq. 2a."""

    def __init__(self, prompt_channels: int, channels: int, *, deconvolve: bool):
        super().__init__()
        self.project = nn.Conv2d(prompt_channels, channels, 1)
        self.deconvolve = (
            nn.ConvTranspose2d(channels, channels, 4, stride=4) if deconvolve else nn.Identity()
        )

    def forward(self, feature: Tensor, size: Size) -> Tensor:
        return grown(self.deconvolve(self.project(feature)), size)  # (B, C, H, W)


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
        check_choice("fusion", fusion, FUSIONS)
        check_choice("recurrence", recurrence, RECURRENCES)
        check_counts(channels=channels, iterations=iterations, blocks=blocks)
        self.iterations = iterations
        self.fusion = fusion
        self.recurrence = recurrence
        self.group = ResidualGroup(channels, blocks)
        if fusion == "concat":
            self.merge = nn.Conv2d(2 * channels, channels, 1)
        self.out = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, prompt: Tensor, depth: Tensor) -> tuple[Tensor, Tensor]:
        """prompt F̂_i and depth D_i, both (B, C, H, W) -> D_{i+1} and the blended map D̃_i."""
        grouped = kept(self.group(depth))  # D̂_i, Eq. 2b
        if self.recurrence == "reweight":
            blended = self.blend(prompt, grouped, again=self.iterations - 1)
            return self.out(blended), blended
        blended = self.blend(prompt, grouped)
        for _ in range(self.iterations - 1):  # refined: the blend goes through the group again
            grouped = kept(self.group(kept(blended)))
            blended = self.blend(prompt, grouped)
        return self.out(blended), blended  # Eq. 5

    def blend(self, prompt: Tensor, depth: Tensor, *, again: int = 0) -> Tensor:
        """Mix prompt and depth (B, C, H, W) by their correlation; again: how often the weights are
        computed anew, from the prompt's correlation with the blend."""
        if self.fusion == "add":
            return prompt + depth
        if self.fusion == "concat":
            return self.merge(torch.cat([prompt, depth], 1))
        both = moments(prompt, depth)
        alpha = torch.sigmoid(both.pearson())  # Eq. 3-4a, (B, C, 1, 1)
        for _ in range(again):
            alpha = torch.sigmoid(both.blended(alpha).pearson())
        if exporting():  # as ONNX, lerp is two ways and a choice between them
            return alpha * prompt + (1 - alpha) * depth
        return torch.lerp(depth, prompt, alpha.to(depth.dtype))  # α prompt + (1 − α) depth, Eq. 4b


class Alignment(nn.Module):
    """H of Eq. 7: a 1×1 convolution to one channel, min-max normalised to [0, 1] per image."""

    def __init__(self, channels: int):
        super().__init__()
        self.project = nn.Conv2d(channels, 1, 1, bias=False)  # min-max would remove a bias

    def forward(self, x: Tensor) -> Tensor:
        x = self.project(x)
        lowest = x.amin((2, 3), keepdim=True)
        return (x - lowest) / (x.amax((2, 3), keepdim=True) - lowest + 1e-6)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a word that is none of the choices."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_counts(**counts: int) -> None:
    """Refuse a number of nothing."""
    for name, value in counts.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1, got {value}")
