"""classical."""
