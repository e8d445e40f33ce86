"""Layers that wait beside the device: what ComfyUI's manager asks, and what a run then computes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from support.comfyui_stub import InterruptProcessingException
from support.rehearsal import Rehearsal

pytestmark = pytest.mark.usefixtures("small_bundle")
CPU = torch.device("cpu")
RUN = {"method": "Faithful", "preview": False, "prompt": "a red house"}


@pytest.fixture
def model(pack):
    """A model of its own, in fp32; the card is the CPU, to which layers are copied."""
    pack.module("nodes.weights").LOADED.clear()
    return pack.run("SSD_LoadModel", dtype="fp32", heads="none")[0]


@pytest.fixture
def patcher(model):
    return model.backbone.patcher


def budget(patcher, layers: int) -> int:
    """Bytes that hold so many layers, the rest of the backbone, and one layer more."""
    each = sum(part.nbytes for part in parts(patcher.decoder.layers[0]))
    return patcher.model_size() - (patcher.layers - layers - 1) * each


def parts(layer) -> list[torch.Tensor]:
    """The plain tensors of a layer."""
    return [getattr(weight, name) if name else weight.detach() for weight in layer.parameters()
            for name in getattr(weight, "tensor_data_names", [""])]


def drawn(pack, model) -> torch.Tensor:
    return pack.run("SSD_Sampler", model=model, **RUN)[1].tokens.tokens


@pytest.mark.parametrize("kept", [1, 2])
def test_streamed_layers_draw_the_same_picture(pack, model, patcher, kept):
    expected = drawn(pack, model)
    patcher.partially_load(CPU, budget(patcher, kept) + 5)
    waiting = patcher.layers - kept
    assert patcher.waiting == waiting and patcher.first == kept
    assert patcher.loaded_size() == budget(patcher, kept) < patcher.model_size()
    assert patcher.model.model_lowvram
    streaming, adopted = patcher.decoder.streaming, []
    load_layer = streaming.load_layer
    streaming.load_layer = lambda index: adopted.append(index) or load_layer(index)
    assert torch.equal(drawn(pack, model), expected)
    assert adopted[: patcher.layers] == list(range(patcher.layers))
    place = [weight.data_ptr() for weight in streaming.place.parameters()]
    assert [weight.data_ptr() for weight in load_layer(kept).parameters()] == place
    assert torch.equal(load_layer(kept + 1).qkv, patcher.decoder.layers[kept + 1].qkv)
    (text, _, _), = pack.server.texts[-1:]
    assert f"{waiting} of {patcher.layers} layers wait" in text


def test_passes_of_streamed_layers_are_not_replayed_and_have_step_times_of_their_own(pack, model):
    graphs, step_times = (pack.module(f"ssd_core.engine.{name}") for name in ("graphs",
                                                                              "step_times"))
    key = step_times.key_of(model.module, 1, 1, False)
    model.backbone.patcher.partially_load(CPU, 1)
    assert step_times.key_of(model.module, 1, 1, False) != key
    assert graphs.graphs_off_reason(torch.device("cuda"), streamed=True)
    assert graphs.graphs_off_reason_of(model.module)


def test_a_little_memory_holds_one_layer_and_enough_holds_all(patcher):
    patcher.partially_load(CPU, 1)
    assert patcher.first == 1
    patcher.partially_load(CPU, budget(patcher, 3) - patcher.loaded_size())
    assert patcher.first == 3, "more memory, more layers"
    patcher.partially_load(CPU, 1e32)
    assert patcher.waiting == 0 and patcher.decoder.streaming is None
    assert patcher.loaded_size() == patcher.model_size() and not patcher.model.model_lowvram
    assert patcher.partially_load(CPU, 1) == 0, "all is there"


def test_memory_is_freed_from_the_last_layer_on_but_not_during_a_run(patcher):
    patcher.partially_load(CPU, 1e32)
    size = patcher.model_size()
    least = size - budget(patcher, patcher.layers - 2)
    assert patcher.partially_unload(CPU, 1) == least and patcher.waiting == 2
    with patcher.in_use():
        assert patcher.partially_unload(CPU, 1) == 0
    assert patcher.partially_unload(CPU, 1) == least and patcher.waiting == 3
    assert patcher.partially_unload(CPU, size) == 0 and patcher.waiting == 3, "that takes all"
    patcher.detach()
    assert patcher.waiting == 0 and patcher.loaded_size() == 0


def test_what_a_run_has_left_is_freed_before_layers_and_whenever_weights_move(
        pack, model, patcher, monkeypatch):
    session = model.module.session
    graphs, decode = (pack.module(f"ssd_core.engine.{name}") for name in ("graphs", "decode"))
    monkeypatch.setattr(decode, "runner", lambda backbone: graphs.GraphRunner(Rehearsal()))
    patcher.partially_load(CPU, 1e32)
    expected = drawn(pack, model)
    held, size = session.nbytes, patcher.model_size()
    assert held > 0 and patcher.loaded_size() == size + held
    assert patcher.partially_unload(CPU, held) == held and session.nbytes == 0
    assert patcher.waiting == 0 and torch.equal(drawn(pack, model), expected)
    assert patcher.partially_unload(CPU, held + 1) > held and session.nbytes == 0
    assert patcher.waiting == 2, "of layers, as before"
    patcher.partially_load(CPU, 1e32)
    drawn(pack, model)
    assert session.nbytes == held
    patcher.detach()
    assert session.nbytes == 0 == patcher.loaded_size()


@pytest.fixture
def fp8_on_a_cpu(pack, monkeypatch):
    """The tensors of fp8, which a CPU multiplies in bf16."""
    torchao = pytest.importorskip("torchao.quantization", reason="torchao is not installed")
    quantize = pack.module("ssd_core.weights.quantize")
    monkeypatch.setattr(quantize, "require_fp8", lambda device: None)
    real = quantize.config
    monkeypatch.setattr(quantize, "config", lambda kind, weight: real(kind, weight)
                        if kind != "fp8" else torchao.Float8WeightOnlyConfig())


@pytest.mark.parametrize("dtype", ["int8", "fp8", "int4"])
def test_quantised_layers_are_streamed_too(pack, dtype, fp8_on_a_cpu):
    model = pack.run("SSD_LoadModel", dtype=dtype)[0]
    patcher, expected = model.backbone.patcher, drawn(pack, model)
    patcher.partially_load(CPU, 1)
    assert patcher.waiting == patcher.layers - 1
    assert torch.equal(drawn(pack, model), expected)
    streaming, layers = patcher.decoder.streaming, patcher.decoder.layers
    for index in (2, 1):
        adopted, own = (parts(layer) for layer in (streaming.load_layer(index), layers[index]))
        assert all(map(torch.equal, adopted, own))
        assert {part.data_ptr() for part in adopted}.isdisjoint(part.data_ptr() for part in own)


@pytest.mark.parametrize("dtype", ["fp32", "int8", "int4"])
def test_waiting_layers_are_pinned_until_they_move(pack, monkeypatch, dtype, fp8_on_a_cpu):
    """A recorder stands in for ComfyUI's pins, one of which fails."""
    patcher = pack.run("SSD_LoadModel", dtype=dtype)[0].backbone.patcher
    pinned, refused = [], []

    def pin(tensor):
        assert type(tensor) is torch.Tensor and tensor.is_contiguous()
        assert tensor.data_ptr() not in pinned
        if not refused:
            refused.append(tensor.data_ptr())
            return False
        pinned.append(tensor.data_ptr())
        return True

    monkeypatch.setattr(pack.module("nodes.patchers").mm, "pin_memory", pin, raising=False)
    monkeypatch.setattr(pack.module("nodes.patchers").mm, "unpin_memory",
                        lambda tensor: pinned.remove(tensor.data_ptr()), raising=False)

    def memory(first):
        return {part.data_ptr() for layer in patcher.decoder.layers[first:]
                for part in parts(layer)}

    patcher.partially_load(CPU, 1)
    assert set(pinned) == memory(1) - set(refused) and refused[0] in memory(1)
    patcher.partially_load(CPU, budget(patcher, 3) - patcher.loaded_size())
    assert patcher.first == 3 and set(pinned) == memory(3)
    patcher.partially_load(CPU, 1e32)
    assert pinned == [], "nothing waits"
    patcher.partially_unload(CPU, 1)
    assert set(pinned) == memory(patcher.first)
    patcher.detach()
    assert pinned == [] and patcher.waiting == 0
    patcher.partially_load(CPU, 1)
    assert pinned
    patcher.unpin_all_weights()
    assert pinned == [], "as ComfyUI asks before the patcher ends"


def test_layers_move_with_progress_and_an_interrupt_leaves_all_in_one_place(
        pack, patcher, monkeypatch):
    patchers = pack.module("nodes.patchers")
    moved = []
    layers = [SimpleNamespace(parameters=lambda: [torch.empty(1, device="meta")],
                              to=moved.append) for _ in range(4)]
    pack.stubs.bars.clear()
    patchers.move_each(layers, CPU)
    assert len(moved) == 4 and pack.stubs.bars == [(n, 4) for n in (1, 2, 3, 4)]
    pack.manager.checks, pack.manager.interrupt_at = 0, 3
    with pytest.raises(InterruptProcessingException):
        patchers.move_each(layers, CPU)
    assert len(moved) == 6
    patcher.partially_load(CPU, 1)

    def stop(*_):
        raise InterruptProcessingException

    with monkeypatch.context() as patch:
        patch.setattr(patchers, "move_each", stop)
        with pytest.raises(InterruptProcessingException):
            patcher.partially_load(CPU, 1e32)
    assert patcher.loaded_size() == 0 and patcher.waiting == 0


class Card:
    """The CPU under the name of a card."""

    type = "cuda"

    def __str__(self) -> str:
        return "cpu"


@pytest.mark.parametrize(("missing", "refused"), [(0.0, False), (0.9, False), (1.1, True)])
def test_what_fits_only_by_streaming_is_loaded(pack, model, monkeypatch, missing, refused):
    """missing: bytes that the card lacks, as a share of the layers that may wait."""
    module, fit = pack.module("nodes.weights"), pack.module("ssd_core.weights.fit")
    method = pack.module("ssd_core.engine.methods").AR()
    memory = fit.fit(model.module, method, dtype="fp32", guided=False, device="cpu")
    assert 0 < memory.waiting < memory.weights
    monkeypatch.setattr(module, "fit", lambda *_, free, **__: fit.Fit(
        **{**memory.to_json(), "free": free, "fits": memory.needed <= free}))
    monkeypatch.setattr(module.mm, "get_torch_device", Card)
    monkeypatch.setattr(module.mm, "get_free_memory",
                        lambda _: memory.needed - int(missing * memory.waiting))
    if refused:
        with pytest.raises(pack.error, match="does not fit"):
            module.checked(model.module, "fp32", False)
        return
    for dtype in ("fp32", "int8", "fp8", "int4"):
        assert module.checked(model.module, dtype, False).fits == (missing == 0)


@pytest.mark.parametrize(("spare", "whole"), [(0, True), (-1, False)])
def test_the_manager_is_asked_for_all_only_if_all_fits(pack, model, monkeypatch, spare, whole):
    module = pack.module("nodes.weights")
    monkeypatch.setattr(module.mm, "get_torch_device", Card)
    backbone = model.backbone
    needed = backbone.patcher.model_size() + backbone.codec.model_size() + 1000
    monkeypatch.setattr(module.mm, "get_free_memory", lambda _: needed + spare)
    with module.resident([backbone], 1000):
        assert pack.manager.loads[-1] == ([backbone.patcher, backbone.codec], 1000, whole)
        assert backbone.patcher.runs == 1
    assert backbone.patcher.runs == 0


def test_rounding_is_measured_once_all_weights_are_on_the_device(pack, model, patcher):
    module = model.module
    module.rounding = None
    patcher.partially_load(CPU, 1)
    drawn(pack, model)
    assert module.rounding is None, "some layers wait elsewhere"
    patcher.partially_load(CPU, 1e32)
    drawn(pack, model)
    assert module.rounding is not None
