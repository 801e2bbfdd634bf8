"""The training configuration: defaults that work, overrides, and mistakes that are named."""

from pathlib import Path

import pytest

from ducos.errors import InputError
from ducos.training.augmentations import AUGMENTATIONS, RENAMED
from ducos.training.config import Config, load_config
from ducos.training.recipe import load_recipe
from tests import places

CONFIGS = sorted(places.CONFIGS.glob("*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_projects_own_configs_are_valid(path: Path) -> None:
    assert isinstance(load_recipe(path).base, Config)


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "run.toml"
        path.write_text(text)
        return path

    return write


def test_an_empty_file_is_a_complete_config(write) -> None:
    assert load_config(write("")) == Config()


def test_the_defaults_are_algorithm_1(write) -> None:
    config = load_config(write(""))
    assert config.dual.preset == "paper"
    assert config.dual.constraints == ["alignment", "edge"]
    assert config.train.rate == 1e-5
    assert config.train.objectives == {"reconstruction": 1.0}


def test_values_are_read(write) -> None:
    config = load_config(
        write(
            """
            [model]
            name = "ducos"
            prompt = "tiny"
            kwargs = {channels = 8, fusion = "add"}
            [data]
            train = "shapes:8"
            scales = [2, 4.5]
            degradations = {bicubic = 0.5, noisy = 0.5}
            [dual]
            preset = "constrained"
            constraints = ["edge"]
            edge = {epsilon = 0.03}
            [train]
            steps = 7
            """
        )
    )
    assert config.model.kwargs == {"channels": 8, "fusion": "add"}
    assert config.data.scales == (2, 4.5)
    assert config.dual.edge.epsilon == 0.03
    assert config.dual.edge.rate is None
    assert config.train.steps == 7


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("train.steps=3", "train", "steps", 3),
        ("train.rate=1e-3", "train", "rate", 1e-3),
        ("model.name=ducos", "model", "name", "ducos"),
        ('model.name="ducos"', "model", "name", "ducos"),
        ("data.train=shapes:8", "data", "train", "shapes:8"),
        ("data.train=nyu:a b/c.mat,split=test", "data", "train", "nyu:a b/c.mat,split=test"),
        ("data.scales=[2, 8]", "data", "scales", (2, 8)),
        (" train.steps = 4", "train", "steps", 4),
        ("model.kwargs.channels=16", "model", "kwargs", {"channels": 16, "blocks": 1}),
    ],
)  # fmt: skip
def test_overrides(write, override: str, section: str, key: str, value: object) -> None:
    path = write("[train]\nsteps = 9\n[model.kwargs]\nblocks = 1\n")
    config = load_config(path, [override])
    assert getattr(getattr(config, section), key) == value


def test_later_overrides_win_and_others_stay(write) -> None:
    config = load_config(write("[train]\nseed = 5\n"), ["train.steps=3", "train.steps=4"])
    assert (config.train.steps, config.train.seed) == (4, 5)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[train]\nstep = 3\n", "train.step"),
        ("[trian]\nsteps = 3\n", "trian"),
        ("[dual.edge]\neps = 0.1\n", "dual.edge.eps"),
        ("steps = 3\n", "steps"),
    ],
)
def test_unknown_keys_are_refused_by_name(write, text: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        load_config(write(text))


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("train.steps=many", "train.steps"),
        ("train.steps=1.5", "train.steps"),
        ("train.steps=0", "train.steps"),
        ("train.steps=[1]", "train.steps"),
        ("train.rate=-1", "train.rate"),
        ("train.rate=nan", "train.rate"),
        ("train.average=1.0", "train.average"),
        ("train.schedule=cosin", "train.schedule"),
        ("train.objectives={rec = 1.0}", "objectives"),
        ("data.scales=[8, 2]", "data"),
        ("data.scales=[0.5, 2]", "data"),
        ("data.scales=[2, 4, 8]", "data.scales"),
        ("data.crop=4", "data.crop"),
        ("data.augmentations.zoom=0", "data.augmentations: .*zoom"),
        ("data.augmentations.holes=2", "data.augmentations: .*holes"),
        ("data.augmentations.flip=maybe", "data.augmentations.flip"),
        ("data.degradations={bicubic = -1.0}", "degradations"),
        ("data.degradations={}", "degradations"),
        ("dual.preset=Paper", "dual.preset"),
        ("dual.constraints=[edges]", "dual.constraints"),
        ('dual.constraints=["edges"]', "dual.constraints"),
        ("dual.edge.epsilon=-1", "dual.edge.epsilon"),
        ("model=ducos", "model"),
        ("train.step=3", "train.step"),
        ("train=3", "train"),
    ],
)
def test_wrong_values_are_refused_by_name(write, override: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        load_config(write(""), [override])


@pytest.mark.parametrize(
    "override", ["train.steps", "=3", "", "train.steps.more=1", "train..steps=1"]
)
def test_malformed_overrides_are_refused(write, override: str) -> None:
    with pytest.raises(InputError):
        load_config(write("[train]\nsteps = 9\n"), [override])


def test_files_that_are_no_config(tmp_path: Path, write) -> None:
    with pytest.raises(InputError, match="nowhere"):
        load_config(tmp_path / "nowhere.toml")
    with pytest.raises(InputError, match="config"):
        load_config(tmp_path)
    with pytest.raises(InputError, match="TOML"):
        load_config(write("[train\n"))
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\x89PNG\xff\xfe\x00")
    with pytest.raises(InputError, match="binary"):
        load_config(binary)


def test_a_config_survives_json(write) -> None:
    """As `config.json` of a run keeps it."""
    config = load_config(write(""), ["dual.edge.epsilon=0.5", "data.scales=[2, 8]"])
    assert Config.model_validate_json(config.model_dump_json()) == config


def test_configs_do_not_change_under_the_hand(write) -> None:
    config = load_config(write(""))
    with pytest.raises(ValueError, match="frozen"):
        config.train.steps = 5  # type: ignore[misc]


@pytest.mark.parametrize("section", [*Config.model_fields])
def test_every_key_is_explained(section: str) -> None:
    fields = type(getattr(Config(), section)).model_fields
    assert not [name for name, field in fields.items() if not field.description]


# Names of the tables


def test_augmentations_are_read_and_the_rest_has_its_default(write) -> None:
    config = load_config(write(""), ["data.augmentations.flip=false", "data.augmentations.zoom=1"])
    chosen = config.data.augmentations
    assert list(chosen) == list(AUGMENTATIONS)
    assert chosen["flip"] is False
    assert chosen["turn"] is False  # needs flip
    assert chosen["holes"] == AUGMENTATIONS["holes"].default


@pytest.mark.parametrize(
    ("override", "told"),
    [
        (
            "data.augmentations.fog=0.5",
            "unknown augmentation 'fog'; choose of: zoom, prior, shift",
        ),
        ("data.augmentations.colour=true", "colour is 0 to 1"),
        ("data.augmentations.flip=0.5", "flip is true or false"),
        (
            "data.degradations={bicubik = 1.0}",
            "unknown degradation 'bicubik'; choose of: sensor",
        ),
        ("train.objectives={l2 = 1.0}", "unknown objective 'l2'; choose of: reconstruction, rms"),
        ("train.objectives={}", "at least one objective of: reconstruction"),
        ('dual.constraints=["edges"]', "unknown constraint 'edges'; choose of: alignment, edge"),
        ("dual.preset=Paper", "unknown preset 'Paper'; choose of: fixed, paper, constrained"),
        (
            "dual.edges={}",
            "dual.edges is not known; choose of: alignment, consistency, constraints",
        ),
        ("dual.edge.magnitud=true", "dual.edge.magnitud is not known; .*normalise, magnitude"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(write, override: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        load_config(write(""), [override])


@pytest.mark.parametrize(
    ("override", "told"),
    [
        *((f"data.{old}=0.5", f"data.augmentations.{new}") for old, new in RENAMED.items()),
        *((f"data.augmentations.{old}=0.5", f"called {new}") for old, new in RENAMED.items()),
        ("data.zoom=0.5", "data.augmentations.zoom"),
        ("train.objectives={hanging = 0.4}", "edge_snap"),
        ("dual.edge_normalise=false", r"normalise = ... in \[dual.edge\]"),
        ("dual.edge_magnitude=false", r"magnitude = ... in \[dual.edge\]"),
    ],
)
def test_old_names_are_refused_by_their_new_ones(write, override: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        load_config(write(""), [override])
