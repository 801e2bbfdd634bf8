"""Datasets: colour images with ground truth, and a real sensor's map where there is one.

Files enter through `files`; pairs leave as arrays in the dataset's own unit.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.data.files import FileDataset, PairFiles
    from ducos.data.identity import digest
    from ducos.data.pair import Dataset, Pair
    from ducos.data.subset import Subset, split_by_scene
    from ducos.data.table import DATASETS, DatasetEntry, check_dataset, open_dataset
else:
    __getattr__, __dir__, __all__ = doors(__name__)
