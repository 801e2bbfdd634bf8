"""A result as one safetensors file: all of its maps and facts, exact to the bit.

The page and the Python client read this; a job keeps it, and every other format is made of it.
"""

import json
from dataclasses import replace
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from ducos.arrays import AnyArray, Floats
from ducos.cameras import Camera, flying_pixels
from ducos.doctor import Correction
from ducos.files import DepthMap
from ducos.upscaling import Options, Result, Upscaler

ASSUMED_VIEW = 60.0  # degrees across, where nobody says; most phone and depth cameras have 55 to 75
LOW = ("unit", "scale", "note", "guessed")


def packed(result: Result[Any]) -> bytes:
    """The maps and facts of a result, without its image and options."""
    low = result.low
    maps: dict[str, AnyArray | None] = {
        "depth": result.depth,
        "valid": result.valid,
        "source": result.source,
        "sigma": result.sigma,
        "low": low.depth,
        "low_valid": low.valid,
        "low_confidence": low.confidence,
    }
    facts = {
        **result.facts(),
        "low": {name: getattr(low, name) for name in LOW},
    }
    there = {name: np.ascontiguousarray(each) for name, each in maps.items() if each is not None}
    return save(there, metadata={"facts": json.dumps(facts)})


def unpacked(content: bytes, image: Floats, options: Options) -> Result[Any]:
    """The result again. image: (H, W, 3) as it was read; options: those asked for."""
    maps, facts = load(content), facts_of(content)
    low = DepthMap(
        depth=maps["low"],
        valid=maps["low_valid"],
        confidence=maps.get("low_confidence"),
        **facts["low"],
    )
    return Result(
        depth=maps["depth"],
        valid=maps["valid"],
        source=maps["source"],
        sigma=maps.get("sigma"),
        image=image,
        low=low,
        model=facts["model"],
        residual=facts["residual"],
        noise=facts["noise"],
        shift=Correction(**facts["shift"]),
        options=options,
        notes=tuple(facts["notes"]),
        warnings=tuple(facts["warnings"]),
    )


def facts_of(content: bytes) -> dict[str, Any]:
    """The facts in a packed result: JSON in the header, after its length in 8 bytes."""
    length = int.from_bytes(content[:8], "little")
    facts: dict[str, Any] = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["facts"])
    return facts


def view_of(result: Result[Any], bicubic: Upscaler) -> bytes:
    """What the page needs besides: image, bicubic map, which pixels fly in either, camera."""
    plain = replace(result.options, model=bicubic.options.model, shift="off", any_aspect=True)
    plain = replace(plain, unit="auto", scale=None, mask=None, confidence=None)
    plain = replace(plain, depth_intrinsics=None, extrinsics=None)
    other = bicubic.run(result.image, result.low, plain)
    H, W = result.depth.shape
    stated = result.options.rgb_intrinsics is not None or result.options.field_of_view is not None
    camera = result.camera() if stated else Camera.from_field_of_view(W, H, ASSUMED_VIEW)
    maps: dict[str, AnyArray] = {
        "image": (result.image * 255).round().clip(0, 255).astype(np.uint8),
        "bicubic": other.depth,
        "flying": flying_pixels(result.depth, result.valid, camera, **result.doubts),
        "bicubic_flying": flying_pixels(other.depth, other.valid, camera),
    }
    if not camera.undistorted:
        v, u = np.mgrid[:H, :W]
        maps["rays"] = camera.directions(u, v)[..., :2].astype(np.float32)
    about = {name: getattr(camera, name) for name in ("fx", "fy", "cx", "cy")}
    facts = {"camera": {**about, "assumed": not stated}, "metric": result.metric}
    contiguous = {name: np.ascontiguousarray(each) for name, each in maps.items()}
    return save(contiguous, metadata={"facts": json.dumps(facts)})
