"""Where loading found that passes of any width give the same bits: AR's picture in any dtype."""

import json

import pytest
import torch
from support.layouts import LAYOUTS
from support.mock_backbone import MockBackbone, random_heads, tokens

from ssd_core import Grid, Sampling, generate, load_backbone, methods
from ssd_core.backbones.invariance import rounding
from ssd_core.engine.events import finished
from ssd_core.engine.repeat_near_ties import margin
from ssd_core.model.kv_cache import KEYS, KVCache
from ssd_core.model.transformer import two_products
from ssd_core.output.guarantees import guarantee_holds
from ssd_core.weights.quantize import quantise, quantise_image_head, quantiser

PROMPTS = ("sun", "a red house")
CPU = torch.device("cpu")
SMALLER = {"emu3": (64, 48), "simplear": (128, 96)}  # px; thousands of cells otherwise


def promising(columns: int) -> list:
    """Methods, or settings of them, that guarantee AR's picture."""
    return [methods.Exact(window=13), methods.Exact(window=5), methods.Jacobi(window=4),
            methods.Rolling(budget=10_000),
            methods.SSD(k_h=3, k_v=1, rounds=columns + 1, acceptance="coupled"),
            methods.Wave(columns, 2)]


@pytest.mark.parametrize("dtype", ["bf16", "int8"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.by_day(3)
def test_every_family_draws_ar_s_picture_where_bits_agree(folders, layout, dtype):
    """The last row, below random ones; prompts of different lengths, alone and in a batch."""
    backbone = load_backbone(folders[layout], "cpu", dtype)
    if layout in SMALLER:
        backbone.sizes = (SMALLER[layout],)
        backbone.apply_size()
    assert backbone.batch_invariant == (backbone.rounding == 0)
    if not backbone.batch_invariant:  # on this processor: then nothing is guaranteed
        assert not guarantee_holds(backbone) or backbone.dtype == torch.float32
        return
    heads, grid = random_heads(backbone).to(backbone.dtype), backbone.grid
    (folders[layout] / "codes.json").write_text(json.dumps([1] * 81))
    prompts = {"llamagen": ("1", "3"), "tar": (f"codes:{folders[layout] / 'codes.json'}",)}.get(
        layout, PROMPTS)
    kept = torch.randint(backbone.codes, (1, grid.rows, grid.columns),
                         generator=torch.Generator().manual_seed(1))
    options = {"keep": kept, "keep_rows": grid.rows - 1, "heads": heads,
               "sampling": Sampling(seed=7, cfg=2.0)}
    ar = tokens(backbone, methods.AR(), prompts, **options)
    for method in promising(grid.columns):
        assert tokens(backbone, method, prompts, **options).equal(ar), method


@pytest.mark.parametrize("dtype, seed", [("bf16", 12), ("int8", 20)])
def test_a_picture_goes_on_below_its_own_rows_as_before(small_assets, dtype, seed):
    """In the bundled weights, whose every second picture would show another rounding."""
    backbone = load_backbone(small_assets / "postcard", "cpu", dtype)
    if not backbone.batch_invariant:
        pytest.skip(f"this processor guarantees nothing in {dtype}")
    prompts = ["a red house by a lake", "a tree in the snow, at night"]
    whole = tokens(backbone, methods.AR(), prompts, sampling=Sampling(seed=seed))
    assert tokens(backbone, methods.AR(), prompts, keep=whole, keep_rows=3,
                  sampling=Sampling(seed=seed)).equal(whole)


@pytest.mark.parametrize("kind", ["bf16", "int8"])
@pytest.mark.parametrize("row_end", [False, True])
def test_methods_keep_their_guarantee(row_end, kind):
    backbone = MockBackbone(Grid(5, 6, row_end), codes=64)
    if kind == "bf16":
        backbone = backbone.to(torch.bfloat16)
    else:
        quantise(backbone.decoder, quantiser("int8", CPU))
        quantise_image_head(backbone)
    if rounding(backbone):
        return  # this processor's kernels differ, and loading would guarantee nothing
    heads = random_heads(backbone).to(backbone.dtype)
    options = {"sampling": Sampling(seed=7, cfg=2.0), "heads": heads}
    ar = tokens(backbone, methods.AR(), PROMPTS, **options)
    for method in promising(6):
        assert tokens(backbone, method, PROMPTS, **options).equal(ar), method


def test_two_products_attend_as_sdpa_does():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, n, 16, generator=generator).bfloat16() for n in (5, KEYS, KEYS))
    for mask in (None, torch.randn(2, 1, 5, KEYS, generator=generator).bfloat16(),
                 torch.randn(1, 1, 5, KEYS, generator=generator).bfloat16()):
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)
        assert torch.allclose(two_products(q, k, v, mask), expected, atol=2e-2)


def test_a_pass_reads_a_multiple_of_slots_where_keys_lie_by_columns():
    """Other numbers of slots end in a rest, which some kernels add in another order."""
    backbone = MockBackbone(Grid(5, 6)).to(torch.bfloat16)
    cache = backbone.new_cache(2, 100)
    assert cache.by_columns and cache.keys.shape[3] == 2 * KEYS
    kv = torch.ones(2, 2 * cache.keys.shape[2], 3, cache.keys.shape[4], dtype=torch.bfloat16)
    for start, read in ((0, 3), (61, KEYS), (62, 2 * KEYS)):
        cache.seek(start, 3)
        assert cache.update(0, kv)[0].shape[2] == read
        assert cache.causal or cache.mask.shape[-1] == read


@pytest.mark.parametrize("few", [1, 2, 3])
def test_few_queries_in_fp32_are_padded_and_attend_alike(few):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, n, 16, generator=generator) for n in (5, KEYS, KEYS))
    for mask in (None, torch.randn(1, 1, 5, KEYS, generator=generator)):
        part = mask if mask is None else mask[:, :, :few]
        expected = torch.nn.functional.scaled_dot_product_attention(q[:, :, :few], k, v, part)
        assert torch.allclose(two_products(q[:, :, :few], k, v, part), expected, atol=1e-6)


def test_with_integers_in_fp32_every_pass_reads_all_slots():
    """In fp32 the number of keys changes the order of the sums."""
    cache = KVCache(1, 2, 3, 100, 8, torch.float32, CPU, integers=True)
    kv = torch.ones(2, 2 * 3, 3, 8)
    for start in (1, 61, 90):
        cache.seek(start, 3)
        assert cache.update(0, kv)[0].shape[2] == cache.mask.shape[-1] == 2 * KEYS
    assert not KVCache(1, 2, 3, 100, 8, torch.float32, CPU).by_columns


def test_close_calls_are_not_repeated_where_rounding_makes_them_frequent():
    """Before this limit int8 on a processor without bf16 took 6,000 passes for a picture."""
    backbone = MockBackbone(Grid(5, 6))
    for size, repeated in ((1e-5, True), (9e-3, False)):
        backbone.rounding, backbone.batch_invariant = size, False
        assert guarantee_holds(backbone) == repeated
        assert bool(margin(backbone, Sampling(cfg=2.0))) == repeated
        drawn = finished(generate(backbone, "sun", methods.Exact(window=5), sampling=Sampling()))
        assert drawn.stats["passes"] <= 30 or repeated


def test_a_dtype_whose_bits_depend_on_the_width_is_not_guaranteed():
    """fp16 on a CPU adds otherwise in wide passes; proof that the probe can say no."""
    backbone = load_backbone("postcard", "cpu", "fp16")
    if backbone.rounding:
        assert not backbone.batch_invariant and not guarantee_holds(backbone)
    single = MockBackbone(Grid(5, 6))
    single.rounding, single.batch_invariant = 1e-6, False
    assert guarantee_holds(single)  # fp32: near ties are made again
    single.rounding = None
    assert not guarantee_holds(single)  # nobody knows which samples are near ties
