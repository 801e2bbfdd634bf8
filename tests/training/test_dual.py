"""Multipliers against Alg. 1 by hand, against exact solutions, and against the `cooper` library."""

import json
import math

import cooper
import pytest
import torch
from torch import Tensor

from ducos.training.dual import Constraint, Dual
from ducos.training.table import PRESETS, preset_dual

# Alg. 1 by hand


def test_the_papers_preset_follows_algorithm_1_literally() -> None:
    """T = 4: the step length is multiplied by 3/4, then 1/2, then 1/4, then 0: it compounds."""
    dual = preset_dual("paper")
    losses = [(0.3, 0.5), (0.2, 0.4), (0.1, 0.3), (0.7, 0.9)]
    expected_lambda, expected_mu = 0.01, 0.05
    rate = 0.01
    for epoch, (alignment, edge) in enumerate(losses, start=1):
        dual.observe({"alignment": alignment, "edge": edge})
        dual.step(epoch, 4)
        rate *= 1 - epoch / 4
        expected_lambda += rate * alignment
        expected_mu += rate * edge
        assert dual.multipliers["alignment"] == pytest.approx(expected_lambda, rel=1e-14)
        assert dual.multipliers["edge"] == pytest.approx(expected_mu, rel=1e-14)
    # The same by pencil: 0.01·(3/4·0.3 + 3/8·0.2 + 3/32·0.1 + 0)
    assert dual.multipliers["alignment"] == pytest.approx(0.01 + 0.01 * 0.309375, rel=1e-12)
    assert dual.multipliers["edge"] == pytest.approx(0.05 + 0.01 * 0.553125, rel=1e-12)


def test_compounding_moves_a_multiplier_by_about_a_tenth() -> None:
    """100 epochs with a loss of 0.01: the whole ascent is 0.112 step lengths (STYLE section 6)."""
    dual = preset_dual("paper")
    for epoch in range(1, 101):
        dual.observe({"alignment": 0.01, "edge": 0.01})
        dual.step(epoch, 100)
    ascended = (dual.multipliers["alignment"] - 0.01) / 0.01
    by_hand = sum(math.prod(1 - s / 100 for s in range(1, t + 1)) for t in range(1, 101))
    assert ascended / 0.01 == pytest.approx(by_hand, rel=1e-9)
    assert dual.multipliers["alignment"] == pytest.approx(0.01 + 1e-4 * by_hand, rel=1e-12)


def test_linear_decay() -> None:
    dual = Dual({"edge": Constraint(multiplier=1.0, rate=0.5)}, decay="linear")
    values = [2.0, 1.0, 4.0, 3.0, 9.0]
    expected = 1.0
    for epoch, value in enumerate(values, start=1):
        dual.observe({"edge": value})
        dual.step(epoch, 5)
        expected += 0.5 * (1 - epoch / 5) * value
        assert dual.multipliers["edge"] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("decay", ["linear", "compounding"])
def test_a_step_without_an_epoch_is_the_last_one(decay: str) -> None:
    dual = Dual({"edge": Constraint(multiplier=1.0, rate=0.5)}, decay=decay)
    dual.observe({"edge": 1.0})
    dual.step()
    assert (dual.scale, dual.multipliers["edge"]) == (0.0, 1.0)


def test_without_decay_the_epoch_does_not_matter() -> None:
    dual = Dual({"edge": Constraint(multiplier=1.0, rate=0.5)})
    for epoch in (1, 2, 9):
        dual.observe({"edge": 2.0})
        dual.step(epoch, 9)
    assert dual.multipliers["edge"] == pytest.approx(4.0)


def test_the_fixed_preset_never_moves() -> None:
    dual = preset_dual("fixed")
    before = dict(dual.multipliers)
    for epoch in range(1, 6):
        dual.observe({"alignment": 5.0, "edge": 7.0})
        dual.step(epoch, 5)
    assert dual.multipliers == before


def test_step_acts_on_the_mean_and_forgets_it() -> None:
    dual = Dual({"edge": Constraint(epsilon=1.0, multiplier=1.0, rate=1.0)})
    for value in (1.0, 2.0, 6.0):
        dual.observe({"edge": value})
    assert dual.step() == {"edge": 3.0}
    assert dual.multipliers["edge"] == pytest.approx(3.0)
    dual.observe({"edge": 0.0})
    assert dual.step() == {"edge": 0.0}
    assert dual.multipliers["edge"] == pytest.approx(2.0)


def test_with_an_epsilon_a_multiplier_rises_while_violated_and_falls_after() -> None:
    dual = Dual(dict.fromkeys(("alignment", "edge"), Constraint(epsilon=0.1, rate=1.0)))
    history = []
    for value in [0.4, 0.3, 0.2, 0.1, 0.05, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]:
        dual.observe({"alignment": value, "edge": 0.0})
        dual.step()
        history.append(dual.multipliers["alignment"])
    assert history[0] < history[1] < history[2]
    assert history[3] == pytest.approx(history[2])  # on the boundary
    assert history[3] > history[4] > history[5] > history[6]
    assert history[-1] == 0  # satisfied for long: released, and never negative
    assert dual.multipliers["edge"] == 0


def test_values_may_be_tensors() -> None:
    dual = preset_dual("paper")
    dual.observe({"alignment": torch.tensor(0.5), "edge": torch.tensor(0.25)})
    assert dual.step(1, 2) == {"alignment": 0.5, "edge": 0.25}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_finite_never_reaches_a_multiplier(value: float) -> None:
    """One broken batch must neither wipe a multiplier nor make it infinite without a word."""
    dual = Dual({"edge": Constraint(multiplier=0.5, rate=0.1)})
    dual.observe({"edge": 1.0})
    try:
        dual.observe({"edge": value})
    except ValueError:
        return
    dual.step()
    assert dual.multipliers["edge"] == pytest.approx(0.6)


def test_an_epoch_without_a_finite_value_moves_nothing_but_the_decay() -> None:
    """The step length of Alg. 1 shrinks with the epochs, whatever they brought."""
    dual = preset_dual("paper")
    dual.observe({"alignment": math.nan, "edge": 0.5})
    assert all(math.isnan(mean) for mean in dual.step(1, 4).values())
    assert dual.multipliers == {"alignment": 0.01, "edge": 0.05}
    dual.observe({"alignment": 0.3, "edge": 0.5})
    dual.step(2, 4)
    rate = 0.01 * 3 / 4 * 1 / 2
    assert dual.multipliers["alignment"] == pytest.approx(0.01 + rate * 0.3, rel=1e-12)


def test_a_skipped_batch_survives_a_checkpoint() -> None:
    dual = preset_dual("paper")
    dual.observe({"alignment": math.nan, "edge": 0.5})
    again = preset_dual("paper")
    again.load_state_dict(json.loads(json.dumps(dual.state_dict())))
    for each in (dual, again):
        each.step(1, 4)
    assert again.state_dict() == dual.state_dict()


# The Lagrangian


def test_lagrangian_by_hand() -> None:
    dual = Dual({"a": Constraint(epsilon=0.5, multiplier=2.0), "b": Constraint(multiplier=3.0)})
    values = {"a": torch.tensor(0.75), "b": torch.tensor(0.25)}
    assert dual.lagrangian(torch.tensor(1.0), values).item() == pytest.approx(1 + 0.5 + 0.75)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.5, 2 * 1 + 4 / 2 * 1), (0.5, 0.0), (0.25, 2 * -0.25 + 4 / 2 * 0.0625), (-9.0, -4 / 8)],
)
def test_augmented_lagrangian_by_hand(value: float, expected: float) -> None:
    """m·g + ρ/2·g² while m + ρ·g is positive, −m²/2ρ beyond: ρ = 4, m = 2, ε = 0.5."""
    dual = Dual({"a": Constraint(epsilon=0.5, multiplier=2.0, penalty=4.0)})
    total = dual.lagrangian(torch.tensor(0.0), {"a": torch.tensor(value)})
    assert total.item() == pytest.approx(expected)


def test_gradients_flow_through_values_only() -> None:
    dual = Dual({"a": Constraint(multiplier=2.0), "b": Constraint(multiplier=0.0)})
    a, b, objective = (torch.tensor(1.0, requires_grad=True) for _ in range(3))
    dual.lagrangian(objective, {"a": a, "b": b}).backward()
    assert (objective.grad, a.grad, b.grad) == (1, 2, 0)


def test_lagrangian_changes_nothing() -> None:
    dual = preset_dual("paper")
    before = json.dumps(dual.state_dict())
    dual.lagrangian(torch.tensor(1.0), {"alignment": torch.tensor(1.0), "edge": torch.tensor(1.0)})
    assert json.dumps(dual.state_dict()) == before


# Exact solutions: minimise ½|z − (2, 1)|² under x + y ≤ 1 and x ≤ bound.
# Where both bind, the KKT conditions give z = (0.25, 0.75) and multipliers (0.25, 1.5); where the
# second is slack, z = (1, 0) and multipliers (1, 0).

TARGET = torch.tensor([2.0, 1.0], dtype=torch.float64)


def qp_values(z: Tensor) -> dict[str, Tensor]:
    return {"sum": z.sum(), "first": z[0].clone()}


@pytest.mark.parametrize("penalty", [0.0, 2.0])
@pytest.mark.parametrize(
    ("bound", "solution", "multipliers"),
    [(0.25, (0.25, 0.75), (0.25, 1.5)), (5.0, (1.0, 0.0), (1.0, 0.0))],
)
def test_a_quadratic_program_is_solved_exactly(
    bound: float, solution: tuple, multipliers: tuple, penalty: float
) -> None:
    dual = Dual(
        {
            "sum": Constraint(epsilon=1.0, rate=0.1, penalty=penalty),
            "first": Constraint(epsilon=bound, rate=0.1, penalty=penalty),
        }
    )
    z = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([z], lr=0.1)
    for _ in range(1500):
        values = qp_values(z)
        optimizer.zero_grad()
        dual.lagrangian(0.5 * ((z - TARGET) ** 2).sum(), values).backward()
        optimizer.step()
        dual.observe({name: float(value.detach()) for name, value in values.items()})
        dual.step()
    assert z.tolist() == pytest.approx(solution, abs=1e-5)
    assert tuple(dual.multipliers.values()) == pytest.approx(multipliers, abs=1e-5)


def test_an_augmented_term_ascends_at_its_penalty() -> None:
    """The method of multipliers: rate = penalty when no rate is given."""
    dual = Dual({"a": Constraint(epsilon=1.0, penalty=4.0)})
    dual.observe({"a": 1.5})
    dual.step()
    assert dual.multipliers["a"] == pytest.approx(2.0)


# cooper as the oracle


class QuadraticProgram(cooper.ConstrainedMinimizationProblem):
    """The program above in cooper's words."""

    def __init__(self, bound: float, penalty: float, start: tuple[float, float]):
        super().__init__()
        self.bound = bound
        augmented = penalty > 0
        for name, multiplier in zip(("sum", "first"), start, strict=True):
            constraint = cooper.Constraint(
                constraint_type=cooper.ConstraintType.INEQUALITY,
                formulation_type=(
                    cooper.formulations.AugmentedLagrangian
                    if augmented
                    else cooper.formulations.Lagrangian
                ),
                multiplier=cooper.multipliers.DenseMultiplier(
                    init=torch.tensor([multiplier]), dtype=torch.float64
                ),
                penalty_coefficient=(
                    cooper.penalty_coefficients.DensePenaltyCoefficient(
                        init=torch.tensor([penalty], dtype=torch.float64)
                    )
                    if augmented
                    else None
                ),
            )
            setattr(self, name, constraint)

    def compute_cmp_state(self, z: Tensor) -> cooper.CMPState:
        values = qp_values(z)
        return cooper.CMPState(
            loss=0.5 * ((z - TARGET) ** 2).sum(),
            observed_constraints={
                self.sum: cooper.ConstraintState(violation=(values["sum"] - 1.0).reshape(1)),
                self.first: cooper.ConstraintState(
                    violation=(values["first"] - self.bound).reshape(1)
                ),
            },
        )


@pytest.mark.parametrize("penalty", [0.0, 0.7])
def test_the_trajectory_is_coopers(penalty: float) -> None:
    bound, rate, start = 0.25, 0.05, (0.5, 0.0)

    theirs = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    problem = QuadraticProgram(bound, penalty, start)
    optimizer = cooper.optim.SimultaneousOptimizer(
        cmp=problem,
        primal_optimizers=torch.optim.SGD([theirs], lr=0.1),
        dual_optimizers=torch.optim.SGD(problem.dual_parameters(), lr=rate, maximize=True),
    )

    ours = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    primal = torch.optim.SGD([ours], lr=0.1)
    dual = Dual(
        {
            "sum": Constraint(epsilon=1.0, multiplier=start[0], rate=rate, penalty=penalty),
            "first": Constraint(epsilon=bound, multiplier=start[1], rate=rate, penalty=penalty),
        }
    )
    for _ in range(300):
        optimizer.roll(compute_cmp_state_kwargs={"z": theirs})
        values = qp_values(ours)
        primal.zero_grad()
        dual.lagrangian(0.5 * ((ours - TARGET) ** 2).sum(), values).backward()
        primal.step()
        dual.observe({name: float(value.detach()) for name, value in values.items()})
        dual.step()
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
        for name, constraint in (("sum", problem.sum), ("first", problem.first)):
            assert dual.multipliers[name] == pytest.approx(
                constraint.multiplier().item(), abs=1e-10
            )
    assert dual.multipliers["first"] > 0.5  # the comparison was not of zeros


# State


def two(**order: Constraint) -> Dual:
    return Dual(
        order or {"a": Constraint(rate=1.0), "b": Constraint(rate=2.0)}, decay="compounding"
    )


def test_state_round_trip_in_the_middle_of_an_epoch() -> None:
    """Saved after some observations: what follows is the same to the last bit."""
    dual = two()
    dual.observe({"a": 0.1, "b": 0.7})
    dual.step(1, 5)
    dual.observe({"a": 0.3, "b": 0.9})

    state = json.loads(json.dumps(dual.state_dict()))  # as a checkpoint stores it
    again = two()
    again.load_state_dict(state)
    for each in (dual, again):
        each.observe({"a": 0.2, "b": 0.4})
        each.step(2, 5)
        each.observe({"a": 0.25, "b": 0.45})
        each.step(3, 5)
    assert again.multipliers == dual.multipliers
    assert again.state_dict() == dual.state_dict()


def test_a_reordered_config_cannot_swap_multipliers() -> None:
    dual = two()
    dual.observe({"a": 1.0, "b": 5.0})
    dual.step(1, 5)
    reordered = two(b=Constraint(rate=2.0), a=Constraint(rate=1.0))
    reordered.load_state_dict(dual.state_dict())
    assert reordered.names == ("b", "a")
    assert reordered.multipliers == dual.multipliers
    for each in (dual, reordered):
        each.observe({"a": 1.0, "b": 5.0})
        each.step(2, 5)
    assert reordered.multipliers == dual.multipliers


@pytest.mark.parametrize("names", [("a",), ("a", "b", "c"), ("a", "edge")])
def test_a_state_with_other_names_is_refused(names: tuple[str, ...]) -> None:
    other = Dual({name: Constraint() for name in names})
    with pytest.raises(ValueError, match="constraints"):
        two().load_state_dict(other.state_dict())


def test_the_state_is_a_copy() -> None:
    dual = two()
    state = dual.state_dict()
    dual.observe({"a": 1.0, "b": 1.0})
    dual.step(1, 5)
    assert state["multipliers"] == {"a": 0.0, "b": 0.0}


def test_epsilons_and_rates_come_from_the_config_not_the_file() -> None:
    dual = two()
    dual.observe({"a": 1.0, "b": 1.0})
    dual.step(1, 5)
    faster = two(a=Constraint(rate=10.0), b=Constraint(rate=20.0))
    faster.load_state_dict(dual.state_dict())
    assert faster.constraints["a"].rate == 10


# Refusals


def test_step_before_observe_is_refused() -> None:
    dual = preset_dual("paper")
    with pytest.raises(ValueError, match="observe"):
        dual.step()
    dual.observe({"alignment": 1.0, "edge": 1.0})
    dual.step()
    with pytest.raises(ValueError, match="observe"):
        dual.step()


@pytest.mark.parametrize("field", ["epsilon", "multiplier", "rate", "penalty"])
@pytest.mark.parametrize("value", [-0.1, math.nan])
def test_negative_constants_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        Constraint(**{field: value})


def test_unknown_decay_is_refused() -> None:
    with pytest.raises(ValueError, match="compounding"):
        Dual({}, decay="exponential")


def test_a_missing_value_is_an_error_not_a_zero() -> None:
    dual = preset_dual("paper")
    with pytest.raises(KeyError):
        dual.observe({"alignment": 1.0})
    with pytest.raises(KeyError):
        dual.lagrangian(torch.tensor(0.0), {"edge": torch.tensor(1.0)})


def test_an_incomplete_observation_leaves_no_trace() -> None:
    dual = preset_dual("paper")
    with pytest.raises(KeyError):
        dual.observe({"alignment": 1.0})
    dual.observe({"alignment": 0.5, "edge": 0.5})
    assert dual.step(1, 2) == {"alignment": 0.5, "edge": 0.5}


def test_presets_hold_both_constraints_of_the_paper() -> None:
    for name in PRESETS:
        assert preset_dual(name).names == ("alignment", "edge")
    assert preset_dual("paper").multipliers == {"alignment": 0.01, "edge": 0.05}
    assert {c.rate for c in preset_dual("paper").constraints.values()} == {0.01}
    assert {c.epsilon for c in preset_dual("paper").constraints.values()} == {0.0}


def test_without_constraints_the_lagrangian_is_the_objective() -> None:
    dual = Dual({})
    objective = torch.tensor(2.0)
    assert dual.lagrangian(objective, {}) is objective
    dual.observe({})
    assert dual.step() == {}
