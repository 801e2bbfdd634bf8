"""Weight files that hold a part of a network, beside the file of the rest."""

import hashlib
import shutil
from pathlib import Path

import pytest
import torch

from ducos.errors import InputError
from ducos.models.checkpoint import beside_base, load_model, read_tensors, write_tensors
from ducos.training.preparation import model_spec, start_run
from ducos.training.recipe import load_recipe
from ducos.upscaling import WEIGHTS, Upscaler, super_resolve
from tests.places import REPOSITORY

SMALL, TINY = WEIGHTS / "ducos-small.safetensors", WEIGHTS / "ducos-tiny.safetensors"


def test_the_branch_is_stored_alone_and_works_on_its_base() -> None:
    assert all(name.startswith("prior.") for name in read_tensors(SMALL)[0])
    assert SMALL.stat().st_size + TINY.stat().st_size < 8_000_000
    small, tiny = load_model(SMALL)[0], load_model(TINY)[0]
    shared = small.state_dict()
    assert all(torch.equal(shared[name], value) for name, value in tiny.state_dict().items())


def test_without_the_base_or_with_another_it_is_refused(tmp_path: Path) -> None:
    alone = Path(shutil.copy(SMALL, tmp_path))
    with pytest.raises(InputError, match="needs ducos-tiny"):
        load_model(alone)
    tensors, header = read_tensors(TINY)
    first = next(iter(tensors))
    write_tensors(tmp_path / TINY.name, {**tensors, first: tensors[first] + 1}, header)
    with pytest.raises(InputError, match="another version"):
        load_model(alone)


def test_a_base_is_a_name_not_a_path(tmp_path: Path) -> None:
    tensors, header = read_tensors(SMALL)
    for bad in ("../ducos-tiny", "/etc/passwd", ""):
        about = header["about"].replace('"base": "ducos-tiny"', f'"base": "{bad}"')
        write_tensors(tmp_path / "x.safetensors", tensors, {**header, "about": about})
        with pytest.raises(InputError, match="impossible base"):
            load_model(tmp_path / "x.safetensors")


def test_the_stated_base_is_the_embedded_one() -> None:
    about = load_model(SMALL)[2]
    assert about["base_sha256"] == hashlib.sha256(TINY.read_bytes()).hexdigest()


def test_a_prior_chooses_the_network_that_takes_it() -> None:
    torch.manual_seed(0)
    rgb, low = torch.rand(3, 64, 80), 1 + torch.rand(8, 10)
    prior = torch.rand(32, 40)
    result = super_resolve(rgb, low, prior=prior, shift="off")
    assert result.model.startswith("ducos-small")
    assert result.leaned is not None
    assert result.leaned.shape == (64, 80)
    plain = super_resolve(rgb, low, shift="off")
    assert plain.model.startswith("ducos-tiny")
    assert plain.leaned is None
    torch.testing.assert_close(
        super_resolve(rgb, low, model="ducos-small", shift="off").depth,
        plain.depth,
        atol=1e-4,  # they may run on different runtimes
        rtol=0,
    )
    with pytest.raises(InputError, match="takes no prior"):
        Upscaler("ducos-tiny")(rgb, low, prior=prior)


def test_training_of_a_branch_starts_from_its_base_and_its_last_version() -> None:
    starts = [f"model.start={TINY}", f"model.start_prior={SMALL}"]
    recipe = load_recipe(REPOSITORY / "configs" / "ducos-small.toml", starts)
    config = recipe.stages[0].config
    run = start_run(config, model_spec(config), torch.device("cpu"))
    begun, small = run.model.state_dict(), load_model(SMALL)[0].state_dict()
    assert all(torch.equal(begun[name], value) for name, value in small.items())
    learning = {name for name, p in run.model.named_parameters() if p.requires_grad}
    assert learning
    assert all(name.startswith("prior.") for name in learning)


def test_what_lies_beside_a_base_is_the_rest() -> None:
    small = load_model(SMALL)[0].state_dict()
    own, stated = beside_base(small, TINY)
    assert own.keys() == read_tensors(SMALL)[0].keys()
    assert stated["base"] == "ducos-tiny"
    changed = {**small, "head.bias": small["head.bias"] + 1}
    with pytest.raises(InputError, match=r"head\.bias differs"):
        beside_base(changed, TINY)
