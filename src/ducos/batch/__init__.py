"""Thousands of frames: workers, a journal that survives interruption, a report of what failed.

Pairs of files enter; results are those of one-by-one, byte for byte.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.batch.ray_engine import Cluster
    from ducos.batch.run import Summary, run_batch
    from ducos.batch.storage import Places, opened_places
    from ducos.batch.worker import frame_result
else:
    __getattr__, __dir__, __all__ = doors(__name__)
