"""The notebook runs from its first cell to its last, on the bundled example."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.places import REPOSITORY

NOTEBOOK = REPOSITORY / "examples" / "quickstart.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> tuple[nbformat.NotebookNode, Path]:
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": folder}}).execute()
    return notebook, folder


def test_it_runs_and_writes_what_it_says(
    executed: tuple[nbformat.NotebookNode, Path],
) -> None:
    _, folder = executed
    for name in ("look.png", "scene.ply", "sharp.npz"):
        assert (folder / name).stat().st_size > 10_000, name


def test_it_shows_that_the_result_is_better(
    executed: tuple[nbformat.NotebookNode, Path],
) -> None:
    notebook, _ = executed
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])
    )
    errors = {
        line.split()[0]: float(line.split()[2])
        for line in printed.splitlines()
        if " RMSE " in line and line.endswith(" cm")
    }
    assert errors["ducos-tiny"] < 0.8 * errors["bicubic"]


def test_it_is_stored_without_outputs() -> None:
    """Outputs would go stale, and pictures in a notebook cannot be reviewed."""
    stored = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    assert not any(cell.get("outputs") for cell in stored.cells)
