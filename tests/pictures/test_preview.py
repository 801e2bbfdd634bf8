"""The picture of `--preview`: known colours at known places, and no crash on odd inputs."""

import re
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from ducos.pictures import crops as look
from ducos.pictures import preview
from ducos.pictures.palette import colourise
from ducos.pictures.preview import BAR, HATCH, Scale, comparison
from tests.places import REPOSITORY

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def step_pair(H: int = 120, W: int = 160, ratio: int = 8) -> Arrays:
    """Near (1 m) left of the middle, far (3 m) right of it; rgb, low, its mask, depth, mask."""
    depth = np.full((H, W), 1, np.float32)
    depth[:, W // 2 :] = 3
    low = depth[ratio // 2 :: ratio, ratio // 2 :: ratio].copy()
    rgb = np.repeat((depth / 4)[..., None], 3, axis=2)
    return rgb, low, np.ones(low.shape, np.bool_), depth, np.ones(depth.shape, np.bool_)


def palette_end(share: float) -> np.ndarray:
    return colourise(np.full((1, 1), share, np.float32), lowest=0, highest=1)[0, 0]


# ------------------------------------------------------------------------------------- the scale


def test_the_ends_of_the_scale_have_the_ends_of_the_palette() -> None:
    scale = Scale(1.0, 4.0, logarithmic=True)
    values = np.array([[1, 2, 4, 0.1, 50]], np.float32)
    painted = scale.paint(values, np.ones(values.shape, np.bool_))[0]
    assert np.array_equal(painted[0], palette_end(0))
    assert np.array_equal(painted[1], palette_end(0.5)), "2 m is half way from 1 to 4 in ratios"
    assert np.array_equal(painted[2], palette_end(1))
    assert np.array_equal(painted[3], painted[0]), "nearer than the scale takes its end's colour"
    assert np.array_equal(painted[4], painted[2])


def test_narrow_ranges_are_linear_and_wide_ones_logarithmic() -> None:
    every = np.ones((1, 100), np.bool_)
    narrow = np.linspace(2, 3, 100, dtype=np.float32)[None]
    assert not Scale.of(narrow, every).logarithmic
    assert Scale.of(5 * (narrow - 1.9), every).logarithmic
    assert not Scale.of(50 * (narrow - 2.5), every).logarithmic, "negative levels have no logarithm"


def test_holes_have_no_say_in_the_scale() -> None:
    values = np.full((10, 10), 2, np.float32)
    values[:5] = 60_000
    valid = values == 2
    scale = Scale.of(values, valid)
    assert (scale.lowest, scale.highest) == (2, 2)


def test_holes_are_hatched_in_greys_that_no_depth_has() -> None:
    painted = Scale(1, 2).paint(np.ones((9, 9), np.float32), np.zeros((9, 9), np.bool_))
    assert {tuple(pixel) for pixel in painted.reshape(-1, 3).tolist()} == set(HATCH)
    palette = colourise(np.arange(256, dtype=np.float32)[None], lowest=0, highest=255)
    assert not {tuple(pixel) for pixel in palette[0].tolist()} & set(HATCH)


def test_the_bar_shows_the_colours_of_its_scale() -> None:
    bar = Scale(1, 3).bar(400)
    assert bar.shape == (44, 400, 3)
    row = bar[12]
    assert np.array_equal(row[24], palette_end(0))
    assert np.array_equal(row[24 + 400 - 76 - 48 - 1], palette_end(1))


@pytest.mark.parametrize(
    ("lowest", "highest", "logarithmic", "expected"),
    [
        (0.0, 1.0, False, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.5, 3.4, True, [0.5, 0.7, 1, 1.5, 2, 3]),
        (0.9, 110.0, True, [1, 2, 5, 10, 20, 50, 100]),
        (7.0, 7.0, False, [7]),
    ],
)
def test_ticks_are_round_numbers(
    lowest: float, highest: float, logarithmic: bool, expected: list[float]
) -> None:
    assert preview.ticks(lowest, highest, logarithmic) == expected


# ------------------------------------------------------------------------------ where to look


def test_windows_lie_on_the_edge_and_do_not_overlap() -> None:
    _, low, valid, depth, _ = step_pair(H=480, W=640)
    found = look.windows(low, valid, (480, 640))
    assert len(found) == 3
    for window in found:
        assert window.left < 320 < window.left + window.side
        assert window.cut(depth).shape == (window.side, window.side)
    tops = sorted(window.top for window in found)
    assert all(b - a >= found[0].side for a, b in pairwise(tops))


def test_the_line_crosses_the_clearest_edge() -> None:
    _, low, valid, depth, _ = step_pair()
    line = look.clearest_edge(low, valid, depth.shape)
    assert line is not None
    assert line.across
    assert line.start < 80 < line.stop
    along = line.cut(depth)
    assert along[0] == 1
    assert along[-1] == 3
    # Each dot stands where its low-resolution pixel has its centre.
    assert np.array_equal(depth[line.at, np.rint(line.places).astype(int)], line.samples)


def test_a_turned_map_has_the_turned_line() -> None:
    _, low, valid, depth, _ = step_pair()
    line = look.clearest_edge(low, valid, depth.shape)
    turned = look.clearest_edge(low.T.copy(), valid.T.copy(), depth.shape[::-1])
    assert line is not None
    assert turned is not None
    assert not turned.across
    assert (turned.at, turned.start, turned.stop) == (line.at, line.start, line.stop)


def test_the_line_avoids_holes() -> None:
    _, low, valid, depth, _ = step_pair()
    valid[: low.shape[0] - 1, 10] = False  # the edge is measured in the last row alone
    line = look.clearest_edge(np.where(valid, low, 0), valid, depth.shape)
    assert line is not None
    assert line.at == depth.shape[0] - 4


def test_flat_maps_have_nothing_to_show() -> None:
    low, valid = np.full((30, 40), 2, np.float32), np.ones((30, 40), np.bool_)
    assert look.windows(low, valid, (240, 320)) == []
    assert look.clearest_edge(low, valid, (240, 320)) is None


# ------------------------------------------------------------------------------------ the sheet


def test_panels_stand_side_by_side_on_one_scale() -> None:
    rgb, low, low_valid, depth, valid = step_pair(H=480, W=640)
    low_valid[3, 3] = False
    sheet = comparison(rgb, low, low_valid, depth, valid)
    assert sheet.dtype == np.uint8
    assert sheet.shape[1] == 3 * 640
    near, far = palette_end(0), palette_end(1)
    for panel in (1, 2):  # the input and the result: 1 m is the scale's near end, 3 m its far one
        assert np.array_equal(sheet[BAR + 240, panel * 640 + 100], near)
        assert np.array_equal(sheet[BAR + 240, panel * 640 + 500], far)
    assert np.array_equal(sheet[BAR + 300, 40], [64, 64, 64]), "the colour panel"
    hole = sheet[BAR + 24 : BAR + 32, 640 + 24 : 640 + 32].reshape(-1, 3)
    assert {tuple(pixel) for pixel in hole.tolist()} == set(HATCH)


def test_the_truth_is_one_more_panel() -> None:
    rgb, low, low_valid, depth, valid = step_pair(H=480, W=640)
    truth = depth.copy()
    truth[:, :64] = 0
    sheet = comparison(rgb, low, low_valid, depth, valid, truth)
    assert sheet.shape[1] == 4 * 640
    assert tuple(sheet[BAR + 240, 3 * 640 + 10]) in HATCH, "unknown truth is a hole"
    assert np.array_equal(sheet[BAR + 240, 3 * 640 + 500], palette_end(1))


def test_crops_show_input_bicubic_and_result() -> None:
    rgb, low, low_valid, depth, valid = step_pair(H=480, W=640)
    places = look.windows(low, low_valid, (480, 640))
    maps = preview.Maps(rgb, low, low_valid, depth, valid)
    strips = preview.crop_strips(maps, places, side=100)
    assert strips.shape == (BAR + 3 * 100, 4 * 100, 3)
    line = strips[BAR + 50]
    near, far = palette_end(0), palette_end(1)

    def mixed(tile: np.ndarray) -> int:
        inside = tile[3:-3]
        return int((~((inside == near).all(1) | (inside == far).all(1))).sum())

    assert mixed(line[100:200]) == 0, "the input is two values"
    assert mixed(line[200:300]) > 5, "bicubic passes through those between"
    assert mixed(line[300:400]) == 0


def test_the_profile_draws_its_dots_where_the_input_is() -> None:
    maps = preview.Maps(*step_pair())
    line = look.clearest_edge(maps.low, maps.low_valid, maps.size)
    assert line is not None
    smooth = line.cut(maps.smooth)
    plot = preview.profile(maps, line, area=(600, 400))
    assert plot.shape == (400, 600, 3)
    # The axes: 56 to 584 across, 64 to 360 down; bicubic overshoots both levels by the same.
    margin = 0.06 * (smooth.max() - smooth.min())
    span = smooth.max() - smooth.min() + 2 * margin
    for place, value in zip(line.places, line.samples, strict=True):
        x = 56 + (place - line.start) / (line.stop - 1 - line.start) * 528
        y = 360 - (value - smooth.min() + margin) / span * 296
        assert tuple(plot[round(y), round(x)]) == preview.INK


def test_big_images_are_shown_smaller() -> None:
    rgb, low, low_valid, depth, valid = step_pair(H=1500, W=2000, ratio=20)
    sheet = comparison(rgb, low, low_valid, depth, valid)
    assert sheet.shape[1] == 3 * 640
    assert np.array_equal(sheet[BAR + 240, 640 + 100], palette_end(0))


@pytest.mark.parametrize(
    ("size", "low_size"),
    [((1, 1), (1, 1)), ((2, 900), (1, 30)), ((900, 2), (30, 1)), ((7, 5), (3, 2)),
     ((45, 61), (12, 16)), ((40, 30), (80, 60))],
)  # fmt: skip
def test_odd_sizes(size: tuple[int, int], low_size: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    rgb = rng.random((*size, 3), np.float32)
    low = rng.random(low_size, np.float32) + 0.5
    low_valid = rng.random(low_size) > 0.3
    low_valid[0, 0] = True
    depth = rng.random(size, np.float32) + 0.5
    valid = rng.random(size) > 0.2
    sheet = comparison(rgb, np.where(low_valid, low, 0), low_valid, depth, valid, truth=depth)
    assert sheet.ndim == 3
    assert sheet.shape[2] == 3
    assert max(sheet.shape) <= 4 * 640
    Image.fromarray(sheet)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 1e-6, 5e4])
def test_constant_maps(value: float) -> None:
    low, depth = np.full((6, 8), value, np.float32), np.full((48, 64), value, np.float32)
    rgb = np.zeros((48, 64, 3), np.float32)
    sheet = comparison(rgb, low, np.ones((6, 8), np.bool_), depth, np.ones((48, 64), np.bool_))
    assert np.array_equal(sheet[BAR + 100, 320 + 100], palette_end(0.5))


def test_relative_maps_with_zeros_and_a_result_without_a_valid_pixel() -> None:
    rng = np.random.default_rng(1)
    low = rng.integers(-3, 4, (12, 16)).astype(np.float32)
    depth = np.zeros((96, 128), np.float32)
    nothing = np.zeros(depth.shape, np.bool_)
    rgb = np.zeros((96, 128, 3), np.float32)
    sheet = comparison(rgb, low, np.ones(low.shape, np.bool_), depth, nothing, unit="")
    width = sheet.shape[1] // 3
    result = sheet[BAR : BAR + 200, 2 * width : 3 * width].reshape(-1, 3)
    assert {tuple(pixel) for pixel in result.tolist()} == set(HATCH)


def test_areas_of_holes_are_never_chosen() -> None:
    _, low, valid, _, _ = step_pair(H=480, W=640)
    rng = np.random.default_rng(2)
    low[:, :20] = rng.random((60, 20)) * 5 + 0.1  # wild, but not measured
    valid[:, :20] = False
    for window in look.windows(low, valid, (480, 640)):
        assert window.left >= 160 - window.side // 2


def test_pictures_of_the_docs_exist_and_are_small() -> None:
    for page in [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]:
        for link in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            picture = page.parent / link
            assert picture.is_file(), f"{page.name} shows {link}, which is not there"
            assert picture.stat().st_size < 250_000, f"{link} is too large"


def test_crops_show_edges_and_not_slanted_planes() -> None:
    """At ratio 1 a floor has a small jump at every pixel; a box is what to look at."""
    rows, columns = np.mgrid[:240, :320]
    depth = (1 + rows / 80 + columns / 200).astype(np.float32)
    depth[150:190, 220:260] = 1.2
    found = look.windows(depth, np.ones(depth.shape, bool), depth.shape)
    assert found
    for window in found:
        assert np.ptp(window.cut(depth)) > 0.5
        assert (window.cut(depth) == np.float32(1.2)).any()
