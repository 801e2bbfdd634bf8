"""Embedded weights from one recipe: render, train, evaluate, choose, embed.

    python scripts/make_weights.py configs/ducos-tiny.toml --assets ASSETS --captures CAPTURES

Every step skips what is done, so a run that was stopped is continued by the same command;
`--dry-run` says what would be done. Sets to render stand in the recipe's [render], candidates and
the rule of choice in [choose], the name in [embed]; see `ducos.training.recipe`. Everything lies in
the folder of the run: seed-N/ for each seed, figures/ for each candidate, choice.json. A recipe
without [choose] ends after training.
"""

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import ducos
from ducos.data import digest, open_dataset
from ducos.errors import InputError
from ducos.evaluation import Choice, choose, figures_by_model, find_suite, known, score_suite
from ducos.evaluation.results import versions, write_json
from ducos.example import LOW, RGB, STORED, scores
from ducos.export import export_pieces
from ducos.models.checkpoint import (
    ModelSpec,
    beside_base,
    load_model,
    read_tensors,
    save_model,
    stored_weights,
    write_tensors,
)
from ducos.models.header import read_about
from ducos.runtime import can_run, description
from ducos.synth.generate import Manifest
from ducos.training.recipe import ChooseConfig, Recipe, RenderSet, load_recipe
from ducos.training.stages import chained, check_folders, is_finished
from ducos.upscaling import WEIGHTS, Options, count_all, default_model, super_resolve
from ducos.upscaling.weights import FACTS

SOURCE = Path(ducos.__file__).parents[1]
STATES = ("last", "final")  # files of a run that has begun


@dataclass(frozen=True)
class Step:
    """Something to do; done: whether it need not be."""

    words: str
    done: bool
    do: Callable[[], None]


def main() -> None:
    options = arguments()
    try:
        recipe = load_recipe(options.recipe, options.set)
        out = options.out or Path("runs") / recipe.name
        work(recipe, out, options)
    except InputError as problem:
        sys.exit(f"make_weights: {problem}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", type=Path, help="TOML file with stages, see configs/")
    parser.add_argument("-o", "--out", type=Path, help="folder of the run; default runs/NAME")
    parser.add_argument("--set", action="append", default=[], help="as in `ducos train`")
    parser.add_argument("--assets", type=Path, help="of `ducos synth-assets`; before the variable")
    parser.add_argument("--captures", type=Path, help="folder of captures, for the suite")
    parser.add_argument("--blender-python", default=sys.executable, help="a Python that has bpy")
    parser.add_argument("--processes", type=int, default=1, help="that train and render")
    parser.add_argument("--threads", type=int, help="of each process; default: all")
    parser.add_argument("--into", type=Path, default=WEIGHTS, help="where the weights go")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")
    return parser.parse_args()


def work(recipe: Recipe, out: Path, options: argparse.Namespace) -> None:
    """All steps in their order; each is looked at when the ones before are done."""
    needs_captures = recipe.choose is not None and recipe.choose.captures
    if needs_captures and options.captures is None and not options.dry_run:
        raise InputError("the rule of choice needs captures; give their folder: --captures DIR")
    for step in steps(recipe, out, options):
        state = "done before" if step.done else "would do" if options.dry_run else "now"
        print(f"{step.words}: {state}", flush=True)
        if not step.done and not options.dry_run:
            step.do()


def steps(recipe: Recipe, out: Path, options: argparse.Namespace) -> Iterator[Step]:
    for each in recipe.render.sets:
        words = f"render {each.scenes} scenes from seed {each.seed} into {each.folder}"
        yield Step(words, is_rendered(each), lambda each=each: render(each, recipe, options))
    runs = {seed: out / f"seed-{seed}" for seed in seeds_of(recipe)}
    for seed, folder in runs.items():
        words = f"train seed {seed} in {folder}"
        yield Step(
            words,
            is_trained(recipe.with_seed(seed), folder),
            lambda seed=seed, folder=folder: train(recipe, seed, folder, options),
        )
    rule = recipe.choose
    if rule is None:
        return
    candidates = {
        f"{folder.name}-{part}": path
        for folder in runs.values()
        for part, path in finals(recipe, folder)
    }
    for name, path in tuple(candidates.items()):
        for share in rule.between:
            blend = out / "between" / f"{name}-{share:g}.safetensors"
            candidates[blend.name.removesuffix(".safetensors")] = blend
            yield Step(
                f"blend {share:g} of {name} with its start",
                is_blended(blend, path),
                lambda path=path, blend=blend, share=share: blended(path, blend, share, recipe),
            )
    candidates |= {Path(path).stem: Path(path) for path in rule.against}
    for name, path in candidates.items():
        file = out / "figures" / f"{name}.json"
        yield Step(
            f"evaluate {name}",
            is_evaluated(path, file, rule, options),
            lambda path=path, file=file: evaluate(path, file, rule, options),
        )
    print(f"rule: {rule.rule} (minimise {rule.minimise}; {', '.join(rule.subject_to) or 'always'})")
    if not all((out / "figures" / f"{name}.json").is_file() for name in candidates):
        yield Step("choose and embed", False, lambda: None)  # of a dry run
        return
    winner, choice = chosen(candidates, rule, out)
    target = options.into / f"{recipe.embed.name or recipe.name}.safetensors"
    yield Step(
        f"embed {winner} as {target.stem}",
        read_about(target).get("made_of") == sha256(candidates[winner]),
        lambda: embed(candidates[winner], target, recipe, choice, out),
    )


# Render


def is_rendered(each: RenderSet) -> bool:
    """Whether every scene is listed with all its views."""
    views: dict[int, int] = {}
    for record in Manifest(Path(each.folder)).records():
        views[record["scene"]] = views.get(record["scene"], 0) + 1
    return all(views.get(seed) == each.views for seed in range(each.seed, each.seed + each.scenes))


def render(each: RenderSet, recipe: Recipe, options: argparse.Namespace) -> None:
    """`ducos synth`, by the Python that has Blender."""
    assets = options.assets or os.environ.get(recipe.render.assets)
    if not assets:
        raise InputError(
            f"rendering needs the folder of assets: give --assets DIR or set {recipe.render.assets}"
        )
    settings = {"out": each.folder, "scenes": each.scenes, "views": each.views, "seed": each.seed}
    settings |= {"assets": assets, "workers": options.processes}
    settings |= {"kind": each.kind} if each.kind else {}
    flags = [part for name, value in settings.items() for part in (f"--{name}", str(value))]
    run([options.blender_python, "-m", "ducos", "synth", *flags])
    if not is_rendered(each):
        raise InputError(f"{each.folder} lacks scenes that failed; run again to try them once more")


# Train


def seeds_of(recipe: Recipe) -> list[int]:
    chosen_seeds = recipe.choose.seeds if recipe.choose else []
    return chosen_seeds or [recipe.base.train.seed]


def is_trained(recipe: Recipe, folder: Path) -> bool:
    """Whether all stages are there; complains if they were trained otherwise."""
    if not recipe.stages:
        return is_finished(folder, recipe.base)
    if any((folder / stage.folder).exists() for stage in recipe.stages):
        check_folders(recipe, folder, resume=has_begun(recipe, folder))
    every = all(is_finished(folder / stage.folder, c) for stage, c in chained(recipe, folder))
    return every and (folder / "final.safetensors").is_file()


def has_begun(recipe: Recipe, folder: Path) -> bool:
    places = [folder / stage.folder for stage in recipe.stages] or [folder]
    return any((place / f"{name}.safetensors").exists() for place in places for name in STATES)


def train(recipe: Recipe, seed: int, folder: Path, options: argparse.Namespace) -> None:
    """`ducos train`, in as many processes as asked for."""
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(options.processes)]
    command = [sys.executable, "-P", *(launcher if options.processes > 1 else [])]
    command += ["-m", "ducos", "train", str(options.recipe), "-o", str(folder)]
    for change in [*options.set, f"train.seed={seed}"]:
        command += ["--set", change]
    if options.threads:
        command += ["--threads", str(options.threads)]
    run([*command, *(["--resume"] if has_begun(recipe, folder) else [])])
    if not is_trained(recipe.with_seed(seed), folder):
        raise InputError("training was stopped; run again to go on")


def run(command: list[str]) -> None:
    """A command of this package, also in another environment; its troubles end this script."""
    places = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    finished = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(places)})
    if finished.returncode:
        raise InputError(f"this failed (code {finished.returncode}): {' '.join(command)}")


# Blend


def is_blended(blend: Path, path: Path) -> bool:
    """Whether the blend is of these very trained weights."""
    if not (blend.is_file() and path.is_file()):
        return False
    return read_about(blend).get("blend", {}).get("of") == sha256(path)


def blended(path: Path, blend: Path, share: float, recipe: Recipe) -> None:
    """Weights `share` of the way from the start of the recipe to the trained ones: what a short
    training unlearned is partly there again, what it learned mostly is, too."""
    start = Path(str(recipe.base.model.start))
    (before, _), (after, header) = read_tensors(start), read_tensors(path)
    if before.keys() != after.keys():
        raise InputError(f"{start} and {path} are of different networks: there is no way between")
    tensors = {name: torch.lerp(before[name], after[name], share) for name in after}
    stated = {"share": share, "of": sha256(path), "start": sha256(start)}
    about = json.loads(header["about"]) | {"blend": stated}
    blend.parent.mkdir(parents=True, exist_ok=True)
    write_tensors(blend, tensors, {**header, "about": json.dumps(about)})


# Evaluate and choose


def finals(recipe: Recipe, folder: Path) -> list[tuple[str, Path]]:
    """Candidates of a run: final weights of the stages that the rule names, or of the last."""
    if not recipe.stages:
        return [("final", folder / "final.safetensors")]
    named = recipe.choose.stages if recipe.choose else []
    wanted = [s for s in recipe.stages if s.name in (named or [recipe.stages[-1].name])]
    return [(s.folder, folder / s.folder / "final.safetensors") for s in wanted]


def asked(path: Path, rule: ChooseConfig, options: argparse.Namespace) -> dict[str, Any]:
    """All that decides the figures of a candidate."""
    data = f"synth:{rule.data}" if rule.data and ":" not in rule.data else rule.data
    captures = f"captures:{options.captures}" if rule.captures and options.captures else ""
    return {
        "weights": sha256(path),
        "suite": json.loads(json.dumps(asdict(find_suite(rule.suite)))),
        "images": rule.images,
        "data": digest(open_dataset(data)) if data else None,
        "captures": digest(open_dataset(captures)) if captures else None,
    }


def is_evaluated(path: Path, file: Path, rule: ChooseConfig, options: argparse.Namespace) -> bool:
    if not (file.is_file() and path.is_file()):
        return False
    return bool(json.loads(file.read_text())["asked"] == asked(path, rule, options))


def evaluate(path: Path, file: Path, rule: ChooseConfig, options: argparse.Namespace) -> None:
    """`ducos eval --suite` of one candidate, into its file."""
    rows = score_suite(
        str(path),
        rule.suite,
        data=rule.data or None,
        captures=options.captures if rule.captures else None,
        images=rule.images,
        options=Options(threads=options.threads),
    )
    (figures,) = figures_by_model(rows).values()
    file.parent.mkdir(parents=True, exist_ok=True)
    stated = {"figures": known(figures), "rows": [row.as_dict() for row in rows]}
    write_json(file, {**versions(), "asked": asked(path, rule, options), **stated})


def figures_in(file: Path) -> dict[str, float]:
    stored = json.loads(file.read_text())["figures"]
    return {name: math.nan if value is None else value for name, value in stored.items()}


def chosen(candidates: dict[str, Path], rule: ChooseConfig, out: Path) -> tuple[str, Choice]:
    """The winner by the rule; choice.json tells how."""
    figures = {name: figures_in(out / "figures" / f"{name}.json") for name in candidates}
    choice = choose(figures, rule.minimise, rule.subject_to)
    print(*choice.sentences(), sep="\n")
    write_json(out / "choice.json", {**rule.model_dump(), **asdict(choice)})
    if choice.winner is None:
        raise InputError("no candidate keeps to the conditions; change the recipe, not the rule")
    return choice.winner, choice


# Embed


def embed(path: Path, target: Path, recipe: Recipe, choice: Choice, out: Path) -> None:
    """Put weights into the package, with figures, rule and the graphs of the runtime without torch,
    and count and measure them there."""
    model, spec, about = load_model(path)
    # These numbers are part of what was trained: state them, whatever the defaults become.
    tail = getattr(model, "tail", None)
    counts = ("corrections", "steepenings")
    fixed = {name: getattr(tail, name) for name in counts if hasattr(tail, name)}
    spec = ModelSpec(spec.name, spec.prompt, spec.prompt_options, {**spec.kwargs, **fixed})
    rule = recipe.choose
    assert rule is not None
    figures = known(figures_in(out / "figures" / f"{choice.winner}.json"))
    stated = {
        **{name: value for name, value in about.items() if name != "validation"},
        "name": target.stem,
        "trained_on": f"{about['training_set']['pairs']} {recipe.embed.trained_on}",
        "figures": {rule.suite: {n: v if v is None else round(v, 4) for n, v in figures.items()}},
        "chosen": {**rule.model_dump(), "of": choice.values},
        "made_of": sha256(path),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    tensors = stored_weights(model)
    if recipe.embed.base:
        tensors, base = beside_base(tensors, target.with_name(f"{recipe.embed.base}.safetensors"))
        stated |= base
    before = read_tensors(target)[0] if target.is_file() else {}
    save_model(target, spec, tensors, stated)
    print(f"{target}: {target.stat().st_size / 1e6:.2f} MB")
    keep_branches(target, before)
    if target.parent == WEIGHTS:
        export_pieces(target)
        count_and_measure()


def keep_branches(base: Path, before: dict[str, Tensor]) -> None:
    """Files that rest on a base are told of its new header, and their graphs with them, which name
    places in both files; those of other weights are useless."""
    now = read_tensors(base)[0]
    same = before.keys() == now.keys() and all(torch.equal(now[n], before[n]) for n in now)
    for path in sorted(base.parent.glob("*.safetensors")):
        if read_about(path).get("base") != base.stem:
            continue
        if same:
            tensors, header = read_tensors(path)
            about = json.loads(header["about"]) | {"base_sha256": sha256(base)}
            write_tensors(path, tensors, {**header, "about": json.dumps(about)})
            if can_run(path):
                export_pieces(path)
        else:
            for file in (path, description(path), *path.parent.glob(f"{path.stem}.*.onnx")):
                file.unlink(missing_ok=True)
            print(f"{path.name} rested on other weights of {base.stem} and is gone: make it again")


def count_and_measure() -> None:
    """What the package stores about its weights: `ducos models`, `ducos selftest`."""
    FACTS.write_text(json.dumps(count_all(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    expected = {
        each: round(scores(super_resolve(RGB, LOW, unit="mm", model=each))["rmse_cm"], 4)
        for each in ("bicubic", default_model())
    }
    STORED.write_text(json.dumps(expected) + "\n")
    print(f"example: {expected}")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
