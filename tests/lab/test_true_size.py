"""The benchmark of true sizes: families built from random weights, what is counted and written."""

import argparse
import json
from types import SimpleNamespace

import pytest
import torch

from ssd_core.engine.methods import SSD
from ssd_core.measure import machine
from ssd_core.weights.catalogue import CATALOGUE, known
from ssd_core.weights.model_size import ModelSize

CPU, META = torch.device("cpu"), torch.device("meta")
FAMILIES = ("Janus-Pro-1B", "LlamaGen-c2i-B-256", "LlamaGen-t2i-XL-256", "Tar-AR-DTok-256",
            "Anole-7B", "Lumina-mGPT-7B-512", "Emu3-Gen")


@pytest.fixture
def built(root, monkeypatch):
    """lab/benchmarks/random_backbones.py, its scaled rows made smaller still."""
    monkeypatch.syspath_prepend(root / "lab" / "benchmarks")
    import random_backbones
    for name, value in (("SCALED_BY", 16), ("SCALED_HEAD_DIM", 32), ("SCALED_CODES", 256)):
        monkeypatch.setattr(random_backbones, name, value)
    return random_backbones


@pytest.fixture
def bench(built):
    import true_size
    return true_size


@pytest.mark.parametrize("name", CATALOGUE)
def test_true_sizes_are_those_of_the_catalogue(built, name):
    row = known(name)
    with META:
        backbone = built.bare(row)
    figures = ModelSize.of(row)
    layers = sum(weight.numel() for name, weight in backbone.decoder.named_parameters()
                 if "norm" not in name and "bias" not in name)
    assert layers == figures.matrices
    parameters = sum(weight.numel() for weight in backbone.parameters())
    assert parameters == pytest.approx(figures.matrices + figures.other_parameters, rel=0.03)
    codec = sum(weight.numel() for weight in built.codec_of(row, META).parameters())
    assert codec == pytest.approx(row.codec_parameters, rel=0.03)


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_draws_its_first_rows_from_random_weights(bench, built, name):
    row = built.scaled(known(name))
    backbone = built.random_backbone(row, CPU, torch.float32)
    assert backbone.grid == known(name).grid and backbone.preset == known(name).preset
    preset = backbone.preset
    heads = built.random_heads(backbone, preset.k_h, preset.k_v)
    passes, seconds = bench.decode(backbone, SSD(), heads, last=1)
    assert passes > backbone.grid.columns / preset.k_h / 2 and seconds > 0


def test_a_picture_takes_every_planned_pass(bench, built):
    """Random drafts do not stand by chance, which would spare rounds."""
    row = built.scaled(known("LlamaGen-c2i-B-256"))
    backbone = built.random_backbone(row, CPU, torch.float32)
    run = bench.whole_run(backbone, bench.Held(CPU), SSD(), built.random_heads(backbone, 5, 1))
    assert run.passes == SSD().resolve(backbone.preset).plan(backbone.grid).passes
    assert run.whole and run.seconds > 0
    assert bench.decode(backbone, bench.AR(), first=14)[0] == 2 * 16 - 1  # rows below random ones


@pytest.mark.parametrize("limit", [1e9, 1.0])
def test_long_ar_is_interpolated_between_its_ends(bench, monkeypatch, limit):
    """A pass at slot s takes 1 + s / 1000 seconds: the mean of both ends is that of all."""
    grid = SimpleNamespace(rows=20, columns=10, cells=200)

    def decode(backbone, method, heads=None, first=0, last=None):
        cells = range(first * 10 + 1, (last or 20) * 10)
        return len(cells), sum(1 + cell / 1000 for cell in cells)
    monkeypatch.setattr(bench, "decode", decode)
    held = SimpleNamespace(again=lambda: None, grown=lambda: 5)
    run = bench.ar_run(SimpleNamespace(grid=grid), held, limit)
    assert (run.passes, run.whole, run.peak) == (200, limit > 1, 5)
    assert run.seconds == pytest.approx(decode(None, None)[1], rel=1e-3)


def test_the_bytes_of_a_pass_are_counted(bench, built):
    row = built.scaled(known("LlamaGen-c2i-B-256"))
    backbone = built.random_backbone(row, CPU, torch.float32)
    s = backbone.decoder.shape
    layer = (s.heads + 2 * s.kv_heads) * s.head_dim * s.hidden + s.heads * s.head_dim * s.hidden
    layer += 3 * s.ffn * s.hidden + 2 * s.hidden
    weights = s.layers * layer + s.hidden + row.codes * s.hidden
    cache = 2 * s.layers * s.kv_heads * s.head_dim * 2 * 7
    assert bench.read_bytes(backbone, 2, 7) == 4 * (weights + cache)


def test_a_copy_reads_and_writes(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(machine, "synchronised", lambda device: next(clock))
    monkeypatch.setitem(machine.COPY_BYTES, "cpu", 1 << 10)
    assert machine.copy_bandwidth(CPU, repeats=2) == 2 << 10


@pytest.mark.nightly
def test_the_command_writes_a_table_and_one_line_of_json(bench, capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(machine.COPY_BYTES, "cpu", 1 << 20)
    out = tmp_path / "true_size.md"
    bench.main(["LlamaGen-c2i-B-256", "--device", "cpu", "--seconds", "0", "--repeats", "1",
                "--out", str(out)])
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    row, = told["results"]
    assert row["scaled"] and row["name"] == "LlamaGen-c2i-B-256, scaled down"
    assert row["ar"]["passes"] == 256 and not row["ar"]["whole"]
    assert row["ssd"]["passes"] == row["planned_passes"] == 51
    assert [width["cells"] for width in row["widths"]] == [1, 16]
    text = out.read_text()
    assert "scaled down: grids" in text and "~" in text and told["conditions"] in text
    assert f"| SSD k_h 5, k_v 1, r = 2 | 51 | {row['ssd']['seconds']:.2f} |" in text


def test_a_card_runs_true_sizes_unless_asked_otherwise(bench):
    for flags, wanted in (((), None), (("--scaled",), True), (("--no-scaled",), False)):
        args: argparse.Namespace = bench.parse([*flags])
        assert args.scaled is wanted and tuple(args.names) == bench.NAMES


@pytest.mark.parametrize("seconds", [(3.0, 2.0), (2.0, 3.0)])
def test_a_method_counts_with_its_best_number_of_threads(bench, monkeypatch, seconds):
    monkeypatch.setattr(bench, "thread_counts", lambda device: (1, 2))
    threads = torch.get_num_threads()

    def run():
        return bench.Run(10, seconds[torch.get_num_threads() - 1], 0)

    best = bench.best_run(run, CPU)
    assert best.seconds == 2.0 and best.threads == 1 + seconds.index(2.0)
    assert torch.get_num_threads() == threads
