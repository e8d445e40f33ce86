"""bench and compare: what is measured and how it is put together, not how fast it is."""

import pytest
import torch
from support.mock_backbone import MockBackbone

from ssd_core import Grid, Sampling
from ssd_core.engine.events import Finished, Started
from ssd_core.engine.methods import AR, SSD, Exact, Rows, Strict
from ssd_core.front.compare import identical_share, verdict
from ssd_core.front.labels import claim
from ssd_core.front.request import Request
from ssd_core.measure.bench import Entrant, bench

BACKBONE = MockBackbone(Grid(10, 10))


def asked(method, label):
    return Entrant(label, Request(BACKBONE, None, method, Sampling(), "a"))


def test_ar_runs_beside_a_method_and_only_once_when_named():
    rows = bench([asked(Rows(), "rows")], repeats=1, warmup=0, counts=(1,))
    assert [row["method"] for row in rows] == ["ar", "rows"]
    assert rows[0]["ratio_to_ar"] == 1 and rows[0]["passes"] == 100 > rows[1]["passes"]
    rows = bench([asked(Rows(), "rows"), asked(AR(), "plain")], repeats=1, warmup=0, counts=(1,))
    assert [row["method"] for row in rows] == ["rows", "plain"]


def test_every_pass_of_a_setting_has_its_number_of_threads():
    class Watched(MockBackbone):
        def forward(self, *given):
            seen.append(torch.get_num_threads())
            return super().forward(*given)

    seen, before = [], torch.get_num_threads()
    request = Request(Watched(Grid(3, 4)), None, AR(), Sampling(), "a", fall_back=False)
    row, = bench([Entrant("ar", request)], repeats=2, warmup=0, counts=(1, 3))
    passes = len(seen) // 4
    assert seen == ([1] * passes + [3] * passes) * 2 and passes == 12
    assert set(row["seconds_by_threads"]) == {1, 3} and torch.get_num_threads() == before


def test_every_event_is_watched():
    seen = []
    bench([asked(AR(), "ar")], repeats=1, warmup=0, counts=(1,),
          watch=lambda label, event: seen.append((label, type(event))))
    assert seen[0] == ("ar", Started) and seen[-1] == ("ar", Finished)


FP32, BF16 = torch.float32, torch.bfloat16


@pytest.mark.parametrize(("method", "dtype", "share", "expected"), [
    (AR(), BF16, None, "identical"), (AR(), FP32, 1.0, "identical"),
    (Exact(), FP32, 1.0, "identical"), (Exact(), FP32, None, "identical"),
    (Exact(), BF16, 1.0, "identical"), (Exact(), BF16, None, "same distribution"),
    (Exact(), BF16, 0.34, "same distribution"), (Exact(), FP32, 0.99, "same distribution"),
    (Strict(), FP32, 0.1, "same distribution"), (SSD(), FP32, 0.4, "approximate"),
    (SSD(), FP32, None, "approximate"), (SSD(acceptance="coupled"), BF16, 1.0, "identical")])
def test_identical_is_said_where_measured_or_where_fp32_makes_it_so(method, dtype, share,
                                                                    expected):
    assert verdict(method, dtype, share) == expected
    assert claim(method, dtype, share).startswith(
        "AR itself" if isinstance(method, AR) else expected)


def test_matched_numerics_keep_the_promise_of_methods_that_make_it():
    assert verdict(Exact(), BF16, None, matched=True) == "identical"
    assert claim(Exact(), BF16, matched=True).startswith("identical: in bf16 with matched numerics")
    assert claim(Exact(), FP32, matched=True).startswith("identical: in fp32 this is AR's own")
    assert verdict(Exact(), BF16, 0.9, matched=True) == "same distribution"  # measured is measured
    assert verdict(SSD(), BF16, None, matched=True) == "approximate"


def test_a_claim_names_the_dtype_where_that_decides():
    assert "fp32 this is AR's own" in claim(Exact(), FP32)
    assert claim(Exact(), BF16).startswith("same distribution as AR: in bf16 rounding")
    assert claim(Exact(), BF16, 0.996) == (
        "same distribution, 99% of tokens are AR's (measured, bf16)")


def test_identical_share():
    assert identical_share(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2], [3, 0]])) == 0.75
