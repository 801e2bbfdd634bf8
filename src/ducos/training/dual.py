"""Lagrangian duality (section 3.2, Alg. 1): multipliers for named constraints. No depth in it.

The primal problem is: minimise the objective subject to value_k < epsilon_k for every constraint k.
Three verbs: `lagrangian` (pure, differentiable), `observe` (accumulate), `step` (dual ascent).

With epsilon = 0, as in the paper's Alg. 1, every violation is a loss and never negative, so
multipliers can only grow and the clamp at zero never acts. With a real epsilon a multiplier rises
while its constraint is violated and falls after.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ducos.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

DECAYS = ("none", "compounding", "linear")


@dataclass(frozen=True)
class Constraint:
    """One inequality value < epsilon, with its multiplier's start and ascent rate.

    penalty > 0 adds the augmented-Lagrangian term, smooth for inequalities:
    (relu(m + penalty·g)² − m²) / (2·penalty) instead of m·g, with violation g = value − epsilon.
    """

    epsilon: float = 0.0
    multiplier: float = 0.0
    rate: float = 0.0
    penalty: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epsilon", "multiplier", "rate", "penalty"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must be 0 or more, got {getattr(self, name)}")


class Dual:
    """One multiplier per named constraint.

    Args:
        constraints: name -> Constraint.
        decay: how the ascent rate shrinks over T epochs. "compounding" reads Alg. 1 literally:
            each epoch t multiplies the current rate by (1 − t/T). "linear" is rate·(1 − t/T).
    """

    def __init__(self, constraints: Mapping[str, Constraint], *, decay: str = "none"):
        if decay not in DECAYS:
            raise InputError(f"decay must be one of {', '.join(DECAYS)}, got {decay!r}")
        self.constraints = dict(constraints)
        self.decay = decay
        self.multipliers = {name: c.multiplier for name, c in self.constraints.items()}
        self.scale = 1.0  # what is left of every rate under compounding decay
        self._sums = dict.fromkeys(self.constraints, 0.0)
        self._count = 0
        self._skipped = 0  # batches with a NaN since the last step

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.constraints)

    def lagrangian(self, objective: "Tensor", values: "Mapping[str, Tensor]") -> "Tensor":
        """objective + Σ multiplier·violation (or its augmented form); multipliers are constants."""
        total = objective
        for name, constraint in self.constraints.items():
            multiplier = self.multipliers[name]
            violation = values[name] - constraint.epsilon
            if constraint.penalty > 0:
                shifted = (multiplier + constraint.penalty * violation).relu()
                total = total + (shifted**2 - multiplier**2) / (2 * constraint.penalty)
            else:
                total = total + multiplier * violation
        return total

    def observe(self, values: Mapping[str, float]) -> None:
        """Accumulate constraint values until the next `step`; a batch with a NaN has no say."""
        if not all(math.isfinite(values[name]) for name in self.constraints):
            self._skipped += 1
            return
        for name in self.constraints:
            self._sums[name] += float(values[name])
        self._count += 1

    def step(self, epoch: int = 1, epochs: int = 1) -> dict[str, float]:
        """Dual ascent on the mean of what was observed; returns those means.

        epoch counts from 1 to epochs, as in Alg. 1. If every batch had a NaN, so do the means, and
        the multipliers stay.
        """
        if self._count == 0 and not self._skipped:
            raise InputError("step() before any observe(): there is no constraint value to act on")
        left = 1 - epoch / epochs
        if self.decay == "compounding":
            self.scale *= left
        elif self.decay == "linear":
            self.scale = left
        means = dict.fromkeys(self.constraints, math.nan)
        if self._count:
            means = {name: total / self._count for name, total in self._sums.items()}
            for name, constraint in self.constraints.items():
                # An augmented term ascends at its penalty unless a rate is given.
                rate = (constraint.rate or constraint.penalty) * self.scale
                ascended = self.multipliers[name] + rate * (means[name] - constraint.epsilon)
                self.multipliers[name] = max(0.0, ascended)  # KKT
        self._sums = dict.fromkeys(self.constraints, 0.0)
        self._count = self._skipped = 0
        return means

    def state_dict(self) -> dict:
        """Multipliers, decay and what is observed so far, by name."""
        return {
            "multipliers": dict(self.multipliers),
            "scale": self.scale,
            "sums": dict(self._sums),
            "count": self._count,
            "skipped": self._skipped,
        }

    def load_state_dict(self, state: dict) -> None:
        """Restore; the constraint names must be the same, in any order."""
        saved, ours = set(state["multipliers"]), set(self.constraints)
        if saved != ours:
            raise InputError(
                f"checkpoint has constraints {sorted(saved)}, config has {sorted(ours)}"
            )
        self.multipliers = {name: float(state["multipliers"][name]) for name in self.constraints}
        self.scale = float(state["scale"])
        self._sums = {name: float(state["sums"][name]) for name in self.constraints}
        self._count = int(state["count"])
        self._skipped = int(state["skipped"])
