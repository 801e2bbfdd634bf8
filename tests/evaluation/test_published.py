"""The published figures were copied rightly: counts, single values, and sums the papers print."""

import statistics

import pytest

from ducos.data import DATASETS
from ducos.errors import InputError
from ducos.evaluation import published
from ducos.models import MODELS
from ducos.prompts import PROMPTS

ACCURACY = [name for name in published.sources() if "cost" not in name and name != "ablations"]
FIVE = ("middlebury", "lu", "nyu", "rgbdd", "tofdsr")


def figures(table: str, method: str, dataset: str, scale: float | None) -> published.Figures:
    (row,) = [
        row
        for row in published.table(table).rows
        if (row.method, row.dataset, row.scale) == (method, dataset, scale)
    ]
    return row


@pytest.mark.parametrize(
    ("table", "rows"),
    {"synthetic": 180, "real": 18, "noisy": 18, "compressed": 24, "prompts": 12}.items(),
)
def test_tables_are_complete(table: str, rows: int) -> None:
    stored = published.table(table).rows
    assert len(stored) == rows
    assert len({(row.method, row.dataset, row.scale) for row in stored}) == rows
    assert all(row.mae is not None and row.delta105 is not None for row in stored)


@pytest.mark.parametrize("table", ACCURACY)
def test_every_row_is_plausible_and_known(table: str) -> None:
    about = published.table(table)
    assert "DuCos" in about.source or "WAVE" in about.source
    for row in about.rows:
        assert row.method in {*published.methods(), *PROMPTS}, row
        assert row.dataset in {*published.benchmarks(), "diml"}, row
        assert 0 < row.rmse < 200, row
        assert row.mae is None or row.mae < row.rmse, row
        assert row.delta105 is None or 0 < row.delta105 <= 100, row


def test_errors_grow_with_the_scale() -> None:
    for method in {row.method for row in published.table("synthetic").rows}:
        for dataset in FIVE:
            errors = [figures("synthetic", method, dataset, scale).rmse for scale in (2, 4, 8, 16)]
            assert errors == sorted(errors), (method, dataset)


def test_single_values() -> None:
    assert figures("synthetic", "ducos", "nyu", 4) == published.Figures(
        "ducos", "nyu", 4, 2.60, 0.81, 99.49
    )
    assert figures("synthetic", "dctnet", "tofdsr", 2).rmse == 0.80
    assert figures("real", "sfg", "rgbdd-real", None).mae == 1.96
    assert figures("noisy", "fdsr", "tofdsr-real", None).delta105 == 92.74
    assert figures("synthetic_nyu_trained", "dctnet", "lu", 8).rmse == 1.85
    assert figures("synthetic_nyu_trained", "fdsr", "nyu", 32).rmse == 14.19


@pytest.mark.parametrize(
    ("method", "table", "at_8", "at_16"),
    [
        ("ducos", "synthetic", 3.27, 5.37),
        ("fdsr", "synthetic", 3.29, 5.36),
        ("dkn", "synthetic", 3.41, 5.65),
        ("fdkn", "synthetic", 3.35, 5.75),
        ("dctnet", "synthetic", 3.71, 6.43),
        ("wave", "synthetic_wave", 2.97, 4.81),
    ],
)
def test_means_over_the_five_datasets(method: str, table: str, at_8: float, at_16: float) -> None:
    for scale, printed in ((8, at_8), (16, at_16)):
        mean = statistics.mean(figures(table, method, name, scale).rmse for name in FIVE)
        assert mean == pytest.approx(printed, abs=0.006)


@pytest.mark.parametrize(
    ("table", "metric", "gain"),
    [("compressed", "rmse", 37.6), ("compressed", "mae", 40.4), ("noisy", "rmse", 17.1),
     ("noisy", "mae", 35.6)],
)  # fmt: skip
def test_gains_over_the_second_best_that_the_paper_prints(
    table: str, metric: str, gain: float
) -> None:
    rows = published.table(table).rows
    gains = []
    for dataset in {row.dataset for row in rows}:
        of_method = {row.method: getattr(row, metric) for row in rows if row.dataset == dataset}
        ours = of_method.pop("ducos")
        second = min(of_method.values())
        gains.append(100 * (second - ours) / second)
    assert statistics.mean(gains) == pytest.approx(gain, abs=0.06)


def test_methods_without_a_reason_to_be_missing_are_in_the_package() -> None:
    for key, method in published.methods().items():
        if not method.missing:
            assert set(method.models) <= MODELS.keys(), key
    assert published.method_of("sgnet-x8") == "sgnet"
    assert published.method_of("bicubic") == "bicubic"


@pytest.mark.parametrize("method", ["sfg", "ssdnet", "gdnet"])
def test_what_nobody_can_reproduce_says_so(method: str) -> None:
    assert published.methods()[method].status == "reported, not reproduced"
    assert "no code" in published.methods()[method].missing
    assert method not in MODELS


def test_datasets_can_be_opened_and_say_how_to_get_them() -> None:
    for name, benchmark in published.benchmarks().items():
        assert len(benchmark.get) > 40, name
        for place in benchmark.places:
            assert place.split(":")[0] in DATASETS


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(InputError, match=r"unknown published table 'x'; choose one of: synthetic"):
        published.table("x")
