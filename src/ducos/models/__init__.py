"""Networks and filters: the paper's, the compact one, the authors', every baseline, classical ones.

Normalised tensors enter: rgb (B, 3, H, W), low (B, 1, h, w) and its mask; a `Prediction` leaves.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.models.authors import arguments, convert
    from ducos.models.checkpoint import (
        ModelSpec,
        load_model,
        load_strictly,
        read_tensors,
        save_model,
        stored_weights,
        write_tensors,
    )
    from ducos.models.ducos.compact import DuCosCompact
    from ducos.models.ducos.paper import DuCos
    from ducos.models.ducos.piece import Piece
    from ducos.models.ducos.pieces import pieces_of
    from ducos.models.header import read_about
    from ducos.models.justified import check_arguments
    from ducos.models.prediction import Prediction
    from ducos.models.protocol import Model, Told, as_model
    from ducos.models.strips import needs_strips, predict_in_strips
    from ducos.models.table import MODELS, Entry, create
else:
    __getattr__, __dir__, __all__ = doors(__name__)
