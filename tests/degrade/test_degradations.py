"""Degradations: equal to the field's tools where they claim it, seeded, and blind to holes."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage
from torch import Tensor

from ducos import resize
from ducos.data import open_dataset
from ducos.degrade import DEGRADATIONS
from ducos.degrade.devices import lidar, misregister, stereo, tof
from ducos.degrade.noise import compressed, compressed_as_released, noisy
from ducos.errors import InputError
from ducos.resize import low_size
from tests.places import SHARED

SENSORS = ("tof", "lidar", "stereo")
RANDOM = {*SENSORS, "noisy", "noisy-tofdsr", "noisy-dornet", "compressed", "misregister"}
RANDOM |= {"compressed-as-released", "compressed-as-released-nyu"}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def scenes(count: int = 2, height: int = 60, width: int = 84) -> tuple[Tensor, Tensor, Tensor]:
    """rgb (B, 3, H, W), target and valid (B, 1, H, W), with a round hole and a missing corner."""
    pairs = list(open_dataset(f"shapes:{count},height={height},width={width}"))
    rgb = torch.from_numpy(np.stack([pair.rgb for pair in pairs])).permute(0, 3, 1, 2)
    target = torch.from_numpy(np.stack([pair.target for pair in pairs]))[:, None]
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    hole = (y - height // 2) ** 2 + (x - width // 3) ** 2 < (height // 5) ** 2
    valid = ~(hole | ((y < height // 3) & (x < width // 4))).expand_as(target)
    return rgb, target, valid


def slanted_wall(height: int = 96, width: int = 128) -> tuple[Tensor, Tensor]:
    """A wall at 1.5 to 3 m (1, 1, H, W), without holes."""
    target = torch.linspace(1.5, 3.0, width).expand(1, 1, height, width).contiguous()
    return target, torch.ones_like(target, dtype=torch.bool)


# ------------------------------------------------------------------- what holds for all of them


@pytest.mark.parametrize("size", [(15, 21), (1, 1), (7, 30), (60, 84), (41, 33), (90, 120)])
@pytest.mark.parametrize("name", DEGRADATIONS)
def test_any_size_finite_and_zero_in_holes(name, size):
    rgb, target, valid = scenes()
    low, low_valid = DEGRADATIONS[name](target, valid, rgb, size, seeded())
    expected = target.shape[-2:] if name == "noisy-dornet" else size
    assert low.shape == low_valid.shape == (2, 1, *expected)
    assert low.dtype == target.dtype
    assert low_valid.dtype == torch.bool
    assert low.isfinite().all()
    assert (low[~low_valid] == 0).all()


@pytest.mark.parametrize("name", DEGRADATIONS)
def test_nothing_stored_in_a_hole_matters(name):
    rgb, target, valid = scenes()
    results = [
        DEGRADATIONS[name](torch.where(valid, target, junk), valid, rgb, (15, 21), seeded())
        for junk in (0.0, 1e4, torch.nan)
    ]
    assert results[0][1].any()
    assert not results[0][1].all()
    for low, low_valid in results[1:]:
        assert torch.equal(low, results[0][0])
        assert torch.equal(low_valid, results[0][1])


@pytest.mark.parametrize("name", DEGRADATIONS)
def test_no_valid_pixel_gives_no_valid_pixel(name):
    rgb, target, valid = scenes()
    low, low_valid = DEGRADATIONS[name](target, valid & False, rgb, (15, 21), seeded())
    assert not low_valid.any()
    assert (low == 0).all()


@pytest.mark.parametrize("name", DEGRADATIONS)
def test_the_seed_decides(name):
    rgb, target, valid = scenes()
    first, again, other = (
        DEGRADATIONS[name](target, valid, rgb, (15, 21), seeded(seed))[0] for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert torch.equal(first, other) == (name not in RANDOM)


@pytest.mark.parametrize("name", DEGRADATIONS)
def test_levels(name):
    target = torch.randint(20, 256, (1, 1, 32, 40), generator=seeded()).float()
    valid = torch.ones_like(target, dtype=torch.bool)
    if name in SENSORS:
        with pytest.raises(InputError, match="metres"):
            DEGRADATIONS[name](target, valid, None, (8, 10), seeded(), unit="level")
    else:
        low, _ = DEGRADATIONS[name](target, valid, None, (8, 10), seeded(), unit="level")
        assert low.isfinite().all()


# ------------------------------------------------------------------------------------ resampling


@pytest.mark.parametrize("scale", [2, 8, 1.5, 2.7, 11.6])
def test_bicubic_is_pillows(scale):
    _, target, valid = scenes()
    h, w = low_size((60, 84), scale)
    low, low_valid = DEGRADATIONS["bicubic"](target, valid | True, None, (h, w))
    for ours, theirs in zip(low, target, strict=True):
        pillow = Image.fromarray(theirs[0].numpy()).resize((w, h), Image.Resampling.BICUBIC)
        np.testing.assert_allclose(ours[0], np.asarray(pillow), atol=5e-6)
    assert low_valid.all()


def test_area_is_the_mean_of_the_valid_part():
    _, target, valid = scenes()
    low, low_valid = DEGRADATIONS["area"](target, valid, None, (15, 21))
    for image, y, x in ((0, 0, 0), (0, 4, 6), (1, 7, 7), (1, 14, 20)):
        block = target[image, 0, 4 * y : 4 * y + 4, 4 * x : 4 * x + 4]
        mask = valid[image, 0, 4 * y : 4 * y + 4, 4 * x : 4 * x + 4]
        assert low_valid[image, 0, y, x] == (mask.float().mean() > 0.5)
        if low_valid[image, 0, y, x]:
            torch.testing.assert_close(low[image, 0, y, x], block[mask].mean())


def test_area_of_fractional_pixels():
    target = torch.tensor([[[[1.0, 2.0, 4.0]]]])
    low, _ = DEGRADATIONS["area"](target, target > 0, None, (1, 2))
    torch.testing.assert_close(low, torch.tensor([[[[(1 + 2 / 2) / 1.5, (2 / 2 + 4) / 1.5]]]]))


def test_last_pixel_is_the_far_corner_of_each_block():
    target = torch.arange(1.0, 1 + 6 * 9).view(1, 1, 6, 9)
    low, low_valid = DEGRADATIONS["last-pixel"](target, target != 18, None, (2, 3))
    picked = target[..., 2::3, 2::3]
    torch.testing.assert_close(low, picked)
    assert low_valid.all()
    fractional, _ = DEGRADATIONS["last-pixel"](target, target > 0, None, (4, 9))
    torch.testing.assert_close(fractional, target[..., [1, 2, 4, 5], :])  # ends at 1.5, 3, 4.5, 6
    _, punched = DEGRADATIONS["last-pixel"](target, target != 21, None, (2, 3))
    assert (~punched).nonzero().tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize("name", ["nearest", "last-pixel", "area"])
@pytest.mark.parametrize("size", [(15, 21), (13, 17)])
def test_means_and_samples_stay_between_their_valid_neighbours(name, size):
    _, target, valid = scenes()
    low, low_valid = DEGRADATIONS[name](target, valid, None, size)
    step_y, step_x = 60 / size[0], 84 / size[1]
    for y in range(size[0]):
        for x in range(size[1]):
            rows = slice(int(y * step_y), int(np.ceil((y + 1) * step_y)))
            columns = slice(int(x * step_x), int(np.ceil((x + 1) * step_x)))
            if low_valid[0, 0, y, x]:
                around = target[0, 0, rows, columns][valid[0, 0, rows, columns]]
                assert around.min() - 1e-5 <= low[0, 0, y, x] <= around.max() + 1e-5


def shared_set(name: str):
    folder = SHARED / "bench" / name
    if not folder.is_dir():
        pytest.skip(f"benchmark folder {name} is not beside the repository")
    return open_dataset(f"bench:{folder}")


@pytest.mark.parametrize(
    ("name", "published"),
    [("middlebury30", (2.281, 3.983, 6.374)), ("lu6", (2.419, 4.541, 7.377))],
)
def test_bicubic_reproduces_the_benchmark_figures(name, published):
    """Per-image RMSE of bicubic down and up, images cut to a multiple of the scale, no border."""
    pairs = list(shared_set(name))
    for scale, expected in zip((4, 8, 16), published, strict=True):
        errors = []
        for pair in pairs:
            H, W = (side - side % scale for side in pair.target.shape)
            target = torch.from_numpy(pair.target[:H, :W])[None, None]
            valid = torch.from_numpy(pair.valid[:H, :W])[None, None]
            low, _ = DEGRADATIONS["bicubic"](target, valid, None, low_size((H, W), scale))
            errors.append((resize.bicubic(low, (H, W)) - target).square().mean().sqrt().item())
        assert np.mean(errors) == pytest.approx(expected, abs=6e-4)


# ------------------------------------------------------------------------------------ protocols


def normal(shape: tuple[int, ...], draws: int = 1) -> list[np.ndarray]:
    """The standard normal numbers that a degradation seeded with `seeded()` draws."""
    generator = seeded()
    return [torch.randn(shape, generator=generator).numpy() for _ in range(draws)]


@pytest.mark.parametrize("size", [(24, 32), (5, 9)])  # the second is smaller than the kernel
def test_noisy_is_scipys_blur_on_the_low_resolution_grid_plus_noise(size):
    _, target, valid = scenes(1)
    clean = resize.bicubic(target, size)[0, 0].numpy()
    low, _ = noisy(target, valid | True, None, size, seeded())
    noise = 0.07 * (clean.max() - clean.min()) * normal(size)[0]
    recipe = (ndimage.gaussian_filter(clean, 3.6) + noise).clip(clean.min(), clean.max())
    np.testing.assert_allclose(low[0, 0], recipe, atol=5e-6)


def test_noisy_dornet_blurs_on_the_high_resolution_grid():
    rgb, target, valid = scenes(1)
    low, _ = DEGRADATIONS["noisy-dornet"](target, valid | True, rgb, (15, 21), seeded())
    small = resize.bicubic(target, (15, 21))
    large = resize.bicubic(small, (60, 84))[0, 0].numpy()
    recipe = ndimage.gaussian_filter(large, 3.6) + 0.35 * normal((60, 84))[0]
    recipe = recipe.clip(small.min().item(), small.max().item())
    np.testing.assert_allclose(low[0, 0], recipe, atol=1e-5)


def test_noisy_dornet_takes_a_real_map_to_the_pictures_size():
    sensor = torch.rand(1, 1, 18, 24, generator=seeded()) + 1
    low, _ = DEGRADATIONS["noisy-dornet"](sensor, sensor > 0, torch.rand(1, 3, 48, 64), (18, 24))
    assert low.shape == (1, 1, 48, 64)


@pytest.mark.parametrize(("name", "sigma"), [("noisy", 0.07 * 4), ("noisy-tofdsr", 0.35)])
def test_strength_of_the_noise(name, sigma):
    """On a plateau at the middle of a 4 m range, far from where clipping acts."""
    target = torch.full((1, 1, 200, 200), 3.0)
    target[..., :20], target[..., -20:] = 1.0, 5.0
    low, _ = DEGRADATIONS[name](target, target > 0, None, (200, 200), seeded())
    plateau = low[..., 50:150]
    assert plateau.std().item() == pytest.approx(sigma, rel=0.03)
    assert plateau.mean().item() == pytest.approx(3.0, abs=0.01)
    assert low.min() >= 1
    assert low.max() <= 5
    assert (low == 1).any()


def test_blur_does_not_spread_across_holes():
    target = torch.ones(1, 1, 20, 40)
    target[..., 15:] = 3.0
    valid = torch.ones_like(target, dtype=torch.bool)
    valid[..., 15:] = False
    low, low_valid = noisy(target, valid, None, (20, 40), seeded())
    # All measured pixels are 1, so blur, noise (a share of a zero range) and clip leave 1.
    torch.testing.assert_close(low[low_valid], torch.ones_like(low[low_valid]))


def test_compressed_keeps_the_depth_to_its_step():
    target = torch.arange(500, 500 + 64 * 48, dtype=torch.float32).view(1, 1, 48, 64) / 1000
    low, _ = compressed(target, target > 0, None, (48, 64), seeded())
    kept = ((target * 1000).round() // 16 * 16 / 1000)[0, 0].numpy()
    span = kept.max() - kept.min()
    relative, constant = normal((48, 64), draws=2)
    recipe = kept + span * (0.02 * relative * (kept - kept.min()) / span + 0.05 * constant)
    np.testing.assert_allclose(low[0, 0], recipe, atol=2e-6)


def test_compressed_noise():
    target = torch.full((1, 1, 200, 200), 4.0)
    target[..., :20], target[..., -20:] = 1.008, 5.008
    low, _ = compressed(target, target > 0, None, (200, 200), seeded())
    # 4.0 m = 250 steps of 16 mm, at three quarters of the 4 m range 1.008 m .. 5.008 m
    normalised = (4.0 - 1.008) / 4
    expected = 4 * np.hypot(0.02 * normalised, 0.05)
    assert low[..., 50:150].std().item() == pytest.approx(expected, rel=0.03)
    assert low[..., 50:150].mean().item() == pytest.approx(4.0, abs=0.01)


def test_compressed_as_released_equals_its_recipe():
    millimetres = np.random.default_rng(0).integers(500, 4000, (48, 64)).astype(np.uint16)
    target = torch.from_numpy((millimetres / 1000).astype(np.float32))[None, None]
    low, _ = compressed_as_released(target, target > 0, None, (6, 8), seeded())
    lowest, highest = int(millimetres.min()), int(millimetres.max())
    zoomed = ndimage.zoom(millimetres >> 4, 1 / 8, order=2).astype(np.float64)
    fed = (zoomed - lowest) / (highest - lowest)
    relative, constant = normal((6, 8), draws=2)
    fed = fed + 0.02 * relative * fed + 0.05 * constant
    ours = (low[0, 0].numpy() * 1000 - lowest) / (highest - lowest)
    np.testing.assert_allclose(ours, fed, atol=2e-6)


def test_compressed_as_released_destroys_the_depth_and_compressed_does_not():
    def correlation(name: str) -> float:
        target, valid = slanted_wall(128, 160)
        low, _ = DEGRADATIONS[name](target, valid, None, (16, 20), seeded())
        truth = DEGRADATIONS["area"](target, valid, None, (16, 20))[0]
        return float(np.corrcoef(low.flatten(), truth.flatten())[0, 1])

    assert correlation("compressed") > 0.95
    assert correlation("compressed-as-released") < 0.6
    assert abs(correlation("compressed-as-released-nyu")) < 0.15


def test_compressed_as_released_nyu_is_noise_about_the_nearest_depth():
    target, valid = slanted_wall(400, 400)
    low, _ = DEGRADATIONS["compressed-as-released-nyu"](target, valid, None, (100, 100), seeded())
    assert low.mean().item() == pytest.approx(1.5, abs=0.01)
    assert low.std().item() == pytest.approx(0.05 * 1.5, rel=0.05)


# -------------------------------------------------------------------------------------- sensors


def step_edge() -> tuple[Tensor, Tensor, Tensor]:
    """A white board at 1 m in front of a white wall at 2 m, its left edge in the image's middle."""
    target = torch.full((1, 1, 96, 256), 2.0)
    target[..., 130:200] = 1.0
    return torch.ones(1, 3, 96, 256), target, torch.ones_like(target, dtype=torch.bool)


def test_tof_makes_flying_pixels_at_silhouettes_only():
    rgb, target, valid = step_edge()
    low, low_valid = tof(
        target, valid, rgb, (24, 64), seeded(), softness=0, raggedness=0, fatness=0
    )
    assert low_valid.all()
    column = low[0, 0].mean(0)  # low column 32 covers target columns 128 to 131
    assert 1.15 < column[32] < 1.9
    assert (column[:32] > 1.95).all()
    assert (column[33:49] < 1.05).all()
    # Half of the pixel shows the board, whose light is four times as strong.
    mixed = (2.0 + 4 * 1.0) / (1 + 4)
    assert column[32].item() == pytest.approx(mixed, rel=0.03)


def test_tof_softness_spreads_the_edge_and_nothing_else():
    rgb, target, valid = step_edge()
    many = [x.expand(32, -1, -1, -1).contiguous() for x in (target, valid, rgb)]
    still = {"optics": 0, "raggedness": 0, "fatness": 0, "grain": 0}
    sharp, soft = (
        tof(*many, (24, 64), seeded(), softness=softness, **still)[0].mean(2)
        for softness in (0.0, 1.5)
    )
    between = [((m[:, 0] > 1.1) & (m[:, 0] < 1.9)).sum(1) for m in (sharp, soft)]  # (32,)
    assert (between[0] <= 2).all()  # the mixed pixel of each silhouette
    assert between[1].max() >= 5
    assert len(between[1].unique()) >= 3  # drawn per map
    far = np.s_[:, 0, 2:24]  # columns away from any silhouette
    torch.testing.assert_close(sharp[far], soft[far], rtol=2e-3, atol=0)
    # Where depths are smoothed neither surface gains; where light is, the near one does.
    growth = (soft[:, 0] < 1.5).sum(1) - (sharp[:, 0] < 1.5).sum(1)
    assert growth.min() >= 0
    assert growth.max() >= 2
    assert 10 <= (growth == 0).sum() < 32


def test_tof_optics_spread_the_light_and_the_near_surface_gains():
    rgb, target, valid = step_edge()
    many = [x.expand(32, -1, -1, -1).contiguous() for x in (target, valid, rgb)]
    still = {"softness": 0, "raggedness": 0, "fatness": 0, "grain": 0}
    sharp, spread = (
        tof(*many, (24, 64), seeded(), optics=optics, **still)[0].mean(2) for optics in (0.0, 1.5)
    )
    growth = (spread[:, 0] < 1.5).sum(1) - (sharp[:, 0] < 1.5).sum(1)
    assert growth.min() == 0  # drawn per map
    assert growth.max() >= 2


def test_tof_raggedness_moves_silhouettes_along_an_edge_and_nothing_else():
    rgb, target, valid = step_edge()
    many = [x.expand(32, -1, -1, -1).contiguous() for x in (target, valid, rgb)]
    still = {"optics": 0, "softness": 0, "fatness": 0, "grain": 0}
    straight, ragged = (
        tof(*many, (24, 64), seeded(), **still, raggedness=raggedness)[0]
        for raggedness in (0.0, 1.5)
    )
    # How many pixels of each row are nearer to the board tells where its two edges are.
    widths = [(m[:, 0] < 1.5).sum(2).float() for m in (straight, ragged)]  # (32, 24)
    assert widths[0].std(1).max() == 0
    wander = widths[1].std(1)
    assert wander.min() < 0.5 < 1 < wander.max() < 1.5 * 2**0.5 * 1.5  # two edges, drawn per map
    # To and fro; mixed pixels lean to the board, whose light is stronger.
    assert 0 < (widths[1] - widths[0]).mean() < 0.6
    far = np.s_[:, 0, :, 2:24]
    torch.testing.assert_close(straight[far], ragged[far], rtol=1e-2, atol=0)


def test_tof_fatness_moves_near_silhouettes_out_or_in_and_nothing_else():
    rgb, target, valid = step_edge()
    many = [x.expand(32, -1, -1, -1).contiguous() for x in (target, valid, rgb)]
    still = {"optics": 0, "softness": 0, "raggedness": 0, "grain": 0}
    thin, fat = (
        tof(*many, (24, 64), seeded(), **still, fatness=fatness)[0] for fatness in (0.0, 0.5)
    )
    widths = [(m[:, 0] < 1.5).sum(2).float().mean(1) for m in (thin, fat)]  # (32,)
    growth = widths[1] - widths[0]
    assert growth.abs().min() == 0  # drawn per map
    assert 1.5 <= growth.max() <= 2 * 4 * 0.5  # both edges, half the depth: four sigma
    assert -2 * 4 * 0.5 <= growth.min() <= -1
    assert abs(float(growth.mean())) < 0.5  # so that there is nothing to learn by heart
    for far in (np.s_[:, 0, :, 2:24], np.s_[:, 0, :, 40:44]):  # wall, board
        torch.testing.assert_close(thin[far], fat[far], rtol=2e-3, atol=0)


def test_tof_fatness_spreads_no_hole():
    rgb, target, valid = step_edge()
    valid[..., 40:60] = False
    low, low_valid = tof(target, valid, rgb, (24, 64), seeded(), raggedness=0, grain=0)
    assert not low_valid[..., 10:15].any()
    assert low_valid[..., :9].all()
    assert (low[..., :9] > 1.95).all()


def test_tof_grain_scales_the_noise_per_map():
    target = torch.full((32, 1, 96, 128), 2.0)
    low = tof(target, target > 0, None, (48, 64), seeded(), grain=1.0, grain_size=0)[0]
    rough = (low - low.mean((2, 3), keepdim=True)).diff(dim=3).std((1, 2, 3)) / 2**0.5
    largest = 0.002 + 0.0025 * 4  # weakness of a grey wall at 2 m
    assert rough.max() < 1.05 * largest
    assert rough.min() < 0.1 * largest
    assert rough.mean() == pytest.approx(largest / 3, rel=0.25)  # the mean of a squared uniform
    still = tof(target, target > 0, None, (48, 64), seeded(), grain=0.0)[0]
    assert still.diff(dim=3).abs().max() < 0.005  # only the smooth error is left


def test_tof_grain_size_makes_spots():
    target = torch.full((32, 1, 96, 128), 2.0)

    def likeness(grain_size: float) -> Tensor:
        """Correlation of the noise with its neighbour to the right, per map."""
        low = tof(target, target > 0, None, (48, 64), seeded(), grain_size=grain_size)[0]
        clean = tof(target, target > 0, None, (48, 64), seeded(), grain=0)[0]
        noise = low - clean
        return (noise[..., 1:] * noise[..., :-1]).mean((1, 2, 3)) / noise.square().mean((1, 2, 3))

    assert likeness(0).abs().max() < 0.1
    spots = likeness(1.5)
    assert spots.min() < 0.1 < 0.8 < spots.max()  # drawn per map


def test_tof_error_grows_with_distance_and_has_both_signs():
    errors = {}
    for metres in (1.0, 4.0):
        target = torch.full((32, 1, 96, 128), metres)
        low, low_valid = tof(target, target > 0, None, (48, 64), seeded())
        errors[metres] = (low - target[..., :48, :64])[low_valid]
    assert 0.001 < errors[1.0].std() < 0.012
    assert errors[4.0].std() > 3 * errors[1.0].std()
    for metres, error in errors.items():
        assert abs(error.mean()) < 0.001 * metres  # or networks would learn to subtract it


def test_tof_loses_dark_grazing_and_far_surfaces():
    def share_seen(target: Tensor, rgb: Tensor | None) -> float:
        """Of the least sensitive of many devices."""
        many = [None if x is None else x.expand(32, -1, -1, -1) for x in (target, rgb)]
        low_valid = tof(many[0], many[0] > 0, many[1], (24, 32), seeded())[1]
        shares = low_valid.float().mean((1, 2, 3))
        assert shares.max() == 1  # the most sensitive drops nothing
        return shares.min().item()

    wall = torch.full((1, 1, 96, 128), 4.0)
    white, black = torch.ones(1, 3, 96, 128), torch.full((1, 3, 96, 128), 0.05)
    assert share_seen(wall, white) == 1
    assert share_seen(wall, black) < 0.1
    assert share_seen(torch.full_like(wall, 20.0), None) < 0.1
    # A floor-like surface: 1/z falls linearly, so z runs from 1.2 m to 6 m over 128 columns.
    grazing = (1 / torch.linspace(1 / 1.2, 1 / 6.0, 128)).expand(1, 1, 96, 128).contiguous()
    assert share_seen(grazing * 1.0, white) < 1


def test_lidar_is_smooth_near_the_truth_and_blind_beyond_five_metres():
    target, valid = slanted_wall()
    low, low_valid = lidar(target, valid, None, (48, 64), seeded())
    truth = DEGRADATIONS["area"](target, valid, None, (48, 64))[0]
    assert low_valid.all()
    assert (low - truth).abs().max() < 0.2
    assert (low - truth).abs().mean() < 0.05
    # Second differences inside a cell vanish: there is nothing between the spots.
    assert low.diff(dim=-1).diff(dim=-1).abs().median() < 1e-4
    assert not lidar(target * 4, valid, None, (48, 64), seeded())[1].any()


def test_lidar_does_not_see_thin_things():
    target = torch.full((4, 1, 96, 128), 2.0)
    target[..., 60:62] = 1.0  # a pole of two pixels between spots 14 pixels apart
    low, _ = lidar(target, target > 0, None, (48, 64), seeded())
    assert (low < 1.5).float().mean() < 0.02


def test_stereo_hides_a_strip_to_the_left_of_near_things():
    _, target, valid = step_edge()
    _, low_valid = stereo(target, valid, None, (96, 256), seeded(), focal=400, baseline=0.05)
    # Disparity 20 px at 1 m and 10 px at 2 m: ten columns of the wall are hidden.
    assert not low_valid[..., 120:130].any()
    assert low_valid[..., :120].all()
    assert low_valid[..., 130:].all()  # the board, and the wall to its right


def test_stereo_depth_comes_in_disparity_steps():
    target, valid = slanted_wall()
    low, low_valid = stereo(target, valid, None, (48, 64), seeded(), focal=500, baseline=0.08)
    steps = 500 * 0.08 / low[low_valid] * 8
    torch.testing.assert_close(steps, steps.round(), atol=1e-3, rtol=0)
    truth = resize.nearest(target, (48, 64))
    disparity_error = 500 * 0.08 / low[low_valid] - 500 * 0.08 / truth[low_valid]
    assert disparity_error.std().item() == pytest.approx(np.hypot(0.1, 0.125 / 12**0.5), rel=0.1)


def test_stereo_has_a_range():
    target = torch.tensor([0.2, 1.0, 9.5]).repeat_interleave(40).expand(1, 1, 8, 120).contiguous()
    low_valid = stereo(target, target > 0, None, (8, 120), seeded())[1]
    share = low_valid.float().mean((0, 1, 2)).view(3, 40).mean(1)
    assert share[0] == 0
    assert share[1] == 1
    assert share[2] < 0.3


def test_misregister_moves_by_whole_pixels_and_marks_what_is_unknown():
    target = torch.rand(16, 1, 20, 24, generator=seeded())
    valid = torch.ones_like(target, dtype=torch.bool)
    low, low_valid = misregister(target, valid, None, (20, 24), seeded(3), largest=2)
    moves = set()
    for ours, mask, truth in zip(low[:, 0], low_valid[:, 0], target[:, 0], strict=True):
        matches = [
            (down, right)
            for down in range(-2, 3)
            for right in range(-2, 3)
            if torch.equal(ours[mask], truth.roll((down, right), (0, 1))[mask])
        ]
        assert len(matches) == 1
        down, right = matches[0]
        assert mask.sum() == (20 - abs(down)) * (24 - abs(right))
        moves.add(matches[0])
    assert len(moves) > 8
