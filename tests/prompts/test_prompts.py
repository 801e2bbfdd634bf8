"""Foundation prompts behind the contract of `prompts/prompt.py`: sizes, ranges, weights, tuning."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from ducos.errors import InputError
from ducos.prompts import depthformer, unidepth_v2, unidepth_v2old
from ducos.prompts.depth_anything_v2 import DepthAnythingV2
from ducos.prompts.depthformer import DepthFormer
from ducos.prompts.dinov2 import Dinov2
from ducos.prompts.image import covering_size, imagenet, size_near, to_working_size
from ducos.prompts.prompt import PromptModel, set_tuning
from ducos.prompts.transformers_layout import (
    from_authors_keys,
    is_transformers_layout,
    to_authors_keys,
)
from ducos.prompts.unidepth_parts import pinhole_rays
from ducos.prompts.unidepth_v2 import UniDepthV2
from ducos.prompts.unidepth_v2old import UniDepthV2Old
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


@pytest.mark.parametrize(
    ("build", "grids"),
    [
        (lambda: DepthAnythingV2("s", side=70), [(5, 7)] * 4),
        (lambda: Dinov2("s", side=70), [(5, 7)] * 4),
        (lambda: UniDepthV2("s", side=70), [(5, 7)] * 4),
        (lambda: UniDepthV2Old("s", side=70), [(5, 7)] * 4),
        (lambda: DepthFormer("swint"), [(24, 24), (12, 12), (6, 6), (3, 3)]),
    ],
    ids=["depth-anything-v2", "dinov2", "unidepth-v2", "unidepth-v2old", "depthformer"],
)
def test_prompt_contract(build: Callable, grids: list[tuple[int, int]], rgb: Tensor) -> None:
    torch.manual_seed(0)
    model = build()
    assert isinstance(model, PromptModel)
    set_tuning(model, "frozen")
    before = {key: value.clone() for key, value in model.state_dict().items()}
    features, depth = model.train()(rgb)
    assert [f.shape for f in features] == [
        (2, channels, *grid) for channels, grid in zip(model.channels, grids, strict=True)
    ]
    assert all(bool(feature.isfinite().all()) for feature in features)
    assert not any(feature.requires_grad for feature in features)
    if isinstance(model, Dinov2):
        assert depth is None
    else:
        assert depth.shape == (2, 1, 61, 83)
        assert bool(depth.isfinite().all())
        assert not depth.requires_grad
    alone = model(rgb[1:]).features[3]  # images of a batch do not mix
    torch.testing.assert_close(features[3][1:], alone, atol=1e-4, rtol=1e-4)
    for key, value in model.state_dict().items():  # nothing moved, batch statistics included
        assert torch.equal(value, before[key]), key


def test_imagenet_statistics_are_an_argument(depth_anything: DepthAnythingV2, rgb: Tensor) -> None:
    """A network fed normalised colours without the argument sees what it would see with it."""
    with_argument = depth_anything(rgb).features[0]
    plain = DepthAnythingV2("s", side=70, imagenet=False)
    plain.load_state_dict(depth_anything.state_dict())
    image = to_working_size(rgb, 70, 14)
    torch.testing.assert_close(plain.at_working_size(imagenet(image))[0][0], with_argument)
    assert (plain(rgb).features[0] - with_argument).abs().max() > 0.1


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


# Details of single networks


@pytest.mark.parametrize(
    ("size", "padded", "working"),
    [
        ((480, 640), (480, 640), (490, 644)),
        ((384, 512), (384, 512), (392, 518)),
        ((375, 450), (375, 450), (420, 490)),
        ((1110, 1390), (1110, 1390), (700, 868)),
        ((1080, 1920), (1080, 1920), (588, 1036)),
        ((200, 900), (360, 900), (364, 910)),
        ((900, 300), (900, 450), (910, 462)),
    ],
)
def test_unidepth_v2_works_at_the_authors_size(
    size: tuple[int, int], padded: tuple[int, int], working: tuple[int, int]
) -> None:
    left, right, top, bottom = unidepth_v2.padding_for(size)
    assert (size[0] + top + bottom, size[1] + left + right) == padded
    assert unidepth_v2.working_size(padded) == working


def test_unidepth_v2old_works_at_the_authors_size() -> None:
    assert unidepth_v2old.working_size((480, 640)) == (588, 784)


def test_margins_are_cut_to_the_fraction_of_a_token() -> None:
    """A ramp over the padded image becomes the ramp's middle part."""
    size, margins = (40, 200), (0, 0, 13, 27)
    ramp = ((torch.arange(16) + 0.5) / 16).view(1, 1, 16, 1).expand(1, 1, 16, 40)
    cut = unidepth_v2.cut_margins(ramp, margins, size)
    assert cut.shape == (1, 1, 8, 40)
    expected = (13 + 40 * (torch.arange(8) + 0.5) / 8) / 80
    torch.testing.assert_close(cut[0, 0, :, 5], expected, atol=1e-6, rtol=0)


def test_unidepth_v2_takes_extreme_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unidepth_v2, "PIXELS", (8_000, 10_000))  # the real ones take seconds
    features, depth = UniDepthV2("s").requires_grad_(False)(torch.rand(1, 3, 30, 150))
    assert depth is not None
    assert depth.shape == (1, 1, 30, 150)
    assert {feature.shape for feature in features} == {(1, 384, 3, 11)}


def test_rays_follow_the_pinhole_camera() -> None:
    """The ray through the principal point looks forward; its neighbours lean by 1/f."""
    rays = pinhole_rays(torch.tensor([[10.0, 20.0, 4.5, 2.5]]), (6, 8))
    assert rays.shape == (1, 3, 6, 8)
    torch.testing.assert_close(rays[0, :, 2, 4], torch.tensor([0.0, 0.0, 1.0]))
    assert (rays[0, 0, 2, 5] / rays[0, 2, 2, 5]).item() == pytest.approx(1 / 10)
    assert (rays[0, 1, 3, 4] / rays[0, 2, 3, 4]).item() == pytest.approx(1 / 20)


def test_head_mixing_keeps_tokens_apart() -> None:
    torch.manual_seed(0)
    block = unidepth_v2old.HeadMixing(32, 8, bias=True, scaled=True).requires_grad_(False)
    tokens = torch.randn(1, 5, 32)
    changed = tokens.clone()
    changed[0, 2] += 1
    moved = (block(tokens) - block(changed)).abs().amax(-1)[0] > 1e-6
    assert moved.tolist() == [False, False, True, False, False]


def test_deformable_attention_does_not_depend_on_its_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(0)
    attention = depthformer.DeformableAttention(32).requires_grad_(False)
    sizes = [(4, 6), (3, 3), (2, 3), (1, 2)]
    query, value = torch.randn(2, 20, 32), torch.randn(2, sum(h * w for h, w in sizes), 32)
    reference = torch.rand(20, 2)
    whole = attention(query, reference, value, sizes)
    monkeypatch.setattr(depthformer, "QUERIES_AT_ONCE", 7)
    torch.testing.assert_close(attention(query, reference, value, sizes), whole)


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

    seeded = weights("depth_anything_v2_vits_70x98")
    written = {key: value.contiguous() for key, value in from_authors_keys(seeded).items()}
    save_file(written, tmp_path / "model.safetensors", metadata={"format": "pt"})
    config = DepthAnythingConfig()  # ViT-S, but with the taps of version 1
    config.backbone_config.set_output_features_output_indices(None, [3, 6, 9, 12])
    config.save_pretrained(tmp_path)
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


@pytest.mark.parametrize("name", ["a.safetensors", "a.pth"])
def test_damaged_weights_are_one_sentence(tmp_path: Path, name: str) -> None:
    for content in (b"", b"garbage", b"\xff" * 100, (50).to_bytes(8, "little") + b"{" * 50):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            read_weights(tmp_path / name)


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
    with pytest.raises(InputError, match="give its folder instead"):
        read_weights("./absent")
    for network in (DepthAnythingV2, Dinov2, UniDepthV2, UniDepthV2Old, DepthFormer):
        with pytest.raises(InputError, match="got size 'giant', expected one of"):
            network("giant")
    with pytest.raises(InputError, match="on no hub"):
        DepthFormer("swint", weights="hub")


OFFLINE = """
import sys
import ducos.prompts.depth_anything_v2, ducos.prompts.dinov2, ducos.prompts.depthformer
import ducos.prompts.unidepth_v2, ducos.prompts.unidepth_v2old
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
