"""The augmentations themselves: each takes (sample, strength, rng) and changes the sample.

Their names, order, defaults and sentences are in `augmentations.AUGMENTATIONS`.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ducos.degrade import each_moved, monocular
from ducos.errors import needed
from ducos.hints import SENSORS
from ducos.training.changes import (
    add_grain,
    add_noise,
    add_shadows,
    blur_depth,
    cast_shadows,
    corrupt_image,
    fray_edges,
    grow_silhouettes,
    jitter_edges,
    measure_again,
    punch_holes,
    recolour,
    round_disparity,
)
from ducos.training.samples import Patch, Patches

cv2 = needed("cv2", "train")

Rng = np.random.Generator
COARSEST_GRAIN = 1.5  # low-resolution pixels: as coarse as the spots of `tof`


# ------------------------------------------------------------------------------- of one patch


def zoom(patch: Patch, smallest: float, rng: Rng) -> None:
    """Draw the factor by which the image is shrunk before it is cut; small ones are as likely."""
    patch.zoom = float(np.exp(rng.uniform(np.log(smallest), 0)))


def shift(patch: Patch, furthest: float, rng: Rng) -> None:
    """Move the colours against the depth; the whole image, so that its inside comes in."""
    x, y = furthest * rng.uniform(-1, 1, 2) ** 3
    (H, W), side = patch.image.shape[:2], patch.rgb.shape[0]
    move = np.array([[1, 0, x], [0, 1, y]], np.float32)
    image: Any = patch.image
    moved: Any = cv2.warpAffine(image, move, (W, H), borderMode=cv2.BORDER_REFLECT)
    top, left = int(patch.top), int(patch.left)
    patch.rgb = moved[top : top + side, left : left + side]
    if patch.prior is not None:  # it is of the image, not of the depth
        prior: Any = patch.prior
        patch.prior = cv2.warpAffine(prior, move, (side, side), borderMode=cv2.BORDER_REFLECT)
    patch.top, patch.left = top - y, left - x


def prior(patch: Patch, share: float, rng: Rng) -> None:
    """A monocular model has looked at the image."""
    if rng.random() < share:
        patch.prior = monocular(patch.target, patch.valid, patch.rgb, rng)


def flip(patch: Patch, on: float, rng: Rng) -> None:
    """Mirror it with even odds."""
    if rng.random() < 0.5 and on:
        patch.mirror = True
        patch.turn(lambda m: m[:, ::-1])


def turn(patch: Patch, on: float, rng: Rng) -> None:
    """Turn it upside down and transpose it, each with even odds."""
    upside_down, transpose = rng.random(2) < 0.5
    if upside_down and on:
        patch.upside_down = True
        patch.turn(lambda m: m[::-1])
    if transpose and on:
        patch.transpose = True
        patch.turn(lambda m: np.swapaxes(m, 0, 1))


def fatten(patch: Patch, share: float, rng: Rng) -> None:
    """Silhouettes of the ground truth grow or shrink."""
    if rng.random() < share:
        patch.target = grow_silhouettes(patch.target, patch.valid, rng)


def ragged(patch: Patch, share: float, rng: Rng) -> None:
    """Edges of the ground truth are ragged."""
    if rng.random() < share:
        patch.target, patch.valid = fray_edges(patch.target, patch.valid, rng)


def disparity_steps(patch: Patch, share: float, rng: Rng) -> None:
    """The ground truth comes in steps of inverse depth."""
    if rng.random() < share:
        patch.target = round_disparity(patch.target, patch.valid, rng)


def invert(patch: Patch, share: float, rng: Rng) -> None:
    """Depth becomes inverse depth, if mere resampling follows: a sensor model needs metres."""
    if rng.random() < share and patch.kind == "resampled":
        patch.inverse = True
        patch.valid = patch.valid & (patch.target > 0)
        target = np.where(patch.valid, patch.target, 1)
        patch.target = np.where(patch.valid, 1 / target, 0).astype(np.float32)


def edge_jitter(patch: Patch, share: float, rng: Rng) -> None:
    """Depth edges waver about the image's."""
    if rng.random() < share:
        patch.target, patch.valid = jitter_edges(patch.target, patch.valid, rng)


def blur_target(patch: Patch, share: float, rng: Rng) -> None:
    """The ground truth is soft by 0.3 to 4.5 pixels."""
    if rng.random() < share:
        patch.target = blur_depth(patch.target, patch.valid, 0.3 * 15 ** rng.random())


def grain_noise(patch: Patch, share: float, rng: Rng) -> None:
    """The ground truth has grain."""
    if rng.random() < share:
        coarsest = COARSEST_GRAIN * patch.scale
        patch.target = add_grain(patch.target, patch.valid, rng, coarsest)


def quantise(patch: Patch, share: float, rng: Rng) -> None:
    """Depths are rounded to 60 to 255 levels."""
    if rng.random() < share and patch.valid.any():
        known = patch.target[patch.valid]
        step = max(float(known.max()) - float(known.min()), 1e-6) / rng.uniform(60, 255)
        rounded = np.round(patch.target / step) * step
        patch.target = np.where(patch.valid, rounded, 0).astype(np.float32)


def colour(patch: Patch, strength: float, rng: Rng) -> None:
    """Another camera's colours."""
    patch.rgb = recolour(patch.rgb, strength, rng)


# -------------------------------------------------------------------------------- of a batch


def misalign(scene: Patches, furthest: float, rng: Rng) -> None:
    """Move what a sensor sees; `furthest` in pixels of its map. The camera beside the sensor is
    calibrated only so well, and the ground truth goes with the camera."""
    drawn = furthest * scene.scale * rng.uniform(-1, 1, (len(scene.rgb), 2)) ** 3
    moves = torch.from_numpy(drawn).round().long()
    scene.rgb, scene.target, scene.valid = (
        each_moved(m, moves) for m in (scene.rgb, scene.target, scene.valid)
    )


def reference_noise(patches: Patches, share: float, rng: Rng) -> None:
    """The ground truth of some is that of another device; real sensors are judged by such."""
    patches.target, patches.valid = patches.target.clone(), patches.valid.clone()
    for i in np.flatnonzero(rng.random(len(patches.target)) < share):
        known = patches.target[i, 0].numpy(), patches.valid[i, 0].numpy()
        again = measure_again(*known, rng)
        patches.target[i, 0], patches.valid[i, 0] = map(torch.from_numpy, again)


def shadows(patches: Patches, share: float, rng: Rng) -> None:
    """Shadows in some images. Maps are made before: sensors with their own light see no shadow."""
    patches.rgb = some(patches.rgb, share, add_shadows, rng)


def corrupt_rgb(patches: Patches, share: float, rng: Rng) -> None:
    """Some images tell less than they should."""
    patches.rgb = some(patches.rgb, share, corrupt_image, rng)


def some(rgb: Tensor, share: float, change: Any, rng: Rng) -> Tensor:
    """Images (B, 3, n, n), a share of them changed."""
    chosen = rng.random(len(rgb)) < share
    images = zip(rgb, chosen, strict=True)
    return torch.stack([change(image, rng) if bad else image for image, bad in images])


def holes(patches: Patches, share: float, rng: Rng) -> None:
    """Some low-resolution maps get holes."""
    patches.low_valid = punch_holes(patches.low_valid, share, rng)


def shadow_holes(patches: Patches, share: float, rng: Rng) -> None:
    """Some low-resolution maps have no measurements where a second viewpoint sees nothing."""
    patches.low_valid = patches.low_valid.clone()
    for i in np.flatnonzero(rng.random(len(patches.low)) < share):
        known = patches.low[i, 0].numpy(), patches.low_valid[i, 0].numpy()
        kept = cast_shadows(*known, bool(patches.inverse[i]), rng)
        patches.low_valid[i, 0] = torch.from_numpy(kept)


def input_noise(patches: Patches, share: float, rng: Rng) -> None:
    """Some low-resolution maps have noise that the ground truth does not have."""
    patches.low, patches.noise = patches.low.clone(), patches.noise.clone()
    for i in np.flatnonzero(rng.random(len(patches.low)) < share):
        known = patches.low[i, 0].numpy(), patches.low_valid[i, 0].numpy()
        noisy, patches.noise[i] = add_noise(*known, rng)
        patches.low[i, 0] = torch.from_numpy(noisy)


def hint(patches: Patches, share: float, rng: Rng) -> None:
    """Some networks are told which sensor made their map; one without a name stays unknown."""
    named = rng.random(len(patches.rgb)) < share
    words = [
        maker if chosen and maker in SENSORS else "unknown"
        for maker, chosen in zip(patches.makers, named, strict=True)
    ]
    patches.told = {**patches.told, "sensor": tuple(words)}
