"""How a map was shrunk is read off its edges, and results are held to that."""

import pytest
import torch
from torch import Tensor

from ducos.models.ducos.shrinking import shares, shrunk_as
from ducos.models.strips.workspace import Workspace
from ducos.resize import area, bicubic, nearest

WAYS = {"area": area, "bicubic": bicubic, "points": nearest}


def discs(size: int = 192) -> Tensor:
    """(1, 1, size, size): overlapping discs at many depths, in [0, 1]."""
    generator = torch.Generator().manual_seed(3)
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    scene = torch.full((size, size), 0.05)
    for _ in range(25):
        cy, cx, r, depth = torch.rand(4, generator=generator).tolist()
        inside = (y - cy * size) ** 2 + (x - cx * size) ** 2 < (0.05 + 0.15 * r) ** 2 * size**2
        scene[inside] = depth
    return scene[None, None]


@pytest.mark.parametrize("ratio", [2, 3, 4])
@pytest.mark.parametrize("way", WAYS)
def test_the_way_is_recognised(way: str, ratio: int) -> None:
    low = WAYS[way](discs(), (192 // ratio, 192 // ratio))
    found = shares(low, None, torch.tensor([ratio, ratio]))[0]
    assert found.sum() == pytest.approx(1)
    assert found[list(WAYS).index(way)] > 0.9


def test_maps_that_do_not_tell_are_means() -> None:
    plane = torch.linspace(0, 1, 40).expand(1, 1, 30, 40)
    noise = torch.rand(1, 1, 48, 48, generator=torch.Generator().manual_seed(0))
    for low in (plane, noise, torch.zeros(1, 1, 3, 2)):
        assert shares(low, None, torch.tensor([4, 4]))[0, 0] > 0.9


def test_steps_beside_holes_do_not_count() -> None:
    low = bicubic(discs(), (48, 48))
    nothing = torch.zeros_like(low, dtype=torch.bool)
    assert shares(low, nothing, torch.tensor([4, 4])).tolist() == [[1, 0, 0]]


def test_each_map_of_a_batch_is_shrunk_in_its_own_way() -> None:
    scene = discs().expand(3, -1, -1, -1)
    got = shrunk_as(scene, (48, 48), torch.eye(3))
    for i, way in enumerate(WAYS.values()):
        torch.testing.assert_close(got[i], way(scene[i : i + 1], (48, 48))[0])


def test_points_are_taken_from_maps_in_strips_too() -> None:
    scene, by = discs(), torch.tensor([[0.2, 0.3, 0.5]])
    with Workspace(1_000_000, torch.device("cpu"), torch.float32) as work:
        strips = shrunk_as(work.given(scene), (37, 41), by)
    torch.testing.assert_close(strips, shrunk_as(scene, (37, 41), by))
