"""Training: one visible loop that alternates the two steps of Alg. 1.

A run is a folder: config.json, metrics.jsonl, curves.png, TensorBoard events, last.safetensors
(everything needed to go on), best.safetensors and final.safetensors (weights for use). Batch `step`
is a pure function of the seed, so a run killed at any moment continues from its last save bit for
bit. Under `torchrun` each process takes its share of every batch and gradients are averaged: the
result is that of one process.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler

from ducos.data import Dataset, open_dataset, split_by_scene
from ducos.errors import InputError
from ducos.models import Model, ModelSpec, Prediction
from ducos.pictures import write_image
from ducos.training.augment import Augmentation
from ducos.training.config import Config, ConstraintConfig
from ducos.training.curves import training_curves
from ducos.training.dual import PRESETS, Constraint, Dual
from ducos.training.log import MetricsLog, ProgressBar
from ducos.training.losses import CONSTRAINTS, OBJECTIVES, edge
from ducos.training.patches import Batch, PatchBatches
from ducos.training.processes import (
    StopRequest,
    average_gradients,
    average_numbers,
    half_precision_runs,
    join_processes,
    pick_device,
)
from ducos.training.prompt_cache import FeatureCache
from ducos.training.run import (
    Run,
    load_start,
    restore,
    save,
    save_weights,
    start_average,
    update_average,
)
from ducos.training.validation import validate

DIVERGED = 1.5  # times bicubic's error, which even an untrained residual network reaches


def train(
    config: Config, out: Path, *, resume: bool = False, overfit: bool = False, quiet: bool = False
) -> Path | None:
    """Train as configured into the folder `out`.

    Returns:
        the path of the final weights, or None if the run was asked to stop before its end.
    """
    rank, world = join_processes()
    if config.train.batch_size % world:
        raise InputError(
            f"batch_size {config.train.batch_size} cannot be split over {world} processes; "
            "choose a multiple"
        )
    last = out / "last.safetensors"
    if resume and not last.exists():
        raise InputError(f"nothing to resume: {last} does not exist; leave --resume out to start")
    if last.exists() and not resume:
        raise InputError(
            f"{out} already holds a run; continue it with --resume or choose another folder"
        )
    device = pick_device(rank)
    on_cpu = device.type == "cpu"
    if config.train.precision == "bfloat16" and on_cpu and not half_precision_runs():
        raise InputError(
            "precision bfloat16 crashes on this machine: its CPU announces instructions (AMX) that "
            "it does not have; set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment, or "
            "train with precision float32"
        )

    torch.manual_seed(config.train.seed)
    spec = ModelSpec(
        config.model.name, config.model.prompt, config.model.prompt_options, config.model.kwargs
    )
    model = spec.build().to(device)
    load_start(model, config)
    trainable = [p for p in model.parameters() if p.requires_grad]
    if not trainable:
        raise InputError(f"{spec.name} has nothing to train")
    run = Run(
        model=model,
        optimizer=torch.optim.Adam(trainable, lr=config.train.rate, betas=config.train.betas),
        dual=build_dual(config),
        average=start_average(model) if config.train.average else {},
    )
    if resume:
        restore(run, last)
    training_set, validation_set = open_data(config)
    batches = PatchBatches(
        training_set,
        batch_size=config.train.batch_size,
        crop=config.data.crop,
        measurements=config.data.measurements,
        scales=config.data.scales,
        degradations=config.data.degradations,
        augmentation=Augmentation(
            **{each.name: getattr(config.data, each.name) for each in fields(Augmentation)}
        ),
        seed=config.train.seed,
        cache=open_cache(config, model, training_set, rank, world),
    )
    if rank == 0:
        out.mkdir(parents=True, exist_ok=True)
        (out / "config.json").write_text(config.model_dump_json(indent=1))
    log = MetricsLog(out, run.step) if rank == 0 else None
    try:
        fit(run, config, spec, batches, validation_set, out, log, rank, world, overfit, quiet)
    finally:
        if log:
            log.close()
        if world > 1:
            dist.destroy_process_group()
    return out / "final.safetensors" if run.step == config.train.steps else None


def fit(
    run: Run,
    config: Config,
    spec: ModelSpec,
    batches: PatchBatches,
    validation_set: Dataset,
    out: Path,
    log: MetricsLog | None,
    rank: int,
    world: int,
    overfit: bool,
    quiet: bool,
) -> None:
    """The loop: Step 1 of Alg. 1 per batch, Step 2 per epoch."""
    settings = config.train
    constraints = chosen_constraints(config)
    epoch_steps = settings.steps_per_epoch or batches.steps_per_epoch
    epochs = -(-settings.steps // epoch_steps)
    share = settings.batch_size // world
    trainable = [p for p in run.model.parameters() if p.requires_grad]
    device = trainable[0].device
    run.model.train()
    started = time.monotonic()

    bar = ProgressBar(settings.steps, run.step, disable=quiet or rank != 0)
    with StopRequest() as stop, bar as (advance, say):
        for batch in load(batches, run.step, settings.steps, config.data.workers, overfit):
            batch = batch.part(rank * share, (rank + 1) * share).to(device)
            set_rate(run.optimizer, learning_rate(config, run.step))
            prediction = forward(run.model, batch, settings.precision)
            objectives = {n: OBJECTIVES[n](prediction, batch) for n in settings.objectives}
            objective = torch.stack(
                [w * objectives[n] for n, w in settings.objectives.items()]
            ).sum()
            values = {name: constraints[name](prediction, batch) for name in run.dual.names}
            loss = run.dual.lagrangian(objective, values)  # Eq. 13

            run.optimizer.zero_grad()
            loss.backward()
            average_gradients(trainable, world)
            norm = nn.utils.clip_grad_norm_(trainable, settings.clip or float("inf"))
            if bool(norm.isfinite()):
                run.optimizer.step()
            measured = average_numbers({"loss": loss, **objectives, **values}, world)
            run.dual.observe(measured)
            if settings.average:  # short memory at first, or the random start would linger
                decay = min(settings.average, (1 + run.step) / (10 + run.step))
                update_average(run.average, run.model, decay)
            run.step += 1

            means = None
            if run.step % epoch_steps == 0:  # Step 2 of Alg. 1
                means = run.dual.step(run.step // epoch_steps, epochs)
            if log and (means or run.step % settings.log_every == 0):
                rate = run.optimizer.param_groups[0]["lr"]
                extra = {
                    "gradient_norm": float(norm),
                    "rate": rate,
                    "seconds": time.monotonic() - started,
                }
                log.write(run.step, {**measured, **extra}, run.dual, means)
            advance(f"loss {measured['loss']:.4f}")
            final = run.step == settings.steps
            if run.step % settings.validate_every == 0 or final:
                score = validate(run, config, validation_set)
                if rank == 0:
                    if score["relative_rmse"] > DIVERGED:
                        say(
                            f"step {run.step}: held-out error is {score['relative_rmse']:.1f} times"
                            " bicubic's; the run has probably diverged (lower train.rate or"
                            " train.clip)"
                        )
                    if log:
                        log.write_validation(run.step, score)
                        draw_curves(out)
                    if score["relative_rmse"] < run.best:
                        run.best = score["relative_rmse"]
                        save_weights(run, spec, config, out / "best.safetensors", score)
            wanted = stop.agreed(world, device)
            if rank == 0 and (run.step % settings.save_every == 0 or final or wanted):
                save(run, out / "last.safetensors")
            if wanted:
                return
        if rank == 0:
            save_weights(run, spec, config, out / "final.safetensors", {})


def forward(model: nn.Module, batch: Batch, precision: str) -> Prediction:
    """The network's answer, always in float32: losses are small differences."""
    known: dict[str, Any] = {} if batch.prompt is None else {"prompt": batch.prompt}
    told = {} if batch.sensor is None else {"sensor": batch.sensor}
    with torch.autocast(batch.rgb.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        prediction: Prediction = model(batch.rgb, batch.low, batch.low_valid, told, **known)
    return Prediction(prediction.depth.float(), {n: widen(v) for n, v in prediction.aux.items()})


def widen(value: Any) -> Any:
    """Tensors as float32, also within lists and pairs."""
    if isinstance(value, list | tuple):
        return type(value)(widen(part) for part in value)
    return value.float() if isinstance(value, Tensor) else value


def draw_curves(out: Path) -> None:
    """curves.png beside metrics.jsonl: the run so far, for people."""
    picture = training_curves(out)
    if picture is not None:
        write_image(out / "curves.png", picture)


def load(
    batches: PatchBatches, start: int, stop: int, workers: int, overfit: bool
) -> Iterator[Batch]:
    """Batches start..stop in order; `overfit` repeats the first one."""
    if overfit:
        first = batches[0]
        yield from (first for _ in range(start, stop))
        return
    yield from DataLoader(
        batches,  # type: ignore[arg-type]
        batch_size=None,
        sampler=StepSampler(start, stop),
        num_workers=workers,
        collate_fn=as_it_is,
        generator=torch.Generator(),  # its own, so that loading leaves no trace in the global one
    )


def as_it_is(batch: Any) -> Batch:
    """PatchBatches makes whole batches already."""
    return batch


class StepSampler(Sampler[int]):
    """Step numbers in order."""

    def __init__(self, start: int, stop: int):
        self.steps = range(start, stop)

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


def build_dual(config: Config) -> Dual:
    """The preset, cut to the chosen constraints, with the config's overrides."""
    preset = PRESETS[config.dual.preset]()
    constraints: dict[str, Constraint] = {}
    for name in config.dual.constraints:
        override: ConstraintConfig = getattr(config.dual, name)
        changes = override.model_dump(exclude_none=True)
        original = preset.constraints[name]
        constraints[name] = Constraint(**{**vars(original), **changes})
    return Dual(constraints, decay=config.dual.decay or preset.decay)


def chosen_constraints(config: Config) -> dict[str, Callable[[Any, Any], Tensor]]:
    """CONSTRAINTS with the ablation switches of gradient regulation applied."""

    def switched_edge(prediction: Any, batch: Any) -> Tensor:
        return edge(
            prediction,
            batch,
            normalise=config.dual.edge_normalise,
            magnitude=config.dual.edge_magnitude,
        )

    return {**CONSTRAINTS, "edge": switched_edge}


def open_data(config: Config) -> tuple[Dataset, Dataset]:
    """Training and validation pairs; without the latter, a share of the scenes is held out."""
    everything = open_dataset(config.data.train)
    if config.data.validation:
        return everything, open_dataset(config.data.validation)
    return split_by_scene(everything, config.data.validation_share)


def open_cache(
    config: Config, model: Model, pairs: Dataset, rank: int, world: int
) -> FeatureCache | None:
    """The filled feature cache, where the config names a folder for it."""
    if not config.data.prompt_cache:
        return None
    if not model.takes_prompt:
        raise InputError(f"{config.model.name} takes no stored features; leave prompt_cache out")
    if config.data.crop % model.multiple:
        raise InputError(
            f"got crop {config.data.crop}, expected a multiple of {model.multiple}: with a prompt "
            "cache patches cannot be padded"
        )
    largest = int(config.data.prompt_cache_gb * 1e9)
    cache = FeatureCache(config.data.prompt_cache, model.prompt, max_bytes=largest)
    if rank == 0:
        cache.fill(pairs[index] for index in range(len(pairs)))
    if world > 1:
        dist.barrier()
    return cache
