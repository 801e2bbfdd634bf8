"""Where tests find things: the repository, and the folder of shared data if there is one."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
CONFIGS = REPOSITORY / "configs"
SHARED = Path(os.environ.get("DUCOS_SHARED", REPOSITORY.parent / "shared"))
