"""`--prompt`: a foundation model's depth as the prior, with weights in the layouts that exist."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from ducos import super_resolve
from ducos.batch.run import settings_of
from ducos.errors import InputError
from ducos.example import LOW, RGB
from ducos.files import read_rgb
from ducos.prompts.depth_anything_v2 import DepthAnythingV2
from ducos.prompts.transformers_layout import from_authors_keys
from ducos.serve.settings import Settings
from ducos.upscaling import Options, Upscaler, looking
from tests.commands import ducos_here

NAME = "depth-anything-v2-s"
REPOSITORY = "models--depth-anything--Depth-Anything-V2-Small-hf"


@pytest.fixture(scope="module")
def network() -> DepthAnythingV2:
    """With random weights, whose depth is not flat."""
    torch.manual_seed(0)
    made = DepthAnythingV2("s", side=518).requires_grad_(False).eval()
    made.depth_head.scratch.output_conv2[2].bias.fill_(1.0)
    return made


@pytest.fixture(scope="module")
def authors_file(network: DepthAnythingV2, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "depth_anything_v2_vits.pth"
    torch.save(network.state_dict(), path)
    return path


@pytest.fixture(scope="module")
def hub_cache(network: DepthAnythingV2, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What huggingface_hub leaves after a download."""
    cache = tmp_path_factory.mktemp("hub")
    snapshot = cache / REPOSITORY / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (cache / REPOSITORY / "refs").mkdir()
    (cache / REPOSITORY / "refs" / "main").write_text("0" * 40)
    named = {k: v.contiguous() for k, v in from_authors_keys(network.state_dict()).items()}
    save_file(named, snapshot / "model.safetensors")
    return cache


@pytest.fixture(scope="module")
def expected(network: DepthAnythingV2) -> np.ndarray:
    """The result with what the network sees, given as a prior."""
    rgb = torch.from_numpy(read_rgb(RGB)).permute(2, 0, 1)[None]
    depth = network(rgb).depth
    assert depth is not None
    seen = depth[0, 0].numpy()
    assert seen.std() > 0
    return super_resolve(RGB, LOW, prior=seen).depth


def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ducos", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=240, env=os.environ | variables
    )


def test_upscale_runs_the_network_with_the_authors_file(
    authors_file: Path, expected: np.ndarray, tmp_path: Path
) -> None:
    out = tmp_path / "sharp.npy"
    made = run("upscale", RGB, LOW, "-o", out, "--prompt", f"{NAME}={authors_file}")
    assert made.returncode == 0, made.stderr
    assert f"the prior is what {NAME} sees at 686×518" in made.stdout
    assert "licence Apache-2.0" in made.stderr
    np.testing.assert_allclose(np.load(out), expected, atol=1e-4)
    assert "the prior was not used" in made.stdout + made.stderr  # its weights are random


def test_weights_of_the_hub_come_from_its_cache(
    hub_cache: Path, expected: np.ndarray, tmp_path: Path
) -> None:
    """In a batch, whose workers are processes of their own; and again, nothing is left to do."""
    frames, out = tmp_path / "in", tmp_path / "out"
    frames.mkdir()
    shutil.copy(RGB, frames / "a_rgb.png")
    shutil.copy(LOW, frames / "a_depth.png")
    offline = {"HF_HUB_CACHE": str(hub_cache), "HF_HUB_OFFLINE": "1"}
    command = ("batch", frames, "-o", out, "--suffix", ".npy", "--workers", 1, "--prompt", NAME)
    made = run(*command, **offline)
    assert made.returncode == 0, made.stderr
    np.testing.assert_allclose(np.load(out / "a.npy"), expected, atol=1e-4)
    assert "1 were there" in run(*command, **offline).stdout


def test_a_folder_of_a_repository_holds_the_same_network(
    hub_cache: Path, network: DepthAnythingV2
) -> None:
    (folder,) = (hub_cache / REPOSITORY / "snapshots").iterdir()
    asked = Options(prompt=f"{NAME}={folder}", device="cpu")
    assert asked.foundation is not None
    loaded = looking.network(asked.foundation, asked)
    assert loaded.side == 518
    for key, value in loaded.state_dict().items():
        assert torch.equal(value, network.state_dict()[key]), key


def test_without_weights_it_says_what_to_do_before_the_work(tmp_path: Path) -> None:
    out = tmp_path / "sharp.npy"
    nowhere = {"HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    made = run("upscale", RGB, LOW, "-o", out, "--prompt", NAME, **nowhere)
    assert made.returncode == 2
    assert "depth-anything/Depth-Anything-V2-Small-hf" in made.stderr
    assert f"give its folder instead, as {NAME}=FOLDER" in made.stderr
    assert "Traceback" not in made.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        ("depth-anything-v2-b", "--accept-noncommercial"),
        (f"{NAME}=", "NAME=WEIGHTS"),
        ("dinov2-s", "given as prior"),  # it has no depth
        ("nothing", "given as prior"),
        (f"{NAME}=absent.pth", "no weights of"),
    ],
)
def test_mistakes_are_refused(
    prompt: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / "sharp.npy"
    code, _, said = ducos_here(capsys, "upscale", RGB, LOW, "-o", out, "--prompt", prompt)
    assert code == 2
    assert sentence in said
    assert len(said.strip().splitlines()) == 1
    assert not out.exists()


def test_one_prior_only_and_a_network_that_takes_it(authors_file: Path) -> None:
    with pytest.raises(InputError, match="one of them"):
        Options(prompt=f"{NAME}={authors_file}", prior=LOW)
    with pytest.raises(InputError, match="takes no prior"):
        Upscaler("ducos-tiny", prompt=f"{NAME}={authors_file}")


def test_a_batch_notices_other_weights_and_never_replaces_them(authors_file: Path) -> None:
    options = Options(prompt=f"{NAME}={authors_file}")
    assert authors_file in options.inputs
    settings = settings_of(options)
    assert settings["model"] == "ducos-small"
    assert len(settings["prompt_weights"]) == 64


def test_a_server_runs_no_foundation_model_because_a_client_says_so() -> None:
    from ducos.serve.schema import options_of

    with pytest.raises(InputError, match="unknown option 'prompt'"):
        options_of('{"prompt": "depth-anything-v2-s=/tmp/x"}', {}, Settings())
