"""Pixels that tell less than they seem to: holes, noise, and those that float between surfaces."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ducos.arrays import Floats, Mask
from ducos.cameras import foretold
from ducos.doctor.findings import Finding
from ducos.files import DepthMap
from ducos.filters import areas, minimum

FEW_HOLES, MANY_HOLES = 0.02, 0.5  # of the map
FEWEST_POINTS = 0.0002  # of the map
STRONG_NOISE = 0.01  # of the depth, one standard deviation
MANY_MIXED = 0.25  # of the edge pixels


def check_holes(low: DepthMap) -> Iterator[Finding]:
    """holes: how many, and of which kind."""
    holes = ~low.valid
    share = float(holes.mean())
    if share <= FEW_HOLES:
        return
    h, w = holes.shape
    pieces = areas(holes)
    count = len(pieces)
    largest = float(pieces.max() / holes.size)
    margin = _margin_share(holes)
    words = []
    if margin > 0.5 * share:
        words.append("mostly a margin, as registration leaves it")
    elif largest > 0.5 * share:
        words.append(f"mostly one area of {100 * largest:.0f} % of the map")
    elif share * h * w / count < 4:
        words.append("scattered single pixels")
    else:
        words.append(f"{count} separate areas")
    many = share > MANY_HOLES
    yield Finding(
        "holes",
        "warning" if many else "note",
        f"{100 * share:.0f} % of the depth map are holes, {words[0]}",
        "what fills them is inferred, not measured; --keep-holes leaves them" if many else "",
        {"share": share, "pieces": int(count), "largest": largest, "margin": margin},
    )


def check_scattered(low: DepthMap) -> Iterator[Finding]:
    """scattered: points of a LiDAR or of structure from motion rather than a map."""
    count, share = int(low.valid.sum()), float(low.valid.mean())
    apart = share**-0.5
    few = share < FEWEST_POINTS
    yield Finding(
        "scattered",
        "warning" if few else "note",
        f"scattered points, not a map: {count} on {100 * share:.2g} % of the pixels, about one in "
        f"{apart:.0f}×{apart:.0f}",
        "what lies between them is inferred; more points help more than anything else"
        if few
        else "they are spread along the edges of the image before super-resolution; what lies "
        "between them is inferred",
        {"points": count, "share": share, "apart": apart},
    )


def _margin_share(holes: Mask) -> float:
    """Share of the map in whole empty rows and columns at its four sides."""
    rows, columns = np.flatnonzero(~holes.all(1)), np.flatnonzero(~holes.all(0))
    inside = (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
    return float(1 - inside / holes.size)


def check_noise(low: DepthMap, facts: dict[str, Any]) -> Iterator[Finding]:
    """noise; sets the fact `noise`, a share of the depth."""
    relative = noise_level(low.depth, low.valid, low.unit == "relative")
    facts["noise"] = relative
    if relative > STRONG_NOISE:
        of = "range" if low.unit == "relative" else "depth"
        yield Finding(
            "noise",
            "warning",
            f"noise of about {100 * relative:.1f} % of the {of} (one standard deviation)",
            "average several frames, or choose a model trained with noise",
            {"relative_sigma": relative},
        )


def noise_of(low: DepthMap) -> float:
    """Standard deviation of the noise of a map, in its own unit, at its median depth."""
    known = low.depth[low.valid]
    relative = low.unit == "relative"
    share = noise_level(low.depth, low.valid, relative)
    of = np.percentile(known, 99) - np.percentile(known, 1) if relative else np.median(known)
    return float(share * of)


def noise_level(depth: Floats, valid: Mask, relative: bool) -> float:
    """Standard deviation of pixel noise as a share of the depth (of the range if relative).

    Second differences along both axes at once vanish on every plane of the inverse depth and on
    straight edges along an axis; their lower quartile belongs to smooth parts of the scene. In a
    map with steps coarser than the noise it is 0.
    """
    if min(depth.shape) < 3:
        return 0.0
    known = depth[valid]
    if relative:
        span = float(np.percentile(known, 99) - np.percentile(known, 1))
        plane = depth.astype(np.float64) / max(span, 1e-9)
    else:
        distance = np.where(valid, depth, 1.0).astype(np.float64)  # its inverse may be large
        plane = np.where(valid, float(np.median(known)) / distance, 0.0)
    along = plane[:, :-2] - 2 * plane[:, 1:-1] + plane[:, 2:]
    mixed = (along[:-2] - 2 * along[1:-1] + along[2:]) / 6  # unit gain for white noise
    if not relative:
        mixed = mixed / np.where(valid, plane, 1.0)[1:-1, 1:-1]
    whole = minimum(valid, 3)[1:-1, 1:-1]
    if whole.sum() < 16:
        return 0.0
    return float(np.quantile(np.abs(mixed[whole]), 0.25) / 0.3186)  # quartile of |N(0, 1)|


def check_flying(low: DepthMap, facts: dict[str, Any]) -> Iterator[Finding]:
    """flying-pixels; sets the fact `mixed_edge_share`, except for relative maps."""
    if low.unit == "relative":
        return
    mixed, edges = foretold(low.depth, low.valid)
    share = float(mixed.sum() / max(int(edges.sum()), 1))
    facts["mixed_edge_share"] = share
    if edges.sum() >= 20 and share > MANY_MIXED:
        yield Finding(
            "flying-pixels",
            "note",
            f"{100 * share:.0f} % of the pixels at depth edges float between the two surfaces "
            f"({100 * mixed.mean():.1f} % of the map), as averaging sensors and resizing make them",
            "if a time-of-flight camera made it, pass --sensor tof (mode repair); if nothing but "
            "resizing made them, give the map from before the resizing",
            {"share_of_edges": share, "share": float(mixed.mean())},
        )
