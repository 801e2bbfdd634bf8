"""What sensors and published protocols do to a depth map: ground truth in, measurements out.

Tensors enter; every degradation has the one form that `table` describes.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.degrade.devices import each_moved
    from ducos.degrade.mono import inverse_of, monocular, with_faults
    from ducos.degrade.table import DEGRADATIONS, DegradationEntry
else:
    __getattr__, __dir__, __all__ = doors(__name__)
