"""Several processes train what one would: equal losses, equal heads, one that writes and speaks."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from support.mock_backbone import MockBackbone, tiny_postcard

from ssd_core import Grid, SSDError, load_backbone
from ssd_core.backbones import postcard
from ssd_core.cli import main
from ssd_core.engine.heads import stored_heads
from ssd_core.files import write_safetensors
from ssd_core.launched import launched
from ssd_core.train import common, heads, row
from ssd_core.train.heads import HeadsRecipe
from ssd_core.train.picture_files import FORMAT, Pictures, of_prompts
from ssd_core.train.processes import Team, joined

MOCK = MockBackbone(Grid(4, 5))


class Member(Team):
    """One of several, without the others."""

    def __init__(self, rank: int, size: int, others: tuple = ()) -> None:
        super().__init__("cpu")
        self.rank, self.size, self.others = rank, size, others

    def gathered(self, value):
        return [value, *self.others]


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_every_picture_of_a_batch_is_somebodys(size):
    shares = [Member(rank, size).share(19) for rank in range(size)]
    assert [i for share in shares for i in share] == list(range(19))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("kind", ["heads", "row"])
def test_gradients_of_the_shares_add_up_to_those_of_the_batch(kind, monkeypatch):
    monkeypatch.setattr(common, "cpu_has_bf16", lambda: False)
    generator = torch.Generator().manual_seed(1)
    prompts = tuple(torch.tensor(MOCK.tokenize("abcdef"[: 1 + i])) for i in range(5))
    batch = Pictures(torch.randint(MOCK.codes, (5, 4, 5), generator=generator), prompts, MOCK.size)
    recipe = HeadsRecipe(Path(), kind=kind)
    if kind == "heads":
        recipe = replace(recipe, k_h=2, k_v=1)
        learn = partial(heads.learn_heads, measure=torch.nn.functional.smooth_l1_loss)
    else:
        learn = row.learn
    found = []
    for size in (1, 3):
        learning = heads.start(recipe, MOCK, torch.Generator().manual_seed(0))
        loss = 0.0
        for rank in range(size):
            noise = {"generator": torch.Generator().manual_seed(7)} if kind == "row" else {}
            loss += learn(learning, MOCK, batch, [False, True] * 2 + [False],
                          1000, team=Member(rank, size), **noise)
        found.append((loss, [weight.grad for weight in learning.parameters()]))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    for alone, together in zip(found[0][1], found[1][1], strict=True):
        assert torch.allclose(alone, together, atol=1e-6)


# Two processes, as accelerate launches them


@pytest.fixture(scope="module")
def card(tmp_path_factory) -> Path:
    """A small postcard of random weights and seven pictures of it."""
    folder = tmp_path_factory.mktemp("card")
    backbone = tiny_postcard(grid=Grid(6, 6))
    postcard.save(backbone, folder / "backbone.safetensors")
    backbone = load_backbone(folder, "cpu")
    tokens = torch.randint(backbone.codes, (7, 6, 6), generator=torch.Generator().manual_seed(2))
    prompts = of_prompts([backbone.tokenize("a red sun")] * 7)
    write_safetensors({"tokens": tokens.short(), **prompts},
                      folder / "self-distill" / "000000.safetensors",
                      {"format": FORMAT, "backbone_sha256": backbone.sha256,
                       "size": json.dumps(backbone.size)})
    return folder


def recipe(card: Path, out: Path, **knobs) -> HeadsRecipe:
    return HeadsRecipe(out / "mine.safetensors", str(card), str(card), k_h=2, k_v=1, batch=3,
                       held_out=2, device="cpu", **knobs)


ABORTED = "terminate called without an active exception"  # torch's own threads, at the exit


def launch(card: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """The same recipe in two processes, products in fp32; once more if torch aborts at the exit."""
    run = launched_once(card, out)
    return launched_once(card, out) if run.returncode and ABORTED in run.stderr else run


def launched_once(card: Path, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2",
         "--mixed_precision", "no", "--main_process_port", "0", "-m", "ssd_core", "train", "heads",
         "--backbone", card, "--data", card, "--out", out / "mine.safetensors", "--k-h", "2",
         "--k-v", "1", "--batch", "3", "--held-out", "2", "--device", "cpu"],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(heads.__file__).parents[2])})


def close(first: Path, second: Path, backbone) -> bool:
    """Whether two files hold the same heads but for rounding (they are stored in fp16)."""
    one, two = (stored_heads(folder / "mine.safetensors", backbone).state_dict()
                for folder in (first, second))
    return all(torch.allclose(one[name].float(), two[name].float(), atol=2e-3) for name in one)


@pytest.mark.nightly
def test_two_processes_learn_what_one_learns_and_either_goes_on_alone(
        card, tmp_path, monkeypatch):
    monkeypatch.setattr(common, "cpu_has_bf16", lambda: False)
    backbone, told = load_backbone(card, "cpu"), []
    one, two = tmp_path / "one", tmp_path / "two"
    alone = heads.train(recipe(card, one))
    ran = launch(card, two)
    assert ran.returncode == 0, ran.stderr
    together = json.loads(ran.stdout)  # one object: the first process alone printed
    assert (alone["processes"], together["processes"]) == (1, 2)
    assert ran.stderr.count("3 heads of 0.0M parameters") == 1
    for key in ("acceptance", "acceptance_se"):
        assert together[key] == pytest.approx(alone[key], abs=1e-5)
    states = [torch.load(out / "mine.ckpt", weights_only=True) for out in (one, two)]
    assert [state["processes"] for state in states] == [1, 2]
    assert states[0]["recent"] == pytest.approx(states[1]["recent"], rel=1e-5)
    assert states[0]["recent"][-1] < states[0]["recent"][0] and close(one, two, backbone)
    short = shutil.copytree(one, tmp_path / "short")
    for out in (one, two):
        heads.train(recipe(card, out, epochs=6), told.append)
    assert close(one, two, backbone) and not close(one, short, backbone)
    assert "goes on from step 6; processes then 2, now 1" in told[-1]


# What is refused, in one line


def test_an_error_of_one_process_ends_all_with_its_line():
    other = ("out: cannot be written", {})
    with pytest.raises(SSDError, match="^process 1: out: cannot be written$"):
        with Member(0, 2, (other,)).agreeing() as facts:
            facts["pictures"] = 3
    with pytest.raises(SSDError, match="^mine$"), Member(0, 2, (other,)).agreeing():
        raise SSDError("mine")


def test_processes_that_start_from_other_files_are_refused():
    with pytest.raises(SSDError, match="processes 0 and 1 differ in the step to go on from: 200 "
                                       "and 0; give every machine the same files"):
        with Member(0, 2, (("", {"the step to go on from": 0}),)).agreeing() as facts:
            facts["the step to go on from"] = 200


def test_a_batch_has_a_picture_for_each(card, tmp_path):
    with pytest.raises(SSDError, match="batch 3: 4 processes need a picture each; raise --batch"):
        heads.prepare(recipe(card, tmp_path), load_backbone(card, "cpu"), team=Member(0, 4))


@pytest.mark.parametrize(("variables", "device", "line"), [
    ({"WORLD_SIZE": "2"}, "cuda:1", "device cuda:1: 2 processes cannot share it"),
    ({"ACCELERATE_MIXED_PRECISION": "fp16"}, "auto", "mixed precision fp16: heads learn in fp32"),
    ({"WORLD_SIZE": "2"}, "cpu", "pip install accelerate")])
def test_what_cannot_be_joined_is_one_line(monkeypatch, variables, device, line):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(SSDError, match=line), joined(device):
        pass


def test_other_stages_run_in_one_process_and_only_the_first_complains(
        capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert launched() == 2
    told = []
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        assert main(["train", "self-distill", "--out", str(tmp_path)]) == 2
        told.append(capsys.readouterr().err)
    assert told[0].startswith("error: train self-distill runs in one process, 2 were started")
    assert told[1] == ""
