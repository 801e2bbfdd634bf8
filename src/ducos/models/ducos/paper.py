"""DuCos: prompt learning for depth super-resolution (section 3.1 of the paper, in its order).

The constraints (Eq. 7 and 9-10) are in `training.losses`, the Lagrangian duality (section 3.2) in
`training.dual`. `docs/paper.md` maps every equation to its function and lists the choices the text
leaves open.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ducos.deferred import kept
from ducos.errors import InputError
from ducos.models.ducos.fusion import Alignment, CorrelativeFusion, Lift, check_counts
from ducos.models.ducos.image_branch import ImageBranch
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.prompts import Prompt, PromptModel, run_prompt
from ducos.resize import bicubic


class DuCos(Model):
    """The paper's network, at H×W. The defaults follow its text.

    Args:
        prompt: the foundation model, built outside; None for the ablation without one.
        channels: width C of every depth feature.
        iterations, fusion, recurrence, blocks: see `CorrelativeFusion`.
        stages: correlative fusions in series. Eq. 8 feeds "D_4, produced from the fourth module"
            into the tail; by Eq. 5 that map is D_5. 4 means the fourth module; 3 means D_4.
        deconvolve: lift prompt features by deconvolution and interpolation, or interpolation only
            (for prompts whose maps are already fine).
        residual: the tail predicts the difference from the bicubic input.
        align: project every stage for the alignment constraint.
    """

    takes_prompt = True
    in_strips = True

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
        deconvolve: bool = True,
        residual: bool = False,
        align: bool = True,
    ):
        super().__init__()
        check_counts(channels=channels, iterations=iterations, blocks=blocks)
        if not 1 <= stages <= 4:
            raise InputError(f"stages must be 1 to 4 (a prompt has four features), got {stages}")
        self.prompt: Any = ImageBranch(channels, 1, blocks) if prompt is None else prompt
        self.residual = residual
        self.head = nn.Conv2d(1, channels, 3, padding=1)  # F_τ1 of Eq. 1b
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
        self.tail = nn.Conv2d(channels, 1, 3, padding=1)  # F_τ3 of Eq. 8

    def forward(
        self,
        rgb: Tensor,
        low: Tensor,
        valid: Tensor | None = None,
        told: Told | None = None,
        prompt: Prompt | None = None,
    ) -> Prediction:
        """rgb (B, 3, H, W) in [0, 1], low (B, 1, h, w) normalised -> depth (B, 1, H, W)."""
        size = (rgb.shape[-2], rgb.shape[-1])
        if prompt is None:
            prompt = run_prompt(self.prompt, rgb)  # F_1 to F_4 and Y′, Eq. 1a
        up = bicubic(low, size)  # X of the paper
        depth = kept(self.head(up))  # D_1, Eq. 1b
        alignment = []
        for i, fusion in enumerate(self.fusions):
            lifted = self.lifts[i](prompt.features[i], size)  # F̂_i, Eq. 2a
            fused, blended = fusion(lifted, depth)  # D_{i+1} and D̃_i, Eq. 2b-6
            depth = kept(fused)
            if self.alignments and torch.is_grad_enabled():  # only the constraint needs them
                alignment.append((self.alignments[i](blended), self.alignments[i](lifted)))  # Eq. 7
            del lifted, fused, blended  # in strips, the next stage needs their room
        out = self.tail(depth)  # Y, Eq. 8
        aux: dict[str, Any] = {"alignment": alignment}
        if prompt.depth is not None:
            aux |= {"prompt_depth": prompt.depth, "prompt_inverse": self.prompt.inverse}
        return Prediction(up + out if self.residual else out, aux)

    def bytes_per_pixel(self) -> float:
        """Features alive at once: D_i, four prompt features, and what a residual group holds."""
        return 4 * (3 + (len(self.fusions) + 10) * self.head.out_channels)
