"""Options that mean the same in several commands."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Model = Annotated[
    str | None,
    typer.Option(help="Name from `ducos models` or a weight file. Default: the embedded one."),
]
Unit = Annotated[str, typer.Option(help="Of the stored depth: auto, m, mm, cm, relative.")]
Scale = Annotated[float | None, typer.Option(help="Metres per stored value, instead of a unit.")]
KeepHoles = Annotated[
    bool, typer.Option("--keep-holes", help="Leave holes invalid instead of filling them.")
]
Consistent = Annotated[
    bool,
    typer.Option("--consistent", help="Make the result agree with the input when shrunk again."),
]
AcceptNoncommercial = Annotated[
    bool,
    typer.Option(
        "--accept-noncommercial", help="Use a prompt whose weights forbid commercial use."
    ),
]
AnyAspect = Annotated[bool, typer.Option("--any-aspect", help="Accept differing aspect ratios.")]
Tile = Annotated[
    str, typer.Option(help="Memory for strips of a large picture: auto, off, or such as 400MB.")
]
Sensor = Annotated[
    str,
    typer.Option(
        help="What made the depth map, if you know: tof (Kinect v2, Azure Kinect, Femto, phones'"
        " ToF), lidar (iPhone, iPad), stereo (RealSense, ZED, OAK-D, Kinect v1)."
    ),
]
Shift = Annotated[
    str,
    typer.Option(
        help="Where the depth lies on the colour image: pixels too far right and down, such as"
        " 12,-3; check measures it as `ducos doctor` does and warns, auto also moves it back if"
        " sure, off does not look."
    ),
]
