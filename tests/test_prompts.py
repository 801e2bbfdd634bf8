"""Foundation prompts behind the contract of `prompts/prompt.py`: sizes, ranges, weights, tuning."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from ducos.errors import InputError
from ducos.prompts.depth_anything_v2 import DepthAnythingV2
from ducos.prompts.dinov2 import Dinov2
from ducos.prompts.image import covering_size, imagenet, size_near, to_working_size
from ducos.prompts.prompt import PromptModel, set_tuning
from ducos.prompts.transformers_layout import (
    from_authors_keys,
    is_transformers_layout,
    to_authors_keys,
)
from ducos.prompts.vit import GRID, SHAPES, Position, VisionTransformer
from ducos.prompts.weights import load_strictly, read_weights
from tests.parity_kit import assert_matches, weights


@pytest.fixture(scope="module")
def depth_anything() -> DepthAnythingV2:
    torch.manual_seed(0)
    return DepthAnythingV2("s", side=70).requires_grad_(False)


@pytest.fixture
def rgb() -> Tensor:
    return torch.rand(2, 3, 61, 83, generator=torch.Generator().manual_seed(1))


# Working sizes


def test_covering_size_follows_the_needier_side() -> None:
    assert covering_size((70, 98), 14) == (70, 98)
    assert covering_size((64, 96), 14) == (70, 112)
    assert covering_size((480, 640), 14) == (490, 658)
    assert covering_size((1, 1), 14) == (14, 14)


@pytest.mark.parametrize("size", [(13, 500), (333, 77), (480, 640), (1080, 1920)])
def test_covering_size_covers_with_multiples(size: tuple[int, int]) -> None:
    covered = covering_size(size, 14)
    assert all(c % 14 == 0 and s <= c for s, c in zip(size, covered))


def test_size_near_sets_the_shorter_side() -> None:
    assert size_near((480, 640), 518, 14) == (518, 686)
    assert size_near((640, 480), 252, 14) == (336, 252)
    assert size_near((10, 1000), 5, 14) == (14, 504)


def test_resizing_keeps_a_ramp_in_place() -> None:
    """Pixel centres stay where they are: a linear ramp is the same linear ramp at another size."""
    ramp = ((torch.arange(90) + 0.5) / 90).expand(1, 3, 60, 90)
    for side in (None, 42):
        resized = to_working_size(ramp, side, 14)
        W = resized.shape[-1]
        expected = (torch.arange(W) + 0.5) / W
        assert (resized[0, 0, 3] - expected)[8:-8].abs().max() < 2e-3


# The contract


@pytest.mark.parametrize("name", ["depth-anything-v2", "dinov2"])
def test_prompt_contract(name: str, rgb: Tensor, depth_anything: DepthAnythingV2) -> None:
    model = depth_anything if name == "depth-anything-v2" else Dinov2("s", side=70)
    assert isinstance(model, PromptModel)
    with torch.no_grad():
        features, depth = model(rgb)
    assert [feature.shape for feature in features] == [(2, c, 5, 7) for c in model.channels]
    assert all(bool(feature.isfinite().all()) for feature in features)
    if name == "dinov2":
        assert depth is None
    else:
        assert depth is not None
        assert depth.shape == (2, 1, 61, 83)


def test_images_of_a_batch_do_not_mix(depth_anything: DepthAnythingV2, rgb: Tensor) -> None:
    together = depth_anything(rgb)
    alone = depth_anything(rgb[1:])
    torch.testing.assert_close(together.features[3][1:], alone.features[3], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(together.depth[1:], alone.depth, atol=1e-5, rtol=1e-4)


def test_imagenet_statistics_are_an_argument(depth_anything: DepthAnythingV2, rgb: Tensor) -> None:
    """A network fed normalised colours without the argument sees what it would see with it."""
    with_argument = depth_anything(rgb).features[0]
    plain = DepthAnythingV2("s", side=70, imagenet=False)
    plain.load_state_dict(depth_anything.state_dict())
    image = to_working_size(rgb, 70, 14)
    torch.testing.assert_close(plain.at_working_size(imagenet(image))[0][0], with_argument)
    assert (plain(rgb).features[0] - with_argument).abs().max() > 0.1


def test_frozen_prompt_records_no_graph(rgb: Tensor) -> None:
    model = DepthAnythingV2("s", side=42)
    set_tuning(model, "frozen")
    features, depth = model.train()(rgb)
    assert depth is not None
    assert not depth.requires_grad
    assert not any(feature.requires_grad for feature in features)


def test_bias_tuning_reaches_every_used_bias_and_nothing_else(rgb: Tensor) -> None:
    model = DepthAnythingV2("s", side=42)
    set_tuning(model, "bias")
    features, depth = model(rgb)
    assert depth is not None
    (depth.sum() + sum(feature.square().sum() for feature in features)).backward()
    unused = {f"depth_head.scratch.refinenet4.resConfUnit1.conv{i}.bias" for i in (1, 2)}
    reached = {name for name, p in model.named_parameters() if p.grad is not None}
    biases = {name for name, _ in model.named_parameters() if name.endswith("bias")}
    assert reached == biases - unused


def test_position_rules_agree_only_on_the_trained_grid() -> None:
    torch.manual_seed(0)
    step = VisionTransformer(SHAPES["s"]._replace(depth=1))
    size = VisionTransformer(SHAPES["s"]._replace(depth=1), position=Position.SIZE)
    size.load_state_dict(step.state_dict())
    trained = step.pos_embed[:, 1:]
    assert torch.equal(step.positions(GRID, GRID), trained)
    assert torch.equal(size.positions(GRID, GRID), trained)
    assert step.positions(5, 7).shape == size.positions(5, 7).shape == (1, 35, 384)
    assert (step.positions(5, 7) - size.positions(5, 7)).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("size", "count"), [("s", 24_785_089), ("b", 97_470_785), ("l", 335_315_649)]
)
def test_published_parameter_counts(size: str, count: int) -> None:
    with torch.device("meta"):
        model = DepthAnythingV2(size)
    assert sum(p.numel() for p in model.parameters()) == count


# Weights


def test_names_convert_both_ways_without_loss(depth_anything: DepthAnythingV2) -> None:
    for state in (depth_anything.state_dict(), depth_anything.pretrained.state_dict()):
        theirs = from_authors_keys(state)
        assert is_transformers_layout(theirs)
        assert not is_transformers_layout(state)
        back = to_authors_keys(theirs)
        assert back.keys() == state.keys()
        assert all(torch.equal(back[key], state[key]) for key in state)


def test_transformers_reads_our_weights_and_we_read_theirs(tmp_path: Path) -> None:
    """Files pass both ways, and under their position rule both networks are one function."""
    from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation

    encoder = {
        "model_type": "dinov2",
        "image_size": 518,
        "hidden_size": 384,
        "num_attention_heads": 6,
        "num_hidden_layers": 12,
        "out_indices": [3, 6, 9, 12],
        "reshape_hidden_states": False,
    }
    seeded = weights("depth_anything_v2_vits_70x98")
    written = {key: value.contiguous() for key, value in from_authors_keys(seeded).items()}
    save_file(written, tmp_path / "model.safetensors", metadata={"format": "pt"})
    DepthAnythingConfig(backbone_config=encoder).save_pretrained(tmp_path)
    theirs = DepthAnythingForDepthEstimation.from_pretrained(tmp_path).eval()

    theirs.save_pretrained(tmp_path / "again")
    ours = DepthAnythingV2("s", weights=tmp_path / "again")
    assert all(torch.equal(value, seeded[key]) for key, value in ours.state_dict().items())

    ours.pretrained.position = Position.SIZE
    image = torch.randn(1, 3, 70, 98, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = theirs(image).predicted_depth
        _, depth = ours.at_working_size(image)
    assert_matches(depth[:, 0], expected, 1e-5)

    theirs.backbone.save_pretrained(tmp_path / "encoder")
    dinov2 = Dinov2("s", weights=tmp_path / "encoder")
    for key, value in dinov2.encoder.state_dict().items():
        assert torch.equal(value, seeded[f"pretrained.{key}"]), key


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_authors_file_loads(depth_anything: DepthAnythingV2, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"depth_anything_v2_vits{suffix}"
    state = depth_anything.state_dict()
    if suffix == ".pth":
        torch.save(state, path)
    else:
        save_file(state, path)
    loaded = DepthAnythingV2("s", weights=path)
    assert all(torch.equal(value, state[key]) for key, value in loaded.state_dict().items())


def test_wrappers_of_trainers_are_taken_off(tmp_path: Path) -> None:
    torch.save({"state_dict": {"module.a": torch.ones(2)}, "epoch": 3}, tmp_path / "a.ckpt")
    assert read_weights(tmp_path / "a.ckpt").keys() == {"a"}


class Unsafe:
    """Unpickling this would run code."""

    def __reduce__(self) -> tuple:
        return os.system, ("true",)


def test_pickles_that_run_code_are_refused(tmp_path: Path) -> None:
    torch.save({"a": Unsafe()}, tmp_path / "a.pth")
    with pytest.raises(InputError, match="cannot read as plain weights"):
        read_weights(tmp_path / "a.pth")


def test_every_misfit_is_named(tmp_path: Path) -> None:
    module = torch.nn.Linear(2, 1)
    with pytest.raises(InputError, match="bias is missing"):
        load_strictly(module, {"weight": torch.ones(1, 2)}, "file")
    with pytest.raises(InputError, match="extra is unknown"):
        load_strictly(module, {**module.state_dict(), "extra": torch.ones(1)}, "file")
    with pytest.raises(InputError, match=r"weight has shape \(1, 3\) instead of \(1, 2\)"):
        load_strictly(module, {**module.state_dict(), "weight": torch.ones(1, 3)}, "file")
    with pytest.raises(InputError, match="without weights"):
        read_weights(tmp_path)
    with pytest.raises(InputError, match="check the path"):
        read_weights(tmp_path / "absent.pth")
    with pytest.raises(InputError, match="expected one of s, b, l"):
        DepthAnythingV2("giant")


OFFLINE = """
import sys
import ducos.prompts.depth_anything_v2, ducos.prompts.dinov2
from ducos.errors import InputError
from ducos.prompts.weights import read_weights
assert not {"transformers", "huggingface_hub"} & sys.modules.keys(), "import of a prompt is heavy"
assert read_weights("someone/network")["a"].tolist() == [1.0, 1.0]
try:
    read_weights("someone/absent")
except InputError as error:
    print(error)
"""


def test_hub_works_offline_from_its_cache(tmp_path: Path) -> None:
    """A cached repository is found without network; an absent one says what to do."""
    repository = tmp_path / "models--someone--network"
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    save_file({"a": torch.ones(2)}, snapshot / "model.safetensors")
    environment = os.environ | {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "give its folder instead" in run.stdout
