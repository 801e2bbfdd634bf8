"""Tiled passes equal whole ones, within their memory, and leave nothing behind."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from ducos.errors import InputError
from ducos.models import create
from ducos.models.blocks import Moments, ResidualGroup, moments, pearson
from ducos.models.strips import needs_strips, predict_in_strips
from ducos.models.strips.rows import Rows, padded, resized
from ducos.models.strips.workspace import Workspace
from ducos.resize import Size, bicubic, bilinear, pad_to_multiple
from ducos.upscaling import load

CPU = torch.device("cpu")
SCANT = 1  # byte: every map goes to a file, every strip is as low as it may be
TOLERANCE = 1e-5
WORK = Workspace(SCANT, CPU, torch.float32)

TINY: dict[str, Any] = {"prompt": "tiny", "prompt_options": {"widths": [6, 6, 8, 8]}}
VIT: dict[str, Any] = {"prompt": "dinov2-s", "prompt_options": {"side": 28}}
NONE: dict[str, Any] = {"prompt": "none"}
SMALL: dict[str, Any] = {"channels": 8, "blocks": 1, "iterations": 2}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "compact": ("ducos-compact", {**TINY, "channels": 8}),
    "compact without a prompt": ("ducos-compact", {**NONE, "channels": 8}),
    "compact with a ViT": ("ducos-compact", {**VIT, "channels": 8}),
    "without corrections": ("ducos-compact", {**TINY, "channels": 8, "corrections": 0}),
    "wide": ("ducos-compact", {**TINY, "channels": 8, "wide": True}),
    "not guided": ("ducos-compact", {**TINY, "channels": 8, "guided": False}),
    "stride 2": ("ducos-compact", {**TINY, "channels": 8, "stride": 2}),
    "paper": ("ducos", {**TINY, **SMALL, "iterations": 4, "stages": 2}),
    "paper, two blocks": ("ducos", {**TINY, **SMALL, "blocks": 2}),
    "paper with a ViT": ("ducos", {**VIT, **SMALL}),
    "paper without a prompt": ("ducos", {**NONE, **SMALL}),
    "reweight": ("ducos", {**TINY, **SMALL, "recurrence": "reweight", "iterations": 4}),
    "add": ("ducos", {**TINY, **SMALL, "fusion": "add"}),
    "concat": ("ducos", {**TINY, **SMALL, "fusion": "concat"}),
    "add, reweight": ("ducos", {**TINY, **SMALL, "fusion": "add", "recurrence": "reweight"}),
    "residual": ("ducos", {**TINY, **SMALL, "residual": True}),
    "convolution": ("ducos-compact", {**TINY, "channels": 8, "tail": "convolution"}),
    "mixing at full size": ("ducos-compact", {**TINY, **SMALL, "stride": 1}),
    "released": ("ducos-released", VIT),
}


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def build(name: str) -> nn.Module:
    torch.manual_seed(0)
    entry, arguments = MODELS[name]
    return create(entry, **arguments).eval()


def scene(size: Size, low_size: Size, holes: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    valid = noise(1, 1, *low_size, seed=2) > 0.4
    valid[..., : low_size[0] // 2, : low_size[1] // 2] = False  # a hole wider than a window
    return noise(1, 3, *size), noise(1, 1, *low_size, seed=1), valid if holes else None


def assert_equals_whole(
    model: nn.Module, size: Size, low_size: Size, *, holes: bool = False, memory: int = SCANT
) -> None:
    inputs = scene(size, low_size, holes)
    with torch.no_grad():
        expected = model(*inputs)
    tiled = predict_in_strips(model, *inputs, memory=memory)
    assert tiled.depth.shape == expected.depth.shape
    largest = max(1.0, float(expected.depth.abs().max()))
    assert (tiled.depth - expected.depth).abs().max() < TOLERANCE * largest
    assert ("sigma" in tiled.aux) == ("sigma" in expected.aux)
    if "sigma" in expected.aux:
        # A small spread is the root of a difference of squares: rounding of 3e-8 becomes 2e-4, and
        # trained weights multiply it by up to e⁴.
        torch.testing.assert_close(tiled.aux["sigma"], expected.aux["sigma"], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("holes", [False, True], ids=["full", "holes"])
@pytest.mark.parametrize("name", MODELS)
def test_tiled_equals_whole(name: str, holes: bool) -> None:
    assert_equals_whole(build(name), (71, 58), (17, 15), holes=holes)


@pytest.mark.parametrize("holes", [False, True], ids=["full", "holes"])
@pytest.mark.parametrize("low_size", [(37, 51), (19, 100)], ids=["even", "uneven"])
def test_embedded_weights(low_size: Size, holes: bool) -> None:
    assert_equals_whole(load("ducos-tiny"), (150, 203), low_size, holes=holes)


@pytest.mark.parametrize("name", ["compact", "paper"])
@given(
    size=st.tuples(st.integers(1, 80), st.integers(1, 80)),
    ratio=st.tuples(st.floats(1, 12), st.floats(1, 12)),
    holes=st.booleans(),
    memory=st.sampled_from([SCANT, 10**6, 10**9]),
)
def test_any_size_and_ratio(
    name: str, size: Size, ratio: tuple[float, float], holes: bool, memory: int
) -> None:
    low_size = (max(1, int(size[0] / ratio[0])), max(1, int(size[1] / ratio[1])))
    assert_equals_whole(build(name), size, low_size, holes=holes, memory=memory)


def test_no_seams_where_nothing_happens() -> None:
    """On a plain scene the rows of the result change smoothly, also where strips meet."""
    model = build("compact")
    rgb, low = torch.full((1, 3, 120, 40), 0.5), torch.linspace(0, 1, 30)[:, None].expand(30, 10)
    tiled = predict_in_strips(model, rgb, low[None, None], memory=SCANT).depth
    with torch.no_grad():
        expected = model(rgb, low[None, None]).depth
    assert (tiled.diff(dim=2) - expected.diff(dim=2)).abs().max() < TOLERANCE


# Memory, files, progress


def test_files_are_used_and_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    used: list[int] = []
    predict_in_strips(
        build("compact"),
        *scene((71, 58), (17, 15), False),
        memory=SCANT,
        progress=lambda _: used.append(open_in(tmp_path)),
    )
    assert list(tmp_path.iterdir()) == []
    if Path("/proc/self/fd").is_dir():
        assert max(used) > 2
        assert open_in(tmp_path) == 0


def test_files_are_gone_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def stop(done: float) -> None:
        if done > 0.5:
            raise KeyboardInterrupt

    # The traceback is still held here, and with it every local variable of the tiled pass.
    with pytest.raises(KeyboardInterrupt) as caught:
        predict_in_strips(
            build("compact"), *scene((71, 58), (17, 15), False), memory=SCANT, progress=stop
        )
    assert list(tmp_path.iterdir()) == []
    assert open_in(tmp_path) == 0
    assert caught.traceback


def open_in(folder: Path) -> int:
    """Open files of this process in a folder, also nameless ones; 0 where nobody can tell."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        return 0
    names = []
    for descriptor in descriptors.iterdir():
        try:
            names.append(os.readlink(descriptor))
        except OSError:
            continue  # the one that lists the folder
    return sum(name.startswith(str(folder)) for name in names)


def test_progress_rises_to_one() -> None:
    shares: list[float] = []
    predict_in_strips(
        build("compact"),
        *scene((71, 58), (17, 15), True),
        memory=SCANT,
        progress=shares.append,
    )
    assert shares == sorted(shares)
    assert shares[0] < 0.1
    assert shares[-1] == 1
    assert sum(share < 1 for share in shares) == len(shares) - 1  # one only when all is done


def test_a_full_disk_is_noticed_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tempfile.gettempdir())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    inputs = scene((71, 58), (17, 15), False)
    with pytest.raises(InputError, match="TMPDIR"):
        predict_in_strips(build("compact"), *inputs, memory=SCANT)
    predict_in_strips(build("compact"), *inputs, memory=10**9)  # needs no files


def test_maps_beyond_the_budget_go_to_files() -> None:
    x = noise(1, 4, 40, 10)
    with Workspace(2 * x.numel() * 4, CPU, torch.float32) as work:
        maps = [work.store(work.given(x)) for _ in range(3)]
        assert [m.file is None for m in maps] == [True, False, False]
        assert all(torch.equal(m.read(3, 17), x[:, :, 3:17]) for m in maps)
        assert len(work.files) == 2
        del maps[0]
        assert work.store(work.given(x)).file is None  # the room is free again
        maps.clear()
        assert not work.files


def test_strips_stay_small() -> None:
    heights: list[int] = []
    with Workspace(400_000, CPU, torch.float32) as work:
        x = work.given(noise(1, 4, 500, 100))
        heights = [last - first for first, last in work.strips(x)]
    assert sum(heights) == 500
    assert max(heights) * 4 * 100 * 4 <= 100_000  # a quarter of the budget


def test_what_cannot_be_tiled() -> None:
    bicubic_model = create("bicubic")
    rgb, low, valid = scene((20, 20), (5, 5), False)
    assert not bicubic_model.in_strips
    assert not needs_strips(bicubic_model, (10**5, 10**5), 1)
    with pytest.raises(InputError, match="ducos-released"):
        predict_in_strips(bicubic_model, rgb, low, valid, memory=SCANT)
    model = build("compact")
    with pytest.raises(InputError, match="one image at a time"):
        predict_in_strips(model, rgb.repeat(2, 1, 1, 1), low.repeat(2, 1, 1, 1), memory=SCANT)
    with pytest.raises(InputError, match="positive"):
        predict_in_strips(model, rgb, low, memory=0)
    released = create("ducos-released", **TINY).eval()
    with pytest.raises(InputError, match="ViT"):
        predict_in_strips(released, rgb, low, memory=SCANT)


def test_which_images_need_tiles() -> None:
    compact, paper = create("ducos-compact"), create("ducos", prompt="tiny")
    assert not needs_strips(compact, (480, 640), 10**9)
    assert needs_strips(compact, (3000, 4000), 10**9)
    assert needs_strips(paper, (3000, 4000), 10**10)
    assert needs_strips(paper, (1000, 1000), 10**9)
    assert not needs_strips(paper, (240, 320), 10**9)


# The parts


METHODS: dict[str, Callable[[Tensor, Size], Tensor]] = {
    "bicubic": bicubic,
    "bilinear": bilinear,
    "corners": lambda x, size: F.interpolate(x, size, mode="bicubic", align_corners=True),
}


@pytest.mark.parametrize("method", METHODS)
@given(
    size=st.tuples(st.integers(1, 60), st.integers(1, 30)),
    target=st.tuples(st.integers(1, 200), st.integers(1, 30)),
    strip=st.integers(1, 40),
)
def test_resized_rows(method: str, size: Size, target: Size, strip: int) -> None:
    x = noise(1, 2, *size)
    expected = METHODS[method](x, target)
    assert_rows_equal(resized(WORK.given(x), target, METHODS[method]), expected, strip)


@given(
    size=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    multiple=st.sampled_from([1, 4, 32]),
    strip=st.integers(1, 40),
)
def test_padded_rows(size: Size, multiple: int, strip: int) -> None:
    x = noise(1, 2, *size)
    assert_rows_equal(padded(WORK.given(x), multiple), pad_to_multiple(x, multiple), strip)


def assert_rows_equal(rows: Rows, expected: Tensor, strip: int) -> None:
    assert (1, rows.channels, rows.height, rows.width) == expected.shape
    for first in range(0, rows.height, strip):
        last = min(rows.height, first + strip)
        torch.testing.assert_close(
            rows.read(first, last), expected[:, :, first:last], rtol=0, atol=2e-6
        )


def test_residual_group_rows() -> None:
    group, x = ResidualGroup(8, 3), torch.randn(1, 8, 45, 13)
    with torch.no_grad(), Workspace(SCANT, CPU, torch.float32) as work:
        assert_rows_equal(group(work.given(x)), group(x), 10)


def test_moments_are_those_of_the_whole_image() -> None:
    a, b = torch.randn(1, 3, 50, 40) + 100, torch.randn(1, 3, 50, 40)
    b = b + torch.tensor([-1.0, 0.0, 5.0])[None, :, None, None] * (a - 100)
    with Workspace(SCANT, CPU, torch.float32) as work:
        found = moments(work.given(a), work.given(b))
    exact = pearson(a.double(), b.double())
    torch.testing.assert_close(found.pearson(1e-6), exact, rtol=0, atol=1e-9)
    alpha = torch.tensor([0.3, 0.5, 0.9], dtype=torch.float64)[None, :, None, None]
    blend = alpha * a.double() + (1 - alpha) * b.double()
    torch.testing.assert_close(
        found.blended(alpha).pearson(1e-6), pearson(a.double(), blend), rtol=0, atol=1e-9
    )


def test_a_constant_channel_has_no_correlation() -> None:
    flat = torch.zeros(1, 1, 1, 1, dtype=torch.float64)
    assert Moments(flat, flat + 1, flat).pearson(1e-6) == 0
