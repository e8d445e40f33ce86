"""What follows from what a processor has; the probe itself is a stub, its machine unknown."""

import pytest
import torch

from ssd_core import load_backbone
from ssd_core.model import processor
from ssd_core.model.processor import (
    capabilities,
    cpu_has_bf16,
    has_bf16,
    prefers_column_major,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize(("found", "bf16"), [
    ({"avx2": True, "avx512_bf16": False}, False),
    ({"avx2": True, "avx512_f": True, "avx512_bf16": True}, True), ({"neon": True}, False),
    ({"neon": True, "bf16": True}, True), ({"sve_bf16": True}, True), ({}, False)])
def test_units_for_bf16_are_known_by_their_names(monkeypatch, found, bf16):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found, raising=False)
    assert (cpu_has_bf16(), has_bf16(CPU)) == (bf16, bf16)


@pytest.mark.parametrize("there", [True, False])
def test_an_older_pytorch_is_asked_what_it_knows(monkeypatch, there):
    """Its functions are private and may be missing: then nothing is claimed."""
    for name in ("get_capabilities", *processor.ASKED.values()):
        monkeypatch.delattr(torch.cpu, name, raising=False)
    if there:
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True, raising=False)
    assert capabilities() == {"avx512_bf16": there, "amx_bf16": False}
    assert has_bf16(CPU) == there


def test_the_probe_answers_on_this_machine():
    assert isinstance(has_bf16(CPU), bool) and capabilities()


def test_a_device_without_bf16_products_says_so(monkeypatch):
    monkeypatch.setattr(torch, "ones", lambda *_, **__: (_ for _ in ()).throw(TypeError("none")))
    assert not has_bf16(torch.device("mps"))


@pytest.mark.parametrize("bf16", [True, False])
@pytest.mark.by_day(1)
def test_only_fp32_on_a_cpu_is_stored_by_column(monkeypatch, bf16):
    monkeypatch.setattr("ssd_core.model.processor.capabilities", lambda: {"bf16": bf16})
    for name in ("fp32", "bf16", "fp16"):
        matrix = load_backbone("postcard", "cpu", name).decoder.layers[0].gate_up
        assert matrix.is_contiguous() == (name != "fp32") == (not prefers_column_major(CPU,
                                                                                       matrix.dtype))
    assert not prefers_column_major(torch.device("cuda"), torch.float32)
