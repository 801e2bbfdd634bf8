"""How much of one thing a linear function of others explains, in many windows at once."""

import numpy as np
from numpy.typing import NDArray

Planes = NDArray[np.floating]


def explained_by(
    causes: Planes, effect: Planes, grain: float, weight: float | Planes = 1
) -> Planes:
    """(N,): the variance of effect (n, N), in N windows of n pixels, that a linear function of the
    causes (C, n, N) explains. Both have a mean of 0 in each window.

    weight: of each pixel (n, N); or of all. grain: variance of causes below which they are noise.

    It is sᵀ A⁻¹ s of what they share, s, and what the causes share among themselves, A. As A = L Lᵀ
    (Cholesky), it is the square of L⁻¹ s. All windows go through each step together: solving them
    one by one takes ten times as long.
    """
    count = effect.shape[0] if np.isscalar(weight) else np.sum(weight, 0)

    def shared(one: Planes, other: Planes) -> Planes:
        return (one * other).sum(0) / count

    weighted = causes * weight
    lower: list[list[Planes]] = []
    explained = np.zeros(effect.shape[1])
    solved: list[Planes] = []
    for i, cause in enumerate(weighted):
        row: list[Planes] = []
        for j in range(i):
            rest = shared(cause, causes[j]) - sum(a * b for a, b in zip(row, lower[j]))
            row.append(rest / lower[j][j])
        row.append(np.sqrt(shared(cause, causes[i]) + grain - sum(a * a for a in row)))
        rest = shared(cause, effect) - sum(a * b for a, b in zip(row, solved))
        solved.append(rest / row[i])
        lower.append(row)
        explained += solved[i] ** 2
    return explained
