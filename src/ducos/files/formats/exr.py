"""EXR. Read in the child process: the library prints what it dislikes and goes on."""

import math
from pathlib import Path

import numpy as np

from ducos.arrays import AnyArray
from ducos.errors import InputError, one_line
from ducos.files.formats.arrays import listed
from ducos.files.formats.limits import DEPTH_BYTES, MAX_BYTES, check_size, limit_memory
from ducos.files.formats.stored import Facts, Layers, Stored


def read_exr(source: Path, key: str | None) -> Stored:
    """One channel, of whichever part has it; facts from the header of the first part."""
    import OpenEXR

    if hasattr(OpenEXR, "set_global_thread_count"):  # since 3.4; before, there were no threads
        OpenEXR.set_global_thread_count(0)
    with OpenEXR.File(str(source), header_only=True) as file:
        samples = 0
        for part in file.parts:
            low, high = part.header["dataWindow"]
            size = (int(high[1]) - int(low[1]) + 1, int(high[0]) - int(low[0]) + 1)
            check_size(source, size)
            samples += math.prod(size) * len(part.header["channels"])
            if not np.array_equal(part.header["dataWindow"], part.header["displayWindow"]):
                raise InputError(
                    f"{source} stores only a crop of its image (its data window differs from "
                    "its display window); save it without cropping"
                )
        if samples * DEPTH_BYTES > MAX_BYTES:
            raise InputError(
                f"{source} declares {samples} values in all its channels, the limit is "
                f"{MAX_BYTES // DEPTH_BYTES}; save the depth channel alone"
            )
        limit_memory(samples)
        stated = {k: str(v) for k, v in file.header().items() if k.startswith("depth_")}
        declared_parts = len(file.parts)
    channels: dict[str, AnyArray] = {}
    with OpenEXR.File(str(source), separate_channels=True) as file:
        if len(file.parts) != declared_parts:  # the library has printed why, and goes on
            raise ValueError("its pixels are incomplete")
        for part in file.parts:
            for name, channel in part.channels.items():
                channels.setdefault(name, channel.pixels)
        return Stored(channels[_depth_channel(source, channels, key)].copy(), stated)


def _depth_channel(source: Path, channels: dict[str, AnyArray], key: str | None) -> str:
    """The channel asked for, or the one that is depth by its name or by being the only one."""
    if key is not None:
        if key not in channels:
            raise InputError(f"{source} has no channel {key!r}; it has {listed(list(channels))}")
        return key
    if "Z" in channels:
        return "Z"
    named = [name for name in channels if "depth" in name.lower().split(".")]
    for only in (named, list(channels)):
        if len(only) == 1:
            return only[0]
    # Renderers and OpenCV often write one value to all three colour channels.
    if {"R", "G", "B"} <= set(channels) and all(
        np.array_equal(channels["R"], channels[other], equal_nan=True) for other in "GB"
    ):
        return "R"
    raise InputError(
        f"{source} has no channel Z but {listed(list(channels))}; say which holds depth with "
        "key=..."
    )


def write_exr(path: Path, array: AnyArray, facts: Facts, layers: Layers) -> None:
    """Depth as channel Z, every layer as a channel of its name, the facts in the header."""
    import OpenEXR

    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage, **facts}
    channels = {"Z": np.ascontiguousarray(array)}
    for name, layer in layers.items():
        whole = layer.dtype.kind in "biu"
        channels[name] = np.ascontiguousarray(layer, np.uint32 if whole else np.float32)
    try:
        with OpenEXR.File(header, channels) as file:
            file.write(str(path))
    except RuntimeError as problem:  # what the library makes of a full disk
        raise OSError(one_line(problem).replace(str(path), "it")) from problem
