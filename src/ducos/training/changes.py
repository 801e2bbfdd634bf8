"""What is done to ground truth, images and masks, one at a time: the changes behind `augment`."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ducos.arrays import Floats, Mask, Size
from ducos.errors import needed

cv2 = needed("cv2", "train")


def jitter_edges(
    target: Floats, valid: Mask, rng: np.random.Generator, beside: Any = (0.0, 0.0)
) -> tuple[Floats, Mask]:
    """Ground truth (n, n) picked from places up to a few pixels off, which drift along the edges;
    all of it moved by `beside` pixels, left and up."""
    drift = rng.normal(size=(*target.shape, 2)).astype(np.float32)
    drift = np.asarray(cv2.GaussianBlur(drift, (0, 0), float(np.exp(rng.uniform(0.3, 2)))))
    drift *= rng.uniform(0.2, 1.4) / max(float(drift.std()), 1e-6)
    rows, columns = np.mgrid[: target.shape[0], : target.shape[1]].astype(np.float32)
    drift += np.asarray(beside, np.float32)
    places = columns + drift[..., 0], rows + drift[..., 1]

    def picked(m: Any) -> Any:
        return cv2.remap(m, *places, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE)

    return picked(target), picked(valid.astype(np.uint8)) > 0


def blur_depth(target: Floats, valid: Mask, sigma: float) -> Floats:
    """Ground truth (n, n), blurred by a Gaussian of sigma pixels; only what is valid counts."""
    share = cv2.GaussianBlur(valid.astype(np.float32), (0, 0), sigma)
    total = cv2.GaussianBlur(np.where(valid, target, 0).astype(np.float32), (0, 0), sigma)
    return np.where(valid, total / np.maximum(share, 1e-6), target).astype(np.float32)


def measure_again(target: Floats, valid: Mask, rng: np.random.Generator) -> tuple[Floats, Mask]:
    """Ground truth (n, n) as another, finer device would have measured it: its edges waver, it is
    soft by 0.3 to 1.5 pixels and misaligned by up to 3 pixels, mostly far less."""
    target, valid = jitter_edges(target, valid, rng, beside=3 * rng.uniform(-1, 1, 2) ** 3)
    return blur_depth(target, valid, rng.uniform(0.3, 1.5)), valid


def add_grain(target: Floats, valid: Mask, rng: np.random.Generator, coarsest: float) -> Floats:
    """Ground truth (n, n) with noise in spots of 0.5 to `coarsest` pixels, at most 2 % r.m.s. of
    the depths' range; what is not valid stays. (Middlebury's has about 2 pixels, 0.5 to 1.2 %.)"""
    if not valid.any():
        return target
    spots = rng.normal(size=target.shape).astype(np.float32)
    size = 0.5 * (max(coarsest, 0.5) / 0.5) ** rng.random()
    spots = np.asarray(cv2.GaussianBlur(spots, (0, 0), float(size)))
    strength = 0.02 * rng.random() * float(np.ptp(target[valid]))
    spots *= strength / max(float(spots.std()), 1e-6)
    return np.where(valid, target + spots, target).astype(np.float32)


def recolour(image: Floats, strength: float, rng: np.random.Generator) -> Floats:
    """Gamma, gain, tint, grey, blur, noise and JPEG, as between cameras."""
    rgb: Any = image
    gamma, gain = np.exp(rng.normal(0, 0.3 * strength, 2))
    tint = np.exp(rng.normal(0, 0.08 * strength, 3))
    rgb = np.clip(gain * tint * rgb.astype(np.float64) ** gamma, 0, 1)
    if rng.random() < 0.1 * strength:
        rgb = np.repeat(rgb.mean(2, keepdims=True), 3, 2)
    if rng.random() < 0.3 * strength:
        rgb = cv2.GaussianBlur(rgb, (0, 0), rng.uniform(0.3, 1.0))
    if rng.random() < 0.5 * strength:
        rgb = rgb + rng.normal(0, rng.uniform(0, 0.03), rgb.shape)
    rgb = np.clip(rgb, 0, 1)
    if rng.random() < 0.3 * strength:
        quality = int(rng.integers(50, 96))
        code = cv2.imencode(
            ".jpg", (rgb * 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, quality]
        )
        rgb = np.asarray(cv2.imdecode(code[1], cv2.IMREAD_COLOR)) / 255.0
    return np.asarray(rgb, np.float32)


def corrupt_image(image: Tensor, rng: np.random.Generator) -> Tensor:
    """An image (3, n, n) that tells less: grey, framed, faded to one colour, upside down (which
    stands for an image of something else), or several of these."""
    image = image.clone()
    grey, framed = rng.random(2) < 0.5
    if grey:
        image[:] = image.mean(0)
    fate = rng.choice(["kept", "faded", "foreign"])
    if fate == "faded":
        colour = torch.from_numpy(rng.uniform(0, 1, (3, 1, 1))).to(image)
        if rng.random() < 0.5:
            colour = 0 * colour  # darkness
        image = colour + float(rng.choice([0.0, 0.3 * rng.random()])) * (image - colour)
        noise = torch.from_numpy(rng.normal(0, rng.uniform(0, 0.03), image.shape)).to(image)
        image = (image + noise).clamp(0, 1)
    if fate == "foreign":
        image = image.flip(1, 2)
    if framed:
        shade = float(rng.choice([0.0, 1.0, rng.random()]))
        top, bottom, left, right = (rng.integers(0, 13, 4) * (rng.random(4) < 0.6)).tolist()
        inside = torch.zeros(image.shape[1:], dtype=torch.bool)
        inside[top : image.shape[1] - bottom, left : image.shape[2] - right] = True
        image = torch.where(inside, image, shade)
    return image


def add_shadows(image: Tensor, rng: np.random.Generator) -> Tensor:
    """An image (3, H, W) with lines that are no edges of the depth (shadows, folds) and spots
    where edges of the depth cannot be seen, as between cloth and cloth."""
    rgb: Any = image.permute(1, 2, 0).numpy()
    size = (rgb.shape[0], rgb.shape[1])
    for _ in range(int(rng.integers(0, 3))):
        light = rng.uniform(0.35, 0.95) * np.exp(rng.normal(0, 0.04, 3))
        rgb = rgb * (1 + random_regions(size, rng)[..., None] * (light - 1))
    for _ in range(int(rng.integers(0, 2))):
        blank = cv2.GaussianBlur(rgb, (0, 0), float(rng.uniform(5, 15)))
        texture = rng.normal(0, rng.uniform(0, 0.03), rgb.shape)
        rgb = rgb + random_regions(size, rng)[..., None] * (blank + texture - rgb)
    return torch.from_numpy(np.clip(rgb, 0, 1).astype(np.float32)).permute(2, 0, 1).to(image)


def random_regions(size: Size, rng: np.random.Generator) -> Floats:
    """A mask (H, W), 0 to 1: about a third of it 1, in a few regions of smooth outline."""
    field: Any = rng.normal(size=size).astype(np.float32)
    finest, coarsest = 6, max(7, min(size) / 4)
    extent = finest * (coarsest / finest) ** rng.random()
    field = cv2.GaussianBlur(field, (0, 0), extent)
    inside = (field > np.quantile(field, rng.uniform(0.5, 0.85))).astype(np.float32)
    return np.asarray(cv2.GaussianBlur(inside, (0, 0), float(rng.uniform(0.3, 2.5))))


def punch_holes(valid: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    """Knock blobs out of a share of the masks (B, 1, h, w), up to a third of a map wide."""
    valid = valid.clone()
    h, w = valid.shape[-2:]
    for sample in valid:
        if rng.random() >= share:
            continue
        for _ in range(int(rng.integers(1, 8))):
            y, x = rng.uniform(0, h), rng.uniform(0, w)
            radius = np.exp(rng.uniform(np.log(0.5), np.log(max(1.0, min(h, w) / 6))))
            rows = torch.arange(h)[:, None] + 0.5 - y
            columns = torch.arange(w)[None] + 0.5 - x
            sample[0] &= rows**2 + columns**2 > radius**2
    return valid
