"""The shipped networks without torch: onnxruntime and numpy.

A weight file and the graphs beside it enter; a predictor leaves, which says what torch says.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.runtime.files import (
        FORMAT,
        PIECES,
        PRIOR_PIECES,
        can_run,
        can_take_prior,
        described,
        description,
        place,
    )
    from ducos.runtime.network import Network, open_network
    from ducos.runtime.plain import PLAIN
else:
    __getattr__, __dir__, __all__ = doors(__name__)
