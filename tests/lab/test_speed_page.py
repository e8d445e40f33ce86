"""The page of speeds: what it compares with what, and that the documents' checks can read it."""

import pytest
import torch
from support.documents import by_section, records
from support.mock_backbone import random_heads, tiny_postcard

from ssd_core import Grid, Sampling, generate
from ssd_core.engine.decode import prompt_branches
from ssd_core.engine.events import finished
from ssd_core.engine.methods import AR

COUNTS = (1, 2)


@pytest.fixture
def speed(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "lab" / "benchmarks")
    import speed
    return speed


def row(method, dtype, seconds, **ratios):
    return {"method": method, "dtype": dtype, "threads": 2, "passes": 10, "step_acceleration": 2.0,
            "median_seconds": seconds, "seconds_per_pass": seconds / 10, "seconds_by_threads": {
                1: 2 * seconds, 2: seconds},
            "seconds": {"draft": 0.0, "verify": 0.5, "commit": 0.5, "total": 1.0}, **ratios}


def test_every_ratio_stands_in_a_column_of_its_own(speed):
    cells = dict(zip(speed.HEAD, speed.line(row("rows", "bf16", 0.5, ratio_to_ar=1.5,
                                                ratio_in_dtype=4.0), 2.0), strict=True))
    assert cells["against the plain fp32 loop"] == "4.00" and cells["seconds"] == "0.500"
    assert cells["against our fastest AR"] == "1.50" and cells["best setting"] == "2 threads"
    assert cells["against AR in the same dtype"] == "4.00"


def test_baselines_show_every_number_of_threads_and_count_with_the_best(speed):
    plain = speed.settings(speed.PLAIN, "fp32", COUNTS, dict)
    for one, seconds in zip(plain, (1.5, 3.0), strict=True):
        one.seconds.append(seconds)
    text = speed.baselines([row("AR", "fp32", 0.75), row("rows", "fp32", 0.5)], plain, 1.5)
    found = records(text, "baseline")
    assert set(found) == {speed.PLAIN, "AR"}
    assert found[speed.PLAIN]["seconds by threads"] == "1: 1.500, 2: 3.000"
    assert found[speed.PLAIN]["best setting"] == "1 thread"
    assert found["AR"]["times the plain fp32 loop's speed"] == "2.00"


def test_the_page_has_a_table_for_each_dtype_and_one_of_batches(speed, monkeypatch):
    """On tiny backbones: no figure of it means anything, but every figure is there."""
    found = {"fp32": tiny_postcard(grid=Grid(6, 6)),
             "bf16": tiny_postcard(grid=Grid(6, 6)).to(torch.bfloat16).freeze()}
    for name, value in (("loadable", lambda *_: (found, ["int8 is left out: no kernel"])),
                        ("load_heads", lambda _, backbone: random_heads(backbone, row=True).to(
                            backbone.dtype)),
                        ("thread_counts", lambda device: (1,)), ("storage", lambda repeats: ""),
                        ("pass_seconds", lambda *_: 0.001), ("PROMPT", "a red house"),
                        ("BATCHES", (1, 2))):
        monkeypatch.setattr(speed, name, value)
    text = speed.page(["fp32", "bf16", "int8"], 1, 1)
    dtypes = by_section(text, "decoding | passes")
    assert list(dtypes) == ["In fp32", "In bf16"] and "int8 is left out: no kernel" in text
    for rows in dtypes.values():
        assert list(rows) == [label for label, _ in speed.METHODS]
    best = max(float(rows["AR"]["against our fastest AR"]) for rows in dtypes.values())
    assert best == 1.0 and all(rows["AR"]["against AR in the same dtype"] == "1.00"
                               for rows in dtypes.values())
    batches = by_section(text, "decoding | dtype")["In batches"]
    assert list(batches) == [label for label, _ in speed.IN_BATCHES]
    assert all("thread" in cells["2 at once"] for cells in batches.values())


def test_the_plain_loop_draws_ars_picture(speed):
    backbone = tiny_postcard(grid=Grid(8, 8))
    draw = speed.plain_loop(backbone, prompt_branches(backbone, ["a red house"], None, 2.0), 2.0,
                            greedy=True)
    drawn = finished(generate(backbone, "a red house", AR(), None,
                              Sampling(temperature=0, cfg=2.0))).tokens
    assert torch.equal(draw(), drawn.flatten()) and len(drawn.unique()) > 1


def test_a_dtype_that_does_not_load_is_left_out_with_the_reason(speed):
    found, left_out = speed.loadable("postcard", ("fp32", "fp8"))
    assert list(found) == ["fp32"] and len(left_out) == 1
    assert left_out[0].startswith("fp8 is left out: dtype fp8")


@pytest.mark.parametrize(("threads", "said"), [((), "3 threads"), ((1, 2), "1 and 2 threads"),
                                               ((1,), "1 thread")])
def test_conditions_name_processor_threads_dtype_and_load(speed, monkeypatch, threads, said):
    monkeypatch.setattr("torch.get_num_threads", lambda: 3)
    monkeypatch.setattr("conditions.OTHERS.words", lambda: "busy (load 0.9)")
    monkeypatch.setattr("conditions.waiting", lambda: "")
    text = speed.conditions(torch.device("cpu"), "fp32", threads)
    assert f", {said}, fp32, busy (load 0.9), " in text
    assert "busy" not in speed.conditions(torch.device("cpu"), alone=False)


def test_self_distillation_is_compared_with_ar_at_its_best(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "lab" / "benchmarks")
    import self_distill
    settings = self_distill.settings
    taken = {("ar", "fp32"): (3.0, 2.0), ("ar", "bf16"): (1.0, 4.0), ("exact", "fp32"): (0.5, 9.0)}
    best = {}
    for key, seconds in taken.items():
        own = settings(*key, COUNTS, dict)
        for one, each in zip(own, seconds, strict=True):
            one.seconds.append(each)
            one.outcomes.append({"passes": 1000})
        best[key] = self_distill.fastest(own)
    ar = {dtype: best[AR.name, dtype] for dtype in ("fp32", "bf16")}
    assert self_distill.line(best["exact", "fp32"], 5, ar) == [
        "exact", "1,000", "0.10", "fp32", "1 thread", "2.00", "4.00"]
