"""Training batches: a pure function of seed and step, whose maps stay aligned."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from ducos.data.pair import Pair
from ducos.data.shapes import Shapes
from ducos.resize import low_size
from ducos.training.augmentations import strengths
from ducos.training.changes import (
    add_grain,
    add_shadows,
    blur_depth,
    corrupt_image,
    jitter_edges,
    measure_again,
    punch_holes,
)
from ducos.training.patches import PatchBatches
from ducos.training.samples import Batch

EVERYTHING = strengths(
    zoom=0.5,
    invert=0.5,
    quantise=0.5,
    edge_jitter=0.5,
    blur_target=0.5,
    reference_noise=0.5,
    grain_noise=0.5,
    corrupt_rgb=0.5,
    shadows=0.5,
    colour=1.0,
    shift=1.0,
    misalign=1.0,
    holes=0.5,
)
TENSORS = ("rgb", "low", "low_valid", "target", "valid", "inverse")


class Depths:
    """Scenes whose red channel is depth (1 + 2·red metres), green the column, blue the row.

    `invalid` of the pixels, in blocks, have no ground truth; the target holds 0 there.
    """

    name, unit = "depths", "m"

    def __init__(self, count: int = 5, size: tuple[int, int] = (50, 60), invalid: float = 0.0):
        self.count, self.size, self.invalid = count, size, invalid

    @property
    def scenes(self) -> list[str]:
        return [str(i) for i in range(self.count)]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Pair:
        rng = np.random.default_rng(index)
        H, W = self.size
        y, x = np.meshgrid(np.linspace(0, 1, H), np.linspace(0, 1, W), indexing="ij")
        waves = np.sin(rng.uniform(2, 6) * x + index) * np.cos(rng.uniform(2, 6) * y)
        red = 0.5 + 0.5 * waves
        rgb = np.stack([red, x, y], 2).astype(np.float32)
        blocks = rng.random((-(-H // 5), -(-W // 5))) >= self.invalid
        valid = np.kron(blocks, np.ones((5, 5), bool))[:H, :W].astype(bool)
        target = np.where(valid, 1 + 2 * red, 0).astype(np.float32)
        return Pair(str(index), rgb, target, valid)


def batches(
    dataset: object = None,
    *,
    augmentation: dict[str, float] = EVERYTHING,
    batch_size: int = 4,
    crop: int = 32,
    scales: tuple[float, float] = (2.0, 8.0),
    degradations: dict[str, float] | None = None,
    seed: int = 0,
    measurements: int = 1,
    when: dict[str, dict[str, float]] | None = None,
    told_shrinking: float = 0.0,
) -> PatchBatches:
    return PatchBatches(
        dataset or Depths(invalid=0.1),  # type: ignore[arg-type]
        batch_size=batch_size,
        crop=crop,
        scales=scales,
        degradations=degradations or {"bicubic": 1.0},
        augmentations=augmentation,
        seed=seed,
        measurements=measurements,
        when=when,
        told_shrinking=told_shrinking,
    )


def assert_same(a: Batch, b: Batch) -> None:
    for name in TENSORS:
        assert torch.equal(getattr(a, name), getattr(b, name)), name
    assert torch.equal(a.range.lowest, b.range.lowest)
    assert torch.equal(a.range.highest, b.range.highest)


def metres(batch: Batch) -> Tensor:
    """The target in metres, whether it is stored as depth or as inverse depth."""
    stored = batch.range.undo(batch.target)
    return torch.where(batch.inverse[:, None, None, None], 1 / stored.clamp_min(1e-6), stored)


# Purity


@pytest.mark.parametrize("degradations", [{"bicubic": 1.0}, {"noisy": 0.5, "nearest": 0.5}])
def test_a_batch_follows_from_seed_and_step_alone(degradations: dict[str, float]) -> None:
    once, again = batches(degradations=degradations), batches(degradations=degradations)
    expected = [once[step] for step in range(6)]
    torch.manual_seed(123)
    np.random.seed(5)  # noqa: NPY002 - nobody may listen to it
    for step in (5, 0, 3, 3, 1):  # in any order, as after a resume
        assert_same(again[step], expected[step])


def test_other_seeds_and_steps_give_other_batches() -> None:
    assert not torch.equal(batches(seed=0)[0].rgb, batches(seed=1)[0].rgb)
    assert not torch.equal(batches(seed=0)[0].rgb, batches(seed=0)[1].rgb)


@pytest.mark.parametrize("workers", [1, 2])
def test_loader_workers_change_nothing(workers: int) -> None:
    source = batches()
    loader = DataLoader(
        source,  # type: ignore[arg-type]
        batch_size=None,
        sampler=range(4),
        num_workers=workers,
        collate_fn=_as_it_is,
    )
    for step, batch in enumerate(loader):
        assert_same(batch, source[step])


def _as_it_is(batch: Batch) -> Batch:
    return batch


def test_parts_are_slices_of_the_whole() -> None:
    batch = batches()[3]
    for start, stop in ((0, 2), (2, 4), (1, 2)):
        part = batch.part(start, stop)
        for name in TENSORS:
            assert torch.equal(getattr(part, name), getattr(batch, name)[start:stop]), name
        assert torch.equal(part.range.lowest, batch.range.lowest[start:stop])
        assert torch.equal(part.range.highest, batch.range.highest[start:stop])
        assert torch.equal(part.range.undo(part.target), batch.range.undo(batch.target)[start:stop])


def test_an_epoch_sees_every_image_once_and_epochs_differ() -> None:
    """Eight images, each of one constant colour: which ones a batch holds can be read off."""

    class Flat(Depths):
        def __getitem__(self, index: int) -> Pair:
            rgb = np.full((40, 40, 3), index / 10, np.float32)
            target = np.random.default_rng(index).uniform(1, 2, (40, 40)).astype(np.float32)
            return Pair(str(index), rgb, target, np.ones((40, 40), bool))

    source = batches(Flat(8), augmentation=strengths(), batch_size=2)
    assert source.steps_per_epoch == 4

    def seen(epoch: int) -> list[int]:
        steps = range(4 * epoch, 4 * epoch + 4)
        return [round(10 * float(v)) for step in steps for v in source[step].rgb[:, 0, 0, 0]]

    assert sorted(seen(0)) == sorted(seen(1)) == list(range(8))
    assert seen(0) != seen(1)


def test_a_batch_larger_than_the_dataset_repeats_images() -> None:
    assert batches(Depths(3), batch_size=8)[0].rgb.shape[0] == 8


# Alignment of the maps


@pytest.mark.parametrize("augmentation", [
    strengths(flip=False), strengths(),
    strengths(zoom=0.6), strengths(zoom=0.6, invert=1.0),
])  # fmt: skip
@pytest.mark.parametrize("size", [(50, 60), (33, 90), (20, 24)])
def test_colour_and_target_stay_aligned(
    augmentation: dict[str, float], size: tuple[int, int]
) -> None:
    """Red encodes depth, so it must predict the target after any flip, turn, zoom and crop.

    Where colour is averaged but depth is picked they differ by rounding, not by a shift.
    """
    source = batches(Depths(size=size, invalid=0.1), augmentation=augmentation)
    resized = augmentation["zoom"] < 1 or min(size) < 32
    shifts = []
    for step in range(6):
        batch = source[step]
        for truth, red, valid in zip(metres(batch)[:, 0], batch.rgb[:, 0], batch.valid[:, 0]):
            error = truth - (1 + 2 * red)
            if not resized:
                assert error[valid].abs().max() < 1e-4
            slopes = torch.stack(torch.gradient(1 + 2 * red))[:, valid].T  # (pixels, 2)
            # Least squares: by how many pixels, down and across, is one moved against the other?
            shifts.append(torch.linalg.lstsq(slopes, error[valid][:, None]).solution[:, 0].numpy())
    assert np.median(np.hypot(*np.transpose(shifts))) < 0.25


@pytest.mark.parametrize(("turn", "count"), [(True, 8), (False, 2)])
def test_flips_and_turns_all_occur(turn: bool, count: int) -> None:
    """Green grows along x, blue along y: their slopes tell the orientation of each patch."""
    source = batches(augmentation=strengths(turn=turn), batch_size=8)
    orientations = set()
    for step in range(12):
        for patch in source[step].rgb:
            _, green, blue = patch
            turned = bool((green[:, -1] - green[:, 0]).abs().mean() < 1e-3)
            across, down = (blue, green) if turned else (green, blue)
            orientations.add(
                (turned, bool(across[0, -1] > across[0, 0]), bool(down[-1, 0] > down[0, 0]))
            )
    assert len(orientations) == count


def test_without_flip_nothing_is_turned() -> None:
    _, green, blue = batches(augmentation=strengths(flip=False))[0].rgb[0]
    assert green[0, -1] > green[0, 0]
    assert blue[-1, 0] > blue[0, 0]


def test_shift_moves_colour_against_depth_by_at_most_that() -> None:
    shifted = batches(augmentation=strengths(flip=False, shift=2.0), batch_size=8)[0]
    still = batches(augmentation=strengths(flip=False), batch_size=8)[0]
    assert not torch.allclose(shifted.rgb, still.rgb)
    slope = 1 / 59  # of green per pixel
    inside = np.s_[..., 4:-4, 4:-4]
    # Green at a pixel tells its column; compare with the column the target's crop came from.
    offsets = (shifted.rgb[:, 1] - shifted.rgb[:, 1].mean((1, 2), keepdim=True))[inside]
    expected = (still.rgb[:, 1] - still.rgb[:, 1].mean((1, 2), keepdim=True))[inside]
    assert (offsets - expected).abs().max() < 2 * slope


def test_wavering_truth_has_the_same_depths_at_drifting_places() -> None:
    rng = np.random.default_rng(0)
    edge = np.where(np.arange(64) < 32, 1.0, 3.0).astype(np.float32)[None].repeat(64, 0)
    valid = np.ones(edge.shape, bool)
    valid[:, :5] = False
    moved, still_valid = jitter_edges(edge, valid, rng)
    assert set(np.unique(moved)) == {1.0, 3.0}
    places = (moved == 1).sum(1)  # of the edge in each row
    assert places.std() > 0.3
    assert abs(places.mean() - 32) < 2
    assert places.min() > 24
    assert places.max() < 40
    assert not still_valid[:, 0].any()
    assert still_valid[:, 12:].all()


def test_softened_truth_is_blurred_by_valid_depths_only() -> None:
    edge = np.where(np.arange(64) < 32, 1.0, 3.0).astype(np.float32)[None].repeat(64, 0)
    valid = np.ones(edge.shape, bool)
    valid[:, 50:] = False
    garbage = np.where(valid, edge, 1000).astype(np.float32)
    soft = blur_depth(garbage, valid, 0.9)
    assert 1 < soft[10, 31] < 2 < soft[10, 32] < 3
    np.testing.assert_allclose(soft[:, :24], 1, rtol=1e-6)
    np.testing.assert_allclose(soft[:, 42:50], 3, rtol=1e-6)


def test_grain_is_faint_and_leaves_holes_alone() -> None:
    slope = np.linspace(1, 3, 64, dtype=np.float32)[None].repeat(64, 0)
    valid = np.ones(slope.shape, bool)
    valid[:, 50:] = False
    garbage = np.where(valid, slope, 1000).astype(np.float32)
    strengths = []
    for seed in range(40):
        noisy = add_grain(garbage, valid, np.random.default_rng(seed), 6)
        assert np.array_equal(noisy[~valid], garbage[~valid])
        strengths.append(float((noisy - garbage)[valid].std()))
    span = float(np.ptp(slope[valid]))
    assert 0.01 * span < max(strengths) < 0.024 * span
    assert min(strengths) < 0.001 * span
    nothing = add_grain(garbage, np.zeros_like(valid), np.random.default_rng(0), 6)
    assert np.array_equal(nothing, garbage)


def test_spoilt_pictures_tell_less_in_several_ways() -> None:
    picture = torch.rand(3, 48, 40, generator=torch.Generator().manual_seed(0))
    before = picture.clone()
    fates = {"grey": 0, "one colour": 0, "framed": 0, "upside down": 0, "as it was": 0}
    for seed in range(200):
        result = corrupt_image(picture, np.random.default_rng(seed))
        assert (result.shape, result.dtype) == (picture.shape, picture.dtype)
        assert bool(((result >= 0) & (result <= 1)).all())
        inside = (slice(None), slice(12, -12), slice(12, -12))
        fates["grey"] += torch.equal(result[0], result[1])
        fates["one colour"] += float(result[inside].std((1, 2)).max()) < 0.04
        fates["framed"] += all(float(edge.std()) == 0 for edge in (result[:, 0], result[:, -1]))
        fates["upside down"] += torch.equal(result[inside], picture.flip(1, 2)[inside])
        fates["as it was"] += torch.equal(result, picture)
    assert torch.equal(picture, before)
    assert all(10 < count < 150 for count in fates.values()), fates


def test_shaded_pictures_have_more_lines_or_fewer() -> None:
    steps = torch.linspace(0.2, 0.9, 4).repeat_interleave(24)
    picture = steps.expand(3, 80, 96).contiguous()
    before = picture.clone()
    down, along = [], []
    for seed in range(100):
        result = add_shadows(picture, np.random.default_rng(seed))
        assert (result.shape, result.dtype) == (picture.shape, picture.dtype)
        assert bool(((result >= 0) & (result <= 1)).all())
        down.append(float(result.diff(dim=1).abs().amax()))
        along.append(float(result[:, :, 20:28].diff(dim=2).abs().amax((0, 2)).min()))
    assert torch.equal(picture, before)
    assert sum(one > 0.1 for one in down) > 20  # where all columns were constant: a shadow's line
    assert sum(one < 0.05 for one in along) > 20  # somewhere along a step of 0.23: its edge is lost


@pytest.mark.parametrize("option", ["corrupt_rgb", "shadows"])
def test_spoiling_changes_pictures_and_no_map(option: str) -> None:
    for name in ("bicubic", "tof"):
        clean, bad = (
            batches(augmentation=strengths(**{option: share}), degradations={name: 1.0})[0]
            for share in (0.0, 1.0)
        )
        assert not torch.equal(clean.rgb, bad.rgb)
        for part in ("target", "valid", "low_valid"):
            assert torch.equal(getattr(clean, part), getattr(bad, part)), part
        seen = clean.low_valid
        assert torch.equal(clean.low[seen], bad.low[seen])


@pytest.mark.parametrize("option", ["edge_jitter", "blur_target", "grain_noise"])
def test_a_sensor_sees_the_scene_as_it_is(option: str) -> None:
    def targets(name: str, share: float) -> torch.Tensor:
        source = batches(augmentation=strengths(**{option: share}), degradations={name: 1.0})
        return source[0].target * (source[0].range.highest - source[0].range.lowest)

    assert not torch.equal(targets("bicubic", 1.0), targets("bicubic", 0.0))
    assert torch.equal(targets("tof", 1.0), targets("tof", 0.0))


def test_the_truth_of_another_device_leaves_the_sensors_map_as_it_is() -> None:
    def drawn(name: str, share: float) -> Batch:
        return batches(augmentation=strengths(reference_noise=share), degradations={name: 1.0})[0]

    sharp, again = drawn("tof", 0.0), drawn("tof", 1.0)
    for part in ("rgb", "low", "low_valid"):
        assert torch.equal(getattr(sharp, part), getattr(again, part)), part
    assert not torch.equal(sharp.target, again.target)
    assert (sharp.target - again.target)[sharp.valid & again.valid].abs().mean() < 0.1
    assert_same(drawn("bicubic", 0.0), drawn("bicubic", 1.0))  # no sensor, no other device


def test_the_truth_of_another_device_wavers_is_soft_and_lies_beside() -> None:
    edge = np.where(np.arange(64) < 32, 1.0, 3.0).astype(np.float32)[None].repeat(64, 0)
    valid = np.ones(edge.shape, bool)
    valid[:, :10] = False
    drawn = [measure_again(edge, valid, np.random.default_rng(seed)) for seed in range(16)]
    between = [((truth > 1.1) & (truth < 2.9)).sum(1).mean() for truth, _ in drawn]
    places = np.array([(truth < 2).sum(1) for truth, _ in drawn])  # of the edge, in each row
    assert np.median(between) > 1  # soft
    assert np.median(places.std(1)) > 0.3  # wavering
    assert 0.4 < places.mean(1).std() < 2  # beside
    assert abs(places.mean() - 32) < 1  # to either side
    for truth, known in drawn:
        np.testing.assert_allclose(truth[:, 50:], 3, rtol=1e-6)
        assert not known[:, 0].any()
        assert known[:, 20:].all()


def test_misplace_moves_a_sensors_map_against_colour_and_truth() -> None:
    dataset = Depths()  # without holes

    def drawn(name: str, misplace: float) -> Batch:
        return batches(
            dataset,
            augmentation=strengths(flip=False, misalign=misplace),
            degradations={name: 1.0},
            scales=(4.0, 4.0),
            batch_size=8,
        )[0]

    still, moved = drawn("stereo", 0.0), drawn("stereo", 1.0)
    assert torch.equal(still.rgb, moved.rgb)
    metres = [batch.range.undo(batch.target)[batch.valid] for batch in (still, moved)]
    torch.testing.assert_close(*(m.mean() for m in metres), rtol=1e-2, atol=0)
    lows = [batch.range.undo(batch.low) for batch in (still, moved)]
    difference = (lows[0] - lows[1]).abs().mean((1, 2, 3))
    assert (difference > 0.01).sum() >= 6  # of eight; a move of less than half a pixel is none
    assert_same(drawn("bicubic", 0.0), drawn("bicubic", 1.0))  # no sensor, no error


class BeyondReach(Depths):
    """The left half at 1 to 3 m, the right half at 12 m: farther than a LiDAR sees."""

    def __getitem__(self, index: int) -> Pair:
        pair = super().__getitem__(index)
        target = pair.target.copy()
        target[:, 30:] = 12
        return Pair(pair.name, pair.rgb, target, pair.valid)


def test_what_lies_beyond_a_sensors_reach_is_no_target() -> None:
    source = batches(
        BeyondReach(), augmentation=strengths(flip=False), degradations={"lidar": 1.0}, crop=48
    )
    for step in range(4):
        batch = source[step]
        metres = batch.range.undo(batch.target)
        assert not batch.valid[metres > 11].any()
        assert batch.valid[(batch.target > 0) & (batch.target < 1)].all()
    same = batches(BeyondReach(), augmentation=strengths(flip=False), crop=48)[0]
    assert same.valid.all()  # bicubic sees everything


# The low-resolution map and the range


@pytest.mark.parametrize("augmentation", [strengths(), EVERYTHING])
def test_the_range_comes_from_the_low_resolution_map_alone(augmentation: dict[str, float]) -> None:
    source = batches(augmentation=augmentation)
    for step in range(8):
        batch = source[step]
        for i in range(4):
            measured = batch.low[i][batch.low_valid[i]]
            if not len(measured):
                continue
            assert measured.min().abs() < 1e-5
            constant = batch.range.highest[i] == batch.range.lowest[i]
            assert constant or (measured.max() - 1).abs() < 1e-5
            assert batch.low[i].min() >= -1e-5  # filled holes stay inside, too
            assert batch.low[i].max() <= 1 + 1e-5


def test_scales_stay_in_their_interval_and_vary() -> None:
    source = batches(crop=48, scales=(2.0, 8.0), augmentation=strengths())
    sides = [source[step].low.shape[-1] for step in range(40)]
    assert min(sides) >= low_size((48, 48), 8.0)[0]
    assert max(sides) <= low_size((48, 48), 2.0)[0]
    assert len(set(sides)) > 6
    assert all(source[step].low.shape[-2] == side for step, side in enumerate(sides))


def test_patches_of_large_scales_grow_to_hold_enough_measurements() -> None:
    source = batches(crop=32, scales=(2.0, 16.0), augmentation=strengths(), measurements=6)
    seen = {(b.low.shape[-1], b.target.shape[-1]) for b in (source[step] for step in range(30))}
    assert all(low >= 6 for low, _ in seen)
    assert {side for _, side in seen} == {32, 64, 96}
    assert all(side == 32 or side - 32 < 6 * side / low for low, side in seen)  # and no further


def test_one_scale() -> None:
    source = batches(scales=(4.0, 4.0))
    assert {source[step].low.shape[-2:] for step in range(5)} == {(8, 8)}


def test_the_low_map_is_the_degraded_target() -> None:
    from ducos.resize import bicubic

    source = batches(Depths(), augmentation=strengths(), scales=(4.0, 4.0))
    batch = source[0]
    torch.testing.assert_close(batch.low, bicubic(batch.target, (8, 8)), rtol=0, atol=1e-5)


def test_one_degradation_can_have_strengths_of_its_own() -> None:
    """Where bicubic makes the map, nothing is rounded; where area does, as everywhere."""
    rounding, plain = strengths(quantise=1.0), {"bicubic": {"quantise": 0.0}}
    bicubic_map = batches(augmentation=rounding, when=plain)[0]
    area_map = batches(augmentation=rounding, when=plain, degradations={"area": 1.0})[0]
    levels = [len(np.unique(some.target.numpy().round(6))) for some in (bicubic_map, area_map)]
    assert levels[0] > 2 * levels[1]


@pytest.mark.parametrize(("name", "place"), [("area", 0), ("bicubic", 1), ("nearest", 2)])
def test_the_network_is_told_how_a_clean_map_was_shrunk(name: str, place: int) -> None:
    ways = {name: 1.0}
    told = batches(degradations=ways, told_shrinking=1.0, augmentation=strengths())[0].shrunk_by
    assert told is not None
    assert told.tolist() == [[float(way == place) for way in range(3)]] * len(told)
    noise = strengths(input_noise=1.0)
    noisy = batches(degradations=ways, told_shrinking=1.0, augmentation=noise)[0].shrunk_by
    assert noisy is not None
    assert not noisy.any()
    assert batches(degradations=ways)[0].shrunk_by is None
    assert batches(degradations={"tof": 1.0}, told_shrinking=1.0)[0].shrunk_by is None


def test_targets_without_truth_are_masked() -> None:
    batch = batches(Depths(invalid=0.3), augmentation=strengths())[0]
    share = batch.valid.float().mean().item()
    assert 0.5 < share < 0.9
    assert batch.target.isfinite().all()
    assert (batch.range.undo(batch.target)[batch.valid] >= 1 - 1e-4).all()


@pytest.mark.parametrize("augmentation", [strengths(), EVERYTHING])
def test_everything_is_finite_and_in_range(augmentation: dict[str, float]) -> None:
    source = batches(Depths(invalid=0.2), augmentation=augmentation)
    for step in range(8):
        batch = source[step]
        assert batch.rgb.dtype == batch.low.dtype == batch.target.dtype == torch.float32
        assert batch.rgb.shape == (4, 3, 32, 32)
        assert batch.target.shape == batch.valid.shape == (4, 1, 32, 32)
        assert batch.low.shape == batch.low_valid.shape
        assert batch.rgb.min() >= 0
        assert batch.rgb.max() <= 1
        assert all(getattr(batch, name).isfinite().all() for name in ("rgb", "low", "target"))


def test_scenes_without_any_truth_teach_nothing() -> None:
    batch = batches(Depths(invalid=1.0))[0]
    assert not batch.valid.any()
    assert not batch.low_valid.any()
    assert batch.low.isfinite().all()
    assert batch.target.isfinite().all()


# Augmentations


def test_invert_gives_inverse_depth_and_says_so() -> None:
    dataset = Depths(invalid=0.2)
    depth = batches(dataset, augmentation=strengths(flip=False))[0]
    inverse = batches(dataset, augmentation=strengths(flip=False, invert=1.0))[0]
    assert inverse.inverse.all()
    assert not depth.inverse.any()
    assert torch.equal(depth.valid, inverse.valid)
    a, b = depth.range.undo(depth.target), inverse.range.undo(inverse.target)
    torch.testing.assert_close(a[depth.valid], 1 / b[depth.valid], rtol=1e-4, atol=1e-4)


def test_quantise_leaves_few_levels() -> None:
    batch = batches(Depths(), augmentation=strengths(quantise=1.0), batch_size=8, crop=48)[0]
    smooth = batches(Depths(), augmentation=strengths(), batch_size=8, crop=48)[0]
    for i in range(8):
        levels = batch.range.undo(batch.target)[i].unique()
        assert len(levels) <= 257
        steps = levels.diff()
        assert steps.max() / steps.min() == pytest.approx(
            round((steps.max() / steps.min()).item()), abs=0.1
        )
    assert len(smooth.range.undo(smooth.target)[0].unique()) > 257


def test_colour_changes_the_picture_only() -> None:
    plain = batches(augmentation=strengths(), batch_size=8)
    vivid = batches(augmentation=strengths(colour=1.0), batch_size=8)
    # Up to the first draw of colour both see the same randomness: the first image's patch.
    assert not torch.allclose(plain[0].rgb[0], vivid[0].rgb[0], atol=0.02)
    assert torch.equal(plain[0].valid[0], vivid[0].valid[0])


def test_holes_are_punched_into_a_share_of_the_maps() -> None:
    source = batches(Depths(), augmentation=strengths(holes=0.5), batch_size=8, crop=48)
    holed = [not bool(mask.all()) for step in range(12) for mask in source[step].low_valid]
    assert 0.25 < np.mean(holed) < 0.7
    none = batches(Depths(), augmentation=strengths(holes=0.0), batch_size=8)
    assert all(none[step].low_valid.all() for step in range(3))


def test_punching_removes_only_and_leaves_its_argument_alone() -> None:
    valid = torch.rand(6, 1, 20, 24) > 0.3
    kept = valid.clone()
    punched = punch_holes(valid, 1.0, np.random.default_rng(0))
    assert torch.equal(valid, kept)
    assert (punched & ~valid).sum() == 0
    assert punched.sum() < valid.sum()


def test_images_smaller_than_the_crop_are_enlarged() -> None:
    batch = batches(Depths(size=(11, 60)), augmentation=strengths())[0]
    assert batch.rgb.shape == (4, 3, 32, 32)
    assert batch.valid.all()


def test_the_dataset_is_left_alone() -> None:
    class Kept(Depths):
        def __init__(self) -> None:
            super().__init__(2)
            self.pairs = [Depths.__getitem__(self, i) for i in range(2)]

        def __getitem__(self, index: int) -> Pair:
            return self.pairs[index]

    dataset = Kept()
    before = [(p.rgb.copy(), p.target.copy(), p.valid.copy()) for p in dataset.pairs]
    source = batches(dataset)
    for step in range(4):
        source[step]
    for pair, (rgb, target, valid) in zip(dataset.pairs, before):
        assert np.array_equal(pair.rgb, rgb)
        assert np.array_equal(pair.target, target)
        assert np.array_equal(pair.valid, valid)


def test_it_works_on_the_built_in_scenes() -> None:
    batch = batches(Shapes(6), crop=48)[0]
    assert batch.valid.any()
    assert batch.target[batch.valid].isfinite().all()
