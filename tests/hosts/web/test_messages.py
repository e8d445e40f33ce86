"""What the engine's preview sends, the browser's protocol reads: every method, to the end."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from support.every_method import one_of_each
from support.mock_backbone import MockBackbone, random_heads
from support.requests import requested

from ssd_core import FinalRows, Grid, Sampling, methods
from ssd_core.output import preview as preview_module
from ssd_core.runs.live import LiveRun
from ssd_core.runs.scheduling import race

VALIDATE = Path(__file__).parent / "validate.mjs"
METHODS = [*one_of_each(), methods.SSD(k_v=2), methods.SSD(rounds=0)]

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node on the path")


class Painter(MockBackbone):
    """Every code is a shade of grey, one pixel a cell."""

    def decode(self, tokens: torch.Tensor) -> torch.Tensor:
        return (tokens.float() / (self.codes - 1))[..., None].expand(-1, -1, -1, 3)


def record(chosen, stop_at_row=None, **keep):
    """Messages of methods that run beside each other."""
    backbone = Painter(Grid(4, 5, row_end=True))
    heads, messages = random_heads(backbone), []
    runs = [LiveRun(requested(backbone, heads, method, Sampling(), "sun", pictures=2,
                            fall_back=False, **keep)) for method in chosen]
    for panel, run in enumerate(runs):
        run.show(messages.append, panel, node="12:5")
    for run, event in race(runs):
        if isinstance(event, FinalRows) and stop_at_row and event.last >= stop_at_row:
            run.cancel("interrupted")
            break
        if run.result.finished:
            run.finish(None)
    return json.loads(json.dumps(messages))


def read(messages):
    """What the protocol made of them."""
    ran = subprocess.run(["node", str(VALIDATE)], input=json.dumps(messages), text=True,
                         capture_output=True, encoding="utf-8", timeout=60)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture(autouse=True)
def everything_told(monkeypatch):
    monkeypatch.setattr(preview_module, "BUDGET", 1e6)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_all_messages_of_a_run_are_read(method):
    told = read(record([method]))
    assert told == {"refused": [], "ignored": [], "panels": [{"row": 4, "end": "finished"}]}


def test_a_frugal_preview_is_read_as_well(monkeypatch):
    monkeypatch.setattr(preview_module, "BUDGET", 0)
    told = read(record([methods.SSD()]))
    assert told == {"refused": [], "ignored": [], "panels": [{"row": 4, "end": "finished"}]}


def test_a_race_is_read_on_both_panels():
    told = read(record([methods.AR(), methods.SSD()]))
    assert told["refused"] == told["ignored"] == []
    assert told["panels"] == [{"row": 4, "end": "finished"}] * 2


def test_kept_rows_are_read():
    kept = torch.ones(1, 4, 5, dtype=torch.long)
    told = read(record([methods.SSD()], keep=kept, keep_rows=2))
    assert told["refused"] == told["ignored"] == []


def test_an_interrupted_run_is_read():
    told = read(record([methods.AR()], stop_at_row=2))
    assert told["refused"] == told["ignored"] == []
    assert told["panels"][0]["end"] == "cancelled"


def test_the_reader_would_notice():
    """Every message spoilt in one field is refused."""
    messages = record([methods.SSD()])
    for at, field in enumerate(("label", "index", "first")):
        spoilt = [dict(message) for message in messages]
        where = next(i for i, message in enumerate(spoilt)
                     if message["kind"] == ("started", "pass", "rows")[at])
        spoilt[where][field] = None
        assert {"index": where, "kind": spoilt[where]["kind"], "field": field} in read(
            spoilt)["refused"]
