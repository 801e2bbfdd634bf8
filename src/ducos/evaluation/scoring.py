"""Models × datasets × scales under one protocol -> figures, files and images.

Every input goes through `super_resolve`, the code users run. Prediction and scoring are separable:
predictions can be saved, and `predictions=FOLDER` scores files that any program wrote.
"""

import hashlib
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ducos.arrays import Floats
from ducos.data import Dataset, open_dataset
from ducos.errors import InputError
from ducos.evaluation.cases import Case, as_batch, make_case, scale_name, score
from ducos.evaluation.error_maps import Sheets
from ducos.evaluation.protocols import UNITS, Protocol, find
from ducos.evaluation.results import Row, known, write_results
from ducos.files import WRITTEN_AS, check_output, read_depth, write_depth
from ducos.models import Model, Prediction, Told
from ducos.normalise import Range, range_of
from ducos.upscaling import Options, load, super_resolve

Progress = Callable[[str, int], None]
Predictor = Callable[[Case], Floats]  # the (H, W) prediction; NaN where there is none


def evaluate(
    models: str | Sequence[str] | Mapping[str, nn.Module],
    datasets: str | Sequence[str | Dataset],
    protocol: str | Protocol = "synthetic",
    scales: Sequence[float] = (),
    *,
    options: Options | None = None,
    out: str | Path | None = None,
    predictions: str | Path | None = None,
    prediction_scale: float | None = None,
    save_predictions: bool = False,
    pictures: int = 0,
    progress: Progress | None = None,
) -> list[Row]:
    """Score models on datasets under one protocol.

    Args:
        models: name or weight file, several of them, or modules by name. With `predictions`: the
            name to list them under, if any.
        datasets: one or more specifications as for `open_dataset`, or datasets.
        scales: the protocol's own if empty; without effect where the data decide (`real`).
        options: how the models run: mode, noise, tile, device, threads, accept_noncommercial.
            Units, masks and sensors are the dataset's.
        out: folder for results.json, results.csv, predictions/ and pictures/.
        predictions: folder of files to score instead of running models: PAIR.npz (or another depth
            format) in DATASET/xSCALE/, DATASET/, xSCALE/ or the folder itself.
        prediction_scale: metres (or levels) per stored number, for files that do not state it.
        save_predictions: keep all predictions as NPZ below out/predictions/MODEL.
        pictures: how many error-map sheets to draw per dataset and scale.
        progress: called after each image with what it was and how many there are in all.
    """
    protocol = find(protocol) if isinstance(protocol, str) else protocol
    chosen_scales = protocol.checked_scales(tuple(scales))
    models = [models] if isinstance(models, str) else models
    opened = _opened([datasets] if isinstance(datasets, str) else datasets)
    options = options or Options()
    folder = None if out is None else made_folder(Path(out))
    if folder is None and (save_predictions or pictures):
        raise InputError("predictions and pictures need a folder to go to; pass out (--out DIR)")

    if predictions is None:
        networks = _networks(models, options)
        about = {name: describe(network) for name, network in networks.items()}
    else:
        networks = {}
        source = _existing(Path(predictions))
        label = _label(models, source)
        about = {label: {"predictions": str(source)}}

    def predictors(dataset: Dataset, scale: float | None) -> dict[str, Predictor]:
        if predictions is None:
            return {
                name: partial(run_network, network, protocol, options)
                for name, network in networks.items()
            }
        part_of_many = len(opened) > 1, len(chosen_scales) > 1
        place = prediction_folder(source, dataset.name, scale, *part_of_many)
        return {label: partial(read_prediction, place, dataset.unit, prediction_scale)}

    rows: list[Row] = []
    runs = [(dataset, scale) for dataset in opened for scale in chosen_scales]
    images = sum(len(dataset) for dataset, _ in runs)

    def advance(text: str) -> None:
        if progress is not None:
            progress(text, images * len(about))

    for number, (dataset, scale) in enumerate(runs, start=1):
        contestants = predictors(dataset, scale)
        keep = folder / "predictions" if folder is not None and save_predictions else None
        draw = None
        if folder is not None and pictures:
            draw = Sheets(folder, dataset, protocol, scale, pictures)
        rows += _compete(contestants, dataset, protocol, scale, keep, draw, advance)
        if folder is not None:  # after each run, so that an interrupted one leaves its results
            write_results(folder, protocol, about, rows, complete=number == len(runs))
    return rows


# ------------------------------------------------------------------------------- one dataset


def _compete(
    predictors: Mapping[str, Predictor],
    dataset: Dataset,
    protocol: Protocol,
    scale: float | None,
    keep: Path | None,
    draw: Sheets | None,
    advance: Callable[[str], None],
) -> list[Row]:
    """All contestants on one dataset at one scale; each image is read and degraded once."""
    per_image: dict[str, list[dict[str, Any]]] = {name: [] for name in predictors}
    ratios, inputs = [], set()
    for index in range(len(dataset)):
        pair = dataset[index]
        try:
            case = make_case(pair, protocol, scale, dataset.unit)
            predicted = {}
            for name, predictor in predictors.items():
                started = time.perf_counter()
                predicted[name] = predictor(case)
                seconds = time.perf_counter() - started
                figures = score(predicted[name], case, protocol, dataset.unit)
                per_image[name].append({"image": case.name, **figures, "seconds": seconds})
                if keep is not None:
                    folder = keep / _file_name(name) / dataset.name / scale_name(scale)
                    save_prediction(folder, case.name, predicted[name], dataset.unit)
                advance(f"{name} on {dataset.name} {scale_name(scale)}")
            if draw is not None:
                draw(index, case, predicted)
        except InputError as problem:
            raise InputError(f"{dataset.name}, pair {pair.name}: {problem}") from None
        ratios.append(math.sqrt(case.target.size / case.low.size))
        inputs.add(case.input)
    return [
        Row(
            model=name,
            dataset=dataset.name,
            protocol=protocol.name,
            protocol_id=protocol.id,
            scale=round(float(np.mean(ratios)), 2) if scale is None else scale,
            unit=UNITS[dataset.unit][0],
            input="+".join(sorted(inputs)),
            images=len(images),
            figures=_means(images),
            per_image=[known(image) for image in images],
        )
        for name, images in per_image.items()
    ]


def _means(images: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Each image counts the same. Images where a figure means nothing (no edge) are left out."""
    names = [name for name in images[0] if name != "image"]
    columns = {name: np.array([image[name] for image in images]) for name in names}
    return {
        name: float(np.nanmean(column)) if not np.isnan(column).all() else math.nan
        for name, column in columns.items()
    }


# ------------------------------------------------------------------------------- predictions


def run_network(network: nn.Module, protocol: Protocol, options: Options, case: Case) -> Floats:
    """What a user would get for this input."""
    if protocol.normalisation == "target":
        own = range_of(as_batch(case.low), as_batch(case.low_valid))
        told = range_of(as_batch(case.target), as_batch(case.valid))
        network = ToldTheRange(network, own, told)
    # As relative values with an explicit mask the numbers pass through untouched: levels may be 0,
    # and noise may make them negative.
    result = super_resolve(
        case.rgb,
        case.low,
        options,
        model=network,
        unit="relative",
        mask=case.low_valid,
        sensor=case.sensor,
        any_aspect=True,
        shift="off",
    )
    return np.asarray(result.depth)


class ToldTheRange(Model):
    """A model whose [0, 1] is the ground truth's range instead of the input's.

    For protocols that leak it, and only here: nothing a user runs ever sees a ground truth.
    """

    bounded = False  # the truth it is told of may lie far from the input that the protocol made

    def __init__(self, model: nn.Module, own: Range, told: Range):
        super().__init__()
        self.model, self.own, self.told = model, own, told
        self.training = model.training  # so that whoever restores the mode restores the model's

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        prediction = self.model(rgb, self.told.apply(self.own.undo(low)), valid)
        return Prediction(self.own.apply(self.told.undo(prediction.depth)))


def prediction_folder(
    root: Path, dataset: str, scale: float | None, many_datasets: bool, many_scales: bool
) -> Path:
    """The most specific folder there is; one folder cannot serve two datasets or scales."""
    x = scale_name(scale)
    for parts in ((dataset, x), (dataset,), (x,), ()):
        place = root.joinpath(*parts)
        if place.is_dir():
            break
    if (many_datasets and dataset not in parts) or (many_scales and x not in parts):
        raise InputError(
            f"{root} must hold a folder for each dataset and scale to score several of them;"
            f" expected {root / dataset / x}"
        )
    return place


def read_prediction(folder: Path, unit: str, scale: float | None, case: Case) -> Floats:
    """A prediction from its file, (H, W) in the dataset's unit, NaN where the file has a hole."""
    files = [path for suffix in WRITTEN_AS if (path := folder / f"{case.name}{suffix}").is_file()]
    if len(files) != 1:
        problem = f"{len(files)} files for one pair" if files else "no prediction for this pair"
        raise InputError(
            f"{problem} in {folder}; expected {case.name} with one of {', '.join(WRITTEN_AS)}"
        )
    path = files[0]
    levels = unit == "level"
    if scale is None:
        stored = read_depth(path)
        if levels and stored.guessed:  # the file does not say, but the dataset does
            stored = read_depth(path, unit="relative")
    else:
        stored = read_depth(path, unit="relative" if levels else "auto", scale=scale)
    if levels != (stored.unit == "relative"):
        raise InputError(
            f"{path} is in {stored.unit} ({stored.note}), but the dataset is in"
            f" {'levels' if levels else 'metres'}; write it so, or give the scale of its numbers"
        )
    H, W = case.target.shape
    if stored.depth.shape not in ((H, W), case.uncut):
        raise InputError(
            f"{path} is {stored.depth.shape[1]}×{stored.depth.shape[0]}, but the image is {W}×{H}"
        )
    return np.where(stored.valid, stored.depth, np.float32(np.nan))[:H, :W]


def save_prediction(folder: Path, name: str, prediction: Floats, unit: str) -> None:
    path = folder / f"{name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)  # a pair's name may hold folders of its own
    write_depth(path, prediction, unit="relative" if unit == "level" else "m")


# ------------------------------------------------------------------------------ shared parts


def _opened(datasets: Sequence[str | Dataset]) -> list[Dataset]:
    opened = [open_dataset(each) if isinstance(each, str) else each for each in datasets]
    if not opened:
        raise InputError("no dataset given; name one, such as bench:FOLDER (--dataset)")
    names = [dataset.name for dataset in opened]
    for dataset in opened:
        if names.count(dataset.name) > 1:
            raise InputError(f"two datasets are called {dataset.name}; rename a folder")
        if not len(dataset):
            raise InputError(f"{dataset.name} holds no pairs")
    return opened


def _networks(
    models: Sequence[str] | Mapping[str, nn.Module], options: Options
) -> dict[str, nn.Module]:
    if not models:
        raise InputError("no model given; name one, such as bicubic (--model)")
    if isinstance(models, Mapping):
        return dict(models)
    accepted = options.accept_noncommercial
    return {
        name: load(name, device=options.device, accept_noncommercial=accepted) for name in models
    }


def describe(network: nn.Module) -> dict[str, Any]:
    """Number of parameters and a digest of the weights: which ones exactly were measured."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    parameters = sum(parameter.numel() for parameter in network.parameters())
    return {"parameters": parameters, "weights_sha256": digest.hexdigest()}


def _label(models: Sequence[str] | Mapping[str, nn.Module], folder: Path) -> str:
    """The name under which a folder of predictions is listed."""
    if isinstance(models, Mapping) or len(models) > 1:
        raise InputError("a folder of predictions has one name; give at most one model name")
    return models[0] if models else folder.resolve().name


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; expected predictions named after the pairs")
    return folder


def made_folder(folder: Path) -> Path:
    """The output folder, so that what cannot be written fails before the work, not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{folder} cannot be made: {problem.strerror}; choose another") from None
    check_output(folder / "results.json")
    return folder


def _file_name(model: str) -> str:
    """A weight file's path as the name of one folder."""
    return re.sub(r"[^\w.-]+", "-", model.removesuffix(".safetensors")).strip("-.")
