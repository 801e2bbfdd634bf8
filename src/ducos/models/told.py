"""What a network is told in words, as a learned shift of its features."""

import warnings
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.models.protocol import Told


class Hints(nn.Embedding):
    """One row for every word of every subject, in their order; at first, a word changes nothing.

    The words belong to the weights: they are stored with them. A word that the code has learned
    since, or another file knows, counts as the first word of its subject: not known.
    """

    def __init__(self, subjects: Mapping[str, Sequence[str]], channels: int):
        for subject, words in subjects.items():
            if isinstance(words, str) or not words or len(set(words)) < len(words):
                raise InputError(f"told.{subject} must be a list of different words, got {words}")
        super().__init__(sum(len(words) for words in subjects.values()), channels)
        self.subjects = {subject: tuple(words) for subject, words in subjects.items()}
        nn.init.zeros_(self.weight)

    def shift(self, told: Told | None, count: int) -> Tensor:
        """The sum of what the subjects mean to a batch of `count` maps, (B, C, 1, 1)."""
        rows, start = [], 0
        for subject, known in self.subjects.items():
            rows.append(start + self.places(subject, told, count))
            start += len(known)
        index = torch.stack(rows)  # (subjects, B)
        return self(index).sum(0)[:, :, None, None]

    def places(self, subject: str, told: Told | None, count: int) -> Tensor:
        """Where what `count` maps are told about a subject stands among its words: (B,)."""
        given = (told or {}).get(subject, self.subjects[subject][0])
        if isinstance(given, Tensor):
            return given
        each = [given] * count if isinstance(given, str) else list(given)
        if len(each) != count:
            raise InputError(
                f"got {len(each)} words for the {subject} of {count} maps; give one, or one per map"
            )
        places = [self.place(subject, word) for word in each]
        return torch.tensor(places, device=self.weight.device)

    def place(self, subject: str, word: str) -> int:
        """Where a word stands among those of its subject."""
        words = self.subjects[subject]
        if word not in words:
            warnings.warn(
                f"these weights do not know the {subject} {word!r}, only {', '.join(words)}; "
                f"they treat it as {words[0]!r}",
                stacklevel=2,
            )
            return 0
        return words.index(word)
