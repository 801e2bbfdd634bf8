"""Prompt features over rows, each when it is asked for, so that earlier ones can be dropped."""

from collections.abc import Iterator
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from ducos.models.ducos.paper import ImageBranch
from ducos.models.tiling.blocks import residual_group
from ducos.models.tiling.rows import Rows, Workspace, local, padded, resized, whole
from ducos.prompts import STRIDE, TinyPrompt, normalised, run_prompt
from ducos.resize import bilinear, pad_to_multiple


def features_at_once(prompt: Any, rgb: Tensor, multiple: int = 1) -> tuple[Tensor, ...] | None:
    """Features of a prompt that has a working size of its own and runs whole; None for the others.

    rgb (1, 3, H, W). Their memory is bounded by the prompt's option `side`.
    """
    if isinstance(prompt, ImageBranch | TinyPrompt):
        return None
    return run_prompt(prompt, pad_to_multiple(rgb, multiple)).features


def features_of(
    work: Workspace, prompt: Any, rgb: Tensor, at_once: tuple[Tensor, ...] | None, multiple: int = 1
) -> Iterator[Rows]:
    """F_1 to F_4 of a prompt about `pad_to_multiple(rgb, multiple)`."""
    image = padded(whole(rgb, work.device), multiple)
    if isinstance(prompt, ImageBranch):
        yield from image_branch(work, prompt, image)
    elif isinstance(prompt, TinyPrompt):
        yield from tiny_prompt(work, prompt, image)
    else:
        assert at_once is not None
        yield from (whole(feature, work.device) for feature in at_once)


def image_branch(work: Workspace, prompt: ImageBranch, image: Rows) -> Iterator[Rows]:
    """`ImageBranch.forward`."""
    stride = prompt.stride
    x = work.store(
        local(
            lambda rgb: prompt.head(F.pixel_unshuffle(rgb, stride)),
            [image],
            prompt.channels[0],
            reach=1,
            shrink=stride,
        )
    )
    for group in prompt.groups:
        x = work.store(residual_group(work, group, x))  # type: ignore[arg-type]
        yield x


def tiny_prompt(work: Workspace, prompt: TinyPrompt, image: Rows) -> Iterator[Rows]:
    """`TinyPrompt.forward` without its depth."""
    n = prompt.multiple_of
    image = resized(image, (-(-image.height // n) * n, -(-image.width // n) * n), bilinear)
    skips: list[Rows] = []
    for level, encode in enumerate(prompt.encode):
        width = prompt.channels[3 - level]
        if level == 0:
            x = local(
                lambda rgb: prompt.stem(F.pixel_unshuffle(rgb * 2 - 1, STRIDE)),
                [image],
                width,
                reach=1,
                shrink=STRIDE,
            )
        else:
            x = local(prompt.down[level - 1], [skips[-1]], width, reach=1, shrink=2)
        assert isinstance(encode, nn.Sequential)
        skips.append(work.store(local(encode, [x], width, reach=2 * len(encode))))
    x = skips.pop()
    yield local(normalised, [x], x.channels)
    for level in (2, 1, 0):
        skip = skips.pop()
        coarse = local(prompt.up[level], [x], skip.channels)
        risen = resized(coarse, (skip.height, skip.width), bilinear)
        joined = local(lambda skip, risen: skip + risen, [skip, risen], skip.channels)
        x = work.store(local(prompt.decode[level], [joined], skip.channels, reach=2))
        del skip, coarse, risen, joined
        yield local(normalised, [x], x.channels)
