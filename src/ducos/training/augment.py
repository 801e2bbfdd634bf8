"""What varies from patch to patch: place, size, orientation, colours, registration, holes."""

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from ducos.data import Array, Mask, Pair
from ducos.resize import Size


@dataclass(frozen=True)
class Augmentation:
    """What varies from patch to patch. Shares are probabilities.

    flip: mirror half of the patches left to right.
    turn: also turn them upside down and transpose them, each with even odds. Without it the floor
        stays below, as it is in most pictures, and a prompt can learn from that.
    zoom: smallest factor by which an image is shrunk before cropping: more edges per patch.
    invert: share of patches turned into inverse depth; benchmarks such as Middlebury are disparity.
    quantise: share of patches rounded to 60 to 255 levels, as those benchmarks are.
    waver: share of patches whose truth has edges that waver about the image's by a pixel or so.
    soften: share of patches whose truth is blurred by 0.3 to 4.5 pixels. Measured truth wavers
        and is soft, rendered truth is neither; a network that knows only the latter sharpens what
        should stay. These and grain are for maps made by resampling: a sensor sees the scene.
    remeasure: share of the patches of a sensor model whose truth is that of another device, which
        wavers, is soft and lies beside the picture; the map is made of the scene. Real sensors are
        judged by such a truth.
    grain: share of patches whose truth has grain, as measured truth has; otherwise a network takes
        grain for the mark of a sensor, and mistrusts every map that was measured.
    spoil: share of patches whose picture is grey, framed, faded or of something else. A network
        that always sees a telling picture judges by it what made the map, and fails in the dark.
    shade: share of patches whose picture has shadows across it, and spots where its edges are lost.
        A network that has not seen both moves a soft edge of the map to whatever line is near.
    colour: strength of gamma, gain, tint, noise, blur and JPEG on the colour image (0 = off).
    shift: largest registration error between colour and depth, in pixels; most are far smaller.
    misplace: largest error of a sensor model's map against colour and truth, in its own pixels;
        most are far smaller. The camera beside the sensor is calibrated only so well, and the truth
        goes with the camera.
    holes: share of patches whose low-resolution map gets holes.
    hint: share of the patches of a sensor, or of its model, whose network is told which it is.
    """

    flip: bool = True
    turn: bool = True
    zoom: float = 1.0
    invert: float = 0.0
    quantise: float = 0.0
    waver: float = 0.0
    soften: float = 0.0
    remeasure: float = 0.0
    grain: float = 0.0
    spoil: float = 0.0
    shade: float = 0.0
    colour: float = 0.0
    shift: float = 0.0
    misplace: float = 0.0
    holes: float = 0.0
    hint: float = 0.0


def crop(
    pair: Pair, side: int, zoom: float, shift: float, rng: np.random.Generator
) -> tuple[Array, Array, Mask, tuple[Size, float, float]]:
    """A random square, possibly of the shrunk image; depth is picked, never mixed at edges.

    Also where its colours are: size of the (shrunk) image, top, left.
    """
    rgb: Any = pair.rgb
    target: Any = pair.target
    valid: Any = pair.valid
    H, W = target.shape
    factor = float(np.exp(rng.uniform(np.log(zoom), 0)))
    factor = max(factor, side / H, side / W)
    if factor != 1:
        H, W = max(side, round(H * factor)), max(side, round(W * factor))
        rgb = cv2.resize(
            rgb, (W, H), interpolation=cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
        )
        target = cv2.resize(target, (W, H), interpolation=cv2.INTER_NEAREST_EXACT)
        valid = (
            cv2.resize(valid.astype(np.uint8), (W, H), interpolation=cv2.INTER_NEAREST_EXACT) > 0
        )
    top, left = int(rng.integers(H - side + 1)), int(rng.integers(W - side + 1))
    x, y = 0.0, 0.0
    if shift > 0:
        x, y = shift * rng.uniform(-1, 1, 2) ** 3
        move = np.array([[1, 0, x], [0, 1, y]], np.float32)
        rgb = cv2.warpAffine(rgb, move, (W, H), borderMode=cv2.BORDER_REFLECT)
    square = np.s_[top : top + side, left : left + side]
    return rgb[square], target[square], valid[square], ((H, W), top - y, left - x)


@dataclass(frozen=True)
class Turn:
    """Mirrored left to right, turned upside down, transposed: in this order."""

    mirror: bool = False
    upside_down: bool = False
    transpose: bool = False

    def __call__(self, m: Any) -> Any:
        """(n, n) or (n, n, C), turned."""
        m = m[:, ::-1] if self.mirror else m
        m = m[::-1] if self.upside_down else m
        return np.swapaxes(m, 0, 1) if self.transpose else m


def draw_turn(options: Augmentation, rng: np.random.Generator) -> Turn:
    """Each that is allowed with even odds."""
    turn = options.flip and options.turn
    allowed = (options.flip, turn, turn)
    return Turn(
        *(may and bool(draw) for may, draw in zip(allowed, rng.random(3) < 0.5, strict=True))
    )


def wavered(
    target: Array, valid: Mask, rng: np.random.Generator, beside: Any = (0.0, 0.0)
) -> tuple[Array, Mask]:
    """Truth (n, n) picked from places up to a few pixels off, which drift along the edges; all of
    it moved by `beside` pixels, left and up."""
    drift = rng.normal(size=(*target.shape, 2)).astype(np.float32)
    drift = np.asarray(cv2.GaussianBlur(drift, (0, 0), float(np.exp(rng.uniform(0.3, 2)))))
    drift *= rng.uniform(0.2, 1.4) / max(float(drift.std()), 1e-6)
    rows, columns = np.mgrid[: target.shape[0], : target.shape[1]].astype(np.float32)
    drift += np.asarray(beside, np.float32)
    places = columns + drift[..., 0], rows + drift[..., 1]

    def picked(m: Any) -> Any:
        return cv2.remap(m, *places, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE)

    return picked(target), picked(valid.astype(np.uint8)) > 0


def softened(target: Array, valid: Mask, sigma: float) -> Array:
    """Truth (n, n), blurred by a Gaussian of sigma pixels; only what is valid counts."""
    share = cv2.GaussianBlur(valid.astype(np.float32), (0, 0), sigma)
    total = cv2.GaussianBlur(np.where(valid, target, 0).astype(np.float32), (0, 0), sigma)
    return np.where(valid, total / np.maximum(share, 1e-6), target).astype(np.float32)


def remeasured(target: Array, valid: Mask, rng: np.random.Generator) -> tuple[Array, Mask]:
    """Truth (n, n) as another, finer device would have measured it: its edges waver, it is soft by
    0.3 to 1.5 pixels and lies up to 3 pixels beside the picture, mostly far less."""
    target, valid = wavered(target, valid, rng, beside=3 * rng.uniform(-1, 1, 2) ** 3)
    return softened(target, valid, rng.uniform(0.3, 1.5)), valid


def grained(target: Array, valid: Mask, rng: np.random.Generator, coarsest: float) -> Array:
    """Truth (n, n) with noise in spots of 0.5 to `coarsest` pixels, at most 2 % r.m.s. of the
    depths' range; what is not valid stays. (Middlebury's has about 2 pixels, 0.5 to 1.2 %.)"""
    if not valid.any():
        return target
    spots = rng.normal(size=target.shape).astype(np.float32)
    size = 0.5 * (max(coarsest, 0.5) / 0.5) ** rng.random()
    spots = np.asarray(cv2.GaussianBlur(spots, (0, 0), float(size)))
    strength = 0.02 * rng.random() * float(np.ptp(target[valid]))
    spots *= strength / max(float(spots.std()), 1e-6)
    return np.where(valid, target + spots, target).astype(np.float32)


def recolour(image: Array, strength: float, rng: np.random.Generator) -> Array:
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


def spoilt(image: Tensor, rng: np.random.Generator) -> Tensor:
    """A picture (3, n, n) that tells less: grey, framed, faded to one colour, upside down (which
    stands for a picture of something else), or several of these."""
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


def shaded(image: Tensor, rng: np.random.Generator) -> Tensor:
    """A picture (3, H, W) with lines that are no edges of the depth (shadows, folds) and spots
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


def random_regions(size: Size, rng: np.random.Generator) -> Array:
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
