"""Importers by name, and which of them a path is for. Adding one: one file and one line here."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ducos.captures.frame import Capture, Frame, FrameRef, measured
from ducos.errors import InputError, one_line
from ducos.files import Found, FramePair, find_pairs
from ducos.lazy import Later


def own(place: str) -> Later:
    """A class of this room, imported when it is used."""
    return Later(f"ducos.captures.{place}")


@dataclass(frozen=True)
class Importer:
    """How a layout is read.

    recognises(path) -> bool, cheap. build(path) -> Capture. about: what it looks like, for people.
    sensor: kind of camera behind the layout, as in `ducos.hints.SENSORS`; unknown if it may be any.
    """

    build: Later
    recognises: Later
    about: str
    sensor: str = "unknown"


def importer(module: str, capture: str, about: str, sensor: str = "unknown") -> Importer:
    """The usual entry: a module with a Capture and a function `recognises`."""
    return Importer(own(f"{module}:{capture}"), own(f"{module}:recognises"), about, sensor)


# Tried in this order: the more particular layouts come first.
IMPORTERS: dict[str, Importer] = {
    "sens": importer("sens", "Sens", "ScanNet's .sens (JPEG colour, zlib depth)", "stereo"),
    "record3d": importer("record3d", "Record3D", "Record3D's .r3d", "lidar"),
    "mkv": importer("mkv", "Mkv", "Azure Kinect or Orbbec .mkv", "tof"),
    "bag": importer("bags", "Bag", "RealSense or ROS 1 .bag, ROS 2 bag folder, .db3, .mcap"),
    "stray": importer("stray", "Stray", "Stray Scanner (rgb.mp4, depth/, confidence/)", "lidar"),
    "arkitscenes": importer(
        "arkitscenes", "ARKitScenes", "ARKitScenes (lowres_depth/ with wide/ or lowres_wide/)",
        "lidar",
    ),
    "3dscanner": importer(
        "scanner_app", "ScannerApp", "3D Scanner App (frame_N.jpg, depth_N.png, frame_N.json)",
        "lidar",
    ),
    "7scenes": importer(
        "seven_scenes", "SevenScenes", "7-Scenes (frame-N.color.*, .depth.*, .pose.txt)", "stereo"
    ),
    "tum": importer("tum", "Tum", "TUM RGB-D (rgb.txt with depth.txt, or associations.txt)"),
    "scannet": importer(
        "scannet", "ScanNet", "ScanNet as exported (color/, depth/, pose/, intrinsic/)", "stereo"
    ),
    "redwood": importer(
        "redwood", "Redwood", "Redwood or Open3D (color/ or image/, depth/, with a camera JSON)"
    ),
    "rendered": importer(
        "rendered", "Rendered", "sets of `ducos synth` (manifest.jsonl, ID_rgb.jpg, ID_depth.png)"
    ),
    "named": importer(
        "named", "Named", "any pairs by name (N-color with N-depth, color_N with depth_N, …)"
    ),
}  # fmt: skip

UNDERSTOOD = (
    "rgb/ID.* with depth/ID.*, ID_rgb.* with ID_depth.*, a CSV file with columns rgb and depth, "
    + "; ".join(entry.about for entry in IMPORTERS.values())
)


def find_frames(source: str | Path) -> Found:
    """The frames of a recording in any layout of the table, of a plain folder or of a CSV file."""
    path = Path(source).expanduser()
    if not path.exists():
        raise InputError(f"got {path}, which does not exist; expected a recording: {UNDERSTOOD}")
    for name, entry in IMPORTERS.items():
        if entry.recognises(path):
            if name == "named" and is_plain(path):
                break
            found = opened(name, path).find()
            if not found.pairs:
                raise InputError(
                    f"no pairs in {path}, which looks like {entry.about}{_alone(found)}; "
                    "is the recording whole?"
                )
            return found
    if path.is_file() and path.suffix.lower() not in (".csv", ".txt", ""):
        raise InputError(f"{path} is no recording that is known; expected one of: {UNDERSTOOD}")
    try:
        return find_pairs(path)
    except InputError as problem:
        if path.is_file() or "no pairs" not in str(problem):
            raise
        raise InputError(f"{problem}; {contents(path)}; also understood: {UNDERSTOOD}") from None


def is_plain(folder: Path) -> bool:
    """Whether `find_pairs` knows the layout, which then keeps its names of results."""
    try:
        return bool(find_pairs(folder).pairs)
    except InputError:
        return False


def read_frame(pair: FramePair, unit: str = "auto", scale: float | None = None) -> Frame:
    """A frame as `find_frames` named it. unit, scale: as the user gave them."""
    if isinstance(pair, FrameRef):
        try:
            return opened(pair.layout, pair.source).read(pair, unit, scale)
        except InputError:
            raise
        except (OSError, MemoryError) as problem:
            raise InputError(f"{pair.source} could not be read: {one_line(problem)}") from problem
    low = measured(
        pair.depth, unit, scale, known=pair.scale, mask=pair.mask, confidence=pair.confidence
    )
    return Frame(pair.rgb, low)


_OPEN: dict[tuple[str, Path], Capture] = {}


def opened(layout: str, path: Path) -> Capture:
    """A recording, open; the last two stay so, since frames are asked for one by one."""
    if (layout, path) not in _OPEN:
        while len(_OPEN) > 1:
            _OPEN.pop(next(iter(_OPEN))).close()
        _OPEN[layout, path] = IMPORTERS[layout].build(path)
    return _OPEN[layout, path]


def contents(folder: Path) -> str:
    """What a folder holds, in a few words."""
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in folder.iterdir())
    folders = [name for name in names if name.endswith("/")]
    endings = Counter(Path(name).suffix or name for name in names if not name.endswith("/"))
    files = [f"{count} files {ending}" for ending, count in endings.most_common(4)]
    return "it holds " + (", ".join([*folders[:8], *files]) or "nothing")


def _alone(found: Found) -> str:
    return "".join(f" ({each.name}: {each.reason})" for each in found.unmatched[:1])
