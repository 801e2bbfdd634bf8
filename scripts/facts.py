"""Count every model and prompt and store the numbers in the package: python scripts/facts.py

`ducos models` reads them, so that it need not build thirty networks to list them.
"""

import json

from ducos.upscaling import count_all
from ducos.upscaling.weights import FACTS

if __name__ == "__main__":
    FACTS.write_text(json.dumps(count_all(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {FACTS}")
