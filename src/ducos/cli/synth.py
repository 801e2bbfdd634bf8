"""Training images rendered with Blender, and the furniture, skies and textures for them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ducos.errors import InputError
from ducos.files import check_output_folder


def synth(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder of the set.")],
    scenes: Annotated[int, typer.Option(help="How many scenes; even seeds rooms, odd tabletops.")],
    kind: Annotated[
        str | None, typer.Option(help="All of one kind: room, tabletop or 'still life' (cloth).")
    ] = None,
    views: Annotated[int, typer.Option(help="Images per scene.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the first scene.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes, one thread each.")] = 2,
    assets: Annotated[
        Path | None, typer.Option(help="Folder made by `ducos synth-assets`; none: plain forms.")
    ] = None,
    path: Annotated[
        bool,
        typer.Option(
            "--path", help="Views follow each other along the path of a hand-held camera."
        ),
    ] = False,
    size: Annotated[str, typer.Option(help="Width × height, such as 640x480.")] = "640x480",
) -> None:
    r"""Render a training set with Blender: colour, sharp planar depth, cameras. Resumes by itself.

    Needs pip install 'ducos\[synth]'. The same seed gives the same depth, byte for byte.
    """
    from rich.console import Console
    from rich.progress import Progress as Bar

    from ducos.synth.generate import generate

    try:
        width, height = (int(side) for side in size.lower().split("x"))
    except ValueError:
        raise InputError(f"--size is WIDTHxHEIGHT, such as 640x480; got {size!r}") from None
    check_output_folder(out)
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
            kind=kind,
            path=path,
            progress=lambda now: bar.update(
                task, completed=now.done + now.skipped + len(now.failed)
            ),
        )
    print(f"{state.done} scenes rendered, {state.skipped} were there, {len(state.failed)} failed")
    for number, trouble in state.failed.items():
        print(f"scene {number}: {trouble.strip().splitlines()[-1]}", file=sys.stderr)
    if state.failed:
        raise typer.Exit(1)


def synth_assets(
    out: Annotated[Path, typer.Argument(help="Folder to fill, for `ducos synth --assets`.")],
    furniture: Annotated[
        list[Path] | None,
        typer.Option(help="Sweet Home 3D library, .sh3f, or a folder of them; repeatable."),
    ] = None,
    hdri: Annotated[
        Path | None, typer.Option(help="Tarball of @pmndrs/assets, or its unpacked folder.")
    ] = None,
    scanned: Annotated[
        Path | None, typer.Option(help="Folder of objects: NAME/model.obj, NAME/texture.png.")
    ] = None,
    textures: Annotated[
        Path | None, typer.Option(help="Folder of images; subfolders floor, wall, ... sort them.")
    ] = None,
    textures_licence: Annotated[
        str | None, typer.Option(help="Licence of those images, such as CC0-1.0.")
    ] = None,
) -> None:
    """Prepare furniture, skies, objects and textures for `ducos synth`, from downloaded archives.

    Furniture:
    apt-get download sweethome3d-furniture && dpkg -x sweethome3d-furniture_*.deb furniture

    Skies: npm pack @pmndrs/assets

    Example: ducos synth-assets assets --furniture furniture/usr/share/sweethome3d/furniture
    --hdri pmndrs-assets-1.7.0.tgz
    """
    from tarfile import TarError
    from zipfile import BadZipFile

    from ducos.synth.prepare import prepare_assets

    if not (furniture or hdri or scanned or textures):
        raise InputError("nothing to prepare; give --furniture, --hdri, --scanned or --textures")
    if (textures is None) != (textures_licence is None):
        raise InputError("--textures and --textures-licence go together: sets list their licences")
    libraries = furniture_libraries(furniture or [])
    check_output_folder(out)
    try:
        catalogue = prepare_assets(
            out,
            furniture=libraries,
            hdri=hdri,
            scanned=scanned,
            textures={textures: textures_licence} if textures and textures_licence else None,
            report=lambda line: print(line, flush=True),
        )
    except (OSError, BadZipFile, TarError, KeyError) as problem:
        sources = ", ".join(str(path) for path in (*libraries, hdri, scanned, textures) if path)
        raise InputError(
            f"one of {sources} cannot be read, or {out} cannot be written: "
            f"{type(problem).__name__}: {problem}; download it again, or check the folder"
        ) from None
    print(f"{len(catalogue.assets)} assets in {out}")


def furniture_libraries(given: list[Path]) -> list[Path]:
    """The .sh3f files, those of folders included; refuses what is no archive by its name."""
    from zipfile import is_zipfile

    libraries: list[Path] = []
    for path in given:
        inside = sorted(path.glob("*.sh3f")) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"got {path}, which holds no .sh3f file; expected furniture libraries")
        libraries += inside
    for library in libraries:
        if library.exists() and not is_zipfile(library):
            raise InputError(f"got {library}, which is no .sh3f library (a zip); download it again")
    return libraries
