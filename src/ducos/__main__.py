"""`python -m ducos`, and `torchrun -m ducos train ...`."""

from ducos.cli import main

main()
