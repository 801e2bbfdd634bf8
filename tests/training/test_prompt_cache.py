"""Stored prompt features: equal to recomputation, bounded, repaired, and cut where the patch is."""

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ducos.data.pair import Pair
from ducos.errors import InputError
from ducos.prompts import Prompt, create_prompt, run_prompt
from ducos.prompts.tiny import TinyPrompt
from ducos.training.prompt_cache import FeatureCache, cut, patch_place


def picture(seed: int, size: tuple[int, int] = (48, 64)) -> Pair:
    rng = np.random.default_rng(seed)
    rgb = rng.random((*size, 3), dtype=np.float32)
    return Pair(f"set/scene {seed}", rgb, np.zeros(size, np.float32), np.ones(size, bool))


@pytest.fixture
def prompt() -> TinyPrompt:
    return create_prompt("tiny", tuning="frozen")


def as_list(prompt: Prompt) -> list[Tensor]:
    return [*prompt.features, *([] if prompt.depth is None else [prompt.depth])]


def assert_same(a: Prompt, b: Prompt) -> None:
    assert len(as_list(a)) == len(as_list(b))
    assert all(torch.equal(x, y) for x, y in zip(as_list(a), as_list(b), strict=True))


# What is stored


@pytest.mark.parametrize("name", ["tiny", "dinov2-s"])
def test_stored_features_equal_recomputation_to_half_precision(name: str, tmp_path: Path) -> None:
    options = {"side": 42} if name == "dinov2-s" else {}
    prompt = create_prompt(name, tuning="frozen", **options)
    cache = FeatureCache(tmp_path, prompt)
    pair = picture(0)
    first, again = cache.features(pair), cache.features(pair)
    assert_same(first, again)  # a cold and a warm cache teach the same
    fresh = run_prompt(prompt, torch.from_numpy(pair.rgb).permute(2, 0, 1)[None])
    assert (first.depth is None) == (fresh.depth is None)
    for stored, exact in zip(as_list(first), as_list(fresh), strict=True):
        assert stored.dtype == torch.float32
        assert (stored - exact).abs().max() <= 2.0**-11 * exact.abs().max()
    assert 0 < cache.difference(pair) <= 2.0**-11
    values = cache.bytes_per_image(pair)
    assert values == 2 * sum(map.numel() for map in as_list(fresh))
    assert values < cache.path(pair).stat().st_size < values + 2000


def test_a_warm_cache_does_not_run_the_prompt(prompt: TinyPrompt, tmp_path: Path) -> None:
    pair = picture(0)
    kept = FeatureCache(tmp_path, prompt).features(pair)
    other = create_prompt("tiny", tuning="frozen")
    other.load_state_dict(prompt.state_dict())  # another object of the same function: same files
    calls = []
    other.register_forward_hook(lambda *_: calls.append(1))
    cache = FeatureCache(tmp_path, other)
    assert_same(cache.features(pair), kept)
    assert not calls
    cache.features(picture(1))
    assert calls


def test_images_weights_and_settings_are_told_apart(tmp_path: Path) -> None:
    pair = picture(0)
    prompt = create_prompt("dinov2-s", tuning="frozen", side=42)
    path = FeatureCache(tmp_path, prompt).path(pair)
    changed = picture(0)
    changed.rgb[3, 4, 1] += 0.5  # the same name, another image
    assert FeatureCache(tmp_path, prompt).path(changed) != path
    renamed = picture(0)
    renamed.name = "other"
    assert FeatureCache(tmp_path, prompt).path(renamed) != path
    finer = create_prompt("dinov2-s", tuning="frozen", side=56)
    finer.load_state_dict(prompt.state_dict())
    assert FeatureCache(tmp_path, finer).path(pair) != path
    prompt.encoder.blocks[11].mlp.fc2.bias[0] += 1
    assert FeatureCache(tmp_path, prompt).path(pair) != path


class Loud(nn.Module):
    """Speaks louder than half precision can hold."""

    channels = (1, 1, 1, 1)
    multiple_of = 1

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(1e6), requires_grad=False)

    def forward(self, rgb: Tensor) -> Prompt:
        return Prompt((rgb[:, :1],) * 3 + (self.gain * rgb[:, :1],), None)


def test_values_beyond_half_precision_survive(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path, Loud())
    features, depth = cache.features(picture(0))
    assert depth is None
    assert bool(features[3].isfinite().all())
    assert features[3].max() > 65_504
    assert cache.difference(picture(0)) <= 2.0**-11


def test_the_folder_stays_bounded_and_the_oldest_goes(prompt: TinyPrompt, tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path, prompt)
    cache.features(picture(0))
    size = cache.path(picture(0)).stat().st_size
    cache = FeatureCache(tmp_path, prompt, max_bytes=3 * size + size // 2)
    for seed in range(1, 6):
        cache.features(picture(seed))
        assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= cache.max_bytes
    kept = [seed for seed in range(6) if cache.path(picture(seed)).exists()]
    assert kept == [3, 4, 5]
    exact = FeatureCache(tmp_path / "other", prompt).features(picture(0))
    assert_same(cache.features(picture(0)), exact)  # an evicted image is computed again, equally


@pytest.mark.parametrize("damage", ["empty", "short", "noise", "flipped bit", "foreign"])
def test_damaged_files_are_computed_again(damage: str, prompt: TinyPrompt, tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path, prompt)
    pair = picture(0)
    whole = cache.features(pair)
    path = cache.path(pair)
    content = path.read_bytes()
    if damage == "empty":
        path.write_bytes(b"")
    elif damage == "short":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "noise":
        path.write_bytes(bytes(range(256)) * 40)
    elif damage == "flipped bit":
        path.write_bytes(content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
    else:
        path.write_bytes(content.replace(b"ducos-features-", b"other-features-"))
    assert_same(cache.features(pair), whole)
    assert path.read_bytes() == content


def test_filling_stores_what_is_missing_and_checks_what_is_there(
    prompt: TinyPrompt, tmp_path: Path
) -> None:
    cache = FeatureCache(tmp_path, prompt)
    assert cache.fill([picture(seed) for seed in range(2)]) == 2
    assert cache.fill([picture(seed) for seed in range(3)]) == 1
    wrong = Prompt(tuple(1.1 * map for map in cache.features(picture(0)).features), None)
    cache._write(cache.path(picture(0)), wrong)
    assert cache.fill([picture(0)], check=0) == 0
    with pytest.raises(InputError, match="differ from recomputed ones"):
        cache.fill([picture(0)])


def test_views_of_images_give_the_features_of_their_content(
    prompt: TinyPrompt, tmp_path: Path
) -> None:
    mirrored = picture(0)
    mirrored.rgb = mirrored.rgb[:, ::-1]  # negative strides
    mirrored.rgb.flags.writeable = False
    copied = picture(0)
    copied.rgb = mirrored.rgb.copy()
    first = FeatureCache(tmp_path / "a", prompt).features(mirrored)
    assert_same(first, FeatureCache(tmp_path / "b", prompt).features(copied))


def test_a_prompt_in_training_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a frozen one"):
        FeatureCache(tmp_path, create_prompt("tiny", tuning="bias"))


# Where a patch is


@dataclass
class Turn:
    mirror: bool
    upside_down: bool
    transpose: bool

    def __call__(self, m: np.ndarray) -> np.ndarray:
        """The order of `data.patches.flip`."""
        m = m[:, ::-1] if self.mirror else m
        m = m[::-1] if self.upside_down else m
        return np.swapaxes(m, 0, 1) if self.transpose else m


TURNS = [Turn(bool(i & 1), bool(i & 2), bool(i & 4)) for i in range(8)]


def image_as_prompt(rgb: np.ndarray) -> Prompt:
    """The image itself as feature maps and depth: a cut must then be the patch."""
    map = torch.from_numpy(np.ascontiguousarray(rgb)).permute(2, 0, 1)[None]
    return Prompt((map,) * 4, map[:, :1])


def as_map(patch: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(patch)).permute(2, 0, 1)[None]


@pytest.mark.parametrize("turn", TURNS)
def test_a_cut_is_the_patch(turn: Turn) -> None:
    rgb = picture(0).rgb
    place = patch_place((48, 64), 9, 20, 32, **vars(turn))
    features, depth = cut([image_as_prompt(rgb)], place[None], (32, 32), [(48, 64)])
    expected = as_map(turn(rgb[9:41, 20:52]))
    assert depth is not None
    for map in features:
        torch.testing.assert_close(map, expected, atol=1e-4, rtol=0)
    torch.testing.assert_close(depth, expected[:, :1], atol=1e-4, rtol=0)


@pytest.mark.parametrize("turn", TURNS)
def test_a_cut_follows_zoom_and_shift(turn: Turn) -> None:
    """As `data.patches.crop` makes a patch: shrink, displace the colours, crop, turn."""
    rgb = cv2.GaussianBlur(picture(1, (96, 128)).rgb, (0, 0), 3)
    rgb = (rgb - rgb.min()) / np.ptp(rgb)
    shrunk = cv2.resize(rgb, (64, 48), interpolation=cv2.INTER_AREA)
    x, y = 2.3, -3.6
    move = np.array([[1, 0, x], [0, 1, y]], np.float32)
    shrunk = cv2.warpAffine(shrunk, move, (64, 48), borderMode=cv2.BORDER_REFLECT)
    for top, left in ((3, 20), (16, 0)):  # the second looks beyond the edges
        expected = as_map(turn(shrunk[top : top + 32, left : left + 32]))
        place = patch_place((48, 64), top - y, left - x, 32, **vars(turn))
        _, depth = cut([image_as_prompt(rgb)], place[None], (32, 32), [(96, 128)])
        assert depth is not None
        assert (depth - expected[:, :1]).abs().max() < 0.03
        assert expected.std() > 0.1


def test_the_grid_of_a_cut_is_as_dense_as_the_prompts(tmp_path: Path) -> None:
    """35×47 tokens for 480×640 pixels: ten for 128 pixels, however far the image was zoomed."""
    tokens = torch.rand(1, 5, 35, 47)
    whole = Prompt((tokens,) * 4, None)
    places = torch.stack(
        [patch_place((480, 640), 0, 0, 128), patch_place((300, 400), 50, 60, 128, transpose=True)]
    )
    features, depth = cut([whole, whole], places, (128, 128), [(480, 640)] * 2)
    assert depth is None
    assert [map.shape for map in features] == [(2, 5, 10, 10)] * 4


def test_levels_keep_their_own_grids(prompt: TinyPrompt, tmp_path: Path) -> None:
    pair = picture(0, (64, 96))
    whole = FeatureCache(tmp_path, prompt).features(pair)
    place = patch_place((64, 96), 0, 0, 64)
    features, depth = cut([whole], place[None], (64, 64), [(64, 96)])
    assert [map.shape[-1] for map in features] == [2, 4, 8, 16]
    assert depth is not None
    # Aligned with the grid, nothing is interpolated: the left two thirds, as they are.
    for part, map in zip(features, whole.features, strict=True):
        torch.testing.assert_close(part, map[..., : part.shape[-1]], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(depth, whole.depth[..., :64], atol=1e-4, rtol=1e-4)
