"""Every byte that is read or written: paths, formats, units, depth maps, images, pairs of files.

Only numpy and Pillow enter; formats that need more import it when they are used. Depth inside the
project is float32 metres with a bool mask, True where valid; `depth` says how that is decided.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.files.depth import DepthMap, as_depth, read_depth
    from ducos.files.formats import DEPTH_MAPS, WRITTEN_AS
    from ducos.files.formats.limits import MAX_BYTES, RGB_BYTES, refusing
    from ducos.files.formats.pictures import write_pixels
    from ducos.files.images import as_float32, as_mask, as_rgb, read_mask, read_rgb, single_plane
    from ducos.files.inputs import (
        LARGEST_ASPECT_MISMATCH,
        check_sizes,
        is_tensor,
        read_colour,
        read_low,
        read_relative,
    )
    from ducos.files.pairs import (
        DATASET_KINDS,
        PREVIEWS,
        Failure,
        Found,
        FramePair,
        find_pairs,
        inputs_of,
        picture_size,
        result_names,
        together,
    )
    from ducos.files.paths import (
        PathLike,
        atomic_write,
        check_output,
        check_output_folder,
        existing_file,
        on_disk,
        read_text,
        remove_unfinished,
    )
    from ducos.files.points import Points, is_points, read_points
    from ducos.files.replacing import MADE_BY, check_replaced, is_ours
    from ducos.files.units import UNITS, given_meaning
    from ducos.files.writing import FARTHEST_PNG, Written, check_depth_output, write_depth
else:
    __getattr__, __dir__, __all__ = doors(__name__)
