"""Choices that are measured once on a machine, such as the attention kernel of a card."""

import pytest
import torch
from torch.nn.attention import SDPBackend

from ssd_core import kept_files, measured
from ssd_core.engine.decode import alone
from ssd_core.measured import tuned
from ssd_core.model import attention_kernel
from ssd_core.model.attention_kernel import Timed, faster, one_attention_kernel, timed

CPU = torch.device("cpu")
FAST, SLOW, PLANNED = (Timed(1e-4, 1e-5),) * 3, (Timed(1e-4, 3e-5),) * 3, (Timed(0.03, 5e-6),) * 3


@pytest.fixture(params=["in a folder", "in memory"])
def kept(request, tmp_path, monkeypatch):
    where = str(tmp_path / "cache") if request.param == "in a folder" else kept_files.OFF
    monkeypatch.setenv(kept_files.VARIABLE, where)
    monkeypatch.setattr(measured._kept, "in_memory", {})
    return tmp_path / "cache" / measured.FILE


def test_a_choice_is_measured_once_until_something_is_updated(kept, monkeypatch):
    made = []

    def measure() -> str:
        made.append(len(made))
        return f"choice {len(made)}"

    assert [tuned(name, CPU, measure) for name in ("a", "b", "a", "b")] == [
        "choice 1", "choice 2", "choice 1", "choice 2"]
    monkeypatch.setattr(measured, "combination", lambda device: "another driver")
    assert tuned("a", CPU, measure) == "choice 3"


@pytest.mark.parametrize("contents", ["", "[]", '{"a": 1}', '{"a": {"b":'])
def test_a_file_that_cannot_be_read_is_measured_anew(contents, tmp_path, monkeypatch):
    monkeypatch.setenv(kept_files.VARIABLE, str(tmp_path))
    (tmp_path / measured.FILE).write_text(contents, encoding="utf-8")
    assert tuned("a", CPU, lambda: "new") == "new"
    assert tuned("a", CPU, lambda: "newer") == "new"


@pytest.mark.parametrize("times, name", [
    ({}, "default"), ({"cudnn": PLANNED}, "cudnn"), ({"efficient": FAST}, "efficient"),
    ({"efficient": FAST, "cudnn": SLOW}, "efficient"),
    ({"efficient": SLOW, "cudnn": FAST}, "cudnn"),
    ({"efficient": SLOW, "cudnn": PLANNED}, "efficient")])
def test_the_faster_kernel_is_chosen_unless_it_plans_long_for_every_shape(times, name):
    assert faster(times) == name


def test_a_run_s_attention_is_computed_by_the_chosen_kernel(monkeypatch):
    """cuDNN, where it was not chosen, is switched off, and so on."""
    monkeypatch.setattr(attention_kernel, "attention_kernel", lambda device: "efficient")
    before = torch.backends.cuda.cudnn_sdp_enabled()
    with alone(CPU):
        assert not torch.backends.cuda.cudnn_sdp_enabled()
        assert torch.backends.cuda.mem_efficient_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled() == before


def test_on_a_cpu_torch_chooses():
    before = torch.backends.cuda.cudnn_sdp_enabled()
    with one_attention_kernel(CPU):
        assert torch.backends.cuda.cudnn_sdp_enabled() == before
    assert attention_kernel.attention_kernel(CPU) == "default"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
def test_a_card_s_kernels_are_timed():
    for each in timed(SDPBackend.EFFICIENT_ATTENTION, torch.device("cuda")):
        assert 0 < each.later <= each.first
    assert attention_kernel.measured_kernel(torch.device("cuda")) in attention_kernel.KERNELS
