"""Features of a frozen prompt, computed once per image and kept on disk, for training on CPUs.

A vision transformer costs more than the whole network it prompts, and while it is frozen it says
the same about the same image in every epoch. Training, however, looks at random patches: cropped,
zoomed, mirrored. So the features of the *whole* image are stored, and each patch takes its part of
them by bilinear sampling (`cut`).

That is an approximation, in three ways. The prompt run on the patch alone would see no
surroundings; run on a mirrored patch it would not give exactly mirrored features; and it would see
the changed colours of the patch, where these show the image as it is. The first is rather a gain:
a trained network meets whole images, too. `docs/prompts.md` has measurements of all of them.

What is exact: a cut from the cache equals the same cut from features computed afresh, up to the
rounding of half precision, and runs with a warm and a cold cache are the same bit for bit.
"""

import hashlib
import math
import re
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ducos.arrays import Size
from ducos.errors import InputError
from ducos.files import atomic_write
from ducos.prompts import Prompt, is_frozen, run_prompt

FORMAT = "ducos-features-1"  # a change of any prompt's function must raise the number
SUFFIX = ".safetensors"
TOLERANCE = 2e-3  # of the largest value: half precision is off by 5e-4 at most


class Picture(Protocol):
    """What is asked about: `data.Pair` is one. rgb: (H, W, 3) float32 in [0, 1]."""

    name: str
    rgb: NDArray[np.float32]


def patch_place(
    size: Size,
    top: float,
    left: float,
    side: float,
    *,
    mirror: bool = False,
    upside_down: bool = False,
    transpose: bool = False,
) -> Tensor:
    """Where a square patch lies in its image: the affine map (2, 3) that `cut` takes.

    It maps places in the patch to places in the image, both from -1 to 1 along each axis, x first.

    Args:
        size: H, W of the image that the patch was cut from (after zooming).
        top, left, side: of the square, in pixels of that image; fractions are fine.
        mirror, upside_down, transpose: how the patch was turned afterwards, in this order.
    """
    H, W = size
    along_x = torch.tensor([-side / W if mirror else side / W, 0.0])
    along_y = torch.tensor([0.0, -side / H if upside_down else side / H])
    centre = torch.tensor([(2 * left + side) / W - 1, (2 * top + side) / H - 1])
    if transpose:
        along_x, along_y = along_y, along_x
    return torch.stack([along_x, along_y, centre], 1)


def cut(
    prompts: Sequence[Prompt], places: Tensor, size: Size, image_sizes: Sequence[Size]
) -> Prompt:
    """The parts of whole-image features that belong to patches.

    Args:
        prompts: one per patch, each of a batch of one.
        places: (B, 2, 3), see `patch_place`.
        size: H, W of the patches.
        image_sizes: H, W of each image as the prompt saw it, before any zoom.

    Returns:
        features, each (B, C, n, n), as dense in the patches as the prompt's own are in images; with
        images of one size, n is the same in all batches. depth (B, 1, H, W).
    """
    features = []
    for maps in zip(*(prompt.features for prompt in prompts), strict=True):
        cells = max(
            max(size[0] * m.shape[-2] / H, size[1] * m.shape[-1] / W)
            for m, (H, W) in zip(maps, image_sizes, strict=True)
        )
        n = math.ceil(cells - 1e-6)
        features.append(_sample_each(maps, places, (n, n)))
    depths = [prompt.depth for prompt in prompts if prompt.depth is not None]
    return Prompt(tuple(features), _sample_each(depths, places, size) if depths else None)


def _sample_each(maps: Sequence[Tensor], places: Tensor, size: Size) -> Tensor:
    """Maps (1, C, h, w) read on grids laid over places, (B, C, *size).

    Mirrored beyond the edge of the image; averaged where the map is finer than the grid, as the
    pixels of a shrunk image are.
    """
    sampled = []
    for m, place in zip(maps, places.to(maps[0]), strict=True):
        share_x, share_y = place[:, :2].abs().sum(1).tolist()  # of the image in the patch
        fineness = max(share_y * m.shape[-2], share_x * m.shape[-1]) / min(size)
        times = max(1, math.ceil(fineness - 1e-3))
        fine = [1, 1, times * size[0], times * size[1]]
        grid = F.affine_grid(place[None], fine, align_corners=False)
        read = F.grid_sample(m, grid, padding_mode="reflection", align_corners=False)
        sampled.append(F.avg_pool2d(read, times))
    return torch.cat(sampled)


class FeatureCache:
    """What a frozen prompt says about images, kept in a folder.

    One file per image, named after it and after a digest of its pixels and of the prompt: weights,
    settings, and with them the working size. Another image of that name, other weights or another
    `side` are therefore never mistaken for these. Several processes may share a folder.

    Args:
        folder: where the files go; made if absent.
        prompt: frozen, on any device.
        max_bytes: of all files together; beyond it the oldest go. A folder that cannot hold the
            training set costs recomputation in every epoch, so choose it large enough:
            `bytes_per_image` times the images.
    """

    def __init__(self, folder: str | Path, prompt: Any, *, max_bytes: int = 20 * 10**9):
        if not is_frozen(prompt):
            raise InputError(
                "got a prompt that is being trained, expected a frozen one: its features change "
                'with every step and cannot be stored; set tuning = "frozen" or leave the cache out'
            )
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.prompt = prompt
        self.max_bytes = max_bytes
        self.identity = _identity(prompt)

    def features(self, picture: Picture) -> Prompt:
        """Features and depth of the whole image, (1, ...), rounded to half precision.

        Read from the folder where they are there and whole; else computed and stored.
        """
        path = self.path(picture)
        found = _read(path)
        if found is None:
            found = _halve(self.compute(picture))
            self._write(path, found)
        return _single(found)

    def compute(self, picture: Picture) -> Prompt:
        """The prompt's own answer, at full precision."""
        device = next(iter(self.prompt.parameters())).device
        # A copy: images that are views of a file or of another process cannot be shared with torch.
        rgb = torch.from_numpy(np.array(picture.rgb, np.float32, order="C")).permute(2, 0, 1)[None]
        with torch.no_grad():
            features, depth = run_prompt(self.prompt, rgb.to(device))
        return Prompt(tuple(f.cpu() for f in features), None if depth is None else depth.cpu())

    def path(self, picture: Picture) -> Path:
        """The file of an image."""
        digest = hashlib.blake2b(self.identity.encode(), digest_size=10)
        digest.update(str(picture.rgb.shape).encode())
        digest.update(np.ascontiguousarray(picture.rgb, np.float32).tobytes())
        readable = re.sub(r"[^A-Za-z0-9_.-]+", "_", picture.name).strip(".")[-60:]
        return self.folder / f"{readable}-{digest.hexdigest()}{SUFFIX}"

    def fill(self, pictures: Iterable[Picture], *, check: int = 2) -> int:
        """Store what is missing; returns how many images were computed.

        The first `check` images found in the folder are recomputed and compared, so that a stale
        folder is noticed before training and not in its results.
        """
        computed = 0
        for picture in pictures:
            path = self.path(picture)
            if _read(path) is None:
                self.features(picture)
                computed += 1
            elif check > 0:
                check -= 1
                difference = self.difference(picture)
                if difference > TOLERANCE:
                    raise InputError(
                        f"got stored features that differ from recomputed ones by {difference:.1e} "
                        f"of their largest value ({path}), expected at most {TOLERANCE:.0e}; "
                        "delete the folder, it was written by another version"
                    )
        return computed

    def difference(self, picture: Picture) -> float:
        """Largest difference between stored and recomputed maps, relative to each map's maximum."""
        stored, fresh = self.features(picture), self.compute(picture)
        pairs = [*zip(stored.features, fresh.features, strict=True)]
        if stored.depth is not None and fresh.depth is not None:
            pairs.append((stored.depth, fresh.depth))
        if any(a.shape != b.shape for a, b in pairs):
            return math.inf
        return max(float((a - b).abs().max() / b.abs().max().clamp_min(1e-12)) for a, b in pairs)

    def bytes_per_image(self, picture: Picture) -> int:
        """Size of one file, for choosing `max_bytes`; images of other sizes differ."""
        return sum(map.nbytes for map in _tensors(_halve(self.compute(picture))).values())

    def _write(self, path: Path, prompt: Prompt) -> None:
        tensors = _tensors(prompt)
        with atomic_write(path) as temporary:
            temporary.write_bytes(save(tensors, {"stamp": _stamp(tensors)}))
        self._evict(keep=path)

    def _evict(self, keep: Path) -> None:
        """Delete the oldest files until the rest fits; the one just written stays."""
        entries = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with suppress(OSError):  # another process may have deleted it meanwhile
                status = path.stat()
                entries.append((status.st_mtime_ns, path.name, status.st_size))
        total = sum(size for _, _, size in entries)
        for _, name, size in sorted(entries):
            if total <= self.max_bytes:
                return
            if name != keep.name:
                with suppress(OSError):
                    (self.folder / name).unlink()
                total -= size


def _identity(prompt: Any) -> str:
    """A digest of what decides the answers: every module's class and settings, and all weights."""
    digest = hashlib.blake2b(FORMAT.encode(), digest_size=16)
    for name, module in prompt.named_modules():
        settings = {
            key: value
            for key, value in sorted(vars(module).items())
            if isinstance(value, int | float | str | tuple | Enum | None)
            and not key.startswith("_")
            and key not in ("training", "source")  # neither changes what a frozen prompt says
        }
        digest.update(f"{name} {type(module).__name__} {settings}".encode())
    for name, value in prompt.state_dict().items():
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        digest.update(value.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _halve(prompt: Prompt) -> Prompt:
    """Half precision; a map with values beyond its range (65 504) stays as it is."""

    def halve(map: Tensor) -> Tensor:
        half = map.half()
        return half if bool(half.isfinite().all()) else map

    depth = None if prompt.depth is None else halve(prompt.depth)
    return Prompt(tuple(halve(map) for map in prompt.features), depth)


def _single(prompt: Prompt) -> Prompt:
    depth = None if prompt.depth is None else prompt.depth.float()
    return Prompt(tuple(map.float() for map in prompt.features), depth)


def _tensors(prompt: Prompt) -> dict[str, Tensor]:
    named = {f"feature{level}": map for level, map in enumerate(prompt.features)}
    if prompt.depth is not None:
        named["depth"] = prompt.depth
    return {name: map.contiguous() for name, map in named.items()}


def _stamp(tensors: dict[str, Tensor]) -> str:
    """Format and checksum: safetensors itself would not notice a changed bit."""
    checksum = 0
    for name in sorted(tensors):
        checksum = zlib.crc32(tensors[name].numpy().tobytes(), checksum)
    return f"{FORMAT} {checksum:08x}"


def _read(path: Path) -> Prompt | None:
    """What a file holds; None if it is absent, cut short, altered or of another format."""
    try:
        with safe_open(path, framework="pt") as file:
            stamp = (file.metadata() or {}).get("stamp")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError):
        return None
    if stamp != _stamp(tensors):
        return None
    depth = tensors.pop("depth", None)
    return Prompt(tuple(tensors[f"feature{level}"] for level in range(len(tensors))), depth)
