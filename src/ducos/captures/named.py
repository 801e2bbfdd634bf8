"""Pairs by name in the ways people name them, beyond those that `ducos.files.find_pairs` knows.

Kinds of files are told by a word (color, rgb, image, depth, conf, mask, in any case) in the name or
in the folder's name; the rest of the name is the id. Where no ids agree, numbers in the names do
(`3_rgb`, `3_raw_depth`), or time stamps, nearest first; and one image beside one depth map is a
pair whatever they are called. A folder of folders that each hold one pair is a recording, too.
A camera's file beside the frames is used if it can be read.
"""

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ducos.cameras import Camera, read_camera
from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.captures.places import PICTURES, last_number
from ducos.errors import InputError
from ducos.files import DEPTH_MAPS, Failure, Found, picture_size, together

WORDS = {
    "colour": ("color", "colour", "rgb", "image", "img", "left", "colors", "images"),
    "depth": ("depth", "depths", "disp_depth"),
    "mask": ("mask", "masks", "valid"),
    "confidence": ("conf", "confidence"),
}
ENDINGS = {
    "colour": PICTURES,
    "depth": DEPTH_MAPS,
    "mask": PICTURES,
    "confidence": (*PICTURES, *DEPTH_MAPS),
}
# After `depth`: a picture of the depth, which is no depth. `depth_to_color` is registered depth.
VIEWS = ("color", "colour", "colored", "coloured", "colormap", "vis", "viz", "preview", "jet")
# Words of which the name of a camera's file is made, such as camera_params.json, cam_K.txt.
CAMERA = {"camera", "cam", "k", "intrinsic", "intrinsics", "params", "info", "matrix", "color"}
CAMERAS = (".json", ".yaml", ".yml", ".xml", ".txt", ".npy", ".npz", ".mat")
SPLIT = re.compile(r"[_\-. ]+")
LARGEST_DELAY = 0.04  # seconds; a frame of a 25 Hz camera


def recognises(path: Path) -> bool:
    """Whether a folder, or folders in it, have at least one colour image and one depth map."""
    return path.is_dir() and (holds_pairs(path) or bool(scenes(path)))


def holds_pairs(path: Path) -> bool:
    """Whether there are files of both kinds here."""
    try:
        found = by_kind(path)
    except InputError:
        return True  # it will say what is wrong
    return bool(found["colour"] and found["depth"])


def scenes(path: Path) -> list[Path]:
    """Folders in this one that hold one pair each, in order.

    Several recordings side by side are not taken for one: they may be of several cameras.
    """
    places = sorted((e for e in path.iterdir() if e.is_dir()), key=lambda e: in_order(e.name))
    return [place for place in places if place.name[0] != "." and is_scene(place)]


def is_scene(place: Path) -> bool:
    """Whether one colour image and one depth map lie in a folder, not in folders of their own."""
    try:
        found = by_kind(place)
    except InputError:
        return False
    pair = [*found["colour"].values(), *found["depth"].values()]
    return len(found["colour"]) == len(found["depth"]) == 1 and {p.parent for p in pair} == {place}


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
            if path.suffix.lower() not in ENDINGS[kind] or is_view(words):
                continue
            name = "_".join(w for w in SPLIT.split(path.stem) if w.lower() not in WORDS[kind])
            if name in found[kind] and found[kind][name].parent == place:
                raise InputError(f"{path} and {found[kind][name].name} have one id; remove one")
            found[kind].setdefault(name, path)
    return found


def is_view(words: list[str]) -> bool:
    """Whether a name is that of a picture of depth."""
    after = words[words.index("depth") + 1 :] if "depth" in words else []
    return "to" not in after and any(word in VIEWS for word in after)


def kind_of(words: list[str]) -> str | None:
    """Depth first: `depth_image` is no colour image."""
    for kind in ("depth", "mask", "confidence", "colour"):
        if any(word in WORDS[kind] for word in words):
            return kind
    return None


class Named(Capture):
    """A folder whose files say by their names what they are, or a folder of such folders."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.cameras: dict[Path, list[Path]] = {}  # files by folder

    def find(self) -> Found:
        if holds_pairs(self.path):
            return self.found_in(self.path)
        pairs: list[FrameRef] = []
        for place in scenes(self.path):
            found = self.found_in(place)
            for pair in found.pairs:
                assert isinstance(pair, FrameRef)
                pairs.append(replace(pair, out=place.name))
        return Found(list(pairs), "named", [])

    def found_in(self, place: Path) -> Found:
        """The pairs of one folder."""
        files = by_kind(place)
        colour, depth = files["colour"], files["depth"]
        ids = [(name, name) for name in sorted(colour.keys() & depth.keys(), key=in_order)]
        if not ids:
            ids = by_time(list(colour), list(depth)) or by_number(list(colour), list(depth))
        if not ids and len(colour) == len(depth) == 1:
            ids = [(next(iter(colour)), next(iter(depth)))]
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
        return Frame(ref.rgb, low, self.camera(ref.rgb))

    def camera(self, rgb: Path) -> Camera | None:
        """The camera of a file in the image's folder or in those around it, up to the recording's.

        None if there is none, if there are several, or if it cannot be read: it may be anything.
        """
        size = picture_size(rgb)
        for place in rgb.parents:
            if place not in self.cameras:
                self.cameras[place] = camera_files(place)
            found = self.cameras[place]
            if len(found) == 1 and size is not None:
                with suppress(InputError):
                    return read_camera(found[0], "colour", (size[1], size[0]))
            if found or place == self.path:
                break
        return None


def camera_files(place: Path) -> list[Path]:
    """Files of a folder whose names are made of words for cameras only."""
    return [
        path
        for path in sorted(place.iterdir())
        if path.suffix.lower() in CAMERAS
        and set(SPLIT.split(path.stem.lower())) <= CAMERA
        and path.is_file()
    ]


def in_order(name: str) -> tuple[float, str]:
    """Frame 10 comes after frame 9."""
    number = last_number(name)
    return (float(number) if number else 0.0, name)


def by_number(first: list[str], second: list[str]) -> list[tuple[str, str]]:
    """Ids whose last numbers agree, if no number comes twice."""
    numbers = [{last_number(name): name for name in names} for names in (first, second)]
    if [len(each) for each in numbers] != [len(first), len(second)]:
        return []
    both = numbers[0].keys() & numbers[1].keys() - {None}
    pairs = [(numbers[0][number], numbers[1][number]) for number in both]
    return sorted(pairs, key=lambda pair: in_order(pair[0]))


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
