"""`ducos-released` is the authors' network: same keys, same count, same outputs."""

import pytest
import torch

from ducos.models.ducos.released import DuCosReleased, FusionNetwork
from ducos.prompts.depth_anything_v2 import DepthAnythingV2
from tests.parity_kit import arrays, assert_equal_keys, assert_matches, weights


def test_fusion_network_equals_the_authors():
    network = FusionNetwork().eval()
    assert_equal_keys(network, "ducos_fusion")
    network.load_state_dict(weights("ducos_fusion"))
    vector = arrays("ducos_fusion")
    with torch.no_grad():
        depth, rgb_map, depth_map = network(vector["in_depth"], vector["in_prompt_features"])
    assert_matches(depth, vector["output"])
    assert_matches(rgb_map, vector["out_rgb_alignment"])
    assert_matches(depth_map, vector["out_depth_alignment"])


@pytest.mark.parametrize("name", ["ducos_vits_70x98", "ducos_vits_64x96"])
def test_whole_model_equals_the_authors(name):
    model = DuCosReleased(DepthAnythingV2("s", imagenet=False)).eval()
    assert_equal_keys(model, name)
    assert sum(p.numel() for p in model.parameters()) == 34_381_708
    model.load_state_dict(weights(name))
    vector = arrays(name)
    with torch.no_grad():
        prediction = model.restore(vector["in_rgb"], vector["in_depth"])
    assert_matches(prediction.depth, vector["output"])
    assert_matches(prediction.aux["alignment"][0][0], vector["out_depth_alignment"])
    assert_matches(prediction.aux["alignment"][0][1], vector["out_rgb_alignment"])


def test_constant_channels_do_not_give_nan():
    network = FusionNetwork().eval()
    with torch.no_grad():
        depth, _, _ = network(torch.zeros(1, 1, 16, 16), torch.zeros(1, 64, 16, 16))
    assert depth.isfinite().all()
