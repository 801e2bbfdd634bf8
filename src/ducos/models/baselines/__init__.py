"""Networks of other papers, each equal to its authors' code (tests/parity)."""
