"""What is done to ground truth, images and masks, one at a time: the changes behind `augment`."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ducos.arrays import Floats, Mask, Size
from ducos.errors import needed

cv2 = needed("cv2", "train")

FARTHEST_EDGE = 5  # pixels by which a silhouette grows or shrinks at most
FARTHEST_BLOCK = 6  # pixels from which a block of a ragged edge is taken at most
EDGE, OTHER_SURFACE = 0.04, 0.03  # of the depth: a jump between neighbours, a move onto another
WIDEST_SHADOW = 12.0  # low-resolution pixels


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


def grow_silhouettes(target: Floats, valid: Mask, rng: np.random.Generator) -> Floats:
    """Ground truth (n, n) whose nearer surfaces grow (two of three times) or shrink by 1 to 5
    pixels, mostly 1 or 2, more here and less there; every third map only across, as block matching
    leaves them. Every depth is one of the neighbours', and there are no new holes."""
    sign = 1 if rng.random() < 2 / 3 else -1
    across = rng.random() < 1 / 3
    typical = min(float(rng.geometric(0.5)), FARTHEST_EDGE)
    along = smooth_field(target.shape, float(rng.uniform(6, 30)), rng)
    amount = np.clip(np.round(sign * typical * (1 + 0.6 * along)), -FARTHEST_EDGE, FARTHEST_EDGE)
    cross: Any = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))
    shapes = [np.ones((1, 3), np.uint8)] if across else [cross, np.ones((3, 3), np.uint8)]
    result = target
    for change, beyond, way in ((cv2.erode, np.inf, 1), (cv2.dilate, -np.inf, -1)):
        moved: Any = np.where(valid, target, np.float32(beyond))
        for step in range(1, int((way * amount).max()) + 1):
            moved = change(moved, shapes[step % len(shapes)])
            result = np.where(way * amount == step, moved, result)
    return only_at_edges(result, target, valid, FARTHEST_EDGE)


def fray_edges(target: Floats, valid: Mask, rng: np.random.Generator) -> tuple[Floats, Mask]:
    """Ground truth (n, n) whose edges are ragged, as block matching and structured light leave
    them: blocks of 2 to 8 pixels picked from places about a pixel off, some up to 6."""
    size = rng.integers(2, 9, 2)
    count = [n // side + 2 for n, side in zip(target.shape, size, strict=True)]
    far = rng.uniform(0.5, 2) * np.exp(0.7 * rng.normal(size=count))
    far = np.minimum(far, min(FARTHEST_BLOCK, *size))  # farther, blocks would come off the edge
    angle = rng.uniform(0, 2 * np.pi, count)
    top, left = rng.integers(0, size)
    H, W = target.shape

    def place(here: Any, direction: Any, last: int) -> Any:
        blocks = np.round(far * direction).astype(int)
        blocks = blocks.repeat(size[0], 0).repeat(size[1], 1)
        return np.clip(here + blocks[top : top + H, left : left + W], 0, last)

    rows = place(np.arange(H)[:, None], np.sin(angle), H - 1)
    columns = place(np.arange(W), np.cos(angle), W - 1)
    picked, known = target[rows, columns], valid[rows, columns]
    frayed = only_at_edges(np.where(known, picked, target), target, valid, FARTHEST_BLOCK)
    return np.where(known & ~valid, picked, frayed), known


def only_at_edges(changed: Floats, target: Floats, valid: Mask, reach: int) -> Floats:
    """What changed of the ground truth (n, n) within `reach` pixels of a depth edge, and came from
    another surface; slanted surfaces stay as they are."""
    near: Any = cv2.erode(np.where(valid, target, np.inf).astype(np.float32), np.ones((3, 3)))
    far: Any = cv2.dilate(np.where(valid, target, -np.inf).astype(np.float32), np.ones((3, 3)))
    edge = valid & (near < far / (1 + EDGE))
    close = cv2.dilate(edge.astype(np.uint8), np.ones((2 * reach + 1, 2 * reach + 1))) > 0
    other = np.abs(changed - target) > OTHER_SURFACE * np.abs(target)
    return np.where(valid & close & other, changed, target).astype(np.float32)


def smooth_field(size: tuple[int, ...], extent: float, rng: np.random.Generator) -> Floats:
    """A random field (H, W) about 0, mostly within 1, that changes over `extent` pixels."""
    coarse = rng.normal(size=[max(2, round(n / extent) + 1) for n in size]).astype(np.float32)
    field = cv2.resize(coarse, (size[1], size[0]), interpolation=cv2.INTER_LINEAR)
    return np.asarray(field, np.float32)


def round_disparity(target: Floats, valid: Mask, rng: np.random.Generator) -> Floats:
    """Depth (n, n) rounded in inverse depth, with 20 to 400 steps at the median depth, as matching
    in whole pixels or parts of them does. Half of the maps are smoothed where neighbours are one
    step apart. What is too far for a step keeps its depth."""
    known = valid & (target > 0)
    if not known.any():
        return target
    reach = float(np.median(target[known])) * 20 * 20 ** rng.random()  # where disparity is 1 step
    smooth = rng.random() < 0.5
    near = known & (target < reach)
    steps = np.where(near, np.round(reach / np.where(near, target, 1)), 0).astype(np.float32)
    if smooth:
        jump = cv2.dilate(steps, np.ones((3, 3))) - cv2.erode(steps, np.ones((3, 3)))
        steps = np.where(jump <= 1, cv2.GaussianBlur(steps, (3, 3), 0), steps)
    return np.where(near, reach / np.maximum(steps, 1), target).astype(np.float32)


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


def cast_shadows(low: Floats, valid: Mask, inverse: bool, rng: np.random.Generator) -> Mask:
    """The mask of a low-resolution map (h, w) without what a second camera or a projector at one
    side does not see, and without a few specks. Shadows are at most 12 pixels wide; at least half
    of the measurements stay."""
    known = valid & (low > 0)
    widest = np.clip(low.shape[1] / 5, 2, WIDEST_SHADOW)
    baseline = 1.5 * (widest / 1.5) ** rng.random()
    baseline *= rng.choice([-1, 1])
    specks = rng.random(low.shape) < 10 ** rng.uniform(-4, -2.3)
    if rng.random() < 0.5:
        specks = cv2.dilate(specks.astype(np.uint8), np.ones((2, 2))) > 0
    if not known.any():
        return valid
    nearness = (low if inverse else 1 / np.where(known, low, 1)).astype(np.float64)
    farthest, nearest = np.quantile(nearness[known], [0.01, 0.99])
    # A flat scene has narrow shadows: the second camera is not as far away as one likes.
    nearness = np.clip(nearness, farthest, nearest) / max(nearest - farthest, 0.2 * nearest)
    for _ in range(6):
        kept = valid & ~specks & ~occluded(nearness, known, baseline)
        if 2 * kept.sum() >= valid.sum():
            return np.asarray(kept)
        baseline /= 2
    return valid


def occluded(nearness: Floats, valid: Mask, baseline: float) -> Mask:
    """Where a camera to the right (to the left, if `baseline` is negative) does not see what is
    there: disparity is baseline × nearness, in pixels of this map (h, w). The shadow lies on the
    farther surface, beside a nearer one, and is as wide as their disparities differ."""
    if baseline < 0:
        return occluded(nearness[:, ::-1], valid[:, ::-1], -baseline)[:, ::-1]
    place = np.where(valid, np.arange(nearness.shape[1]) - baseline * nearness, np.inf)
    leftmost = np.minimum.accumulate(place[:, ::-1], axis=1)[:, ::-1]
    hidden = np.zeros_like(valid)
    hidden[:, :-1] = valid[:, :-1] & (leftmost[:, 1:] <= place[:, :-1])
    return hidden


def add_noise(low: Floats, valid: Mask, rng: np.random.Generator) -> tuple[Floats, float]:
    """A low-resolution map (h, w) with white or slightly blurred noise, and its standard deviation:
    0.1 to 1.5 % of the map's range. Half of the maps have more of it where values are large, with
    their square: as stereo has for depth, and others for inverse depth."""
    share = 0.001 * 15 ** rng.random()
    blurred, squared = rng.random(2) < 0.5
    spots = rng.normal(size=low.shape).astype(np.float32)
    if blurred:
        spots = np.asarray(cv2.GaussianBlur(spots, (0, 0), float(rng.uniform(0.4, 1.2))))
    if valid.sum() < 2:
        return low, 0.0
    if squared:
        spots *= low**2
    sigma = share * float(np.ptp(low[valid]))
    spots *= sigma / max(float(np.sqrt(np.mean(spots[valid] ** 2))), 1e-12)
    return np.where(valid, low + spots, low).astype(np.float32), sigma
