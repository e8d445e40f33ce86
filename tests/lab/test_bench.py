"""bench and compare: what is measured and how it is put together, not how fast it is."""

import pytest
import torch
from support.mock_backbone import MockBackbone
from support.requests import requested

from ssd_core import Grid, Sampling
from ssd_core.backbones.base import Preset
from ssd_core.engine.events import Finished, Started
from ssd_core.engine.methods import AR, SSD, Exact, Rolling, Rows, Strict
from ssd_core.measure.bench import Entrant, bench
from ssd_core.output.guarantees import guarantee, guarantee_holds, guarantee_text, identical_share

BACKBONE = MockBackbone(Grid(10, 10))


def asked(method, label):
    return Entrant(label, requested(BACKBONE, None, method, Sampling(), "a"))


def test_ar_runs_beside_a_method_and_only_once_when_named():
    rows = bench([asked(Rows(), "rows")], repeats=1, warmup=0, counts=(1,))
    assert [row["method"] for row in rows] == ["ar", "rows"]
    assert rows[0]["ratio_to_ar"] == 1 and rows[0]["passes"] == 100 > rows[1]["passes"]
    rows = bench([asked(Rows(), "rows"), asked(AR(), "plain")], repeats=1, warmup=0, counts=(1,))
    assert [row["method"] for row in rows] == ["rows", "plain"]


def test_every_pass_of_a_setting_has_its_number_of_threads():
    class Watched(MockBackbone):
        def forward(self, *args):
            seen.append(torch.get_num_threads())
            return super().forward(*args)

    seen, before = [], torch.get_num_threads()
    request = requested(Watched(Grid(3, 4)), None, AR(), Sampling(), "a", fall_back=False)
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


def loaded(dtype, invariant=False):
    backbone = MockBackbone(Grid(2, 2)).to(dtype)
    backbone.batch_invariant = invariant
    return backbone


@pytest.mark.parametrize(("dtype", "invariant", "holds"), [
    (FP32, False, True), (FP32, True, True), (BF16, True, True), (BF16, False, False),
    (torch.float16, False, False)])
def test_the_guarantee_holds_in_fp32_and_where_passes_of_any_width_give_the_same_bits(
        dtype, invariant, holds):
    assert guarantee_holds(loaded(dtype, invariant)) == holds
    assert guarantee_holds(loaded(dtype, invariant).resized(None)) == holds


@pytest.mark.parametrize(("method", "holds", "share", "expected"), [
    (AR(), False, None, "identical"), (AR(), True, 1.0, "identical"),
    (Exact(), True, 1.0, "identical"), (Exact(), True, None, "identical"),
    (Exact(), False, 1.0, "identical"), (Exact(), False, None, "same distribution"),
    (Exact(), False, 0.34, "same distribution"), (Exact(), True, 0.99, "same distribution"),
    (Strict(), True, 0.1, "same distribution"), (SSD(), True, 0.4, "approximate"),
    (SSD(), True, None, "approximate"), (SSD(acceptance="coupled"), False, 1.0, "identical")])
def test_identical_is_said_where_measured_or_where_the_guarantee_holds(method, holds, share,
                                                                     expected):
    assert guarantee(method, loaded(BF16, holds), share) == expected
    assert guarantee_text(method, loaded(BF16, holds), share).startswith(
        "AR itself" if isinstance(method, AR) else expected)


@pytest.mark.parametrize(("dtype", "invariant"), [(FP32, False), (BF16, True)])
def test_a_guarantee_that_holds_is_stated_without_conditions(dtype, invariant):
    assert guarantee_text(Exact(), loaded(dtype, invariant)) == (
        "identical: this is AR's own picture for this seed")


def test_a_guarantee_names_the_dtype_where_that_decides():
    assert guarantee_text(Exact(), loaded(BF16)) == (
        "same distribution as AR: rounding in bf16 on this device may make it differ from AR's own "
        "picture for this seed (Compare measures it)")
    assert guarantee_text(Exact(), loaded(BF16), 0.996) == (
        "same distribution, 99% of tokens are AR's (measured, bf16)")


def test_a_guarantee_knows_what_the_knobs_prove_on_the_grid():
    enough, few = (SSD(k_h=1, rounds=rounds).resolve(Preset()) for rounds in (2, 1))
    assert guarantee(enough, loaded(FP32), 0.4) == "same distribution"
    assert guarantee(few, loaded(FP32), 0.4) == "approximate"
    assert guarantee(enough, MockBackbone(Grid(2, 3)), 0.4) == "approximate"
    assert guarantee_text(enough, loaded(BF16)) == "same distribution"
    assert guarantee_text(Rolling(budget=4), loaded(FP32)).startswith("identical")
    assert guarantee_text(Rolling(budget=4), loaded(BF16)).startswith(
        "same distribution as AR: rounding")


def test_identical_share():
    assert identical_share(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2], [3, 0]])) == 0.75
