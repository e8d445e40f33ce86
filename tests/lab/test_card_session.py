"""The session on a card: what is skipped, what survives, and what follows from made figures."""

import json
import math
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from support.script_modules import script

session = script("lab/benchmarks", "card_session")
rules, runs, kernels = (script("lab/benchmarks", f"card_{name}") for name in ("rules", "runs",
                                                                       "kernels"))
CARD = script("lab/benchmarks", "card_tools").Card(torch.device("cpu"), torch.float32, tiny=True)


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def part(name, seconds=10.0, rows=({"found": 1.0},), clock=None, error=None):
    def measure(card):
        for row in rows:
            if clock is not None:
                clock.seconds += seconds / len(rows)
            yield dict(row)
        if error is not None:
            raise error
    return session.Part(name, seconds, measure)


# The clock


@pytest.mark.parametrize("left, dropped", [
    (1000, 0), (585, 0), (584, 1), (525, 1), (524, 2), (465, 2), (464, 3), (425, 3), (424, 4),
    (10, 4)])
def test_parts_are_dropped_in_the_stop_order(left, dropped):
    every = session.parts(("Janus-Pro-7B",))
    assert sum(each.seconds for each in every) == 585
    fit = [each.name for each in session.affordable(every, left)]
    assert fit == [each.name for each in every if each.name not in session.STOP_ORDER[:dropped]]


def test_the_order_of_the_parts_and_their_budget():
    names = [each.name for each in session.parts(())]
    assert names == ["env", "attention", "replay", "products", "invariance", "profile", "runs",
                     "eight", "compiled", "cudaMallocAsync"]
    assert {*session.STOP_ORDER} < {*names} and {*rules.RULES} == {*names} - {"env"}


def drawn(parts, seconds, tmp_path, clock=None):
    made = session.Session(CARD, seconds, tmp_path, clock or Clock())
    made.run(parts)
    lines = (tmp_path / "card_session.jsonl").read_text().splitlines()
    return made, [json.loads(line) for line in lines]


def test_a_slow_part_costs_those_that_may_be_skipped(tmp_path):
    clock = Clock()
    slow = session.Part("attention", 10, part("", 100, clock=clock).measure)
    parts = [slow, part("eight", 40, clock=clock), part("runs", 40, clock=clock),
             part("compiled", 40, clock=clock)]
    made, _ = drawn(parts, 100 + 90 + session.RESERVE, tmp_path, clock)
    assert "skipped" in made.rows["compiled"][0]["failed"]
    assert made.rows["eight"] == made.rows["runs"] == [{"found": 1.0}]


def test_a_part_ends_when_the_seconds_are_over_and_nothing_begins_then(tmp_path):
    clock = Clock()
    parts = [part("runs", 40, [{"n": n} for n in range(4)], clock), part("replay", clock=clock)]
    made, _lines = drawn(parts, 20 + session.RESERVE, tmp_path, clock)
    assert [row.get("n") for row in made.rows["runs"][:-1]] == [0, 1]
    assert "the seconds are over" in made.rows["runs"][-1]["failed"]
    assert "skipped" in made.rows["replay"][0]["failed"]


def test_a_part_that_fails_keeps_its_rows_and_the_next_ones_run(tmp_path):
    parts = [part("attention", rows=[{"a": 1.5}], error=RuntimeError("no | kernel")),
             part("eight"), part("env")]
    _made, lines = drawn(parts, 1000, tmp_path)
    assert [line["part"] for line in lines] == ["attention", "attention", "seconds", "eight",
                                                "seconds", "env", "seconds"]
    assert lines[0]["a"] == 1.5 and "no | kernel" in lines[1]["failed"]
    page = (tmp_path / "card_session.md").read_text()
    assert "## attention\n\n| a | failed |" in page and "no / kernel" in page
    assert page.index("## env") < page.index("## seconds")


def test_a_card_that_no_longer_answers_does_not_stop_the_page(tmp_path, monkeypatch):
    def tidy():
        raise RuntimeError("unspecified launch failure")

    monkeypatch.setattr(CARD, "tidy", tidy, raising=False)
    made, _ = drawn([part("attention"), part("eight")], 1000, tmp_path)
    assert all("launch failure" in made.rows[name][0]["failed"] for name in ("attention", "eight"))
    assert "launch failure" in (tmp_path / "card_session.md").read_text()


def test_every_row_is_in_the_file_before_the_next_is_measured(tmp_path):
    def measure(card):
        yield {"n": 0}
        assert json.loads((tmp_path / "card_session.jsonl").read_text())["n"] == 0
        yield {"n": 1}

    made, lines = drawn([session.Part("env", 1, measure)], 1000, tmp_path)
    assert [row["n"] for row in made.rows["env"]] == [0, 1] and len(lines) == 3


# The rules


def attends(first=1.0, default=20.0, efficient=20.0, products=30.0):
    return [{"cells": 1, "keys": 256, "kernel": name, "us": took, "first call, ms": first}
            for name, took in (("default", default), ("efficient", efficient),
                               ("products", products))]


def replayed(replay=0.0, again=0.0, operation=0.0):
    return [{"cells": 2, "replay": replay, "called again": again},
            {"operation": "qkv", "replay": operation}]


def multiplied(linear=10.0, addmm=10.0, share=80.0, triton=10.0):
    return [{"shape": shape, "cells": cells, "linear": linear, "addmm": addmm,
             "linear, % of read": share, "triton 32": triton, "triton 64": triton}
            for shape in ("7B qkv", "7B down") for cells in (2, 48)]


def drew(later=0.5, share=60.0, check=5.0, left=0.0, same=100.0, ar=3.5, captured=9):
    def row(method, way, seconds):
        return {"backbone": "Janus-Pro-7B", "method": method, "way": way, "picture": 1,
                "seconds": seconds, "% of read": share, "check, % of captures": check,
                rules.NOT_BACK: left, "same tokens as eager, %": same, "captured": captured}
    return [row("ar", runs.STAY, ar), row("ssd", runs.ANEW, 1.3), row("ssd", runs.STAY, 1.3),
            row("ssd", runs.STAY, later)]


def eights(kernel=10.0, wide=20.0, integers=18.0):
    return [{"cells": 2, "bf16": 15.0, "W8A8": integers, "triton": kernel},
            {"cells": 96, "bf16": 20.0, "W8A8": 30.0, "triton": wide}]


@pytest.mark.parametrize("name, rows, decision", [
    ("attention", attends(), "leave the default"),
    ("attention", attends(first=22.0), "pin the efficient kernel"),
    ("attention", attends(efficient=18.0), "pin the efficient kernel"),
    ("attention", attends(products=15.0), "leave the default; a single cell attends by two "
                                          "products"),
    ("attention", attends(efficient="no such kernel"), rules.UNDECIDED),
    ("replay", replayed(), "rounding at most: the check is enough"),
    ("replay", replayed(0.02, 0.02), "rounding at most: the check is enough"),
    ("replay", replayed(0.02, 0.0, 0.01), "rounding; pin or report what rounds differently (qkv)"),
    ("replay", replayed(0.05), "more than rounding makes: look at the layer where it begins"),
    ("replay", replayed(0.43), "an error: find it before anything else"),
    ("products", multiplied(), "leave the products alone"),
    ("products", multiplied(addmm=11.0), "leave the products alone; add the residual apart"),
    ("products", multiplied(share=50.0, triton=8.0),
     "products are worth work; offer the Triton kernel for `out` and `down`"),
    ("products", multiplied(share="failed", triton="no Triton"), rules.UNDECIDED),
    ("invariance", [{"rms of logits": 0.1}, {"rms of logits": "failed"}],
     "Faithful is approximate on this card"),
    ("invariance", [{"library": "cublaslt", "split sums": False, "attention": "math",
                     "rms of logits": 0.0}],
     "offer for Faithful: cublaslt, split sums False, attention math"),
    ("profile", [{"small, us": 10.0, "attention, us": 10.0, "products, us": 80.0}], "leave both"),
    ("profile", [{"small, us": 20.0, "attention, us": 20.0, "products, us": 60.0}],
     "merge small kernels; choose attention by its part"),
    ("runs", drew(), "sessions stay"),
    ("runs", drew(later=0.9), "sessions bring too little; SSD takes more than a sixth of AR's "
                              "seconds"),
    ("runs", drew(left=2.6, check=12.0), "sessions stay; memory does not come back: find what "
                                         "holds it; the check costs more than a tenth"),
    ("runs", drew(check=30.0, share=48.0, same=99.0),
     "sessions stay; cut the check; AR is short of 60 % of read; tokens differ from eager passes: "
     "see the part `replay`"),
    ("eight", eights(), "adopt triton; integers keep the label memory"),
    ("eight", eights(wide=21.0, integers=14.0), "none is 1.4 times as fast"),
    ("eight", eights(kernel="no Triton"), "integers keep the label memory"),
    ("compiled", [{"plain, us": 110.0, "compiled, us": 100.0}], "drop the subject"),
    ("compiled", [{"plain, us": 120.0, "compiled, us": 100.0}], "look again"),
    ("cudaMallocAsync", drew(), "graphs work there"),
    ("cudaMallocAsync", drew(captured=0), "no graphs there"),
    ("cudaMallocAsync", drew(same=40.0), "no graphs there")])
def test_a_decision_follows_from_the_figures(name, rows, decision):
    assert rules.RULES[name](rows)[1] == decision


def test_failed_and_missing_parts_decide_nothing():
    assert list(rules.decisions({"runs": [{"failed": "no memory"}], "env": [{"torch": "2"}]})) == []
    (name, found, decision), = rules.decisions({"runs": [{"failed": "late"}, *drew()]})
    assert name == "runs" and decision == "sessions stay" and "0.38 of the seconds" in found
    assert all(decision for *_, decision in rules.decisions({key: [{}] for key in rules.RULES}))
    assert math.isnan(rules.number({"us": "no kernel"}, "us"))


# Measuring


def test_seconds_of_captures_are_told_apart(monkeypatch):
    clock = Clock()

    def lasting(seconds, result=None):
        clock.seconds += seconds
        return result

    def check(replay, call, buffers, few):
        replay()
        result = call()
        return lasting(2, result), 0.43

    monkeypatch.setattr(runs.graphs, "checked", check)
    captures = runs.Captures(SimpleNamespace(now=clock))
    recorder = runs.TimedRecorder(captures, SimpleNamespace(
        warm_up=lambda work: work(), record=lambda work: lasting(5, work)))
    assert recorder.warm_up(lambda: lasting(3, "first")) == "first"
    replay = recorder.record(lambda: lasting(1))
    assert captures.checked(replay, lambda: lasting(4, "again"), []) == ("again", 0.0)
    assert dict(captures.seconds) == {"first call": 3, "record": 5, "call again": 4, "check": 3}
    assert captures.worst == 0.43


@pytest.mark.parametrize("name, kind", [
    ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80(", "attention"),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop", "attention"),
    ("nvjet_hsh_64x8_64x16_4x1_v_bz_TNT", "products"),
    ("void gemvNSP_kernel<__nv_bfloat16", "products"),
    ("cublasLt::splitKreduce_kernel", "products"),
    ("void at::native::vectorized_elementwise_kernel<4, silu", "small")])
def test_kernels_are_sorted_by_their_names(name, kind):
    assert kernels.kind_of(name) == kind


def test_a_wrong_product_is_not_timed():
    ones = [torch.ones(2, 3)]
    assert isinstance(kernels.timed(CARD, lambda: ones, ones), float)
    assert kernels.timed(CARD, lambda: [2 * ones[0]], ones) == "ArithmeticError: differs by 1"


@pytest.mark.parametrize("arguments, complaint", [
    ([], "no CUDA card"), (["--tiny", "--only", "runs,walks"], "unknown: walks"),
    (["--tiny", "--backbones", "postcard"], "unknown: postcard")])
def test_what_cannot_be_run_is_refused(arguments, complaint, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        session.parse(arguments)
    assert complaint in capsys.readouterr().err


@pytest.mark.nightly
def test_the_whole_session_runs_tiny(root, tmp_path):
    command = [sys.executable, "lab/benchmarks/card_session.py", "--tiny", "--out", tmp_path]
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line for line in lines if "failed" in line] == []
    names = [each.name for each in session.parts(())]
    assert list(dict.fromkeys(line["part"] for line in lines)) == [
        "env", "seconds", *names[1:]]
    drawn = [line for line in lines if line["part"] == "runs"]
    assert {line["backbone"].split(",")[0] for line in drawn} == {*runs.SUBJECTS}
    later = [line for line in drawn if line["way"] == runs.STAY and line["picture"] == 3]
    assert later and all(line["captured"] <= 2 for line in later)
    page = (tmp_path / "card_session.md").read_text()
    assert all(f"\n## {name}\n" in page for name in (*names, "seconds"))
    assert all(f"\n| {name} |" in page for name in rules.RULES)
