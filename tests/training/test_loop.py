"""The training loop: it learns, goes on exactly where it stopped, and processes add up to one."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ducos.errors import InputError
from ducos.models.checkpoint import load_model, read_tensors, stored_weights
from ducos.training.config import Config
from ducos.training.loop import learning_rate, train
from ducos.training.preparation import build_dual, open_data
from ducos.training.processes import half_precision_runs
from ducos.training.run import Run, load_start, start_average, update_average
from ducos.training.state import load_training
from ducos.training.table import preset_dual
from ducos.training.validation import validate

MODEL = {
    "name": "ducos-compact",
    "prompt": "tiny",
    "prompt_options": {"widths": [6, 6, 8, 8]},
    "kwargs": {"channels": 8},
}
DATA: dict[str, Any] = {
    "train": "shapes:8,height=48,width=56",
    "crop": 32,
    "scales": [2, 4],
    "validation_images": 1,
    "augmentations": {
        "zoom": 0.8,
        "invert": 0.3,
        "quantise": 0.3,
        "edge_jitter": 0.3,
        "blur_target": 0.3,
        "colour": 0.5,
        "shift": 0.5,
        "misalign": 0.5,
        "holes": 0.5,
    },
}
DUAL = {"preset": "constrained", "alignment": {"epsilon": 0.01}, "edge": {"epsilon": 0.005}}
TRAIN = {
    "steps": 12,
    "steps_per_epoch": 2,
    "batch_size": 2,
    "rate": 1e-3,
    "schedule": "cosine",
    "warmup": 2,
    "clip": 1.0,
    "average": 0.9,
    "objectives": {"reconstruction": 1.0, "prompt": 0.1},
    "validate_every": 5,
    "save_every": 3,
    "log_every": 1,
    "validation_scales": [4.0],
}


def tiny(**changes: dict[str, Any]) -> Config:
    """A run of seconds; every augmentation, both objectives and both constraints are in it."""
    sections = {"model": MODEL, "data": DATA, "dual": DUAL, "train": TRAIN}
    return Config.model_validate(
        {name: {**section, **changes.get(name, {})} for name, section in sections.items()}
    )


def as_toml(config: Config, path: Path) -> Path:
    """The config as a user would write it."""

    def value(x: Any) -> str:
        if isinstance(x, dict):
            return "{" + ", ".join(f"{k} = {value(v)}" for k, v in x.items() if v is not None) + "}"
        return json.dumps(x)

    tree = config.model_dump(mode="json", exclude_none=True)
    lines = []
    for section, keys in tree.items():
        lines += [f"[{section}]", *(f"{k} = {value(v)}" for k, v in keys.items())]
    path.write_text("\n".join(lines))
    return path


def command(config: Path, out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "ducos", "train", str(config), "-o", str(out), *options]


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def wait_for(condition: Any, process: subprocess.Popen, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the run ended too early"
        assert time.monotonic() < until, "the run hangs"
        time.sleep(0.005)


def assert_same_state(a: Path, b: Path) -> None:
    """Weights, moments, averages, random state, multipliers: bit for bit."""
    (groups, values), (other_groups, other_values) = load_training(a), load_training(b)
    assert values == other_values
    assert groups.keys() == other_groups.keys() == {"model", "optimizer", "average", "rng"}
    for group, tensors in groups.items():
        assert tensors.keys() == other_groups[group].keys()
        for name, tensor in tensors.items():
            assert torch.equal(tensor, other_groups[group][name]), f"{group}/{name}"


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 12 steps without interruption."""
    out = tmp_path_factory.mktemp("straight")
    train(tiny(), out, quiet=True)
    return out


# What a run leaves behind


def test_a_run_leaves_usable_weights(straight: Path) -> None:
    model, spec, about = load_model(straight / "final.safetensors")
    assert spec.name == "ducos-compact"
    assert about["steps"] == 12
    assert about["trained_on"] == DATA["train"]
    assert set(about["multipliers"]) == {"alignment", "edge"}
    with torch.no_grad():
        assert model(torch.rand(1, 3, 33, 41), torch.rand(1, 1, 9, 10)).depth.isfinite().all()
    assert (straight / "best.safetensors").is_file()


def test_weights_for_use_are_the_average(straight: Path) -> None:
    groups, _ = load_training(straight / "last.safetensors")
    final, _ = read_tensors(straight / "final.safetensors")
    for name, value in final.items():
        assert torch.equal(value, groups["average"][name]), name
    assert not torch.equal(final["head.weight"], groups["model"]["head.weight"])


def test_the_config_is_kept(straight: Path) -> None:
    assert Config.model_validate_json((straight / "config.json").read_text()) == tiny()


def test_metrics_tell_the_whole_story(straight: Path) -> None:
    everything = rows(straight)
    steps = [row for row in everything if "loss" in row]
    assert [row["step"] for row in steps] == list(range(1, 13))
    for row in steps:
        for key in ("reconstruction", "prompt", "alignment", "edge", "rate", "gradient_norm"):
            assert np.isfinite(row[key]), key
        expected = row["reconstruction"] + 0.1 * row["prompt"]
        before = steps[row["step"] - 2] if row["step"] > 1 else None
        for name, epsilon in (("alignment", 0.01), ("edge", 0.005)):
            multiplier = before[f"multiplier_{name}"] if before else 0.0
            expected += multiplier * (row[name] - epsilon)
        assert row["loss"] == pytest.approx(expected, rel=1e-4)  # Eq. 13

    validations = [row for row in everything if "validation_relative_rmse" in row]
    assert [row["step"] for row in validations] == [5, 10, 12]
    assert all("validation_rmse_x4" in row for row in validations)


def test_multipliers_follow_the_observed_values(straight: Path) -> None:
    """Step 2 of Alg. 1, once per epoch of two steps, from the logged values alone."""
    steps = [row for row in rows(straight) if "loss" in row]
    for name, epsilon in (("alignment", 0.01), ("edge", 0.005)):
        multiplier = 0.0
        for first, second in zip(steps[::2], steps[1::2]):
            assert f"slack_{name}" not in first
            assert first[f"multiplier_{name}"] == pytest.approx(multiplier, abs=1e-12)
            slack = epsilon - (first[name] + second[name]) / 2
            assert second[f"slack_{name}"] == pytest.approx(slack, abs=1e-12)
            multiplier = max(0.0, multiplier - 0.1 * slack)
            assert second[f"multiplier_{name}"] == pytest.approx(multiplier, abs=1e-12)
        assert multiplier > 0


# Learning


def test_one_batch_can_be_learned(tmp_path: Path) -> None:
    """Overfitting: far below where it started, and below plain interpolation."""
    from ducos.resize import bicubic
    from ducos.training.patches import PatchBatches

    settings = {
        "steps": 60,
        "steps_per_epoch": 30,
        "rate": 4e-3,
        "schedule": "constant",
        "average": 0.0,
    }
    still = dict.fromkeys(("invert", "quantise", "colour", "shift", "holes"), 0.0)
    still = {**DATA["augmentations"], **still, "zoom": 1.0}
    config = tiny(
        data={"augmentations": still, "scales": [4, 4]}, train={**settings, "validate_every": 60}
    )
    train(config, tmp_path, overfit=True, quiet=True)
    losses = [row["reconstruction"] for row in rows(tmp_path) if "loss" in row]
    batch = PatchBatches(
        open_data(config)[0], batch_size=2, crop=32, scales=(4, 4), degradations={"bicubic": 1.0},
        augmentations={}, seed=0,
    )[0]  # fmt: skip
    interpolated = (bicubic(batch.low, (32, 32)) - batch.target).abs().mean().item()
    assert np.mean(losses[-5:]) < 0.7 * losses[0]
    assert np.mean(losses[-5:]) < 0.85 * interpolated


# Going on


def test_half_precision_learns_the_same_in_float32_weights(straight: Path, tmp_path: Path) -> None:
    """Convolutions in bfloat16 follow the float32 run, and nothing is stored or lost in it. In a
    process of its own, without AMX, which some machines announce and do not have."""
    assert tiny().train.precision == "float32"
    config = as_toml(tiny(train={"precision": "bfloat16"}), tmp_path / "bfloat16.toml")
    without_amx = {**ENVIRONMENT, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
    run = command(config, tmp_path / "run")
    subprocess.run(run, env=without_amx, check=True, capture_output=True)
    losses = []
    for out in (straight, tmp_path / "run"):
        tensors, _ = read_tensors(out / "final.safetensors")
        assert {t.dtype for t in tensors.values() if t.is_floating_point()} == {torch.float32}
        losses.append(np.array([row["loss"] for row in rows(out) if "loss" in row]))
    assert not np.array_equal(*losses)
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.15)


def test_half_precision_runs_or_is_refused(tmp_path: Path) -> None:
    """Never an illegal instruction, which would end this test run."""
    config = tiny(train={"precision": "bfloat16"})
    if half_precision_runs():
        assert train(config, tmp_path / "run", quiet=True) is not None
    else:
        with pytest.raises(InputError, match="ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16"):
            train(config, tmp_path / "run", quiet=True)
        assert not (tmp_path / "run").exists()


def test_a_diverged_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = {"name": "djf", "prompt": None, "prompt_options": {}}
    changes = {"steps": 2, "validate_every": 2, "objectives": {"reconstruction": 1.0}}
    config = tiny(
        model={**model, "kwargs": {"filters": [4, 4, 4, 4], "residual": False}},
        dual={"constraints": []},
        train=changes,
    )
    train(config, tmp_path, quiet=True)
    assert "probably diverged" in " ".join(capsys.readouterr().out.split())


def test_kill_and_resume_changes_nothing(straight: Path, tmp_path: Path) -> None:
    """A real process, killed without warning, continued by another."""
    config, out = as_toml(tiny(), tmp_path / "run.toml"), tmp_path / "run"
    process = subprocess.Popen(command(config, out), env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    try:
        wait_for((out / "last.safetensors").exists, process)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    reached = load_training(out / "last.safetensors")[1]["step"]
    assert reached in (3, 6, 9), "killed too late to prove anything"
    assert not (out / "final.safetensors").exists()

    train(tiny(), out, resume=True, quiet=True)
    assert_same_state(out / "last.safetensors", straight / "last.safetensors")
    ours, theirs = (read_tensors(f / "final.safetensors")[0] for f in (out, straight))
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    assert ours.keys() == theirs.keys()


def test_metrics_have_one_row_per_step_after_a_resume(tmp_path: Path) -> None:
    """Steps that were done twice, because the process died before saving them, are told once."""
    train(tiny(train={"steps": 3, "save_every": 3, "validate_every": 3}), tmp_path, quiet=True)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    dead = [json.dumps({"step": step, "loss": 9.0}) for step in (4, 5)]
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, *dead]) + "\n")
    train(tiny(train={"steps": 6}), tmp_path, resume=True, quiet=True)
    steps = [row["step"] for row in rows(tmp_path) if "loss" in row]
    assert steps == [1, 2, 3, 4, 5, 6]
    assert all(row["loss"] != 9.0 for row in rows(tmp_path) if "loss" in row)


def test_a_finished_run_can_be_resumed_into_nothing(straight: Path, tmp_path: Path) -> None:
    (tmp_path / "last.safetensors").write_bytes((straight / "last.safetensors").read_bytes())
    (tmp_path / ".ducos-0123456789abcdef.safetensors").write_bytes(b"of a killed process")
    final = train(tiny(), tmp_path, resume=True, quiet=True)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    ours, theirs = read_tensors(final)[0], read_tensors(straight / "final.safetensors")[0]
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())


def test_sigterm_finishes_the_step_and_saves(tmp_path: Path) -> None:
    config = tiny(train={"steps": 100_000, "save_every": 100_000, "validate_every": 100_000})
    out = tmp_path / "run"
    words = command(as_toml(config, tmp_path / "run.toml"), out, "--set", "model.start = ''")
    process = subprocess.Popen(
        words, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        metrics = out / "metrics.jsonl"
        wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") >= 3, process)
        process.terminate()
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors
    told = output.strip().rpartition("continue with: ")[2]  # a line for the shell, with --set
    assert shlex.split(told) == ["ducos", *words[3:], "--resume"]
    assert "Traceback" not in errors
    groups, values = load_training(out / "last.safetensors")
    assert values["step"] == rows(out)[-1]["step"] >= 3
    assert set(groups) == {"model", "optimizer", "average", "rng"}
    assert not (out / "final.safetensors").exists()


def test_signal_handlers_are_put_back(straight: Path, tmp_path: Path) -> None:
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
    train(tiny(train={"steps": 1, "average": 0.0}), tmp_path, quiet=True)
    assert {name: signal.getsignal(name) for name in before} == before


def test_training_works_in_a_thread(tmp_path: Path) -> None:
    """Notebooks and servers: no signal handlers there."""
    result: list[Path] = []
    config = tiny(train={"steps": 1})
    thread = threading.Thread(target=lambda: result.append(train(config, tmp_path, quiet=True)))
    thread.start()
    thread.join()
    assert result
    assert result[0].is_file()


@pytest.mark.timeout(600)
def test_two_processes_are_one(tmp_path: Path) -> None:
    """torchrun with two processes, half a batch each, against one process with the whole."""
    config = tiny(
        train={
            "batch_size": 4,
            "steps": 4,
            "validate_every": 4,
            "warmup": 0,
            "schedule": "constant",
            "rate": 1e-5,  # small, so that rounding is not amplified from step to step
        }
    )
    train(config, tmp_path / "one", quiet=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launcher = ["torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    arguments = command(as_toml(config, tmp_path / "run.toml"), tmp_path / "two")[1:]
    process = subprocess.Popen(
        [sys.executable, "-m", *launcher, *arguments],
        env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        _, errors = process.communicate(timeout=500)
    finally:
        if process.poll() is None:  # the launcher and what it launched
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 0, errors

    for ours, theirs in zip(rows(tmp_path / "two"), rows(tmp_path / "one"), strict=True):
        assert ours.keys() == theirs.keys()
        for key in ours.keys() - {"seconds"}:
            assert ours[key] == pytest.approx(theirs[key], rel=2e-3, abs=1e-5), key
    (one, values), (two, other) = (
        load_training(tmp_path / run / "last.safetensors") for run in ("one", "two")
    )
    assert values["step"] == other["step"] == 4
    assert values["dual"]["multipliers"] == pytest.approx(other["dual"]["multipliers"], rel=1e-3)
    differences = torch.cat(
        [(two["model"][n] - v).flatten().abs() for n, v in one["model"].items()]
    )
    # Adam's first steps are all of the size of the rate: where a gradient is rounding noise, even
    # its sign may differ. Almost every weight must agree far more closely than one such step.
    assert differences.quantile(0.99) < 0.1 * 1e-5
    assert differences.median() < 0.01 * 1e-5
    assert differences.max() < 4 * 2e-5


# Refusals


def test_a_run_is_not_overwritten(straight: Path) -> None:
    before = (straight / "last.safetensors").read_bytes()
    with pytest.raises(InputError, match="resume"):
        train(tiny(), straight, quiet=True)
    assert (straight / "last.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model": {"name": "ducos-compct"}}, "ducos-compct"),
        ({"model": {"kwargs": {"chanels": 8}}}, "chanels"),
        (
            {"model": {"name": "bicubic", "prompt": None, "prompt_options": {}, "kwargs": {}}},
            "train",
        ),
        ({"model": {"start": "nowhere.safetensors"}}, "nowhere"),
        ({"model": {"start_prompt": "nowhere.safetensors"}}, "nowhere"),
        ({"data": {"train": "shape:8"}}, "shape"),
        ({"data": {"validation": "nyu:nowhere.mat"}}, "nowhere"),
        ({"data": {"train": "shapes:1"}}, "scene"),
        ({"model": {"kwargs": {"channels": 8, "align": False}}}, "align=True"),
        ({"model": {"prompt": "none", "prompt_options": {}}}, "depth head"),
    ],
)
def test_mistakes_are_named_and_leave_no_run_behind(
    changes: dict[str, Any], named: str, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with pytest.raises(InputError, match=named):
        train(tiny(**changes), out, quiet=True)
    assert not (out / "last.safetensors").exists()
    # The folder may be tried again at once, without --resume.
    assert train(tiny(train={"steps": 1}), out, quiet=True).is_file()


def test_a_state_of_another_network_is_refused(straight: Path, tmp_path: Path) -> None:
    (tmp_path / "last.safetensors").write_bytes((straight / "last.safetensors").read_bytes())
    with pytest.raises(InputError, match="misshapen"):
        train(tiny(model={"kwargs": {"channels": 6}}), tmp_path, resume=True, quiet=True)
    with pytest.raises(InputError, match="constraints"):
        train(tiny(dual={"constraints": ["edge"]}), tmp_path, resume=True, quiet=True)


def test_the_command_line_explains_itself_without_a_traceback(tmp_path: Path) -> None:
    config = as_toml(tiny(), tmp_path / "run.toml")
    finished = subprocess.run(
        command(config, tmp_path / "run", "--set", "train.stepps=3"),
        env=ENVIRONMENT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert finished.returncode == 2
    assert "train.stepps" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert not (tmp_path / "run").exists()


# Parts


def test_learning_rates_by_hand() -> None:
    def rates(**settings: Any) -> list[float]:
        config = tiny(train={"steps": 10, "rate": 1.0, "warmup": 0, **settings})
        return [learning_rate(config, step) for step in range(10)]

    assert rates(schedule="constant") == [1.0] * 10
    assert rates(schedule="constant", warmup=4)[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rates(schedule="steps", milestones=[3, 6], gamma=0.5) == [1] * 3 + [0.5] * 3 + [0.25] * 4
    cosine = rates(schedule="cosine", warmup=2)
    assert cosine[:3] == [0.5, 1.0, 1.0]
    assert cosine[6] == pytest.approx((1 + 0.01) / 2)  # half way
    assert cosine[2:] == sorted(cosine[2:], reverse=True)
    assert cosine[9] > 0.01


def test_build_dual_applies_overrides_to_the_preset() -> None:
    dual = build_dual(tiny(dual={"preset": "paper", "alignment": {}, "edge": {"multiplier": 0.2}}))
    assert dual.multipliers == {"alignment": 0.01, "edge": 0.2}
    assert dual.constraints["edge"].rate == 0.01
    assert dual.decay == "compounding"

    config = tiny(dual={"preset": "paper", "constraints": ["edge"], "decay": "linear", "edge": {}})
    dual = build_dual(config)
    assert dual.names == ("edge",)
    assert dual.decay == "linear"
    assert build_dual(tiny(dual={"constraints": []})).names == ()


def test_without_constraints_it_is_plain_training(tmp_path: Path) -> None:
    train(tiny(dual={"constraints": []}, train={"steps": 2}), tmp_path, quiet=True)
    row = rows(tmp_path)[0]
    assert row["loss"] == pytest.approx(row["reconstruction"] + 0.1 * row["prompt"], rel=1e-5)
    assert not [key for key in row if "multiplier" in key]


def test_the_ablation_switches_of_the_edge_loss_are_used(tmp_path: Path) -> None:
    values = []
    for switch in ({}, {"normalise": False}, {"magnitude": False}):
        out = tmp_path / "-".join(["run", *switch])
        train(tiny(dual={"edge": switch}, train={"steps": 1}), out, quiet=True)
        values.append(rows(out)[0]["edge"])
    assert len(set(values)) == 3


def make_run(config: Config) -> Run:
    from ducos.models.checkpoint import ModelSpec

    torch.manual_seed(0)
    spec = ModelSpec(
        config.model.name, config.model.prompt, config.model.prompt_options, config.model.kwargs
    )
    model = spec.build()
    return Run(
        model, torch.optim.Adam(model.parameters()), preset_dual("paper"), start_average(model)
    )


def test_validation_leaves_no_trace() -> None:
    config = tiny()
    run = make_run(config)
    run.model.train()
    run.average = {name: value + 0.1 for name, value in run.average.items()}
    weights = {name: value.clone() for name, value in run.model.state_dict().items()}
    average = {name: value.clone() for name, value in run.average.items()}
    random_state = torch.get_rng_state()
    score = validate(run, config, open_data(config)[1])
    assert torch.equal(torch.get_rng_state(), random_state)
    assert run.model.training
    for name, value in run.model.state_dict().items():
        assert torch.equal(value, weights[name]), name
    for name, value in run.average.items():
        assert torch.equal(value, average[name]), name
    assert set(score) == {"rmse_x4", "relative_x4", "relative_rmse"}
    assert score == validate(run, config, open_data(config)[1])


def test_validation_scores_bicubic_as_one() -> None:
    from ducos.models import create

    config = tiny()
    model = create("djf", filters=[4, 4, 4, 4], residual=True)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()  # a residual network that adds nothing
    run = Run(model, torch.optim.Adam(model.parameters()), preset_dual("paper"), {})
    score = validate(run, config, open_data(config)[1])
    assert score["relative_rmse"] == pytest.approx(1, abs=1e-4)


def test_validation_scenes_are_held_out() -> None:
    training, validation = open_data(tiny())
    assert not set(training.scenes) & set(validation.scenes)
    assert len(training) + len(validation) == 8


def test_the_average_by_hand() -> None:
    run = make_run(tiny())
    name = "head.weight"
    start = run.average[name].clone()
    with torch.no_grad():
        run.model.get_parameter(name).add_(1.0)
    update_average(run.average, run.model, 0.9)
    torch.testing.assert_close(run.average[name], start + 0.1)
    update_average(run.average, run.model, 0.9)
    torch.testing.assert_close(run.average[name], start + 0.19)


def test_a_run_can_start_from_other_weights(straight: Path) -> None:
    path = str(straight / "final.safetensors")
    stored, _ = read_tensors(Path(path))

    config = tiny(model={"start": path})
    run = make_run(config)
    load_start(run.model, config)
    assert all(torch.equal(v, stored[n]) for n, v in stored_weights(run.model).items())

    config = tiny(model={"start_prompt": path, "kwargs": {"channels": 6}})
    run = make_run(config)
    fresh = run.model.state_dict()["head.weight"].clone()
    load_start(run.model, config)
    state = run.model.state_dict()
    assert torch.equal(state["head.weight"], fresh)
    assert all(torch.equal(v, stored[n]) for n, v in state.items() if n.startswith("prompt."))


@pytest.mark.parametrize(
    "model",
    [
        {"prompt_options": {"widths": [8, 8, 8, 8]}},  # another prompt
        {"name": "djf", "prompt": None, "prompt_options": {}, "kwargs": {}},  # none at all
    ],
)
def test_a_prompt_that_does_not_fit_is_the_users_mistake(
    model: dict[str, Any], straight: Path
) -> None:
    config = tiny(model={**model, "start_prompt": str(straight / "final.safetensors")})
    run = make_run(config)
    with pytest.raises(InputError):
        load_start(run.model, config)


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_the_average_can_be_switched_when_resuming(average: float, tmp_path: Path) -> None:
    """On: it starts from the weights as they are. Off: the final weights are the plain ones."""
    train(tiny(train={"steps": 2, "average": 0.9 - average}), tmp_path, quiet=True)
    train(tiny(train={"steps": 4, "average": average}), tmp_path, resume=True, quiet=True)
    groups, _ = load_training(tmp_path / "last.safetensors")
    final, _ = read_tensors(tmp_path / "final.safetensors")
    same = torch.equal(final["head.weight"], groups["model"]["head.weight"])
    assert same == (average == 0.0)


def test_the_licence_in_the_file_is_the_models(tmp_path: Path) -> None:
    """Weights of a GPL network must not claim to be Apache's."""
    from ducos.models import MODELS

    network = {"name": "fdkn", "prompt": None, "prompt_options": {}, "kwargs": {}}
    config = tiny(
        model=network,
        dual={"constraints": []},
        train={"steps": 1, "objectives": {"reconstruction": 1.0}, "average": 0.0},
    )
    about = load_model(train(config, tmp_path, quiet=True))[2]
    assert MODELS["fdkn"].licence == "GPL-3.0"
    assert "GPL-3.0" in about["licence"]
