"""Weights of `ducos-compact` as a start of a network that also has a wide guide and hears hints.

What is new starts without effect, or nearly so: the body does not look at the wide guided depth,
the tail leans to it by an eighth, hints say nothing.

    python scripts/grow_weights.py runs/ducos-tiny-hanging/final.safetensors GROWN
"""

import argparse
from pathlib import Path

import torch

from ducos.hints import SENSORS
from ducos.models import DuCosCompact
from ducos.models.checkpoint import load_model, save_model, stored_weights


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    old, spec, _ = load_model(options.weights)
    spec.kwargs |= {"wide": True, "told": {"sensor": list(SENSORS)}}
    new = spec.build()
    assert isinstance(old, DuCosCompact)
    assert isinstance(new, DuCosCompact)
    grown = new.state_dict()
    given = old.state_dict()
    cells = new.stride**2
    seen = 6 * cells  # planes before the wide guide's: bicubic, relative, guided, three colours
    head = given["head.weight"]
    blind = torch.zeros_like(head[:, :cells])
    given["head.weight"] = torch.cat([head[:, :seen], blind, head[:, seen:]], 1)
    last = slice(old.tail.predict.out_channels, None)
    deaf = torch.zeros_like(grown["tail.predict.weight"][last])
    given["tail.predict.weight"] = torch.cat([given["tail.predict.weight"], deaf])
    given["tail.predict.bias"] = torch.cat(
        [given["tail.predict.bias"], grown["tail.predict.bias"][last]]
    )
    given.setdefault("hints.weight", grown["hints.weight"])
    new.load_state_dict(given)
    save_model(options.out, spec, stored_weights(new), {})


if __name__ == "__main__":
    main()
