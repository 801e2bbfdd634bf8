"""The mean of the weights of two runs that share their beginning, as a weight file.

    python scripts/average_weights.py runs/a/final.safetensors runs/b/final.safetensors MEAN

Weights of a network trained on from the same start mostly lie in one valley: the mean does what
both can do, and less of what either overdoes (Wortsman et al., Model soups, 2022). A sensor's name
that does no good (benchmarks/rendered_sensors.py, `told`) can be forgotten on the way.
"""

import argparse
from pathlib import Path

from ducos.errors import InputError
from ducos.models.checkpoint import load_model, save_model, stored_weights


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("mean", type=Path, help="where to write")
    parser.add_argument("--share", type=float, default=0.5, help="of the second")
    parser.add_argument(
        "--forget", default=[], nargs="*", help="sensors whose name shall mean as much as none"
    )
    options = parser.parse_args()
    (one, spec, about), (two, other, _) = map(load_model, (options.first, options.second))
    weights, others = stored_weights(one), stored_weights(two)
    shapes = [{name: value.shape for name, value in each.items()} for each in (weights, others)]
    if shapes[0] != shapes[1]:
        raise InputError(f"these are different networks: {spec} and {other}")
    mean = {name: value.lerp(others[name], options.share) for name, value in weights.items()}
    for sensor in options.forget:
        words = one.subjects["sensor"]  # the first subject of these networks: rows begin with it
        mean["hints.weight"][words.index(sensor)] = mean["hints.weight"][0]
    save_model(options.mean, spec, mean, about)
    print(f"wrote {options.mean}")


if __name__ == "__main__":
    main()
