"""Upscaler and super_resolve: the one way in for people, commands, batches and evaluation.

Units, masks, registration, shift, normalisation and their undoing happen on this way and nowhere
else.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import AnyArray, Floats
from ducos.blas import one_thread
from ducos.doctor import Correction, noise_of, shift_to_undo
from ducos.errors import InputError
from ducos.files import DepthMap, check_sizes, is_tensor, read_colour, read_relative
from ducos.filters import turned
from ducos.sampling import bilinear, continued, moved
from ducos.upscaling.consistency import disagreement, trace
from ducos.upscaling.densify import densified, finest, spread_over
from ducos.upscaling.measurements import measurements
from ducos.upscaling.options import OPTIONS, Options, is_name
from ducos.upscaling.result import Result
from ducos.upscaling.runtimes import Answer, Progress, Question, Runtime, chosen_runtime, runtime_of
from ducos.upscaling.weights import version_of

if TYPE_CHECKING:
    from torch import Tensor

MARGIN = 0.25
"""Of the range of the measurements: by how much a result may leave it."""

LOOKS = ("check", "auto")  # shifts that are measured
FIXED = ("model", "runtime", "device", "accept_noncommercial")  # of an upscaler, once it is made

UNUSED_PRIOR = (
    "the prior was not used: it is flat, or its details are not where those of the depth map are,"
    " as of another image"
)


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
        self.runtime: Runtime = runtime_of(self.options)
        if is_name(model) or model is None:
            chosen = str(self.options.chosen_model)
            self.name = " ".join(part for part in (chosen, version_of(chosen)) if part)
        else:
            self.name = type(model).__name__
        self.ready_for(self.options)

    @property
    def network(self) -> Any:
        """What computes: a module of torch, or what onnxruntime has opened."""
        return self.runtime.network

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
        """The whole way of one pair, the same however many threads numpy has."""
        with one_thread():
            return self.answered(rgb, depth, options, progress)

    def answered(
        self, rgb: Any, depth: Any, options: Options, progress: Progress | None
    ) -> Result[Any]:
        """All steps in the order in which they happen."""
        self.ready_for(options)
        # Held once, as networks take it: (3, H, W), seen as (H, W, 3).
        image: NDArray[np.float32] = np.moveaxis(turned(read_colour(rgb)), 0, -1)
        low, notes, warnings = measurements(image, rgb, depth, options)
        given = low
        asked = options.shift
        if given.is_scattered and asked in LOOKS:  # so few points show no edges
            asked = "off"
        shift = shift_to_undo(asked, image, low)
        steps = whole_steps(shift, image.shape[:2])
        # The picture goes to the measurements, not they to it: no measurement is resampled.
        seen = moved(np.moveaxis(image, -1, 0), *steps)
        if given.is_scattered:
            low = densified(given, np.moveaxis(seen, 0, -1))
            notes.append(spread_over(given, low))
        noise = noise_of(low) if options.noise is None else options.noise
        name = self.name
        if given.is_scattered and not options.names_network:
            answer, name = Answer(finest(low, given, seen)), "membrane"
        else:
            question = Question(
                image=seen,
                low=low,
                prior=self.relative(options, image, steps, notes),
                noise=noise,
                options=options,
            )
            answer = self.runtime.answer(question, progress)
            if question.prior is not None and answer.leaned is not None and not answer.leaned.any():
                warnings.append(UNUSED_PRIOR)
        bounds = allowed_range(given) if self.runtime.bounded else None
        maps, residual = finished(answer, given, steps, options, bounds)
        if is_tensor(depth):
            from torch import from_numpy

            maps = {name: None if each is None else from_numpy(each) for name, each in maps.items()}
        if shift.note and not shift.warns:
            notes.append(shift.note)
        return Result(
            **maps,
            image=image,
            low=given,
            model=name,
            residual=residual,
            noise=noise,
            shift=shift,
            options=options,
            notes=tuple(notes),
            warnings=(*warnings, *((shift.note,) if shift.warns else ())),
        )

    def ready_for(self, options: Options) -> None:
        """Refuse a prior that nothing would take; load the foundation model that is to make one."""
        if options.prior is None and options.prompt is None:
            return
        if not self.runtime.takes_prior:
            raise InputError(f"{self.name} takes no prior; choose ducos-small, or leave it out")
        if options.foundation is not None:
            from ducos.upscaling.looking import network

            network(options.foundation, options)

    def relative(
        self, options: Options, image: Floats, steps: tuple[int, int], notes: list[str]
    ) -> Floats | None:
        """The prior that is asked for, at the size of the image (H, W, 3), (H, W), no holes."""
        if options.foundation is not None:
            from ducos.upscaling.looking import depth_seen

            seen, (h, w) = depth_seen(options.foundation, image, options)
            notes.append(f"the prior is what {options.foundation.name} sees at {w}×{h}")
            return moved(seen, *steps)
        if options.prior is None:
            return None
        size = (image.shape[0], image.shape[1])
        plane = read_relative(options.prior)
        check_sizes(size, plane.shape, options.any_aspect)
        whole = continued(np.nan_to_num(plane), np.isfinite(plane))
        return moved(bilinear(whole, size), *steps)


def finished(
    answer: Answer,
    low: DepthMap,
    steps: tuple[int, int],
    options: Options,
    bounds: tuple[float, float] | None,
) -> tuple[dict[str, Any], float]:
    """Maps of the result by name, (H, W) each, on the picture; and the residual.

    bounds: lowest and highest value that it may hold; None: any.
    """
    full = answer.depth if bounds is None else answer.depth.clip(*bounds)
    residual = disagreement(full, low.depth, low.valid)
    # Back onto the picture; what comes in at a border was not in the depth camera's view.
    back = (-steps[0], -steps[1])
    source = moved(trace(low.valid, (full.shape[0], full.shape[1])), *back, beyond=3)
    covered = source == 1 if options.keep_holes else np.ones_like(source, dtype=bool)

    def placed(plane: AnyArray | None) -> AnyArray | None:
        return None if plane is None else moved(plane, *back)

    maps = {
        "depth": np.where(covered, moved(full, *back), np.zeros_like(full)),
        "valid": covered,
        "source": np.where(covered, source, np.zeros_like(source)),
        "sigma": placed(answer.sigma),
        "leaned": placed(answer.leaned),
    }
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


def whole_steps(shift: Correction, size: tuple[int, ...]) -> tuple[int, int]:
    """A shift as whole pixels (right, down); refuses what leaves no overlap."""
    H, W = size
    if not (abs(shift.x) < W / 2 and abs(shift.y) < H / 2):
        raise InputError(
            f"a shift is given in pixels of the colour image, right and down, and stays below half "
            f"of its {W}×{H}; got {shift.x:g},{shift.y:g}"
        )
    return round(shift.x), round(shift.y)


@overload
def super_resolve(
    rgb: Any,
    depth: "Tensor",
    options: Options | None = ...,
    *,
    progress: Progress | None = ...,
    **changes: Any,
) -> "Result[Tensor]": ...


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
    fixed = {name: getattr(chosen, name) for name in FIXED}
    fixed["runtime"] = chosen_runtime(chosen)  # a prior, for one, has a say in it
    upscaler = Upscaler(**{**fixed, "model": chosen.chosen_model, "threads": chosen.threads})
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
