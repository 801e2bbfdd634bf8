"""Does it help to teach the compact prompt with features of DINOv2-S?

Method: `tiny` is pre-trained twice from the same start on the same patches (300 rendered pairs, 450
steps of four 192-px patches): on relative depth alone, as for configs/ablation.toml, and with one
more term, 1 - cosine between DINOv2-S's last features and a linear map of the prompt's features at
1/16. DINOv2's features come from the cache (whole images, cut to patches). From each of the two,
`ducos-compact` is then trained as in benchmarks/ablations.py, with the same seeds. The
score is RMSE divided by bicubic's on held-out scenes, mean over the seeds ± standard deviation.

    python benchmarks/distillation.py --dinov2 dinov2-s.safetensors -o runs/distillation
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from ablations import SCALES, folder_of, run, score
from ducos.data import open_dataset
from ducos.models.checkpoint import ModelSpec, save_model
from ducos.models.classical.prompt_alone import PromptAlone
from ducos.models.prediction import Prediction
from ducos.prompts import create_prompt
from ducos.prompts.prompt import Prompt
from ducos.resize import bilinear
from ducos.training.config import load_config
from ducos.training.losses import prompt_depth
from ducos.training.patches import PatchBatches
from ducos.training.prompt_cache import FeatureCache

STEPS, PATCH = 450, 192
VARIANTS = {"depth alone": 0.0, "depth and DINOv2-S's features": 1.0}  # weight of the latter
LEVEL = 1  # of the prompt's features: 1/16, near DINOv2's 1/14


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--dinov2", type=Path, required=True, help="weights of DINOv2-S")
    parser.add_argument("--cache", type=Path, help="folder of its features; default: OUT/cache")
    parser.add_argument("--config", type=Path, default=Path("configs/ablation.toml"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], help="as in train")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    starts = {}
    for name, weight in VARIANTS.items():
        starts[name] = options.out / f"prompt-{name.split()[-1]}.safetensors"
        if not starts[name].exists():
            pretrain(options, name, weight, starts[name])
    for seed in range(options.seeds):
        for name, start in starts.items():
            run(options, name, {"model.start_prompt": f'"{start}"'}, seed)
    print("\n| prompt pre-trained on | " + " | ".join(f"×{scale}" for scale in SCALES) + " |")
    print("|---|" + "---|" * len(SCALES))
    for name in VARIANTS:
        found = [score(folder_of(options.out, name, seed)) for seed in range(options.seeds)]
        columns = zip(*(values for values in found if values), strict=True)
        cells = [f"{statistics.mean(c):.3f} ± {statistics.stdev(c):.3f}" for c in columns]
        print(f"| {name} | {' | '.join(cells)} |")


def pretrain(options: argparse.Namespace, name: str, weight: float, out: Path) -> None:
    """Train `tiny` with the given weight of the features' term; write its file."""
    torch.manual_seed(0)
    teacher = create_prompt("dinov2-s", weights=str(options.dinov2), side=476)
    teacher.requires_grad_(False).eval()
    config = load_config(options.config)
    pairs = open_dataset(config.data.train)
    cache = FeatureCache(options.cache or options.out / "cache", teacher)
    cache.fill(pairs[index] for index in range(len(pairs)))
    batches = PatchBatches(
        pairs,
        batch_size=4,
        crop=PATCH,
        scales=(8.0, 8.0),
        degradations={"bicubic": 1.0},
        augmentations={"flip": False, "zoom": 0.5, "colour": 0.5},
        seed=0,
        cache=cache,
    )
    model = PromptAlone(create_prompt("tiny"))
    student: Any = model.prompt
    lift = nn.Conv2d(student.channels[LEVEL], teacher.channels[-1], 1)
    parameters = [*model.parameters(), *lift.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS, eta_min=1e-5)
    progress = tqdm(range(STEPS), desc=name, disable=not sys.stderr.isatty())
    terms = torch.zeros(2)
    for step in progress:
        batch = batches[step]
        assert batch.prompt is not None
        with torch.autocast("cpu", torch.bfloat16):
            answer = student(batch.rgb)
            features = lift(answer.features[LEVEL])
        aux = {"prompt_depth": answer.depth.float(), "prompt_inverse": student.inverse}
        loss = prompt_depth(Prediction(batch.target, aux), batch)
        apart = distance(features, batch.prompt)
        optimizer.zero_grad()
        (loss + weight * apart).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        terms = terms.lerp(torch.stack([loss.detach(), apart.detach()]), 0.05)
    print(f"{name}: depth {terms[0]:.3f}, features {terms[1]:.3f} at the end", flush=True)
    save_model(out, ModelSpec("prompt-alone", "tiny", {}, {}), model.state_dict(), {})


def distance(features: Tensor, teacher: Prompt) -> Tensor:
    """Mean of 1 - cosine over the teacher's grid."""
    target = teacher.features[-1].float()
    ours = bilinear(features.float(), (target.shape[-2], target.shape[-1]))
    return (1 - F.cosine_similarity(ours, target, dim=1)).mean()


if __name__ == "__main__":
    main()
