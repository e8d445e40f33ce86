"""int8, fp8 and int4 of the decoder's matrices: near bf16, in less memory, refused in one line.

int8 is the project's own (test_products.py has its products); fp8 and int4 need torchao.
"""

import sys

import pytest
import torch
from support.mock_backbone import MockBackbone, random_heads, tiny_postcard, tokens

from ssd_core import Sampling, SSDError, load_backbone, load_heads, methods
from ssd_core.backbones import postcard
from ssd_core.engine.decode import prepare
from ssd_core.engine.graphs import EagerRunner
from ssd_core.engine.heads import save_heads
from ssd_core.measure import launches
from ssd_core.model import products
from ssd_core.model.products import Int8Matrix, has_kernel
from ssd_core.model.transformer import Decoder, DecoderShape, sequence_angles
from ssd_core.weights import load
from ssd_core.weights.find import BACKBONE_FILE
from ssd_core.weights.model_size import stored_dtype
from ssd_core.weights.quantize import (
    is_quantised,
    quantise,
    quantise_image_head,
    quantiser,
    unquantise_image_head,
)

CPU = torch.device("cpu")


@pytest.fixture
def torchao():
    return pytest.importorskip("torchao", reason="torchao is not installed")


def require(kind: str) -> None:
    """Skip what needs a torchao that is not there."""
    if kind != "int8":
        pytest.importorskip("torchao", reason="torchao is not installed")


def decoder(dtype=torch.bfloat16, hidden: int = 64, ffn: int = 96) -> Decoder:
    model = Decoder(DecoderShape(2, hidden, 2, 2, hidden // 2, ffn)).to(dtype)
    generator = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        if weight.dim() == 2:
            torch.nn.init.normal_(weight, std=0.1, generator=generator)
    return model.requires_grad_(False)


def run(model: Decoder, dtype=torch.bfloat16) -> torch.Tensor:
    x = torch.randn(2, 7, model.shape.hidden, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        return model(x.to(dtype), sequence_angles(7, model.shape.head_dim)).float()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("kind, bound", [("int8", 0.04), ("int4", 0.15)])
def test_hidden_states_stay_near(kind, bound, dtype):
    """Of weights of one normal distribution; bounds are about twice what was measured."""
    require(kind)
    model = decoder(dtype)
    exact = run(model, dtype)
    quantise(model, quantiser(kind, CPU))
    off = (run(model, dtype) - exact).norm() / exact.norm()
    assert 1e-4 < off < bound


def test_matrices_in_int8_take_less_and_nothing_else_changes(monkeypatch):
    monkeypatch.setattr(products, "has_kernel", lambda device: True)
    model = decoder()
    before = dict(model.named_parameters())
    quantise(model, quantiser("int8", CPU))
    after = dict(model.named_parameters())
    for name, own in before.items():
        if own.dim() == 2:
            values, scales = after[f"{name}.values"], after[f"{name}.scales"]
            assert values.shape == own.shape and values.nbytes + scales.nbytes < 0.6 * own.nbytes
        else:
            assert after[name] is own


def test_matrices_in_int4_take_less_and_nothing_else_changes(torchao):
    model = decoder()
    before = dict(model.named_parameters())
    quantise(model, quantiser("int4", CPU))
    for name, weight in model.named_parameters():
        own = before[name]
        assert is_quantised(weight) == (own.dim() == 2), name
        assert weight.shape == own.shape and weight.dtype == own.dtype
        if own.dim() == 2:
            held = [getattr(weight, part) for part in weight.tensor_data_names]
            assert sum(t.numel() * t.element_size() for t in held) < 0.4 * own.nbytes
        else:
            assert weight is own


def test_a_quantised_matrix_is_left_alone():
    model = decoder()
    quantise(model, quantiser("int8", CPU))
    kept = model.layers[0].qkv
    quantise(model, quantiser("int8", CPU))
    model.store_column_major()
    assert model.layers[0].qkv is kept


def test_a_matrix_stored_by_column_quantises_as_any_other():
    one, other = decoder(), decoder()
    other.store_column_major()
    for model in (one, other):
        quantise(model, quantiser("int8", CPU))
    assert torch.equal(run(one), run(other))


@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_every_method_decodes(kind):
    require(kind)
    backbone = MockBackbone(hidden=64)
    plain = tokens(backbone, methods.AR())
    quantise(backbone.decoder, quantiser(kind, CPU))
    picture = tokens(backbone, methods.AR())
    assert picture.shape == plain.shape and picture.max() < backbone.codes
    assert torch.equal(tokens(backbone, methods.Exact()), picture)
    assert tokens(backbone, methods.Rows()).shape == plain.shape


def test_postcard_loads_in_int8(tmp_path):
    path = tmp_path / "backbone.safetensors"
    postcard.save(tiny_postcard(), path)
    plain, small = load_backbone(path, "cpu"), load_backbone(path, "cpu", "int8")
    assert small.sha256 == plain.sha256 and small.dtype == torch.float32
    assert all(is_quantised(layer.down) for layer in small.decoder.layers)
    assert is_quantised(small.head) and not is_quantised(small.code_embedding)
    assert not any(is_quantised(layer.down) for layer in plain.decoder.layers)


@pytest.mark.parametrize("kind", ["int8", "fp8", "int4"])
def test_the_device_that_draws_quantises_and_the_weights_wait_elsewhere(tmp_path, monkeypatch,
                                                                        kind):
    """The device meta stands for a card; what it makes of a matrix here has values."""
    path = tmp_path / "backbone.safetensors"
    postcard.save(tiny_postcard(), path)
    made = []

    def quantiser(kind, device):
        return lambda weight: made.append((kind, device.type, weight.device.type)) or (
            Int8Matrix(torch.ones(weight.shape, dtype=torch.int8), torch.ones(len(weight))))

    monkeypatch.setattr(load, "quantiser", quantiser)
    backbone = load_backbone(path, "cpu", kind, draws_on="meta")
    assert backbone.rounding is None, "the CPU does not draw"
    layers = backbone.decoder.layers
    assert set(made) == {(kind, "meta", "meta")} and len(made) == 4 * len(layers) + (kind == "int8")
    assert {weight.device.type for weight in backbone.parameters()} == {"cpu"}
    assert all(layer.down.values.any() for layer in layers)


def test_rows_that_do_not_divide_are_refused(torchao):
    with pytest.raises(SSDError, match="rows of 48 numbers.*choose int8"):
        quantise(decoder(hidden=48), quantiser("int4", CPU))


def test_without_torchao_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchao.quantization", None)
    path = tmp_path / "backbone.safetensors"
    postcard.save(tiny_postcard(), path)
    with pytest.raises(SSDError, match="pip install torchao"):
        load_backbone(path, "cpu", "int4")
    load_backbone(path, "cpu")
    load_backbone(path, "cpu", "int8")


def test_what_torchao_cannot_do_is_told(torchao, monkeypatch):
    def fails(*_):
        raise RuntimeError("no kernel\nat all")

    monkeypatch.setattr("torchao.quantization.quantize_", fails)
    with pytest.raises(SSDError, match=r"int4 does not work here \(no kernel\)"):
        quantise(decoder(), quantiser("int4", CPU))
    monkeypatch.setattr("torchao.quantization.quantize_", lambda *_: None)
    with pytest.raises(SSDError, match="left a matrix"):
        quantise(decoder(), quantiser("int4", CPU))


def test_fp8_names_the_cards_it_runs_on(torchao, monkeypatch):
    for name in ("cpu", "mps"):
        with pytest.raises(SSDError, match=f"NVIDIA cards, not on {name}: choose bf16"):
            quantiser("fp8", torch.device(name))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 6))
    with pytest.raises(SSDError, match="compute capability 8.9"):
        quantiser("fp8", torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 9))
    assert callable(quantiser("fp8", torch.device("cuda")))
    monkeypatch.setattr(torch.version, "hip", "6.4")
    with pytest.raises(SSDError, match="NVIDIA cards"):
        quantiser("fp8", torch.device("cuda"))


def test_int4_names_the_devices_it_runs_on(torchao, monkeypatch):
    with pytest.raises(SSDError, match="not on mps"):
        quantiser("int4", torch.device("mps"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    with pytest.raises(SSDError, match="compute capability 8.0"):
        quantiser("int4", torch.device("cuda"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.parametrize("kind, bound", [("fp8", 0.1), ("int8", 0.1), ("int4", 0.15)])
def test_on_a_card(kind, bound):
    require(kind)
    if kind == "fp8" and torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("fp8 needs compute capability 8.9")
    model = decoder(hidden=1024, ffn=2048).cuda()
    x = torch.randn(2, 7, 1024, device="cuda", dtype=torch.bfloat16)
    angles = sequence_angles(7, 512).cuda()
    exact = model(x, angles)
    quantise(model, quantiser(kind, torch.device("cuda")))
    assert (model(x, angles) - exact).norm() / exact.norm() < bound


# A postcard in int8


@pytest.mark.parametrize("dtype, kernel, loaded", [
    ("auto", True, "int8"), ("auto", False, "fp32"), ("bf16", True, "bf16"), *(
        pytest.param(*case, marks=pytest.mark.nightly) for case in (
            ("int8", False, "int8"), ("fp32", True, "fp32"), ("fp16", True, "fp16")))])
def test_the_processor_chooses_the_dtype_of_the_bundle(monkeypatch, dtype, kernel, loaded):
    """Without a fast kernel for integers, fp32 has the same products and fewer other operations."""
    monkeypatch.setattr(load, "has_kernel", lambda _: kernel)
    backbone = load_backbone("postcard", "cpu", dtype)
    assert load.auto_dtype("postcard", torch.device("cpu")) == ("int8" if kernel else "fp32")
    assert stored_dtype(backbone) == loaded


def test_a_pass_of_the_bundle_in_int8_takes_at_most_300_operations(monkeypatch):
    """By AR, the choice of the token included; a kernel for integers needs one more cast each."""
    monkeypatch.setattr(launches, "MOST", 24)
    backbone = load_backbone("postcard", "cpu", "int8")
    run = prepare(backbone, "a house", methods.AR(), None, Sampling(cfg=2.0))
    casts = 25 * has_kernel(CPU)
    counts = launches.counted(run, lambda launches: EagerRunner())
    assert launches.medians(counts)["commit"] <= 300 + casts


def test_auto_loads_own_weights_in_fp32(tmp_path, monkeypatch):
    """Only the bundle's pictures were measured in int8."""
    monkeypatch.setattr(load, "has_kernel", lambda _: True)
    postcard.save(tiny_postcard(), tmp_path / BACKBONE_FILE)
    assert stored_dtype(load_backbone(tmp_path, "cpu")) == "fp32"


def test_heads_fit_in_any_dtype_and_follow_it(tmp_path):
    postcard.save(tiny_postcard(), tmp_path / BACKBONE_FILE)
    plain, small = (load_backbone(tmp_path, "cpu", dtype) for dtype in ("fp32", "int8"))
    save_heads(random_heads(plain, 2, 1), tmp_path / "heads.safetensors", plain, {})
    in_fp32, in_int8 = (load_heads(tmp_path, backbone) for backbone in (plain, small))
    assert in_fp32.sha256 == in_int8.sha256
    assert not is_quantised(in_fp32.horizontal[0].w2) and is_quantised(in_int8.horizontal[0].w2)


def test_a_trained_gradient_passes_through_an_image_head_again():
    backbone = tiny_postcard()
    quantise_image_head(backbone)
    unquantise_image_head(backbone)
    hidden = torch.ones(1, backbone.hidden_size, requires_grad=True)
    backbone.logits(hidden)[0, 0].backward()
    assert hidden.grad.any()
