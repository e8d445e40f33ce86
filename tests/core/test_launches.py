"""Kernels of a pass in half precision, as a card launches them: for each layer and for the rest."""

from dataclasses import replace

import pytest
import torch

from ssd_core import Sampling
from ssd_core.engine.decode import prepare
from ssd_core.engine.methods import AR
from ssd_core.measure import launches
from ssd_core.measure.launches import counted, medians
from ssd_core.weights.catalogue import known

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def random_backbones(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root / "lab" / "benchmarks")
        import random_backbones
    return random_backbones


@pytest.mark.parametrize("name, of_layer, rest, most", [
    ("Janus-Pro-7B", 12, 39, 400), ("Lumina-mGPT-7B-768", 15, 45, 530)])
def test_a_step_of_ar_launches_few_kernels(name, of_layer, rest, most, random_backbones,
                                           monkeypatch):
    """The rest is what comes before and behind the layers, and the choice: with Lumina's top-k."""
    monkeypatch.setattr(launches, "MOST", 10)  # passes
    row, counts = known(name), []
    narrow = random_backbones.scaled(row)
    for layers in (1, 2):
        shape = replace(narrow.shape, layers=layers)
        backbone = random_backbones.random_backbone(replace(narrow, shape=shape), CPU,
                                                    torch.float16)
        run = prepare(backbone, "a house", AR(), sampling=Sampling(cfg=2.0))
        counts.append(medians(counted(run))["commit"])
    assert (counts[1] - counts[0], 2 * counts[0] - counts[1]) == (of_layer, rest)
    assert rest + of_layer * row.shape.layers <= most
