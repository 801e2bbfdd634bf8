"""Figures: protocols, metrics, scores, error maps, and the paper's tables beside ours.

Models and datasets enter by name or as objects; nothing here trains.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.evaluation.choice import Choice, check_formula, choose
    from ducos.evaluation.metrics import METRICS, measure
    from ducos.evaluation.protocols import PROTOCOLS, Protocol, find
    from ducos.evaluation.reproduction import reproduce
    from ducos.evaluation.reproduction.output import report_as_json, report_as_text
    from ducos.evaluation.reproduction.recipes import RECIPES
    from ducos.evaluation.results import known, table, write_json
    from ducos.evaluation.scoring import describe, evaluate
    from ducos.evaluation.suite_scoring import (
        SuiteRow,
        figures_by_model,
        named_figures,
        score_suite,
        suite_table,
    )
    from ducos.evaluation.suites import SUITES, Suite, SuiteCase, find_suite
else:
    __getattr__, __dir__, __all__ = doors(__name__)
