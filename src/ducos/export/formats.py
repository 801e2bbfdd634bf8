"""Files of other runtimes: how each is written, and how it is run again to be measured.

`program` has the one that torch itself reads.

The graph of `WholePass` is traced once, by torch's tracer, with every size left open. It holds no
operator that resizes: OpenVINO leaves `antialias` out of ONNX's Resize, and so was wrong by most of
the range. Matrices resample instead (`resize.by_matrices`).
"""

import json
import os
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from ducos.errors import InputError, needed
from ducos.export.parity import Agreement, Pair, Run, measured, refuse_if_wrong, scene
from ducos.export.refusal import reason
from ducos.export.whole_pass import INPUTS, OUTPUTS, WholePass
from ducos.files import atomic_write

OPSET = 18
TRACED = Pair("traced", (52, 71), (13, 19), holes=0.1, batch=2)
MAPS = {"image": ("height", "width"), "depth": ("rows", "columns"), "trust": ("rows", "columns")}
FORMAT = "ducos-export-1"


class Format(NamedTuple):
    """suffix: of its files; write(model, what the header says, half, path); open(path) -> how to
    run it; about; halves: whether it stores weights as 16-bit floats, if half is asked for."""

    suffix: str
    write: Callable[[nn.Module, dict[str, Any], bool, Path], None]
    open: Callable[[Path], Run]
    about: str
    halves: bool = True


def onnx_graph(model: nn.Module, about: dict[str, Any]) -> bytes:
    """The whole prediction as an ONNX file; about: what its header is to say."""
    onnx = needed("onnx", "export")
    whole = WholePass(model).eval()
    feed = {name: torch.tensor(value) for name, value in scene(TRACED).items()}
    axes: dict[str, dict[int, str]] = {name: {0: "batch"} for name in INPUTS}
    for name, (rows, columns) in MAPS.items():
        axes[name] |= {2: rows, 3: columns}
    axes |= {name: {0: "batch", 2: "height", 3: "width"} for name in OUTPUTS}
    try:
        with warnings.catch_warnings(), torch.no_grad(), TemporaryDirectory() as folder:
            place = Path(folder) / "graph.onnx"
            warnings.simplefilter("ignore")  # of the tracer, about constants; parity is measured
            torch.onnx.export(
                whole,
                tuple(feed[name] for name in INPUTS),
                place,
                input_names=list(INPUTS),
                output_names=list(OUTPUTS),
                dynamic_axes=axes,
                opset_version=OPSET,
                dynamo=False,
            )
            graph = onnx.load(place)
    except Exception as problem:  # whatever a model does that a tracer cannot follow
        raise InputError(
            f"{type(model).__name__} cannot be exported: {reason(problem)}; choose ducos-tiny or "
            "another model of docs/export.md"
        ) from None
    onnx.helper.set_model_props(graph, header(whole, about))
    return graph.SerializeToString()


def header(whole: WholePass, about: dict[str, Any]) -> dict[str, str]:
    """What a file says of itself."""
    subjects = {subject: list(words) for subject, words in whole.network.subjects.items()}
    return {"format": FORMAT, "words": json.dumps(subjects), "about": json.dumps(about)}


def in_half(graph: bytes) -> bytes:
    """The same ONNX file with weights stored as 16-bit floats; it still computes with 32."""
    onnx = needed("onnx", "export")
    model = onnx.load_from_string(graph)
    casts = []
    for tensor in model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT or len(tensor.dims) < 2:
            continue
        name, values = tensor.name, onnx.numpy_helper.to_array(tensor)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values.astype(np.float16), f"{name}_half"))
        cast = onnx.helper.make_node("Cast", [tensor.name], [name], to=onnx.TensorProto.FLOAT)
        casts.append(cast)
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()


def rounded(model: nn.Module) -> nn.Module:
    """The same model with its weights as `in_half` stores them."""
    other = deepcopy(model)
    with torch.no_grad():
        for weights in other.parameters():
            if weights.ndim > 1:
                weights.copy_(weights.half())
    return other


def run_onnx(path: Path) -> Run:
    """An ONNX file in onnxruntime."""
    runtime = needed("onnxruntime", "export")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    # Its search for buffers to use again compares all with all: ten seconds for this many nodes.
    options.enable_mem_reuse = False
    session = runtime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    taken = {each.name for each in session.get_inputs()}
    return lambda feed: tuple(session.run(None, {k: v for k, v in feed.items() if k in taken}))


def write_onnx(model: nn.Module, about: dict[str, Any], half: bool, path: Path) -> None:
    """One file, as it is."""
    graph = onnx_graph(model, about)
    path.write_bytes(in_half(graph) if half else graph)


def run_openvino(path: Path) -> Run:
    """An .xml or .onnx file in OpenVINO."""
    openvino = needed("openvino", "export")
    # By default OpenVINO may compute with 16 bits where the processor can, and reorder sums.
    hints = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
    compiled = openvino.Core().compile_model(os.fspath(path), "CPU", hints)
    taken = {name for each in compiled.inputs for name in each.get_names()}

    def run(feed: dict[str, Any]) -> tuple[Any, ...]:
        said = compiled({name: value for name, value in feed.items() if name in taken})
        return tuple(said[name] for name in OUTPUTS)

    return run


def write_openvino(model: nn.Module, about: dict[str, Any], half: bool, path: Path) -> None:
    """An .xml file with its weights in a .bin file beside it."""
    openvino = needed("openvino", "export")
    graph = onnx_graph(model, about)
    read = openvino.Core().read_model(in_half(graph) if half else graph)
    openvino.save_model(read, os.fspath(path), compress_to_fp16=False)


def write_program(model: nn.Module, about: dict[str, Any], half: bool, path: Path) -> None:
    """What `torch.export` makes of it, without this package's code."""
    from ducos.export.program import program

    whole = WholePass(model).eval()
    torch.export.save(program(whole), path, extra_files=header(whole, about))


def run_program(path: Path) -> Run:
    """A .pt2 file in torch."""
    module = torch.export.load(path).module()

    def run(feed: dict[str, Any]) -> tuple[Any, ...]:
        with torch.inference_mode():
            said = module(*(torch.tensor(feed[name]) for name in INPUTS))
        return tuple(each.numpy() for each in said)

    return run


FORMATS = {
    "onnx": Format(".onnx", write_onnx, run_onnx, "onnxruntime, in C++, Python or a browser"),
    "openvino": Format(".xml", write_openvino, run_openvino, "OpenVINO; weights in a .bin beside"),
    "torch-export": Format(
        ".pt2", write_program, run_program, "torch, without this package", halves=False
    ),
}


def export(
    model: nn.Module, to: str, out: Path, *, about: dict[str, Any], half: bool = False
) -> list[Agreement]:
    """Write a model for another runtime, if that then says what torch says; else refuse.

    Args:
        to: one of FORMATS. half: store weights as 16-bit floats.
        about: what the header is to say, such as the licence.

    Returns:
        How far the file is from torch, pair by pair.
    """
    kind = format_of(to, out)
    if half and not kind.halves:
        raise InputError(f"{to} files hold weights as they are; leave --half out, or choose onnx")
    stored = rounded(model) if half else model
    with atomic_write(out) as temporary:  # which has the suffix of `out`: runtimes go by it
        beside = temporary.with_suffix(".bin")  # OpenVINO's weights
        try:
            kind.write(model, about, half, temporary)
            run = kind.open(temporary)
            rows = measured(stored, run)
            refuse_if_wrong(rows)
            if half:  # what the rounding of the weights costs: to be known, not to be refused
                full = max(measured(model, run), key=lambda row: row.depth)
                named = replace(full.pair, name=f"against full weights: {full.pair.name}")
                rows.append(full._replace(pair=named))
            if beside.exists():
                beside.replace(out.with_suffix(".bin"))
        finally:
            beside.unlink(missing_ok=True)
    return rows


def format_of(to: str, out: Path) -> Format:
    """The format of that name; the file must have its suffix."""
    if to not in FORMATS:
        raise InputError(f"unknown format {to!r}; choose one of: {', '.join(FORMATS)}")
    kind = FORMATS[to]
    if out.suffix.lower() != kind.suffix:
        raise InputError(f"{to} files end in {kind.suffix}, got {out}; name it so")
    return kind


def digest(path: Path) -> str:
    """SHA-256 of a file: an exported one says of which weights it was made."""
    return sha256(path.read_bytes()).hexdigest()
