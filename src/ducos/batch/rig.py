"""Where the depth of a whole recording lies on its pictures, looked at before the work.

The cameras of a rig do not move against each other, so all frames get the same shift: measured
frame by frame it would flicker, and many frames together know it better than any of them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ducos.batch.frame import Options
from ducos.batch.pairs import FramePair
from ducos.doctor.correction import Correction, common_shift, parse_shift
from ducos.doctor.refinement import View
from ducos.errors import InputError
from ducos.infer import read_colour, read_low

LOOKED_AT = 16  # frames, spread evenly over the recording
MOST_PIXELS = 12_000_000  # of their pictures together, which are held in memory


def rig_shift(pairs: Sequence[FramePair], options: Options) -> Correction:
    """The correction for all pairs that `options.shift` asks for, in whole pixels."""
    given = parse_shift(options.shift)
    if given is not None:
        return given
    views = sampled(pairs, options)
    if not views:  # then their workers will have much to say
        return Correction()
    if len({(view.rgb.shape, view.depth.shape) for view in views}) > 1:
        if options.shift == "check":
            return Correction()
        return Correction(
            note="not moved: the frames have different sizes, so they are not of one rig; give "
            "--shift X,Y, or run each recording by itself",
            warns=True,
        )
    found = common_shift(options.shift, views)
    note = found.note and f"{found.note}; looked at {len(views)} of {len(pairs)} frames"
    return replace(found, x=round(found.x), y=round(found.y), note=note)


def sampled(pairs: Sequence[FramePair], options: Options) -> list[View]:
    """Some readable frames, spread evenly; those that are not will be reported by their worker."""
    views: list[View] = []
    pixels = 0
    for index in np.linspace(0, len(pairs) - 1, min(LOOKED_AT, len(pairs))).round().astype(int):
        pair = pairs[index]
        try:
            image = read_colour(pair.rgb)
            low = read_low(pair.depth, options.unit, options.scale, pair.mask)
        except (InputError, OSError):
            continue
        pixels += image.shape[0] * image.shape[1]
        if views and pixels > MOST_PIXELS:
            break
        views.append(View(image, low.depth, low.valid))
    return views
