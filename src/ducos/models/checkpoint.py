"""Weights on disk, as safetensors only: loading a file never runs code from it.

A weight file carries in its metadata the model's name and keyword arguments, the prompt's, the
licence and whatever else its maker states; `load` needs nothing besides the file.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from ducos.errors import InputError, one_line
from ducos.files import atomic_write
from ducos.models import create
from ducos.models.justified import check_justified, compare, parsed
from ducos.models.protocol import Model, as_model
from ducos.prompts import only_known_repositories

FORMAT = "ducos-1"
# What constructors raise on arguments of the wrong kind; the list of networks is open.
BROKEN = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RuntimeError)


@dataclass
class ModelSpec:
    """What is needed to build a model again: exactly the arguments of `models.create`.

    Arguments as they were written before 0.2 are read, too.
    """

    name: str
    prompt: str | None = None
    prompt_options: dict = field(default_factory=dict)
    kwargs: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name == "ducos-compact":
            self.kwargs = in_todays_words(self.kwargs)

    def build(self) -> Model:
        return create(
            self.name, prompt=self.prompt, prompt_options=self.prompt_options, **self.kwargs
        )


def in_todays_words(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `ducos-compact` from before 0.2.

    What could be chosen and never was has become fixed. Sensors had no names in the file then: a
    `hinted` network had four rows, in this order.
    """
    fixed = {"recurrence": "reweight", "deconvolve": False, "stages": 4}
    fixed |= {"stage_residual": True, "gather_stages": True}
    if kwargs.get("tail") == "convolution":
        fixed["residual"] = True
    new = {name: value for name, value in kwargs.items() if fixed.get(name, ...) != value}
    if new.pop("hinted", False):
        new["told"] = {"sensor": ["unknown", "tof", "lidar", "stereo"]}
    return new


def stored_weights(model: nn.Module) -> dict[str, Tensor]:
    """The state dict without the frozen parts of a prompt that is loaded from its own source."""
    state = {name: value.detach() for name, value in model.state_dict().items()}
    prompt = as_model(model).prompt
    if prompt is not None and getattr(prompt, "source", None):
        frozen = {n for n, p in prompt.named_parameters(prefix="prompt") if not p.requires_grad}
        state = {name: value for name, value in state.items() if name not in frozen}
    return state


def save_model(path: Path, spec: ModelSpec, weights: dict[str, Tensor], about: dict) -> None:
    """Write a weight file that `load_model` can use on its own. about: licence, data, figures."""
    stored = asdict(spec)
    # An acceptance of terms is one user's; it does not travel with the file.
    stored["prompt_options"].pop("accept_noncommercial", None)
    header = {"format": FORMAT, "spec": json.dumps(stored), "about": json.dumps(about)}
    write_tensors(path, weights, header)


def load_model(path: Path, *, accept_noncommercial: bool = False) -> tuple[Model, ModelSpec, dict]:
    """Rebuild a model from a weight file, strictly: (model in eval mode, spec, about).

    accept_noncommercial: of a prompt whose own weights forbid commercial use, see prompts.licence.
    """
    tensors, header = read_tensors(path)
    if header.get("format") != FORMAT or "spec" not in header:
        raise InputError(
            f"{path} is a safetensors file but not a ducos model (no {FORMAT} header); "
            "turn an authors' checkpoint into one with `ducos convert`"
        )
    try:
        spec = ModelSpec(**parsed(header["spec"], path))
        about = parsed(header.get("about", "{}"), path)
        tensors = on_base(tensors, about, path)
        # Terms are accepted by the user, never by a file.
        spec.prompt_options.pop("accept_noncommercial", None)
        check_justified(spec, tensors, path)
        if accept_noncommercial and spec.prompt:
            spec.prompt_options["accept_noncommercial"] = True
        with only_known_repositories():
            model = spec.build()
    except InputError:
        raise  # it says itself what to do, such as to accept a licence
    except BROKEN as problem:
        reason = one_line(problem)
        raise InputError(f"{path} has a broken header ({reason}); write it again") from None
    load_strictly(model, tensors, path)
    return model.eval(), spec, about


def on_base(tensors: dict[str, Tensor], about: dict, path: Path) -> dict[str, Tensor]:
    """The tensors of a file that holds only a part of a network, with those of the file beside it
    that it was trained on: `base` and its `base_sha256` in what the maker states."""
    base = about.get("base")
    if base is None:
        return tensors
    if not re.fullmatch(r"[a-z0-9-]{1,40}", str(base)):
        raise InputError(f"{path} names an impossible base; write it again")
    beside = Path(path).with_name(f"{base}.safetensors")
    if not beside.is_file():
        raise InputError(f"{path} needs {beside.name} beside it; put it there")
    if hashlib.sha256(beside.read_bytes()).hexdigest() != about.get("base_sha256"):
        raise InputError(f"{path} was trained on another version of {base}; take both of one")
    return {**read_tensors(beside)[0], **tensors}


def beside_base(tensors: dict[str, Tensor], base: Path) -> tuple[dict[str, Tensor], dict]:
    """What a file needs to hold if it lies beside that of its base, and what it states of it."""
    below = read_tensors(base)[0]
    own = {n: x for n, x in tensors.items() if n not in below or not torch.equal(x, below[n])}
    changed = sorted(own.keys() & below.keys())
    if changed:
        raise InputError(f"{changed[0]} differs from {base.name}, on which it is to rest")
    sha256 = hashlib.sha256(base.read_bytes()).hexdigest()
    return own, {"base": base.stem, "base_sha256": sha256}


def load_strictly(model: nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Every stored tensor must have a place and every expected one must be stored."""
    expected = {name: tuple(value.shape) for name, value in stored_weights(model).items()}
    compare(expected, {name: tuple(value.shape) for name, value in weights.items()}, path)
    model.load_state_dict(weights, strict=False)


def write_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, str]) -> None:
    """Write a safetensors file atomically."""
    contiguous = {
        name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()
    }
    with atomic_write(path) as temporary:
        Path(temporary).write_bytes(in_fixed_order(save(contiguous, header)))


def in_fixed_order(stored: bytes) -> bytes:
    """The same safetensors file with its header sorted: the library's order changes per call."""
    length = int.from_bytes(stored[:8], "little")
    header = json.dumps(json.loads(stored[8 : 8 + length]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)  # tensors stay aligned
    return len(header).to_bytes(8, "little") + header + stored[8 + length :]


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a safetensors file; anything else is refused."""
    if not Path(path).is_file():
        raise InputError(f"no such weight file: {path}")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as problem:
        hint = "pickle files (.pt, .pth) are never loaded directly; use `ducos convert`"
        reason = one_line(problem)
        raise InputError(f"{path} is not a readable safetensors file ({reason}); {hint}") from None
