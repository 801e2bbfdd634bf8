"""A prior: any monocular depth as a prompt of the compact network."""

import numpy as np
import pytest
import torch

from ducos.errors import InputError
from ducos.models import create, predict_in_strips
from ducos.models.ducos.around import Around
from ducos.models.ducos.prior import DEPTHS, Guess, curve_of, polynomial
from ducos.models.protocol import Model

TOLD = {"mode": ["faithful", "repair"], "sensor": ["unknown", "tof"]}


def network(**kwargs: object) -> Model:
    torch.manual_seed(0)
    settings = {"channels": 8, "iterations": 1, "wide": True, "prior": True, **kwargs}
    return create("ducos-compact", prompt="tiny", **settings).eval()


def taught(model: Model) -> Model:
    """As after some training: every part of the prior's branch has an effect."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.prior.parameters():
            parameter.normal_(0, 0.05)
    return model


def scene(H: int = 64, W: int = 96, h: int = 8, w: int = 12) -> tuple[torch.Tensor, ...]:
    """rgb, low and the depth it was made of: a box before a slanted wall."""
    columns, rows = torch.meshgrid(torch.linspace(0, 1, W), torch.linspace(0, 1, H), indexing="xy")
    depth = 0.5 + 0.4 * columns + 0.1 * rows
    depth[H // 4 : H // 2 + 3, W // 3 : 2 * W // 3 + 5] = 0.1
    depth = depth[None, None]
    low = torch.nn.functional.interpolate(depth, (h, w), mode="area")
    generator = torch.Generator().manual_seed(3)
    return torch.rand(1, 3, H, W, generator=generator), low, depth


@pytest.mark.parametrize("curve", [lambda d: d, lambda d: 7 - 3 * d, lambda d: 1 / (0.5 + d)])
def test_the_fit_undoes_any_smooth_monotone_curve(curve) -> None:
    rgb, low, depth = scene()
    guess = Guess.of(curve(depth), Around.of(rgb, low, None))
    measured = torch.nn.functional.interpolate(guess.fitted, low.shape[-2:], mode="area")
    assert float((measured - low).abs().mean()) < 0.02
    assert float((guess.depths[:, :1] - depth).abs().median()) < 0.01


def test_the_fit_ignores_an_object_at_the_wrong_depth() -> None:
    _, low, _ = scene()
    wrong = low.clone()
    wrong[..., 2:4, 4:8] += 0.5
    curve, has = curve_of(wrong, low, None)
    off = (polynomial(wrong, curve) - low).abs()
    off[..., 2:4, 4:8] = 0
    assert float(has) == 1
    assert float(off.mean()) < 0.05


def test_invalid_measurements_do_not_bend_the_fit() -> None:
    _, low, _ = scene()
    valid = torch.ones_like(low, dtype=torch.bool)
    valid[..., :3] = False
    spoilt = torch.where(valid, low, torch.full_like(low, 9.0))
    curves = [curve_of(low, each, valid)[0] for each in (low, spoilt)]
    torch.testing.assert_close(*curves, atol=2e-3, rtol=0)


def test_without_a_prior_it_is_the_network_without_the_branch() -> None:
    rgb, low, _ = scene()
    with_branch, plain = taught(network()), network(prior=False)
    plain.load_state_dict(
        {n: v for n, v in with_branch.state_dict().items() if not n.startswith("prior.")}
    )
    with torch.inference_mode():
        expected = plain(rgb, low).depth
        assert torch.equal(with_branch(rgb, low).depth, expected)
        flat = with_branch(rgb, low, prior=torch.full_like(rgb[:, :1], 0.3))
    assert torch.equal(flat.depth, expected)
    assert not flat.aux["leaned"].any()


def test_a_prior_changes_the_result_and_says_how_far() -> None:
    rgb, low, depth = scene()
    model = taught(network())
    with torch.inference_mode():
        without, given = model(rgb, low), model(rgb, low, prior=1 / depth)
    assert not torch.equal(without.depth, given.depth)
    leaned = given.aux["leaned"]
    assert leaned.shape == depth.shape
    assert 0 < float(leaned.min()) <= float(leaned.max()) < 1
    assert "leaned" not in without.aux


def test_a_batch_may_have_priors_for_some() -> None:
    rgb, low, depth = scene()
    model = taught(network())
    two = torch.cat([torch.zeros_like(depth), depth])
    with torch.inference_mode():
        both = model(rgb.expand(2, -1, -1, -1), low.expand(2, -1, -1, -1), prior=two).depth
        alone = [model(rgb, low).depth, model(rgb, low, prior=depth).depth]
    torch.testing.assert_close(both, torch.cat(alone), atol=1e-5, rtol=0)


def test_strips_give_the_same_with_a_prior() -> None:
    rgb, low, depth = scene(256, 320, 21, 27)
    model = taught(network(told=TOLD))
    noise = torch.full((1, 1, 1, 1), 0.01)
    with torch.inference_mode():
        whole = model(rgb, low, None, {"mode": "faithful"}, noise=noise, prior=depth)
    parts = predict_in_strips(
        model, rgb, low, None, {"mode": "faithful"}, noise=noise, prior=depth, memory=2_000_000
    )
    torch.testing.assert_close(parts.depth, whole.depth, atol=2e-5, rtol=0)
    torch.testing.assert_close(parts.aux["leaned"], whole.aux["leaned"], atol=1e-5, rtol=0)


def test_faithful_stays_faithful_under_a_wrong_prior() -> None:
    rgb, low, _ = scene()
    model = taught(network(told=TOLD))
    generator = torch.Generator().manual_seed(5)
    noise = torch.full((1, 1, 1, 1), 1e-4)
    with torch.inference_mode():
        result = model(
            rgb,
            low,
            None,
            {"mode": "faithful"},
            noise=noise,
            prior=torch.rand(rgb[:, :1].shape, generator=generator),
        ).depth
    shrunk = torch.nn.functional.interpolate(result, low.shape[-2:], mode="area")
    spread = torch.nn.functional.max_pool2d(low, 3, 1, 1)
    spread = spread + torch.nn.functional.max_pool2d(-low, 3, 1, 1)
    assert bool(((shrunk - low).abs() <= 0.05 * spread + 3e-4).all())


def test_every_part_of_the_branch_learns() -> None:
    rgb, low, depth = scene()
    model = taught(network()).train()
    prediction = model(rgb, low, prior=depth)
    (prediction.depth - depth).abs().mean().backward()
    silent = [n for n, p in model.prior.named_parameters() if p.grad is None or not p.grad.any()]
    assert [n for n in silent if not n.startswith("encoder.head")] == []


def test_the_edge_constraint_takes_the_prior_for_its_teacher() -> None:
    rgb, low, depth = scene()
    aux = network().train()(rgb, low, prior=2 - depth).aux
    assert float(aux["prompt_fitted"]) == 1
    assert float((aux["prompt_depth"].detach() - depth).abs().median()) < 0.05


def test_it_needs_the_guided_mixing_tail() -> None:
    with pytest.raises(InputError, match="prior"):
        network(tail="convolution", wide=False)
    with pytest.raises(InputError, match="prior"):
        network(guided=False, wide=False)


def test_the_number_of_depths_is_what_they_are() -> None:
    rgb, low, depth = scene()
    guess = Guess.of(depth, Around.of(rgb, low, None))
    assert guess.depths.shape == (1, DEPTHS, *depth.shape[-2:])
    assert bool(np.isfinite(guess.depths.numpy()).all())


def textured(seed: int, h: int = 24, w: int = 32) -> torch.Tensor:
    """Boxes at random depths before a wall, (1, 1, 8h, 8w)."""
    generator = torch.Generator().manual_seed(seed)
    depth = torch.ones(1, 1, 8 * h, 8 * w)
    for _ in range(12):
        top, left, near = torch.rand(3, generator=generator).tolist()
        y, x = int(top * 6 * h), int(left * 6 * w)
        depth[..., y : y + 2 * h, x : x + 2 * w] = 0.2 + 0.6 * near
    return depth


def test_a_prior_of_another_scene_changes_nothing() -> None:
    """Nor one of noise, nor a slope that fits as a whole; of its own scene it is trusted fully."""
    depth = textured(0)
    slope = torch.linspace(0, 1, depth.shape[-2])[:, None].expand_as(depth)
    scene, other = depth + slope, textured(1) + slope
    low = torch.nn.functional.interpolate(scene, scale_factor=1 / 8, mode="area")
    rgb = torch.rand(1, 3, *depth.shape[-2:], generator=torch.Generator().manual_seed(3))
    noise = torch.rand(depth.shape, generator=torch.Generator().manual_seed(4))
    model = taught(network())
    with torch.inference_mode():
        without = model(rgb, low).depth
        for wrong in (other, noise, slope.contiguous()):
            given = model(rgb, low, prior=wrong)
            assert torch.equal(given.depth, without)
            assert not given.aux["leaned"].any()
    assert float(Guess.of(1 / scene, Around.of(rgb, low, None)).has) == 1


def test_invalid_measurements_have_no_say_in_the_trust() -> None:
    depth = textured(0)
    low = torch.nn.functional.interpolate(depth, scale_factor=1 / 8, mode="area")
    valid = torch.ones_like(low, dtype=torch.bool)
    valid[..., ::2, 5:9] = False
    spoilt = torch.where(valid, low, torch.full_like(low, 9.0))
    says = [float(curve_of(low, each, valid)[1]) for each in (low, spoilt)]
    assert says == pytest.approx([1, 1], abs=1e-6)
    says = [float(curve_of(low.flip(-1), each, valid)[1]) for each in (low, spoilt)]
    assert says[0] == pytest.approx(says[1], abs=1e-3)
