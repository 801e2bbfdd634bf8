"""The command line: one entry point, one function per command, heavy imports inside them.

A user's mistake ends with one sentence on stderr and exit code 2; nothing half-written stays.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ducos.errors import InputError

app = typer.Typer(
    help="Super-resolve depth maps: a colour image and a small depth map in, a sharp one out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Options that belong to no command."""
    if version:
        from ducos import __version__

        print(__version__)
        raise typer.Exit


@app.command()
def upscale(
    rgb: Annotated[Path, typer.Argument(help="Colour image.")],
    depth: Annotated[Path, typer.Argument(help="Depth map of the same field of view, any size.")],
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="Where to write: .png (16 bit), .exr, .npy, .npz, .tiff, .pfm, .h5"
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="Name from `ducos models` or a weight file. Default: the embedded one."),
    ] = None,
    unit: Annotated[
        str, typer.Option(help="Of the stored depth: auto, m, mm, cm, relative.")
    ] = "auto",
    scale: Annotated[
        float | None, typer.Option(help="Metres per stored value, instead of a unit.")
    ] = None,
    mask: Annotated[
        Path | None, typer.Option(help="Image that is 0 where depth is invalid.")
    ] = None,
    preview: Annotated[
        Path | None, typer.Option(help="Also write a picture: colour | input | result.")
    ] = None,
    keep_holes: Annotated[
        bool, typer.Option(help="Leave holes invalid instead of filling them.")
    ] = False,
    depth_intrinsics: Annotated[
        Path | None, typer.Option(help="JSON of the depth camera, see docs/cameras.md.")
    ] = None,
    rgb_intrinsics: Annotated[Path | None, typer.Option(help="JSON of the colour camera.")] = None,
    extrinsics: Annotated[Path | None, typer.Option(help="JSON, depth to colour camera.")] = None,
    field_of_view: Annotated[
        float | None, typer.Option(help="Horizontal degrees, for a cloud without intrinsics.")
    ] = None,
    cloud: Annotated[Path | None, typer.Option(help="Also write a point cloud, .ply")] = None,
    mesh: Annotated[Path | None, typer.Option(help="Also write a mesh, .glb")] = None,
    cloud_preview: Annotated[Path | None, typer.Option(help="Picture of the cloud.")] = None,
    consistent: Annotated[
        bool, typer.Option(help="Make the result agree with the input when shrunk again.")
    ] = False,
    any_aspect: Annotated[bool, typer.Option(help="Accept differing aspect ratios.")] = False,
    as_json: Json = False,
) -> None:
    """Super-resolve one depth map to the size of its colour image.

    Example: ducos upscale rgb.png depth.png -o sharp.exr --preview look.png
    """
    from ducos import io
    from ducos.infer import SOURCES, read_colour, read_low, super_resolve

    io.check_output(out)
    if preview:
        io.check_output(preview)
    image = read_colour(rgb)
    low = read_low(depth, unit, scale, mask)
    views = [path for path in (cloud, mesh, cloud_preview) if path]
    for path in views:
        io.check_output(path)
    if depth_intrinsics or extrinsics:
        if not (depth_intrinsics and rgb_intrinsics and extrinsics):
            raise InputError(
                "registration needs --depth-intrinsics, --rgb-intrinsics and --extrinsics"
            )
        from ducos.camera import registered

        size = (image.shape[0], image.shape[1])
        low, sentence = registered(low, size, depth_intrinsics, rgb_intrinsics, extrinsics)
        if not as_json:
            print(sentence)
    if views and low.unit == "relative":
        raise InputError("a cloud needs metres: pass --unit or --scale")
    if views and not (rgb_intrinsics or field_of_view):
        raise InputError("a cloud needs --rgb-intrinsics, or --field-of-view DEGREES")
    with waiting("super-resolving", quiet=as_json):
        result = super_resolve(
            image,
            low,
            model=model,
            keep_holes=keep_holes,
            consistent=consistent,
            any_aspect=any_aspect,
        )
    relative = low.unit == "relative"
    keeps_layers = out.suffix.lower() in (".npz", ".exr", ".h5", ".hdf5")
    layers = {"source": result.source, "sigma": result.sigma} if keeps_layers else {}
    written = io.write_depth(
        out,
        result.depth,
        result.valid,
        unit="relative" if relative else None,
        layers={name: layer for name, layer in layers.items() if layer is not None},
        about={"model": result.model, "input_unit": result.note},
    )
    if preview:
        from ducos.preview import comparison

        io.write_image(preview, comparison(image, low.depth, low.valid, result.depth, result.valid))
    if views:
        from ducos.camera import Camera, checked_camera
        from ducos.cloud import cloud_picture, point_cloud, write_glb, write_ply

        H, W = result.depth.shape
        if rgb_intrinsics:
            camera = checked_camera(rgb_intrinsics, "colour", (H, W)).scaled(W, H)
        else:
            camera = Camera.from_field_of_view(W, H, float(field_of_view or 0))
        points = point_cloud(result.depth, result.valid, image, camera)
        if cloud:
            write_ply(cloud, points)
        if mesh:
            write_glb(mesh, result.depth, result.valid, image, camera)
        if cloud_preview:
            io.write_image(cloud_preview, cloud_picture(points, camera))
    shown = result.depth[result.valid]
    holes = float(1 - low.valid.mean())
    nearest, farthest = float(shown.min()), float(shown.max())
    if as_json:
        shares = {name: float((result.source == code).mean()) for code, name in SOURCES.items()}
        summary = {
            "out": str(out),
            "preview": str(preview) if preview else None,
            "model": result.model,
            "size": list(result.depth.shape),
            "input_size": list(low.depth.shape),
            "unit_decision": result.note,
            "holes_in_input": holes,
            "source": shares,
            "min": nearest,
            "max": farthest,
            "residual": result.residual,
            "written": vars(written),
        }
        print(json.dumps(summary))
        return
    (h, w), (H, W) = low.depth.shape, result.depth.shape
    metres = "" if relative else " m"
    print(result.note)
    print(f"{w}×{h} → {W}×{H} with {result.model}; {100 * holes:.1f} % holes in the input")
    print(f"depth {nearest:.3f} to {farthest:.3f}{metres}")
    print(f"shrunk again it differs from the input by {result.residual:.4f}{metres} RMS")
    if result.model == "bicubic" and model is None:
        print("no trained weights are installed: this is mask-aware bicubic interpolation")
    print(f"wrote {out}" + (f" and {preview}" if preview else ""))


@app.command()
def doctor(
    rgb: Annotated[Path, typer.Argument(help="Colour image.")],
    depth: Annotated[Path, typer.Argument(help="Depth map.")],
    unit: Annotated[str, typer.Option(help="auto, m, mm, cm, relative.")] = "auto",
    scale: Annotated[float | None, typer.Option(help="Metres per stored value.")] = None,
    mask: Annotated[Path | None, typer.Option(help="Image that is 0 where invalid.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a picture.")] = None,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a pair, and what to do; exit code 1 if it cannot be used."""
    from ducos import io
    from ducos.doctor import examine

    if report:
        io.check_output(report)
    found = examine(rgb, depth, unit=unit, scale=scale, mask=mask)
    if report:
        from ducos.doctor_report import report_picture

        io.write_image(report, report_picture(found))
    print(found.to_json() if as_json else "\n".join(found.lines()))
    if found.worst == "error":
        raise typer.Exit(1)


@app.command("models")
def list_models(
    prompts: Annotated[bool, typer.Option("--prompts", help="List the prompts instead.")] = False,
    as_json: Json = False,
) -> None:
    """List the models (or prompts) with parameters, licence of the weights, and what they are."""
    from ducos.catalogue import model_rows, prompt_rows

    rows = prompt_rows() if prompts else model_rows()
    if as_json:
        print(json.dumps({"prompts" if prompts else "models": rows}))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for title in rows[0]:
        number = title in ("parameters", "gmac")
        table.add_column(title, justify="right" if number else "left", no_wrap=title != "about")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # into files and pipes: no need to fold
    console.print(table)


@app.command()
def train(
    config: Annotated[Path, typer.Argument(help="TOML file, see configs/.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder of the run.")] = Path("runs/run"),
    override: Annotated[
        list[str] | None, typer.Option("--set", help="section.key=value, repeatable.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    accept_noncommercial: Annotated[
        bool, typer.Option(help="Use a prompt whose weights forbid commercial use.")
    ] = False,
    overfit: Annotated[
        bool, typer.Option("--overfit", help="Repeat one batch: can it be learned?")
    ] = False,
) -> None:
    """Train with Lagrangian duality. Ctrl-C finishes the step and saves; --resume goes on exactly.

    Several processes: torchrun --nproc-per-node 2 -m ducos train CONFIG.toml
    """
    from ducos.config import load_config
    from ducos.train import train as run

    changes = list(override or [])
    if accept_noncommercial:
        changes.append("model.prompt_options.accept_noncommercial=true")
    final = run(load_config(config, changes), out, resume=resume, overfit=overfit)
    if final:
        print(f"done: {final}")
    else:
        print(f"stopped and saved; continue with: ducos train {config} -o {out} --resume")


@app.command("eval")
def evaluate(
    model: Annotated[
        list[str] | None, typer.Option(help="Name or weight file, repeatable.")
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="name:PLACE, such as bench:DIR or nyu:FILE, repeatable."),
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="How low-resolution maps are made and scored.")
    ] = "synthetic",
    scale: Annotated[
        list[float] | None, typer.Option(help="Repeatable; default: the protocol's.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results.json, results.csv, pictures.")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Score the files of this folder instead of running a model.")
    ] = None,
    save_predictions: Annotated[
        bool, typer.Option(help="Keep each prediction under --out.")
    ] = False,
    pictures: Annotated[int, typer.Option(help="How many error-map pictures per row.")] = 0,
    as_json: Json = False,
) -> None:
    """Score models on datasets under a named protocol.

    Example: ducos eval --model bicubic --dataset bench:middlebury30 --scale 4 --scale 8
    """
    from ducos.evaluate import run_evaluation

    run_evaluation(
        models=model or [],
        datasets=dataset or [],
        protocol=protocol,
        scales=scale or [],
        out=out,
        predictions=predictions,
        save_predictions=save_predictions,
        pictures=pictures,
        as_json=as_json,
    )


@app.command("reproduce")
def reproduce_table(
    name: Annotated[
        str,
        typer.Argument(
            help="synthetic, arbitrary, real, noisy, compressed, components, fusion, prompts or"
            " errors."
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(envvar="DUCOS_DATA", help="Folder of datasets; see docs/reproduce.md."),
    ] = None,
    datasets: Annotated[
        str, typer.Option(help="Which of the table's datasets, such as middlebury,lu.")
    ] = "",
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="NAME=SPEC, such as middlebury=bench:DIR, repeatable."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Name or weight file for every scale. Default: bicubic and ours."),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(help="METHOD=FILE or METHOD=FILE@SCALE, such as dctnet=x8.safetensors@8."),
    ] = None,
    scale: Annotated[list[float] | None, typer.Option(help="Instead of the table's.")] = None,
    protocol: Annotated[str | None, typer.Option(help="Instead of the table's.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder; default: reproduce/NAME.")
    ] = None,
    pictures: Annotated[
        int | None, typer.Option(help="Error-map pictures per dataset and scale.")
    ] = None,
    images: Annotated[int, typer.Option(help="Only so many images per dataset; 0: all.")] = 0,
    timed: Annotated[
        bool, typer.Option("--time", help="For prompts: also measure their seconds.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Reproduce a table or figure of the paper: our figures beside the published ones.

    Example: ducos reproduce synthetic --data DATA --datasets middlebury,lu
    """
    from ducos.reproduce import run_reproduction

    run_reproduction(
        name,
        datasets=datasets,
        data=data,
        places=dataset or [],
        models=model or [],
        weights=weights or [],
        scales=scale or [],
        protocol=protocol,
        out=out,
        pictures=pictures,
        images=images,
        timed=timed,
        as_json=as_json,
    )


@app.command("convert")
def convert_weights(
    method: Annotated[str, typer.Argument(help="Name from `ducos models`, such as dctnet.")],
    file: Annotated[Path, typer.Argument(help="The authors' checkpoint.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Weight file to write, .safetensors.")],
) -> None:
    """Turn an authors' checkpoint into a weight file of ours; nothing in it is ever executed.

    Example: ducos convert dctnet 8X.pth -o dctnet-x8.safetensors
    """
    from ducos import io
    from ducos.checkpoint import ModelSpec, save_model
    from ducos.convert import arguments, convert
    from ducos.models import MODELS

    io.check_output(out)
    if out.suffix != ".safetensors":
        raise InputError(f"weights are written as .safetensors, got {out}")
    weights = convert(method, file)
    spec = ModelSpec(method, kwargs=arguments(method, weights))
    about = {"licence": MODELS[method].licence, "converted_from": file.name}
    save_model(out, spec, weights, about)
    count = sum(tensor.numel() for tensor in weights.values())
    print(f"wrote {out}: {method}, {len(weights)} tensors, {count} numbers")
    print(f"licence of these weights: {MODELS[method].licence}")


@app.command()
def synth(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder of the set.")],
    scenes: Annotated[int, typer.Option(help="How many scenes; even seeds rooms, odd tabletops.")],
    views: Annotated[int, typer.Option(help="Pictures per scene.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the first scene.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes, one thread each.")] = 2,
    assets: Annotated[
        Path | None, typer.Option(help="Folder made by `ducos synth-assets`; none: plain forms.")
    ] = None,
    size: Annotated[str, typer.Option(help="Width × height, such as 640x480.")] = "640x480",
) -> None:
    """Render a training set with Blender: colour, sharp planar depth, cameras. Resumes by itself.

    Needs pip install 'ducos[synth]'. The same seed gives the same depth, byte for byte.
    """
    from rich.console import Console
    from rich.progress import Progress as Bar

    from ducos.synth.generate import generate

    try:
        width, height = (int(side) for side in size.lower().split("x"))
    except ValueError:
        raise InputError(f"--size is WIDTHxHEIGHT, such as 640x480; got {size!r}") from None
    with Bar(console=Console(stderr=True)) as bar:
        task = bar.add_task("rendering scenes", total=scenes)
        state = generate(
            out,
            scenes,
            views,
            seed,
            workers,
            assets=assets,
            size=(height, width),
            progress=lambda now: bar.update(
                task, completed=now.done + now.skipped + len(now.failed)
            ),
        )
    print(f"{state.done} scenes rendered, {state.skipped} were there, {len(state.failed)} failed")
    for number, trouble in state.failed.items():
        print(f"scene {number}: {trouble.strip().splitlines()[-1]}", file=sys.stderr)
    if state.failed:
        raise typer.Exit(1)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the results.")] = Path(
        "demo-output"
    ),
    model: Annotated[str | None, typer.Option(help="Name or weight file.")] = None,
) -> None:
    """Super-resolve the bundled example: depth, a picture, and figures against the truth."""
    from ducos.example import run_demo

    run_demo(out, model)


@app.command()
def selftest(as_json: Json = False) -> None:
    """Run the bundled example and compare with the stored figures: is this installation sound?"""
    from ducos.example import run_selftest

    report = run_selftest()
    if as_json:
        print(json.dumps(report))
    else:
        for row in report["rows"]:
            mark = "ok" if row["ok"] else "DIFFERS"
            figures = f"RMSE {row['rmse_cm']:.4f} cm, stored {row['stored_cm']:.4f} cm"
            print(f"{row['model']}: {figures}: {mark}")
    if not report["ok"]:
        raise typer.Exit(1)


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    return "" if value is None else str(value)


def waiting(text: str, *, quiet: bool) -> Any:
    """A spinner on stderr for work that takes more than a moment."""
    from contextlib import nullcontext

    from rich.console import Console

    return nullcontext() if quiet else Console(stderr=True).status(text)


def main() -> None:
    """Entry point of the console script."""
    try:
        app()
    except InputError as problem:
        print(f"ducos: {problem}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
