"""Reading published weights: a hub id, a local folder, or the authors' file.

Nothing is guessed: a file with a missing, an extra or a differently shaped entry is an error that
names the entry. Pickled files are read by torch's restricted loader only.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ducos.errors import InputError, needed, one_line

State = dict[str, Tensor]
FILES = ("model.safetensors", "pytorch_model.bin", "model.ckpt")
SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".ckpt")


def read_weights(source: str | Path) -> State:
    """All tensors of published weights, under their published names.

    Args:
        source: a file (.safetensors, .pth, .pt, .bin, .ckpt), a folder that holds one of `FILES`,
            or a hub id like "owner/name" or "owner/name@revision", downloaded once and then served
            from the cache (set HF_HUB_OFFLINE=1 to forbid the network).
    """
    path = Path(source).expanduser()
    if path.is_file():
        return read_file(path)
    if path.is_dir():
        found = [path / name for name in FILES if (path / name).is_file()]
        if not found:
            raise InputError(
                f"got the folder {path} without weights, expected one of {', '.join(FILES)} in it; "
                "give the weight file itself if it has another name"
            )
        return read_file(found[0])
    if isinstance(source, str) and source.count("/") == 1 and path.suffix not in SUFFIXES:
        return read_file(download(source))
    raise InputError(
        f"got {str(source)!r}, expected an existing file or folder, or a hub id like owner/name; "
        "check the path"
    )


def read_file(path: Path) -> State:
    """Tensors of one file; wrappers that trainers put around them are taken off."""
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except (SafetensorError, OSError, ValueError) as problem:
            raise InputError(
                f"{path} is not a readable safetensors file ({one_line(problem)}); fetch it again"
            ) from None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for a broken or unsafe pickle
        raise InputError(
            f"got {path}, which torch cannot read as plain weights ({type(error).__name__}), "
            "expected a file of tensors; convert it to safetensors where you trust its origin"
        ) from error
    for wrapper in ("state_dict", "model"):
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping):
        raise InputError(f"got {path} with a {type(content).__name__}, expected named tensors")
    state = {key: value for key, value in content.items() if isinstance(value, Tensor)}
    return {key.removeprefix("module."): value for key, value in state.items()}


_only_known: ContextVar[bool] = ContextVar("only_known", default=False)


@contextmanager
def only_known_repositories() -> Iterator[None]:
    """Meanwhile the network is asked for repositories of our own table only.

    While a weight file is loaded, the file names the repository, and it may be anybody's. What is
    in the cache already may be used: the user has fetched it.
    """
    token = _only_known.set(True)
    try:
        yield
    finally:
        _only_known.reset(token)


def known_repositories() -> set[str]:
    """The hub ids in the prompts' own tables."""
    from ducos.prompts import depth_anything_v2, dinov2, unidepth_v2, unidepth_v2old

    tables: list[dict[str, Any]] = [depth_anything_v2.VARIANTS, unidepth_v2.VARIANTS]
    tables.append(unidepth_v2old.VARIANTS)
    named = {variant.hub for table in tables for variant in table.values()}
    return named | set(dinov2.HUB.values())


def download(hub_id: str) -> Path:
    """The weight file of a hub repository, from the cache where it is already there."""
    needed("huggingface_hub", "prompts")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
    )

    repository, _, revision = hub_id.partition("@")
    if _only_known.get() and hub_id not in known_repositories():
        return from_cache(repository, revision or None)
    for name in FILES:
        try:
            return Path(hf_hub_download(repository, name, revision=revision or None))
        except LocalEntryNotFoundError as error:
            reason: Exception = error
            break
        except EntryNotFoundError as error:
            reason = error
        except (HfHubHTTPError, HFValidationError, OSError) as error:
            reason = error
            break
    raise InputError(
        f"got the hub id {hub_id!r} and no weights for it ({type(reason).__name__}), expected one "
        f"of {', '.join(FILES)} in the cache or online; download the repository where there is a "
        "network and give its folder instead"
    ) from reason


def from_cache(repository: str, revision: str | None) -> Path:
    """The weight file of a repository that the user has fetched before.

    Not by `hf_hub_download(local_files_only=True)`: even then the library asks its own server for
    something else, once in a process.
    """
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = [try_to_load_from_cache(repository, name, revision=revision) for name in FILES]
    except HFValidationError:
        found = []
    there = [Path(path) for path in found if isinstance(path, str)]
    if there:
        return there[0]
    raise InputError(
        f"got a weight file that names the hub repository {repository[:100]!r}, which is not asked "
        "because a file said so; if you trust it, fetch it first (hf download), or give a file "
        "that holds its prompt"
    )


def load_strictly(module: nn.Module, state: Mapping[str, Tensor], source: str | Path) -> None:
    """Load every entry, no more and no fewer; say which one does not fit."""
    expected = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    problems = [f"{key} is missing" for key in expected if key not in state]
    problems += [f"{key} is unknown" for key in state if key not in expected]
    problems += [
        f"{key} has shape {tuple(state[key].shape)} instead of {shape}"
        for key, shape in expected.items()
        if key in state and tuple(state[key].shape) != shape
    ]
    if problems:
        listed = "; ".join(problems[:3]) + (" ..." if len(problems) > 3 else "")
        raise InputError(
            f"got {source} with {len(problems)} entries that do not fit ({listed}), expected the "
            f"weights of {type(module).__name__}; check name and size of the model"
        )
    module.load_state_dict(dict(state), strict=True)
