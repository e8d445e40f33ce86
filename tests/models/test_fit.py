"""The estimate of memory: equal to what is allocated where that is exact, and lawful elsewhere."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.every_method import one_of_each
from support.mock_backbone import MockBackbone, events, random_heads, tiny_postcard

from ssd_core import Grid, Sampling, SSDError, methods
from ssd_core.backbones import postcard
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.codecs.vqgan import VQGAN, VQGANShape
from ssd_core.cli import main
from ssd_core.model import products, transformer
from ssd_core.model.kv_cache import KVCache
from ssd_core.model.noise import CACHED_NUMBERS, NoiseField
from ssd_core.weights import fit as fit_module
from ssd_core.weights.catalogue import CATALOGUE
from ssd_core.weights.fit import fit, run_bytes
from ssd_core.weights.memory import MARGIN, WEIGHT_BYTES, MemoryEstimate, Setting, free_linux_memory
from ssd_core.weights.model_size import ModelSize, stored_bytes, stored_dtype
from ssd_core.weights.quantize import quantise, quantise_image_head, quantiser

GIB = 2**30
METHODS = st.sampled_from([*one_of_each(k_h=3, k_v=2, rounds=1, window=40),
                           methods.Rows(k_h=3, k_v=4, rounds=2, fused_commit=True)])
ROWS = st.sampled_from(list(CATALOGUE.values()))
DTYPES = st.sampled_from(list(WEIGHT_BYTES))


@pytest.fixture(autouse=True, scope="module")
def steady():
    """The free memory of a busy machine changes from call to call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "free_bytes", lambda device: 16 * GIB)
        yield


@pytest.fixture
def memory(monkeypatch):
    """Says how much is free: memory(bytes)."""
    def says(free):
        monkeypatch.setattr(fit_module, "free_bytes", lambda device: free)

    return says


def estimate(row, method, batch=1, dtype="bf16", guided=True, **options):
    return fit(row, method, batch, dtype, guided, device="meta", **options)


# Equal to what is really there


@pytest.mark.parametrize("batch, cfg", [(1, 2.0), (3, 2.0), (2, 1.0)])
def test_the_cache_is_what_a_run_allocates(batch, cfg):
    backbone, method = tiny_postcard(), methods.Rows(rounds=0)
    told = fit(backbone, method, batch, guided=cfg != 1, device="cpu")
    run = events(backbone, method, ["a sun"] * batch, sampling=Sampling(cfg=cfg))
    assert told.cache == run[-1].stats["cache_bytes"]
    assert told.cache == backbone.new_cache(batch * (1 + (cfg != 1)), 40 + 576).nbytes


def test_the_cache_counts_the_scratch_slots_of_a_tree():
    backbone, method = MockBackbone(), methods.Hawk(3, candidates=9)
    run = events(backbone, method, heads=random_heads(backbone))
    prompt = len(backbone.tokenize("a sun"))
    told = fit(backbone, method, guided=False, device="cpu", prompt_slots=prompt)
    assert told.cache == run[-1].stats["cache_bytes"]
    assert told.cache == backbone.new_cache(1, prompt + backbone.grid.slots + 9).nbytes


@pytest.mark.parametrize("grid", [Grid(4, 5), Grid(3, 3, True)])
def test_the_cache_follows_the_prompt_and_the_row_ends(grid):
    backbone = MockBackbone(grid)
    told = fit(backbone, methods.AR(), 1, guided=False, device="cpu", prompt_slots=7)
    assert told.cache == backbone.new_cache(1, 7 + grid.slots).nbytes


@pytest.mark.parametrize("limit, slots", [(38, 40), (729, 731), (1024, 128)])
def test_a_limit_of_a_thousand_is_no_length(limit, slots):
    backbone = MockBackbone()
    backbone.prompt_limit = limit
    assert ModelSize.of(backbone).prompt_slots == slots
    assert ModelSize.of(backbone, prompt_slots=limit).prompt_slots == limit


def test_weights_are_counted_to_the_byte():
    backbone = tiny_postcard()
    told = fit(backbone, methods.AR(), device="cpu")
    assert told.weights == sum(weight.numel() * 4 for weight in backbone.parameters())
    heads = random_heads(backbone, 2, 1)
    with_heads = fit(backbone, methods.SSD(k_h=1, k_v=1), device="cpu", heads=heads)
    assert with_heads.weights - told.weights == 4 * sum(w.numel() for w in heads.parameters())
    assert fit(backbone, methods.AR(), device="cpu", heads=heads).weights == told.weights
    needed = fit(backbone, methods.SSD(k_h=2, k_v=1), device="cpu").weights
    assert with_heads.weights - needed == 4 * 3 * backbone.hidden_size  # the norms are left out


def test_half_of_the_bytes_in_bf16():
    backbone = tiny_postcard()
    codec = backbone.picture_codec
    whole = sum(weight.numel() for weight in backbone.parameters())
    in_codec = sum(weight.numel() for weight in codec.parameters())
    told = fit(backbone, methods.AR(), dtype="bf16", device="cpu")
    assert told.weights == 2 * (whole - in_codec) + 4 * in_codec


def test_a_row_of_the_catalogue_counts_as_its_model():
    """Janus-Pro-7B takes 14.9 GB by itself where others measured it (transformers, batch 1)."""
    told = estimate(CATALOGUE["Janus-Pro-7B"], methods.AR())
    assert 13.2e9 < told.weights < 15e9
    assert told.cache == 2 * 480 * 1024 * 768  # 128 + 576 and one for surplus, a multiple of 256


def test_a_codec_with_levels_tells_its_channels():
    backbone = tiny_postcard()
    backbone.picture_codec = VQGAN(VQGANShape(channels=32, multipliers=(1, 2), z_channels=32))
    assert ModelSize.of(backbone).codec_channels == 64


def packed(numbers: int, scales: int) -> SimpleNamespace:
    """What torchao makes of 64 weights, to the estimate: some bytes and some scales."""
    parts = {"data": torch.zeros(numbers, dtype=torch.int8), "scale": torch.zeros(scales)}
    return SimpleNamespace(**parts, numel=lambda: 64, __tensor_flatten__=lambda: (parts, None))


@pytest.mark.parametrize("numbers, scales, dtype", [(64, 2, "fp8"), (32, 2, "int4")])
def test_quantised_weights_are_seen(numbers, scales, dtype):
    weight = packed(numbers, scales)
    backbone = SimpleNamespace(in_int8=False, decoder=SimpleNamespace(
        layers=[SimpleNamespace(get_parameter={"qkv": weight}.get)]))
    assert stored_bytes(weight) == numbers + 4 * scales
    assert stored_dtype(backbone) == dtype
    assert stored_dtype(MockBackbone()) == "fp32"


def test_a_backbone_that_offloads_is_estimated_so():
    backbone = tiny_postcard()
    plain = fit(backbone, methods.AR(), device="meta")
    backbone.offloader = object()
    told = fit(backbone, methods.AR(), device="meta")
    assert told.needed < plain.needed == fit(backbone, methods.AR(), device="meta",
                                             offload=False).needed
    with pytest.raises(SSDError, match="offload"):
        fit(backbone, methods.AR(), device="cpu")


# The peak of a process


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
@pytest.mark.nightly
def test_a_process_takes_what_is_told(root, monkeypatch):
    """Eight layers of 768, a narrow codec, 16 cells: within ten percent of the peak."""
    monkeypatch.syspath_prepend(root / "lab" / "benchmarks")
    import memory as measured
    told = measured.apart(measured.Case("LlamaGen-c2i-B-256", "fp32", "SSD", 4, layers=8,
                                        side=4, codec_channels=32))
    assert told["peak"] > 100 << 20
    assert 0.9 < told["needed"] / told["peak"] < 1.1


def in_int8(backbone: Backbone) -> Backbone:
    quantise(backbone.decoder, quantiser("int8", torch.device("cpu")))
    quantise_image_head(backbone)
    return backbone


@pytest.mark.parametrize("bf16", [True, False])
@pytest.mark.parametrize("plain", [torch.float32, torch.bfloat16])
def test_beside_int8_a_loaded_backbones_own_dtype_counts(plain, bf16, monkeypatch):
    monkeypatch.setattr(transformer, "cpu_has_bf16", lambda: bf16)
    backbone = in_int8(tiny_postcard().to(plain))
    told = fit(backbone, methods.AR(), guided=True, device="cpu", prompt_slots=40)
    assert stored_dtype(backbone) == "int8"
    assert told.cache == backbone.new_cache(2, 40 + backbone.grid.slots).nbytes


@pytest.mark.parametrize("slots", [1, 64, 65])
def test_a_cache_in_bf16_has_whole_pages_on_a_cpu(slots):
    backbone = MockBackbone().to(torch.bfloat16)
    told = fit(backbone, methods.AR(), guided=False, device="cpu", prompt_slots=slots)
    assert told.cache == backbone.new_cache(1, slots + backbone.grid.slots).nbytes


@pytest.mark.parametrize("kernel", [True, False])
def test_weights_in_int8_are_counted_but_for_their_scales(kernel, monkeypatch):
    monkeypatch.setattr(products, "has_kernel", lambda device: kernel)
    monkeypatch.setattr(fit_module, "has_kernel", lambda device: kernel)
    backbone = in_int8(tiny_postcard())
    heads = random_heads(backbone, 2, 1)
    heads.to_int8()
    told = fit(backbone, methods.SSD(k_h=2, k_v=1), device="cpu", heads=heads)
    held = sum(weight.numel() * weight.element_size() for module in (backbone, heads)
               for name, weight in module.named_parameters() if not name.endswith("scales"))
    assert told.weights == pytest.approx(held, rel=0.02)


@pytest.mark.parametrize("batch", [1, 5])
def test_noise_is_counted_as_it_is_kept(batch):
    row = CATALOGUE["LlamaGen-c2i-B-256"]
    model, setting = replace(ModelSize.of(row), codes=99), Setting(batch, guided=False)
    noise = NoiseField(range(batch), row.grid.slots + 1, 99, torch.device("cpu"))
    states = batch * (row.grid.slots + 1) * row.shape.hidden * 2
    assert MemoryEstimate(model, setting).resident == states + noise.held.nbytes


def test_a_preview_is_decoded_beside_keys_and_values():
    """Not with offload, where the preview shows plain colours."""
    plain, turns = (fit(CATALOGUE["Janus-Pro-7B"], methods.AR(), device="meta", offload=offload)
                    for offload in (False, True))
    assert plain.needed > plain.weights + plain.cache + plain.pixels
    assert turns.needed < plain.needed


def test_graphs_are_a_line_of_their_own():
    row = CATALOGUE["Janus-Pro-1B"]
    without, with_graphs = (fit(row, methods.SSD(), device="meta", graphs=on)
                            for on in (False, True))
    assert without.graphs == 0 < with_graphs.graphs < with_graphs.cache
    assert with_graphs.needed == pytest.approx(
        without.needed + MARGIN * with_graphs.graphs, abs=2)
    turns = fit(row, methods.SSD(), device="meta", graphs=True, offload=True)
    assert turns.graphs == 0


def test_graphs_count_where_passes_are_replayed(monkeypatch):
    """On a CUDA card unless they are switched off; nowhere else."""
    row = CATALOGUE["Janus-Pro-1B"]
    assert fit(row, methods.SSD(), device="cpu").graphs == 0
    monkeypatch.setattr(fit_module, "pick_device", lambda name: torch.device("cuda"))
    monkeypatch.setattr(fit_module, "pick_dtype", lambda *_: torch.bfloat16)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.delenv("SSD_GRAPHS", raising=False)
    assert fit(row, methods.SSD()).graphs > 0
    monkeypatch.setenv("SSD_GRAPHS", "off")
    assert fit(row, methods.SSD()).graphs == 0


def test_a_product_in_int8_unpacks_a_piece_only_where_no_kernel_is():
    model = ModelSize.of(CATALOGUE["Janus-Pro-7B"])
    plain, integers, unpacked = (
        MemoryEstimate(model, setting).working for setting in (
            Setting(dtype="bf16"), Setting(dtype="int8"), Setting(dtype="int8", kernel=False)))
    assert integers == plain
    assert unpacked - plain > 4 * 2 * 11008 * products.EXACT - (16 << 20)


# Laws


@given(ROWS, METHODS, DTYPES, st.booleans(), st.integers(1, 8))
def test_more_pictures_or_branches_never_need_less(row, method, dtype, guided, batch):
    one = estimate(row, method, batch, dtype, guided)
    assert estimate(row, method, batch + 1, dtype, guided).needed >= one.needed
    assert estimate(row, method, batch, dtype, True).needed >= one.needed
    more = estimate(row, method, batch + 1, dtype, guided)
    assert more.cache > one.cache and more.weights == one.weights and more.pixels == one.pixels


@given(ROWS, METHODS, st.integers(1, 4))
def test_narrower_weights_never_need_more(row, method, batch):
    needed = [estimate(row, method, batch, dtype).needed
              for dtype in ("fp32", "bf16", "int8", "int4")]
    assert needed == sorted(needed, reverse=True) and len(set(needed)) == 4
    assert estimate(row, method, batch, "fp16") == estimate(row, method, batch, "bf16")


@given(ROWS, st.integers(1, 4), st.integers(0, 6))
def test_wider_passes_never_need_less(row, k_v, keep_rows):
    narrow, wide = (estimate(row, methods.Rows(k_v=k, rounds=1)).activations
                    for k in (k_v, k_v + 1))
    assert wide >= narrow
    kept = estimate(row, methods.AR(), keep_rows=keep_rows).activations
    assert estimate(row, methods.AR(), keep_rows=keep_rows + 1).activations >= kept


def test_kept_rows_of_a_backbone_with_shared_keys_are_read_without_copies():
    """Emu3's keys were once repeated for every head, and its scores written out: 54 GiB."""
    whole, kept = (estimate(CATALOGUE["Emu3-Gen"], methods.SSD(), keep_rows=k) for k in (0, 80))
    assert kept.activations - whole.activations < 2 * GIB and kept.needed < 27 * GIB


def test_the_mask_of_the_widest_pass_is_counted():
    row = CATALOGUE["Emu3-Gen"]
    model, cells = ModelSize.of(row), 2 * row.grid.width
    slots = model.prompt_slots + row.grid.slots
    cache = KVCache(1, 2, 1, slots, 1, torch.bfloat16, torch.device("cpu"),
                    group=row.shape.heads // row.shape.kv_heads)
    cache.seek_each(torch.arange(slots - cells, slots).expand(2, -1), slots)
    told = MemoryEstimate(model, Setting(dtype="bf16"), cells).mask
    assert cache.mask.nbytes < told < 1.5 * cache.mask.nbytes


@given(ROWS, st.integers(8, 40), st.integers(8, 40))
@example(CATALOGUE["Emu3-Gen"], 25, 38)
def test_larger_pictures_never_need_less(row, columns, rows):
    """But for the noise, which is kept up to a size and computed piece by piece beyond it."""
    sizes = [(c * row.patch, rows * row.patch) for c in (columns, columns + 1)]
    small, large = (estimate(row, methods.AR(), size=size) for size in sizes)
    kept_before, kept = (kept_noise(ModelSize.of(row).resized(size)) for size in sizes)
    assert large.needed >= small.needed - MARGIN * max(0, kept_before - kept)
    assert large.pixels > small.pixels and large.cache >= small.cache


def kept_noise(model: ModelSize) -> int:
    """Bytes of a picture's noise, if they are kept for the whole run."""
    numbers = (model.grid.slots + 1) * model.codes
    return 4 * numbers * (numbers <= CACHED_NUMBERS)


@given(METHODS, st.integers(3, 9), st.integers(3, 9), st.booleans())
@example(methods.Wave(), 3, 3, False)  # its window is open until the run
@example(methods.MTP(k_h=3, rounds=1), 4, 3, True)  # a group with two row ends
def test_no_pass_is_wider_than_told(method, rows, columns, row_end):
    grid = Grid(rows, columns, row_end)
    backbone = MockBackbone(grid)
    method = method.resolve(backbone.preset)
    assume((getattr(method, "window", 0) or 0) <= grid.slots)
    told = events(backbone, method, heads=random_heads(backbone))
    fed = [event.cells.shape[1] for event in told if type(event).__name__ == "Pass"][1:]
    assert max(fed) <= method.pass_width(grid)


# Advice


@given(ROWS, METHODS, DTYPES, st.booleans(), st.integers(1, 8), st.floats(0.5, 100))
def test_advice_holds(row, method, dtype, guided, batch, gib):
    free = int(gib * GIB)
    memory = MemoryEstimate.of(ModelSize.of(row), method.resolve(row.preset),
                               Setting(batch, dtype, guided))
    text = fit_module.advice(memory, free)
    fitting = [words for words, changed in fit_module.changes(memory) if changed.needed <= free]
    if memory.needed <= free:
        assert text.endswith("it fits")
    elif fitting:
        assert f"{fitting[0]} would fit" in text
    else:
        assert "does not fit" in text
    assert "\n" not in text


CASES = [("fp32", 1, 20, "dtype bf16 would fit"), ("bf16", 4, 16, "batch 1 would fit"),
         ("bf16", 1, 12, "int8 weights would fit"), ("bf16", 1, 6.7, "int4 weights would fit"),
         ("bf16", 8, 6.7, "batch 1 plus int4 weights would fit"),
         ("bf16", 1, 5.4, "int4 weights plus offloading decoder and codec in turn would fit"),
         ("bf16", 1, 1, "does not fit by any setting"), ("bf16", 1, 40, "it fits")]


@pytest.mark.parametrize("dtype, batch, gib, words", CASES)
def test_the_first_setting_that_fits_is_named(memory, dtype, batch, gib, words):
    memory(int(gib * GIB))
    told = fit(CATALOGUE["Janus-Pro-7B"], methods.AR(), batch, dtype, True, device="meta")
    assert words in told.advice and told.fits == (words == "it fits")
    assert told.free == int(gib * GIB)


def test_the_cpu_is_not_advised_to_offload(memory):
    memory(int(5.4 * GIB))
    told = fit(CATALOGUE["Janus-Pro-7B"], methods.AR(), device="cpu")
    assert "int4 weights plus cfg 1 (no guidance) would fit" in told.advice


def test_nothing_is_claimed_where_nothing_is_known(memory):
    memory(None)
    told = estimate(CATALOGUE["Emu3-Gen"], methods.AR())
    assert told.fits is None and told.free is None and "unknown" in told.advice


def test_what_the_backbone_holds_counts_as_free(memory):
    memory(1000)
    backbone = tiny_postcard()
    assert fit(backbone, methods.AR(), device="cpu").free == 1000 + sum(
        weight.numel() * 4 for weight in backbone.parameters())
    assert estimate(CATALOGUE["Emu3-Gen"], methods.AR()).free == 1000


# A run besides its weights


def test_run_bytes_is_the_estimate_without_the_weights():
    backbone, method = tiny_postcard(), methods.Rows(k_v=2, rounds=1)
    told = fit(backbone, method, 2, guided=True, device="cpu")
    besides = run_bytes(backbone, 2, True, 48)
    slab = MemoryEstimate(ModelSize.of(backbone), Setting(2, "fp32"), 48).working
    assert besides == told.cache + told.activations - slab + max(slab, told.pixels)


def test_one_number_needs_only_what_it_is_of():
    """Pixels need no run; a run needs no more than its widest pass."""
    backbone = tiny_postcard()
    alone = MemoryEstimate(ModelSize.of(backbone))
    assert alone.pixels == fit(backbone, methods.AR(), device="cpu").pixels > 0
    assert alone.run == alone.lasting + max(alone.working, alone.pixels)


# Free memory


FREE_BYTES = fit_module.free_bytes


def test_free_memory_of_this_machine():
    free = FREE_BYTES(torch.device("cpu"))
    assert free is None or 0 < free < 2**50


def test_linux_tells_without_psutil(tmp_path):
    path = tmp_path / "meminfo"
    path.write_text("MemTotal: 100 kB\nMemAvailable:      42 kB\n")
    assert free_linux_memory(path) == 42 * 1024
    path.write_text("nonsense")
    assert free_linux_memory(path) is None
    assert free_linux_memory(tmp_path / "gone") is None


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_cards_are_asked_themselves(monkeypatch, kind):
    monkeypatch.setattr(torch, kind, SimpleNamespace(mem_get_info=lambda device: (7, 9)))
    assert FREE_BYTES(torch.device(kind, 0)) == 7


# What cannot be


@pytest.mark.parametrize("options, words", [
    ({"dtype": "fp7"}, "fp7.*int4"), ({"batch": 0}, "batch 0"), ({"size": (385, 384)}, "steps"),
    ({"device": "abacus"}, "abacus")])
def test_wrong_settings_are_refused(options, words):
    with pytest.raises(SSDError, match=words):
        fit(CATALOGUE["Janus-Pro-1B"], methods.AR(), **{"device": "cpu", **options})


# The command


def test_the_command_needs_no_weights(memory, capsys):
    memory(12 * GIB)
    assert main(["fit", "janus-pro-7b", "--method", "ar", "--batch", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["name"] == "Janus-Pro-7B"
    assert told["fits"] is False and "would fit" in told["advice"]
    assert told["needed"] > told["weights"] > 13e9


def test_the_command_takes_folders_and_bundled_names(memory, capsys, tmp_path):
    """A folder's files count, even under a name of the catalogue."""
    memory(40 * GIB)
    assert main(["fit", "postcard", "--cfg", "1"]) == 0
    out = capsys.readouterr().out
    assert "weights" in out and "postcard: about" in out and "it fits\n" in out
    folder = tmp_path / "ssd_backbones" / "Emu3-Gen"
    folder.mkdir(parents=True)
    postcard.save(tiny_postcard(), folder / "backbone.safetensors")
    for arguments in (["Emu3-Gen", "--models-dir", str(tmp_path)], [str(folder)]):
        assert main(["fit", *arguments, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["name"] == "postcard"


def test_every_flag_counts(memory, capsys):
    memory(100 * GIB)

    def told(*flags):
        assert main(["fit", "Lumina-mGPT-7B-768", "--json", *flags]) == 0
        parts = json.loads(capsys.readouterr().out)
        return parts["needed"], parts["activations"]  # a preview may need more than a wide pass

    plain = told()
    for flags in (["--batch", "2"], ["--dtype", "int4"], ["--cfg", "1"], ["--size", "512x512"],
                  ["--device", "meta", "--offload"],
                  ["--method", "rows", "--k-v", "40", "--rounds", "1"]):
        assert told(*flags) != plain, flags


@pytest.mark.parametrize("arguments", [["nothing"], ["postcard", "--size", "9x9"],
                                       ["Emu3-Gen", "--dtype", "fp7"],
                                       ["Emu3-Gen", "--method", "paint"]])
def test_wrong_input_is_one_line(capsys, arguments):
    assert main(["fit", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and len(err.splitlines()) == 1
