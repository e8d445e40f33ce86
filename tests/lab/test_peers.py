"""The benchmarks beside others: all sides draw the same picture, and say what they left out."""

import json

import pytest
import torch

from ssd_core.backbones.janus import Janus
from ssd_core.model.grid import Grid
from ssd_core.weights.catalogue import known

pytestmark = pytest.mark.nightly
CPU = torch.device("cpu")


@pytest.fixture
def peers(root, monkeypatch):
    """lab/benchmarks/peers.py with models that take no time."""
    pytest.importorskip("transformers", reason="transformers is one of the sides")
    monkeypatch.syspath_prepend(root / "lab" / "benchmarks")
    import peers
    monkeypatch.setattr(peers, "SCALED", {"layers": 2, "heads": 1, "codes": 64, "side": 4})
    monkeypatch.setattr(Janus, "grid", Grid(4, 4))
    catalogue = {name: known(name) for name in peers.NAMES}
    catalogue["Janus-Pro-1B"] = peers.replace(catalogue["Janus-Pro-1B"], grid=Grid(4, 4))
    monkeypatch.setattr(peers, "known", catalogue.__getitem__)
    return peers


def test_every_side_draws_the_same_greedy_picture(peers, capsys, tmp_path):
    """In fp32, the same weights: transformers with both caches, the plain loop, the engine."""
    out = tmp_path / "peers.md"
    threads = torch.get_num_threads()
    try:
        peers.main(["--repeats", "1", "--out", str(out)])
    finally:
        torch.set_num_threads(threads)
    results = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [one["name"] for one in results] == list(peers.NAMES)
    for result in results:
        assert [side["same"] for side in result["sides"]] == [1.0, 1.0, 1.0, 1.0, None]
        assert all(len(side["seconds"]) == 1 for side in result["sides"])
    assert out.read_text().count("100.0 %") == 8


def test_greedy_pictures_are_not_of_one_token(peers):
    """Else agreement would say nothing."""
    for name in peers.NAMES:
        backbone = peers.random_backbone(peers.scaled(peers.known(name)), CPU, torch.float32)
        drawn = next(side for side in peers.sides(backbone, False) if side.greedy).greedy()
        assert len(drawn.unique()) > 3


def test_precisions_that_a_device_lacks_are_left_out_with_the_reason(root, monkeypatch):
    pytest.importorskip("torchao", reason="torchao is not installed")
    monkeypatch.syspath_prepend(root / "lab" / "benchmarks")
    import low_precision
    monkeypatch.setitem(low_precision.WIDTHS, "cpu", "LlamaGen-c2i-B-256")
    lines, left_out = low_precision.passes(CPU, 1)
    assert [line[0] for line in lines] == ["fp32", "bf16", "int8", "int4"]
    assert [float(line[1]) for line in lines] == sorted((float(line[1]) for line in lines),
                                                        reverse=True)
    assert len(left_out) == 1 and "fp8 runs on NVIDIA cards" in left_out[0]
