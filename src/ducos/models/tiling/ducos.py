"""`models.ducos` and `models.ducos_released` over rows, step for step as their `forward`."""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ducos.errors import InputError
from ducos.models.ducos.paper import CorrelativeFusion, DuCos, Lift
from ducos.models.ducos.released import PEARSON_EPS, DuCosReleased, Fusion, FusionNetwork
from ducos.models.prediction import Prediction
from ducos.models.tiling.blocks import Gathered, moments, residual_group
from ducos.models.tiling.mixing import Surroundings, mixing_tail
from ducos.models.tiling.prompts import features_of
from ducos.models.tiling.rows import Rows, Stored, Workspace, local, padded, resized, whole
from ducos.resize import Size, bicubic, bilinear

Features = tuple[Tensor, ...] | None


def ducos(
    work: Workspace,
    model: DuCos,
    rgb: Tensor,
    low: Tensor,
    valid: Tensor | None,
    sensor: Tensor | None,
    at_once: Features,
) -> Prediction:
    """`DuCos.forward`; at_once: the features of a prompt that runs whole."""
    size = (rgb.shape[-2], rgb.shape[-1])
    stride = model.stride
    up = resized(whole(low, work.device), size, bicubic)
    around = Surroundings(low, valid, rgb, up, windows=model.windows) if model.mixes else None
    if around is None:
        inputs = local(
            lambda up: F.pixel_unshuffle(up, stride),
            [padded(up, model.multiple)],
            stride**2,
            shrink=stride,
        )
    else:
        inputs = around.described(model)
    stem = local(
        lambda inputs: model.told(model.head(inputs), sensor),
        [inputs],
        model.head.out_channels,
        reach=1,
    )
    depth: Rows = work.store(stem)

    gathered = None if model.gathered is None else Gathered(work, model.gathered)
    if gathered is not None:
        gathered.add(depth)
    features = features_of(work, model.prompt, rgb, at_once, model.multiple)
    for lift, fusion in zip(model.lifts, model.fusions, strict=True):
        assert isinstance(lift, Lift)
        assert isinstance(fusion, CorrelativeFusion)
        lifted = lift_rows(lift, next(features), (depth.height, depth.width))
        depth = fuse(work, fusion, lifted, depth, residual=model.stage_residual)
        del lifted
        if gathered is not None:
            gathered.add(depth)
    features.close()  # type: ignore[attr-defined]
    if gathered is not None:
        depth = gathered.result()
        del gathered

    if around is not None:
        return mixing_tail(work, model.tail, depth, around)
    out = local(
        lambda depth: F.pixel_shuffle(model.tail(depth), stride), [depth], 1, reach=1, grow=stride
    )
    return Prediction(to_tensor(work, out, size, up if model.residual else None))


def lift_rows(lift: Lift, feature: Rows, size: Size) -> Rows:
    """`Lift.forward`."""
    channels = lift.project.out_channels
    x = local(lift.project, [feature], channels)
    if isinstance(lift.deconvolve, torch.nn.ConvTranspose2d):
        x = local(lift.deconvolve, [x], channels, grow=lift.deconvolve.stride[0])
    return resized(x, size, bilinear)


def fuse(
    work: Workspace, fusion: CorrelativeFusion, prompt: Rows, depth: Rows, *, residual: bool
) -> Stored:
    """`CorrelativeFusion.forward`, and the residual around it."""
    grouped = work.store(residual_group(work, fusion.group, depth))
    again = fusion.iterations - 1
    if fusion.recurrence == "literal" or fusion.fusion != "pearson":
        blended = blend(work, fusion, prompt, grouped)
        for _ in range(again):
            if fusion.recurrence == "literal":
                x = work.store(blended)
                grouped = work.store(residual_group(work, fusion.group, x))
                blended = blend(work, fusion, prompt, grouped)
    else:
        blended = blend(work, fusion, prompt, grouped, again)

    def finish(depth: Tensor, blended: Tensor) -> Tensor:
        fused = fusion.out(blended)
        return depth + fused if residual else fused

    return work.store(local(finish, [depth, blended], depth.channels, reach=1))


def blend(
    work: Workspace, fusion: CorrelativeFusion, prompt: Rows, grouped: Rows, again: int = 0
) -> Rows:
    """`CorrelativeFusion.blend` of prompt and depth; again: how often to recompute the weights."""
    if fusion.fusion != "pearson":  # looks at single pixels only; its last argument is not used
        return local(
            lambda prompt, grouped: fusion.blend(prompt, grouped, grouped),
            [prompt, grouped],
            grouped.channels,
        )
    alpha = blending_weight(work, prompt, grouped, again, eps=1e-6)
    return local(
        lambda prompt, grouped: torch.lerp(grouped, prompt, alpha),
        [prompt, grouped],
        grouped.channels,
    )


def blending_weight(work: Workspace, a: Rows, b: Rows, again: int, eps: float) -> Tensor:
    """α of Eq. 4a from the correlation of a and b over the whole image, (1, C, 1, 1); `again` times
    recomputed from the correlation of a with the blend α a + (1 − α) b."""
    statistics = moments(work, a, b)
    alpha = torch.sigmoid(statistics.pearson(eps))
    for _ in range(again):
        alpha = torch.sigmoid(statistics.blended(alpha).pearson(eps))
    return alpha.to(work.dtype)


def to_tensor(work: Workspace, out: Rows, size: Size, base: Rows | None) -> Tensor:
    """out (1, 1, ≥H, ≥W), cut to the size (H, W), plus base."""
    H, W = size
    depth = torch.empty(1, 1, 0 if work.planning else H, W, dtype=work.dtype)
    for first, last in work.strips(out):
        last = min(last, H)
        if first < last:
            strip = out.read(first, last)[..., :W]
            depth[:, :, first:last] = strip if base is None else base.read(first, last) + strip
    return depth


# The network as released


def ducos_released(
    work: Workspace, model: DuCosReleased, rgb: Tensor, low: Tensor, at_once: Features
) -> Prediction:
    """`DuCosReleased.forward` without the alignment maps."""
    if at_once is None or len({feature.shape[-2:] for feature in at_once}) > 1:
        raise InputError(
            "ducos-released merges four prompt maps of one size; choose a ViT prompt such as "
            "depth-anything-v2-s or dinov2-s"
        )
    size = (rgb.shape[-2], rgb.shape[-1])
    up = resized(whole(low, work.device), size, bicubic)

    def merge(*features: Tensor) -> Tensor:
        layers: Any = model.projects
        return model.cc1(
            torch.cat([layer(f) for layer, f in zip(layers, features, strict=True)], 1)
        )

    merged = local(merge, [whole(feature, work.device) for feature in at_once], 64)
    lifted = resized(
        local(model.resize_layer, [merged], 64, grow=8),
        size,
        lambda x, size: F.interpolate(x, size=size, mode="bicubic", align_corners=True),
    )
    prompt = work.store(local(model.cc2, [lifted], 64, reach=1))
    out = fusion_network(work, model.dsrn, up, prompt)
    return Prediction(to_tensor(work, out, size, None))


def fusion_network(work: Workspace, network: FusionNetwork, up: Rows, prompt: Rows) -> Rows:
    """`FusionNetwork.forward`, depth only, up to the last convolution."""
    guides = (network.c_da2_r1, network.c_da2_r2, network.c_da2_r3, network.c_da2_r4)
    reduce = (network.c_r1, network.c_r2, network.c_r3, network.c_r4)
    deepen = (network.c_d2, network.c_d3, network.c_d4, network.c_r5)
    activate = partial(F.leaky_relu, negative_slope=0.1)

    stem = local(network.head, [up], 64, reach=1)
    x = work.store(residual_group(work, network.c_d1, work.store(stem)))
    gathered = Gathered(work, network.c_d5[0])  # type: ignore[arg-type]
    gathered.add(x)
    for i in range(4):
        guided = residual_group(work, guides[i], prompt)
        prompt = work.store(local(activate, [guided], 64) if i < 3 else guided)
        mixed = local(
            lambda x, prompt, i=i: reduce[i](torch.cat([x, prompt], 1)), [x, prompt], x.channels
        )
        fusion = network.gnn[i]
        assert isinstance(fusion, Fusion)
        fused = released_fusion(work, fusion, mixed, x)
        fused = local(activate, [fused], fused.channels)
        if i < 3:
            x = work.store(residual_group(work, deepen[i], work.store(fused)))  # type: ignore[arg-type]
        else:
            x = work.store(local(deepen[i], [fused], network.c_r5.out_channels))
        gathered.add(x)
    del x, prompt, guided, mixed, fused
    deep = residual_group(work, network.c_d5[1], gathered.result())  # type: ignore[arg-type]
    total = work.store(local(torch.add, [deep, stem], 64))
    del deep, gathered
    body, last = network.tail
    return local(last, [residual_group(work, body, total)], 1, reach=1)  # type: ignore[arg-type]


def released_fusion(work: Workspace, fusion: Fusion, mixed: Rows, depth: Rows) -> Rows:
    """`ducos_released.Fusion.forward`. Both sides are computed twice (once for their statistics)
    rather than kept: they are the widest maps of all."""
    wider = fusion.conv_depth.out_channels
    guided = local(
        lambda mixed, depth: fusion.conv_rgbd(torch.cat([mixed, depth], 1)),
        [mixed, depth],
        wider,
        reach=1,
    )
    plain = local(fusion.conv_depth, [depth], wider, reach=1)
    alpha = blending_weight(work, guided, plain, fusion.rounds, PEARSON_EPS)
    return local(
        lambda guided, plain: fusion.fc_depth_out(alpha * guided + (1 - alpha) * plain),
        [guided, plain],
        wider,
    )
