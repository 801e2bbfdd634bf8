"""DuCos for CPUs: the paper's fusion at a quarter of the resolution, with the mixing tail.

What it does differently from the paper's text, and why, is in `docs/paper.md` ("The compact form").
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.deferred import kept, local
from ducos.errors import InputError
from ducos.models.blocks import Gathered
from ducos.models.ducos.around import TAPS, Around
from ducos.models.ducos.fusion import (
    Alignment,
    CorrelativeFusion,
    Lift,
    check_choice,
    check_counts,
)
from ducos.models.ducos.guide import WINDOWS
from ducos.models.ducos.image_branch import ImageBranch
from ducos.models.ducos.mixing import MixingTail, tolerated
from ducos.models.ducos.prior import Guess, PriorBranch
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.models.told import Hints
from ducos.prompts import Prompt, PromptModel, run_prompt
from ducos.resize import all_of, pad_to_multiple, padded_axes, to_cells

TAILS = ("mixing", "convolution")
STAGES = 4
NO_LIMIT = 1e9  # a tolerance that nothing exceeds


class DuCosCompact(Model):
    """Space-to-depth in, four correlative fusions with a residual around each, all of them handed
    to the tail.

    Args:
        prompt: built outside; None for the ablation without one.
        channels: width of every depth feature.
        iterations, fusion, blocks: see `CorrelativeFusion`.
        stride: the body works at 1/stride of the image's size.
        tail: "mixing" (see `mixing`); "convolution" for the ablation: the body sees the bicubic
            depth alone, and Eq. 8 predicts the difference from it.
        corrections: how often the mixing tail hands back what the shrunk result misses.
        steepenings: how often the mixing tail steepens edges.
        rank: of the mixing tail's convolution, see `MixingTail`.
        guided: also regress the measurements on the image (see `guide`), show both to the body and
            let the mixing tail follow the fit.
        wide: if guided, regress over a wide neighbourhood, too.
        prior: it can also be given a relative depth of the image, see `prior`; for ablations also
            the one part of the branch that it has, see `prior.PriorBranch`.
        shrinking: the body sees how the map was shrunk, see `shrinking`.
        align: project every stage for the alignment constraint.
        told: subject -> words that the network can be told about a map, the one for "not known"
            first: {"mode": ["faithful", "repair"], "sensor": ["unknown", "tof", ...]}. Where the
            mode is "faithful", the result, shrunk, agrees with the measurements within their noise.
    """

    multiple = 32  # the coarsest map of `tiny` then covers exactly the padded image
    takes_prompt = True
    takes_confidence = True
    takes_noise = True
    takes_shrunk_by = True
    in_strips = True

    def __init__(
        self,
        prompt: PromptModel | None,
        *,
        channels: int = 48,
        iterations: int = 2,
        blocks: int = 1,
        fusion: str = "pearson",
        stride: int = 4,
        tail: str = "mixing",
        corrections: int = 4,
        steepenings: int = 4,
        rank: int | None = None,
        guided: bool = True,
        wide: bool = False,
        align: bool = True,
        prior: bool | str = False,
        shrinking: bool = False,
        told: Mapping[str, Sequence[str]] | None = None,
    ):
        super().__init__()
        check_choice("tail", tail, TAILS)
        check_counts(channels=channels, iterations=iterations, blocks=blocks, stride=stride)
        if prior and not (guided and tail == "mixing"):
            raise InputError("prior needs guided and the mixing tail, got one of them off")
        if wide and not guided:
            raise InputError("wide needs guided, got guided=False")
        self.prompt: Any = ImageBranch(channels, stride, blocks) if prompt is None else prompt
        self.stride = stride
        self.mixes = tail == "mixing"
        self.sees_shrinking = shrinking and self.mixes
        self.sides = tuple(WINDOWS)[: 1 + wide] if guided and self.mixes else ()
        self.head = nn.Conv2d(self.described_channels(), channels, 3, padding=1)
        self.hints = Hints(told, channels) if told else None
        self.subjects = self.hints.subjects if self.hints else {}
        self.lifts = nn.ModuleList(
            Lift(self.prompt.channels[i], channels, deconvolve=False) for i in range(STAGES)
        )
        self.fusions = nn.ModuleList(
            CorrelativeFusion(
                channels,
                iterations=iterations,
                fusion=fusion,
                recurrence="reweight",
                blocks=blocks,
            )
            for _ in range(STAGES)
        )
        self.alignments = nn.ModuleList(Alignment(channels) for _ in range(STAGES if align else 0))
        self.gathered = nn.Conv2d(channels * (STAGES + 1), channels, 1)
        self.takes_prior = bool(prior)
        features, part = tuple(self.prompt.channels), "all" if prior is True else str(prior)
        self.prior = PriorBranch(channels, stride, features, STAGES, part) if prior else None
        self.tail: Any
        if self.mixes:
            self.tail = MixingTail(
                channels,
                stride=stride,
                corrections=corrections,
                steepenings=steepenings,
                guides=len(self.sides),
                rank=rank,
            )
        else:
            self.tail = nn.Conv2d(channels, stride**2, 3, padding=1)

    def forward(
        self,
        rgb: Tensor,
        low: Tensor,
        valid: Tensor | None = None,
        told: Told | None = None,
        prompt: Prompt | None = None,
        noise: Tensor | None = None,
        prior: Tensor | None = None,
        shrunk_by: Tensor | None = None,
    ) -> Prediction:
        """rgb (B, 3, H, W) in [0, 1], low (B, 1, h, w) normalised -> depth (B, 1, H, W).

        noise (B, 1, 1, 1) or (B, 1, h, w): of low, one standard deviation; None: none.
        prior (B, 1, H, W): relative depth of the image, of any kind; flat maps say nothing.
        shrunk_by (B, 3): how low was shrunk, for training; None: it is read off the map.
        """
        H, W = rgb.shape[-2:]
        if prompt is None:
            prompt = run_prompt(self.prompt, pad_to_multiple(rgb, self.multiple))
        around = Around.of(rgb, low, valid, self.sides, shrunk_by)
        guess = None if prior is None or self.prior is None else Guess.of(prior, around)
        hinted = prompt.features
        if guess is not None and self.prior is not None:
            hinted = self.prior.features(rgb, guess, hinted, self.multiple)
        features, alignment = self.fuse(self.start(rgb, around, told, guess), hinted, guess)
        relative = prompt.depth
        del prompt  # in strips, the tail needs its room
        if self.mixes:
            lean = self.prior.lean(features, (H, W)) if guess and self.prior else None
            tolerance = self.tolerance(around, told, noise)
            prediction = self.tail(features, around, tolerance, guess, lean)
        else:
            out = F.pixel_shuffle(self.tail(features), self.stride)[..., :H, :W]
            prediction = Prediction(around.upsampled + out)
        prediction.aux["alignment"] = alignment
        if relative is not None:
            prediction.aux["prompt_depth"] = relative[..., :H, :W]
            prediction.aux["prompt_inverse"] = self.prompt.inverse
            if guess is not None and torch.is_grad_enabled():  # the prior is the better teacher
                taught = torch.where(guess.has > 0, guess.fitted, relative[..., :H, :W])
                prediction.aux["prompt_depth"] = taught
                prediction.aux["prompt_fitted"] = guess.has
        return prediction

    def tolerance(self, around: Around, told: Told | None, noise: Tensor | None) -> Tensor | None:
        """How far the result, shrunk, may lie from each measurement, (B, 1, h, w): of maps whose
        mode is faithful. Others owe nothing; None if that is so of all."""
        if self.hints is None or "mode" not in self.subjects:
            return None
        places = self.hints.places("mode", told, around.low.shape[0])
        free = places != self.hints.place("mode", "faithful")
        if all_of(free):
            return None
        return tolerated(around, noise).masked_fill(free[:, None, None, None], NO_LIMIT)

    def start(
        self, rgb: Tensor, around: Around, told: Told | None, guess: Guess | None = None
    ) -> Tensor:
        """D_1 (B, C, H/s, W/s), shifted by what the network is told."""
        depth = self.head(self.describe(rgb, around))
        if guess is not None and self.prior is not None:
            depth = depth + self.prior.start(guess, self.multiple)
        if self.hints is not None:
            depth = depth + self.hints.shift(told, rgb.shape[0]).to(depth.dtype)
        return kept(depth)

    def fuse(
        self, depth: Tensor, features: tuple[Tensor, ...], guess: Guess | None = None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """D_1 (B, C, H/s, W/s) and the prompt's features -> all stages in one map of that size, and
        the pairs of maps for Eq. 7."""
        gathered = Gathered(self.gathered)
        gathered.add(depth)
        alignment = []
        for i, fusion in enumerate(self.fusions):
            # The size of the sum, which must then be there: a runtime may otherwise put it off
            # until the end, and hold the maps of all stages until then.
            lifted = self.lifts[i](features[i], gathered.size)
            fused, blended = fusion(lifted, depth)
            adapted = fused
            if guess is not None and self.prior is not None:
                adapted = fused + self.prior.adapted(i, depth, guess)
            depth = kept(depth + adapted)
            if self.alignments and torch.is_grad_enabled():  # only the constraint needs them
                alignment.append((self.alignments[i](blended), self.alignments[i](lifted)))
            del lifted, fused, adapted, blended  # in strips, the next stage needs their room
            gathered.add(depth)
        return gathered.result(), alignment

    def describe(self, rgb: Tensor, around: Around) -> Tensor:
        """What the body sees, (B, `described_channels`, H/s, W/s): what is known of the pixels of
        each cell, their position between measurements, the ratio, and how the map was shrunk."""
        s, multiple = self.stride, self.multiple
        if not self.mixes:
            return F.pixel_unshuffle(pad_to_multiple(around.upsampled, multiple), s)
        known = local(self.known, rgb, around, channels=4 + self.seen_guides())
        known = pad_to_multiple(known, multiple)
        phases = (around.window.row_phase, around.window.column_phase)
        axes = padded_axes(around.size, multiple)
        row, column = (phase[axis.to(phase.device)] for phase, axis in zip(phases, axes))
        return self.cells(known, row, column, around.ratio, around.shrinking)

    def cells(
        self,
        known: Tensor,
        row_phase: Tensor,
        column_phase: Tensor,
        ratio: Tensor,
        shrinking: Tensor,
    ) -> Tensor:
        """`known` of an image whose sides are multiples, with the phases of its rows and columns,
        by cells; shrinking (B, 3): see `shrinking.shares`."""
        s = self.stride
        cells = local(self.in_cells, known, channels=s**2 * (2 + self.seen_guides()) + 2, shrink=s)
        B, _, h, w = cells.shape
        # The phase depends on the row or the column alone: s values each suffice per cell.
        rows, columns = (phase.reshape(-1, s).T for phase in (row_phase, column_phase))
        position = [rows[None, :, :, None], columns[None, :, None, :]]  # each s values
        same = [*position, ratio.log2()[None, :, None, None] / 4]
        if self.sees_shrinking:
            same.append(shrinking[:, :, None, None])
        same = [x.expand(B, x.shape[1], h, w) for x in same]
        return torch.cat([cells, *same], 1)

    def known(self, rgb: Tensor, around: Around) -> Tensor:
        """The bicubic depth as it is and relative to its surroundings; if guided, the guided depths
        relative to it and the image; the local contrast, and where holes are: full size."""
        up, contrast, guided = around.up, around.contrast, around.guided
        maps = [up, (up - around.mean) / (contrast + 1e-3)]
        if guided is not None:
            leads = (guided - up) / (contrast + 1e-3)
            maps += [leads[:, :1], rgb * 2 - 1, leads[:, 1:]]
        return torch.cat([*maps, (contrast + 1e-3).log() / 4, around.hole], 1)

    def in_cells(self, known: Tensor) -> Tensor:
        """Pixels to cells of stride × stride; of contrast and holes, the last two, the mean."""
        detail = to_cells(known[:, :-2], self.stride)
        return torch.cat([detail, F.avg_pool2d(known[:, -2:], self.stride)], 1)

    def seen_guides(self) -> int:
        """Maps that a guided network sees beside the others: guided depths and RGB."""
        return len(self.sides) + 3 if self.sides else 0

    def described_channels(self) -> int:
        """Of `describe`."""
        s = self.stride
        if not self.mixes:
            return s**2
        return (2 + self.seen_guides()) * s**2 + 2 * s + 4 + 3 * self.sees_shrinking

    def bytes_per_pixel(self) -> float:
        """The body's features, or the tail's maps with neighbours and weights."""
        cell, channels = self.stride**2, self.head.out_channels
        body = (STAGES + 10) * channels / cell
        tail = 2 * sum(self.tail.maps) + 6 * TAPS**2 if self.mixes else 0
        return 4 * (3 + max(body, channels * 2 / cell + tail))
