"""For all tests: one thread per process, no hypothesis deadline, the folder of shared data."""

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests.places import SHARED

torch.set_num_threads(1)

settings.register_profile(
    "ducos",
    deadline=None,
    max_examples=25,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("ducos")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with benchmark images and reference weights; tests skip where there is none."""
    if not SHARED.is_dir():
        pytest.skip("no shared data: set DUCOS_SHARED or put `shared` beside the repository")
    return SHARED


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test draws the same random numbers, whatever ran before it in the same process."""
    torch.manual_seed(0)
