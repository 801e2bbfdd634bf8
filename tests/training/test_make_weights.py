"""scripts/make_weights.py: every step once, each in its turn, and the winner by the rule."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from ducos.models.checkpoint import read_tensors
from ducos.models.header import read_about
from ducos.upscaling import Upscaler
from tests.places import REPOSITORY
from tests.training.test_loop import ENVIRONMENT, as_toml, tiny

SHORT = {"steps": 2, "save_every": 1, "validate_every": 2}
PLAN = """
[[stage]]
name = "first"
[[stage]]
name = "second"

[choose]
stages = ["first", "second"]
seeds = [3, 4]
data = "shapes:1,height=48,width=64"
captures = false
rule = "The least error on rendered pairs."
minimise = "rendered_rmse"
subject_to = [CONDITION]

[embed]
name = "ours"
trained_on = "generated pairs"
"""


def make(folder: Path, *options: str, code: int = 0) -> str:
    script = [sys.executable, str(REPOSITORY / "scripts" / "make_weights.py")]
    places = [str(folder / "recipe.toml"), "-o", str(folder / "run"), "--into", str(folder / "in")]
    finished = subprocess.run(
        [*script, *places, *options], env=ENVIRONMENT, capture_output=True, text=True, timeout=240
    )
    assert finished.returncode == code, finished.stdout + finished.stderr
    return finished.stdout + finished.stderr


def write(folder: Path, plan: str, **changes: Any) -> None:
    path = as_toml(tiny(train=SHORT, model={"version": "2.0"}, **changes), folder / "recipe.toml")
    path.write_text(path.read_text() + plan)


@pytest.mark.timeout(600)
def test_from_nothing_to_embedded_weights(tmp_path: Path) -> None:
    write(tmp_path, PLAN.replace("CONDITION", '"rendered_rmse < 100"'))
    planned = make(tmp_path, "--dry-run")
    assert planned.count("would do") == 2 + 4 + 1
    assert not (tmp_path / "run").exists()

    said = make(tmp_path)
    values = json.loads((tmp_path / "run" / "choice.json").read_text())["values"]
    assert len(values) == 4
    winner = min(values, key=values.__getitem__)
    assert f"embed {winner} as ours: now" in said
    weights = tmp_path / "in" / "ours.safetensors"
    about = read_about(weights)
    assert (about["name"], about["version"]) == ("ours", "2.0")
    assert about["trained_on"] == "7 generated pairs"
    assert about["figures"]["heldout"]["rendered_rmse"] == round(values[winner], 4)
    assert about["chosen"]["of"] == values
    assert about["config"]["train"]["seed"] == int(winner.split("-")[1])
    assert Upscaler(weights).name == f"{weights} 2.0"

    again = make(tmp_path)
    assert again.count("done before") == 2 + 4 + 1
    assert ": now" not in again
    (tmp_path / "run" / "figures" / "seed-4-1-first.json").unlink()
    assert make(tmp_path).count(": now") == 1


@pytest.mark.timeout(600)
def test_no_candidate_is_embedded_against_the_conditions(tmp_path: Path) -> None:
    plan = PLAN.replace("CONDITION", '"rendered_rmse < 0"').replace("[3, 4]", "[3]")
    write(tmp_path, plan.replace('stages = ["first", "second"]', ""))
    said = make(tmp_path, code=1)
    assert "refused: rendered_rmse < 0" in said
    assert "no candidate" in said
    assert not (tmp_path / "in").exists()


@pytest.mark.timeout(600)
def test_weights_between_the_start_and_the_trained_ones_are_candidates(tmp_path: Path) -> None:
    write(tmp_path, PLAN.replace("CONDITION", "").replace("[3, 4]", "[3]"))
    make(tmp_path)
    start = tmp_path / "start.safetensors"
    (tmp_path / "in" / "ours.safetensors").rename(start)
    shutil.rmtree(tmp_path / "run")
    plan = PLAN.replace("CONDITION", "").replace("[3, 4]", "[5]\nbetween = [0.25]")
    write(tmp_path, plan.replace('stages = ["first", "second"]', ""))
    made = make(tmp_path, "--set", f"model.start={start}")
    assert "blend 0.25 of seed-5-2-second with its start: now" in made
    values = json.loads((tmp_path / "run" / "choice.json").read_text())["values"]
    assert set(values) == {"seed-5-2-second", "seed-5-2-second-0.25"}
    blend, _ = read_tensors(tmp_path / "run" / "between" / "seed-5-2-second-0.25.safetensors")
    before, _ = read_tensors(start)
    after, _ = read_tensors(tmp_path / "run" / "seed-5" / "2-second" / "final.safetensors")
    for name, value in blend.items():
        assert torch.allclose(value, 0.75 * before[name] + 0.25 * after[name], atol=1e-6), name
    assert make(tmp_path, "--set", f"model.start={start}").count(": now") == 0


def test_what_lies_between_needs_a_start(tmp_path: Path) -> None:
    write(tmp_path, PLAN.replace("CONDITION", "").replace("[3, 4]", "[3]\nbetween = [0.5]"))
    assert "model.start" in make(tmp_path, code=1)


BLENDER = """#!{python}
import json, sys
from pathlib import Path
assert sys.argv[1:4] == ["-m", "ducos", "synth"], sys.argv
given = dict(zip(sys.argv[4::2], sys.argv[5::2]))
out = Path(given["--out"])
out.mkdir(parents=True, exist_ok=True)
for seed in range(int(given["--seed"]), int(given["--seed"]) + int(given["--scenes"])):
    for view in range(int(given["--views"])):
        files = {{kind: f"{{seed}}_{{view}}_{{kind}}" for kind in ("rgb", "depth", "camera")}}
        for name in files.values():
            (out / name).touch()
        with (out / "manifest.jsonl").open("a") as stream:
            stream.write(json.dumps({{"scene": seed, "assets": [], **files}}) + chr(10))
(out / "called.json").write_text(json.dumps(given))
"""


def test_rendering_uses_the_other_python_and_only_what_is_missing(tmp_path: Path) -> None:
    blender = tmp_path / "blender-python"
    blender.write_text(BLENDER.format(python=sys.executable))
    blender.chmod(0o755)
    folder = tmp_path / "data"
    plan = f'[[render.sets]]\nfolder = "{folder}"\nscenes = 2\nviews = 2\nseed = 5\n'
    plan += f'[[render.sets]]\nfolder = "{folder}"\nscenes = 1\nviews = 2\nkind = "still life"\n'
    write(tmp_path, "\n" + plan)
    assert "--assets" in make(tmp_path, "--blender-python", str(blender), code=1)

    options = ("--blender-python", str(blender), "--assets", str(tmp_path), "--processes", "1")
    said = make(tmp_path, *options)
    assert said.count(": now") == 3, "two sets and one training"
    called = json.loads((folder / "called.json").read_text())
    assert called["--kind"] == "still life"
    assert called["--assets"] == str(tmp_path)
    assert (tmp_path / "run" / "seed-0" / "final.safetensors").is_file()
    (folder / "5_1_depth").unlink()
    assert make(tmp_path, *options, "--dry-run").count("would do") == 1


def test_captures_are_asked_for_before_they_are_missed(tmp_path: Path) -> None:
    plan = PLAN.replace("CONDITION", "").replace("captures = false", "captures = true")
    write(tmp_path, plan)
    assert "--captures" in make(tmp_path, code=1)
    assert not (tmp_path / "run").exists()


def test_the_recipe_of_the_package_says_what_it_would_do() -> None:
    script = [sys.executable, "scripts/make_weights.py", "configs/ducos-tiny.toml", "--dry-run"]
    finished = subprocess.run(
        script, cwd=REPOSITORY, env=ENVIRONMENT, capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr
    assert "minimise" in finished.stdout
