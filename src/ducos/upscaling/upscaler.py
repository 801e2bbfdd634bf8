"""Upscaler and super_resolve: the one way in for people, commands, batches and evaluation.

Units, masks, registration, shift, normalisation and their undoing happen on this way and nowhere
else.
"""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from threading import Lock
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ducos.cameras import checked_camera, read_extrinsics, registered
from ducos.doctor import Correction, cheap_warnings, check_direction, noise_of, shift_to_undo
from ducos.errors import InputError
from ducos.files import DepthMap, check_sizes, is_tensor, read_colour, read_low, read_relative
from ducos.models import Prediction, as_model
from ducos.resize import Size, bilinear, fill_holes, moved
from ducos.upscaling.consistency import disagreement, trace
from ducos.upscaling.loading import device_of, load
from ducos.upscaling.options import OPTIONS, Options, is_name, memory_limit
from ducos.upscaling.prediction import predict
from ducos.upscaling.result import Result
from ducos.upscaling.weights import version_of

Progress = Callable[[float], None]
MARGIN = 0.25
"""Of the range of the measurements: by how much a result may leave it."""

FIXED = ("model", "device", "accept_noncommercial")  # of an upscaler, once it is made


class Upscaler:
    """A model that is loaded once and called many times, also from several threads.

        upscaler = Upscaler("ducos-tiny", sensor="tof")
        for rgb, depth in frames:
            result = upscaler(rgb, depth)

    Args:
        model: a name from `ducos models`, a weight file, or a module; None takes the default.
        device: auto, cpu, cuda or mps; a module that is handed in runs where it is.
        settings: any other field of `Options`, for all calls.
    """

    def __init__(self, model: Any = None, *, device: str = "auto", **settings: Any):
        self.options = Options.of(None, {"model": model, "device": device, **settings})
        self.network: nn.Module
        if is_name(model) or model is None:
            chosen = str(self.options.chosen_model)
            named = (chosen, version_of(chosen))
            self.name = " ".join(part for part in named if part)
            self.device = device_of(device)
            self.network = load(
                chosen,
                device=self.device,
                accept_noncommercial=self.options.accept_noncommercial,
            )
        else:
            self.name, self.network = type(model).__name__, model
            where = next((p.device for p in model.parameters()), None)
            self.device = where or device_of(device)
        self.mode = Lock()  # of a module in training: it is told to evaluate, and back

    def __call__(
        self, rgb: Any, depth: Any, *, progress: Progress | None = None, **changes: Any
    ) -> Result[Any]:
        """Bring a depth map to the size of its colour image; changes: fields of `Options`."""
        for name in FIXED:
            if name in changes and changes[name] != getattr(self.options, name):
                raise InputError(f"{name} is fixed when an Upscaler is made; make another")
        return self.run(rgb, depth, Options.of(self.options, changes), progress)

    def run(
        self, rgb: Any, depth: Any, options: Options, progress: Progress | None = None
    ) -> Result[Any]:
        """The whole way of one pair, in the order in which it happens."""
        image: NDArray[np.float32] = read_colour(rgb)
        try:
            low = read_low(depth, options.unit, options.scale, options.mask, options.confidence)
        except InputError as problem:
            raise InputError(f"{problem}{swapped(image, problem)}") from problem
        notes = [low.note]
        warnings = cheap_warnings(low) if options.shift != "off" else []
        if options.registers:
            low, sentence, doubts = in_colour_camera(image, low, options)
            notes.append(sentence)
            warnings += doubts
        elif options.rgb_intrinsics is not None:
            camera = checked_camera(options.rgb_intrinsics, "colour", image.shape[:2])
            warnings += camera.doubts()
        check_sizes(image.shape[:2], low.depth.shape, options.any_aspect)
        shift = shift_to_undo(options.shift, image, low)
        steps = whole_steps(shift, image.shape[:2])
        noise = noise_of(low) if options.noise is None else options.noise
        with computing(options.threads), self.evaluating():
            prediction = self.predict(image, low, steps, options, noise, progress)
        bounds = allowed_range(low) if as_model(self.network).bounded else None
        tensors, residual = finished(prediction, low, steps, options, bounds)
        maps: dict[str, Any] = dict(tensors)
        if not is_tensor(depth):
            maps = {key: None if value is None else value.numpy() for key, value in tensors.items()}
        if shift.note and not shift.warns:
            notes.append(shift.note)
        return Result(
            **maps,
            image=image,
            low=low,
            model=self.name,
            residual=residual,
            noise=noise,
            shift=shift,
            options=options,
            notes=tuple(notes),
            warnings=(*warnings, *((shift.note,) if shift.warns else ())),
        )

    def predict(
        self,
        image: NDArray[np.float32],
        low: DepthMap,
        steps: tuple[int, int],
        options: Options,
        noise: float,
        progress: Progress | None,
    ) -> Prediction:
        """The network's answer (1, 1, H, W) in metres, where the measurements lie."""
        # The picture goes to the measurements, not they to it: no measurement is resampled.
        rgb = moved(torch.tensor(image).permute(2, 0, 1)[None], *steps).contiguous()
        prior = None if options.prior is None else self.relative(options.prior, image.shape[:2])
        inputs = (rgb, *as_tensors(low))
        trust = None if low.confidence is None else torch.from_numpy(low.confidence)[None, None]
        with torch.inference_mode():
            return predict(
                self.network,
                *(x.to(self.device) for x in inputs),
                confidence=None if trust is None else trust.to(self.device),
                mode=options.mode,
                sensor=options.sensor,
                noise=noise,
                prior=None if prior is None else moved(prior, *steps).to(self.device),
                metric=low.unit != "relative",
                memory=memory_limit(options.tile),
                progress=progress,
            )

    def relative(self, prior: Any, size: Size) -> Tensor:
        """A prior at the size of the image, (1, 1, H, W), without holes."""
        if not as_model(self.network).takes_prior:
            raise InputError(f"{self.name} takes no prior; choose ducos-small, or leave it out")
        plane = torch.from_numpy(read_relative(prior))[None, None]
        check_sizes(size, plane.shape[-2:], self.options.any_aspect)
        return bilinear(fill_holes(plane.nan_to_num(), plane.isfinite()), size)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """A module that is being trained is put into evaluation meanwhile."""
        if not self.network.training:
            yield
            return
        with self.mode:
            try:
                self.network.eval()
                yield
            finally:
                self.network.train()


def swapped(image: NDArray[np.float32], problem: InputError) -> str:
    """A question, if the depth is a colour picture and the colour image a grey one."""
    grey = bool((image[..., 0] == image[..., 1]).all() and (image[..., 0] == image[..., 2]).all())
    return (
        "; are colour image and depth map swapped?" if grey and "channels" in str(problem) else ""
    )


def in_colour_camera(
    image: NDArray[np.float32], low: DepthMap, options: Options
) -> tuple[DepthMap, str, list[str]]:
    """The registered map, a sentence about it, and doubts about the cameras."""
    size = (image.shape[0], image.shape[1])
    cameras = (
        checked_camera(options.depth_intrinsics, "depth", low.depth.shape),
        checked_camera(options.rgb_intrinsics, "colour", size),
    )
    pose = read_extrinsics(options.extrinsics)
    seen, sentence = registered(low, size, *cameras, pose)
    doubts = [doubt for camera in cameras for doubt in camera.doubts()]
    if options.shift in ("check", "auto"):  # whoever turns looking off means this too
        wrong = check_direction(
            image, seen, pose, lambda other: registered(low, size, *cameras, other)[0]
        )
        doubts += [wrong] if wrong else []
    return seen, sentence, doubts


def finished(
    prediction: Prediction,
    low: DepthMap,
    steps: tuple[int, int],
    options: Options,
    bounds: tuple[float, float] | None,
) -> tuple[dict[str, Tensor | None], float]:
    """Maps of the result by name, (H, W) each, on the picture; and the residual.

    bounds: lowest and highest value that it may hold; None: any.
    """
    measured, valid = as_tensors(low)
    full = prediction.depth.cpu()
    full = full if bounds is None else full.clamp(*bounds)
    residual = disagreement(full, measured, valid)
    source = trace(valid, (full.shape[-2], full.shape[-1]))
    sigma = prediction.aux.get("sigma")
    # Back onto the picture; what comes in at a border was not in the depth camera's view.
    back = (-steps[0], -steps[1])
    full = moved(full, *back)[0, 0]
    source = moved(source, *back, beyond=3)
    sigma = None if sigma is None else moved(sigma.cpu(), *back)[0, 0].clone()
    leaned = prediction.aux.get("leaned")
    leaned = None if leaned is None else moved(leaned.cpu(), *back)[0, 0].clone()
    covered = source == 1 if options.keep_holes else torch.ones_like(source, dtype=torch.bool)
    source = torch.where(covered, source, torch.zeros_like(source))
    full = torch.where(covered, full, torch.zeros_like(full))
    maps = {"depth": full, "valid": covered, "source": source, "sigma": sigma, "leaned": leaned}
    return maps, residual


def allowed_range(low: DepthMap) -> tuple[float, float]:
    """What a result may hold: the range of the measurements, and a quarter of it on both sides.

    Nothing is nearer than half the nearest measurement; levels of which none is negative stay so.
    """
    measured = low.depth[low.valid]
    lowest, highest = float(measured.min()), float(measured.max())
    spare = MARGIN * (highest - lowest)
    floor = 0.5 * lowest if lowest >= 0 else -np.inf
    return max(lowest - spare, floor), highest + spare


def as_tensors(low: DepthMap) -> tuple[Tensor, Tensor]:
    """Metres and mask as batches of one, (1, 1, h, w)."""
    return torch.from_numpy(low.depth)[None, None], torch.from_numpy(low.valid)[None, None]


def whole_steps(shift: Correction, size: tuple[int, ...]) -> tuple[int, int]:
    """A shift as whole pixels (right, down); refuses what leaves no overlap."""
    H, W = size
    if not (abs(shift.x) < W / 2 and abs(shift.y) < H / 2):
        raise InputError(
            f"a shift is given in pixels of the colour image, right and down, and stays below half "
            f"of its {W}×{H}; got {shift.x:g},{shift.y:g}"
        )
    return round(shift.x), round(shift.y)


_threads = {"most": 1, "forked": 0}


def after_fork() -> None:
    """In a forked child torch's threads are gone, and to wait for them is to wait for ever."""
    if _threads["most"] > 1:
        torch.set_num_threads(1)
        _threads["forked"] = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)


@contextmanager
def computing(threads: int | None) -> Iterator[None]:
    """So many threads of the processor meanwhile; the number belongs to the whole process."""
    _threads["most"] = max(_threads["most"], threads or torch.get_num_threads())
    if _threads["forked"] and (threads or 1) > 1:
        raise InputError(
            f"this process was forked after a super-resolution, so it has one thread, got {threads}"
            " threads; leave threads out, or start processes by spawn instead of fork"
        )
    if threads is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@overload
def super_resolve(
    rgb: Any,
    depth: Tensor,
    options: Options | None = ...,
    *,
    progress: Progress | None = ...,
    **changes: Any,
) -> Result[Tensor]: ...


@overload
def super_resolve(
    rgb: Any,
    depth: Any,
    options: Options | None = ...,
    *,
    progress: Progress | None = ...,
    **changes: Any,
) -> Result[NDArray[Any]]: ...


def super_resolve(
    rgb: Any,
    depth: Any,
    options: Options | None = None,
    *,
    progress: Progress | None = None,
    **changes: Any,
) -> Result[Any]:
    """Bring a low-resolution depth map to the size of its colour image.

    Args:
        rgb: path, PIL image, (H, W, 3) array or (3, H, W) tensor.
        depth: path, (h, w) array or tensor, or a DepthMap; any ratio to rgb, the same view.
        options: as one object; or one by one as keyword arguments, or both.
        progress: called with the share of the work that is done, where strips are used.

    Options:
    {options}

    Returns:
        Result; its maps are tensors if `depth` is one, else arrays.
    """
    chosen = Options.of(options, changes)
    upscaler = Upscaler(
        chosen.chosen_model, device=chosen.device, accept_noncommercial=chosen.accept_noncommercial
    )
    return upscaler.run(rgb, depth, chosen, progress)


def documented(function: Callable[..., Any]) -> None:
    """Let `help` and editors show the options, which are written down once, in `Options`."""
    sentences = (f"    {name}: {each.metadata['help']}" for name, each in OPTIONS.items())
    function.__doc__ = str(function.__doc__).replace("{options}", "\n    ".join(sentences))
    own = inspect.signature(function)
    kinds = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )
        for each in fields(Options)
    ]
    kept = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    function.__signature__ = own.replace(parameters=[*kept, *kinds])  # type: ignore[attr-defined]


documented(super_resolve)
