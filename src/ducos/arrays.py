"""Names of the kinds of arrays that are handed around; shapes stand in docstrings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]
Floats = NDArray[np.float32]  # depth in metres, colours in [0, 1]
Mask = NDArray[np.bool_]  # True where valid
Bytes = NDArray[np.uint8]  # pixels of a picture for people
Size = tuple[int, int]  # height, width
