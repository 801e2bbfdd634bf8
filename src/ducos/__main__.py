"""`python -m ducos`, and `torchrun -m ducos train ...`."""

import sys

from ducos.children import safe_path

sys.path[:] = safe_path()  # before any library: `-m` has put the current folder first

from ducos.cli import main  # noqa: E402

main()
