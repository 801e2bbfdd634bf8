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
import os
import shutil
import warnings
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ducos.errors import InputError, needed
from ducos.export.parity import Agreement, Feed, Run, measured, refuse_if_wrong
from ducos.files import atomic_write
from ducos.filters import maximum
from ducos.kernels import FARTHER
from ducos.models import Piece, load_model, pieces_of, read_about
from ducos.runtime import FORMAT, Network, description, place
from ducos.sampling import area, fill_holes, nearest

OPSET = 18


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
    pieces = pieces_of(model)
    files = [Tensors.of(path) for path in weight_files(weights)]
    written = []
    for name, piece in pieces.items():
        target = place(weights, name)
        with atomic_write(target) as temporary:
            temporary.write_bytes(traced(piece, files))
        written.append(target)
    network: Any = model
    about = {
        "format": FORMAT,
        "weights": {file.name: file.digest for file in files},
        "words": {subject: list(words) for subject, words in network.subjects.items()},
        "stride": network.stride,
        "multiple": network.multiple,
        "sides": list(network.sides),
        "takes_prior": network.takes_prior,
        "corrections": network.tail.corrections,
        "steepenings": network.tail.steepenings,
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
            stream,  # type: ignore[arg-type]
            input_names=list(piece.inputs),
            output_names=list(piece.outputs),
            dynamic_axes={name: open_axes for name, open_axes in axes.items() if open_axes},
            opset_version=OPSET,
            do_constant_folding=False,
            dynamo=False,
        )
    graph = onnx.load_from_string(simplified(stream.getvalue()))
    for tensor in graph.graph.initializer:
        refer(tensor, files)
    return graph.SerializeToString()


def simplified(graph: bytes) -> bytes:
    """The same graph with fewer nodes: what does not depend on any input is computed. It then opens
    in less time, everywhere."""
    onnx, runtime = needed("onnx", "export"), needed("onnxruntime", "export")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with TemporaryDirectory() as folder:
        options.optimized_model_filepath = os.path.join(folder, "graph.onnx")
        runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        model = onnx.load(options.optimized_model_filepath)
    used = {node.domain for node in model.graph.node}
    kept = [each for each in model.opset_import if each.domain in used]  # it names all it knows
    del model.opset_import[:]
    model.opset_import.extend(kept)
    return bytes(model.SerializeToString())


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
