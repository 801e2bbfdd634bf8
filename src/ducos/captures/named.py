"""Pairs by name in the ways people name them, beyond those that `ducos.files.find_pairs` knows.

Kinds of files are told by a word (color, rgb, image, depth, conf, mask, in any case) in the name or
in the folder's name; the rest of the name is the id. Where no ids agree, time stamps in the names
do, nearest first.
"""

import re
from pathlib import Path

from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.captures.places import PICTURES, last_number
from ducos.errors import InputError
from ducos.files import WRITTEN_AS, Failure, Found, together

WORDS = {
    "colour": ("color", "colour", "rgb", "image", "img", "left", "colors", "images"),
    "depth": ("depth", "depths", "disp_depth"),
    "mask": ("mask", "masks", "valid"),
    "confidence": ("conf", "confidence"),
}
ENDINGS = {
    "colour": PICTURES,
    "depth": tuple(WRITTEN_AS),
    "mask": PICTURES,
    "confidence": (*PICTURES, *WRITTEN_AS),
}
SPLIT = re.compile(r"[_\-. ]+")
LARGEST_DELAY = 0.04  # seconds; a frame of a 25 Hz camera


def recognises(path: Path) -> bool:
    """Whether a folder has at least one colour image and one depth map by name."""
    if not path.is_dir():
        return False
    try:
        found = by_kind(path)
    except InputError:
        return True  # it will say what is wrong
    return bool(found["colour"] and found["depth"])


def by_kind(folder: Path) -> dict[str, dict[str, Path]]:
    """Kind -> id -> file, of the folder and of the folders in it that a kind's word names."""
    found: dict[str, dict[str, Path]] = {kind: {} for kind in WORDS}
    for place in (folder, *sorted(entry for entry in folder.iterdir() if entry.is_dir())):
        whole = None if place == folder else kind_of([place.name.lower()])
        if place != folder and whole is None:
            continue
        for path in sorted(place.iterdir()):
            words = SPLIT.split(path.stem.lower())
            kind = whole or kind_of(words)
            if path.name.startswith(".") or kind is None or not path.is_file():
                continue
            if path.suffix.lower() not in ENDINGS[kind]:
                continue
            name = "_".join(w for w in SPLIT.split(path.stem) if w.lower() not in WORDS[kind])
            if name in found[kind] and found[kind][name].parent == place:
                raise InputError(f"{path} and {found[kind][name].name} have one id; remove one")
            found[kind].setdefault(name, path)
    return found


def kind_of(words: list[str]) -> str | None:
    """Depth first: `depth_image` is no colour image."""
    for kind in ("depth", "mask", "confidence", "colour"):
        if any(word in WORDS[kind] for word in words):
            return kind
    return None


class Named(Capture):
    """A folder whose files say by their names what they are."""

    def find(self) -> Found:
        files = by_kind(self.path)
        colour, depth = files["colour"], files["depth"]
        ids = [(name, name) for name in sorted(colour.keys() & depth.keys(), key=in_order)]
        if not ids:
            ids = by_time(list(colour), list(depth))
        used = {first for first, _ in ids}, {second for _, second in ids}
        alone = [
            Failure(name, str(colour[name]), "", "it has no depth file")
            for name in sorted(colour.keys() - used[0])
        ] + [
            Failure(name, "", str(depth[name]), "it has no colour file")
            for name in sorted(depth.keys() - used[1])
        ]
        pairs = [
            FrameRef(
                rgb=colour[first],
                depth=depth[second],
                out=first or "frame",
                mask=files["mask"].get(second),
                confidence=files["confidence"].get(second),
                source=self.path,
                layout="named",
            )
            for first, second in ids
        ]
        return Found(list(pairs), "named", alone)

    def read(self, ref: FrameRef, unit: str = "auto", scale: float | None = None) -> Frame:
        low = measured(ref.depth, unit, scale, mask=ref.mask, confidence=ref.confidence)
        return Frame(ref.rgb, low)


def in_order(name: str) -> tuple[float, str]:
    """Frame 10 comes after frame 9."""
    number = last_number(name)
    return (float(number) if number else 0.0, name)


def by_time(first: list[str], second: list[str]) -> list[tuple[str, str]]:
    """Ids whose numbers, taken for time stamps, are nearest."""
    stamps = [[(seconds(name), name) for name in names] for names in (first, second)]
    known = [[(t, n) for t, n in each if t is not None] for each in stamps]
    pairs = together([t for t, _ in known[0]], [t for t, _ in known[1]], LARGEST_DELAY)
    return [(known[0][i][1], known[1][j][1]) for i, j in pairs]


def seconds(name: str) -> float | None:
    """A time stamp in seconds; long whole numbers are milli-, micro- or nanoseconds."""
    number = last_number(name)
    if number is None:
        return None
    whole = number.partition(".")[0]
    if "." in number or len(whole) < 11:
        return float(number) if "." in number else None  # counters are no times
    return float(number) / 10 ** (3 if len(whole) < 14 else 6 if len(whole) < 17 else 9)
