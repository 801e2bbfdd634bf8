"""What was measured, as it is used: read, projected or registered into the colour camera."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducos.cameras import checked_camera, points_as_map, read_extrinsics, registered
from ducos.doctor import cheap_warnings, check_direction
from ducos.errors import InputError
from ducos.files import DepthMap, check_sizes, is_points, read_low
from ducos.upscaling.options import Options


def measurements(
    image: NDArray[np.float32], rgb: Any, depth: Any, options: Options
) -> tuple[DepthMap, list[str], list[str]]:
    """The map in the colour camera's view, notes on what was done, and warnings.

    image: (H, W, 3), read from rgb; depth: whatever the user gave.
    """
    options.check_depth(depth)
    if is_points(depth):
        camera = options.rgb_intrinsics
        low, sentence = points_as_map(
            depth, (image.shape[0], image.shape[1]), camera, options.extrinsics,
            unit=options.unit, scale=options.scale, image=rgb,
        )  # fmt: skip
        doubts = (
            [] if camera is None else checked_camera(camera, "colour", image.shape[:2]).doubts()
        )
        return low, [low.note, sentence], doubts
    try:
        low = read_low(depth, options.unit, options.scale, options.mask, options.confidence)
    except InputError as problem:
        raise InputError(f"{problem}{swapped(image, problem)}") from problem
    notes, warnings = [low.note], list[str]()
    if options.registers:
        low, sentence, doubts = in_colour_camera(image, low, options)
        notes.append(sentence)
        warnings += doubts
    elif options.rgb_intrinsics is not None:
        warnings += checked_camera(options.rgb_intrinsics, "colour", image.shape[:2]).doubts()
    check_sizes(image.shape[:2], low.depth.shape, options.any_aspect)
    if options.shift in ("check", "auto"):
        warnings += cheap_warnings(low, image)
    elif options.shift != "off":
        warnings += cheap_warnings(low)
    return low, notes, warnings


def swapped(image: NDArray[np.float32], problem: InputError) -> str:
    """A question, if the depth is a colour image and the colour image a grey one."""
    grey = bool((image[..., 0] == image[..., 1]).all() and (image[..., 0] == image[..., 2]).all())
    is_image = any(words in str(problem) for words in ("channels", "not a format that holds depth"))
    return "; are colour image and depth map swapped?" if grey and is_image else ""


def in_colour_camera(
    image: NDArray[np.float32], low: DepthMap, options: Options
) -> tuple[DepthMap, str, list[str]]:
    """The registered map, a sentence about it, and doubts about the cameras."""
    size = (image.shape[0], image.shape[1])
    cameras = (
        checked_camera(options.depth_intrinsics, "depth", low.depth.shape),
        checked_camera(options.rgb_intrinsics, "colour", size),
    )
    pose = read_extrinsics(options.extrinsics)
    seen, sentence = registered(low, size, *cameras, pose)
    doubts = [doubt for camera in cameras for doubt in camera.doubts()]
    if options.shift in ("check", "auto"):  # whoever turns looking off means this too
        wrong = check_direction(
            image, seen, pose, lambda other: registered(low, size, *cameras, other)[0]
        )
        doubts += [wrong] if wrong else []
    return seen, sentence, doubts
