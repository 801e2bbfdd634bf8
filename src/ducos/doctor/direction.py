"""Whether extrinsics were given the wrong way round: which way do depth and colour edges meet?"""

from collections.abc import Callable

import numpy as np

from ducos.arrays import Floats
from ducos.cameras import Extrinsics
from ducos.doctor.edges import agreement, colour_edges, depth_edges, working_size
from ducos.doctor.shifts import strength
from ducos.errors import InputError
from ducos.files import DepthMap

SMALLEST_BASELINE = 0.005  # metres: nearer cameras see the same either way
MARGIN, ENOUGH = 1.0, 3.3  # strengths, in deviations of the scores of all shifts


def check_direction(
    image: Floats,
    given: DepthMap,
    pose: Extrinsics,
    other_way: Callable[[Extrinsics], DepthMap],
) -> str | None:
    """A sentence if a map registered by the inverted pose meets the image's edges much better.

    image: (H, W, 3). given: registered as the file says. other_way: registers by another pose.
    """
    if np.linalg.norm(pose.translation) < SMALLEST_BASELINE:
        return None
    try:
        other = other_way(pose.inverted())
    except InputError:  # that way nothing is in view
        return None
    size, reach = working_size(*image.shape[:2])
    colour = colour_edges(image, size)
    met = [
        strength(
            agreement(colour, depth_edges(m.depth, m.valid, size), reach, 1).sum(0), reach // 4
        )
        for m in (given, other)
    ]
    if met[1] - met[0] > MARGIN and met[1] > ENOUGH:
        return (
            "the extrinsics seem to be the wrong way round: inverted, depth and colour edges meet "
            f'(strength {met[1]:.1f} against {met[0]:.1f}); add "direction": "colour_to_depth" '
            "to the file, or give its inverse"
        )
    return None
