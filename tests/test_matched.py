"""numerics "matched": passes of one width, and AR's picture from methods that promise it, in any
dtype."""

import json

import pytest
import torch
from support.layouts import LAYOUTS, every_layout
from support.mock_backbone import MockBackbone, events, random_heads, tokens

from ssd_core import Grid, Sampling, SSDError, load_backbone, methods

HALVES = (torch.bfloat16, torch.float16)
PROMPTS = ("sun", "a red house")


def promising(columns: int) -> list:
    """Methods, or settings of them, that promise AR's picture."""
    return [methods.Exact(), methods.Exact(window=5), methods.Jacobi(window=4),
            methods.Rolling(budget=10_000),
            methods.SSD(k_h=3, k_v=1, rounds=columns + 1, acceptance="coupled"),
            methods.Wave(columns, 2)]


def drawn(backbone, method, numerics="matched", **options) -> torch.Tensor:
    sampling = Sampling(seed=7, cfg=options.pop("cfg", 2.0), numerics=numerics)
    return tokens(backbone, method, PROMPTS, sampling=sampling, **options)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return every_layout(tmp_path_factory)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_family_draws_ar_s_picture_in_half_precision(folders, layout, dtype):
    """The last row, below random ones; prompts of different lengths."""
    backbone = load_backbone(folders[layout], "cpu", dtype)
    heads, grid = random_heads(backbone).to(backbone.dtype), backbone.grid
    (folders[layout] / "codes.json").write_text(json.dumps([1] * 81))
    prompts = {"llamagen": ("1", "3"), "tar": (f"codes:{folders[layout] / 'codes.json'}",)}.get(
        layout, PROMPTS)
    kept = torch.randint(backbone.codes, (1, grid.rows, grid.columns),
                         generator=torch.Generator().manual_seed(1))
    options = {"keep": kept, "keep_rows": grid.rows - 1, "heads": heads,
               "sampling": Sampling(seed=7, cfg=2.0, numerics="matched")}
    ar = tokens(backbone, methods.AR(), prompts, **options)
    for method in promising(grid.columns)[: 2 if layout == "emu3" else None]:  # of 90 x 90 cells
        assert tokens(backbone, method, prompts, **options).equal(ar), method


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("row_end", [False, True])
def test_methods_keep_their_promise_in_half_precision(row_end, dtype):
    backbone = MockBackbone(Grid(5, 6, row_end), codes=64).to(dtype)
    heads = random_heads(backbone).to(dtype)
    ar = drawn(backbone, methods.AR())
    for method in promising(6):
        assert drawn(backbone, method, heads=heads).equal(ar), method


@pytest.mark.slow
def test_passes_of_the_size_they_need_do_not_keep_it_in_bf16():
    """Why there are matched passes, and proof that the tests above can fail."""
    backbone = load_backbone("postcard", "cpu", "bf16")
    options = {"keep": torch.zeros(1, 24, 24, dtype=torch.long), "keep_rows": 18, "cfg": None}
    for numerics, same in (("fast", False), ("matched", True)):
        ar, exact = (drawn(backbone, method, numerics, **options)
                     for method in (methods.AR(), methods.Exact()))
        assert ar.equal(exact) == same


def test_windows_wider_than_the_passes_are_refused():
    backbone = MockBackbone(Grid(12, 12))
    sampling = Sampling(numerics="matched")
    with pytest.raises(SSDError, match="every pass has 48 cells here.*window to 48 or less"):
        events(backbone, methods.Exact(window=49), sampling=sampling)
    assert tokens(backbone, methods.Rolling(60), sampling=sampling).shape == (1, 12, 12)
