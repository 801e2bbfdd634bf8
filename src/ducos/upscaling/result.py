"""What super-resolution gives back: maps, what was decided on the way, and ways to look at it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ducos.cameras import Camera, Cloud, Mesh, checked_camera, mesh, point_cloud
from ducos.doctor import Correction
from ducos.errors import InputError
from ducos.files import FARTHEST_PNG, DepthMap, Written, is_tensor, write_depth
from ducos.hints import mode_of
from ducos.pictures import comparison, write_image
from ducos.upscaling.options import Options

SOURCES = {0: "none", 1: "measured", 2: "interpolated", 3: "inferred"}
"""Of each pixel: the measurement over it is valid (1); it lies in a hole, but a measurement is in
reach of the 4×4 window around it (2); none is, so surroundings and colour decided (3)."""

KEEP_LAYERS = (".npz", ".exr", ".h5", ".hdf5")

Map = TypeVar("Map")  # torch.Tensor where the input was one, else an array


@dataclass(frozen=True)
class Result(Generic[Map]):
    """A super-resolved depth map, at the size of the colour image.

    depth: (H, W) float32, metres (or the unit of a relative input).
    valid: (H, W) bool; False only where holes were asked to stay.
    source: (H, W) uint8, where the value comes from: see SOURCES.
    sigma: (H, W) float32, one standard deviation in metres, or None if the model has none.
    leaned: (H, W) float32 in [0, 1], how far the result follows the prior; None without one.
    image: (H, W, 3) colours in [0, 1]. low: the measurements as they were used, registered if
    asked for. model: which model ran, with the version of its weights.
    residual: RMS difference between the downsampled result and the valid input, same unit as depth.
    noise: of the input, one standard deviation in the same unit; given, or estimated.
    shift: where the depth lay on the image, and what was done about it.
    notes: sentences on what was done; warnings: sentences on what should be looked at.
    """

    depth: Map
    valid: Map
    source: Map
    sigma: Map | None
    image: NDArray[np.float32]
    low: DepthMap
    model: str
    residual: float
    noise: float
    shift: Correction
    options: Options
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    leaned: Map | None = None

    @property
    def note(self) -> str:
        """How the unit of the input was decided."""
        return self.low.note

    @property
    def metric(self) -> bool:
        """Whether depth is in metres."""
        return self.low.unit != "relative"

    def save(self, path: str | Path) -> Written:
        """Write the depth in the format of the suffix; .npz, .exr, .h5 also hold source, sigma.

        A PNG reaches to 65.534 m. It is refused if measurements lie beyond; values that only the
        result has are stored as that.
        """
        layers: dict[str, Any] = {}
        if Path(path).suffix.lower() in KEEP_LAYERS:
            layers = {"source": _array(self.source)}
            if self.sigma is not None:
                layers["sigma"] = _array(self.sigma)
            if self.leaned is not None:
                layers["leaned"] = _array(self.leaned)
        metres = _array(self.low.depth)[_array(self.low.valid)]
        return write_depth(
            path,
            _array(self.depth),
            _array(self.valid),
            unit=None if self.metric else "relative",
            # What is beyond a 16-bit file only because the result went beyond the measurements.
            saturate=self.metric and bool((metres < FARTHEST_PNG + 1e-4).all()),
            layers=layers,
            about={"model": self.model, "input_unit": self.note},
        )

    def preview(self, path: str | Path, truth: NDArray[np.float32] | None = None) -> None:
        """Write an overview image: maps, crops, an edge profile. truth: ground truth (H, W)."""
        maps = self.low.depth, self.low.valid, _array(self.depth), _array(self.valid)
        unit = "m" if self.metric else ""
        write_image(path, comparison(self.image, *maps, truth=truth, unit=unit))

    def camera(self) -> Camera:
        """The colour camera, from the options; for clouds and meshes."""
        H, W = self.image.shape[:2]
        if self.options.rgb_intrinsics is not None:
            return checked_camera(self.options.rgb_intrinsics, "colour", (H, W)).scaled(W, H)
        if self.options.field_of_view is not None:
            return Camera.from_field_of_view(W, H, self.options.field_of_view)
        raise InputError(
            "a cloud needs the colour camera: pass --rgb-intrinsics or --field-of-view DEGREES "
            "(in Python rgb_intrinsics, field_of_view, or a Camera)"
        )

    def cloud(self, camera: Camera | None = None, *, keep_flying: bool = False) -> Cloud:
        """Points in space, without those between two surfaces; `Cloud.save` writes .ply."""
        planes = (*self._in_space(), camera or self.camera())
        return point_cloud(*planes, **self.doubts, drop_flying=not keep_flying)

    def mesh(self, camera: Camera | None = None, *, keep_flying: bool = False) -> Mesh:
        """A surface with the image on it, torn at depth edges; `Mesh.save` writes .glb."""
        planes = (*self._in_space(), camera or self.camera())
        return mesh(*planes, **self.doubts, drop_flying=not keep_flying)

    def _in_space(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]:
        if not self.metric:
            raise InputError("a cloud needs metres: pass --unit or --scale (unit, scale)")
        return _array(self.depth), _array(self.valid), self.image

    @property
    def doubts(self) -> dict[str, Any]:
        """What clouds and meshes judge by which pixels to leave out."""
        sigma = None if self.sigma is None else _array(self.sigma)
        return {"sigma": sigma, "measured": _array(self.source) == 1}

    def facts(self) -> dict[str, Any]:
        """The summary for programs: plain values."""
        source, shown = _array(self.source), _array(self.depth)[_array(self.valid)]
        return {
            "model": self.model,
            "mode": mode_of(self.options.mode, self.options.sensor),
            "sensor": self.options.sensor,
            "size": list(source.shape),
            "input_size": list(self.low.depth.shape),
            "unit_decision": self.note,
            "holes_in_input": self.share_of_holes,
            "source": {name: float((source == code).mean()) for code, name in SOURCES.items()},
            "min": float(shown.min()),
            "max": float(shown.max()),
            "residual": self.residual,
            "noise": self.noise,
            "shift": vars(self.shift),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    def sentences(self) -> list[str]:
        """The summary for people."""
        (h, w), (H, W) = self.low.depth.shape, self.image.shape[:2]
        metres = " m" if self.metric else ""
        shown = _array(self.depth)[_array(self.valid)]
        holes = 100 * self.share_of_holes
        mode = mode_of(self.options.mode, self.options.sensor)
        return [
            *self.notes,
            f"{w}×{h} → {W}×{H} with {self.model}, mode {mode}; {holes:.1f} % holes in the input",
            f"depth {float(shown.min()):.3f} to {float(shown.max()):.3f}{metres}",
            f"consistency with the input: {self.residual:.4f}{metres} RMS; "
            f"noise of the input: {self.noise:.4f}{metres}",
        ]

    @property
    def share_of_holes(self) -> float:
        """Of the input's pixels, how many are invalid."""
        return float(1 - self.low.valid.mean())


def _array(plane: Any) -> NDArray[Any]:
    return plane.numpy() if is_tensor(plane) else np.asarray(plane)
