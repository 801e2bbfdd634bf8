"""Files <-> arrays: units, invalid codes, masks, colours. Nothing else in the project knows them.

Depth inside the project is float32 metres with a bool mask, True where valid. On the way in:

- invalid are 0, negative values, NaN, +-inf, 65535, the largest number of an integer type of 16 or
  more bits, all beyond `FARTHEST`, and what the caller's mask or range or the file's own mask
  excludes;
- the unit is what the caller says, else what the file says, else a guess; `DepthMap.note` tells
  which, in a sentence meant to be printed;
- `relative` maps (disparity, 8-bit levels, normalised depth) keep their numbers, and there 0 is a
  value (the far end of the scale), as are negative numbers; `invalid_zero=True` makes 0 a hole.

On the way out every format that can carry it states the unit, the metres per stored value and the
code of a hole, and `read_depth` obeys that. NPY and PFM cannot: they hold metres.

Round trips through EXR, TIFF, NPY, NPZ, PFM and HDF5 are exact; PNG is exact to half its step.
"""

from ducos.files.depth import DepthMap, as_depth, read_depth
from ducos.files.images import as_rgb, read_mask, read_rgb
from ducos.files.writing import Written, write_depth

__all__ = [
    "DepthMap",
    "Written",
    "as_depth",
    "as_rgb",
    "read_depth",
    "read_mask",
    "read_rgb",
    "write_depth",
]
