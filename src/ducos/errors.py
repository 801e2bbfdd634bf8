"""The one exception for a user's mistake. The command line prints it and exits with code 2."""


class InputError(ValueError):
    """Says what was got, what is expected, and what to do about it."""
