"""Weight names: the files of `transformers` <-> the files of the authors, both ways, nothing lost.

Our modules carry the authors' names. Hub repositories ending in -hf, and everything `transformers`
saves, name the same tensors differently and store query, key and value apart. The names here are
those in the files; the names of its modules in memory change between versions.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

State = dict[str, Tensor]
_QKV = ("query", "key", "value")


def _encoder(theirs: str, ours: str, blocks: int) -> Iterator[tuple[str, str]]:
    """Pairs (name in `transformers`, name of the authors), attention's qkv left out."""
    yield f"{theirs}embeddings.cls_token", f"{ours}cls_token"
    yield f"{theirs}embeddings.mask_token", f"{ours}mask_token"
    yield f"{theirs}embeddings.position_embeddings", f"{ours}pos_embed"
    for kind in ("weight", "bias"):
        yield (
            f"{theirs}embeddings.patch_embeddings.projection.{kind}",
            f"{ours}patch_embed.proj.{kind}",
        )
        yield f"{theirs}layernorm.{kind}", f"{ours}norm.{kind}"
        for block in range(blocks):
            layer, name = f"{theirs}encoder.layer.{block}", f"{ours}blocks.{block}"
            yield f"{layer}.attention.output.dense.{kind}", f"{name}.attn.proj.{kind}"
            for part in ("norm1", "norm2", "mlp.fc1", "mlp.fc2"):
                yield f"{layer}.{part}.{kind}", f"{name}.{part}.{kind}"
    for block in range(blocks):
        for scale in (1, 2):
            yield (
                f"{theirs}encoder.layer.{block}.layer_scale{scale}.lambda1",
                f"{ours}blocks.{block}.ls{scale}.gamma",
            )


def _dpt_head() -> Iterator[tuple[str, str]]:
    """Pairs for the depth head of Depth Anything and PromptDA."""
    scratch = "depth_head.scratch"
    for level in range(4):
        yield f"neck.convs.{level}.weight", f"{scratch}.layer{level + 1}_rn.weight"
    for kind in ("weight", "bias"):
        for level in range(4):
            reassemble = f"neck.reassemble_stage.layers.{level}"
            yield f"{reassemble}.projection.{kind}", f"depth_head.projects.{level}.{kind}"
            yield f"{reassemble}.resize.{kind}", f"depth_head.resize_layers.{level}.{kind}"
            # `transformers` counts fusion steps from the coarsest map, the authors from the finest.
            theirs, ours = (
                f"neck.fusion_stage.layers.{3 - level}",
                f"{scratch}.refinenet{level + 1}",
            )
            yield f"{theirs}.projection.{kind}", f"{ours}.out_conv.{kind}"
            for unit in (1, 2):
                for conv in (1, 2):
                    yield (
                        f"{theirs}.residual_layer{unit}.convolution{conv}.{kind}",
                        f"{ours}.resConfUnit{unit}.conv{conv}.{kind}",
                    )
            for conv in (1, 2, 3):  # PromptDA's branch for the measured depth
                yield (
                    f"{theirs}.prompt_depth_layer.convolution{conv}.{kind}",
                    f"{ours}.resConfUnit_depth.{2 * conv - 2}.{kind}",
                )
        yield f"head.conv1.{kind}", f"{scratch}.output_conv1.{kind}"
        yield f"head.conv2.{kind}", f"{scratch}.output_conv2.0.{kind}"
        yield f"head.conv3.{kind}", f"{scratch}.output_conv2.2.{kind}"


def _blocks(state: Mapping[str, Tensor], ending: str) -> int:
    return sum(key.endswith(ending) for key in state)


def is_transformers_layout(state: Mapping[str, Tensor]) -> bool:
    return any(key.endswith("embeddings.cls_token") for key in state)


def to_authors_keys(state: Mapping[str, Tensor]) -> State:
    """Depth Anything, PromptDA or DINOv2 as stored by `transformers` -> the authors' names.

    Entries that neither layout knows keep their name, so that strict loading reports them.
    """
    bare = "embeddings.cls_token" in state  # DINOv2 alone has no prefix in either layout
    theirs, ours = ("", "") if bare else ("backbone.", "pretrained.")
    blocks = _blocks(state, ".layer_scale1.lambda1")
    rest = dict(state)
    renamed: State = {}
    for block in range(blocks):
        for kind in ("weight", "bias"):
            attention = f"{theirs}encoder.layer.{block}.attention.attention"
            parts = [rest.pop(f"{attention}.{part}.{kind}") for part in _QKV]
            renamed[f"{ours}blocks.{block}.attn.qkv.{kind}"] = torch.cat(parts)
    for old, new in [*_encoder(theirs, ours, blocks), *_dpt_head()]:
        if old in rest:
            renamed[new] = rest.pop(old)
    return renamed | rest


def from_authors_keys(state: Mapping[str, Tensor]) -> State:
    """The inverse of `to_authors_keys`: weights that `transformers` loads."""
    bare = "cls_token" in state
    theirs, ours = ("", "") if bare else ("backbone.", "pretrained.")
    blocks = _blocks(state, ".ls1.gamma")
    rest = dict(state)
    renamed: State = {}
    for block in range(blocks):
        for kind in ("weight", "bias"):
            attention = f"{theirs}encoder.layer.{block}.attention.attention"
            parts = rest.pop(f"{ours}blocks.{block}.attn.qkv.{kind}").chunk(3)
            renamed |= {f"{attention}.{name}.{kind}": part for name, part in zip(_QKV, parts)}
    for new, old in [*_encoder(theirs, ours, blocks), *_dpt_head()]:
        if old in rest:
            renamed[new] = rest.pop(old)
    return renamed | rest
