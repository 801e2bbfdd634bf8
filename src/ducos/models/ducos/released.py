"""DuCos as its authors released it: the network behind the published figures.

It differs from the paper's text in several ways (`docs/paper.md` lists them): one merged prompt map
instead of four, residual groups in series over it, a depth branch that widens from 64 to 324
channels, convolutions inside the fusion, and a tail over all stages. Module names are the authors',
so their checkpoints load as they are; the wiring is checked against stored outputs of their code.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.deferred import kept
from ducos.errors import InputError
from ducos.models.blocks import Gathered, ResidualGroup, moments
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.prompts import run_prompt
from ducos.resize import bicubic

WIDTHS = (64, 96, 144, 216, 324)
FUSED_WIDTH = 144
# The original has no epsilon and gives NaN on constant channels; this one is below its rounding.
PEARSON_EPS = 1e-12


class Fusion(nn.Module):
    """Correlative fusion as released: both sides of the blend stay, only the weights change.

    mixed R and depth D, both (B, w, H, W) -> (B, 1.5 w, H, W).
    """

    def __init__(self, width: int, rounds: int = 3):
        super().__init__()
        wider = width * 3 // 2
        self.rounds = rounds
        self.conv_rgbd = nn.Conv2d(2 * width, wider, 3, padding=1)
        self.conv_depth = nn.Conv2d(width, wider, 3, padding=1)
        self.fc_depth_out = nn.Conv2d(wider, wider, 1)

    def forward(self, mixed: Tensor, depth: Tensor) -> Tensor:
        # In strips both are computed twice (once for their statistics) rather than kept: they are
        # the widest maps of all.
        guided = self.conv_rgbd(torch.cat([mixed, depth], 1))
        plain = self.conv_depth(depth)
        both = moments(guided, plain)
        alpha = torch.sigmoid(both.pearson(PEARSON_EPS))
        for _ in range(self.rounds):
            alpha = torch.sigmoid(both.blended(alpha).pearson(PEARSON_EPS))
        alpha = alpha.to(plain.dtype)
        return self.fc_depth_out(alpha * guided + (1 - alpha) * plain)


class FusionNetwork(nn.Module):
    """The depth branch: bicubic depth and one prompt map -> depth and the two alignment maps."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(nn.Conv2d(1, 64, 3, padding=1))
        self.head_rgb = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1))  # never used, in checkpoints
        self.gnn = nn.ModuleList(Fusion(width) for width in WIDTHS[:4])
        self.c_d1 = ResidualGroup(WIDTHS[0], 6)
        self.c_d2 = ResidualGroup(WIDTHS[1], 4)
        self.c_d3 = ResidualGroup(WIDTHS[2], 2)
        self.c_d4 = ResidualGroup(WIDTHS[3], 2)
        self.c_d5 = nn.Sequential(
            nn.Conv2d(sum(WIDTHS[:4]) + FUSED_WIDTH, 64, 1), ResidualGroup(64, 4)
        )
        self.c_r1 = nn.Conv2d(WIDTHS[0] + 64, WIDTHS[0], 1)
        self.c_r2 = nn.Conv2d(WIDTHS[1] + 64, WIDTHS[1], 1)
        self.c_r3 = nn.Conv2d(WIDTHS[2] + 64, WIDTHS[2], 1)
        self.c_r4 = nn.Conv2d(WIDTHS[3] + 64, WIDTHS[3], 1)
        self.c_r5 = nn.Conv2d(WIDTHS[4], FUSED_WIDTH, 1)
        self.c_da2_r1 = ResidualGroup(64, 2)
        self.c_da2_r2 = ResidualGroup(64, 2)
        self.c_da2_r3 = ResidualGroup(64, 2)
        self.c_da2_r4 = ResidualGroup(64, 2)
        self.conv1 = nn.Conv2d(WIDTHS[3], 1, 3, padding=1)
        self.conv2 = nn.Conv2d(FUSED_WIDTH, 1, 3, padding=1)
        self.tail = nn.Sequential(ResidualGroup(64, 4), nn.Conv2d(64, 1, 3, padding=1))

    def forward(self, depth: Tensor, prompt: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """depth (B, 1, H, W), prompt (B, 64, H, W) -> prediction and two maps in [0, 1]."""
        stem = kept(self.head(depth))
        x = kept(self.c_d1(stem))
        merge, deep = self.c_d5
        assert isinstance(merge, nn.Conv2d)
        gathered = Gathered(merge)
        gathered.add(x)
        groups = (self.c_da2_r1, self.c_da2_r2, self.c_da2_r3, self.c_da2_r4)
        reduce = (self.c_r1, self.c_r2, self.c_r3, self.c_r4)
        deepen = (self.c_d2, self.c_d3, self.c_d4, self.c_r5)
        mixed = x
        for i in range(4):
            prompt = groups[i](prompt)
            # The original activates in place: stages 1-3 fuse activated prompt maps, 4 a raw one.
            prompt = kept(F.leaky_relu(prompt, 0.1) if i < 3 else prompt)
            mixed = reduce[i](torch.cat([x, prompt], 1))
            fused = F.leaky_relu(self.gnn[i](mixed, x), 0.1)
            x = kept(deepen[i](kept(fused) if i < 3 else fused))
            del fused  # in strips, the next stage needs its room
            gathered.add(x)
        aligned = (torch.sigmoid(self.conv1(mixed)), torch.sigmoid(self.conv2(x)))
        return self.tail(kept(deep(gathered.result()) + stem)), *aligned


class DuCosReleased(Model):
    """The whole released model: foundation model, prompt adapter, fusion network."""

    in_strips = True

    def __init__(self, prompt: Any):
        super().__init__()
        self.dsrn = FusionNetwork()
        self.depth_anything = prompt
        self.projects = nn.ModuleList(nn.Conv2d(c, 64, 1) for c in prompt.channels)
        self.cc1 = nn.Conv2d(4 * 64, 64, 1)
        self.resize_layer = nn.Sequential(
            nn.ConvTranspose2d(64, 64, 4, stride=4),
            nn.LeakyReLU(0.2),
            nn.ConvTranspose2d(64, 64, 2, stride=2),
        )
        self.cc2 = nn.Conv2d(64, 64, 3, padding=1)

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W) in [0, 1], low (B, 1, h, w) normalised -> depth (B, 1, H, W)."""
        return self.restore(rgb, bicubic(low, (rgb.shape[-2], rgb.shape[-1])))

    def restore(self, rgb: Tensor, up: Tensor) -> Prediction:
        """The authors' function: rgb (B, 3, H, W) and bicubic depth (B, 1, H, W)."""
        prompt = run_prompt(self.depth_anything, rgb)
        sizes = {tuple(feature.shape[-2:]) for feature in prompt.features}
        if len(sizes) > 1:
            raise InputError(
                f"ducos-released merges four prompt maps of one size, got {sorted(sizes)}; "
                "choose a ViT prompt such as depth-anything-v2-s or dinov2-s"
            )
        projected = [layer(f) for layer, f in zip(self.projects, prompt.features, strict=True)]
        lifted = self.resize_layer(self.cc1(torch.cat(projected, 1)))
        lifted = F.interpolate(lifted, size=up.shape[-2:], mode="bicubic", align_corners=True)
        depth, rgb_map, depth_map = self.dsrn(up, kept(self.cc2(lifted)))
        aux: dict[str, Any] = {"alignment": [(depth_map, rgb_map)]}
        if prompt.depth is not None:
            aux["prompt_depth"] = prompt.depth
            aux["prompt_inverse"] = self.depth_anything.inverse
        return Prediction(depth, aux)

    def bytes_per_pixel(self) -> float:
        """Stages, prompt maps, and the last fusion: its maps and the copies that convolutions
        make."""
        return 4 * (sum(WIDTHS) + 5 * 64 + 10 * WIDTHS[-1])
