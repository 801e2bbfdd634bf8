"""Figures: protocols, metrics, scores, error maps, and the paper's tables beside ours.

Models and datasets enter by name or as objects; nothing here trains.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.evaluation.metrics import METRICS, measure
    from ducos.evaluation.protocols import PROTOCOLS, Protocol, find
    from ducos.evaluation.reproduction import reproduce
    from ducos.evaluation.reproduction.output import report_as_json, report_as_text
    from ducos.evaluation.reproduction.recipes import RECIPES
    from ducos.evaluation.results import table
    from ducos.evaluation.scoring import evaluate
else:
    __getattr__, __dir__, __all__ = doors(__name__)
