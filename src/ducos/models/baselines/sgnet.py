"""SGNet (Wang, Yan, Yang, AAAI 2024): structure guidance from gradients and from frequencies.

The depth branch works at low resolution. Three bridges go up to the colour image, mix colour and
depth there in space and in the Fourier domain, and come back down; a gradient network predicts the
edges of the result and feeds them to every stage. Parameter names are those of the authors'
checkpoints, so released weights load strictly.

The network multiplies the size of its input by a fixed whole number. Our contract knows no scale,
so `SGNet.forward` first resamples the depth to exactly 1/scale of the colour image, as the authors
do for real sensors; at the native ratio the depth passes untouched.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ducos.models.blocks import ChannelAttention, ResidualGroup, conv
from ducos.models.prediction import Prediction
from ducos.models.protocol import Model, Told
from ducos.normalise import range_of
from ducos.resize import bicubic, pad_to_multiple

PUBLISHED_WIDTHS = {4: 48, 8: 40, 16: 40}


class Residual(nn.Module):
    """Two convolutions with LeakyReLU 0.2 between them, plus the input."""

    def __init__(self, channels: int):
        super().__init__()
        self.body = nn.Sequential(
            conv(channels, channels), nn.LeakyReLU(0.2), conv(channels, channels)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Projection(nn.Module):
    """Resize by a learned kernel, resize back, correct by the error of the round trip (DBPN)."""

    def __init__(self, channels: int, scale: int, *, up: bool):
        super().__init__()

        def resizing(enlarge: bool) -> nn.Sequential:
            kind = nn.ConvTranspose2d if enlarge else nn.Conv2d
            kernel = kind(channels, channels, scale + 4, stride=scale, padding=2)
            return nn.Sequential(kernel, nn.PReLU(channels))

        self.conv_1 = resizing(up)
        self.conv_2 = resizing(not up)
        self.conv_3 = resizing(up)

    def forward(self, x: Tensor) -> Tensor:
        first = self.conv_1(x)
        return first + self.conv_3(self.conv_2(first) - x)


class ChannelMixing(nn.Module):
    """Square 1×1 convolution kept as the factors P·L·U of an initially orthogonal matrix."""

    p: Tensor
    sign_s: Tensor

    def __init__(self, channels: int):
        super().__init__()
        orthogonal = torch.linalg.qr(torch.randn(channels, channels)).Q
        permutation, lower, upper = torch.linalg.lu(orthogonal)
        diagonal = upper.diagonal()
        self.register_buffer("p", permutation)
        self.register_buffer("sign_s", diagonal.sign())
        self.l = nn.Parameter(lower)
        self.log_s = nn.Parameter(diagonal.abs().log())
        self.u = nn.Parameter(upper.triu(1))

    def forward(self, x: Tensor) -> Tensor:
        lower = self.l.tril(-1) + torch.eye(len(self.l), dtype=x.dtype, device=x.device)
        upper = self.u.triu(1) + torch.diag(self.sign_s * self.log_s.exp())
        return F.conv2d(x, (self.p @ (lower @ upper))[:, :, None, None])


class SlopedPair(nn.Module):
    """Two activated convolutions beside a 1×1 shortcut."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.identity = conv(inputs, outputs, 1)
        self.conv_1 = conv(inputs, outputs)
        self.conv_2 = conv(outputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        deep = F.leaky_relu(self.conv_2(F.leaky_relu(self.conv_1(x), 0.1)), 0.1)
        return deep + self.identity(x)


class DenseBlock(nn.Module):
    """Three activated layers; the last sees the input and both earlier ones."""

    GROWTH = 8

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.conv1 = SlopedPair(inputs, self.GROWTH)
        self.conv2 = SlopedPair(self.GROWTH, self.GROWTH)
        self.conv3 = conv(inputs + 2 * self.GROWTH, outputs)
        # Small weights: the coupling below starts close to the identity.
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.xavier_normal_(module.weight, gain=0.1)
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]  # it has one

    def forward(self, x: Tensor) -> Tensor:
        first = F.leaky_relu(self.conv1(x), 0.2)
        second = F.leaky_relu(self.conv2(first), 0.2)
        return F.leaky_relu(self.conv3(torch.cat([x, first, second], 1)), 0.2)


class Coupling(nn.Module):
    """Invertible coupling of two groups of channels: each is shifted (and scaled) by the other."""

    def __init__(self, first: int, second: int):
        super().__init__()
        self.sizes = (first, second)
        self.F = DenseBlock(second, first)
        self.G = DenseBlock(first, second)
        self.H = DenseBlock(first, second)
        self.invconv = ChannelMixing(first + second)

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.invconv(x).split(self.sizes, 1)
        first = first + self.F(second)
        log_scale = 0.8 * (2 * torch.sigmoid(self.H(first)) - 1)
        return torch.cat([first, second * log_scale.exp() + self.G(first)], 1)


class SpectrumFusion(nn.Module):
    """Joins amplitudes (or phases) of depth with their difference to those of colour."""

    def __init__(self, channels: int, colours: int):
        super().__init__()
        self.fuse_c = self.two_layers(channels)
        self.fuse_sub = self.two_layers(channels)
        self.post = conv(2 * channels, channels, 1)
        self.pre_rgb = conv(colours, channels, 1)
        self.pre_dep = conv(channels, channels, 1)

    @staticmethod
    def two_layers(channels: int) -> nn.Sequential:
        return nn.Sequential(
            conv(channels, channels, 1), nn.LeakyReLU(0.1), conv(channels, channels, 1)
        )

    def forward(self, depth: Tensor, colour: Tensor) -> Tensor:
        depth, colour = self.pre_dep(depth), self.pre_rgb(colour)
        difference = (colour - depth).abs()
        return self.post(torch.cat([self.fuse_c(depth), self.fuse_sub(difference)], 1))


class FrequencyFusion(nn.Module):
    """Fuses the Fourier amplitudes and the phases separately and returns to the image."""

    def __init__(self, channels: int, colours: int):
        super().__init__()
        self.pre1 = conv(channels, channels, 1)
        self.pre2 = conv(colours, colours, 1)
        self.amp_fuse = SpectrumFusion(channels, colours)
        self.pha_fuse = SpectrumFusion(channels, colours)
        self.post = conv(channels, channels, 1)

    def forward(self, depth: Tensor, colour: Tensor) -> Tensor:
        depth_spectrum = torch.fft.rfft2(self.pre1(depth))
        colour_spectrum = torch.fft.rfft2(self.pre2(colour))
        amplitude = self.amp_fuse(depth_spectrum.abs(), colour_spectrum.abs())
        phase = self.pha_fuse(depth_spectrum.angle(), colour_spectrum.angle())
        # not torch.polar: fused amplitudes may be negative
        spectrum = torch.complex(amplitude * phase.cos(), amplitude * phase.sin())
        H, W = depth.shape[-2:]
        return self.post(torch.fft.irfft2(spectrum, s=(H, W)).abs())


class Bridge(nn.Module):
    """Up to the colour image, fuse in space and frequency, and down again.

    spa_att and post exist in the authors' checkpoints and reach no output.
    """

    def __init__(self, channels: int, colours: int, scale: int):
        super().__init__()
        self.rgbprocess = conv(colours, colours)
        self.rgbpre = conv(colours, colours, 1)
        self.spa_process = nn.Sequential(
            Coupling(channels, colours), conv(channels + colours, channels, 1)
        )
        self.fre_process = FrequencyFusion(channels, colours)
        half = channels // 2
        self.spa_att = nn.Sequential(conv(channels, half), nn.LeakyReLU(0.1), conv(half, channels))
        self.cha_att = nn.Sequential(
            conv(channels, half, 1), nn.LeakyReLU(0.1), conv(half, channels, 1), nn.Sigmoid()
        )
        self.post = conv(channels, channels)
        self.fuse_process = nn.Sequential(
            Coupling(channels, channels), conv(2 * channels, channels, 1)
        )
        self.downBlock = Projection(channels, scale, up=False)
        self.upBlock = Projection(channels, scale, up=True)
        self.spa_att.requires_grad_(False)
        self.post.requires_grad_(False)

    def forward(self, depth: Tensor, colour: Tensor) -> tuple[Tensor, Tensor]:
        """depth (B, C, h, w), colour (B, colours, H, W) -> both, fused, at their own sizes."""
        depth = self.upBlock(depth)  # (B, C, H, W)
        next_colour = self.rgbprocess(colour)
        colour = self.rgbpre(next_colour)
        in_space = self.spa_process(torch.cat([depth, colour], 1))
        in_frequency = self.fre_process(depth, colour)
        fused = self.fuse_process(torch.cat([in_space, in_frequency], 1))
        mean = fused.mean((2, 3), keepdim=True)
        contrast = (fused - mean).square().mean((2, 3), keepdim=True).sqrt()
        attended = fused * self.cha_att(contrast + mean)
        return self.downBlock(depth + attended), next_colour


def gradient_magnitude(x: Tensor) -> Tensor:
    """Central differences of each channel of (B, C, H, W), zero outside, never exactly zero."""
    padded = F.pad(x, (1, 1, 1, 1))
    vertical = padded[:, :, 2:, 1:-1] - padded[:, :, :-2, 1:-1]
    horizontal = padded[:, :, 1:-1, 2:] - padded[:, :, 1:-1, :-2]
    return (vertical.square() + horizontal.square() + 1e-6).sqrt()


class GradientNetwork(nn.Module):
    """Predicts the gradient of the sharp depth, and features of it for the depth branch.

    re_d and c_sab exist in the authors' checkpoints and reach no output.
    """

    def __init__(self, channels: int, scale: int):
        super().__init__()
        self.upBlock = Projection(1, scale, up=True)
        self.downBlock = Projection(channels, scale, up=False)
        self.c_rgb = conv(3, channels)
        self.c_d = conv(1, channels)
        self.c_fuse = conv(channels, channels)
        self.rg_d = ResidualGroup(channels, reduction=16, blocks=4)
        self.rb_rgbd = Residual(channels)
        self.fuse_process = nn.Sequential(
            conv(2 * channels, channels, 1),
            ResidualGroup(channels, reduction=8, blocks=4),
            ResidualGroup(channels, reduction=8, blocks=4),
        )
        self.re_g = conv(channels, 1)
        self.re_d = conv(channels, 1)
        self.c_sab = conv(1, channels)
        self.d1 = nn.Sequential(conv(1, channels), ResidualGroup(channels, reduction=8, blocks=8))
        self.CA = ChannelAttention(channels, reduction=4)
        self.grad_conv = nn.Sequential(
            conv(1, channels), nn.LeakyReLU(0.2), conv(channels, channels)
        )
        self.grad_rg = nn.Sequential(
            ResidualGroup(channels, reduction=8, blocks=4),
            ResidualGroup(channels, reduction=8, blocks=4),
        )
        self.re_d.requires_grad_(False)
        self.c_sab.requires_grad_(False)

    def forward(self, low: Tensor, rgb: Tensor) -> tuple[Tensor, Tensor]:
        """low (B, 1, h, w), rgb (B, 3, H, W) -> gradient (B, 1, H, W), features (B, C, h, w)."""
        depth = self.upBlock(low)  # (B, 1, H, W)
        depth_edges = self.c_d(gradient_magnitude(depth))
        colour_edges = self.rb_rgbd(self.c_rgb(gradient_magnitude(rgb)))
        fused = self.fuse_process(torch.cat([colour_edges, self.rg_d(depth_edges)], 1))
        gradient = self.re_g(self.c_fuse(depth_edges + self.CA(fused)))
        features = self.grad_rg(self.grad_conv(gradient) + self.d1(depth))
        return gradient, self.downBlock(features)


class SGNet(Model):
    """Structure-guided network.

    Args:
        scale: the whole-number ratio it was trained for; the authors published 4, 8 and 16.
        channels: width; None takes the published one. The authors' real-sensor network is
            scale 4 with 24 channels.
    """

    def __init__(self, *, scale: int = 8, channels: int | None = None):
        super().__init__()
        width = channels or PUBLISHED_WIDTHS.get(scale, 40)
        self.scale = scale
        self.conv_rgb1 = conv(3, width)
        self.rgb_rb2 = Residual(width)
        self.rgb_rb3 = Residual(width)
        self.rgb_rb4 = Residual(width)
        self.conv_dp1 = conv(1, width)
        self.conv_dp2 = conv(width, 2 * width)
        self.dp_rg1 = ResidualGroup(width, reduction=16, blocks=6)
        self.dp_rg2 = ResidualGroup(2 * width, reduction=16, blocks=6)
        self.dp_rg3 = ResidualGroup(2 * width, reduction=16, blocks=6)
        self.dp_rg4 = ResidualGroup(3 * width, reduction=16, blocks=6)
        self.bridge1 = Bridge(width, width, scale)
        self.bridge2 = Bridge(2 * width, width, scale)
        self.bridge3 = Bridge(3 * width, width, scale)
        self.c_de = conv(4 * width, 2 * width, 1)
        self.tail = nn.Sequential(
            *[ResidualGroup(3 * width, reduction=16, blocks=8) for _ in range(3)]
        )
        self.upsampler = Projection(3 * width, scale, up=True)
        self.last_conv = nn.Sequential(conv(3 * width, width), nn.LeakyReLU(0.2), conv(width, 1))
        self.c_rd = conv(8 * width, 3 * width, 1)
        self.c_grad = conv(2 * width, width, 1)
        self.c_grad2 = conv(3 * width, 2 * width, 1)
        self.c_grad3 = conv(3 * width, 3 * width, 1)
        self.gradNet = GradientNetwork(width, scale)

    def restore(self, rgb: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
        """The authors' function.

        Args:
            rgb: (B, 3, H, W), stretched to [0, 1] per image.
            low: (B, 1, H / scale, W / scale), in [0, 1].

        Returns:
            depth and its predicted gradient magnitude, both (B, 1, H, W).
        """
        gradient, edges = self.gradNet(low, rgb)  # edges: (B, C, h, w)
        stem = F.leaky_relu(self.conv_dp1(low), 0.2)
        colour = self.rgb_rb2(F.leaky_relu(self.conv_rgb1(rgb), 0.2))

        depth1 = self.dp_rg1(stem)
        fused, colour = self.bridge1(self.c_grad(torch.cat([depth1, edges], 1)), colour)
        depth2 = self.dp_rg2(torch.cat([depth1, fused + stem], 1))

        sharpened = self.c_grad2(torch.cat([depth2, edges], 1))
        fused, colour = self.bridge2(sharpened, self.rgb_rb3(colour))
        depth3 = self.dp_rg3(self.c_de(torch.cat([depth2, fused + self.conv_dp2(stem)], 1)))

        sharpened = self.c_grad3(torch.cat([depth3, edges], 1))
        fused, _ = self.bridge3(sharpened, self.rgb_rb4(colour))
        depth4 = self.dp_rg4(self.c_rd(torch.cat([depth1, depth2, depth3, fused], 1)))

        residual = self.last_conv(self.tail(self.upsampler(depth4)))
        # The authors' skip is torch's bicubic without antialiasing, unlike `resize.bicubic`.
        skip = F.interpolate(low, scale_factor=self.scale, mode="bicubic", align_corners=False)
        return residual + skip, gradient

    def at_native_ratio(self, low: Tensor, H: int, W: int) -> Tensor:
        """low resampled so that `scale` times its size is H×W, padded up to whole multiples."""
        if H % self.scale == 0 and W % self.scale == 0:
            return bicubic(low, (H // self.scale, W // self.scale))
        # The padded frame is wider than the map: pad at full size, where both share pixels.
        padded = pad_to_multiple(bicubic(low, (H, W)), self.scale)
        return bicubic(padded, (padded.shape[-2] // self.scale, padded.shape[-1] // self.scale))

    def forward(
        self, rgb: Tensor, low: Tensor, valid: Tensor | None = None, told: Told | None = None
    ) -> Prediction:
        """rgb (B, 3, H, W), low (B, 1, h, w) of any ratio -> depth (B, 1, H, W). Knows no holes.

        aux["gradient"] (B, 1, H, W) is the predicted gradient magnitude, for the authors' loss.
        """
        H, W = rgb.shape[-2:]
        padded = pad_to_multiple(range_of(rgb).apply(rgb), self.scale)
        depth, gradient = self.restore(padded, self.at_native_ratio(low, H, W))
        return Prediction(depth[..., :H, :W], {"gradient": gradient[..., :H, :W]})
