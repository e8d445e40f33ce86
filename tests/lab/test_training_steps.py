"""Steps of training: checkpoints by time and on Ctrl-C, and going on from them."""

import os
import signal

import pytest
import torch

from ssd_core.train import checkpoints
from ssd_core.train.checkpoints import Checkpoint, held_back, training_steps

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send")


@pytest.fixture(autouse=True)
def as_in_a_terminal():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Training:
    """Counts its steps in a weight, and what the generator drew, from where a file left off."""

    def __init__(self, path):
        self.path = path

    def run(self, steps, during=lambda step: None):
        self.model, generator = torch.nn.Linear(1, 1, bias=False), torch.Generator().manual_seed(0)
        torch.nn.init.zeros_(self.model.weight)
        checkpoint = Checkpoint(self.path, self.model, [], generator)
        for step in training_steps("count", steps, checkpoint):
            with torch.no_grad():
                self.model.weight += torch.rand((), generator=generator)
            during(step)
            checkpoint.recent.append(step)
        return self.model.weight.item()

    @property
    def kept(self):
        state = torch.load(self.path, weights_only=True)
        return state["step"], state["model"]["weight"].item(), state["recent"]


def interrupt_at(wanted, times=1):
    def during(step):
        if step == wanted:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
    return during


def test_ctrl_c_keeps_the_step_that_it_met_and_training_goes_on_from_it(tmp_path, capfd):
    training = Training(tmp_path / "a.ckpt")
    with pytest.raises(KeyboardInterrupt):
        training.run(270, interrupt_at(96))
    assert training.kept == (97, training.model.weight.item(), list(range(97)))
    assert "finishing the step and writing a checkpoint" in capfd.readouterr().err
    assert training.run(270) == Training(tmp_path / "b.ckpt").run(270)
    assert training.kept[0] == 270


def test_a_second_ctrl_c_ends_at_once(tmp_path):
    training = Training(tmp_path / "a.ckpt")
    with pytest.raises(KeyboardInterrupt):
        training.run(9, interrupt_at(4, times=2))
    assert not training.path.exists()


def test_a_checkpoint_is_written_every_two_minutes(tmp_path, monkeypatch):
    """A step takes 50 seconds; the first checkpoint is due after the third one."""
    assert checkpoints.EVERY == 120
    now, kept, training = [0.0], {}, Training(tmp_path / "a.ckpt")
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])

    def during(step):
        kept[step] = training.kept[0] if training.path.exists() else 0
        now[0] += 50

    training.run(8, during)
    assert list(kept.values()) == [0, 0, 0, 3, 3, 3, 6, 6] and training.kept[0] == 8


def test_ctrl_c_is_the_callers_again_after_the_training(tmp_path):
    Training(tmp_path / "a.ckpt").run(2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with held_back():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
