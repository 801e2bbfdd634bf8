"""DuCos: the paper's network, the compact one for CPUs, and the authors' as released."""
