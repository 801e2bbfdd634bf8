"""Recordings as sequences: each frame super-resolved, then steadied by the frame before it.

Frames enter in the order of time; depth maps and videos of them leave.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.sequences.fusing import Fused
    from ducos.sequences.run import Told, run_sequence
    from ducos.sequences.steadying import Steady, View
else:
    __getattr__, __dir__, __all__ = doors(__name__)
