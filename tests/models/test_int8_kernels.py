"""How 8-bit matrices multiply on a card: the fastest kernel that is right; on a CPU by integers."""

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from support.mock_backbone import MockBackbone

from ssd_core import Sampling, kept_entries
from ssd_core.backbones import base
from ssd_core.engine.methods import AR
from ssd_core.machine_faults import note_fault
from ssd_core.model import int8_kernels, products
from ssd_core.model.int8_kernels import KERNELS, importable, is_right
from ssd_core.model.products import INTEGERS, Int8Matrix, by_integers, int8_kernel
from ssd_core.output import recipe
from ssd_core.output.drawing import Drawing
from ssd_core.runs import diagnostics
from ssd_core.weights import eight_bits
from ssd_core.weights.quantize import quantise, quantiser

CPU, CARD = torch.device("cpu"), SimpleNamespace(type="cuda")


def plain(x, values, scales):
    """Weights alone are rounded, as by Triton's kernel."""
    return (x.float() @ (values * scales[:, None]).T).to(x.dtype)


def raising(x, values, scales):
    raise ValueError("no such kernel in this build")


def faulty(change):
    """A kernel of whose results `change` makes others."""
    return lambda x, values, scales: change(plain(x, values, scales))


FAULTY = {
    "scales left out": lambda x, values, scales: plain(x, values, torch.ones_like(scales)),
    "the last columns left out": faulty(lambda y: y.index_fill(1, torch.arange(40, 48), 0)),
    "the last rows left out": faulty(lambda y: y * (torch.arange(len(y)) < 16)[:, None]),
    "long sums left out": lambda x, values, scales: plain(x[:, :1024], values[:, :1024], scales),
    "zeros divided by zero": faulty(lambda y: y / (y.norm(dim=1, keepdim=True) > 0)),
    "another dtype": faulty(torch.Tensor.float)}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with the kernels and seconds that the test names; how often each was timed."""
    here = SimpleNamespace(kernels={}, seconds={}, timed=[])
    monkeypatch.setattr(kept_entries, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(products, "importable", lambda device: here.kernels)
    monkeypatch.setattr(products, "fastest_kernel", products.fastest_kernel.__wrapped__)

    def best_of(work, device):
        multiply = getattr(work.func, "func", work.func)
        name = next((name for name in here.kernels if here.kernels[name] is multiply), INTEGERS)
        here.timed.append(name)
        return here.seconds[name]

    monkeypatch.setattr(products, "best_of", best_of)
    products.has_kernel(CPU)  # timed before, by the real clock of a CPU or by this one
    here.timed.clear()
    return here


@pytest.fixture(autouse=True)
def own_kernel(monkeypatch):
    monkeypatch.setattr(products, "has_kernel", lambda device: False)


@pytest.mark.parametrize("kernel", [plain, lambda *given: by_integers(*given, by_kernel=False)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_kernels_that_round_weights_alone_or_both_factors_are_right(kernel, dtype):
    assert is_right(kernel, CPU, dtype)


@pytest.mark.parametrize("fault", FAULTY)
def test_a_faulty_kernel_is_not_right(fault):
    assert not is_right(FAULTY[fault], CPU, torch.bfloat16)


@pytest.mark.parametrize(("seconds", "best"), [
    ({INTEGERS: 3.0, "a": 2.0, "b": 1.0}, "b"), ({INTEGERS: 3.0, "a": 1.0, "b": 2.0}, "a"),
    ({INTEGERS: 1.0, "a": 2.0, "b": 3.0}, INTEGERS)])
def test_the_fastest_is_chosen_once_and_kept(machine, monkeypatch, seconds, best):
    machine.kernels = {"a": plain, "b": lambda *given: plain(*given)}
    machine.seconds = seconds
    assert int8_kernel(CPU) == best and set(machine.timed) == {INTEGERS, "a", "b"}
    machine.timed.clear()
    assert int8_kernel(CPU) == best and machine.timed == [], "kept in the user's cache"
    monkeypatch.setattr(torch, "__version__", "99.0")
    assert int8_kernel(CPU) == best and machine.timed, "measured again after an update"
    machine.timed.clear()
    machine.kernels = {"a": plain}
    assert int8_kernel(CPU) != "b" and machine.timed, "and if other kernels are installed"


def test_a_wrong_or_raising_kernel_is_never_chosen(machine):
    machine.kernels = {**FAULTY, "raises": raising}
    machine.seconds = dict.fromkeys(machine.kernels, 1e-9) | {INTEGERS: 1.0}
    assert int8_kernel(CPU) == INTEGERS and set(machine.timed) == {INTEGERS}


def test_a_matrix_uses_the_kernel_in_half_precision_only(machine):
    machine.kernels, machine.seconds = {"a": plain}, {INTEGERS: 2.0, "a": 1.0}
    generator = torch.Generator().manual_seed(0)
    weight, x, residual = (torch.randn(*shape, generator=generator)
                           for shape in ((48, 64), (3, 64), (3, 48)))
    made = Int8Matrix.of(weight)
    assert made.values.dtype == torch.int8, "the kernel takes no others"
    own = by_integers(x, made.values, made.scales, False, residual)
    assert torch.equal(made.of_rows(x, residual), own), "fp32 keeps its bits"
    for dtype in (torch.bfloat16, torch.float16):
        half, rest = x.to(dtype), residual.to(dtype)
        y = plain(half, made.values, made.scales)
        assert torch.equal(made.of_rows(half), y)
        assert torch.equal(made.of_rows(half, rest), rest + y)
        assert made.of_rows(half, residual).dtype == torch.float32
    note_fault("int8 kernel", "wrong numbers", CPU)
    assert Int8Matrix.of(weight).in_halves is None and int8_kernel(CPU) == INTEGERS


def test_on_a_cpu_integers_keep_their_bits_and_a_card_tries_what_is_installed(monkeypatch):
    monkeypatch.setattr(int8_kernels, "find_spec", lambda name: None)
    assert importable(CPU) == {} and list(importable(CARD)) == ["weight_int8pack_mm"]
    monkeypatch.setattr(int8_kernels, "find_spec", lambda name: object())
    assert importable(CPU) == {} and importable(CARD) == KERNELS


def test_comfyui_s_kernel_is_called_by_its_signature(monkeypatch):
    def int8_linear(x, weight, weight_scale, bias=None, out_dtype=None, convrot=False):
        return plain(x, weight, weight_scale).to(out_dtype or torch.bfloat16)

    monkeypatch.setitem(sys.modules, "comfy_kitchen", SimpleNamespace(int8_linear=int8_linear))
    assert is_right(KERNELS["comfy_kitchen"], CPU, torch.float16)


def test_recipe_and_reports_name_the_kernel(machine, monkeypatch):
    machine.kernels, machine.seconds = {"a": plain}, {INTEGERS: 2.0, "a": 1.0}
    backbone = MockBackbone().to(torch.bfloat16)
    quantise(backbone.decoder, quantiser("int8", CPU))
    details = (backbone, None, Drawing("sun", None, AR(), Sampling(seed=1)),
               torch.zeros(4, 5, dtype=torch.long), {"passes": 1, "seconds": {}})
    drawn = recipe.make_recipe(*details)
    assert drawn["kernels"] == {"int8": "a"} and recipe.other_dtype(drawn, backbone) is None
    assert "by the kernel a" in (line := eight_bits.about_int8(CPU)) and "differ in details" in line
    assert line in diagnostics.report([], place=CPU)
    machine.kernels = {}
    assert "int8 kernel a, here mock uses integers" in recipe.other_dtype(drawn, backbone)
    assert "kernels" not in recipe.make_recipe(*details)
    assert base.int8_kernel_of(MockBackbone()) == INTEGERS
    assert "the same bits" in eight_bits.about_int8(CPU)


INTERPRETED = """
import torch
from ssd_core.model.int8_kernels import is_right
from ssd_core.model.triton_int8 import multiply
x, values = torch.ones(19, 40).half(), torch.ones(33, 40, dtype=torch.int8)
x[3] = torch.arange(40)
together = multiply(x, values, torch.ones(33))
assert together[3].eq(780).all() and together[4].eq(40).all() and together.shape == (19, 33)
assert is_right(multiply, torch.device("cpu"), torch.float16)
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_triton_s_kernel_is_right_in_its_interpreter():
    """In fp16: the interpreter multiplies the bytes of bf16."""
    subprocess.run([sys.executable, "-c", INTERPRETED], check=True, timeout=120,
                   env=os.environ | {"TRITON_INTERPRET": "1"})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.parametrize("name", KERNELS)
def test_on_a_card_an_installed_kernel_is_right(name):
    card = torch.device("cuda")
    if name not in importable(card):
        pytest.skip(f"{name} is not installed")
    assert is_right(KERNELS[name], card, torch.float16)
