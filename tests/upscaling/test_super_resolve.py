"""super_resolve: kinds of input, holes, provenance, consistency, sizes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ducos.errors import InputError
from ducos.models import create
from ducos.upscaling import load, memory_limit, super_resolve


def scene(h: int = 12, w: int = 16, H: int = 48, W: int = 64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(h * w)
    rgb = rng.random((H, W, 3)).astype(np.float32)
    depth = (1 + rng.random((h, w))).astype(np.float32)
    return rgb, depth


@settings(max_examples=25, deadline=None)
@given(
    H=st.integers(1, 70), W=st.integers(1, 70), h=st.integers(1, 30), w=st.integers(1, 30),
    right=st.floats(-0.49, 0.49), down=st.floats(-0.49, 0.49),
)  # fmt: skip
def test_any_pair_of_sizes(H: int, W: int, h: int, w: int, right: float, down: float) -> None:
    rgb, depth = scene(h, w, H, W)
    shift = (right * W, down * H)
    result = super_resolve(rgb, depth, model="bicubic", unit="m", any_aspect=True, shift=shift)
    assert result.depth.shape == result.source.shape == (H, W)
    assert np.isfinite(result.depth).all()
    overlap = (H - abs(round(shift[1]))) * (W - abs(round(shift[0])))
    assert (result.source == 1).sum() == overlap > 0


@pytest.mark.parametrize(("h", "w", "H", "W"), [(12, 16, 49, 63), (16, 12, 64, 48), (9, 9, 9, 9)])
def test_a_network_takes_any_ratio(h: int, w: int, H: int, W: int) -> None:
    torch.manual_seed(0)
    model = create("ducos-compact", channels=8)
    rgb, depth = scene(h, w, H, W)
    result = super_resolve(rgb, depth, model=model, unit="m")
    assert result.depth.shape == (H, W)
    assert result.sigma.shape == (H, W)
    assert (result.sigma >= 0).all()
    assert model.training  # left as it was found


def test_arrays_in_arrays_out_and_tensors_in_tensors_out() -> None:
    rgb, depth = scene()
    arrays = super_resolve(rgb, depth, model="bicubic", unit="m")
    colour = torch.from_numpy(rgb).permute(2, 0, 1)
    tensors = super_resolve(colour, torch.from_numpy(depth), model="bicubic", unit="m")
    assert isinstance(arrays.depth, np.ndarray)
    assert isinstance(tensors.depth, torch.Tensor)
    assert np.array_equal(arrays.depth, tensors.depth.numpy())


def test_units_are_one_rule() -> None:
    rgb, depth = scene()
    metres = super_resolve(rgb, depth, model="bicubic", unit="m").depth
    stored = np.round(depth * 1000).astype(np.uint16)
    millimetres = super_resolve(rgb, stored, model="bicubic")
    assert "millimetres" in millimetres.note
    assert np.abs(millimetres.depth - metres).max() < 1e-3


def test_what_is_in_a_hole_does_not_matter() -> None:
    rgb, depth = scene()
    mask = np.ones_like(depth)
    mask[3:7, 4:9] = 0
    results = []
    for garbage in (0.0, np.nan, np.inf, 1e6, -5.0):
        broken = np.where(mask > 0, depth, garbage).astype(np.float32)
        results.append(super_resolve(rgb, broken, mask=mask, model="bicubic", unit="m").depth)
    for other in results[1:]:
        assert np.array_equal(results[0], other)


def test_provenance_and_kept_holes() -> None:
    rgb, depth = scene()
    depth[0:9, 0:12] = 0
    result = super_resolve(rgb, depth, model="bicubic", unit="m")
    assert set(np.unique(result.source)) == {1, 2, 3}
    assert result.source[0, 0] == 3
    assert result.source[35, 0] == 2  # last row of the hole: measurements are in reach
    assert result.source[36, 0] == 1
    assert result.valid.all()
    kept = super_resolve(rgb, depth, model="bicubic", unit="m", keep_holes=True)
    assert not kept.valid[0, 0]
    assert kept.depth[0, 0] == 0
    assert kept.source[0, 0] == 0
    assert kept.valid.mean() == pytest.approx(1 - 9 * 12 / (12 * 16))


def test_a_shift_brings_the_depth_onto_the_colours() -> None:
    rgb, depth = scene()
    # The same pair with its colours 5 px left and 3 px up: the depth lies right and below.
    seen = np.roll(rgb, (-3, -5), (0, 1))
    result = super_resolve(seen, depth, model="bicubic", unit="m", shift=(5.2, 2.9))
    base = super_resolve(rgb, depth, model="bicubic", unit="m")
    assert np.array_equal(result.depth[:-3, :-5], base.depth[3:, 5:])
    assert result.residual == base.residual
    assert (result.source[:-3, :-5] == 1).all()
    assert (result.source[-3:] == 3).all()  # the depth camera did not see what is there
    assert (result.source[:, -5:] == 3).all()
    kept = super_resolve(seen, depth, model="bicubic", unit="m", shift=(5, 3), keep_holes=True)
    assert np.array_equal(kept.valid, result.source == 1)


def test_a_network_sees_the_colours_where_the_depth_is() -> None:
    rgb, depth = scene()
    beside = np.roll(rgb, -4, 1)
    sound = super_resolve(rgb, depth, model="ducos-tiny", unit="m")
    left_alone = super_resolve(beside, depth, model="ducos-tiny", unit="m")
    moved = super_resolve(beside, depth, model="ducos-tiny", unit="m", shift=(4, 0))
    here, there = np.s_[:, 28:36], np.s_[:, 32:40]  # far from the borders, before and after
    for name in ("depth", "sigma"):
        wanted = getattr(sound, name)[there]
        right = np.abs(getattr(moved, name)[here] - wanted).mean()
        wrong = np.abs(getattr(left_alone, name)[there] - wanted).mean()
        assert right < 0.2 * wrong


@pytest.mark.parametrize("shift", [(np.nan, 0), (0, np.inf), (1, 2, 3), "right"])
def test_a_shift_is_two_numbers_or_a_word(shift: object) -> None:
    with pytest.raises(InputError, match="shift is check, auto, off, or pixels"):
        super_resolve(*scene(), model="bicubic", unit="m", shift=shift)


@pytest.mark.parametrize("shift", [(32, 0), (0, -24)])
def test_a_shift_without_overlap_is_refused(shift: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="half of its 64×48"):
        super_resolve(*scene(), model="bicubic", unit="m", shift=shift)


def test_a_map_of_another_aspect_is_refused() -> None:
    rgb, depth = scene(16, 12, 48, 64)
    with pytest.raises(InputError, match="turned by 90"):
        super_resolve(rgb, depth, model="bicubic", unit="m")


def test_a_rewritten_weight_file_is_read_again(tmp_path) -> None:
    from ducos.models.checkpoint import ModelSpec, save_model

    path = tmp_path / "model.safetensors"
    spec = ModelSpec("fdsr")
    seen = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        save_model(path, spec, spec.build().state_dict(), {})
        seen.append(next(load(path).parameters()).clone())
    assert not torch.equal(*seen)


# Memory and bounds


def test_strips_change_nothing() -> None:
    rgb, depth = scene(24, 30, 150, 187)
    depth[3:6, 4:9] = 0
    shares: list[float] = []
    whole = super_resolve(rgb, depth, unit="m", tile="off", progress=shares.append)
    assert shares == []
    strips = super_resolve(rgb, depth, unit="m", tile="0.5MB", progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert np.abs(strips.depth - whole.depth).max() < 1e-4 * np.ptp(depth)
    assert np.abs(strips.sigma - whole.sigma).max() < 1e-4 * np.ptp(depth)
    assert np.array_equal(strips.source, whole.source)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("auto", 10**9), ("off", None), ("400MB", 4 * 10**8), ("1.5 gb", 1_500_000_000)],
)
def test_memory_is_said_in_words(text: str, expected: int | None) -> None:
    assert memory_limit(text) == expected


@pytest.mark.parametrize("text", ["", "none", "12", "0MB", "-1GB", "4 KB", "GB"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="400MB"):
        memory_limit(text)


def test_no_distance_is_nearer_than_half_the_nearest_measurement() -> None:
    """Cubic interpolation undershoots beside a high step; a distance must stay one."""
    depth = np.full((8, 8), 0.3, np.float32)
    depth[:, 4:] = 10
    rgb = np.zeros((64, 64, 3), np.float32)
    result = super_resolve(rgb, depth, model="bicubic", unit="m")
    assert result.depth.min() == pytest.approx(0.15)
    relative = super_resolve(rgb, depth - 0.3, model="bicubic", unit="relative")
    assert relative.depth.min() == 0  # levels of which none is negative stay so
    below = super_resolve(rgb, depth - 0.4, model="bicubic", unit="relative")
    assert below.depth.min() < -0.1  # others may fall below the lowest
