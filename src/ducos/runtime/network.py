"""A shipped network, run by onnxruntime: the pass of `models.ducos.compact`, with numpy around it.

Rows of the image pass piece by piece; what must exist as a whole are the features of the body at a
quarter of the resolution, the depth, and the weights of its neighbours. So a large image takes
memory in proportion to its pixels, and a small one fits the caches of the processor.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ducos.arrays import AnyArray, Size
from ducos.errors import needed
from ducos.runtime.files import PIECES, described, place
from ducos.runtime.surroundings import Surroundings

ROWS = 64  # of the image that pass together, at most
PIXELS = 130_000  # of these rows: of a wide image fewer pass
FEWEST = 8
PRELUDE = 4  # more rows above and below, for convolutions of one cell's reach
SHARE = 0.3  # of the memory that may be taken: for the neighbours' weights
NEIGHBOURS = 16
BYTES = 130  # that a pixel of the image takes, about

Floats = NDArray[np.float32]
Progress = Callable[[float], None]


class Answer(NamedTuple):
    """depth and sigma (H, W), in the range of the normalised measurements."""

    depth: Floats
    sigma: Floats


class Network:
    """The pieces of one weight file, opened for so many threads; called from one thread or many."""

    def __init__(self, weights: Path, threads: int | None = None):
        self.about = described(weights)
        self.words: dict[str, list[str]] = self.about["words"]
        runtime = needed("onnxruntime", "")

        def opened(piece: str) -> Any:
            options = runtime.SessionOptions()
            options.intra_op_num_threads = threads or 0
            options.inter_op_num_threads = 1
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            options.enable_mem_pattern = False  # which would hold what the largest image needed
            # The search for buffers to use again takes most of the time to open a graph.
            options.enable_mem_reuse = False
            if piece == "fit":  # small maps, many nodes: it takes longer to improve than to run
                options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
            file = os.fspath(place(weights, piece))
            return runtime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

        self.pieces = {piece: opened(piece) for piece in PIECES}
        # Its arena would keep all that it ever held, to be fast the next time.
        self.as_value = runtime.OrtValue.ortvalue_from_numpy
        self.giving_back = runtime.RunOptions()
        self.giving_back.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def run(
        self,
        piece: str,
        into: Mapping[str, Floats] | None = None,
        give_back: bool = False,
        **inputs: Any,
    ) -> list[AnyArray]:
        """The outputs of a piece; inputs that it does not look at are left out.

        into: arrays for all of its outputs, where these are kept: the memory that a session gives
            out stays with it. give_back: afterwards, all memory that it took for itself.
        """
        session = self.pieces[piece]
        seen = {each.name: inputs[each.name] for each in session.get_inputs()}
        options = self.giving_back if give_back else None
        if into is None:
            answers: list[AnyArray] = session.run(None, seen, options)
            return answers
        binding = session.io_binding()
        for name, values in seen.items():
            whole = np.ascontiguousarray(values)  # of which the binding makes no copy
            binding.bind_ortvalue_input(name, self.as_value(whole))
        for name, place in into.items():
            binding.bind_output(name, "cpu", 0, np.float32, place.shape, place.ctypes.data)
        session.run_with_iobinding(binding, options)
        return list(into.values())

    def __call__(
        self,
        image: Floats,
        low: Floats,
        trust: Floats,
        *,
        noise: float | None,
        told: Mapping[str, str],
        memory: int | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """image (3, H, W) in [0, 1], low (h, w) normalised and without holes, trust (h, w) in
        [0, 1], noise: one standard deviation of low -> depth and sigma (H, W).

        memory: bytes for the neighbours' weights; beyond them they lie in a temporary file.
        progress: called with the share of the work that is done, for images beyond `memory`.
        """
        large = memory is not None and BYTES * image.shape[1] * image.shape[2] > memory
        report = progress if progress and large else (lambda share: None)
        words = {name: np.array([self.place(name, told)]) for name in ("mode", "sensor")}
        size = (image.shape[1], image.shape[2])
        around = Surroundings(image, low, trust, self.about["sides"], self.about["multiple"])
        fit, tolerance, shrinking = self.run(
            "fit",
            colours=around.colours[None],
            low=low[None, None],
            trust=trust[None, None],
            noise=np.full((1, 1, 1, 1), noise or 0.0, np.float32),
            ratio=around.ratio,
            mode=words["mode"],
            give_back=around.large,
        )
        around.fit, around.shrinking = fit[0], shrinking
        features = self.body(around, words)
        report(0.5)
        depth, sigma, weights, gate = self.proposed(features, around, memory)
        del features
        report(0.7)
        for _ in range(self.about["corrections"]):
            missing = (low - around.shrunk(depth)) * trust
            for a, b in strips(size):
                inside = around.window(a, b)
                (depth[None, None, a:b],) = self.run(
                    "hand_back",
                    missing=missing[None, None, slice(*inside.reached)],
                    depth=depth[None, None, a:b],
                    weights=weights.get(a),
                    gate=gate[None, None, a:b],
                    rows=inside.rows,
                    columns=around.columns,
                )
        report(0.9)
        depth = self.settled(depth, around)
        depth = agreeing(depth, around, tolerance[0, 0])
        report(1.0)
        return Answer(depth, sigma)

    def place(self, subject: str, told: Mapping[str, str]) -> int:
        """Where a word stands among those that the network knows; the first one if it does not."""
        known = self.words.get(subject, [""])
        word = told.get(subject, known[0])
        return known.index(word) if word in known else 0

    def body(self, around: Surroundings, words: dict[str, AnyArray]) -> Floats:
        """Features (1, C, H/stride, W/stride) of the padded image."""
        H, stride = around.padded[0], self.about["stride"]
        first = None
        for a, b in strips(around.padded):
            top, bottom = max(0, a - PRELUDE), min(H, b + PRELUDE)
            maps = around.seen(top, bottom)
            phases = {"row_phase": around.phases[0][top:bottom], "column_phase": around.phases[1]}
            known = {"ratio": around.ratio, "shrinking": around.shrinking, **words}
            (part,) = self.run("start", **maps, **phases, **known)
            if first is None:
                first = np.empty((1, part.shape[1], H // stride, part.shape[3]), np.float32)
            skip, count = (a - top) // stride, (b - a) // stride
            first[:, :, a // stride : b // stride] = part[:, :, skip : skip + count]
        (features,) = self.run(
            "body", give_back=around.large, image=around.padded_image[None], first=first
        )
        return features

    def proposed(self, features: Floats, around: Surroundings, memory: int | None) -> Any:
        """Depth, sigma, the neighbours' weights (16, H, W) and how far each pixel is corrected."""
        H, W = around.size
        stride = self.about["stride"]
        depth, sigma, gate = (np.empty((H, W), np.float32) for _ in range(3))
        weights = Kept(float("inf") if memory is None else SHARE * memory)
        cells = features.shape[2]
        for a, b in strips(around.size):
            first, last = a // stride, -(-b // stride)
            top, bottom = max(0, first - 1), min(cells, last + 1)
            inside = around.window(a, b)
            maps = around.known(a, b)
            kept = np.empty((1, NEIGHBOURS, b - a, W), np.float32)
            places = {"depth": depth[a:b], "gate": gate[a:b], "sigma": sigma[a:b]}
            into = {name: place[None, None] for name, place in places.items()}
            self.run(
                "propose",
                into={**into, "weights": kept},
                features=features[:, :, top:bottom],
                up=maps["up"],
                contrast=maps["contrast"],
                guided=maps["guided"],
                low=around.low[None, None, slice(*inside.reached)],
                trust=around.trust[None, None, slice(*inside.reached)],
                rows=inside.rows,
                columns=around.columns,
                row_weights=inside.weights,
                column_weights=around.column_weights,
                skip=np.array([(first - top) * stride]),
            )
            weights.put(a, kept)
        return depth, sigma, weights, gate

    def settled(self, depth: Floats, around: Surroundings) -> Floats:
        """Kept to the range of the neighbours, with steeper edges."""
        H, reach = around.size[0], self.about["steepenings"]
        out = np.empty_like(depth)
        for a, b in strips(around.size):
            top, bottom = max(0, a - reach), min(H, b + reach)
            inside = around.window(top, bottom)
            (part,) = self.run(
                "settle",
                depth=depth[None, None, top:bottom],
                contrast=around.known(top, bottom)["contrast"],
                low=around.low[None, None, slice(*inside.reached)],
                rows=inside.rows,
                columns=around.columns,
                ratio=around.ratio,
                shrinking=around.shrinking,
            )
            out[a:b] = part[0, 0, a - top : b - top]
        return out


def agreeing(depth: Floats, around: Surroundings, tolerance: Floats) -> Floats:
    """`models.ducos.mixing.agreeing`: what the shrunk result misses of the measurements beyond the
    tolerance (h, w) is added, smoothly at first, then cell by cell."""
    for grow in (around.linear, around.linear, around.nearest):
        missing = around.low - around.shrunk(depth)
        excess = (missing - missing.clip(-tolerance, tolerance)) * around.trust
        if not excess.any():
            break
        for a, b in strips(depth.shape):
            depth[a:b] += grow(excess, (a, b))
    return depth


def strips(size: Size) -> Iterator[tuple[int, int]]:
    """Bounds of the rows that pass together; they begin at whole cells."""
    H, W = size
    rows = max(FEWEST, min(ROWS, PIXELS // W // FEWEST * FEWEST))
    for first in range(0, H, rows):
        yield first, min(H, first + rows)


class Kept:
    """Arrays by the first row of their strip: in memory up to so many bytes, then in a nameless
    temporary file."""

    def __init__(self, memory: float):
        self.free = memory
        self.held: dict[int, Floats] = {}
        self.written: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.file: Any = None

    def put(self, row: int, values: Floats) -> None:
        """Keep the array of a strip."""
        self.free -= values.nbytes
        if self.free >= 0:
            self.held[row] = values
            return
        if self.file is None:
            self.file = tempfile.TemporaryFile(prefix="ducos-")  # noqa: SIM115, closed with this
        self.written[row] = (self.file.tell(), values.shape)
        self.file.write(values.tobytes())

    def get(self, row: int) -> Floats:
        """What was kept for a strip."""
        if row in self.held:
            return self.held[row]
        place, shape = self.written[row]
        self.file.seek(place)
        content = self.file.read(4 * int(np.prod(shape)))
        return np.frombuffer(content, np.float32).reshape(shape)


@cache
def _opened(weights: Path, changed: int, threads: int | None) -> Network:
    return Network(weights, threads)


def open_network(weights: Path, threads: int | None = None) -> Network:
    """The network of a weight file, opened once for each number of threads."""
    return _opened(weights, weights.stat().st_mtime_ns, threads)
