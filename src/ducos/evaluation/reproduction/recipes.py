"""The tables and figures of the paper: datasets, protocols, scales, variants, and what to know.

One entry of `RECIPES` for each name of `ducos reproduce`; what is published about it lies in
`ducos.evaluation.published`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ducos.evaluation import published

CONSTANT = 0.36  # of the ground truth's range; reproduces the published compressed rows on NYU v2


@dataclass(frozen=True)
class Part:
    """One dataset of a table. scales: () where the sensor decides. tables: published figures."""

    dataset: str
    protocol: str
    scales: tuple[float, ...] = ()
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """One table or figure of the paper.

    variants: networks to train for an ablation, name -> settings of `ducos train` that differ;
        `training` holds those they share. Their weights come back as NAME=FILE.
    pictures: error-map sheets per dataset and scale. with_constant: also score a constant.
    """

    title: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()
    variants: Mapping[str, tuple[str, ...]] | None = None
    training: tuple[str, ...] = ()
    pictures: int = 0
    curves: bool = False
    with_constant: bool = False


SYNTHETIC = (2.0, 4.0, 8.0, 16.0)
ARBITRARY = (1.5, 2.7, 3.4, 5.3, 11.6)
FIVE = ("middlebury", "lu", "nyu", "rgbdd", "tofdsr")
TABLE_1 = ("synthetic", "synthetic_wave", "synthetic_nyu_trained")
FIXED, NONE = "dual.preset=fixed", "dual.constraints=[]"
ADD, EDGE = "model.kwargs.fusion=add", 'dual.constraints=["edge"]'
COMPONENTS = {
    "naive": ("model.prompt=none", ADD, FIXED, NONE),
    "prompt": (ADD, FIXED, NONE),
    "cf-without-alignment": (FIXED, NONE),
    "cf": (FIXED, 'dual.constraints=["alignment"]'),
    "gr-without-normalisation": (ADD, FIXED, EDGE, "dual.edge.normalise=false"),
    "gr": (ADD, FIXED, EDGE),
    "cf-gr": (FIXED,),
    "cf-gr-ld": (),
}
FUSION: dict[str, tuple[str, ...]] = {
    **{f"iterations-{n}": (f"model.kwargs.iterations={n}",) for n in (1, 2, 3, 4, 5, 6)},
    "fusion-add": (ADD,),
    "fusion-concat": ("model.kwargs.fusion=concat",),
}
ON_RGBDD = (
    "data.train=rgbdd-real:DIR,split=train",
    "data.degradations={sensor = 1.0}",  # the phone's own maps
    "data.crop=288",
)
AT_16 = ("data.train=hypersim:DIR", "data.scales=[16, 16]", "train.validation_scales=[16.0]")
# The paper's prompts, and what they are to be compared with.
PROMPTS = (*(row["prompt"] for row in published.raw("prompt_cost")), "dinov2-s", "tiny", "none")
ABLATION_NOTE = (
    "the paper does not say what its ablation was trained on; these commands train on the training"
    " split of RGB-D-D with the phone's own maps, as its real-world table suggests"
)
WITH_SMALL = (
    "measured rows of prompts given with --prompt are ducos-small with that model's depth as its"
    " prior, not the paper's network; CPU s include the prompt"
)
RECIPES: dict[str, Recipe] = {
    "synthetic": Recipe(
        "Table 1: synthetic depth super-resolution",
        tuple(Part(dataset, "synthetic", SYNTHETIC, TABLE_1) for dataset in FIVE),
        (
            "released weights were trained on NYU v2: compare them with the NYU-trained column;"
            " the Hypersim-trained one is the paper's, where all methods were trained anew",
            "published NYU v2 rows tell the network the ground truth's range"
            " (--protocol synthetic-gt-range); the default here does not",
        ),
    ),
    "arbitrary": Recipe(
        "Figure: arbitrary scales",
        tuple(Part(dataset, "arbitrary", ARBITRARY) for dataset in FIVE),
        (
            "the paper prints this figure without numbers; its text gives mean gains of DuCos over"
            " all methods: RMSE 20.6 %, MAE 22.3 %, δ 0.47 points",
        ),
        curves=True,
    ),
    "real": Recipe(
        "Table 2, left: real-world depth super-resolution",
        tuple(Part(name, "real", (), ("real",)) for name in ("rgbdd-real", "tofdsr-real")),
    ),
    "noisy": Recipe(
        "Table 2, right: real-world depth super-resolution with noise",
        (
            Part("rgbdd-real", "noisy", (4.0,), ("noisy",)),
            Part("tofdsr-real", "noisy-tofdsr", (4.0,), ("noisy",)),
        ),
        ("DORNet's noisy weights belong to another protocol: --protocol noisy-dornet",),
    ),
    "compressed": Recipe(
        "Table 3: compressed depth super-resolution, sound and as released",
        (
            Part("nyu", "compressed", (8.0,)),
            Part("nyu", "compressed-as-released-nyu", (8.0,), ("compressed",)),
            Part("rgbdd", "compressed", (8.0,)),
            Part("rgbdd", "compressed-as-released", (8.0,), ("compressed",)),
            Part("tofdsr", "compressed", (8.0,)),
            Part("tofdsr", "compressed-as-released", (8.0,), ("compressed",)),
        ),
        (
            "as released, the depth input is destroyed before the network sees it; the line"
            f" `constant` predicts {CONSTANT} of the ground truth's range for every pixel of every"
            " image and knows nothing else",
            "GDNet: " + published.methods()["gdnet"].missing,
        ),
        with_constant=True,
    ),
    "components": Recipe(
        "Figure: components of DuCos on real-world RGB-D-D",
        (Part("rgbdd-real", "real"),),
        (ABLATION_NOTE,),
        variants=COMPONENTS,
        training=ON_RGBDD,
    ),
    "fusion": Recipe(
        "Figure: iterations and fusion on real-world RGB-D-D",
        (Part("rgbdd-real", "real"),),
        (
            ABLATION_NOTE,
            "the paper gives differences, not figures, for addition and concatenation, and no"
            " figure for the single iteration counts",
        ),
        variants=FUSION,
        training=ON_RGBDD,
    ),
    "prompts": Recipe(
        "Table 4: foundation models as prompts",
        tuple(
            Part(dataset, "synthetic", (16.0,), ("prompts",)) for dataset in ("nyu", "middlebury")
        ),
        (
            "parameters are those of the released network with each prompt; with Depth Anything"
            " v2-S they equal the paper's exactly, so its figures come from that network",
            "the paper's two UniDepth v2 rows are the first release, now called v2old: the present"
            " v2-S and v2-L would give 43.78 and 363.59 M",
            "DepthFormer is Swin-L (Swin-T has 47.6 M); 0.34 M less than network and fusion"
            " together, without any adapter, so something of it was cut, and the paper does not"
            " say what",
            "time in the paper: one RTX 4090, image size not stated; "
            + published.sources()["prompt_cost"]["remarks"],
        ),
        variants={name: (f"model.prompt={name}",) for name in PROMPTS},
        training=AT_16,
    ),
    "errors": Recipe(
        "Figures: error maps",
        (
            Part("nyu", "synthetic", (4.0,), TABLE_1),
            Part("middlebury", "synthetic", (4.0,), TABLE_1),
            Part("lu", "synthetic", (4.0,), TABLE_1),
            Part("rgbdd-real", "real", (), ("real",)),
        ),
        ("the paper shows NYU v2 ×4 and real-world RGB-D-D; Middlebury and Lu are added",),
        pictures=2,
    ),
}
