"""Where the depth of a whole recording lies on its images, looked at before the work.

The cameras of a rig do not move against each other, so all frames get the same shift: measured
frame by frame it would flicker, and many frames together know it better than any of them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ducos.arrays import Floats
from ducos.cameras import registered
from ducos.captures import Frame, read_frame
from ducos.doctor.cheap import cheap_warnings_together
from ducos.doctor.colour import is_misaligned
from ducos.doctor.correction import common_shift
from ducos.doctor.refinement import View
from ducos.doctor.registration import common_misalignment
from ducos.doctor.shift_option import Correction, parse_shift
from ducos.errors import InputError
from ducos.files import DepthMap, FramePair, picture_size, read_colour

LOOKED_AT = 16  # frames, spread evenly over the recording
FIRST_LOOK = 4  # frames; the others only if these leave a doubt
MOST_PIXELS = 12_000_000  # of their pictures together, which are held in memory


def rig_shift(
    pairs: Sequence[FramePair],
    shift: str | tuple[float, float],
    unit: str = "auto",
    scale: float | None = None,
) -> tuple[Correction, list[str]]:
    """The correction for all pairs that `shift` asks for, in whole pixels; and warnings about units
    and mirrored maps, unless shift says that nobody is to look."""
    given = parse_shift(shift)
    if given is not None:
        return given, []
    chosen = spread_out(pairs)
    if shift == "check" and len(chosen) > FIRST_LOOK:
        steps = np.linspace(0, len(chosen) - 1, FIRST_LOOK).round().astype(int)
        if all_is_well(sampled([chosen[n] for n in steps], unit, scale)):
            return Correction(), []
    seen = sampled(chosen, unit, scale)
    if not seen:  # then their workers will have much to say
        return Correction(), []
    warnings = cheap_warnings_together(seen)
    if any(low.is_scattered for _, low in seen):
        return Correction(), warnings
    views = [View(image, low.depth, low.valid) for image, low in seen]
    if len({(view.rgb.shape, view.depth.shape) for view in views}) > 1:
        if shift == "check":
            return Correction(), warnings
        return Correction(
            note="not moved: the frames have different sizes, so they are not of one rig; give "
            "--shift X,Y, or run each recording by itself",
            warns=True,
        ), warnings
    found = common_shift(shift, views)
    note = found.note and f"{found.note}; looked at {len(views)} of {len(pairs)} frames"
    return replace(found, x=round(found.x), y=round(found.y), note=note), warnings


def all_is_well(seen: list[tuple[Floats, DepthMap]]) -> bool:
    """Whether a few frames alone show that there is nothing to warn of."""
    views = [View(image, low.depth, low.valid) for image, low in seen]
    if len(views) < FIRST_LOOK or len({(v.rgb.shape, v.depth.shape) for v in views}) > 1:
        return False
    if any(low.is_scattered for _, low in seen) or cheap_warnings_together(seen):
        return False
    (H, W), (h, w) = views[0].rgb.shape[:2], views[0].depth.shape
    found = common_misalignment(views)
    return found.certain and not is_misaligned(found, max(H / h, W / w))


def sampled(
    pairs: Sequence[FramePair], unit: str, scale: float | None
) -> list[tuple[Floats, DepthMap]]:
    """Image and map of those that can be read; of the others their workers will speak."""
    seen: list[tuple[Floats, DepthMap]] = []
    for pair in pairs:
        try:
            frame = placed(read_frame(pair, unit, scale))
            image = read_colour(frame.image)
        except (InputError, OSError):
            continue
        seen.append((image, frame.low))
    return seen


def placed(frame: Frame) -> Frame:
    """The frame with its depth seen from the colour camera, if the recording says from where."""
    if frame.extrinsics is None or frame.camera is None or frame.depth_camera is None:
        return frame
    image = read_colour(frame.image)
    cameras = (frame.depth_camera, frame.camera, frame.extrinsics)
    low, _ = registered(frame.low, (image.shape[0], image.shape[1]), *cameras)
    return replace(frame, image=image, low=low, extrinsics=None)


def spread_out(pairs: Sequence[FramePair]) -> list[FramePair]:
    """Frames spread evenly over the recording, fewer if their images are large."""
    count = min(LOOKED_AT, len(pairs))
    while True:
        chosen = [pairs[n] for n in np.linspace(0, len(pairs) - 1, count).round().astype(int)]
        sizes = (picture_size(pair.rgb) or (0, 0) for pair in chosen)
        if count == 1 or sum(width * height for width, height in sizes) <= MOST_PIXELS:
            return chosen
        count = (count + 1) // 2
