"""The tables and figures of the DuCos paper as commands: `ducos reproduce NAME`.

A recipe names the datasets, protocols and scales of one table. What is here is measured, what is
missing is skipped by name with how to get it, and the published figures stand beside. Released
weights enter as converted files; methods without weights keep their published figures, marked so.

Chapters: `recipes` are the tables, `inputs` finds datasets and weights, `measuring` makes the lines
of a table, `run` all of it, `ablations` tells what prompts cost and how variants are trained;
`report` is what comes out, `output` and `plot` write it down.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.evaluation.reproduction.recipes import RECIPES
    from ducos.evaluation.reproduction.report import Report
    from ducos.evaluation.reproduction.run import reproduce
else:
    __getattr__, __dir__, __all__ = doors(__name__)
