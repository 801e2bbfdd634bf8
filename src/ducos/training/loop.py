"""Training: one visible loop that alternates the two steps of Alg. 1.

A run is a folder: config.json, metrics.jsonl, curves.png, TensorBoard events, last.safetensors
(everything needed to go on), best.safetensors and final.safetensors (weights for use). Batch `step`
is a pure function of the seed, so a run killed at any moment continues from its last save bit for
bit. Under `torchrun` each process takes its share of every batch and gradients are averaged: the
result is that of one process.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler

from ducos.data import Dataset
from ducos.files import atomic_write, remove_unfinished
from ducos.models import ModelSpec, Prediction, as_model
from ducos.training.config import Config
from ducos.training.curves import draw_curves
from ducos.training.lineage import lineage
from ducos.training.log import MetricsLog, ProgressBar
from ducos.training.patches import PatchBatches
from ducos.training.preparation import (
    check_folder,
    check_machine,
    model_spec,
    open_batches,
    open_data,
    start_run,
)
from ducos.training.processes import (
    StopRequest,
    average_gradients,
    average_numbers,
    join_processes,
    pick_device,
)
from ducos.training.run import Run, restore, save, save_weights, update_average
from ducos.training.samples import Batch
from ducos.training.table import CONSTRAINTS, OBJECTIVES
from ducos.training.validation import validate

DIVERGED = 1.5  # times bicubic's error, which even an untrained residual network reaches


def train(
    config: Config,
    out: Path,
    *,
    resume: bool = False,
    overfit: bool = False,
    quiet: bool = False,
    device: str = "auto",
    threads: int | None = None,
) -> Path | None:
    """Train as configured into the folder `out`.

    Args:
        resume: go on with the run in `out`. overfit: repeat one batch. quiet: show no progress.
        device: auto, cpu, cuda or mps; several processes share the GPUs out among them.
        threads: of the processor, for each process; None: all.

    Returns:
        the path of the final weights, or None if the run was asked to stop before its end.
    """
    joined = dist.is_initialized()  # by whoever trains several stages
    rank, world = join_processes()
    check_folder(out, resume=resume)
    place = pick_device(device, rank)
    if threads is not None:
        torch.set_num_threads(threads)
    check_machine(config, place, world)
    spec = model_spec(config)
    run = start_run(config, spec, place)
    if resume:
        restore(run, out / "last.safetensors")
    training_set, validation_set = open_data(config)
    batches = open_batches(config, run.model, training_set, rank, world)
    log = None
    if rank == 0:
        out.mkdir(parents=True, exist_ok=True)
        remove_unfinished(out)
        with atomic_write(out / "config.json") as temporary:
            temporary.write_text(config.model_dump_json(indent=1))
        log = MetricsLog(out, run.step)
    trainer = Trainer(config, spec, run, batches, validation_set, out, rank, world, log, overfit)
    trainer.origin = lineage(config, training_set)
    try:
        finished = trainer.fit(quiet=quiet)
    finally:
        if log:
            log.close()
        if world > 1 and not joined:
            dist.destroy_process_group()
    return out / "final.safetensors" if finished else None


@dataclass
class Trainer:
    """The loop and what it works with; all that changes while it runs is in `run`.

    rank, world: number of this process, and of all. log: of the first process only.
    overfit: repeat the first batch. origin: what weight files state of where they come from.
    """

    config: Config
    spec: ModelSpec
    run: Run
    batches: PatchBatches
    validation_set: Dataset
    out: Path
    rank: int = 0
    world: int = 1
    log: MetricsLog | None = None
    overfit: bool = False
    origin: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def fit(self, *, quiet: bool = False) -> bool:
        """Step 1 of Alg. 1 per batch, Step 2 per epoch; False if asked to stop on the way."""
        run, settings = self.run, self.config.train
        run.model.train()
        bar = ProgressBar(settings.steps, run.step, disable=quiet or self.rank != 0)
        with StopRequest() as stop, bar as (advance, say):
            for batch in self.load():
                set_rate(run.optimizer, learning_rate(self.config, run.step))
                prediction = forward(run.model, batch, settings.precision)
                objectives = self.objectives(prediction, batch)
                objective = self.weighed(objectives)
                values = self.constraints(prediction, batch)
                loss = run.dual.lagrangian(objective, values)  # Eq. 13
                norm = self.descend(loss)
                measured = average_numbers({"loss": loss, **objectives, **values}, self.world)
                run.dual.observe(measured)
                self.average_weights()
                run.step += 1

                means = None
                if run.step % self.epoch_steps == 0:  # Step 2 of Alg. 1
                    means = run.dual.step(run.step // self.epoch_steps, self.epochs)
                self.write(measured, norm, means)
                advance(f"loss {measured['loss']:.4f}")
                if self.due(settings.validate_every):
                    self.validate(say)
                wanted = stop.agreed(self.world, self.device)
                if self.rank == 0 and (self.due(settings.save_every) or wanted):
                    save(run, self.out / "last.safetensors")
                if wanted:
                    return False
            self.save_weights("final.safetensors", {})
        return True

    def save_weights(self, name: str, score: dict[str, float]) -> None:
        """Weights for use, with all that is known about them; by the first process."""
        if self.rank == 0:
            save_weights(self.run, self.spec, self.config, self.out / name, score, self.origin)

    @property
    def trainable(self) -> list[nn.Parameter]:
        return [p for p in self.run.model.parameters() if p.requires_grad]

    @property
    def device(self) -> torch.device:
        return self.trainable[0].device

    @property
    def epoch_steps(self) -> int:
        return self.config.train.steps_per_epoch or self.batches.steps_per_epoch

    @property
    def epochs(self) -> int:
        return -(-self.config.train.steps // self.epoch_steps)

    def due(self, every: int) -> bool:
        """At every so many steps, and at the last one."""
        return self.run.step % every == 0 or self.run.step == self.config.train.steps

    def load(self) -> Iterator[Batch]:
        """This process's share of the batches that are left."""
        share = self.config.train.batch_size // self.world
        steps = range(self.run.step, self.config.train.steps)
        device = self.device
        for batch in load(self.batches, steps, self.config.data.workers, self.overfit):
            yield batch.part(self.rank * share, (self.rank + 1) * share).to(device)

    def objectives(self, prediction: Prediction, batch: Batch) -> dict[str, Tensor]:
        return {n: OBJECTIVES[n](prediction, batch) for n in self.config.train.objectives}

    def weighed(self, objectives: dict[str, Tensor]) -> Tensor:
        """The objective: the sum of all, each times its weight."""
        weights = self.config.train.objectives
        return torch.stack([weight * objectives[n] for n, weight in weights.items()]).sum()

    def constraints(self, prediction: Prediction, batch: Batch) -> dict[str, Tensor]:
        """Values of the constraints, with the options of the config."""
        return {
            name: CONSTRAINTS[name](prediction, batch, **self.config.dual.of(name).options)
            for name in self.run.dual.names
        }

    def descend(self, loss: Tensor) -> Tensor:
        """One step of the optimizer; returns the gradient's norm. Nothing moves if it is NaN."""
        trainable = self.trainable
        self.run.optimizer.zero_grad()
        loss.backward()
        average_gradients(trainable, self.world)
        norm = nn.utils.clip_grad_norm_(trainable, self.config.train.clip or float("inf"))
        if bool(norm.isfinite()):
            self.run.optimizer.step()
        return norm

    def average_weights(self) -> None:
        """The moving average; its memory is short at first, or the random start would linger."""
        run, longest = self.run, self.config.train.average
        if longest:
            update_average(run.average, run.model, min(longest, (1 + run.step) / (10 + run.step)))

    def write(
        self, measured: dict[str, float], norm: Tensor, means: dict[str, float] | None
    ) -> None:
        """A row of metrics.jsonl every so many steps, and after every ascent of the multipliers."""
        if not self.log or not (means or self.run.step % self.config.train.log_every == 0):
            return
        extra = {
            "gradient_norm": float(norm),
            "rate": self.run.optimizer.param_groups[0]["lr"],
            "seconds": time.monotonic() - self.started,
        }
        self.log.write(self.run.step, {**measured, **extra}, self.run.dual, means)

    def validate(self, say: Callable[[str], None]) -> None:
        """Held-out error; the best weights so far are kept."""
        run = self.run
        score = validate(run, self.config, self.validation_set)
        if self.rank != 0:
            return
        error = score["relative_rmse"]
        if error > DIVERGED:
            say(
                f"step {run.step}: held-out error is {error:.1f} times bicubic's; the run has"
                " probably diverged (lower train.rate or train.clip)"
            )
        if self.log:
            self.log.write_validation(run.step, score)
            draw_curves(self.out)
        if error < run.best:
            run.best = error
            self.save_weights("best.safetensors", score)


def forward(model: nn.Module, batch: Batch, precision: str) -> Prediction:
    """The network's answer, always in float32: losses are small differences."""
    known: dict[str, Any] = {} if batch.prompt is None else {"prompt": batch.prompt}
    if as_model(model).takes_noise:
        known["noise"] = batch.noise[:, None, None, None]
    if as_model(model).takes_shrunk_by and batch.shrunk_by is not None:
        known["shrunk_by"] = batch.shrunk_by
    if as_model(model).takes_prior:  # a flat one says nothing, and what learns alone is asked
        known["prior"] = torch.zeros_like(batch.target) if batch.prior is None else batch.prior
    with torch.autocast(batch.rgb.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        prediction: Prediction = model(batch.rgb, batch.low, batch.low_valid, batch.told, **known)
    return Prediction(prediction.depth.float(), {n: widen(v) for n, v in prediction.aux.items()})


def widen(value: Any) -> Any:
    """Tensors as float32, also within lists and pairs."""
    if isinstance(value, list | tuple):
        return type(value)(widen(part) for part in value)
    return value.float() if isinstance(value, Tensor) else value


def load(batches: PatchBatches, steps: range, workers: int, overfit: bool) -> Iterator[Batch]:
    """The batches of these steps in order; `overfit` repeats the first one."""
    if overfit:
        first = batches[0]
        yield from (first for _ in steps)
        return
    yield from DataLoader(
        batches,  # type: ignore[arg-type]
        batch_size=None,
        sampler=StepSampler(steps),
        num_workers=workers,
        collate_fn=as_it_is,
        generator=torch.Generator(),  # its own, so that loading leaves no trace in the global one
    )


def as_it_is(batch: Any) -> Batch:
    """PatchBatches makes whole batches already."""
    return batch


class StepSampler(Sampler[int]):
    """Step numbers in order."""

    def __init__(self, steps: range):
        self.steps = steps

    def __iter__(self) -> Iterator[int]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)


def learning_rate(config: Config, step: int) -> float:
    """The rate at a step: linear warm-up, then constant, cosine to 1 % or halved at milestones."""
    settings = config.train
    if step < settings.warmup:
        return settings.rate * (step + 1) / settings.warmup
    if settings.schedule == "cosine":
        done = (step - settings.warmup) / max(1, settings.steps - settings.warmup)
        return settings.rate * (0.01 + 0.99 * 0.5 * (1 + float(np.cos(np.pi * done))))
    if settings.schedule == "steps":
        return settings.rate * settings.gamma ** sum(step >= m for m in settings.milestones)
    return settings.rate


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Use this learning rate from now on."""
    for group in optimizer.param_groups:
        group["lr"] = rate
