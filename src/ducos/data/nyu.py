"""NYU Depth v2, the labelled file `nyu_depth_v2_labeled.mat`: 1449 pairs of 640×480, in metres.

The field trains on the first 1000 and tests on the last 449. `depths` is the filled map, so nothing
is masked; the white frame around the colour images belongs to the data. The file is MATLAB 7.3,
that is HDF5 with reversed axes: images (N, 3, W, H), depths (N, W, H).
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ducos.data.files import chosen
from ducos.data.pair import Pair
from ducos.errors import InputError, needed

h5py = needed("h5py", "train")

FILE = "nyu_depth_v2_labeled.mat"
COUNT = 1449
SPLITS = {"train": range(1000), "test": range(1000, COUNT), "all": range(COUNT)}


class Nyu:
    """Pairs are named by their 1-based number in the file, as NYU's own tools count."""

    name = "nyu"
    unit = "m"

    def __init__(self, path: str | Path, split: str = "test"):
        path = Path(path).expanduser()
        self.path = path / FILE if path.is_dir() else path
        if not self.path.is_file():
            raise InputError(f"{self.path} does not exist; expected the official {FILE}")
        self.indices = SPLITS[chosen("split", split, SPLITS)]
        try:
            with h5py.File(self.path) as file:
                count = len(file["depths"])
        except (OSError, KeyError):
            raise InputError(
                f"{self.path} is not the labelled set; expected {FILE} with images and depths"
            ) from None
        if count != COUNT:
            raise InputError(f"{self.path} holds {count} pairs; the official file has {COUNT}")

    @property
    def scenes(self) -> Sequence[str]:
        with h5py.File(self.path) as file:
            references = file["scenes"][0]
            return ["".join(map(chr, file[references[i]][:].ravel())) for i in self.indices]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Pair:
        number = self.indices[index]
        # Opened per pair: an HDF5 handle does not survive the fork into loader processes.
        with h5py.File(self.path) as file:
            rgb = file["images"][number].transpose(2, 1, 0)  # (3, W, H) -> (H, W, 3)
            depth = file["depths"][number].T  # (W, H) -> (H, W)
        target = np.ascontiguousarray(depth, dtype=np.float32)
        colour = np.ascontiguousarray(rgb, dtype=np.float32) / np.float32(255)
        return Pair(str(number + 1), colour, target, np.isfinite(target) & (target > 0))
