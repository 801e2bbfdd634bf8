"""What a run needs before its first step: network, multipliers, data; and what forbids it."""

import json
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ducos.data import Dataset, open_dataset, split_by_scene
from ducos.errors import InputError
from ducos.models import Model, ModelSpec, check_arguments
from ducos.training.config import Config
from ducos.training.dual import Constraint, Dual
from ducos.training.patches import PatchBatches
from ducos.training.processes import half_precision_runs
from ducos.training.prompt_cache import FeatureCache
from ducos.training.run import Run, load_start, start_average
from ducos.training.table import preset_dual


def check_folder(out: Path, *, resume: bool) -> None:
    """Go on only where a run is, begin only where none is."""
    last = out / "last.safetensors"
    if resume and not last.exists():
        raise InputError(f"nothing to resume: {last} does not exist; leave --resume out to start")
    if last.exists() and not resume:
        raise InputError(
            f"{out} already holds a run; continue it with --resume or choose another folder"
        )


def differences(config: Config, out: Path) -> list[str]:
    """How a config differs from the one that the run in `out` was begun with, key by key."""
    try:
        before = json.loads((out / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    old, new = _flat(before), _flat(json.loads(config.model_dump_json()))
    return [
        f"{key} = {old.get(key, 'nothing')!r}, now {new.get(key, 'nothing')!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _flat(value: Any, place: str = "") -> dict[str, Any]:
    """Tables within tables as one, with keys such as train.steps."""
    if not isinstance(value, dict):
        return {place: value}
    parts = (_flat(inner, f"{place}.{key}".lstrip(".")) for key, inner in value.items())
    return {key: inner for part in parts for key, inner in part.items()}


def check_machine(config: Config, device: torch.device, world: int) -> None:
    """Refuse what these processes and this processor cannot do."""
    if config.train.batch_size % world:
        raise InputError(
            f"batch_size {config.train.batch_size} cannot be split over {world} processes; "
            "choose a multiple"
        )
    on_cpu = device.type == "cpu"
    if config.train.precision == "bfloat16" and on_cpu and not half_precision_runs():
        raise InputError(
            "precision bfloat16 crashes on this machine: its CPU announces instructions (AMX) that "
            "it does not have; set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment, or "
            "train with precision float32"
        )


def model_spec(config: Config) -> ModelSpec:
    """Which network the config asks for."""
    asked = config.model
    return ModelSpec(asked.name, asked.prompt, asked.prompt_options, asked.kwargs)


def start_run(config: Config, spec: ModelSpec, device: torch.device) -> Run:
    """A run at step 0."""
    check_arguments([spec.kwargs, spec.prompt_options], "model.kwargs")
    torch.manual_seed(config.train.seed)
    model = spec.build().to(device)
    load_start(model, config)
    freeze_others(model, config.model.tune)
    trainable = [p for p in model.parameters() if p.requires_grad]
    if not trainable:
        raise InputError(f"{spec.name} has nothing to train")
    return Run(
        model=model,
        optimizer=torch.optim.Adam(trainable, lr=config.train.rate, betas=config.train.betas),
        dual=build_dual(config),
        average=start_average(model) if config.train.average else {},
    )


def freeze_others(model: Model, parts: list[str]) -> None:
    """Only these parts of a network learn; all of it if none are named."""
    if not parts:
        return
    known = {name.split(".")[0] for name, _ in model.named_parameters()}
    for part in parts:
        if part not in known:
            raise InputError(f"model.tune has {part!r}; this network has: {', '.join(known)}")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.split(".")[0] in parts)


def build_dual(config: Config) -> Dual:
    """The preset's multipliers of the chosen constraints, with the config's overrides."""
    preset = preset_dual(config.dual.preset, config.dual.constraints)
    constraints = {
        name: Constraint(**{**vars(start), **config.dual.of(name).numbers})
        for name, start in preset.constraints.items()
    }
    return Dual(constraints, decay=config.dual.decay or preset.decay)


def open_data(config: Config) -> tuple[Dataset, Dataset]:
    """Training and validation pairs; without the latter, a share of the scenes is held out."""
    everything = open_dataset(config.data.train)
    if config.data.validation:
        return everything, open_dataset(config.data.validation)
    return split_by_scene(everything, config.data.validation_share)


def open_batches(
    config: Config, model: Model, pairs: Dataset, rank: int, world: int
) -> PatchBatches:
    """The batches the config describes."""
    return PatchBatches(
        pairs,
        batch_size=config.train.batch_size,
        crop=config.data.crop,
        measurements=config.data.measurements,
        scales=config.data.scales,
        anisotropy=config.data.anisotropy,
        degradations=config.data.degradations,
        augmentations=config.data.augmentations,
        when=config.data.when,
        told_shrinking=config.data.told_shrinking,
        seed=config.train.seed,
        cache=open_cache(config, model, pairs, rank, world),
    )


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
