"""Training as a constrained problem: one visible loop, objectives, constraints, multipliers.

A configuration enters, a folder with weights and curves leaves.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.training.augmentations import AUGMENTATIONS, AugmentationEntry, strengths
    from ducos.training.config import Config, load_config
    from ducos.training.dual import Constraint, Dual
    from ducos.training.listing import EVERYTHING, TRAINING, Listing, Row, as_data, shown
    from ducos.training.loop import train
    from ducos.training.preparation import differences
    from ducos.training.recipe import Recipe, Stage, load_recipe
    from ducos.training.stages import train_recipe
    from ducos.training.table import (
        CONSTRAINTS,
        OBJECTIVES,
        PRESETS,
        ConstraintEntry,
        ObjectiveEntry,
        Preset,
        preset_dual,
    )
else:
    __getattr__, __dir__, __all__ = doors(__name__)
