"""What every model returns."""

from dataclasses import dataclass, field

from torch import Tensor


@dataclass
class Prediction:
    """depth: (B, 1, H, W), in the range of the normalised input.

    aux carries what constraints and users may want; absent keys mean "this model has none":
      alignment: list of (depth map, prompt map) pairs, each (B, 1, ?, ?) in [0, 1], for Eq. 7
      prompt_depth: (B, 1, H, W) relative depth Y′ of the foundation model, for Eq. 9-10
      prompt_inverse: bool, True when prompt_depth grows towards the camera
      prompt_fitted: (B, 1, 1, 1), 1 where prompt_depth is in the unit of `depth` already
      leaned: (B, 1, H, W) in [0, 1], how far the result follows a prior
      sigma: (B, 1, H, W) one standard deviation of `depth`, same units
      excess: (B, 1, h, w) what was moved to keep the mode `faithful`: how far the result, shrunk,
        lay beyond the tolerance of each measurement before
    """

    depth: Tensor
    aux: dict = field(default_factory=dict)
