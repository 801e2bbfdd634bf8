"""The whole prediction as one module: metres, trust and image in; depth, sigma and source out.

It is what an exported file computes. `upscaling.predict` does the same for torch, with words and
without what a graph cannot ask; the parity table holds the two against each other.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.kernels import FARTHER
from ducos.models import as_model
from ducos.normalise import range_of
from ducos.resize import nearest
from ducos.upscaling import doubted

INPUTS = ("image", "depth", "trust", "noise", "metric", "mode", "sensor")
OUTPUTS = ("depth_out", "sigma", "source")


class WholePass(nn.Module):
    """A model from metres to metres; see `forward`."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.network = as_model(model)

    def forward(
        self,
        image: Tensor,
        depth: Tensor,
        trust: Tensor,
        noise: Tensor,
        metric: Tensor,
        mode: Tensor,
        sensor: Tensor,
        prior: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What a network makes of measurements, with all that surrounds it.

        Args:
            image: (B, 3, H, W) RGB in [0, 1].
            depth: (B, 1, h, w) metres, h ≤ H and w ≤ W; the values of holes do not matter.
            trust: (B, 1, h, w) in [0, 1]; 0 is a hole. A mask has 0 and 1.
            noise: (B,) one standard deviation of depth in metres; 0 if not known.
            metric: (B,) 1 for distances; 0 for relative maps, of which nobody knows what is near.
            mode, sensor: (B,) int64, places among the words of the network, see `words_of`.
            prior: (B, 1, H, W), any relative depth of the image; no input of exported files.

        Returns:
            depth (B, 1, H, W) in metres; sigma (B, 1, H, W), 0 from models that have none; source
            (B, 1, H, W) uint8, see `upscaling.SOURCES`.
        """
        valid = trust > 0
        limits = range_of(depth, valid)
        each = (slice(None), None, None, None)
        filled = doubted(depth, trust, image, FARTHER * metric[each])
        normalised = limits.apply(filled)
        known = {"noise": noise[each] / limits.span} if self.network.takes_noise else {}
        if prior is not None:
            known["prior"] = prior
        told = {"mode": mode, "sensor": sensor}
        told = {subject: told[subject] for subject in self.network.subjects}
        sure = trust if self.network.takes_confidence else valid
        prediction = self.network(image, normalised, sure, told, **known)
        metres = limits.undo(prediction.depth)
        # As everywhere: nothing is nearer than half the nearest measurement.
        half = 0.5 * limits.lowest
        metres = torch.where(half > 0, torch.maximum(metres, half), metres)
        sigma = prediction.aux.get("sigma", torch.zeros_like(metres)) * limits.span
        return metres, sigma, self.source(valid, image)

    @staticmethod
    def source(valid: Tensor, image: Tensor) -> Tensor:
        """Where each pixel comes from: 1 measured, 2 a measurement is near, 3 inferred."""
        size = (image.shape[-2], image.shape[-1])
        share = valid.to(image.dtype)
        measured = nearest(share, size)
        near = nearest(F.max_pool2d(share, 5, stride=1, padding=2), size)
        return (3 - near - measured).to(torch.uint8)
