"""Objectives and constraints: exact answers, gradients, and that holes have no say."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from ducos.cameras import CLOSE
from ducos.errors import InputError
from ducos.models.prediction import Prediction
from ducos.normalise import Range
from ducos.training.losses import (
    alignment,
    at_edges,
    consistency,
    coverage,
    edge,
    edge_snap,
    flying,
    gradient,
    gradient_magnitude,
    gradient_mask,
    like_prompt,
    masked_mean,
    min_max,
    prompt_depth,
    reconstruction,
    rms,
    sigma,
    standardise,
)
from ducos.training.samples import Batch
from ducos.training.table import CONSTRAINTS, OBJECTIVES

DOUBLE = torch.float64
Loss = Callable[[Prediction, Batch], Tensor]


def make_batch(
    target: Tensor,
    valid: Tensor | None = None,
    *,
    lowest: float = 1.0,
    highest: float = 4.0,
    inverse: bool = False,
) -> Batch:
    """A batch around a normalised target (B, 1, H, W)."""
    B = target.shape[0]
    if valid is None:
        valid = torch.ones_like(target, dtype=torch.bool)
    limits = Range(target.new_full((B, 1, 1, 1), lowest), target.new_full((B, 1, 1, 1), highest))
    return Batch(
        rgb=target.new_zeros(B, 3, *target.shape[-2:]),
        low=target[..., ::2, ::2],
        low_valid=valid[..., ::2, ::2],
        target=target,
        valid=valid,
        range=limits,
        inverse=torch.full((B,), inverse),
    )


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def noisy_prediction(depth: Tensor, *, inverse: bool = True, seed: int = 7) -> Prediction:
    aux = {"prompt_depth": noise(*depth.shape, seed=seed), "prompt_inverse": inverse}
    return Prediction(depth, aux)


HALF = torch.tensor([[[[True, True, False], [True, True, True], [False, True, True]]]])


# Parts


def test_masked_mean_by_hand() -> None:
    x = torch.tensor([[[[1.0, 2.0], [3.0, torch.nan]]], [[[10.0, torch.inf], [20.0, 30.0]]]])
    mask = torch.tensor([[[[True, True], [True, False]]], [[[True, False], [False, False]]]])
    # Each image counts alike: (2 + 10) / 2, not the mean of all four valid pixels.
    assert masked_mean(x, mask).item() == 6


def test_an_image_without_valid_pixels_adds_zero() -> None:
    x = torch.tensor([[[[4.0]]], [[[torch.nan]]]])
    mask = torch.tensor([[[[True]]], [[[False]]]])
    assert masked_mean(x, mask).item() == 2


def test_a_split_batch_gives_the_gradient_of_the_whole() -> None:
    """Over processes: the mean of the parts' losses is the loss of the whole, masks or not."""
    depth, target = noise(4, 1, 5, 6), noise(4, 1, 5, 6, seed=1)
    batch = make_batch(target, noise(4, 1, 5, 6, seed=2) > 0.4)
    aux = {
        "prompt_depth": noise(4, 1, 5, 6, seed=3),
        "prompt_inverse": True,
        "alignment": [(noise(4, 1, 5, 6, seed=4), noise(4, 1, 5, 6, seed=5))],
        "sigma": noise(4, 1, 5, 6, seed=6),
    }

    def cut(start: int, stop: int) -> Prediction:
        pairs = [(a[start:stop], b[start:stop]) for a, b in aux["alignment"]]
        maps = {name: aux[name][start:stop] for name in ("prompt_depth", "sigma")}
        return Prediction(depth[start:stop], {**maps, "prompt_inverse": True, "alignment": pairs})

    for loss in (*OBJECTIVES.values(), *CONSTRAINTS.values()):
        whole = loss(Prediction(depth, aux), batch)
        parts = [loss(cut(i, i + 2), batch.part(i, i + 2)) for i in (0, 2)]
        torch.testing.assert_close(sum(parts) / 2, whole)


def test_min_max_by_hand() -> None:
    x = torch.tensor([[[[2.0, 6.0], [4.0, torch.nan]]]])
    mask = torch.tensor([[[[True, True], [True, False]]]])
    assert min_max(x, mask).tolist() == [[[[0, 1], [0.5, 0]]]]


def test_min_max_of_a_constant_or_empty_map_is_zero() -> None:
    x = torch.full((2, 1, 2, 2), 3.0)
    mask = torch.ones_like(x, dtype=torch.bool)
    mask[1] = False
    assert (min_max(x, mask) == 0).all()


def test_gradients_by_hand() -> None:
    x = torch.tensor([[[[0.0, 3.0], [4.0, 9.0]]]])
    dx, dy = gradient(x)
    assert (dx.item(), dy.item()) == (3, 4)
    assert gradient_magnitude(x).item() == pytest.approx(5)


def test_gradient_mask_needs_every_pixel_of_both_differences() -> None:
    assert gradient_mask(HALF).tolist() == [[[[True, False], [False, True]]]]


def test_standardise_removes_scale_and_shift() -> None:
    x = noise(2, 1, 6, 5)
    mask = noise(2, 1, 6, 5, seed=1) > 0.3
    torch.testing.assert_close(standardise(5 * x - 3, mask), standardise(x, mask))
    assert masked_mean(standardise(x, mask).abs(), mask).item() == pytest.approx(1)


# Exact answers


def test_reconstruction_by_hand() -> None:
    depth = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    target = torch.tensor([[[[1.5, 0.0], [3.0, 99.0]]]])
    valid = torch.tensor([[[[True, True], [True, False]]]])
    loss = reconstruction(Prediction(depth), make_batch(target, valid))
    assert loss.item() == pytest.approx((0.5 + 2 + 0) / 3)


def test_rms_by_hand() -> None:
    depth = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]], [[[0.0, 0.0], [0.0, 0.0]]]])
    target = torch.tensor([[[[1.5, 0.0], [3.0, 99.0]]], [[[2.0, 2.0], [2.0, 2.0]]]])
    valid = torch.tensor([[[[True, True], [True, False]]], [[[True, True], [True, True]]]])
    expected = ((0.5**2 + 2**2) / 3) ** 0.5, 2.0
    loss = rms(Prediction(depth), make_batch(target, valid))
    assert loss.item() == pytest.approx(sum(expected) / 2, abs=2e-4)


def step(*, near: float = 0.0, far: float = 1.0, side: int = 12) -> Tensor:
    """A normalised map (1, 1, side, side) whose left half is near and whose right half is far."""
    target = torch.full((1, 1, side, side), far, dtype=DOUBLE)
    target[..., : side // 2] = near
    return target


def test_edge_snap_by_hand() -> None:
    """Four pixels to each side of the edge are asked, and how far they are from either side."""
    target = step()
    batch = make_batch(target)
    assert edge_snap(Prediction(target), batch).item() == 0
    assert edge_snap(Prediction(1 - target), batch).item() == 0  # the other side will do
    assert edge_snap(Prediction(target * 0.6 + 0.2), batch).item() == pytest.approx(0.2 * 8 / 12)
    assert edge_snap(Prediction(target * 0 + 0.5), batch, radius=1).item() == pytest.approx(0.5 / 6)


def test_a_small_step_is_no_edge() -> None:
    target = step(far=0.02)  # six centimetres at a metre
    assert edge_snap(Prediction(target + 0.3), make_batch(target)).item() == 0


def test_a_slope_is_no_edge() -> None:
    """Its middle lies on neither end of the window; only the first and the last column do."""
    target = torch.linspace(0, 1, 12, dtype=DOUBLE).expand(1, 1, 12, 12)
    first, last = 4 / 11 - 0.3, 0.3
    loss = edge_snap(Prediction(target + 0.3), make_batch(target))
    assert loss.item() == pytest.approx((first + last) / 12)


def test_what_hangs_is_drawn_to_the_nearer_surface() -> None:
    depth = torch.full((1, 1, 12, 12), 0.4, dtype=DOUBLE, requires_grad=True)
    edge_snap(Prediction(depth), make_batch(step())).backward()
    assert depth.grad is not None
    assert (depth.grad[..., 2:10] > 0).all()  # descent lowers them all to 0
    assert (depth.grad[..., :2] == 0).all()
    assert (depth.grad[..., 10:] == 0).all()


def test_the_best_sigma_is_the_error_that_two_thirds_stay_below() -> None:
    target = torch.zeros(1, 1, 100, 100, dtype=DOUBLE)
    depth = torch.randn(
        1, 1, 100, 100, dtype=DOUBLE, generator=torch.Generator().manual_seed(0)
    )  # of deviation 1, whose 68.3 % quantile of absolute values is 1

    def loss(constant: float) -> float:
        aux = {"sigma": torch.full_like(depth, constant)}
        return sigma(Prediction(depth, aux), make_batch(target)).item()

    candidates = [0.5 + 0.05 * k for k in range(21)]
    assert min(candidates, key=loss) == pytest.approx(1.0, abs=0.051)


def test_who_is_asked_at_an_edge() -> None:
    """In metres: surfaces at 2 m and 6 m, a range of 1 to 9 m, pixels at and beyond 2 % of them."""
    metres = torch.full((1, 1, 1, 12), 2.0, dtype=DOUBLE)
    metres[..., 6:] = 6.0
    metres[..., 4], metres[..., 5] = 2.03, 2.05  # 0.03 of 2.03 is near enough, 0.05 of 2.05 is not
    metres[..., 7], metres[..., 8] = 5.89, 5.85
    depth = (metres - 1) / 8 + 0.01
    batch = make_batch((metres - 1) / 8, lowest=1.0, highest=9.0)
    asked, distance = at_edges(Prediction(depth), batch, radius=3)
    expected = [False, False, False, True, True, False, True, True, False, False, False, False]
    assert asked[0, 0, 0].tolist() == expected
    off = torch.minimum((depth - 0.125).abs(), (depth - 0.625).abs())
    torch.testing.assert_close(distance[asked], off[asked])
    batch.valid[..., 6:] = False  # the far surface is not known: no edge
    assert not at_edges(Prediction(depth), batch, radius=3)[0].any()
    small = metres.clamp(max=2.19)  # a jump of less than a tenth of 2 m
    assert not at_edges(Prediction(depth), make_batch((small - 1) / 8, highest=9.0), 3)[0].any()


def test_flying_has_a_slope_as_wide_as_the_threshold() -> None:
    """1.5 times as far off as a surface may be: a step of sigmoid(4 · 0.5), of every pixel."""
    batch = make_batch(step(), lowest=1.0, highest=4.0)
    close = CLOSE * (1 + 3 * step()) / 3  # 2 % of the depth, in the range
    for times in (0.5, 1.0, 1.5):
        loss = flying(Prediction(step() - times * close), batch).item()
        assert loss == pytest.approx(1 / (1 + math.exp(-4 * (times - 1))))


def test_flying_counts_pixels_on_neither_surface() -> None:
    batch = make_batch(step())
    for depth, share in ((step(), 0.02), (1 - step(), 0.02), (step() * 0 + 0.5, 1.0)):
        assert flying(Prediction(depth), batch).item() == pytest.approx(share, abs=0.02)
    half = step().clone()
    half[..., : half.shape[-2] // 2, :] = 0.5
    assert flying(Prediction(half), batch).item() == pytest.approx(0.5, abs=0.02)
    flat = make_batch(step() * 0 + 0.5)
    assert flying(Prediction(step()), flat).item() == 0  # no edge, nobody is asked


def test_coverage_is_zero_where_two_thirds_of_the_errors_stay_below_sigma() -> None:
    target = torch.zeros(1, 1, 100, 100, dtype=DOUBLE)
    errors = torch.linspace(0.01, 1, 10_000, dtype=DOUBLE).reshape(1, 1, 100, 100)
    values = {
        width: coverage(
            Prediction(errors, {"sigma": torch.full_like(errors, width)}), make_batch(target)
        )
        for width in (0.1, 0.683, 3.0)
    }
    assert values[0.683].item() < 0.03
    assert values[0.1].item() > 0.5
    assert values[3.0].item() == pytest.approx(1 - 0.683, abs=0.02)
    with pytest.raises(InputError, match="needs a model with a sigma"):
        coverage(Prediction(errors), make_batch(target))


def test_consistency_is_what_had_to_be_moved() -> None:
    target = torch.zeros(2, 1, 8, 8, dtype=DOUBLE)
    batch = make_batch(target)
    excess = torch.zeros(2, 1, 4, 4, dtype=DOUBLE)
    excess[0] = 0.3
    moved = consistency(Prediction(target, {"excess": excess}), batch).item()
    assert moved == pytest.approx(0.15, abs=1e-4)  # each image counts alike
    assert consistency(Prediction(target), batch).item() == 0  # owes nothing


def test_sigma_moves_the_uncertainty_and_not_the_depth() -> None:
    depth = noise(1, 1, 6, 6).requires_grad_()
    expected = noise(1, 1, 6, 6, seed=1).requires_grad_()
    sigma(Prediction(depth, {"sigma": expected}), make_batch(noise(1, 1, 6, 6, seed=2))).backward()
    assert depth.grad is None
    assert expected.grad is not None
    assert expected.grad.abs().min() > 0


def test_alignment_by_hand() -> None:
    """Eq. 7 is a mean of squares; several stages are averaged."""
    zero, half = torch.zeros(1, 1, 2, 2), torch.full((1, 1, 2, 2), 0.5)
    one_pixel = torch.tensor([[[[1.0, 0.0], [0.0, 0.0]]]])
    prediction = Prediction(zero, {"alignment": [(half, zero), (zero, one_pixel)]})
    assert alignment(prediction, make_batch(zero)).item() == pytest.approx((0.25 + 0.25) / 2)
    prediction = Prediction(zero, {"alignment": [(half, zero), (half, half)]})
    assert alignment(prediction, make_batch(zero)).item() == pytest.approx(0.125)


def test_edge_by_hand() -> None:
    """A ramp along x against a ramp along y: equal magnitudes, different components."""
    ramp = torch.arange(4.0).expand(1, 1, 4, 4)
    aux = {"prompt_depth": ramp.mT, "prompt_inverse": False}
    prediction, batch = Prediction(ramp, aux), make_batch(ramp)
    assert edge(prediction, batch).item() == pytest.approx(0, abs=1e-6)
    # components of N(ramp): 1/3 along x here, 1/3 along y there; each differs by 1/3 everywhere
    assert edge(prediction, batch, magnitude=False).item() == pytest.approx(1 / 3)
    assert edge(prediction, batch, magnitude=False, normalise=False).item() == pytest.approx(1)


def test_edge_normalisation_removes_scale() -> None:
    depth = noise(1, 1, 6, 6)
    aux = {"prompt_depth": 40 * depth + 3, "prompt_inverse": False}
    prediction, batch = Prediction(depth, aux), make_batch(depth)
    assert edge(prediction, batch).item() == pytest.approx(0, abs=1e-9)
    assert edge(prediction, batch, normalise=False).item() > 1


@pytest.mark.parametrize("target_inverse", [False, True])
def test_edge_knows_depth_from_inverse_depth(target_inverse: bool) -> None:
    """A prompt that says exactly 1/depth has the very edges of the truth."""
    metres = 1 + 3 * noise(1, 1, 8, 8)
    lowest, highest = metres.min().item(), metres.max().item()
    normalised = (metres - lowest) / (highest - lowest)
    batch = make_batch(normalised, lowest=lowest, highest=highest, inverse=target_inverse)

    opposite = {"prompt_depth": 1 / metres, "prompt_inverse": not target_inverse}
    assert edge(Prediction(normalised, opposite), batch).item() < 1e-6
    ignorant = {"prompt_depth": 1 / metres, "prompt_inverse": target_inverse}
    assert edge(Prediction(normalised, ignorant), batch).item() > 0.02
    same = {"prompt_depth": 3 * metres, "prompt_inverse": target_inverse}
    assert edge(Prediction(normalised, same), batch).item() < 1e-6


def test_inversion_is_per_image() -> None:
    depth = noise(2, 1, 3, 3)
    batch = make_batch(depth)
    batch.inverse = torch.tensor([False, True])
    turned = like_prompt(depth, batch, True)
    torch.testing.assert_close(turned[0], 3 / (1 + 3 * depth[0]))
    assert torch.equal(turned[1], depth[1])


@pytest.mark.parametrize("lowest", [0.0, 0.5])
def test_inversion_stays_finite_at_and_below_zero(lowest: float) -> None:
    """Early predictions may lie behind the camera; neither value nor gradient may explode."""
    depth = torch.linspace(-3, 2, 24, dtype=DOUBLE).reshape(1, 1, 4, 6).requires_grad_()
    batch = make_batch(depth.detach(), lowest=lowest, highest=2.0)
    prediction = noisy_prediction(depth)
    value = edge(prediction, batch)
    value.backward()
    assert value.isfinite()
    assert depth.grad is not None
    assert depth.grad.isfinite().all()


def test_prompt_depth_ignores_scale_and_shift_of_the_truth() -> None:
    batch = make_batch(noise(2, 1, 16, 16))
    inverse_metres = 1 / (1 + 3 * batch.target)
    relative = standardise(inverse_metres, batch.valid)

    def loss(student: Tensor) -> float:
        aux = {"prompt_depth": student, "prompt_inverse": True}
        return prompt_depth(Prediction(batch.target, aux), batch).item()

    assert loss(relative) == pytest.approx(0, abs=1e-9)
    torch.testing.assert_close(standardise(7 * inverse_metres - 2, batch.valid), relative)
    assert loss(standardise(batch.target, batch.valid)) > 0.5  # depth is not inverse depth
    assert loss(0 * relative) == pytest.approx(loss(2 * relative))  # of L1: neither is a way out


def test_prompt_depth_trains_the_prompt_and_edge_does_not() -> None:
    depth = noise(1, 1, 8, 8).requires_grad_()
    student = noise(1, 1, 8, 8, seed=3).requires_grad_()
    prediction = Prediction(depth, {"prompt_depth": student, "prompt_inverse": True})
    batch = make_batch(noise(1, 1, 8, 8, seed=4))
    edge(prediction, batch).backward()
    assert student.grad is None
    assert depth.grad is not None
    prompt_depth(prediction, batch).backward()
    assert student.grad is not None


# Gradients


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("magnitude", [False, True])
def test_gradcheck_edge(normalise: bool, magnitude: bool, inverse: bool) -> None:
    valid = noise(2, 1, 5, 6, seed=2) > 0.2
    batch = make_batch(noise(2, 1, 5, 6), valid)

    def loss(depth: Tensor) -> Tensor:
        prediction = noisy_prediction(depth, inverse=inverse)
        return edge(prediction, batch, normalise=normalise, magnitude=magnitude)

    assert gradcheck(loss, noise(2, 1, 5, 6, seed=9).requires_grad_())


@pytest.mark.parametrize("loss", [reconstruction, rms, edge_snap, flying])
def test_gradcheck_reconstruction(loss: Loss) -> None:
    batch = make_batch(noise(2, 1, 4, 5), noise(2, 1, 4, 5, seed=2) > 0.3)
    depth = noise(2, 1, 4, 5, seed=9).requires_grad_()
    assert gradcheck(lambda d: loss(Prediction(d), batch), depth)


def test_gradcheck_sigma() -> None:
    batch = make_batch(noise(2, 1, 4, 5), noise(2, 1, 4, 5, seed=2) > 0.3)
    depth, expected = noise(2, 1, 4, 5, seed=9), noise(2, 1, 4, 5, seed=3).requires_grad_()
    assert gradcheck(lambda s: sigma(Prediction(depth, {"sigma": s}), batch), expected)


def test_gradcheck_alignment() -> None:
    batch = make_batch(noise(2, 1, 4, 5))
    maps = [noise(2, 1, 3, 3, seed=seed).requires_grad_() for seed in range(4)]

    def loss(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
        return alignment(Prediction(a, {"alignment": [(a, b), (c, d)]}), batch)

    assert gradcheck(loss, maps)


def test_gradcheck_prompt_depth() -> None:
    batch = make_batch(noise(2, 1, 9, 8), noise(2, 1, 9, 8, seed=2) > 0.2)
    student = noise(2, 1, 9, 8, seed=9).requires_grad_()

    def loss(prompt: Tensor) -> Tensor:
        aux = {"prompt_depth": prompt, "prompt_inverse": True}
        return prompt_depth(Prediction(prompt, aux), batch)

    assert gradcheck(loss, student)


def test_a_flat_prediction_has_a_bounded_edge_gradient() -> None:
    """Min-max of an almost flat map divides by almost nothing; that must not end a run."""
    depth = (0.5 + 1e-7 * noise(1, 1, 8, 8)).requires_grad_()
    edge(noisy_prediction(depth, inverse=False), make_batch(noise(1, 1, 8, 8))).backward()
    assert depth.grad is not None
    assert depth.grad.isfinite().all()
    assert depth.grad.abs().max() < 100


# Holes


EDGES: list[Loss] = [
    lambda p, b, n=n, m=m: edge(p, b, normalise=n, magnitude=m)  # type: ignore[misc]
    for n in (False, True)
    for m in (False, True)
]


@pytest.mark.parametrize("loss", [reconstruction, rms, edge_snap, prompt_depth, *EDGES])
@pytest.mark.parametrize("stored", [torch.nan, torch.inf, -1e30])
@pytest.mark.parametrize("inverse", [False, True])
def test_what_a_hole_holds_enters_neither_value_nor_gradient(
    loss: Loss, stored: float, inverse: bool
) -> None:
    """Targets, and the prompt's depth, may hold anything where the target is invalid."""
    valid = noise(2, 1, 12, 12, seed=2) > 0.3
    target, prompt = noise(2, 1, 12, 12, seed=5), noise(2, 1, 12, 12, seed=7)

    def run(fill: float) -> tuple[Tensor, Tensor, Tensor]:
        depth = noise(2, 1, 12, 12, seed=9).requires_grad_()
        student = torch.where(valid, prompt, fill).requires_grad_()
        batch = make_batch(torch.where(valid, target, fill), valid)
        prediction = Prediction(depth, {"prompt_depth": student, "prompt_inverse": inverse})
        value = loss(prediction, batch)
        gradients = torch.autograd.grad(value, [depth, student], allow_unused=True)
        nothing = torch.zeros_like(depth)
        return value, *(nothing if g is None else g for g in gradients)  # type: ignore[return-value]

    clean, holed = run(0.25), run(stored)
    for ours, expected in zip(holed, clean):
        assert ours.isfinite().all()
        torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("loss", [reconstruction, rms, edge_snap, prompt_depth, *EDGES])
def test_a_batch_without_any_valid_pixel_has_zero_loss_and_gradient(loss: Loss) -> None:
    depth = noise(1, 1, 6, 6).requires_grad_()
    student = noise(1, 1, 6, 6, seed=1).requires_grad_()
    nothing = torch.zeros(1, 1, 6, 6, dtype=torch.bool)
    batch = make_batch(
        torch.full((1, 1, 6, 6), torch.nan, dtype=DOUBLE), nothing, lowest=0, highest=0
    )
    prediction = Prediction(depth, {"prompt_depth": student, "prompt_inverse": True})
    value = loss(prediction, batch)
    assert value.item() == 0
    for gradient_ in torch.autograd.grad(value, [depth, student], allow_unused=True):
        assert gradient_ is None or (gradient_ == 0).all()


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (2, 2)])
@pytest.mark.parametrize("loss", [reconstruction, rms, edge_snap, edge, prompt_depth])
def test_tiny_maps(loss: Loss, size: tuple[int, int]) -> None:
    depth = noise(1, 1, *size).requires_grad_()
    student = noise(1, 1, *size, seed=2).requires_grad_()
    prediction = Prediction(depth, {"prompt_depth": student, "prompt_inverse": True})
    assert loss(prediction, make_batch(noise(1, 1, *size, seed=1))).isfinite()


# Helpful refusals


def test_alignment_without_maps_says_what_to_do() -> None:
    prediction = Prediction(noise(1, 1, 2, 2))
    for aux in ({}, {"alignment": []}):
        prediction.aux = aux
        with pytest.raises(InputError, match="align=True"):
            alignment(prediction, make_batch(noise(1, 1, 2, 2)))


def test_sigma_without_an_uncertainty_says_what_to_do() -> None:
    with pytest.raises(InputError, match="mixing"):
        sigma(Prediction(noise(1, 1, 2, 2)), make_batch(noise(1, 1, 2, 2)))


@pytest.mark.parametrize("loss", [edge, prompt_depth])
def test_losses_of_the_prompt_without_a_prompt_depth_say_what_to_do(loss: Loss) -> None:
    with pytest.raises(InputError, match="depth head"):
        loss(Prediction(noise(1, 1, 2, 2)), make_batch(noise(1, 1, 2, 2)))
