"""Trained networks as files for other runtimes: ONNX and OpenVINO.

A model enters; one file with the whole prediction leaves, measured against torch before it does.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.export.formats import FORMATS, digest, export, format_of, onnx_graph
    from ducos.export.parity import LIMIT, PAIRS, Agreement, measured, refuse_if_wrong, scene
    from ducos.export.pieces import export_pieces
    from ducos.export.whole_pass import INPUTS, OUTPUTS, WholePass
else:
    __getattr__, __dir__, __all__ = doors(__name__)
