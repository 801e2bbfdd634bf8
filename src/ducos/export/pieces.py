"""A network in pieces, for the runtime without torch (`ducos.runtime`).

The whole prediction in one graph has 8000 nodes, most of them about sizes, and takes ten seconds to
open. Here numpy does what follows from sizes alone, and a graph holds only what has weights or
many pixels. A piece sees some rows of the image, so that images of any size pass; only the body,
whose statistics belong to the whole image, sees all of it at a quarter of the resolution.

Each piece is traced from the functions of the network itself. The weights stay in the .safetensors
file: the graphs name the places of its tensors, so nothing is stored twice.
"""

import io
import json
import shutil
import warnings
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from ducos.errors import InputError, needed
from ducos.export.parity import Agreement, Feed, Run, measured, refuse_if_wrong
from ducos.files import atomic_write
from ducos.filters import maximum
from ducos.kernels import FARTHER
from ducos.models import load_model, read_about
from ducos.models.ducos.around import Around, Window
from ducos.models.ducos.compact import DuCosCompact
from ducos.models.ducos.guide import fits
from ducos.models.ducos.mixing import hand_back, steepened, within_reach
from ducos.runtime import FORMAT, PIECES, Network, description, place
from ducos.sampling import area, fill_holes, nearest

OPSET = 18
ROWS, COLUMNS = 32, 64  # of the image that is traced
LOW = (9, 14)
Sizes = tuple[str | int, ...]


class Given(Around):
    """What surrounds pixels, of maps that the caller has made; a piece knows no sizes."""

    def __init__(
        self, image: Tensor, low: Tensor, trust: Tensor, window: Window, ratio: Tensor, **maps: Any
    ):
        super().__init__(image, image[:, :1], None, (), low, trust, window)
        self.__dict__.update(maps, numbers=ratio)  # before the properties of that name are asked

    @property
    def ratio(self) -> Tensor:
        return self.__dict__["numbers"]


def window(rows: Tensor, columns: Tensor, **known: Tensor) -> Window:
    """A window over all rows of the low-resolution map that a piece is given."""
    nothing = torch.zeros(0)
    fields = {name: known.get(name, nothing) for name in Window._fields}
    return Window(**{**fields, "rows": rows, "columns": columns, "reached": slice(None)})


class Piece(nn.Module):
    """Inputs by name with their shapes, and outputs; texts are sizes that stay open."""

    inputs: dict[str, Sizes] = {}
    outputs: tuple[str, ...] = ()

    def __init__(self, network: DuCosCompact):
        super().__init__()
        self.network = network

    def example(self) -> tuple[Tensor, ...]:
        """Values to trace with."""
        sizes = {
            "H": ROWS,
            "W": COLUMNS,
            "h": LOW[0],
            "w": LOW[1],
            "y": ROWS // 4,
            "x": COLUMNS // 4,
        }
        made = []
        for name, shape in self.inputs.items():
            shape = tuple(sizes.get(n, n) if isinstance(n, str) else n for n in shape)
            if name in ("rows", "columns"):
                made.append(torch.randint(0, LOW[0], shape))
            elif name in ("mode", "sensor", "skip"):
                made.append(torch.zeros(shape, dtype=torch.int64))
            else:
                made.append(torch.rand(shape) + 0.1)
        return tuple(made)

    def told(self, mode: Tensor, sensor: Tensor) -> dict[str, Tensor]:
        words = {"mode": mode, "sensor": sensor}
        return {subject: words[subject] for subject in self.network.subjects}


MAP: Sizes = (1, 1, "H", "W")
SMALL: Sizes = (1, 1, "h", "w")
FEATURES = "features"  # a size that the network decides


class Fit(Piece):
    """At the size of the measurements: the regressions on the colours, how far a faithful result
    may lie from each measurement, and how the map was shrunk."""

    inputs = {"colours": (1, 3, "h", "w"), "low": SMALL, "trust": SMALL, "noise": (1, 1, 1, 1)}
    inputs |= {"ratio": (2,), "mode": (1,)}
    outputs = ("fit", "tolerance", "shrinking")

    def forward(self, colours: Tensor, low: Tensor, trust: Tensor, *known: Tensor) -> Any:
        noise, ratio, mode = known
        around = Given(colours, low, trust, window(trust, trust), ratio)
        tolerance = self.network.tolerance(around, {"mode": mode}, noise)
        return fits(colours, low, trust, self.network.sides), tolerance, around.shrinking


class Start(Piece):
    """What is known of some rows of pixels, to the first features of the body (D_1)."""

    inputs = {"image": (1, 3, "H", "W"), "up": MAP, "mean": MAP, "contrast": MAP, "hole": MAP}
    inputs |= {"guided": (1, "sides", "H", "W"), "row_phase": ("H",), "column_phase": ("W",)}
    inputs |= {"ratio": (2,), "shrinking": (1, 3), "mode": (1,), "sensor": (1,)}
    outputs = ("first",)

    def forward(self, image: Tensor, up: Tensor, mean: Tensor, *known: Tensor) -> Tensor:
        contrast, hole, guided, row_phase, column_phase, ratio, shrinking, mode, sensor = known
        around = Given(
            image, up, hole, window(up, up), ratio,
            up=up, _mean_and_contrast=(mean, contrast), hole=hole, guided=guided,
        )  # fmt: skip
        net = self.network
        cells = net.cells(net.known(image, around), row_phase, column_phase, ratio, shrinking)
        first = net.head(cells)
        return first if net.hints is None else first + net.hints.shift(self.told(mode, sensor), 1)


class Body(Piece):
    """The whole image and D_1 to the features of all stages."""

    inputs = {"image": (1, 3, "H", "W"), "first": (1, FEATURES, "y", "x")}
    outputs = ("features",)

    def forward(self, image: Tensor, first: Tensor) -> Tensor:
        hinted, _ = self.network.prompt.seen(image)
        return self.network.fuse(first, hinted)[0]


class Propose(Piece):
    """Features of some rows, to what the tail proposes; skip: rows above them, for the
    convolution."""

    inputs = {"features": (1, FEATURES, "y", "x"), "up": MAP, "contrast": MAP}
    inputs |= {"guided": (1, "sides", "H", "W"), "low": SMALL, "trust": SMALL}
    inputs |= {"rows": ("H", 4), "columns": ("W", 4), "row_weights": ("H", 4)}
    inputs |= {"column_weights": ("W", 4), "skip": (1,)}
    outputs = ("depth", "weights", "gate", "sigma", "steeper")

    def forward(self, features: Tensor, up: Tensor, contrast: Tensor, *known: Tensor) -> Any:
        guided, low, trust, rows, columns, row_weights, column_weights, skip = known
        weighted = {"row_weights": row_weights, "column_weights": column_weights}
        around = Given(
            up, low, trust, window(rows, columns, **weighted), up,
            up=up, _mean_and_contrast=(up, contrast), guided=guided,
        )  # fmt: skip
        tail, (H, W) = self.network.tail, (up.shape[-2], up.shape[-1])
        maps = F.pixel_shuffle(tail.predict(features), self.network.stride)
        proposal = tail.propose(maps.narrow(2, skip[0], H)[..., :W], around)
        return *proposal[:4], proposal.steeper


class HandBack(Piece):
    """Some rows of a depth, with a share of what its measurements are missing."""

    inputs = {"missing": SMALL, "depth": MAP, "weights": (1, 16, "H", "W"), "gate": MAP}
    inputs |= {"rows": ("H", 4), "columns": ("W", 4)}
    outputs = ("corrected",)

    def forward(self, missing: Tensor, depth: Tensor, weights: Tensor, *known: Tensor) -> Tensor:
        gate, rows, columns = known
        around = Given(depth, missing, gate, window(rows, columns), depth)
        return hand_back(missing, depth, weights, gate, around)


class Settle(Piece):
    """Some rows of a depth, kept to the range of their neighbours, with steeper edges."""

    inputs = {"depth": MAP, "contrast": MAP, "steeper": MAP, "low": SMALL, "rows": ("H", 4)}
    inputs |= {"columns": ("W", 4), "ratio": (2,)}
    outputs = ("settled",)

    def forward(self, depth: Tensor, contrast: Tensor, steeper: Tensor, *known: Tensor) -> Tensor:
        low, rows, columns, ratio = known
        known_maps = {"_mean_and_contrast": (depth, contrast)}
        around = Given(depth, low, depth, window(rows, columns), ratio, **known_maps)
        times = self.network.tail.steepenings
        return steepened(times, within_reach(depth, around), steeper, around)


KINDS = dict(zip(PIECES, (Fit, Start, Body, Propose, HandBack, Settle), strict=True))


class Tensors(NamedTuple):
    """A weight file: its name, its SHA-256, and name -> (first byte, bytes) of its tensors."""

    name: str
    digest: str
    places: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, path: Path) -> "Tensors":
        stored = path.read_bytes()
        length = int.from_bytes(stored[:8], "little")
        header = json.loads(stored[8 : 8 + length])
        ends = {n: e["data_offsets"] for n, e in header.items() if n != "__metadata__"}
        places = {n: (8 + length + first, last - first) for n, (first, last) in ends.items()}
        return cls(path.name, sha256(stored).hexdigest(), places)


def export_pieces(weights: Path) -> list[Agreement]:
    """Write the pieces beside a weight file, if they then say what torch says; else refuse.

    Returns:
        How far they are from torch, pair by pair.
    """
    model, *_ = load_model(weights)
    with TemporaryDirectory() as folder:
        for file in weight_files(weights):
            shutil.copy(file, folder)
        copy = Path(folder) / weights.name
        made = write_pieces(model, copy)
        rows = measured(model, in_pieces(Network(copy, threads=1)))
        refuse_if_wrong(rows)
        for path in made:
            with atomic_write(weights.with_name(path.name)) as temporary:
                shutil.copy(path, temporary)
    return rows


def in_pieces(network: Network) -> Run:
    """How the pieces answer a pair of `parity`, with numpy before and behind."""

    def run(feed: Feed) -> tuple[NDArray[Any], ...]:
        words = {name: network.words[name] for name in ("mode", "sensor")}
        maps = []
        for i, image in enumerate(feed["image"]):
            told = {name: known[int(feed[name][i])] for name, known in words.items()}
            low, trust = feed["depth"][i, 0], feed["trust"][i, 0]
            lowest, span = low[trust > 0].min(), np.ptp(low[trust > 0])
            filled = fill_holes(low, trust, area(image, low.shape), FARTHER)
            noise = float(feed["noise"][i] / span)
            found = network(image, (filled - lowest) / span, trust, noise=noise, told=told)
            depth = np.maximum(found.depth * span + lowest, 0.5 * lowest)
            source = np.where(trust > 0, 1, np.where(maximum(trust, 5) > 0, 2, 3))
            size = (image.shape[1], image.shape[2])
            maps.append((depth, found.sigma * span, nearest(source.astype(np.uint8), size)))
        depths, sigmas, sources = (np.stack(each)[:, None] for each in zip(*maps))
        return depths, sigmas, sources

    return run


def write_pieces(model: nn.Module, weights: Path) -> list[Path]:
    """The pieces of a model beside its weight file, and their description.

    Args:
        model: as it was loaded from `weights`; its tensors must be those of the file.
    """
    if not isinstance(model, DuCosCompact) or not model.sides or "mode" not in model.subjects:
        raise InputError(
            f"{type(model).__name__} has no form without torch; ducos-compact with guides, the "
            "mixing tail and modes has"
        )
    model = model.eval()
    files = [Tensors.of(path) for path in weight_files(weights)]
    written = []
    for name, kind in KINDS.items():
        target = place(weights, name)
        with atomic_write(target) as temporary:
            temporary.write_bytes(traced(kind(model), files))
        written.append(target)
    about = {
        "format": FORMAT,
        "weights": {file.name: file.digest for file in files},
        "words": {subject: list(words) for subject, words in model.subjects.items()},
        "stride": model.stride,
        "multiple": model.multiple,
        "sides": list(model.sides),
        "corrections": model.tail.corrections,
        "steepenings": model.tail.steepenings,
    }
    with atomic_write(description(weights)) as temporary:
        temporary.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return [*written, description(weights)]


def weight_files(path: Path) -> Iterator[Path]:
    """A weight file, and the one that it is based on."""
    yield path
    base = read_about(path).get("base")
    if base:
        yield path.with_name(f"{base}.safetensors")


def traced(piece: Piece, files: list[Tensors]) -> bytes:
    """A piece as an ONNX graph whose weights are in the weight files."""
    onnx = needed("onnx", "export")
    piece = piece.eval()
    decided = {FEATURES: piece.network.head.out_channels, "sides": len(piece.network.sides)}
    piece.inputs = {
        name: tuple(decided.get(str(n), n) for n in shape) for name, shape in piece.inputs.items()
    }
    example = piece.example()
    axes = {
        name: {axis: size for axis, size in enumerate(shape) if isinstance(size, str)}
        for name, shape in piece.inputs.items()
    }
    stream = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the tracer, about constants; parity is measured
        torch.onnx.export(
            piece,
            example,
            stream,
            input_names=list(piece.inputs),
            output_names=list(piece.outputs),
            dynamic_axes={name: open_axes for name, open_axes in axes.items() if open_axes},
            opset_version=OPSET,
            do_constant_folding=False,
            dynamo=False,
        )
    graph = onnx.load_from_string(stream.getvalue())
    for tensor in graph.graph.initializer:
        refer(tensor, files)
    return graph.SerializeToString()


def refer(tensor: Any, files: list[Tensors]) -> None:
    """Let a tensor of a graph be the one of that name in a weight file."""
    name = tensor.name.removeprefix("network.")
    for file in files:
        if name in file.places:
            first, length = file.places[name]
            if len(tensor.raw_data) != length:
                raise InputError(f"{file.name}: {name} is not the tensor of this network")
            tensor.ClearField("raw_data")
            tensor.data_location = 1  # external
            for key, value in (("location", file.name), ("offset", first), ("length", length)):
                tensor.external_data.add(key=key, value=str(value))
            return
