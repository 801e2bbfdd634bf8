"""`--prompt NAME`: a foundation model looks at the image, and its depth becomes the prior.

Reading the option and refusing a mistake need no torch; `looking` runs the network.
"""

from pathlib import Path
from typing import NamedTuple

from ducos.errors import InputError
from ducos.prompts import PROMPTS, check_licence

HUB = "hub"


class Foundation(NamedTuple):
    """name: of `PROMPTS`. source: of its weights, "hub", a file, a folder or an id of the hub.
    side: pixels of the image's shorter side, as the network sees it."""

    name: str
    source: str
    side: int

    @property
    def file(self) -> Path | None:
        """The weights, if they are a file of the user's."""
        path = Path(self.source).expanduser()
        return path if path.is_file() else None


def foundation_of(prompt: str, *, accept_noncommercial: bool) -> Foundation:
    """What `prompt` asks for, NAME or NAME=WEIGHTS; refuses names, licences and places."""
    name, equals, source = prompt.partition("=")
    known = {each: entry.side for each, entry in PROMPTS.items() if entry.side}
    if name not in known or (equals and not source):
        raise InputError(
            f"prompt is NAME or NAME=WEIGHTS with one of {', '.join(known)}, got {prompt[:200]!r};"
            " the depth of any other model can be given as prior"
        )
    check_licence(name, PROMPTS[name].licence, accepted=accept_noncommercial)
    source = source or HUB
    if source != HUB and not Path(source).expanduser().exists() and source.count("/") != 1:
        raise InputError(
            f"no weights of {name} at {source[:200]}; give the authors' file, a folder with"
            " model.safetensors, or an id of the hub such as owner/name"
        )
    return Foundation(name, source, known[name])
