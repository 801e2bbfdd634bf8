"""Licences of foundation weights: shown when weights are loaded, refused where they must be agreed.

Only weights have these terms. The networks are our own code, so random weights are never refused.
"""

import logging

from ducos.errors import InputError

NONCOMMERCIAL = "CC-BY-NC-4.0"
UNSTATED = "none stated"


def check_licence(prompt: str, licence: str, *, accepted: bool) -> None:
    """Refuse weights for non-commercial use until the user says that this is such a use."""
    if licence == NONCOMMERCIAL and not accepted:
        raise InputError(
            f"got weights for {prompt}, whose licence is {licence}: they, and whatever is trained "
            "with them, must not be used commercially; if that suits you, accept it with "
            "--accept-noncommercial on the command line, or prompt_options.accept_noncommercial = "
            "true in the config; else choose a prompt such as depth-anything-v2-s (Apache-2.0)"
        )


def show_licence(prompt: str, licence: str, source: str) -> None:
    """One line to the log, which goes to stderr unless the program says otherwise."""
    note = ""
    if licence == UNSTATED:
        note = "; without one the authors keep all rights: ask them before you pass anything on"
    elif licence == NONCOMMERCIAL:
        note = "; non-commercial use only, as you accepted"
    logging.getLogger(__name__).warning(
        "%s: weights from %s, licence %s%s", prompt, source, licence, note
    )
