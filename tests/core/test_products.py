"""Products in 8-bit integers: exact sums, rows that stand alone, near what fp32 gives."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from ssd_core import measured
from ssd_core.model import products
from ssd_core.model.products import (
    EXACT,
    LARGEST,
    STORED_AS_FP32,
    Int8Matrix,
    added,
    exact_product,
    has_kernel,
    integer_product,
    measured_kernel,
    product,
    put,
    quantised,
)

CPU = torch.device("cpu")
# rows, in, out; torch 2.13's kernel on CPUs is wrong for matrices with a single column
SHAPES = st.tuples(st.integers(1, 9), st.integers(2, 2500), st.integers(1, 40))
INTEGERS = st.sampled_from([True, False])  # by a kernel or in fp32
kernel = pytest.mark.skipif(not has_kernel(CPU), reason="no integer kernel here")


def numbers(*shape: int, seed: int = 0, dtype=torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def matrix(values: torch.Tensor, scales: torch.Tensor, by_kernel: bool) -> Int8Matrix:
    """One that multiplies as told, whatever this machine would choose."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "has_kernel", lambda device: by_kernel)
        return Int8Matrix(values, scales)


def by_hand(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The same product by sums of 64-bit integers."""
    integers, scale = quantised(x)
    sums = integers.long() @ values.long().T
    return sums.float() * scales * scale


@kernel
@given(SHAPES, INTEGERS, st.integers(0, 99))
@example((3, EXACT + 1, 5), False, 0)
@example((1, 2 * EXACT, 1), False, 0)
def test_sums_equal_those_of_whole_numbers_bit_for_bit(shape, by_kernel, seed):
    rows, inner, out = shape
    values = torch.randint(-LARGEST, LARGEST + 1, (out, inner), dtype=torch.int8,
                           generator=torch.Generator().manual_seed(seed))
    scales = numbers(out, seed=seed + 1).abs() + 0.01
    x = numbers(rows, inner, seed=seed + 2)
    made = matrix(values, scales, by_kernel)
    assert torch.equal(made.of_rows(x), by_hand(x, values, scales))


@pytest.mark.parametrize("inner", [EXACT, EXACT + 1, 3 * EXACT + 7])
def test_the_largest_sums_are_exact(inner):
    """All integers are the largest: beyond EXACT one sum of all products is rounded in fp32."""
    x, values = (torch.full((rows, inner), LARGEST, dtype=torch.int8) for rows in (1, 2))
    assert exact_product(x.float(), values).tolist() == [[inner * LARGEST**2] * 2]
    assert (EXACT + 1) * LARGEST**2 > 2**24 >= EXACT * LARGEST**2


@given(SHAPES, st.integers(0, 99))
def test_a_row_does_not_depend_on_the_others(shape, seed):
    rows, inner, out = shape
    weight = Int8Matrix.of(numbers(out, inner, seed=seed))
    x = numbers(rows, inner, seed=seed + 1) * (10.0 ** torch.arange(rows))[:, None]
    together = weight.of_rows(x)
    for n in range(rows):
        assert torch.equal(weight.of_rows(x[n : n + 1]), together[n : n + 1])


@given(SHAPES, st.integers(0, 99))
def test_a_product_is_near_that_of_fp32(shape, seed):
    """Each factor is off by at most half a step, 1/254 of the largest value of its row."""
    rows, inner, out = shape
    weight, x = numbers(out, inner, seed=seed), numbers(rows, inner, seed=seed + 1)
    off_w, off_x = (t.abs().amax(-1, True) / (2 * LARGEST) for t in (weight, x))
    bound = x.abs().sum(-1, True) * off_w.T + off_x * weight.abs().sum(-1) \
        + inner * off_x * off_w.T
    difference = (Int8Matrix.of(weight).of_rows(x) - x.double() @ weight.double().T).abs()
    assert (difference <= 1.001 * bound + 1e-4).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_residual_and_bias_are_added(dtype):
    weight, x = Int8Matrix.of(numbers(6, 32)), numbers(3, 32, seed=1, dtype=dtype)
    residual, bias = numbers(3, 6, seed=2, dtype=dtype), numbers(6, seed=3, dtype=dtype)
    y = product(x, weight)
    assert y.dtype == dtype and y.shape == (3, 6)
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0.02, "atol": 0.05}
    assert torch.allclose(added(residual, x, weight), residual + y, **close)
    assert torch.equal(product(x, weight, bias), y + bias)
    assert torch.equal(product(x.view(1, 3, 32), weight), y[None])


def as_defined(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Whole numbers and scales by the plain formula."""
    scale = (x.abs().amax(-1, True).float() * (1 / LARGEST)).clamp(min=1e-30)
    return x.float().div(scale).round(), scale


SIZES = st.lists(st.sampled_from([0.0, 1e-25, 1e-12, 1e-3, 1.0, 127.0, 3e4, 1e37]), min_size=1,
                 max_size=6)


@given(SIZES, st.integers(1, 300), INTEGERS, st.sampled_from([torch.float32, torch.bfloat16]),
       st.integers(0, 99))
@example([1.0] * 3, 8, True, torch.bfloat16, 7)
def test_few_operations_give_the_bits_of_the_plain_formula(sizes, inner, halves, dtype, seed):
    """Rows of zeros, tiny and huge ones; halves: many quotients lie between two whole numbers."""
    x = numbers(len(sizes), inner, seed=seed).clamp(-3, 3)
    x = (x * 8).round() / 16 if halves else x
    x = (x * torch.tensor(sizes)[:, None]).to(dtype)
    (integers, scale), (plain, expected) = products.whole_numbers(x), as_defined(x)
    assert integers.dtype == scale.dtype == torch.float32 and torch.equal(integers, plain)
    used = plain.any(-1)
    assert torch.equal(scale[used], expected[used]) and (scale > 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("by_kernel", [pytest.param(True, marks=kernel), False])
def test_a_product_has_the_bits_of_the_plain_formula(by_kernel, dtype):
    """With a residual and without one, at the widths of `postcard`, with a row of zeros."""
    for out, inner in ((576, 192), (192, 512), (8, 2 * EXACT)):
        made, x = Int8Matrix.of(numbers(out, inner)), numbers(9, inner, seed=1, dtype=dtype)
        x[4] = 0
        made = matrix(made.values.char(), made.scales.data, by_kernel)
        integers, scale = as_defined(x)
        y = (integers.long() @ made.values.long().T).float() * made.scales
        residual = numbers(9, out, seed=2, dtype=dtype)
        assert torch.equal(made.of_rows(x), (y * scale).to(dtype))
        assert torch.equal(made.of_rows(x, residual),
                           torch.addcmul(residual, y, scale).to(dtype))


def test_rows_too_small_for_a_scale_become_finite_numbers():
    x = torch.tensor([0.0, -0.0, 1e-45, 1e-40, -3e-38, 3e-35, 1e-33, -1e-30])[:, None]
    x = x.expand(-1, 32)
    y = Int8Matrix.of(numbers(4, 32)).of_rows(x)
    assert y.isfinite().all() and (y.abs() < 1e-28).all() and not y[:2].any()


def test_rows_of_zeros_stay_zeros():
    weight, x = numbers(4, 16), numbers(3, 16, seed=1)
    weight[1], x[2] = 0, 0
    y = Int8Matrix.of(weight).of_rows(x)
    assert y.isfinite().all() and not y[:, 1].any() and not y[2].any()


def test_a_large_matrix_is_quantised_in_parts_as_it_would_be_at_once(monkeypatch):
    weight = numbers(50, 64)
    whole = Int8Matrix.of(weight)
    monkeypatch.setattr(products, "QUANTISED_AT_ONCE", 64 * 7)
    parts = Int8Matrix.of(weight)
    assert torch.equal(whole.values, parts.values) and torch.equal(whole.scales, parts.scales)


def test_without_a_kernel_small_matrices_are_held_as_fp32():
    small, large = (matrix(torch.ones(rows, 1024, dtype=torch.int8), torch.ones(rows), False)
                    for rows in (STORED_AS_FP32 // 1024, STORED_AS_FP32 // 1024 + 1))
    assert small.values.dtype == torch.float32 and large.values.dtype == torch.int8
    assert not any(weight.requires_grad for weight in small.parameters())


def test_a_matrix_back_in_fp32_is_off_by_half_a_step():
    weight = numbers(8, 40)
    off = (Int8Matrix.of(weight).dequantised() - weight).abs()
    assert (off <= 1.001 * weight.abs().amax(-1, True) / (2 * LARGEST)).all()


def test_put_takes_the_place_of_either_kind():
    module = torch.nn.Linear(4, 4, bias=False)
    made = Int8Matrix.of(module.weight)
    put(module, "weight", made)
    assert module.weight is made and "weight" not in module._parameters
    put(module, "weight", torch.ones(4, 4))
    assert isinstance(module.weight, torch.nn.Parameter) and not module._modules


def test_a_kernel_that_is_wrong_is_not_used(monkeypatch):
    monkeypatch.setattr(torch, "_int_mm", lambda x, y: (x.float() @ y.float()).int() + 1)
    assert not measured_kernel.__wrapped__(CPU)


def test_a_kernel_that_is_slow_is_not_used(monkeypatch):
    """It is timed in one thread: beside busy programs several would wait for each other."""
    monkeypatch.setattr(measured._kept, "in_memory", {})
    seconds, threads = iter((2.0, 1.0)), []
    monkeypatch.setattr(products, "best_of", lambda work, device: (
        threads.append(torch.get_num_threads()), next(seconds))[1])
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    assert not measured_kernel.__wrapped__(CPU)
    assert threads == [1, 1] and torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_which_dtype_is_automatic_is_measured_once_on_a_machine(monkeypatch):
    """A second process that finds another time draws the same pictures."""
    monkeypatch.setattr(measured._kept, "in_memory", {})
    answers = iter([True, False])
    monkeypatch.setattr(products, "kernel_is_faster", lambda device: next(answers))
    assert measured_kernel.__wrapped__(CPU) and measured_kernel.__wrapped__(CPU)


def test_on_a_card_the_kernel_is_timed_against_what_would_be_done_instead(monkeypatch):
    """Many products between two looks at the clock, which waits for the card."""
    calls, clock = [], iter(range(100))
    monkeypatch.setattr(products, "clock_of", lambda device: next(clock))
    card = SimpleNamespace(type="cuda")
    assert products.best_of(lambda: calls.append(1), card) == 1 / products.IN_A_ROW
    assert len(calls) == 6 * products.IN_A_ROW
    monkeypatch.setattr(products, "TIMED", {"cuda": (3, 16)})
    real, taken = torch.ones, []
    monkeypatch.setattr(torch, "ones", lambda *size, device, **how: real(*size, **how))
    monkeypatch.setattr(products, "best_of", lambda work, device: taken.append(work()) or 1.0)
    assert not products.kernel_is_faster(card), "the same time is not less"
    assert torch.equal(taken[0].float(), taken[1]), "both ways give the same sums"


@pytest.mark.parametrize(("out", "inner", "suits"), [(64, 32, True), (63, 32, False),
                                                     (64, 20, False)])
def test_a_card_s_kernel_takes_multiples_of_eight(out, inner, suits):
    values = SimpleNamespace(shape=(out, inner), device=SimpleNamespace(type="cuda"))
    assert products.suits_kernel(values) == suits
    assert products.suits_kernel(torch.ones(out, inner, dtype=torch.int8))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
@pytest.mark.parametrize(("rows", "out", "inner"), [(1, 64, 2048), (17, 40, 64), (33, 63, 1048),
                                                    (300, 128, 4096)])
def test_on_a_card_integer_sums_are_those_of_the_cpu(rows, out, inner):
    weight, x = numbers(out, inner), numbers(rows, inner, seed=1)
    here = Int8Matrix.of(weight)
    there = Int8Matrix(here.values.char().cuda(), here.scales.cuda())
    integers = products.quantised(x)[0]
    expected = integers.int() @ here.values.int().T
    if there.by_kernel:
        assert torch.equal(integer_product(integers.cuda(), there.values).cpu(), expected)
    sums = exact_product(integers.float().cuda(), there.values).cpu()
    assert torch.equal(sums.to(torch.int32), expected)
    assert torch.allclose(there(x.cuda()).cpu(), here(x), rtol=1e-5, atol=1e-5)


def test_a_device_of_which_nothing_can_be_computed_has_none():
    assert not has_kernel(torch.device("meta"))
