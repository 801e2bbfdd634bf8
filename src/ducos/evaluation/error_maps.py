"""Error maps to look at: RGB | input | prediction | target | error, one line per model.

All depth panels of a sheet share one colour scale, and so do all error panels of a run: black is no
error, warmer is more. The end of the error scale comes from bicubic's errors, not from the models',
so that sheets of different models can be laid side by side.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ducos.arrays import Floats, Mask
from ducos.data import Dataset
from ducos.evaluation.cases import Case, as_batch, make_case, scale_name, score
from ducos.evaluation.protocols import UNITS, Protocol
from ducos.pictures import Picture, captioned, colourise, side_by_side, write_image
from ducos.resize import bicubic, fill_holes

PANEL_WIDTH = (240, 640)  # pixels; captions need the first, screens end at five times the second
BAR_HEIGHT = 10
ERROR_PALETTE = "inferno"
ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)


class Sheets:
    """Error-map sheets of some images of a dataset, spread evenly over it, on one error scale."""

    def __init__(
        self, out: Path, dataset: Dataset, protocol: Protocol, scale: float | None, count: int
    ):
        self.folder = out / "pictures" / dataset.name / scale_name(scale)
        self.dataset, self.protocol, self.scale = dataset, protocol, scale
        spread = np.linspace(0, len(dataset) - 1, min(count, len(dataset)))
        self.indices = {round(index) for index in spread.tolist()}
        self.limit = error_limit([self._bicubic_error(index) for index in sorted(self.indices)])

    def _bicubic_error(self, index: int) -> NDArray[np.floating]:
        case = make_case(self.dataset[index], self.protocol, self.scale, self.dataset.unit)
        filled = fill_holes(as_batch(case.low), as_batch(case.low_valid))
        upsampled = bicubic(filled, (case.target.shape[0], case.target.shape[1]))[0, 0].numpy()
        return UNITS[self.dataset.unit][1] * (upsampled - case.target)[case.valid]

    def __call__(self, index: int, case: Case, predicted: Mapping[str, Floats]) -> None:
        """Draw and write the sheet of this image if it is one of the chosen."""
        if index not in self.indices:
            return
        lines = []
        for name, prediction in predicted.items():
            rmse = score(prediction, case, self.protocol, self.dataset.unit)["rmse"]
            unit = UNITS[self.dataset.unit][0]
            lines.append((f"{Path(name).stem}: RMSE {rmse:.2f} {unit}", prediction))
        title = (
            f"{self.dataset.name} / {case.name}, {scale_name(self.scale)}, {self.protocol.label}"
        )
        sheet = error_sheet(title, case, lines, self.limit, self.dataset.unit)
        path = self.folder / f"{case.name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_image(path, sheet)


def error_limit(errors: Sequence[NDArray[np.floating]]) -> float:
    """End of a common error scale: the 98th percentile of all errors, rounded up."""
    pooled = np.concatenate([np.abs(error).ravel() for error in errors])
    percentile = float(np.percentile(pooled, 98)) if pooled.size else 0.0
    if percentile <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(percentile))
    return next(digit * power for digit in ROUND if digit * power >= percentile)


def error_sheet(
    title: str,
    case: Case,
    predictions: Sequence[tuple[str, Floats]],
    limit: float,
    unit: str,
) -> Picture:
    """One sheet: a line of five panels for each prediction.

    Args:
        title: stands under the panels: dataset, image, scale and protocol.
        predictions: captions and maps (H, W), in the dataset's unit like those of the case.
        limit: error of the warmest colour, in the unit of the figures. unit: the dataset's.
    """
    H, W = case.target.shape
    shown_unit, factor = UNITS[unit]
    known = case.target[case.valid] if case.valid.any() else case.target
    lowest, highest = (float(x) for x in np.percentile(known, (1, 99)))

    def depth(values: Floats, mask: Mask | None) -> Picture:
        return colourise(values, mask, lowest=lowest, highest=highest)

    h, w = case.low.shape
    pixels = Image.fromarray(depth(case.low, case.low_valid)).resize(
        (W, H), Image.Resampling.NEAREST
    )
    before = [
        ("RGB", (case.rgb * 255).round().astype(np.uint8)),
        (f"input {w} x {h}", np.asarray(pixels)),
    ]
    truth = ("target", depth(case.target, case.valid))
    lines = []
    for caption, prediction in predictions:
        error = factor * np.abs(prediction - case.target)
        hot = colourise(error, case.valid, lowest=0, highest=limit, palette=ERROR_PALETTE)
        panels = [*before, (caption, depth(prediction, None)), truth]
        panels.append((f"error, 0 to {limit:g} {shown_unit}", hot))
        lines.append(side_by_side([(text, _fitted(picture)) for text, picture in panels]))
    return np.vstack([*lines, _footer(title, limit, shown_unit, lines[0].shape[1])])


def _fitted(picture: Picture) -> Picture:
    """The picture at a width between the two of PANEL_WIDTH."""
    H, W = picture.shape[:2]
    narrowest, widest = PANEL_WIDTH
    if narrowest <= W <= widest:
        return picture
    # Small maps grow by a whole factor, so that their pixels stay what they are.
    width = W * math.ceil(narrowest / W) if narrowest > W else widest
    how = Image.Resampling.NEAREST if narrowest > W else Image.Resampling.BOX
    return np.asarray(Image.fromarray(picture).resize((width, max(1, round(H * width / W))), how))


def _footer(title: str, limit: float, unit: str, width: int) -> Picture:
    """Title, and the key of the error colours below the error panels."""
    key_width = width // 5
    ramp = np.broadcast_to(np.linspace(0, limit, key_width), (BAR_HEIGHT, key_width))
    key = colourise(ramp, lowest=0, highest=limit, palette=ERROR_PALETTE)
    blank = np.zeros((0, width - key_width, 3), np.uint8)
    text = captioned(title, blank)
    scale = captioned(f"0 … {limit / 2:g} … {limit:g} {unit}: warmer is worse", key)
    text = np.vstack([text, np.full((BAR_HEIGHT, text.shape[1], 3), text[0, 0], np.uint8)])
    return np.hstack([text, scale])
