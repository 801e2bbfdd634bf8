"""A prompt's relative depth fitted to the low-resolution map: how `tiny` is pre-trained.

Training this model with the objective `prompt` runs nothing but the prompt, so its features and
its depth are learned at a fraction of the cost of the whole network.
"""

from typing import Any

from torch import Tensor

from ducos.errors import InputError
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.prompts import run_prompt
from ducos.resize import bicubic


class PromptAlone(Model):
    """Scale and shift of Y′ by least squares against the bicubic map, nothing else."""

    def __init__(self, prompt: Any):
        super().__init__()
        self.prompt = prompt

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W) in [0, 1], low (B, 1, h, w) normalised -> depth (B, 1, H, W)."""
        relative = run_prompt(self.prompt, rgb).depth
        if relative is None:
            raise InputError("prompt-alone needs a prompt that gives depth; this one has none")
        up = bicubic(low, (rgb.shape[-2], rgb.shape[-1]))
        centred = relative - relative.mean((2, 3), keepdim=True)
        mean = up.mean((2, 3), keepdim=True)
        variance = (centred**2).mean((2, 3), keepdim=True)
        slope = (centred * (up - mean)).mean((2, 3), keepdim=True) / variance.clamp_min(1e-8)
        aux = {"prompt_depth": relative, "prompt_inverse": self.prompt.inverse}
        return Prediction(mean + slope * centred, aux)
