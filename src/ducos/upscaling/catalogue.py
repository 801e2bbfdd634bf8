"""What there is to choose from: models and prompts with size, cost, licence and description."""

from typing import Any

from ducos.models import MODELS
from ducos.prompts import PROMPTS
from ducos.upscaling.weights import WEIGHTS, facts, how_to_get, needs_weights, version_of

NOW = "now"  # in the column `runs`; else what to do first


def model_rows() -> list[dict[str, Any]]:
    """One row per model; those that can run at once come first.

    version: of an embedded weight file. runs: "now", or how to get weights. parameters; gmac:
    billions of multiply-accumulates for a 640×480 image; licence: of the weights.
    """
    rows = [
        {**_row(path.stem, facts()[path.stem], NOW), "version": version_of(path.stem)}
        for path in sorted(WEIGHTS.glob("*.safetensors"))
    ]
    for name, entry in MODELS.items():
        said = {"licence": entry.licence, "prompt": entry.prompt, "about": entry.about}
        rows.append(_row(name, said, how_to_get(name) if needs_weights(name) else NOW))
    return sorted(rows, key=lambda row: row["runs"] != NOW)


def _row(name: str, said: dict[str, Any], runs: str) -> dict[str, Any]:
    counted = facts().get(name, {})  # nothing is known of a model from outside the package
    return {
        "name": name,
        "version": None,
        "runs": runs,
        "parameters": counted.get("parameters"),
        "gmac": counted.get("gmac"),
        "licence": said["licence"],
        "prompt": said["prompt"],
        "about": said["about"],
    }


def prompt_rows() -> list[dict[str, Any]]:
    """One row per prompt: name, parameters, channels of its features, licence of weights, about."""
    rows = []
    for name, entry in PROMPTS.items():
        counted = facts().get(f"prompt {name}", {})
        rows.append(
            {
                "name": name,
                "parameters": counted.get("parameters"),
                "channels": counted.get("channels"),
                "licence": entry.licence,
                "about": entry.about,
            }
        )
    return rows
