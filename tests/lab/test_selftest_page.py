"""The page of a self-test holds figures and nothing private, and the table of cards reads it."""

import getpass
import platform
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from support.mock_backbone import random_heads, tiny_postcard
from support.rehearsal import Rehearsal
from support.requests import requested
from support.script_modules import script

from ssd_core import Grid, Sampling
from ssd_core.backbones.estimates import StepTimes
from ssd_core.backbones.invariance import Widths
from ssd_core.engine.methods import AR
from ssd_core.measure.launches import Launches
from ssd_core.selftest import measuring, page, tuning
from ssd_core.selftest.checks import Finding
from ssd_core.selftest.machine import Machine
from ssd_core.selftest.measuring import (
    Conditions,
    Launched,
    Measured,
    Rounding,
    Width,
    launched,
    rounding_by_kernel,
)
from ssd_core.selftest.suite import SelfTest
from ssd_core.selftest.tuning import tunings_of
from ssd_core.weights import eight_bits

CPU = torch.device("cpu")
TIMES = StepTimes({1: {1: 2.0, 96: 3.0}}, {1: 0.5}, {1: 1.0})
SPEEDS = {"ar": 1.0, "exact": 4.0, "rolling": 8.0, "ssd": 5.0}


@pytest.fixture
def test():
    done = [Finding("graphs in bf16", "ar, 1 picture", ""),
            Finding("graphs in bf16", "exact, 1 picture", "hidden states differ by 0.5"),
            Finding("dtype bf16", "ar, 1 picture", "")]
    return SelfTest(Machine(CPU, None, lambda: 0), ["bf16", "fp8"], done=done, seconds=12,
                    left_out={"fp8": "dtype fp8 needs torchao"})


@pytest.fixture
def measured():
    result = {name: SimpleNamespace(share=1.0, guarantee="identical") for name in SPEEDS}
    speeds = [{"method": name, "passes": 10, "median_seconds": 2.0 / ratio, "ratio_to_ar": ratio,
               "seconds_per_pass": 0.2 / ratio} for name, ratio in SPEEDS.items()]
    where = replace(Conditions.of(CPU), device="A Card 24GB", driver="570.1", memory=24 * 2**30)
    return Measured(where, "postcard", "bf16", 800e9,
                    [Width(1, 2.0, 0.5, 40e9), Width(96, 4.0, None, 20e9)], speeds,
                    SimpleNamespace(results=result), "idle", 3 * 2**30, 4 * 2**30,
                    {"as PyTorch chooses": Rounding(0.001, 0.002), "flash": Rounding(None, None)},
                    [tunings_of(tiny_postcard(), None, pictures, TIMES, 1) for pictures in (1, 8)],
                    {name: Launched(90.4, 7.0 if name == "ar" else None) for name in SPEEDS},
                    dict.fromkeys(SPEEDS, 4 * 10**9),
                    {"bf16": {1: 0.5, 24: 0.9}, "int8": {1: 0.1, 24: 0.7},
                     "fp8": {1: 0.3, 24: 0.6}})


def test_the_page_has_all_figures_and_the_table_of_cards_a_row_of_it(measured, test, tmp_path):
    assert page.file_name(measured).startswith("a-card-24gb-postcard-bf16-torch-")
    text = page.page_of(measured, test, "picture.webp")
    for line in ("# postcard in bf16 on A Card 24GB", "| bandwidth of a copy | 800 GB/s |",
                 "| graphs in bf16 | 2 | 1 |", "- Not offered here: fp8.",
                 "- Switched off: graphs in bf16 (exact, 1 picture: hidden states differ by 0.5).",
                 "| 1 | 2.00 | 0.50 | 1.00 | 40.0 | 5% |", "| 96 | 4.00 | - | 8.00 | 20.0 | 2% |",
                 "| ar | 10 | 2.000 | 1.00 | 200.00 | 2% | 90 | 7 | identical | 100% |",
                 "| exact | 10 | 0.500 | 4.00 | 50.00 | 10% | 90 | - | identical | 100% |",
                 "| 24 | 0.900 | 0.700 | 0.600 |", "8-bit dtypes fp8 is the fastest here for rows",
                 "int8: integer products, the same bits however many tokens a pass has.",
                 "![The same picture by each method](picture.webp)",
                 "| as PyTorch chooses | 0.001 | 0.002 |", "| flash | takes no such pass | - |",
                 "| 1 | 0.288 | on |", "| 8 | 0.036 | on |", "| 96 | 3.00 | 3.00 |",
                 "| 1 | 2.00 / 0.50 | 2.00 / 0.50 |",
                 "`fit` expects 4.00 GiB beyond the weights for `exact`; the run took at most 3"):
        assert line in text
    (tmp_path / "a.md").write_text(text)
    (tmp_path / "README.md").write_text("no page")
    table = script("tools", "card_table").cards(tmp_path)
    assert ("| [A Card 24GB](../lab/benchmarks/results/cards/a.md) | postcard, bf16 |" in table
            and "| 800 | 2.00 | 4.00 | 8.00 | 5.00 | - | 100% | graphs in bf16 |" in table)
    (tmp_path / "b.md").write_text("# by hand")
    with pytest.raises(SystemExit, match=r"b\.md: its first line has no figures"):
        script("tools", "card_table").cards(tmp_path)


def test_launches_are_counted_directly_and_by_graphs():
    backbone = tiny_postcard(grid=Grid(4, 4))
    request = requested(backbone, random_heads(backbone), AR(), Sampling(seed=7), "a sun")
    recorders = []
    found = launched(request, Machine(CPU, lambda: recorders.append(Rehearsal()) or recorders[-1],
                                      lambda: 0))
    assert found.direct > 20 > 10 > found.graphs > 1 and recorders[0].replayed
    assert recorders[0].closed
    assert launched(request, Machine(CPU, None, lambda: 0)) == replace(found, graphs=None)
    with Launches() as counting:
        x = torch.zeros(4)
        x.view(2, 2).add_(1)
        x[1:]
        torch.empty(4)
    assert counting.count == 2, "a view costs nothing, nor does memory as it is"


def test_products_are_timed_in_every_dtype_that_is_offered(monkeypatch):
    monkeypatch.setattr(eight_bits, "best_of", lambda work, device: 1e-3 * work().numel())
    backbone = tiny_postcard(grid=Grid(4, 4))
    found = measuring.times_by_dtype(backbone, 2)
    shape = backbone.decoder.shape
    each = {cells: 2 * cells * (2 * shape.ffn + shape.hidden) for cells in (1, 4, 16)}
    assert found == {"fp32": pytest.approx(each), "int8": pytest.approx(each)}, "fp8 needs a card"
    assert measuring.fastest_eight_bits(found) == "int8"
    assert measuring.fastest_eight_bits({"fp32": each}) is None


def test_a_measured_page_holds_no_paths_and_no_names(test, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "copy_bandwidth", lambda device: 8e9)
    monkeypatch.setattr(measuring, "WIDTHS_LIMIT", 0.05)
    monkeypatch.setattr(tuning, "AT_MOST", 0.05)
    backbone = tiny_postcard(grid=Grid(4, 4))
    monkeypatch.setattr(measuring, "PROMPT", "a sun")
    path, picture = page.write(tmp_path, test, backbone, random_heads(backbone))
    text = path.read_text(encoding="utf-8")
    assert picture.stat().st_size and path.stem == picture.stem and "| ssd |" in text
    for private in (str(tmp_path), str(Path.home()), platform.node(), getpass.getuser()):
        assert private not in text.replace(picture.name, "") or len(private) < 5


class Other(Rehearsal):
    """Replays round in another way than the passes that they repeat."""

    def record(self, work):
        return lambda: work() + 1e-3


class Refuses(Rehearsal):
    def record(self, work):
        raise RuntimeError("operation not permitted when stream is capturing")


@pytest.mark.parametrize(("recorder", "graphs"), [(Rehearsal, True), (Other, False),
                                                  (Refuses, None)])
def test_replays_are_probed_for_equal_bits_beside_direct_passes(recorder, graphs, monkeypatch):
    backbone = tiny_postcard(grid=Grid(6, 6))
    made = []
    machine = Machine(CPU, lambda: made.append(recorder()) or made[-1], lambda: 0)
    monkeypatch.setattr("ssd_core.selftest.measuring.passes_on",
                        lambda backbone, cells: [Widths(24, (1, 8, 6, 12), 64)])
    (name, found), = rounding_by_kernel(backbone, machine).items()
    assert made[0].closed and name == "as PyTorch chooses"
    if graphs is None:
        assert found.graphs is None and found.direct is not None
    else:
        assert (found.graphs == pytest.approx(found.direct, abs=1e-9)) == graphs
    assert rounding_by_kernel(backbone, Machine(CPU, None, lambda: 0))[name].graphs is None
