"""A prior: somebody's relative depth of the same image, as the prompt of the compact network.

Any monocular model will do: its depth or inverse depth Y′ may have any scale, any monotone curve
and low-frequency errors. A robust cubic fit to the measurements turns it into their unit; from then
on it is a guide beside the colours (`guide`), a prompt for Correlative Fusion, and the edges that
Gradient Regulation asks for. A prior whose details are not those of the measurements is of another
scene. It is then, as a map without any variation, no prior: the network is exactly what it is
without this branch.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn

from ducos.deferred import at_once, local, whole
from ducos.models.ducos.around import Around, linear_of
from ducos.models.ducos.fusion import check_choice
from ducos.models.ducos.guide import applied, box_mean, fits, shrunk, solve
from ducos.prompts import TinyPrompt
from ducos.resize import Size, bilinear, from_cells, pad_to_multiple, precise, to_cells

DEGREE = 3  # of the curve from a prior to the measurements
ROUNDS = 4  # of the fit; each trusts less what the one before explains badly
RIDGE = 1e-3  # keeps the curve nearly linear where the measurements do not ask for more
BEYOND = 0.25  # of the measured range: how far a fitted prior may leave it
AROUND = 5  # side of the surroundings, in measurements, from which detail stands out
DOUBTED, BELIEVED = 0.3, 0.45  # likeness of details: no trust below, all of it above
NARROW, WIDE = 3, 7  # windows of the regressions, in measurements
ALIGNED = 2.0  # local contrasts that the aligned prior may lie from the bicubic depth
DEPTHS = 4  # aligned, on the prior over both windows, on colours and prior
PARTS = ("all", "guide", "fusion", "teacher")  # of the branch: what a prior is used for


def polynomial(prior: Tensor, curve: Tensor) -> Tensor:
    """The fitted curve (B, DEGREE + 3, 1, 1) of a prior (B, 1, H, W): in the measurements' unit."""
    lowest, span, *factors = curve.split(1, 1)
    x = ((prior - lowest) / span).clamp(-0.5, 1.5) - 0.5
    total = factors[-1]
    for factor in reversed(factors[:-1]):
        total = total * x + factor
    return total.clamp(-BEYOND, 1 + BEYOND)


def curve_of(prior: Tensor, low: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
    """The curve from a prior (B, 1, h, w), shrunk, to low (B, 1, h, w), for `polynomial`; and how
    far it is to be trusted, (B, 1, 1, 1) in [0, 1]; 0 if there is no prior at all.

    Least squares whose weights fall with the distance from the curve, since whole objects of a
    monocular depth are wrong.
    """
    lowest, highest = prior.amin((1, 2, 3), keepdim=True), prior.amax((1, 2, 3), keepdim=True)
    span = highest - lowest
    has = (span > 1e-6 * torch.maximum(highest.abs(), lowest.abs())).to(low.dtype)
    span = torch.where(has > 0, span, torch.ones_like(span))
    x = (prior - lowest) / span - 0.5
    known = torch.ones_like(low) if valid is None else valid.to(low.dtype)
    powers = [torch.ones_like(x)]
    for _ in range(DEGREE):
        powers.append(powers[-1] * x)
    weight = known + 1e-6
    factors: list[Tensor] = []
    for _ in range(ROUNDS):
        total = weight.sum((1, 2, 3), keepdim=True)

        def mean(values: Tensor, weight: Tensor = weight, total: Tensor = total) -> Tensor:
            return (weight * values).sum((1, 2, 3), keepdim=True) / total

        matrix = [[mean(a * b) for b in powers] for a in powers]
        for k in range(DEGREE + 1):
            matrix[k][k] = matrix[k][k] + RIDGE * 0.1 ** (DEGREE - k)
        factors = solve(matrix, [mean(a * low) for a in powers])
        off = (low - sum(f * p for f, p in zip(factors, powers, strict=True))).abs()
        usual = 1.5 * mean(off) + 1e-3
        weight = known / (1 + (off / usual) ** 2) + 1e-6
    curve = torch.cat([lowest, span, *factors], 1)
    return curve, has * trust(polynomial(prior, curve), low, known)


def trust(fitted: Tensor, low: Tensor, known: Tensor) -> Tensor:
    """How far a prior, fitted and shrunk, belongs to the measurements, all (B, 1, h, w), known as
    weights: (B, 1, 1, 1) in [0, 1].

    Of another image it may fit as a whole, floors being near and walls far, but its details are
    not where theirs are.
    """
    alike = likeness(fitted, low, known)
    return ((alike - DOUBTED) / (BELIEVED - DOUBTED)).clamp(0, 1)


def likeness(fitted: Tensor, low: Tensor, known: Tensor) -> Tensor:
    """Correlation of details, which is what stands out from the surroundings; as `trust`."""
    fitted, low, weight = precise(fitted), precise(low), precise(known) + 1e-6
    count = box_mean(weight, AROUND)
    ours, theirs = (weight * (x - box_mean(weight * x, AROUND) / count) for x in (fitted, low))

    def total(x: Tensor) -> Tensor:
        return x.sum((1, 2, 3), keepdim=True)

    size = (total(ours**2) * total(theirs**2)).sqrt()
    return (total(ours * theirs) / (size + 1e-9)).to(known.dtype)


def regressions(both: Tensor, low: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
    """Of low (B, 1, h, w) on colours and prior (B, 4, h, w): coefficients (B, 9, h, w), on the
    prior over both windows, then on all four; and the prior alone."""
    seen = both[:, 3:]
    on_prior = fits(seen, low, valid, (NARROW, WIDE))
    return torch.cat([on_prior, fits(both, low, valid, (NARROW,))], 1), seen


@dataclass(frozen=True)
class Guess:
    """What a prior says about the pixels of an image, or of some of its rows.

    fitted (B, 1, H, W): the prior in the measurements' unit. fit (B, 9, H, W): regressions on it,
    see `guide.fits`. rest (B, 1, h, w): what it leaves of the measurements. has (B, 1, 1, 1):
    how far there is one that is to be trusted, in [0, 1]. The first two belong to the whole image,
    as of `Around`.
    """

    fitted: Any
    fit: Any
    rest: Tensor
    has: Tensor
    around: Around
    span: tuple[int, int] | None = None

    @classmethod
    def of(cls, prior: Any, around: Around) -> "Guess":
        """Of a prior (B, 1, H, W) and what surrounds the same pixels."""
        low, valid = around.low, around.valid
        small: Size = (low.shape[-2], low.shape[-1])
        found = at_once(lambda given: curve_of(shrunk(given, small), low, valid), prior)
        curve, has = (whole(part) for part in found)
        fitted = local(partial(polynomial, curve=curve), prior, channels=1)
        # At once, as of `Around`.
        coefficients, seen = at_once(
            lambda given: regressions(shrunk(given, small), low, valid),
            torch.cat([around.image, fitted], 1),
        )
        fit = bilinear(coefficients, around.size)
        return cls(fitted, fit, low - whole(seen), has, around)

    def rows(self, first: int, last: int) -> "Guess":
        """The same of the image's rows first ≤ i < last."""
        return replace(self, around=self.around.rows(first, last), span=(first, last))

    def _here(self, x: Any) -> Tensor:
        return x if self.span is None else x.read(*self.span)

    @property
    def row_bytes(self) -> int:
        """What is held for one row beside what `around` holds."""
        return self.around.row_bytes + 4 * self.around.size[1] * 4 * DEPTHS

    @cached_property
    def relative(self) -> Tensor:
        """The prior in the measurements' unit, (B, 1, H, W)."""
        return self._here(self.fitted)

    @cached_property
    def depths(self) -> Tensor:
        """What it suggests, (B, DEPTHS, H, W): aligned, so that it agrees with the measurements;
        regressed on the prior over both windows; on colours and prior."""
        around, prior, fit = self.around, self.relative, self._here(self.fit)
        up, contrast = around.up, around.contrast
        aligned = prior + linear_of(self.rest, around.window)
        away = ALIGNED * contrast
        aligned = torch.minimum(torch.maximum(aligned, up - away), up + away)
        on_prior = applied(fit[:, :4], prior, up, contrast, (NARROW, WIDE))
        both = torch.cat([around.rgb, prior], 1)
        return torch.cat([aligned, on_prior, applied(fit[:, 4:], both, up, contrast, (NARROW,))], 1)

    @property
    def leads(self) -> Tensor:
        """How far they lie from the bicubic depth, in local contrasts, (B, DEPTHS, H, W)."""
        away = (self.depths - self.around.up) / (self.around.contrast + 1e-3)
        return away.clamp(-4, 4)


class PriorBranch(nn.Module):
    """All that a prior adds to the compact network; at first, next to nothing.

    Args:
        channels: of the body. stride: the body works at 1/stride of the image's size.
        features: channels of the prompt's four maps, to which those of the prior are added.
        stages: how many fusions the body has.
        part: "all", or for ablations one use alone: "guide" (depths to lean on), "fusion" (features
            for Correlative Fusion) or "teacher" (nothing enters; it gives the edges of the edge
            constraint in training).
        widths: of the encoder, from 1/4 to 1/32 of the image's size.
    """

    def __init__(
        self,
        channels: int,
        stride: int,
        features: tuple[int, ...],
        stages: int,
        part: str = "all",
        widths: tuple[int, int, int, int] = (16, 24, 32, 48),
    ):
        super().__init__()
        check_choice("prior", part, PARTS)
        self.stride = stride
        self.fuses, self.guides = part in ("all", "fusion"), part in ("all", "guide")
        if self.fuses:
            self.encoder = TinyPrompt(planes=4, widths=widths, blocks=(1, 1, 1, 1))
            self.lifts = nn.ModuleList(
                nn.Conv2d(a, b, 1) for a, b in zip(self.encoder.channels, features, strict=True)
            )
            self.adapters = nn.ModuleList(
                nn.Conv2d(channels, channels, 3, padding=1) for _ in range(stages)
            )
            silence(*self.lifts, *self.adapters)
        if self.guides:
            self.head = nn.Conv2d((DEPTHS + 1) * stride**2, channels, 3, padding=1)
            self.gates = nn.Sequential(
                nn.Conv2d(channels, 32, 3, padding=1), nn.Conv2d(32, (DEPTHS + 1) * stride**2, 1)
            )
            silence(self.head)
            weight, bias = self.gates[1].parameters()
            with torch.no_grad():
                weight.mul_(0.1)
                bias.fill_(-3.0)  # at first hardly anything leans on a prior

    def features(self, rgb: Any, guess: Guess, maps: tuple[Any, ...], multiple: int) -> tuple:
        """The prompt's features with those of the prior added: F1 to F4."""
        if not self.fuses:
            return maps
        both = local(with_prior, rgb, guess, channels=4)
        ours = self.encoder(pad_to_multiple(both, multiple)).features
        return tuple(
            feature + guess.has * bilinear(lift(x), (feature.shape[-2], feature.shape[-1]))
            for feature, lift, x in zip(maps, self.lifts, ours, strict=True)
        )

    def start(self, guess: Guess, multiple: int) -> Any:
        """What is added to D_1, (B, C, H/s, W/s)."""
        if not self.guides:
            return 0.0
        seen = local(suggested, guess.fitted, guess, channels=DEPTHS + 1)
        cells = to_cells(pad_to_multiple(seen, multiple), self.stride)
        return self.head(cells) * guess.has

    def adapted(self, stage: int, depth: Any, guess: Guess) -> Any:
        """What is added to the body's features (B, C, H/s, W/s) after a fusion."""
        return self.adapters[stage](depth) * guess.has if self.fuses else 0.0

    def lean(self, features: Any, size: Size) -> Any:
        """Logits of how far each suggested depth is followed, and of how far the result is the
        aligned prior, (B, DEPTHS + 1, H, W); None without the guide."""
        if not self.guides:
            return None
        maps = from_cells(self.gates(features), self.stride)
        return maps[..., : size[0], : size[1]]


def silence(*modules: nn.Module) -> None:
    """At first they add nothing."""
    for module in modules:
        for parameter in module.parameters():
            nn.init.zeros_(parameter)


def with_prior(rgb: Tensor, guess: Guess) -> Tensor:
    """(B, 4, H, W): the image and its prior."""
    return torch.cat([rgb, guess.relative.clamp(0, 1)], 1)


def suggested(fitted: Tensor, guess: Guess) -> Tensor:
    """What the body sees of a prior, (B, DEPTHS + 1, H, W)."""
    return torch.cat([guess.leads, fitted * 2 - 1], 1)
