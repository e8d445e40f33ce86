"""What learning draft heads takes is said before it starts."""

import ctypes
import gc
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from support.mock_backbone import MockBackbone

from ssd_core.engine.heads import DraftHeads
from ssd_core.model.grid import Grid
from ssd_core.train import BOTH, HEADS, ROW, expected, heads, row
from ssd_core.train.expected import kind_that_fits, learning_bytes, learning_seconds
from ssd_core.train.heads import HeadsRecipe
from ssd_core.train.picture_files import Pictures
from ssd_core.weights.catalogue import CATALOGUE, GB
from ssd_core.weights.model_size import ModelSize

JANUS = CATALOGUE["Janus-Pro-7B"]
RECIPE = HeadsRecipe(Path("heads.safetensors"), pictures_from=["drawn"], kind=BOTH)
SIDE, WIDTH = 16, 256


def test_parameters_are_those_of_what_learns():
    counts = expected.parameters(ModelSize.of(JANUS), RECIPE)
    assert list(counts) == [HEADS, ROW]
    assert counts[HEADS] == pytest.approx(6 * 8 * 4096**2, rel=1e-3), "k_h 5 and k_v 1"
    more = expected.parameters(ModelSize.of(JANUS), replace(RECIPE, k_h=5, k_v=3))
    assert more[HEADS] == pytest.approx(8 / 6 * counts[HEADS], rel=1e-3)


def test_where_memory_is_short_the_row_drafter_alone_learns():
    both, alone = (learning_bytes(JANUS, replace(RECIPE, kind=kind), one_by_one=True)
                   for kind in (BOTH, ROW))
    assert alone < 3 * GB < both < learning_bytes(JANUS, RECIPE)
    assert kind_that_fits(JANUS, RECIPE, both) == BOTH
    assert kind_that_fits(JANUS, RECIPE, both - 1) == kind_that_fits(JANUS, RECIPE, alone) == ROW
    assert kind_that_fits(JANUS, RECIPE, alone - 1) is None
    assert kind_that_fits(JANUS, RECIPE) == BOTH, "how much is free is unknown"


def test_seconds_grow_with_pictures_and_shrink_with_speed(monkeypatch):
    backbone, speeds = MockBackbone(Grid(6, 6)), [1e9]
    monkeypatch.setattr(expected, "speed", lambda *_: speeds[0])
    few, many = (learning_seconds(backbone, RECIPE, pictures) for pictures in (1000, 2000))
    assert many / few == pytest.approx(2, rel=0.05)
    heads_alone, row_alone = (learning_seconds(backbone, replace(RECIPE, kind=kind), 1000)
                              for kind in (HEADS, ROW))
    assert max(heads_alone, row_alone) < few
    speeds[0] = 2e9
    assert learning_seconds(backbone, RECIPE, 1000) == pytest.approx(few / 2)


def test_the_speed_of_this_device_is_measured():
    assert 1e8 < expected.speed(torch.device("cpu"), torch.float32) < 1e14


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux resets the peak")
@pytest.mark.parametrize("kind", [HEADS, ROW])
def test_a_lesson_takes_about_as_many_bytes_as_computed(kind):
    backbone, generator = MockBackbone(Grid(SIDE, SIDE), hidden=WIDTH), torch.Generator()
    drafts = DraftHeads(WIDTH, 1, 0, row=True)
    drafts.row.initialise(generator)
    drafts.horizontal[0].initialise(generator)
    learn = {HEADS: partial(heads.learn_heads, drafts, backbone, measure=partial(
                 heads.distance, loss="smooth_l1", scale=1.0, heads=drafts, backbone=backbone)),
             ROW: partial(row.learn, drafts, backbone, generator=generator)}[kind]
    pictures = Pictures(torch.zeros(8, SIDE, SIDE), (torch.tensor([1]),) * 8, backbone.size)
    learn(pictures.pick(range(1)), [False], heads.CELLS_AT_ONCE)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what other tests freed counts again
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    learn(pictures, [False] * 8, heads.CELLS_AT_ONCE)
    took = memory("VmHWM") - before
    computed = heads.working_bytes(ModelSize.of(backbone), kind, 8)
    assert row.cells_at_once(WIDTH) >= 8 * SIDE**2
    assert 0.4 < took / computed < 1.2


def memory(field: str) -> int:
    """Bytes of this process by the kernel."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
