"""Laws of every method on every kind of backbone: what is filled, counted, repeated, and equal."""

from functools import cache

import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.every_method import one_of_each
from support.joint import SMALL, drawn, in_turn, joint, p_value
from support.mock_backbone import MockBackbone, events, random_heads, tiny_postcard, tokens

from ssd_core import FinalRows, Finished, Grid, Pass, Sampling, Started, methods, plan
from ssd_core.backbones.base import Preset
from ssd_core.engine import accept, decode
from ssd_core.engine.methods import METHODS
from ssd_core.engine.state import DecodeState

WORDS = ("sun", "a red house", "ox")  # of different length, and different from the empty prompt
UNDER_TEST = {
    "ar": methods.AR(),
    "mtp": methods.MTP(k_h=3),
    "mtp-draft-only": methods.MTP(k_h=2, rounds=0),
    "ssd": methods.SSD(k_h=3, k_v=1, rounds=2),
    "ssd-draft-only": methods.SSD(k_h=3, k_v=3, rounds=0),
    "ssd-joint": methods.SSD(k_h=3, k_v=2, rounds=3),
    "ssd-staged": methods.SSD(k_h=3, k_v=3, rounds=2, incremental=2),
    "ssd-coupled": methods.SSD(k_h=3, k_v=2, rounds=2, acceptance="coupled"),
    "ssd-coupled-staged": methods.SSD(k_h=2, k_v=2, rounds=2, incremental=1, acceptance="coupled"),
    "ssd-fused": methods.SSD(k_h=3, k_v=1, rounds=2, fused_commit=True),
    "ssd-fused-staged": methods.SSD(k_h=3, k_v=2, rounds=2, incremental=1, fused_commit=True),
    "ssd-argmax": methods.SSD(k_h=3, k_v=1, rounds=1, draft_choice="argmax"),
    "strict-horizontal": methods.Strict(k_h=3),
    "strict-vertical": methods.Strict("vertical", k_h=4),
    "rows": methods.Rows(k_h=3, k_v=1, rounds=2),
    "rows-copy-coupled": methods.Rows(k_h=3, k_v=2, rounds=2, draft="copy", acceptance="coupled"),
    "exact": methods.Exact(),
    "exact-3": methods.Exact(window=3),
    "rolling-9": methods.Rolling(budget=9),
    "ssd-row": methods.SSD(k_v=2, rounds=1, drafter="row", fused_commit=True),
    "exact-row": methods.Exact(3, "row"),
    "rolling-3": methods.Rolling(window=3, budget=200),
    "jacobi-2": methods.Jacobi(window=2),
    "hawk-tree": methods.Hawk(4, 2, 1, 2, 14),
    "hawk-vertical": methods.Hawk(3, 0, 2, 1, 9),
    "hawk-shallow": methods.Hawk(5, 1, 1, 3, 2),
    "lantern-tree": methods.Lantern(4, 2, 1, 1, 14, similar=4, delta=0.4),
    "sjd-random": methods.SJD(3, "random", continuation=False),
    "sjd-left": methods.SJD(init="repeat-left"),
    "mulo": methods.MuLo(tau=0.1, similar=2),
    "mulo-far": methods.MuLo(tau=0.12, similar=1, radius=2),
    "sjd-tree": methods.SJD(3, tree_width=2),
    "gsd-3": methods.GSD(3, group=2, probability_distance=0.5),
    "wave-zipar": methods.Wave(2, 1),
    "wave-adaptive": methods.Wave(3, 1, adaptive=True),
    "wave-coupled": methods.Wave(2, 3),
    "wave-residual": methods.Wave(1, 4, "residual"),
    "wave-residual-adaptive": methods.Wave(2, 2, "residual", adaptive=True),
    "wave-at-once": methods.Wave(3, 2, "none"),
}
EACH = {method.name: method for method in one_of_each()}
UNDER_TEST |= {name: method for name, method in EACH.items()
               if name not in {one.name for one in UNDER_TEST.values()}}
# The first variant of every method: it stands for the others where a subject adds little.
FIRST = {method.name: name for name, method in reversed(UNDER_TEST.items())}.values()
SUBJECTS = {"plain": 1.0, "guided": 3.0, "row-end": 1.0, "row-end-guided": 2.5, "postcard": 2.0}
every_method = pytest.mark.parametrize("name", UNDER_TEST)


@cache
def loaded(subject: str):
    """(backbone, heads) of a subject."""
    if subject == "postcard":
        backbone = tiny_postcard(grid=Grid(10, 12))
    else:
        backbone = MockBackbone(Grid(5, 6, subject.startswith("row-end")), codes=12)
    return backbone, random_heads(backbone, row=True)


@cache
def run(subject: str, name: str, seed: int = 7, prompts: tuple = WORDS) -> tuple:
    backbone, heads = loaded(subject)
    prompts = prompts[:1] if subject == "postcard" else prompts
    return tuple(events(backbone, UNDER_TEST[name], prompts, heads=heads,
                        sampling=Sampling(seed=seed, cfg=SUBJECTS[subject])))


def kinds(told, kind: type) -> list:
    return [event for event in told if isinstance(event, kind)]


# Every variant where rows end with a token and guidance mixes branches, and where neither is so.
PAIRS = [(subject, name) for subject in SUBJECTS for name in UNDER_TEST
         if name in FIRST or subject in ("plain", "row-end-guided")]
every_pair = pytest.mark.parametrize("subject, name", PAIRS)
small_pair = pytest.mark.parametrize("subject, name", [
    pair for pair in PAIRS if pair[0] != "postcard"])


def test_every_method_is_under_test():
    assert {method.name for method in UNDER_TEST.values()} == set(METHODS)
    assert all(METHODS[name].name == name for name in METHODS)


@every_pair
@pytest.mark.by_day(28)
def test_a_run_tells_final_rows_its_passes_and_no_more_than_planned(subject, name):
    told, (backbone, _) = run(subject, name), loaded(subject)
    assert isinstance(told[0], Started) and isinstance(told[-1], Finished)
    assert len(kinds(told, Started)) == len(kinds(told, Finished)) == 1
    rows_are_told_once_in_order_and_are_final(told, backbone)
    passes_are_counted_and_described(told, backbone)
    passes_are_as_planned(told, plan(backbone, UNDER_TEST[name], heads=True))


def rows_are_told_once_in_order_and_are_final(told, backbone):
    picture, seen = told[-1].tokens, 0
    for rows in kinds(told, FinalRows):
        assert rows.first == seen < rows.last
        assert rows.tokens.equal(picture[:, rows.first : rows.last])
        seen = rows.last
    assert seen == backbone.grid.rows
    assert picture.shape[1:] == (backbone.grid.rows, backbone.grid.columns)
    assert picture.dtype == torch.int64
    assert (picture >= 0).all() and (picture < backbone.codes).all()


def passes_are_counted_and_described(told, backbone):
    passes, grid = kinds(told, Pass), backbone.grid
    assert [p.index for p in passes] == list(range(1, len(passes) + 1))
    assert told[-1].stats["passes"] == len(passes)
    assert passes[0].stage == "prefill" and {p.stage for p in passes[1:]} <= {
        "commit", "horizontal", "vertical", "staged", "verify"}
    for p in passes[1:]:
        assert p.cells.shape == (*p.tokens.shape, 2) and p.tokens.shape[1] > 0
        assert (p.cells[..., 0] < grid.rows).all() and (p.cells[..., 1] < grid.width).all()
        ends = p.cells[..., 1] == grid.columns
        assert p.tokens[ends].eq(backbone.codes).all() and p.tokens[~ends].lt(backbone.codes).all()
        assert p.accepted is None or p.accepted.shape == p.tokens.shape


def a_row_stood(p: Pass) -> bool:
    """Whether all that a pass judged of some row was right, which may spare a later pass."""
    if p.accepted is None:
        return False
    rows = p.cells[0, :, 0]
    return any(p.accepted[:, rows == row].all() for row in rows.unique())


def passes_are_as_planned(told, planned):
    """Exactly so while no round ended early, and never more."""
    assert told[0].plan == planned
    passes = told[-1].stats["passes"]
    assert 1 <= passes <= planned.passes_max
    if planned.passes is not None:
        assert planned.passes == planned.passes_max
        converged = any(map(a_row_stood, kinds(told, Pass)))
        assert passes == planned.passes or (converged and passes < planned.passes)


SCHEDULED = [name for name, method in UNDER_TEST.items()
             if plan(Grid(4, 4), method).passes is not None]


RULES = ("residual", "coupled")


def never(tokens, *rest):
    """A verification that repairs every token but the forced ones, whose code 0 is certain."""
    certain = rest[len(rest) // 4][..., 0] == 1  # p: second of residual's, first of coupled's
    other = torch.where(certain, tokens, 1 - tokens.clamp(max=1))
    return accept.AcceptResult(other, certain)


SMALL_COUNT = st.integers(0, 3)
BLOCKS = {"k_h": st.integers(1, 4), "k_v": st.integers(1, 3), "rounds": SMALL_COUNT,
          "incremental": SMALL_COUNT, "acceptance": st.sampled_from(["residual", "coupled"]),
          "fused_commit": st.booleans()}
SMALL_GRIDS = st.builds(Grid, st.integers(1, 4), st.integers(1, 4), st.booleans())
LEGAL = st.fixed_dictionaries(BLOCKS).filter(lambda one: one["rounds"] or not one["fused_commit"])
SCHEDULES = st.one_of(
    LEGAL.map(lambda knobs: methods.SSD(**knobs)), LEGAL.map(lambda knobs: methods.Rows(**knobs)),
    st.builds(methods.MTP, k_h=st.integers(1, 4), rounds=SMALL_COUNT), st.just(methods.AR()),
    st.builds(methods.Wave, st.integers(1, 5), st.integers(1, 4), st.just("none")),
    st.builds(methods.Wave, st.integers(1, 5), st.just(1)))


@given(SMALL_GRIDS, SCHEDULES, st.integers(0, 3))
@example(Grid(4, 1), methods.SSD(1, 2, 0, 1), 0)
def test_planned_passes_are_those_of_the_run_on_every_small_grid(grid, method, kept):
    assume(kept < grid.rows)
    backbone = MockBackbone(grid, hidden=8)
    with pytest.MonkeyPatch.context() as patch:
        for rule in RULES:
            patch.setattr(accept, rule, never)
        told = events(backbone, method, heads=random_heads(backbone, row=True),
                      keep=torch.zeros(1, grid.rows, grid.columns, dtype=torch.long),
                      keep_rows=kept)
    assert told[-1].stats["passes"] == told[0].plan.passes


@pytest.mark.parametrize("name", SCHEDULED)
@pytest.mark.by_day(7)
def test_planned_passes_are_taken_when_nothing_converges(name, monkeypatch):
    """Every round replaces every token, so that none ends early."""
    for rule in RULES:
        monkeypatch.setattr(accept, rule, never)
    for grid in (Grid(4, 6), Grid(4, 6, True), Grid(1, 5), Grid(5, 1), Grid(5, 2, True)):
        backbone, heads = bare(grid)
        told = events(backbone, UNDER_TEST[name], WORDS, heads=heads)
        assert told[-1].stats["passes"] == plan(backbone, UNDER_TEST[name]).passes, str(grid)


LONE = {f"ends-in-a-lone-cell-{k_h}": methods.SSD(k_h, 1, 1, fused_commit=True) for k_h in (2, 4)}
HOLDING = {**UNDER_TEST, **LONE, "rows-fused": methods.Rows(2, 2, 1, fused_commit=True)}


HELD = (Grid(3, 16), Grid(3, 7), Grid(4, 4, True), Grid(3, 1), Grid(2, 1, True), Grid(1, 6))


@cache
def bare(grid: Grid):
    """(backbone, heads) of a grid."""
    backbone = MockBackbone(grid)
    return backbone, random_heads(backbone, row=True)


@pytest.fixture
def poisoned(monkeypatch):
    """From now on a state that was never written is no number. The check for overflow is off: it
    may look at such a state, but draws nothing from it."""
    monkeypatch.setattr(decode, "require_finite", lambda *_: None)
    allocate = DecodeState.__init__

    def poison(state, *args, **named):
        allocate(state, *args, **named)
        state.hidden.fill_(torch.nan)

    return lambda: monkeypatch.setattr(DecodeState, "__init__", poison)


@pytest.mark.parametrize("name", HOLDING)
@pytest.mark.by_day(10)
def test_nothing_is_drawn_from_a_state_that_no_pass_has_written(name, poisoned):
    """The first variant of a method on every grid, each other one on every third, by turns."""
    turn = list(HOLDING).index(name)
    grids = HELD if name in FIRST or name in LONE else HELD[turn % 3 :: 3]

    def drawn():
        return [tokens(backbone, HOLDING[name], WORDS, heads=heads)
                for backbone, heads in map(bare, grids)]

    clean = drawn()
    poisoned()
    for grid, one, other in zip(grids, clean, drawn(), strict=True):
        assert one.equal(other), str(grid)


@every_method
@pytest.mark.by_day(14)
def test_same_seed_same_picture_and_another_seed_another(name):
    first = run("plain", name)[-1]  # as other tests draw it
    again = run.__wrapped__("plain", name)[-1]
    assert first.tokens.equal(again.tokens) and first.stats["passes"] == again.stats["passes"]
    assert not first.tokens.equal(run("plain", name, seed=8)[-1].tokens)


@small_pair
@pytest.mark.by_day(20)
def test_picture_of_a_batch_equals_its_solo_run(subject, name):
    """The last picture, of the shortest prompt; for the first variant of a method all of them."""
    batch = run(subject, name)[-1].tokens
    for i, prompt in enumerate(WORDS):
        if i < 2 and name not in FIRST:
            continue
        solo = run(subject, name, 7 + i, (prompt,))[-1].tokens
        assert batch[i].equal(solo[0]), f"picture {i}"


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.by_day(7)
def test_seeds_of_a_batch_start_again_behind_the_last_one(name):
    batch = run("row-end-guided", name, 2**64 - 2)[-1].tokens
    assert batch[2].equal(run("row-end-guided", name, 0, WORDS[2:])[-1].tokens[0])


@small_pair
@pytest.mark.by_day(20)
def test_kept_rows_stand_and_the_rest_continues(subject, name):
    backbone, heads = loaded(subject)
    kept = run(subject, "ar")[-1].tokens
    for keep_rows in (1, 3, 4) if name in FIRST else (3,):
        told = events(backbone, UNDER_TEST[name], WORDS, heads=heads, keep=kept,
                      keep_rows=keep_rows, sampling=Sampling(seed=99, cfg=SUBJECTS[subject]))
        picture = told[-1].tokens
        assert picture[:, :keep_rows].equal(kept[:, :keep_rows]), keep_rows
        assert not picture[:, keep_rows:].equal(kept[:, keep_rows:]), keep_rows
        final = kinds(told, FinalRows)
        assert final[0].first == 0 and final[-1].last == backbone.grid.rows
        assert told[-1].stats["passes"] <= told[0].plan.passes_max


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s != "postcard"])
@pytest.mark.parametrize("name", ["ar", "exact", "exact-3", "jacobi-2"])
@pytest.mark.by_day(5)
def test_keeping_ones_own_rows_continues_as_before(subject, name):
    """The noise of a cell does not depend on the rows being kept."""
    backbone, heads = loaded(subject)
    whole = run(subject, name)[-1].tokens
    for keep_rows in range(1, backbone.grid.rows):
        again = tokens(backbone, UNDER_TEST[name], WORDS, heads=heads, keep=whole,
                       keep_rows=keep_rows, sampling=Sampling(seed=7, cfg=SUBJECTS[subject]))
        assert again.equal(whole)


# AR's picture, token for token


@cache
def scene(row_end: bool):
    """A grid of at least 50 slots; its heads."""
    backbone = MockBackbone(Grid(6, 9, row_end), codes=16, seed=3)
    return backbone, random_heads(backbone, row=True)


PEOPLE = ("cat", "a dog", "two red birds", "ox", "cat", "fly")


@cache
def ar_picture(row_end: bool, sampling: Sampling) -> torch.Tensor:
    return tokens(scene(row_end)[0], methods.AR(), PEOPLE, sampling=sampling)


@pytest.mark.parametrize("row_end", [False, True])
@pytest.mark.parametrize("window, cfg", [
    (1, 3.0), (5, 1.0), (5, 3.0), (24, 3.0), (50, 1.0), (None, 1.0), (None, 3.0)])
@pytest.mark.parametrize("kind, with_heads", [
    (methods.Exact, False), (methods.Exact, True), (methods.Jacobi, False)])
@pytest.mark.by_day(9)
def test_exact_and_jacobi_are_ar(row_end, cfg, window, kind, with_heads):
    backbone, heads = scene(row_end)
    sampling = Sampling(seed=1000, cfg=cfg)
    told = events(backbone, kind(window), PEOPLE, sampling=sampling,
                  heads=heads if with_heads else None)
    assert told[-1].tokens.equal(ar_picture(row_end, sampling))
    assert told[-1].stats["passes"] <= told[0].plan.passes_max


@pytest.mark.parametrize("sampling", [
    Sampling(seed=5, top_k=3), Sampling(seed=5, top_p=0.8), Sampling(seed=5, min_p=0.5),
    Sampling(seed=2**64 - 3),
    Sampling(seed=5, temperature=0.5, cfg=2.0), Sampling(seed=5, temperature=0),
    Sampling(seed=5, temperature=1.5, top_k=8, top_p=0.9, cfg=4.0)], ids=str)
@pytest.mark.parametrize("row_end, runs", [
    (False, [(methods.Exact(), False), (methods.Exact(window=7), True), (methods.Jacobi(7), True)]),
    (True, [(methods.Exact(), True), (methods.Exact(window=7), False), (methods.Jacobi(7), False)]),
], ids=["row_end=False", "row_end=True"])
@pytest.mark.by_day(7)
def test_exact_and_jacobi_are_ar_under_every_filter(row_end, runs, sampling):
    backbone, heads = scene(row_end)
    for method, drafts in runs:
        assert tokens(backbone, method, PEOPLE, heads=heads if drafts else None,
                      sampling=sampling).equal(ar_picture(row_end, sampling))


@pytest.mark.parametrize("window", [4, 12, 50])
def test_jacobi_takes_fewer_passes_than_ar_and_no_fewer_than_exact(window):
    backbone, _ = scene(False)
    sampling = Sampling(seed=4, temperature=0.2)
    ar, jacobi, exact = (
        events(backbone, method, ("cat",), sampling=sampling)[-1].stats["passes"]
        for method in (methods.AR(), methods.Jacobi(window), methods.Exact(window)))
    assert ar > jacobi >= exact


@pytest.mark.parametrize("keep_rows", [1, 2, 5])
def test_exact_continues_kept_rows_as_ar_does(keep_rows):
    backbone, heads = scene(True)
    options = {"keep": ar_picture(True, Sampling(seed=1)), "keep_rows": keep_rows,
               "sampling": Sampling(seed=77, cfg=2.0)}
    expected = tokens(backbone, methods.AR(), PEOPLE, **options)
    for method in (methods.Exact(), methods.Exact(window=5), methods.Jacobi(window=20)):
        assert tokens(backbone, method, PEOPLE, heads=heads, **options).equal(expected)
        assert tokens(backbone, method, PEOPLE, **options).equal(expected)


def test_exact_on_the_smallest_grids():
    for grid in (Grid(1, 1), Grid(1, 4), Grid(4, 1), Grid(1, 1, True), Grid(2, 1, True)):
        backbone = MockBackbone(grid, codes=5)
        expected = tokens(backbone, methods.AR(), PEOPLE)
        assert tokens(backbone, methods.Exact(), PEOPLE).equal(expected)
        assert tokens(backbone, methods.Exact(1), PEOPLE).equal(expected)
        assert tokens(backbone, methods.Jacobi(), PEOPLE).equal(expected)


CONVERGING = {
    "k_v-1": {"k_v": 1, "rounds": 9},
    "k_v-1-more": {"k_v": 1, "rounds": 30},
    "k_h-long": {"k_h": 5, "k_v": 1, "rounds": 9},
    "fused": {"k_v": 1, "rounds": 9, "fused_commit": True},
    "fused-more": {"k_v": 1, "rounds": 18, "fused_commit": True},
    "joint": {"k_v": 2, "rounds": 18},
    "staged": {"k_v": 2, "rounds": 9, "incremental": 9},
    "staged-three": {"k_v": 3, "rounds": 9, "incremental": 9},
    "fused-staged": {"k_v": 2, "rounds": 18, "incremental": 9, "fused_commit": True},
}


@pytest.mark.parametrize("row_end", [False, True])
@pytest.mark.parametrize("knobs", CONVERGING)
@pytest.mark.parametrize("kind", [methods.SSD, methods.Rows])
@pytest.mark.by_day(10)
def test_coupled_rounds_to_convergence_are_ar(row_end, knobs, kind):
    backbone, heads = scene(row_end)
    method = kind(**{"k_h": 3, "acceptance": "coupled", **CONVERGING[knobs]})
    sampling = Sampling(seed=2000 if row_end else 1000, cfg=3.0)
    told = events(backbone, method, PEOPLE, heads=heads, sampling=sampling)
    assert told[-1].tokens.equal(ar_picture(row_end, sampling))
    assert told[-1].stats["passes"] <= told[0].plan.passes
    assert method.resolve(backbone.preset).guarantee_on(backbone.grid) == "same distribution"


@pytest.mark.parametrize("drafts, row_end", [("horizontal", False), ("vertical", True)])
def test_strict_at_temperature_0_is_ar(row_end, drafts):
    backbone, heads = scene(row_end)
    for k_h, cfg in ((1, 3.0), (3, 1.0), (5, 3.0)):
        sampling = Sampling(seed=4, cfg=cfg, temperature=0)
        told = events(backbone, methods.Strict(drafts, k_h), PEOPLE, heads=heads,
                      sampling=sampling)
        assert told[-1].tokens.equal(ar_picture(row_end, sampling))
        assert told[-1].stats["passes"] <= told[0].plan.passes_max


def test_perfect_drafts_need_few_passes():
    """A head that knows the answer is believed: constant codes, drafted and accepted as a block."""
    backbone = MockBackbone(Grid(4, 6), codes=4)
    backbone.head.zero_()  # every code equally likely wherever one looks: q = p
    heads = random_heads(backbone, row=True)
    told = events(backbone, methods.Strict(k_h=5), heads=heads)
    assert told[-1].stats["passes"] == 1 + 4  # prefill, then six more cells a pass
    assert told[-1].stats["acceptance"] == {"verify/1": 1.0}
    coupled = methods.SSD(k_h=5, k_v=1, rounds=6, acceptance="coupled")
    told = events(backbone, coupled, heads=heads)
    assert told[-1].stats["passes"] == 1 + 4  # one round a row, which is the commit as well
    assert told[-1].tokens.equal(tokens(backbone, methods.AR()))


# Strict has AR's distribution: the joint of a whole small picture, enumerated


ROUNDS_ENOUGH = [  # for every draft, so that the last round of each is behind final tokens
    methods.MTP(k_h=2, rounds=2), methods.SSD(k_h=1, k_v=1, rounds=3),
    methods.SSD(k_h=1, k_v=2, rounds=3, incremental=3, drafter="row"),
    methods.Rows(k_h=1, k_v=1, rounds=3, draft="copy", fused_commit=True)]
TOO_FEW = [
    methods.MTP(k_h=2, rounds=1), methods.SSD(k_h=1, k_v=1, rounds=1),
    methods.SSD(k_h=2, k_v=1, rounds=3),
    methods.SSD(k_h=1, k_v=1, rounds=3, draft_choice="argmax")]


@in_turn([methods.AR(), methods.Exact(), methods.Strict(k_h=3), methods.Strict("vertical", k_h=2),
          *ROUNDS_ENOUGH])
def test_lossless_methods_have_the_joint_distribution(small, method):
    grid, codes, sampling = SMALL[small]
    backbone = MockBackbone(grid, codes, seed=4)
    counts = drawn(backbone, method, sampling, 8_192)
    assert p_value(counts, joint(backbone, Sampling(**sampling))) > 1e-4
    assert method.resolve(backbone.preset).guarantee_on(grid) != "approximate"


@pytest.mark.parametrize("method", TOO_FEW, ids=str)
def test_approximate_methods_do_not(method):
    """Proof that the test above can tell them apart."""
    backbone = MockBackbone(Grid(2, 3), 3, seed=4)
    assert p_value(drawn(backbone, method, {}, 8_192), joint(backbone, Sampling())) < 1e-4
    assert method.resolve(backbone.preset).guarantee_on(backbone.grid) == "approximate"


# Every knob is live


@cache
def outcome(method):
    backbone, heads = scene(False)
    finished = events(backbone, method, heads=heads)[-1]
    return finished.tokens.tolist(), finished.stats["passes"], finished.stats["acceptance"]


SSD_KNOBS = {"k_h": (3, 2), "k_v": (1, 2), "rounds": (1, 3), "acceptance": ("residual", "coupled"),
             "draft_choice": ("sample", "argmax"), "draft_temperature": (1.0, 0.5),
             "fused_commit": (False, True), "drafter": ("heads", "row")}


@pytest.mark.parametrize("knob", SSD_KNOBS)
def test_knobs_of_ssd_are_live(knob):
    base = {name: values[0] for name, values in SSD_KNOBS.items()}
    before, after = (outcome(methods.SSD(**{**base, knob: value})) for value in SSD_KNOBS[knob])
    assert before[0] != after[0]
    if knob in ("k_h", "k_v", "rounds", "fused_commit"):
        assert before[1] != after[1]


@pytest.mark.parametrize("one, other", [
    (methods.SSD(3, 2, 2, 0), methods.SSD(3, 2, 2, 1)),
    (methods.MTP(k_h=3), methods.MTP(k_h=2)),
    (methods.MTP(k_h=3, rounds=1), methods.MTP(k_h=3, rounds=2)),
    (methods.Strict(k_h=3), methods.Strict(k_h=2)),
    (methods.Strict("horizontal", k_h=3), methods.Strict("vertical", k_h=3)),
    (methods.GSD(6), methods.GSD(6, group=2)),
    (methods.GSD(6), methods.GSD(6, probability_distance=0.01)),
    (methods.GSD(6), methods.GSD(6, code_distance=9)),
    (methods.Hawk(3), methods.Hawk(2)),
    (methods.Hawk(3), methods.Hawk(3, horizontal_width=2)),
    (methods.Hawk(3), methods.Hawk(3, vertical_width=0)),
    (methods.Hawk(3), methods.Hawk(3, vertical_depth=2)),
    (methods.Hawk(3), methods.Hawk(3, candidates=4)),
    (methods.Rows(3, 1, 2), methods.Rows(2, 1, 2)),
    (methods.Rows(3, 1, 2), methods.Rows(3, 2, 2)),
    (methods.Rows(3, 1, 2), methods.Rows(3, 1, 1)),
    (methods.Rows(3, 2, 2, 1), methods.Rows(3, 2, 2, 2)),
    (methods.Rows(3, 1, 2), methods.Rows(3, 1, 2, draft="copy")),
    (methods.Rows(3, 1, 2), methods.Rows(3, 1, 2, acceptance="coupled")),
    (methods.Rows(3, 1, 2), methods.Rows(3, 1, 2, fused_commit=True)),
    (methods.Rolling(fewer=4), methods.Rolling(fewer=7)),
    (methods.Rolling(fewer=4), methods.Rolling(fewer=4, drafter="row")),
    (methods.Wave(2, 3), methods.Wave(3, 3)),
    (methods.Wave(2, 3), methods.Wave(2, 2)),
    (methods.Wave(2, 3), methods.Wave(2, 3, "residual")),
    (methods.Wave(2, 3), methods.Wave(2, 3, "none")),
    (methods.Wave(2, 1), methods.Wave(2, 1, adaptive=True))], ids=str)
def test_knobs_of_the_other_methods_are_live(one, other):
    assert outcome(one)[0] != outcome(other)[0]


def test_window_of_exact_changes_passes_alone():
    narrow, wide = outcome(methods.Exact(window=1)), outcome(methods.Exact(window=9))
    assert narrow[0] == wide[0] and narrow[1] == 54 > wide[1]


def test_heads_change_the_passes_of_exact():
    backbone, heads = scene(False)
    with_heads, without = (events(backbone, methods.Exact(9), PEOPLE, heads=h)[-1].stats
                           for h in (heads, None))
    assert with_heads["acceptance"] != without["acceptance"]


SAMPLED = [
    {"sampling": Sampling(seed=2, cfg=3.0)}, {"sampling": Sampling(seed=1, cfg=1.0)},
    {"sampling": Sampling(seed=1, cfg=6.0)}, {"sampling": Sampling(seed=1, cfg=3, temperature=3)},
    {"sampling": Sampling(seed=1, cfg=3, top_k=2)}, {"sampling": Sampling(seed=1, cfg=3, top_p=.3)},
    {"sampling": Sampling(seed=1, cfg=3, min_p=.6)},
    {"negative": "rain"}, {"prompts": ("a moon",)}]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.by_day(5)
def test_sampling_knobs_are_live_in_every_method(name):
    backbone, heads = loaded("guided")

    def picture(prompts=("a sun",), **options):
        return tokens(backbone, EACH[name], prompts, heads=heads, **options).tolist()

    base = {"sampling": Sampling(seed=1, cfg=3.0)}
    plain = picture(**base)
    assert [change for change in SAMPLED if picture(**{**base, **change}) == plain] == []


def test_presets_fill_in_what_is_not_said():
    backbone, _ = scene(False)
    other = Preset(9, 9, 9, 9)
    assert methods.SSD().resolve(backbone.preset) == methods.SSD(3, 1, 2, 0).resolve(other)
    assert methods.Strict().resolve(backbone.preset).k_h == 3
    lumina = methods.PAPER_PRESETS["Lumina-mGPT"]
    assert methods.SSD().resolve(lumina) == methods.SSD(5, 2, 5, 4).resolve(other)
    assert methods.SSD(rounds=9).resolve(lumina) == methods.SSD(5, 2, 9, 0).resolve(other)
