"""DCTNet: edges of the guide are copied into depth features by solving a Poisson-like equation.

Z. Zhao et al.: "Discrete Cosine Transform Network for Guided Depth Map Super-Resolution" (CVPR
2022). Semi-coupled layers encode depth and guide with partly shared filters; the depth features are
then moved towards having the guide's Laplacian where an attention map calls it an edge, which the
discrete cosine transform solves in closed form; a small decoder gives the depth.

`filter` is the network of the authors' PyTorch code, with their names in the state dict (plus
``module.`` in their files). What differs from their script:
  - the cosine transform is written with `torch.fft`; theirs needs functions torch has removed;
  - `WPNet.conv_dilation` exists in the checkpoint, is used by nobody and gets no gradient;
  - the bias before the last ReLU starts at 0.5, the middle of the range: with torch's default one
    start in four gives a network whose output and gradient are zero everywhere;
  - `forward` does not clamp. Their test script clamps to [0, 1], which is the range of the ground
    truth that they normalise with; we normalise with the low-resolution map, whose range the truth
    may leave. The network's last ReLU still forbids values below that map's minimum.
`forward` adapts the input: depth in [0, 1] upsampled with `resize.bicubic`; rgb in [0, 1],
normalised by ImageNet's mean and standard deviation. Sides below 15 px, which the attention cannot
pool, are padded.

Authors' weights: four files (x4, x8, x16, real); their repository states no licence, so they may
not be redistributed.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.prompts import imagenet
from ducos.resize import Size, bicubic, pad_to_multiple

CHANNELS = 64
SHARED = 32  # channels of each convolution that both modalities compute with the same filters
LAYERS = 4
SMALLEST_SIDE = 15  # 3×3 stride 2, then 7×7 pooling


def dct(x: Tensor) -> Tensor:
    """Type-II cosine transform of the last axis: X_k = 2 Σ x_n cos(πk(2n+1)/2N).

    Makhoul's way: the even samples followed by the odd ones in reverse have a Fourier transform
    that differs from X only by a rotation.
    """
    length = x.shape[-1]
    folded = torch.cat((x[..., ::2], x[..., 1::2].flip(-1)), -1)
    return 2 * (torch.fft.fft(folded) * _rotation(length, x)).real


def inverse_dct(spectrum: Tensor) -> Tensor:
    """The inverse of `dct`, along the last axis."""
    length = spectrum.shape[-1]
    # The rotated transform of a real signal has imaginary part -X_{N-k}/2, and zero at k = 0.
    mirrored = F.pad(spectrum[..., 1:].flip(-1), (1, 0))
    rotated = torch.complex(spectrum, -mirrored) / 2
    folded = torch.fft.ifft(rotated / _rotation(length, spectrum)).real
    evens = (length + 1) // 2
    # Odd samples come back in reverse; for odd lengths there is one fewer of them than of evens.
    odds = F.pad(folded[..., evens:].flip(-1), (0, 2 * evens - length))
    return torch.stack((folded[..., :evens], odds), -1).flatten(-2)[..., :length]


def _rotation(length: int, like: Tensor) -> Tensor:
    """exp(-iπk/2N) for k = 0..N-1."""
    angle = torch.arange(length, device=like.device, dtype=like.dtype) * (-math.pi / (2 * length))
    return torch.polar(torch.ones_like(angle), angle)


def dct2(x: Tensor) -> Tensor:
    """`dct` along both image axes."""
    return dct(dct(x).transpose(-1, -2)).transpose(-1, -2)


def inverse_dct2(spectrum: Tensor) -> Tensor:
    """The inverse of `dct2`."""
    return inverse_dct(inverse_dct(spectrum).transpose(-1, -2)).transpose(-1, -2)


def laplacian(x: Tensor) -> Tensor:
    """Each channel minus the mean of its eight neighbours, times -1/2; mirrored at the border."""
    channels = x.shape[1]
    kernel = torch.full((3, 3), 1 / 16, device=x.device, dtype=x.dtype)
    kernel[1, 1] = -8 / 16
    padded = F.pad(x, (1, 1, 1, 1), mode="reflect")
    return F.conv2d(padded, kernel.expand(channels, 1, 3, 3), groups=channels)


def laplacian_eigenvalues(size: Size, like: Tensor) -> Tensor:
    """Eigenvalues of the five-point Laplacian on this grid, (H, W); the cosines diagonalise it."""
    rows, columns = (
        torch.cos(torch.arange(n, device=like.device, dtype=like.dtype) * (math.pi / n))
        for n in size
    )
    return 2 * (rows[:, None] + columns - 2)


class EdgeAttention(nn.Module):
    """Guide features to weights in (0, 1): a wide, pooled look around plus a local skip."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.conv1 = nn.Conv2d(CHANNELS, width, 1)
        self.conv_f = nn.Conv2d(width, width, 1)
        self.conv2 = nn.Conv2d(width, width, 3, stride=2)
        self.conv_max = nn.Conv2d(width, width, 3, padding=1)
        self.conv3 = nn.Conv2d(width, width, 3, padding=1)
        self.conv3_ = nn.Conv2d(width, width, 3, padding=1)
        self.conv4 = nn.Conv2d(width, CHANNELS, 1)
        self.conv_dilation = nn.Conv2d(width, width, 3, padding=1)  # never used

    def forward(self, guide: Tensor) -> Tensor:
        """(B, 64, H, W) -> (B, 64, H, W)."""
        narrow = self.conv1(guide)
        around = F.max_pool2d(self.conv2(narrow), kernel_size=7, stride=3)
        around = F.relu(self.conv_max(around))
        around = F.relu(self.conv3(around))
        around = self.conv3_(around)
        around = F.interpolate(around, guide.shape[-2:], mode="bilinear", align_corners=False)
        return torch.sigmoid(self.conv4(around + self.conv_f(narrow)))


class CoupledLayer(nn.Module):
    """A residual block per modality; half the filters of each convolution are shared."""

    def __init__(self) -> None:
        super().__init__()
        for convolution in (1, 2):
            for owner in ("shared", "depth", "rgb"):
                kernel = nn.Parameter(torch.empty(SHARED, CHANNELS, 3, 3))
                nn.init.kaiming_uniform_(kernel)
                bias = nn.Parameter(torch.zeros(SHARED))
                self.register_parameter(f"kernel_{owner}_{convolution}", kernel)
                self.register_parameter(f"bias_{owner}_{convolution}", bias)

    def forward(self, depth: Tensor, guide: Tensor) -> tuple[Tensor, Tensor]:
        """Both (B, 64, H, W) -> both (B, 64, H, W)."""
        return self._block(depth, "depth"), self._block(guide, "rgb")

    def _block(self, x: Tensor, owner: str) -> Tensor:
        hidden = F.relu(self._convolve(x, owner, 1))
        return F.relu(self._convolve(hidden, owner, 2) + x)

    def _convolve(self, x: Tensor, owner: str, convolution: int) -> Tensor:
        kernel, bias = (
            torch.cat(
                [
                    self.get_parameter(f"{kind}_shared_{convolution}"),
                    self.get_parameter(f"{kind}_{owner}_{convolution}"),
                ]
            )
            for kind in ("kernel", "bias")
        )
        return F.conv2d(x, kernel, bias, padding=1)


class CoupledEncoder(nn.Module):
    """Depth and guide to 64 feature maps each."""

    def __init__(self) -> None:
        super().__init__()
        self.init_deep = nn.Sequential(nn.Conv2d(1, CHANNELS, 3, padding=1), nn.ReLU())
        self.init_rgb = nn.Sequential(nn.Conv2d(3, CHANNELS, 3, padding=1), nn.ReLU())
        self.coupled_feat_extractor = nn.ModuleList([CoupledLayer() for _ in range(LAYERS)])

    def forward(self, up: Tensor, rgb: Tensor) -> tuple[Tensor, Tensor]:
        depth, guide = self.init_deep(up), self.init_rgb(rgb)
        for layer in self.coupled_feat_extractor:
            depth, guide = layer(depth, guide)
        return depth, guide


class Decoder(nn.Module):
    """Features to depth; the last ReLU forbids negative values."""

    def __init__(self) -> None:
        super().__init__()
        last = nn.Conv2d(16, 1, 3, padding=1)
        nn.init.constant_(last.bias, 0.5)  # type: ignore[arg-type]  # it has one
        self.Decoder_Deep = nn.Sequential(
            nn.Conv2d(CHANNELS, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 16, 3, padding=1),
            nn.ReLU(),
            last,
            nn.ReLU(),
        )

    def forward(self, features: Tensor) -> Tensor:
        return self.Decoder_Deep(features)


class DCTNet(Model):
    """Discrete cosine transform network; attribute names are the authors'."""

    def __init__(self) -> None:
        super().__init__()
        self.lambd = nn.Parameter(0.1 + 0.3 * torch.randn(1, CHANNELS, 1, 1))
        self.WPNet = EdgeAttention()
        self.Encoder_coupled = CoupledEncoder()
        self.Decoder_depth = Decoder()

    def filter(self, normalised_rgb: Tensor, up: Tensor) -> Tensor:
        """The authors' function: (B, 3, H, W), (B, 1, H, W) -> (B, 1, H, W), sides at least 15."""
        depth, guide = self.Encoder_coupled(up, normalised_rgb)
        edges = self.WPNet(guide)
        return self.Decoder_depth(self.transfer_edges(depth, guide, edges))

    def transfer_edges(self, depth: Tensor, guide: Tensor, edges: Tensor) -> Tensor:
        """argmin_z |z - depth|² + λ |L z - edges · L guide|² per channel, all (B, 64, H, W).

        The two Laplacians L are not the same in the original: nine-point for the guide, five-point
        (the one the cosines diagonalise) for z.
        """
        strength = self.lambd.exp()
        right_side = strength * laplacian(edges * laplacian(guide)) + depth
        eigenvalues = laplacian_eigenvalues((depth.shape[-2], depth.shape[-1]), depth)
        return inverse_dct2(dct2(right_side) / (strength * eigenvalues**2 + 1))

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W), low (B, 1, h, w) -> depth (B, 1, H, W); holes are not known here."""
        H, W = rgb.shape[-2:]
        normalised = imagenet(rgb)
        up = bicubic(low, (H, W))
        if min(H, W) < SMALLEST_SIDE:
            normalised, up = (pad_to_multiple(x, SMALLEST_SIDE) for x in (normalised, up))
        return Prediction(self.filter(normalised, up)[..., :H, :W])
