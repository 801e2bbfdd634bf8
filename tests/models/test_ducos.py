"""DuCos against the paper's equations, and every ablation switch."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.models import DuCos, DuCosCompact, Prediction, create
from ducos.models.blocks import pearson
from ducos.models.ducos.fusion import Alignment, CorrelativeFusion
from ducos.prompts.tiny import TinyPrompt
from ducos.resize import bicubic
from ducos.training.losses import alignment
from ducos.training.table import CONSTRAINTS, preset_dual

WIDTHS = (6, 6, 8, 8)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def small(prompt: str | None = "tiny", **kwargs: object) -> DuCos:
    torch.manual_seed(0)
    built = None if prompt is None else TinyPrompt(widths=WIDTHS)
    return DuCos(built, **{"channels": 8, "blocks": 1, **kwargs}).eval()  # type: ignore[arg-type]


def compact(prompt: str | None = "tiny", **kwargs: object) -> DuCosCompact:
    torch.manual_seed(0)
    built = None if prompt is None else TinyPrompt(widths=WIDTHS)
    return DuCosCompact(built, **{"channels": 8, **kwargs}).eval()  # type: ignore[arg-type]


def run(
    model: nn.Module, size: tuple[int, int] = (36, 44), low: tuple[int, int] = (9, 11)
) -> Prediction:
    with torch.no_grad():
        return model(noise(1, 3, *size), noise(1, 1, *low, seed=1))


def run_with_gradient(model: nn.Module) -> Prediction:
    """As while training: only then are the maps of the alignment constraint computed."""
    return model(noise(1, 3, 36, 44), noise(1, 1, 9, 11, seed=1))


# Eq. 3: Pearson correlation


def test_pearson_is_numpys() -> None:
    a, b = noise(2, 5, 7, 9), noise(2, 5, 7, 9, seed=1)
    b = b + 0.5 * a * torch.tensor([-4.0, -1, 0, 1, 4])[None, :, None, None]
    ours = pearson(a, b)
    assert ours.shape == (2, 5, 1, 1)
    for i in range(2):
        for c in range(5):
            theirs = np.corrcoef(a[i, c].flatten(), b[i, c].flatten())[0, 1]
            assert ours[i, c].item() == pytest.approx(theirs, abs=1e-4)


def test_pearson_stays_within_one() -> None:
    a = torch.randn(1, 4, 30, 30) * 10.0 ** torch.arange(-2, 2)[None, :, None, None]
    assert pearson(a, 3 * a + 1).max() <= 1 + 1e-6
    assert pearson(a, -a).min() >= -1 - 1e-6
    assert pearson(a, a).min() > 0.95


@pytest.mark.parametrize("constant", [0.0, 1.0, 1e4])
def test_a_constant_channel_correlates_with_nothing(constant: float) -> None:
    a = torch.full((1, 2, 5, 5), constant).requires_grad_()
    b = noise(1, 2, 5, 5).requires_grad_()
    for pair in ((a, b), (b, a), (a, a)):
        r = pearson(*pair)
        assert r.abs().max() < 1e-3
        gradients = torch.autograd.grad(r.sum(), list({id(p): p for p in pair}.values()))
        assert all(g.isfinite().all() for g in gradients)


def test_alpha_lies_in_the_papers_interval() -> None:
    """Sigmoid of r: [1/(1+e), 1/(1+1/e)]."""
    a = torch.randn(3, 4, 16, 16)
    for b in (a, -a, torch.randn(3, 4, 16, 16)):
        alpha = torch.sigmoid(pearson(a, b))
        assert alpha.min() >= 1 / (1 + math.e) - 1e-5
        assert alpha.max() <= 1 / (1 + 1 / math.e) + 1e-5


# Eq. 2b-6: correlative fusion, by hand


def fusion(**kwargs: object) -> CorrelativeFusion:
    torch.manual_seed(0)
    defaults = {"iterations": 1, "fusion": "pearson", "recurrence": "literal", "blocks": 1}
    return CorrelativeFusion(4, **{**defaults, **kwargs}).eval()  # type: ignore[arg-type]


def by_equations(module: CorrelativeFusion, prompt: Tensor, depth: Tensor) -> Tensor:
    """One pass of Eq. 2b-5 in numpy's words."""
    hat = module.group(depth)
    r = torch.tensor(
        [np.corrcoef(prompt[0, c].flatten(), hat[0, c].flatten())[0, 1] for c in range(4)]
    ).float()
    alpha = (1 / (1 + torch.exp(-r)))[None, :, None, None]
    return alpha * prompt + (1 - alpha) * hat


@pytest.mark.parametrize("iterations", range(1, 7))
def test_literal_recurrence_sends_the_blend_back_through_the_group(iterations: int) -> None:
    module, prompt, depth = (
        fusion(iterations=iterations),
        noise(1, 4, 8, 9),
        noise(1, 4, 8, 9, seed=1),
    )
    with torch.no_grad():
        expected = depth
        for _ in range(iterations):
            expected = by_equations(module, prompt, expected)
        out, blended = module(prompt, depth)
        torch.testing.assert_close(blended, expected, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(out, module.out(blended))


def test_reweighting_keeps_the_depth_side_of_the_blend() -> None:
    module, prompt, depth = (
        fusion(iterations=3, recurrence="reweight"),
        noise(1, 4, 8, 9),
        noise(1, 4, 8, 9, seed=1),
    )
    with torch.no_grad():
        hat = module.group(depth)
        reference = hat
        for _ in range(3):
            alpha = torch.sigmoid(pearson(prompt, reference))
            reference = alpha * prompt + (1 - alpha) * hat
        torch.testing.assert_close(module(prompt, depth)[1], reference)


def test_addition_and_concatenation_by_hand() -> None:
    prompt, depth = noise(1, 4, 6, 6), noise(1, 4, 6, 6, seed=1)
    with torch.no_grad():
        added = fusion(fusion="add")
        torch.testing.assert_close(added(prompt, depth)[1], prompt + added.group(depth))
        joined = fusion(fusion="concat")
        expected = joined.merge(torch.cat([prompt, joined.group(depth)], 1))
        torch.testing.assert_close(joined(prompt, depth)[1], expected)


def test_one_pass_is_the_same_under_both_recurrences() -> None:
    prompt, depth = noise(1, 4, 6, 6), noise(1, 4, 6, 6, seed=1)
    with torch.no_grad():
        literal = fusion(recurrence="literal")(prompt, depth)[0]
        assert torch.equal(literal, fusion(recurrence="reweight")(prompt, depth)[0])


# Eq. 7


def test_alignment_maps_span_zero_to_one_per_image() -> None:
    project = Alignment(5)
    maps = project(torch.cat([noise(1, 5, 6, 7), 100 * noise(1, 5, 6, 7, seed=1)]))
    assert maps.shape == (2, 1, 6, 7)
    assert maps.amin((1, 2, 3)).abs().max() < 1e-6
    assert (maps.amax((1, 2, 3)) - 1).abs().max() < 1e-4
    assert project(torch.ones(1, 5, 4, 4)).abs().max() == 0


def test_every_stage_is_aligned() -> None:
    prediction = run_with_gradient(small())
    assert len(prediction.aux["alignment"]) == 4
    for pair in prediction.aux["alignment"]:
        for each in pair:
            assert each.shape == (1, 1, 36, 44)
            assert each.min() >= 0
            assert each.max() <= 1


def test_nobody_pays_for_alignment_at_inference() -> None:
    assert run(small()).aux["alignment"] == []


def test_without_alignment_the_constraint_says_what_to_do() -> None:
    prediction = run_with_gradient(small(align=False))
    with pytest.raises(InputError, match="align=True"):
        alignment(prediction, None)


# Switches


@pytest.mark.parametrize("kwargs", [
    {"fusion": "add"}, {"fusion": "concat"}, {"fusion": "pearson"},
    {"recurrence": "literal"}, {"recurrence": "reweight"},
    *({"stages": n} for n in (1, 2, 3, 4)),
    *({"iterations": n} for n in (1, 2, 3, 6)),
    {"residual": True}, {"align": False}, {"deconvolve": False},
])  # fmt: skip
@pytest.mark.parametrize("prompt", ["tiny", None])
def test_every_switch_builds_and_runs(prompt: str | None, kwargs: dict) -> None:
    prediction = run_with_gradient(small(prompt, **{"iterations": 2, **kwargs}))
    assert prediction.depth.shape == (1, 1, 36, 44)
    assert prediction.depth.isfinite().all()
    aligned = kwargs.get("stages", 4) if kwargs.get("align", True) else 0
    assert len(prediction.aux["alignment"]) == aligned
    assert ("prompt_depth" in prediction.aux) == (prompt is not None)
    assert "sigma" not in prediction.aux


@pytest.mark.parametrize("kwargs", [
    {}, {"fusion": "add"}, {"fusion": "concat"}, {"iterations": 3}, {"blocks": 2}, {"wide": True},
    {"guided": False}, {"stride": 1}, {"stride": 2}, {"corrections": 0},
    {"steepenings": 0}, {"align": False}, {"tail": "convolution"},
    {"tail": "convolution", "stride": 2},
])  # fmt: skip
@pytest.mark.parametrize("prompt", ["tiny", None])
def test_every_switch_of_the_compact_network_builds_and_runs(
    prompt: str | None, kwargs: dict
) -> None:
    prediction = run_with_gradient(compact(prompt, **kwargs))
    assert prediction.depth.shape == (1, 1, 36, 44)
    assert prediction.depth.isfinite().all()
    assert len(prediction.aux["alignment"]) == (4 if kwargs.get("align", True) else 0)
    assert ("prompt_depth" in prediction.aux) == (prompt is not None)
    assert ("sigma" in prediction.aux) == ("tail" not in kwargs)


@pytest.mark.parametrize("kwargs", [
    {"fusion": "add"}, {"recurrence": "reweight"}, {"stages": 3}, {"iterations": 3},
    {"residual": True},
])  # fmt: skip
def test_every_switch_does_something(kwargs: dict) -> None:
    """Same weights where the architecture is the same, another result."""
    plain, switched = small(), small(**kwargs)
    switched.load_state_dict(
        {k: v for k, v in plain.state_dict().items() if k in switched.state_dict()}, strict=True
    )
    assert not torch.allclose(run(plain).depth, run(switched).depth)


def test_residual_tail_starts_from_bicubic() -> None:
    model = small(residual=True)
    with torch.no_grad():
        model.tail.weight.zero_()
        model.tail.bias.zero_()
    low = noise(1, 1, 9, 11, seed=1)
    assert torch.equal(run(model).depth, bicubic(low, (36, 44)))


def test_the_defaults_are_the_papers() -> None:
    """C = 64 at H×W, four stages, four passes, Pearson, a plain convolution as the tail."""
    model = DuCos(TinyPrompt(widths=WIDTHS))
    assert model.head.weight.shape == (64, 1, 3, 3)
    assert model.tail.weight.shape == (1, 64, 3, 3)
    assert len(model.fusions) == 4
    assert {f.iterations for f in model.fusions} == {4}
    assert {f.fusion for f in model.fusions} == {"pearson"}
    assert {f.recurrence for f in model.fusions} == {"literal"}
    assert not model.residual
    assert {type(lift.deconvolve) for lift in model.lifts} == {nn.ConvTranspose2d}


@pytest.mark.parametrize("kwargs", [
    {"fusion": "Pearson"}, {"recurrence": "once"}, {"stages": 0}, {"stages": 5},
    {"iterations": 0}, {"channels": 0},
])  # fmt: skip
def test_impossible_arguments_are_refused_with_their_name(kwargs: dict) -> None:
    with pytest.raises(InputError, match=next(iter(kwargs))):
        create("ducos", prompt="tiny", **kwargs)


@pytest.mark.parametrize("kwargs", [
    {"fusion": "Pearson"}, {"tail": "conv"}, {"iterations": 0}, {"channels": 0}, {"stride": 0},
    {"corrections": -1}, {"steepenings": -1}, {"wide": True, "guided": False},
])  # fmt: skip
def test_the_compact_network_refuses_them_too(kwargs: dict) -> None:
    with pytest.raises(InputError, match=next(iter(kwargs))):
        create("ducos-compact", **kwargs)


def test_unknown_arguments_and_names_are_the_users_mistake() -> None:
    with pytest.raises(InputError, match="chanels"):
        create("ducos", prompt="tiny", chanels=3)
    with pytest.raises(InputError, match="ducos-compact"):
        create("duco")
    with pytest.raises(InputError, match="tiny"):
        create("ducos", prompt="tinny")
    with pytest.raises(InputError, match="prompt"):
        create("bicubic", prompt="tiny")
    with pytest.raises(InputError, match="prompt"):
        create("ducos", prompt="none", prompt_options={"tuning": "full"})


# Geometry


PLAIN = {"tail": "convolution"}
COMPACT = [{"guided": False}, {"guided": True}, PLAIN]


@pytest.mark.parametrize("kwargs", [None, *COMPACT])
def test_the_images_place_is_kept(kwargs: dict | None) -> None:
    """What is changed in a corner of the colour image moves the result around that corner most.

    Channel attention and Pearson see the whole map, so a change is felt everywhere, but less.
    """
    model: nn.Module = small(iterations=1, stages=2)
    if kwargs is not None:
        model = compact(iterations=1, **kwargs)
    H, W = 141, 206
    rgb, low = noise(1, 3, H, W), noise(1, 1, 28, 41, seed=1)
    for rows, columns in ((slice(0, 40), slice(0, 40)), (slice(H - 40, H), slice(W - 40, W))):
        changed = rgb.clone()
        changed[..., rows, columns] = 1 - changed[..., rows, columns]
        with torch.no_grad():
            difference = (model(rgb, low).depth - model(changed, low).depth).abs()[0, 0]
        near = torch.zeros(H, W, dtype=torch.bool)
        near[
            max(0, rows.start - 4) : rows.stop + 4, max(0, columns.start - 4) : columns.stop + 4
        ] = 1
        assert difference[near].mean() > 2 * difference[~near].mean()


def test_the_prompts_depth_has_the_images_size() -> None:
    for model in (small(), *(compact(**kwargs) for kwargs in COMPACT)):
        assert run(model, (33, 41)).aux["prompt_depth"].shape == (1, 1, 33, 41)


def test_a_batch_is_its_images() -> None:
    rgb, low = noise(2, 3, 37, 41), noise(2, 1, 9, 10, seed=1)
    valid = noise(2, 1, 9, 10, seed=2) > 0.2
    for model in (small(), compact(guided=False)):
        together = model(rgb, low, valid)
        for i in range(2):
            one = slice(i, i + 1)
            alone = model(rgb[one], low[one], valid[one])
            torch.testing.assert_close(together.depth[one], alone.depth, rtol=0, atol=1e-5)
            pairs = zip(together.aux["alignment"], alone.aux["alignment"], strict=True)
            for ours, theirs in pairs:
                torch.testing.assert_close(ours[0][one], theirs[0], rtol=0, atol=1e-3)


def test_the_lagrangian_of_the_paper_can_be_computed_and_differentiated() -> None:
    """Eq. 13 end to end on one image."""
    from ducos.normalise import range_of
    from ducos.training.losses import reconstruction
    from ducos.training.samples import Batch

    model = small().train()
    low, target = noise(1, 1, 9, 11, seed=1), noise(1, 1, 36, 44, seed=2)
    valid = torch.ones_like(target, dtype=torch.bool)
    batch = Batch(
        rgb=noise(1, 3, 36, 44), low=low, low_valid=torch.ones_like(low, dtype=torch.bool),
        target=target, valid=valid, range=range_of(1 + low), inverse=torch.tensor([False]),
    )  # fmt: skip
    prediction = model(batch.rgb, batch.low)
    values = {name: CONSTRAINTS[name](prediction, batch) for name in ("alignment", "edge")}
    objective = reconstruction(prediction, batch)
    total = preset_dual("paper").lagrangian(objective, values)
    expected = objective + 0.01 * values["alignment"] + 0.05 * values["edge"]
    torch.testing.assert_close(total, expected)
    total.backward()
    assert model.head.weight.grad is not None
    assert model.head.weight.grad.abs().sum() > 0
