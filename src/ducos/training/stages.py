"""Training a recipe: every stage in a folder of its own, each from the weights of the one before.

RUN/1-name, RUN/2-name, ... are runs like any other; RUN/final.safetensors is the last one's. A
recipe that was killed anywhere, also between two stages, goes on bit for bit.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch.distributed as dist

from ducos.errors import InputError
from ducos.files import atomic_write, remove_unfinished
from ducos.models import read_about, stored_weights
from ducos.training.config import Config
from ducos.training.loop import train
from ducos.training.preparation import model_spec, open_data
from ducos.training.processes import join_processes
from ducos.training.recipe import ONLY_PROMPT, Recipe, Stage

FINAL, LAST = "final.safetensors", "last.safetensors"
# What leaves weights as they are: a finished stage may have had it otherwise.
WITHOUT_EFFECT = {
    "data.workers",
    "data.prompt_cache",
    "data.prompt_cache_gb",
    "train.log_every",
    "train.save_every",
    "train.validate_every",
    "train.validation_scales",
}


def train_recipe(
    recipe: Recipe,
    out: Path,
    *,
    resume: bool = False,
    overfit: bool = False,
    quiet: bool = False,
    device: str = "auto",
    threads: int | None = None,
) -> Path | None:
    """Train all stages into the folder `out`; arguments and result as those of `train`."""
    check_stages(recipe, out, resume=resume)
    rank, world = join_processes()
    how: dict[str, Any] = {"overfit": overfit, "quiet": quiet}
    how |= {"device": device, "threads": threads}
    try:
        for stage, config in chained(recipe, out):
            folder = out / stage.folder
            if not is_finished(folder, config):
                if rank == 0 and not quiet:
                    print(f"stage {stage.number} of {len(recipe.stages)}: {stage.name}")
                going_on = (folder / LAST).exists()
                if train(config, folder, resume=going_on, **how) is None:
                    return None
            if world > 1:
                dist.barrier()  # the next stage starts from what the first process has written
        if rank == 0:
            remove_unfinished(out)
            with atomic_write(out / FINAL) as temporary:
                shutil.copyfile(folder / FINAL, temporary)
    finally:
        if world > 1 and dist.is_initialized():
            dist.destroy_process_group()
    return out / FINAL


def chained(recipe: Recipe, out: Path) -> Iterator[tuple[Stage, Config]]:
    """Every stage with its config, which names the weights of the stage before as its start."""
    before: Stage | None = None
    for stage in recipe.stages:
        config = stage.config
        if before is not None:
            key = "start" if before.config.model.name == config.model.name else "start_prompt"
            starts = {"start": None, "start_prompt": None, key: str(out / before.folder / FINAL)}
            config = config.model_copy(update={"model": config.model.model_copy(update=starts)})
        yield stage, config
        before = stage


def is_finished(folder: Path, config: Config) -> bool:
    """Whether a stage has made all its steps."""
    final = folder / FINAL
    return final.is_file() and read_about(final).get("steps") == config.train.steps


# Before the work


def check_stages(recipe: Recipe, out: Path, *, resume: bool) -> None:
    """Refuse what would fail in a later stage, and folders that hold something else."""
    check_folders(recipe, out, resume=resume)
    before: dict[str, Any] | None = None
    for stage in recipe.stages:
        spec = model_spec(stage.config)
        shapes = {n: v.shape for n, v in stored_weights(spec.build()).items()}
        shapes = {n: shape for n, shape in shapes.items() if not n.startswith("hints.")}
        if before is not None:
            differs = [n for n, shape in before.items() if shapes.get(n) != shape]
            if differs:
                raise InputError(
                    f"stage {stage.name} cannot start from the stage before: {differs[0]} is"
                    f" {shapes.get(differs[0], 'not there')}, was {before[differs[0]]}; give both"
                    " the same model arguments"
                )
        open_data(stage.config)
        before = shapes
        if spec.name == ONLY_PROMPT:
            before = {n: shape for n, shape in shapes.items() if n.startswith("prompt.")}


def check_folders(recipe: Recipe, out: Path, *, resume: bool) -> None:
    """Go on only where this recipe is, begin only where nothing is."""
    if (out / LAST).exists():
        raise InputError(f"{out} holds a run without stages; choose another folder")
    begun = [s for s in recipe.stages if any((out / s.folder / n).exists() for n in (LAST, FINAL))]
    if begun and not resume:
        raise InputError(
            f"{out} already holds stage {begun[0].name}; continue with --resume or choose another"
            " folder"
        )
    if resume and not begun:
        raise InputError(f"nothing to resume: {out} holds no stage; leave --resume out to start")
    unfinished: Stage | None = None
    for stage, config in chained(recipe, out):
        if unfinished is not None and stage in begun:
            raise InputError(
                f"stage {unfinished.name} in {out} is not finished, but {stage.name} was begun from"
                " it; choose another folder, or delete what came after"
            )
        if not is_finished(out / stage.folder, config):
            unfinished = unfinished or stage
            continue
        changed = next(changes(read_about(out / stage.folder / FINAL)["config"], config, stage), "")
        if changed:
            raise InputError(
                f"stage {stage.name} in {out} was trained with another {changed}; put it back or"
                " choose another folder"
            )


def changes(stored: dict[str, Any], config: Config, stage: Stage) -> Iterator[str]:
    """Keys whose values decide the weights and are not those of a finished stage."""
    ignored = WITHOUT_EFFECT if stage.number == 1 else {*WITHOUT_EFFECT, *_STARTS}
    asked = config.model_dump(mode="json")
    for section in asked:
        for key in {**asked[section], **stored.get(section, {})}:
            name = f"{section}.{key}"
            if name not in ignored and stored.get(section, {}).get(key) != asked[section].get(key):
                yield name


_STARTS = {"model.start", "model.start_prompt"}  # of a folder that may have been moved since
