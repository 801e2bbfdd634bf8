"""One contract for every entry of MODELS: sizes, ratios, gradients, files, holes."""

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ducos.models import MODELS, Model, Prediction, create
from ducos.models.checkpoint import ModelSpec, load_model, save_model, stored_weights
from ducos.prompts import PROMPTS
from ducos.training.losses import masked_mean
from ducos.upscaling import predict

TINY: dict[str, Any] = {"prompt": "tiny", "prompt_options": {"widths": [6, 6, 8, 8]}}
VIT: dict[str, Any] = {"prompt": "depth-anything-v2-s", "prompt_options": {"side": 28}}

# Arguments that make an entry small; entries without a line are built as they are.
SMALL: dict[str, dict[str, Any]] = {
    "ducos": {**TINY, "channels": 8, "blocks": 1},
    "ducos-compact": {**TINY, "channels": 8},
    "prompt-alone": TINY,
    "align": TINY,
    "ducos-released": VIT,
    "djf": {"filters": [8, 6, 8, 4]},
    "djfr": {"filters": [8, 6, 8, 4]},
    "dada": {"free_steps": 2, "trained_steps": 2},
}
# Networks whose whole walk through the sizes would take minutes see a few of them, and giants none
# of this by default.
HEAVY = {"ducos-released", "dornet", "dada", "sgnet-x4", "promptda-s"}
GIANT = {"promptda-b", "promptda-l", "sgnet-x8", "sgnet-x16"}

# Published networks carry parts that nothing reads; they stay for the sake of their checkpoints.
# Prefixes of parameters that need no gradient.
UNREACHED: dict[str, tuple[str, ...]] = {
    "dctnet": ("WPNet.conv_dilation",),
    "ducos-released": ("dsrn.head_rgb", "depth_anything."),  # prompts have tests of their own
    "fdsr": ("rgb_cbl4.conv.conv_l2l", "rgb_cbl4.conv.conv_h2l"),
    "promptda-s": ("pretrained.mask_token", "depth_head.scratch.refinenet4.resConfUnit1"),
    "promptda-b": ("pretrained.mask_token", "depth_head.scratch.refinenet4.resConfUnit1"),
    "promptda-l": ("pretrained.mask_token", "depth_head.scratch.refinenet4.resConfUnit1"),
}

#        H   W   h   w
CASES = [
    (21, 18, 21, 18),  # ratio 1
    (33, 27, 22, 18),  # 1.5
    (30, 26, 15, 13),  # 2
    (34, 41, 10, 12),  # 3.4
    (58, 35, 5, 3),  # 11.6
    (40, 24, 5, 12),  # 8 down, 2 across
    (19, 23, 1, 1),
    (16, 3, 4, 1),
    (1, 1, 1, 1),
]
FEW_CASES = [(34, 41, 10, 12), (19, 23, 1, 1)]


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def arguments(name: str) -> dict[str, Any]:
    chosen = SMALL.get(name, {})
    prompt = chosen.get("prompt") or MODELS[name].prompt
    assert prompt is None or prompt == "none" or prompt in PROMPTS
    return chosen


def build(name: str) -> nn.Module:
    chosen = arguments(name)
    torch.manual_seed(0)
    return create(name, **chosen)


def inputs(H: int, W: int, h: int, w: int, batch: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    valid = noise(batch, 1, h, w, seed=2) > 0.2
    valid[..., 0, 0] = True
    return noise(batch, 3, H, W), noise(batch, 1, h, w, seed=1), valid


def marked(name: str, *rest: Any) -> Any:
    return pytest.param(name, *rest, marks=[pytest.mark.slow] if name in GIANT else [])


every_model = pytest.mark.parametrize("name", [marked(name) for name in MODELS])
every_case = pytest.mark.parametrize(
    ("name", "case"),
    [
        marked(name, case)
        for name in MODELS
        for case in (FEW_CASES if name in HEAVY | GIANT else CASES)
    ],
)
every_prompted = pytest.mark.parametrize("name", [n for n in MODELS if MODELS[n].prompt])


@every_case
def test_any_size_and_ratio(name: str, case: tuple[int, int, int, int]) -> None:
    model = build(name).eval()
    rgb, low, valid = inputs(*case)
    kept = rgb.clone(), low.clone(), valid.clone()
    with torch.no_grad():
        prediction = model(rgb, low, valid)
    assert isinstance(prediction, Prediction)
    assert prediction.depth.shape == (1, 1, *case[:2])
    assert prediction.depth.dtype == torch.float32
    assert prediction.depth.isfinite().all()
    for key in ("prompt_depth", "sigma"):
        if key in prediction.aux:
            assert prediction.aux[key].shape == (1, 1, *case[:2]), key
            assert prediction.aux[key].isfinite().all(), key
    for pair in prediction.aux.get("alignment", []):
        assert pair[0].shape == pair[1].shape
        assert pair[0].shape[:2] == (1, 1)
    for given, before in zip((rgb, low, valid), kept):
        assert torch.equal(given, before), "the network wrote into its input"


@every_model
def test_constant_and_extreme_inputs_stay_finite(name: str) -> None:
    model = build(name).eval()
    with torch.no_grad():
        for rgb_level, low_level in ((0.0, 0.0), (1.0, 1.0)):
            rgb = torch.full((1, 3, 24, 20), rgb_level)
            low = torch.full((1, 1, 6, 5), low_level)
            assert model(rgb, low).depth.isfinite().all()


@every_model
def test_every_model_says_what_it_can_be_told_and_how_it_runs(name: str) -> None:
    model = build(name)
    assert isinstance(model, Model)
    assert all(len(set(words)) == len(words) for words in model.subjects.values())
    assert model.multiple >= 1
    assert not model.in_strips or model.bytes_per_pixel()
    assert not model.takes_prompt or model.prompt is not None
    parameters = list(inspect.signature(model.forward).parameters)
    assert parameters[:4] == ["rgb", "low", "valid", "told"]
    assert ("prompt" in parameters) == model.takes_prompt


@every_model
def test_eval_is_deterministic_and_keeps_no_state(name: str) -> None:
    model = build(name).eval()
    first, second = inputs(24, 28, 6, 7), inputs(17, 22, 5, 5)
    with torch.no_grad():
        once = model(*first).depth
        model(*second)
        assert torch.equal(model(*first).depth, once)


@every_model
def test_a_batch_is_its_images(name: str) -> None:
    model = build(name).eval()
    rgb, low, valid = inputs(24, 28, 6, 7, batch=2)
    with torch.no_grad():
        together = model(rgb, low, valid).depth
        for i in range(2):
            alone = model(rgb[i : i + 1], low[i : i + 1], valid[i : i + 1]).depth
            scale = together.abs().max().item()
            torch.testing.assert_close(together[i : i + 1], alone, rtol=1e-4, atol=1e-4 * scale)


@every_model
def test_no_holes_is_the_same_as_an_all_valid_mask(name: str) -> None:
    model = build(name).eval()
    rgb, low, valid = inputs(24, 28, 6, 7)
    with torch.no_grad():
        assert torch.equal(model(rgb, low).depth, model(rgb, low, torch.ones_like(valid)).depth)


@every_model
def test_what_a_hole_holds_cannot_change_the_result(name: str) -> None:
    """Through `predict`, as users and evaluation run it."""
    model = build(name).eval()
    rgb, low, valid = inputs(24, 28, 6, 7)
    metres = 1 + 4 * low
    with torch.no_grad():
        depths = [
            predict(model, rgb, torch.where(valid, metres, stored), valid).depth
            for stored in (0.0, 65.535, torch.nan, torch.inf)
        ]
    assert depths[0].isfinite().all()
    for depth in depths[1:]:
        assert torch.equal(depth, depths[0])


@every_model
def test_predict_commutes_with_the_unit(name: str) -> None:
    """Normalisation takes the unit out and puts it back; powers of two do so without rounding."""
    model = build(name).eval()
    rgb, low, valid = inputs(24, 28, 6, 7)
    metres = 1 + 4 * low
    with torch.no_grad():
        depth = predict(model, rgb, metres, valid).depth
        scaled = predict(model, rgb, 1024 * metres, valid).depth
    assert torch.equal(scaled / 1024, depth)


def without_gradient(model: nn.Module) -> set[str]:
    """Names of trainable parameters that one training step would not move."""
    rgb, low, valid = inputs(36, 40, 9, 10, batch=2)
    prediction = model.train()(rgb, low, valid)
    total = (prediction.depth * noise(2, 1, 36, 40, seed=5)).sum()
    for depth_map, prompt_map in prediction.aux.get("alignment", []):
        total = total + ((depth_map - prompt_map) * noise(*depth_map.shape, seed=6)).sum()
    if "prompt_depth" in prediction.aux:
        total = total + (prediction.aux["prompt_depth"] * noise(2, 1, 36, 40, seed=7)).sum()
    total.backward()
    trainable = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    for name, parameter in trainable:
        assert parameter.grad is None or parameter.grad.isfinite().all(), name
    return {n for n, p in trainable if p.grad is None or not bool(p.grad.any())}


@every_model
def test_gradients_reach_every_trainable_parameter(name: str) -> None:
    chosen, exempt = arguments(name), UNREACHED.get(name, ())
    # A narrow rectified layer may be dead by chance; it must live under one of several seeds.
    unreached: set[str] | None = None
    for seed in range(6):
        torch.manual_seed(seed)
        model = create(name, **chosen)
        if not any(p.requires_grad for p in model.parameters()):
            pytest.skip("nothing to train")
        found = {n for n in without_gradient(model) if not (exempt and n.startswith(exempt))}
        unreached = found if unreached is None else unreached & found
        if not unreached:
            break
    assert not unreached
    names = [n for n, _ in model.named_parameters()]
    assert all(any(n.startswith(prefix) for n in names) for prefix in exempt), "stale exemption"


@every_model
def test_a_weight_file_brings_the_same_model_back(name: str, tmp_path: Path) -> None:
    chosen = dict(arguments(name))
    spec = ModelSpec(
        name,
        chosen.pop("prompt", None),
        chosen.pop("prompt_options", {}),
        chosen,
    )
    torch.manual_seed(0)
    model = spec.build().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # not what any seed would give
            parameter.add_(0.01 * torch.randn_like(parameter))
    path = tmp_path / "weights.safetensors"
    save_model(path, spec, stored_weights(model), {"licence": MODELS[name].licence})
    again, spec_again, about = load_model(path)
    assert spec_again == spec
    assert about["licence"] == MODELS[name].licence
    assert not again.training
    sample = inputs(24, 28, 6, 7)
    with torch.no_grad():
        assert torch.equal(again(*sample).depth, model(*sample).depth)


@every_prompted
def test_a_frozen_prompt_stays_frozen(name: str) -> None:
    chosen = dict(arguments(name))
    options = {**chosen.pop("prompt_options", {}), "tuning": "frozen"}
    torch.manual_seed(0)
    model = create(name, prompt_options=options, **chosen).train()
    frozen = {n: p for n, p in model.named_parameters() if not p.requires_grad}
    if len(frozen) == len(list(model.parameters())):
        pytest.skip("the model is nothing but its prompt")
    prompts = [m for m in model.children() if hasattr(m, "multiple_of")]
    assert len(prompts) == 1
    assert {id(p) for p in frozen.values()} == {id(p) for p in prompts[0].parameters()}

    before = {n: v.clone() for n, v in prompts[0].state_dict().items()}
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    prediction = model(*inputs(36, 40, 9, 10))
    target = noise(1, 1, 36, 40, seed=3)
    masked_mean(
        (prediction.depth - target).abs(), torch.ones_like(target, dtype=torch.bool)
    ).backward()
    assert all(p.grad is None for p in frozen.values())
    optimizer.step()
    for key, value in prompts[0].state_dict().items():
        assert torch.equal(value, before[key]), key


@every_prompted
def test_a_frozen_prompt_says_the_same_while_training(name: str) -> None:
    """No dropout, no batch statistics: a frozen teacher does not depend on the mode."""
    chosen = dict(arguments(name))
    options = {**chosen.pop("prompt_options", {}), "tuning": "frozen"}
    torch.manual_seed(0)
    model = create(name, prompt_options=options, **chosen)
    sample = inputs(36, 40, 9, 10)
    with torch.no_grad():
        training = model.train()(*sample).aux["prompt_depth"]
        assert torch.equal(model.eval()(*sample).aux["prompt_depth"], training)


@every_model
def test_the_entry_tells_what_it_is(name: str) -> None:
    entry = MODELS[name]
    assert entry.about
    assert entry.licence
