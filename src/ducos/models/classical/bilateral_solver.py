"""The fast bilateral solver: a classical least-squares fit on a grid of places and colours.

OpenCV has one too, but leaves it out of the published wheels.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ducos.models.classical.measurements import image_size, measured_share, upsampling_ratio
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.resize import bicubic

Array = NDArray[np.float64]


class FastBilateralSolver(Model):
    """Least squares on a bilateral grid (Barron, Poole 2016), read out by local planes.

    Pixels of like place and colour share one unknown. The solver makes unknowns agree with the
    trusted depth in them and with their neighbours on the grid. The original paints each cell with
    its one value, which shows as steps on slanted surfaces; here a cell is painted with the plane
    through its own and its neighbours' values.

    Args:
        sigma_space: side of a cell, in low-resolution pixels.
        sigma_luma, sigma_chroma: side of a cell, in units of [0, 1] colour.
        smoothness: pull between neighbouring cells, relative to the trust in the depth.
        sigma_measured: width of the trusted bump around a measurement, in low-resolution pixels.
    """

    def __init__(
        self,
        *,
        sigma_space: float = 0.5,
        sigma_luma: float = 0.03,
        sigma_chroma: float = 0.03,
        smoothness: float = 5.0,
        sigma_measured: float = 0.15,
    ):
        super().__init__()
        self.sigma_space = sigma_space
        self.sigma_luma = sigma_luma
        self.sigma_chroma = sigma_chroma
        self.smoothness = smoothness
        self.sigma_measured = sigma_measured

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        H, W = image_size(rgb)
        cell = max(2.0, self.sigma_space * upsampling_ratio(rgb, low))
        upsampled = bicubic(low, (H, W))
        weight = measured_share(low, valid, H, W, self.sigma_measured)
        solved = []
        for colour, values, weights in zip(rgb, upsampled[:, 0], weight[:, 0]):
            depth = solve_on_grid(
                self.grid_position(_array(colour.permute(1, 2, 0)), cell),
                _array(values).ravel(),
                _array(weights).ravel(),
                self.smoothness,
            )
            solved.append(torch.from_numpy(depth.reshape(1, H, W)))
        return Prediction(torch.stack(solved).to(low))

    def grid_position(self, colour: Array, cell: float) -> Array:
        """Row, column, luma and two chromas of each pixel of (H, W, 3), in cells: (H·W, 5)."""
        H, W, _ = colour.shape
        rows, columns = np.meshgrid(np.arange(H), np.arange(W), indexing="ij")
        red, green, blue = np.moveaxis(colour, -1, 0)
        luma = 0.299 * red + 0.587 * green + 0.114 * blue
        axes = [
            rows / cell,
            columns / cell,
            luma / self.sigma_luma,
            0.564 * (blue - luma) / self.sigma_chroma,
            0.713 * (red - luma) / self.sigma_chroma,
        ]
        return np.stack(axes, -1).reshape(H * W, 5)


def _array(x: Tensor) -> Array:
    return np.ascontiguousarray(x.detach().cpu().numpy(), dtype=np.float64)


def solve_on_grid(
    position: Array,
    depth: Array,
    weight: Array,
    smoothness: float,
) -> Array:
    """Bilateral solver for N pixels at `position` (N, 5) of the grid, the first two being space."""
    from scipy import sparse
    from scipy.sparse.linalg import cg

    # Cells that hold pixels, found by one number per cell with a margin for neighbours.
    cell = np.floor(position).astype(np.int64)
    cell -= cell.min(0) - 1
    strides = np.concatenate([[1], np.cumprod(cell.max(0)[:-1] + 2)])
    codes, of_pixel = np.unique(cell @ strides, return_inverse=True)
    pixels = np.arange(len(depth))
    splat = sparse.csr_matrix((np.ones(len(depth)), (of_pixel, pixels)))  # (cells, N)

    # Blur: each cell with its two neighbours along every axis, weights 1 2 1.
    blur = sparse.identity(len(codes), format="csr") * (2.0 * len(strides))
    for stride in strides:
        place = np.minimum(np.searchsorted(codes, codes + stride), len(codes) - 1)
        found = np.flatnonzero(codes[place] == codes + stride)
        link = sparse.csr_matrix((np.ones(len(found)), (found, place[found])), shape=blur.shape)
        blur = blur + link + link.T

    # Scale the blur so that its rows and columns sum to the cells' pixel counts.
    count = splat @ np.ones(len(depth))
    scale = np.ones(len(codes))
    for _ in range(10):
        scale = np.sqrt(scale * count / (blur @ scale))
    total = scale * (blur @ scale)
    laplacian = sparse.diags(total) - sparse.diags(scale) @ blur @ sparse.diags(scale)

    trusted = splat @ weight
    wanted = splat @ (weight * depth)
    matrix = (smoothness * laplacian + sparse.diags(trusted)).tocsr()
    start = wanted / trusted
    preconditioner = sparse.diags(1 / matrix.diagonal())
    value, _ = cg(matrix, wanted, x0=start, M=preconditioner, rtol=1e-6, maxiter=200)

    # Plane through each cell and its neighbours, by weighted least squares.
    share = sparse.diags(1 / (blur @ count)) @ blur @ sparse.diags(count)
    centre = (splat @ position[:, :2]) / count[:, None]  # (cells, 2)
    mean_centre, mean_value = share @ centre, share @ value
    outer = (centre[:, :, None] * centre[:, None, :]).reshape(-1, 4)
    spread = (share @ outer).reshape(-1, 2, 2) - mean_centre[:, :, None] * mean_centre[:, None, :]
    slant = share @ (centre * value[:, None]) - mean_centre * mean_value[:, None]
    slope = np.linalg.solve(spread + 1e-3 * np.eye(2), slant[:, :, None])[:, :, 0]
    away = position[:, :2] - centre[of_pixel]
    return value[of_pixel] + (slope[of_pixel] * away).sum(1)
