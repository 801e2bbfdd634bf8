"""Images of ROS messages: raw, compressed, and compressedDepth."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

from ducos.arrays import AnyArray, Bytes
from ducos.captures.decoding import check_pixels, colour, picture
from ducos.errors import InputError

DEPTH_ENCODINGS = ("16UC1", "mono16", "32FC1", "Z16")
COLOURS = {  # encoding -> channels, and the order of red, green, blue among them
    "rgb8": (3, (0, 1, 2)),
    "bgr8": (3, (2, 1, 0)),
    "rgba8": (4, (0, 1, 2)),
    "bgra8": (4, (2, 1, 0)),
    "mono8": (1, (0, 0, 0)),
    "8UC1": (1, (0, 0, 0)),
    "8UC3": (3, (2, 1, 0)),
    "8UC4": (4, (2, 1, 0)),
}
QUANTISED = struct.Struct("<iff")  # head of compressedDepth: format, two parameters


def is_depth(message: Any, topic: str) -> bool:
    """Whether an image message holds depth: by its encoding; infrared is mono16 too, so by name."""
    packed = getattr(message, "format", None)
    if packed is not None:
        return "compressedDepth" in packed or ("depth" in topic.lower() and "16UC1" in packed)
    if message.encoding in ("16UC1", "32FC1", "Z16"):
        return True
    return message.encoding == "mono16" and "depth" in topic.lower()


def message_depth(message: Any, name: object) -> AnyArray:
    """Stored values (h, w): uint16, or float32 metres."""
    if hasattr(message, "format"):
        return packed_depth(bytes(message.data), str(message.format), name)
    sizes = {"16UC1": "u2", "mono16": "u2", "Z16": "u2", "32FC1": "f4"}
    if message.encoding not in sizes:
        raise InputError(f"{name} has depth of the encoding {message.encoding!r}; unknown")
    kind = np.dtype((">" if message.is_bigendian else "<") + sizes[message.encoding])
    rows = rows_of(message, kind.itemsize, name)
    return rows.view(kind).astype(kind.newbyteorder("="))


def packed_depth(content: bytes, packing: str, name: object) -> AnyArray:
    """compressedDepth: a head of twelve bytes, then a PNG; floats are stored as their inverse."""
    if "compressedDepth" not in packing:
        return depth_picture(content, name)
    if len(content) <= QUANTISED.size:
        raise InputError(f"{name} has a compressedDepth message of {len(content)} bytes; damaged")
    if "rvl" in packing.lower():
        raise InputError(f"{name} packs depth as RVL, which ducos cannot read; republish it as PNG")
    _, a, b = QUANTISED.unpack(content[: QUANTISED.size])
    stored = depth_picture(content[QUANTISED.size :], name)
    if not packing.startswith("32FC1"):
        return stored
    with np.errstate(all="ignore"):
        metres = np.float32(a) / (stored.astype(np.float32) - np.float32(b))
    return np.where(stored > 0, metres, np.float32(0))


def depth_picture(content: bytes, name: object) -> AnyArray:
    """A 16-bit grey PNG."""
    plane = picture(content, name)
    if plane.ndim != 2 or plane.dtype == np.uint8:
        raise InputError(f"{name} has depth packed as {plane.dtype} {plane.shape}; expected 16 bit")
    return plane.astype(np.uint16)


def message_colour(message: Any, name: object) -> Bytes:
    """(H, W, 3) uint8."""
    if hasattr(message, "format"):
        image = colour(bytes(message.data), name)
        # Said is how the picture was before it was packed; JPEG and PNG hold red first, always.
        return image
    if message.encoding in ("yuv422", "yuv422_yuy2", "YUYV", "uyvy", "UYVY"):
        return of_yuv(message, name)
    if message.encoding.startswith("bayer_"):
        return of_bayer(message, name)
    if message.encoding not in COLOURS:
        known = ", ".join(COLOURS)
        raise InputError(f"{name} has images of the encoding {message.encoding!r}; known: {known}")
    channels, order = COLOURS[message.encoding]
    rows = rows_of(message, channels, name)
    return np.ascontiguousarray(rows.reshape(message.height, message.width, channels)[..., order])


def of_yuv(message: Any, name: object) -> Bytes:
    """Two bytes per pixel, by OpenCV."""
    from ducos.errors import needed

    cv2 = needed("cv2", "formats")
    rows = rows_of(message, 2, name).reshape(message.height, message.width, 2)
    first = message.encoding.lower() in ("yuv422", "uyvy")
    return np.asarray(
        cv2.cvtColor(rows, cv2.COLOR_YUV2RGB_UYVY if first else cv2.COLOR_YUV2RGB_YUY2)
    )


def of_bayer(message: Any, name: object) -> Bytes:
    """A mosaic of colours, by OpenCV, whose names state the second row's second and third pixel."""
    from ducos.errors import needed

    cv2 = needed("cv2", "formats")
    patterns = {"rggb8": "BG", "bggr8": "RG", "gbrg8": "GR", "grbg8": "GB"}
    pattern = patterns.get(message.encoding.removeprefix("bayer_"))
    if pattern is None:
        raise InputError(f"{name} has images of the encoding {message.encoding!r}; unknown")
    rows = rows_of(message, 1, name)
    return np.asarray(cv2.cvtColor(rows, getattr(cv2, f"COLOR_Bayer{pattern}2RGB")))


def rows_of(message: Any, item: int, name: object) -> Bytes:
    """(height, width * item) bytes of a raw image, whose rows may be padded."""
    height, width, step = int(message.height), int(message.width), int(message.step)
    check_pixels(Path(str(name)), width, height)
    data = np.asarray(message.data, np.uint8)
    step = step or width * item
    if step < width * item or data.size < step * (height - 1) + width * item:
        raise InputError(
            f"{name} has an image of {width}×{height} with {data.size} bytes; it is damaged"
        )
    padded = np.zeros(step * height, np.uint8)
    padded[: min(data.size, padded.size)] = data[: padded.size]
    return np.ascontiguousarray(padded.reshape(height, step)[:, : width * item])
