"""The trained instance of the paper's own network that the repository holds."""

import json

import pytest
import torch

from ducos.models import ModelSpec, create, read_tensors
from ducos.models.justified import check_justified
from tests.places import REPOSITORY

WEIGHTS = REPOSITORY / "examples" / "paper-network" / "ducos.safetensors"


@pytest.mark.skipif(not WEIGHTS.is_file(), reason="the examples are not beside the package")
def test_the_weights_fit_the_network_of_the_text() -> None:
    """All but DINOv2's, which come from the hub, in half precision, without a path of its maker."""
    tensors, header = read_tensors(WEIGHTS)
    spec = ModelSpec(**json.loads(header["spec"]))
    assert (spec.name, spec.prompt) == ("ducos", "dinov2-s")
    assert spec.prompt_options == {"weights": "hub"}
    check_justified(spec, tensors, WEIGHTS)
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    assert WEIGHTS.stat().st_size < 6_000_000
    with torch.device("meta"):
        network = create("ducos", prompt="dinov2-s")
    learned = sum(p.numel() for n, p in network.named_parameters() if not n.startswith("prompt."))
    assert sum(tensor.numel() for tensor in tensors.values()) == learned
    about = json.loads(header["about"])
    assert about["steps"] > 0
    assert about["multipliers"]["alignment"] > 0.01  # without an epsilon it can only rise
    assert all(tensor.isfinite().all() for tensor in tensors.values())
