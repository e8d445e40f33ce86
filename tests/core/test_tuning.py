"""What costs least time is chosen, from made tables instead of measured ones."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from support.mock_backbone import MockBackbone, random_heads
from support.requests import requested

from ssd_core import Grid, Sampling, SSDError, compare, kept_files, methods
from ssd_core.backbones.estimates import DrawnPicture, StepTimes
from ssd_core.engine import prior_passes, step_times, tuning
from ssd_core.engine.prior_passes import expected_passes
from ssd_core.engine.tuning import Cost, Machine, Tuning, at_once, filled, sooner_alone, tune
from ssd_core.output.guarantees import identical_share
from ssd_core.runs.batch.queue import TaskLocks
from ssd_core.runs.batch.render import (
    FILE,
    RenderItem,
    RenderSettings,
    agreed,
    as_begun,
    draw_tasks,
    quickest,
    require_same,
)
from ssd_core.runs.batch.workers import LoadedModels
from ssd_core.runs.request import Request, Result

CELLS = (1, 8, 16, 24, 48, 96, 192, 240)
POSTCARD = Grid(24, 24)
# Milliseconds on two cores (8 cells cost three passes of AR), and of a card after the paper's
# Figure 4: 240 cells cost 1.6 times one.
CPU = StepTimes({1: {cells: 1.1 + 0.24 * cells for cells in CELLS},
                 2: {cells: 1.1 + 0.13 * cells for cells in CELLS}})
CARD = StepTimes({1: {cells: 20 * (1 + 0.6 * (cells - 1) / 239) for cells in CELLS}})
# Passes of `postcard` in fp32; in int8 wide windows take more.
IN_FP32 = {"exact": {24: 116, 48: 84, 96: 66, 192: 59}, "sjd": {24: 108, 48: 81, 96: 68, 192: 55}}
BOUND = StepTimes({1: {cells: 0.5 + 1.0 * cells for cells in CELLS}})  # only arithmetic counts


def as_postcard(backbone: MockBackbone) -> MockBackbone:
    """The backbone, taken for the one whose figures are shipped."""
    backbone.name, backbone.sha256 = "postcard", prior_passes.bundled()["sha256"]
    return backbone


def machine(table: StepTimes, threads: int = 1, **options) -> Machine:
    backbone = as_postcard(MockBackbone(POSTCARD))
    return Machine(backbone, lambda pictures: table, threads=threads, **options)


def test_the_widest_window_is_best_where_width_is_free():
    flat = StepTimes({1: dict.fromkeys(CELLS, 20.0)})
    assert tune(machine(flat), methods.Exact()).method.window >= 192


def test_a_card_takes_192_cells_or_more(monkeypatch):
    passes = {f"{name}/{window}/{drafter}": count for name, curve in IN_FP32.items()
              for window, count in curve.items() for drafter in ("none", "heads")}
    shipped = {**prior_passes.bundled(), "passes": passes}
    monkeypatch.setattr(prior_passes, "bundled", lambda: shipped)
    for heads in (True, False):
        decision = tune(machine(CARD, device="cuda", heads=heads), methods.Exact())
        assert decision.method.window >= 192


def test_where_width_costs_nothing_a_card_takes_the_whole_picture_unless_it_is_huge():
    flat = StepTimes({1: dict.fromkeys((*CELLS, 576), 20.0)})
    assert tune(machine(flat, device="cuda"), methods.Exact()).method.window == 576
    for pictures, most in ((1, 2048), (8, 256)):
        huge = Machine(MockBackbone(Grid(90, 90), codes=32768), lambda pictures: StepTimes(
            {1: {1: 20.0, 8100: 20.0}}), device="cuda")
        window = tune(huge, methods.Exact(), pictures).method.window
        assert most / 2 < window <= most, "probabilities of 32,768 codes would take gigabytes"


@pytest.mark.parametrize("pictures", [1, 2, 4, 8])
def test_graphs_are_used_where_replays_are_quicker(pictures):
    """Of later pictures, which capture nothing; the first one is told apart."""
    step_times = StepTimes({1: {1: 2.0, 240: 3.0}}, {1: 0.5, 240: 3.2}, {1: 20.0, 240: 90.0})
    here = machine(step_times, device="cuda")
    ar = tune(here, methods.AR(), pictures)
    assert ar.graphs and ar.cost.graphs and ar.cost.ms == 0.5
    assert ar.cost.first == pytest.approx(0.06)  # 593 slots are three multiples
    assert ar.first == ar.cost.seconds + ar.cost.first and ", the first picture 0.35 s" in ar.text
    ready = tune(machine(step_times, device="cuda", ready=lambda count: count == pictures),
                 methods.AR(), pictures)
    assert ready.cost.first == 0 and ready.first is None and "first" not in ready.text
    exact = tune(here, methods.Exact(window=240), pictures, named=True)
    assert not exact.graphs and exact.cost.graphs is False and exact.first is None
    assert tune(machine(CARD, device="cuda"), methods.AR()).graphs, "unknown: as ever"


def test_a_run_without_graphs_asks_for_no_recorder(timed, table, monkeypatch):
    table.now = StepTimes({1: {1: 1.0, 48: 1.0}}, {1: 9.0, 48: 9.0}, {1: 9.0, 48: 9.0})
    monkeypatch.setattr("ssd_core.engine.decode.runner", lambda backbone: 1 / 0)
    asked = request(timed, methods.AR())
    assert not asked.tuning.graphs and asked.run().finished


@pytest.mark.parametrize("kind", [methods.Exact, methods.Jacobi])
def test_the_window_is_the_least_of_a_sweep(kind):
    for table, threads in ((CPU, 1), (CPU, 2), (CARD, 1)):
        here = machine(table, threads)
        decision = tune(here, kind(), named=True)
        sweep = {window: here.cost(kind(window)).seconds for window in range(8, 289)}
        assert decision.cost.seconds <= 1.03 * min(sweep.values())


@pytest.mark.parametrize("method", [
    methods.Rolling(), methods.Rolling(fewer=12.0), methods.SJD(), methods.SJD(tree_width=2),
    methods.GSD(), methods.Wave(), methods.Wave(4), methods.Wave(verification="none")])
def test_no_timing_changes_a_picture(method):
    """Where pictures depend on the cells of a pass, the type of device alone sets them."""
    for device in ("cpu", "cuda"):
        fixed = {tune(machine(table, device=device), method, pictures).method
                 for table in (CPU, CARD, BOUND) for pictures in (1, 8)}
        assert fixed == {filled(method, POSTCARD, device)} and method not in fixed
    broken = {tune(machine(table), methods.Exact()).method for table in (CPU, CARD)}
    assert len(broken) == 2, "of exact the step times chooses: its window changes no picture"


@pytest.mark.parametrize(("ms", "window", "passes"), [
    (lambda cells: 5.6 + 0.03 * cells, 96, 72),  # an H200: the widest pass costs little more
    (lambda cells: max(19, 0.39 * cells), 48, 72),  # an RTX 4090
    (lambda cells: 2.6 * cells, 32, 96)])  # an RTX 3060, on which only products count
def test_a_budgets_window_suits_the_card_and_is_chosen_once(ms, window, passes):
    first = StepTimes({1: {cells: ms(cells) for cells in (*CELLS, 32)}})
    here = machine(first, device="cuda", card="a card")
    chosen = tune(here, methods.Rolling()).method
    assert (chosen.window, chosen.most_passes(POSTCARD)) == (window, passes)
    later = replace(here, step_times_of=lambda pictures: CARD)  # timed differently
    assert tune(later, methods.Rolling(), pictures=4).method == chosen
    assert tune(here, methods.Rolling(window=60)).method.window == 60
    # Fast keeps three looks at each cell, whatever the card
    assert tune(here, methods.Rolling(fewer=12.0)).method.window == max(window, 39)


def test_a_card_is_not_judged_by_the_time_of_a_single_width():
    """As it is known after a run that began while nothing could be timed."""
    here = machine(StepTimes({1: {96: 9.0}}), device="cuda", card="a card")
    assert here.cells is None and tune(here, methods.Rolling()).method.window == 96
    assert not here.backbone.estimates.windows.entries


def test_passes_of_wave_follow_its_rows_on_other_grids():
    whole, twice = (expected_passes(as_postcard(MockBackbone(grid)), methods.Wave(), False)
                    for grid in (POSTCARD, Grid(48, 48)))
    assert twice[8] / whole[8] == (9 * 47 + 48) / (9 * 23 + 24)


def test_an_explicit_window_stays():
    assert tune(machine(CPU), methods.Exact(48)).method == methods.Exact(48)
    assert tune(machine(BOUND), methods.Exact(48)).method == methods.Exact(48), "no AR either"


def test_busy_cores_change_neither_a_choice_nor_an_estimate(timed, monkeypatch):
    asked = []
    for free in (1, 2):
        monkeypatch.setattr("ssd_core.engine.threads.running", lambda free=free: 5 - free)
        asked.append([request(timed, kind()).tuning
                      for kind in (methods.Exact, methods.Rolling, methods.SJD, methods.AR)])
    assert asked[0] == asked[1] and asked[0][0].cost.seconds


def test_one_thread_where_more_are_slower_even_on_free_cores():
    slow = StepTimes({1: CPU.ms[1], 2: {cells: 9 * ms for cells, ms in CPU.ms[1].items()}})
    assert tune(machine(slow, 2), methods.AR()).threads == 1


@pytest.mark.parametrize("fewer", [4.0, 8.0, 12.0, 24.0])
def test_a_budget_is_of_quality_and_its_window_has_three_looks_at_a_cell(fewer):
    method = methods.Rolling(fewer=fewer)
    for device in ("cpu", "cuda"):
        window = filled(method, POSTCARD, device).window
        assert window >= 3 * method.least(POSTCARD)
        assert window == {"cpu": 48, "cuda": 96}[device] or fewer == 24.0


def test_ar_takes_the_place_of_exact_where_it_is_quicker():
    decision = tune(machine(BOUND), methods.Exact())
    assert decision.method == methods.AR() and decision.instead.seconds > decision.cost.seconds
    assert decision.note == ("drawn by AR, which is quicker here and draws the same picture: about "
                             f"{tuning.duration(decision.cost.seconds)}, exact "
                             f"{tuning.duration(decision.instead.seconds)}")
    named = tune(machine(BOUND), methods.Exact(), named=True)
    assert isinstance(named.method, methods.Exact) and named.note is None
    assert named.text.endswith("it does not beat AR here")


def test_the_plan_says_it_in_one_line():
    decision = Tuning(methods.Exact(24), Cost(114, 2.6, 1), Cost(576, 1.24, 1))
    assert decision.text == "about 0.3 s: window 24, 114 passes of 2.6 ms; plain AR 0.7 s"
    assert Tuning(methods.AR(), *[Cost(576, 1.24, 1)] * 2).text == (
        "about 0.7 s: 576 passes of 1.2 ms")
    assert Tuning(methods.Exact()).text == ""


def test_without_figures_nothing_is_chosen():
    unknown = Machine(MockBackbone(POSTCARD), lambda pictures: None)
    for method in (methods.Exact(), methods.Rolling(window=48), methods.AR()):
        assert tune(unknown, method) == Tuning(method)
    assert at_once(unknown, methods.Exact(), (1, 8)) is None


@pytest.fixture
def invariant(monkeypatch):
    """A pass gives the same bits at any width, so that batches may be divided."""
    monkeypatch.setattr(MockBackbone, "batch_invariant", True)


def batches(pictures: int) -> StepTimes:
    """A batch of AR costs less than its pictures alone, one of windows does not."""
    each = 0.35 if pictures == 1 else 0.45
    return StepTimes({1: {1: 1.0 + 0.3 * pictures,
                          **{cells: 1.0 + each * cells * pictures for cells in CELLS[1:]}}})


def test_pictures_at_once_or_one_after_the_other(invariant):
    here = Machine(as_postcard(MockBackbone(POSTCARD)), batches)
    batch = at_once(here, methods.Exact(), (1, 8))
    assert batch.pictures == 8 and batch.tuning.method == methods.AR()
    batch = at_once(here, methods.Rolling(), (1, 8))
    assert batch.pictures == 1 and isinstance(batch.tuning.method, methods.Rolling)
    together = tune(here, methods.Rolling(), 8)
    assert sooner_alone(here, methods.Rolling(), together, 8)
    assert not sooner_alone(here, methods.AR(), tune(here, methods.AR(), 8), 8)
    assert at_once(here, methods.Rolling(), (4,)).pictures == 4, "asked for"


def test_where_a_batch_may_round_otherwise_no_timing_divides_it():
    here = Machine(MockBackbone(POSTCARD), batches)
    assert at_once(here, methods.Rolling(), (1, 8)).pictures == 8
    assert not sooner_alone(here, methods.Rolling(), tune(here, methods.Rolling(), 8), 8)


def test_passes_of_another_backbone_are_a_stand_ins_until_it_has_run():
    large = MockBackbone(Grid(48, 48))
    prior = expected_passes(large, methods.Exact(), False)
    own = DrawnPicture(0, "", "", 2 * prior[48], 1.0)
    shares = prior_passes.stand_in()["shares"]["48x48"]
    assert prior[48] == 48 * 48 * shares["exact/48/none"] == expected_passes(
        large, methods.Exact(), True)[48]
    key = f"{large.sha256[:16]}/{large.grid}/exact/48/none"
    large.estimates.pictures.add(key, [own])
    after = expected_passes(large, methods.Exact(), False)
    assert prior[48] < after[48] < own.passes and prior[96] < after[96]
    large.estimates.pictures.add(key, 99 * [own])
    after = expected_passes(large, methods.Exact(), False)
    assert after[48] == own.passes
    assert after[96] == pytest.approx(2 * prior[96])
    assert expected_passes(large, methods.SJD(continuation=False), False) == {}


# In requests


@pytest.fixture
def table(monkeypatch):
    """What this machine's step times are taken to be: `table.now`, which a test may change."""
    table = SimpleNamespace(now=CPU)
    monkeypatch.setattr(tuning, "step_times_of", lambda *_: table.now)
    return table


@pytest.fixture
def timed(table):
    return as_postcard(MockBackbone(Grid(6, 8)))


def request(backbone, method, **options) -> Request:
    return requested(backbone, None, method, Sampling(7), "a sun", **options)


def drawn(asked: Request) -> Result:
    result = Result(asked)
    for event in asked.events():
        result.take(event)
    return result


def test_a_request_has_the_window_and_its_plan_the_line(timed):
    asked = request(timed, methods.Exact())
    assert asked.method.window and asked.plan.tuning == asked.tuning.text != ""
    assert next(asked.events()).plan == asked.plan
    assert asked.recorded == methods.Exact(), "the picture does not depend on it"


def test_faithful_falls_to_ar_with_a_note_and_the_same_picture(timed, table):
    faithful = drawn(request(timed, methods.Exact(), named=True))
    table.now = BOUND
    by_ar = request(timed, methods.Exact(), pictures=2)
    assert by_ar.method == methods.AR() and by_ar.heads is None
    assert any(note.startswith("drawn by AR, which is quicker here") for note in by_ar.notes)
    assert identical_share(drawn(by_ar).tokens[:1], faithful.tokens) == 1


def test_a_stand_ins_passes_do_not_keep_a_model_from_being_measured(table):
    table.now = BOUND
    backbone = MockBackbone(Grid(6, 8))
    first = request(backbone, methods.Exact())
    assert first.plan.stand_in and isinstance(first.method, methods.Exact)
    drawn(first)
    assert request(backbone, methods.Exact()).method == methods.AR(), "which is quicker, as seen"


def test_methods_that_are_compared_stay_what_they_are(timed, table):
    table.now = BOUND
    comparison = compare(timed, "a sun", {"ar": methods.AR(), "exact": methods.Exact()})
    assert [type(result.request.method) for result in comparison.results.values()] == [
        methods.AR, methods.Exact]
    assert isinstance(request(timed, methods.Exact(), fall_back=False).method, methods.Exact)


@pytest.mark.parametrize("method", [methods.Rolling(), methods.SJD()])
def test_a_recipe_restores_a_window_on_another_machine(timed, monkeypatch, method):
    first = drawn(request(timed, method))
    recipe = {**first.recipes()[0], "pixels_sha256": ""}
    assert recipe[method.window_knob] == first.request.method.window is not None
    monkeypatch.setattr("ssd_core.engine.methods.window.CPU_CELLS", 16)  # as another device
    assert request(timed, method).method.window != first.request.method.window
    again = drawn(Request.of_recipe(recipe, timed, None))
    assert torch.equal(again.tokens, first.tokens)


def test_an_old_recipe_without_a_window_has_the_usual_one(timed):
    recipe = drawn(request(timed, methods.Rolling())).recipes()[0]
    recipe["window"] = None
    asked = Request.of_recipe(recipe, timed, None)
    assert asked.method == filled(methods.Rolling(), timed.grid, "cpu")


def test_parts_draw_the_same_pictures(timed, invariant, monkeypatch):
    together = request(timed, methods.Rolling(), pictures=3)
    assert together.parts() == [together]
    monkeypatch.setattr(tuning, "step_times_of", lambda backbone, pictures, *_: batches(pictures))
    alone = request(timed, methods.Rolling(), pictures=3)
    assert alone.alone and alone.method == alone.parts()[0].method
    assert alone.plan.tuning == alone.tuning_text == (
        f"3 pictures one after the other, each {alone.parts()[0].tuning.text}")
    tokens = torch.cat([drawn(part).tokens for part in alone.parts()])
    assert torch.equal(tokens, drawn(alone).tokens)


def test_tops_that_fit_no_picture_are_refused_in_parts_as_at_once(timed, invariant, monkeypatch):
    monkeypatch.setattr(tuning, "step_times_of", lambda backbone, pictures, *_: batches(pictures))
    tops = torch.zeros(2, 6, 8, dtype=torch.long)
    asked = request(timed, methods.Rolling(), pictures=3, keep=tops, keep_rows=2)
    assert asked.alone
    with pytest.raises(SSDError, match="keep"):
        asked.parts()[0].check()


def test_a_wanted_number_of_threads_is_used(timed):
    assert drawn(request(timed, methods.AR(), threads=2)).stats["threads"] == [2]


# Rendering


def test_a_run_is_decided_once_in_its_folder(timed, table, tmp_path, monkeypatch):
    loaded, pictures = LoadedModels(timed), [RenderItem(n, "a sun", f"{n}.png") for n in range(4)]
    exact = methods.Exact()

    def decided(method=exact, existing=True, **options):
        first = request(timed, method, **options)
        how = as_begun(RenderSettings.of(first), first.drawing.method, tmp_path)
        return agreed(tmp_path, how, loaded, lambda: quickest(first, how, (4,)), existing)

    begun = decided(existing=False)
    assert begun[0].drawn_by == methods.Exact(window=begun[0].window) and begun[0].either
    save(draw_tasks(pictures[:1], *begun), loaded, tmp_path, monkeypatch)
    table.now = BOUND
    assert quickest(request(timed, methods.Exact()), begun[0], (4,))[0] != begun[0]
    assert decided() == begun, "whatever a timing would choose now"
    require_same(pictures, begun[0], loaded, tmp_path)
    with pytest.raises(SSDError, match=r"render.json: drawn with method exact, now it is rolling"):
        decided(methods.Rolling(), fall_back=False)
    with pytest.raises(SSDError, match="now it is exact|now it is 9"):
        decided(methods.Exact(window=9), fall_back=False)


def test_a_run_without_pictures_has_not_begun_unless_a_process_draws(timed, tmp_path):
    loaded, how = LoadedModels(timed), RenderSettings(methods.Rolling(), Sampling(1))
    other = replace(how, sampling=Sampling(2))
    assert agreed(tmp_path, how, loaded, lambda: (how, 1), False) == (how, 1)
    assert agreed(tmp_path, other, loaded, lambda: (other, 2), False) == (other, 2)
    with TaskLocks(tmp_path).held("0.png"), pytest.raises(SSDError, match="seed 2, now it is 1"):
        agreed(tmp_path, how, loaded, lambda: (how, 1), False)
    (tmp_path / FILE).write_text("{")
    with pytest.raises(SSDError, match="damaged: remove it"):
        agreed(tmp_path, how, loaded, lambda: (how, 1), False)


def test_a_window_that_pictures_depend_on_is_that_of_the_run(timed, tmp_path, monkeypatch):
    loaded, first = LoadedModels(timed), request(timed, methods.Rolling())
    how = RenderSettings.of(first)
    agreed(tmp_path, how, loaded, lambda: (how, 1), False)
    monkeypatch.setattr("ssd_core.engine.methods.window.CPU_CELLS", 16)  # as another device
    later = request(timed, methods.Rolling())
    assert later.method != first.method
    assert as_begun(RenderSettings.of(later), later.drawing.method, tmp_path).method == first.method
    named = request(timed, methods.Rolling(window=20))
    assert as_begun(RenderSettings.of(named), named.drawing.method, tmp_path).method.window == 20


def save(tasks, loaded, folder, monkeypatch):
    """Draw tasks into a folder, with grey pixels, which the mock does not draw."""
    grey = torch.full((6, 8, 3), 0.5)
    monkeypatch.setattr("ssd_core.runs.batch.render.pixels", lambda _, tokens: [grey] * len(tokens))
    for task in tasks:
        for name, png in task.run(loaded).items():
            (folder / name).write_bytes(png)


def test_the_real_measurement_leads_to_a_choice(monkeypatch, tmp_path):
    """From the clock to the plan, with nothing made up but the backbone."""
    monkeypatch.setenv(kept_files.VARIABLE, str(tmp_path))
    monkeypatch.setattr(step_times, "free_now", lambda most: most)
    backbone = MockBackbone(Grid(6, 8))
    asked = requested(backbone, random_heads(backbone), methods.Exact(), Sampling(1), "a sun")
    assert (asked.tuning.cost and asked.tuning.ar and "plain AR" in asked.tuning.text) or (
        asked.method == methods.AR())
