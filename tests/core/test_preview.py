"""The preview's messages: shape, order, pixels, budget; on the mock backbone and on postcard."""

from __future__ import annotations

import base64
import io
import json
from collections import defaultdict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.every_method import one_of_each
from support.mock_backbone import MockBackbone, random_heads, tiny_postcard
from support.requests import requested

from ssd_core import Grid, Sampling, generate, load_backbone, load_heads, methods
from ssd_core.backbones.estimates import Estimates
from ssd_core.engine.events import FinalRows, Pass, Started
from ssd_core.engine.region import Region
from ssd_core.output import preview as preview_module
from ssd_core.output.palette import Palette, cell_means, palette, scattered
from ssd_core.output.preview import CellMarks, Preview
from ssd_core.output.recipe import to_bytes
from ssd_core.runs.live import LiveRun
from ssd_core.runs.scheduling import timed

METHODS = one_of_each(k_v=2)
NO_STATS = {"passes": 1, "ar_passes": 1, "step_acceleration": 1.0, "seconds": {"total": 1.0},
            "tokens_per_second": 1.0, "acceptance": {}}
ENVELOPE = {"version", "node", "run", "panel", "kind"}
FIELDS = {
    "started": {"label", "rows", "columns", "width", "height", "pictures", "method", "guarantee",
                "passes", "passes_max", "ar_passes", "first_row", "notes"},
    "pass": {"index", "stage", "round", "seconds", "tokens_per_second", "acceptance", "row",
             "first", "marks"},
    "rows": {"first", "last", "top", "strips", "refined", "index", "seconds",
             "tokens_per_second"},
    "cells": {"first", "last", "top", "strips"},
    "finished": {"passes", "ar_passes", "step_acceleration", "seconds", "tokens_per_second",
                 "acceptance", "guarantee", "identical"},
    "cancelled": {"reason"}}


class Painter(MockBackbone):
    """Every code is a shade of grey, two pixels a cell."""

    def __init__(self, grid: Grid, **options) -> None:
        super().__init__(grid, **options)
        self.sizes = ((2 * grid.columns, 2 * grid.rows),)

    def decode(self, tokens: torch.Tensor) -> torch.Tensor:
        grey = tokens.float() / (self.codes - 1)
        return grey.repeat_interleave(2, 1).repeat_interleave(2, 2)[..., None].expand(
            -1, -1, -1, 3)


@pytest.fixture(autouse=True)
def unlimited(request, monkeypatch):
    """All messages, whatever they cost, unless the test is about the budget."""
    if "budget" not in request.node.name:
        monkeypatch.setattr(preview_module, "BUDGET", 1e6)


def told(backbone, method, prompts=("sun",), heads=None, keep=None, keep_rows=0, **options):
    """(messages, Finished) of a run that was previewed to its end."""
    method, messages = method.resolve(backbone.preset), []
    screen = Preview(backbone, method, messages.append, label="x", pictures=len(prompts),
                     keep=keep, keep_rows=keep_rows, **options)
    run = generate(backbone, prompts, method, heads, keep=keep, keep_rows=keep_rows)
    for seconds, event in timed(run):
        screen(event, seconds)
    screen.finish(event.stats)
    return messages, event


def pixels(strip: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(strip))))


@pytest.fixture(params=METHODS, ids=lambda m: m.name)
def story(request):
    backbone = Painter(Grid(4, 5, True))
    return backbone, *told(backbone, request.param, ("sun", "a boat"), random_heads(backbone),
                           node="12:5", panel=1)


def test_every_message_has_its_fields_and_is_json(story):
    _, messages, _ = story
    for message in messages:
        own = set(json.loads(json.dumps(message, allow_nan=False)))
        assert own == ENVELOPE | FIELDS[message["kind"]], message["kind"]
    assert {(m["version"], m["node"], m["panel"]) for m in messages} == {(1, "12:5", 1)}
    assert len({m["run"] for m in messages}) == 1


def test_notes_are_told_at_the_start():
    messages, _ = told(Painter(Grid(4, 5)), METHODS[0], notes=("no heads", "unknown: sea"))
    assert messages[0]["notes"] == ["no heads", "unknown: sea"]


def test_a_story_begins_goes_on_and_ends(story):
    _, messages, finished = story
    kinds = [m["kind"] for m in messages]
    assert kinds[0] == "started" and kinds[-1] == "finished"
    assert kinds.count("started") == kinds.count("finished") == 1
    passes = [m["index"] for m in messages if m["kind"] == "pass"]
    assert passes == list(range(1, finished.stats["passes"] + 1))


def test_strips_put_together_are_the_picture(story):
    backbone, messages, finished = story
    width, height = backbone.sizes[0]
    canvas = np.zeros((2, height, width, 3), np.uint8)
    for message in (m for m in messages if m["kind"] == "rows"):
        for n, strip in enumerate(message["strips"]):
            band = pixels(strip)
            assert band.shape == (2 * (message["last"] - message["first"]), width, 3)
            canvas[n, message["top"] : message["top"] + len(band)] = band
    expected = (backbone.decode(finished.tokens) * 255).round().byte().numpy()
    assert np.array_equal(canvas, expected)


def test_marks_tell_the_cells_from_first_on(story):
    backbone, messages, _ = story
    for message in (m for m in messages if m["kind"] == "pass"):
        firsts = message["first"] if isinstance(message["first"], list) else [message["first"]] * 2
        for first, marks in zip(firsts, message["marks"], strict=True):
            assert set(marks) <= set("ardc.")
            assert first + len(marks) <= backbone.grid.cells


def test_ar_commits_cell_by_cell():
    messages, _ = told(Painter(Grid(2, 3)), methods.AR())
    seen = [(m["first"], m["marks"]) for m in messages if m["kind"] == "pass"]
    assert seen == [(0, [""]), *((cell, ["c"]) for cell in range(5))]


def test_rows_in_flight_are_marked_and_painted_as_a_diagonal():
    backbone, marks = Painter(Grid(6, 8), codes=16), np.full(48, ".")
    messages, finished = told(backbone, methods.Wave(2, 1))
    begun = messages[: [m["kind"] for m in messages].index("rows")]
    for message in begun:
        if message["kind"] == "pass":
            line = np.array(list(message["marks"][0]))
            touched = np.flatnonzero(line != ".")
            marks[message["first"] + touched] = line[touched]
    assert ["".join(row) for row in marks.reshape(6, 8)] == [
        "ccccccc.", "ccccc...", "ccc.....", "c.......", "........", "........"]
    cells = [m for m in begun if m["kind"] == "cells"][-1]
    strip = pixels(cells["strips"][0])
    assert (cells["first"], cells["last"], cells["top"]) == (0, 4, 0)
    assert (strip[..., 3] > 0).sum(1).tolist() == [7, 5, 3, 1]
    shades = (finished.tokens[0, :4] / 15 * 255).round().byte().numpy()
    assert np.array_equal(strip[..., 0][strip[..., 3] > 0], shades[strip[..., 3] > 0])


def test_cells_are_painted_only_where_several_rows_are_in_flight():
    for method, several in ((methods.AR(), False), (methods.SSD(), False),
                            (methods.Wave(9, 1), False), (methods.Wave(2, 3), True)):
        messages, _ = told(Painter(Grid(4, 5)), method, heads=random_heads(Painter(Grid(4, 5))))
        assert any(m["kind"] == "cells" for m in messages) == several


def test_a_repaired_cell_reads_r_and_a_guess_behind_a_windows_front_d():
    backbone = Painter(Grid(4, 5))
    letters = {}
    for method in (methods.SSD(), methods.Exact()):
        messages, _ = told(backbone, method, heads=random_heads(backbone))
        letters[method.name] = {c for m in messages if m["kind"] == "pass" and
                                m["stage"] != "commit" for c in m["marks"][0]}
    assert "r" in letters["ssd"] and letters["exact"] <= {"a", "c", "d"}


def test_a_commit_does_not_hide_what_became_of_a_draft():
    backbone = Painter(Grid(5, 6))
    messages, _ = told(backbone, methods.SSD(rounds=2), heads=random_heads(backbone))
    cells = ["d"] * 30
    for message in messages:
        if message["kind"] == "pass":
            first, marks = message["first"], message["marks"][0]
            cells[first : first + len(marks)] = marks
    for row in range(1, 5):  # a row's first cell is chosen, the others are drafted
        assert set(cells[6 * row + 1 : 6 * row + 6]) <= {"a", "r"}, cells


def test_a_pass_without_cells_changes_no_mark():
    """As an edit has it, which feeds the words without a thing what they missed."""
    marks, none = CellMarks(1, Grid(2, 2)), torch.zeros(1, 0, 2, dtype=torch.long)
    marks.note(Pass(1, "commit", 0, none, none[..., 0], None))
    assert marks.to_message() == {"first": 0, "marks": [""]}


def test_cells_that_were_only_fed_again_are_not_counted_as_accepted():
    backbone = Painter(Grid(4, 5))
    method = methods.SSD(rounds=1, fused_commit=True)
    messages, finished = told(backbone, method, heads=random_heads(backbone))
    shares = [m["acceptance"] for m in messages
              if m["kind"] == "pass" and m["stage"] == "vertical"]
    assert np.mean(shares) == pytest.approx(finished.stats["acceptance"]["vertical/1"], abs=1e-6)


def test_the_acceptance_shown_on_the_way_is_the_one_shown_at_the_end(story):
    _, messages, finished = story
    told_shares = defaultdict(list)
    for message in messages:
        if message["kind"] == "pass" and message["acceptance"] is not None:
            told_shares[f"{message['stage']}/{message['round']}"].append(message["acceptance"])
    counted = finished.stats["acceptance"]
    assert told_shares.keys() == counted.keys()
    for key, shares in told_shares.items():
        # Later rounds leave out what has settled at a block's start; the statistics count it.
        within = 1e-6 if key.endswith("/1") else 0.05
        assert np.mean(shares) == pytest.approx(counted[key], abs=within), key


def test_rows_are_decoded_on_request_if_that_is_brief_enough():
    backbone, messages = Painter(Grid(4, 5)), []
    method = methods.AR()
    screen = Preview(backbone, method, messages.append, label="x")
    for event in generate(backbone, "sun", method):
        screen(event, 0.0)
        if screen.row == 2:
            break
    before, screen.row_seconds = len(messages), 2.0
    screen.refine(1.0)
    assert len(messages) == before
    screen.refine()
    last = messages[-1]
    assert (last["kind"], last["first"], last["last"], last["refined"]) == ("rows", 0, 2, True)
    assert not screen.over


def test_what_was_not_told_on_the_way_is_told_at_the_end(monkeypatch):
    monkeypatch.setattr(preview_module, "BUDGET", 0)
    backbone = Painter(Grid(4, 5))
    messages, _ = told(backbone, methods.SSD(), heads=random_heads(backbone))
    last = [m for m in messages if m["kind"] == "pass"][-1]
    assert last["first"] == 0 and len(last["marks"][0]) == 20


def test_passes_not_told_are_told_later_with_the_next():
    backbone, messages = Painter(Grid(2, 4)), []
    method = methods.AR()
    screen = Preview(backbone, method, messages.append, label="x")
    for n, event in enumerate(generate(backbone, "sun", method)):
        screen(event, 0.0 if n < 5 else 1.0)
    first = next(m for m in messages if m["kind"] == "pass")
    assert first["first"] == 0 and len(first["marks"][0]) > 1 and set(first["marks"][0]) == {"c"}


@pytest.mark.parametrize("passes", [0, 1, 2])
def test_passes_without_a_cell_mark_none(passes):
    """As a first pass of an edit by words, which judges its beginning alone."""
    marks = CellMarks(2, Grid(3, 4))
    for n in range(passes):
        none = torch.zeros(2, 0, dtype=torch.int64)
        marks.note(Pass(n, "verify", 0, torch.zeros(2, 0, 2, dtype=torch.int64), none, none.bool()))
    assert marks.to_message() == {"first": 0, "marks": ["", ""]}


def test_kept_rows_are_painted_at_once():
    backbone = Painter(Grid(4, 5))
    keep = torch.randint(0, 8, (1, 4, 5), generator=torch.Generator().manual_seed(0))
    messages, finished = told(backbone, methods.AR(), keep=keep, keep_rows=2)
    assert messages[0]["first_row"] == 2
    kept = messages[1]
    assert kept["kind"] == "rows" and kept["known"] and (kept["first"], kept["last"]) == (0, 2)
    assert np.array_equal(pixels(kept["strips"][0])[::2, ::2, 0],
                          (keep[0, :2] / 7 * 255).round().byte().numpy())
    assert finished.tokens.shape == (1, 4, 5)


class Weaver(Painter):
    """Like Painter, with a black pixel in the corner of every cell, which no palette has."""

    def decode(self, tokens: torch.Tensor) -> torch.Tensor:
        pictures = super().decode(tokens).clone()
        pictures[:, ::2, ::2] = 0
        return pictures


@pytest.mark.parametrize(("quick", "offload", "decoded"), [
    (True, False, True), (False, False, False), (True, True, False)])
def test_kept_rows_look_as_they_did_if_decoding_is_quick(monkeypatch, quick, offload, decoded):
    backbone = Weaver(Grid(4, 5))
    backbone.offloader = object() if offload else None
    monkeypatch.setattr(preview_module, "KEPT_SECONDS", 1e9 if quick else -1)
    method, messages = methods.AR(), []
    screen = Preview(backbone, method, messages.append, label="x", keep_rows=2,
                     keep=torch.full((1, 4, 5), 7))
    screen(Started(method.plan(Region.below(backbone.grid, 2))), 0.0)
    kept = messages[1]
    assert kept["known"] and kept["refined"] is decoded and kept["last"] == 2
    strip = pixels(kept["strips"][0])
    assert (strip[::2, ::2] == 0).all() if decoded else (strip > 0).all()
    assert screen.telling == 0, "showing kept rows takes nothing from the messages that follow"


def test_finished_pictures_are_painted_last_and_share_decides_the_guarantee():
    backbone, messages = Painter(Grid(2, 3)), []
    method = methods.Exact().resolve(backbone.preset)
    screen = Preview(backbone, method, messages.append, label="x")
    for seconds, event in timed(generate(backbone, "sun", method)):
        screen(event, seconds)
    screen.finish(event.stats, torch.ones(1, 4, 6, 3), identical=1.0)
    assert messages[-2]["refined"] and pixels(messages[-2]["strips"][0]).min() == 255
    assert messages[-1]["guarantee"] == "identical" and messages[-1]["identical"] == 1.0


def test_nothing_is_told_after_the_end():
    backbone, messages = Painter(Grid(2, 3)), []
    screen = Preview(backbone, methods.AR(), messages.append, label="x")
    screen.cancel("interrupted")
    screen.cancel("failed")
    assert [m["kind"] for m in messages] == ["cancelled"]
    messages, _ = told(backbone, methods.AR())
    assert messages[-1]["kind"] == "finished"


@pytest.mark.parametrize("method", [methods.AR(), methods.SSD()], ids=lambda m: m.name)
@pytest.mark.nightly
def test_the_budget_is_kept_on_postcard(method):
    """3 % of the run, plus the one message that may overrun it."""
    backbone = load_backbone("postcard")
    heads = load_heads("postcard", backbone) if method.uses_heads else None
    screen = Preview(backbone, method := method.resolve(backbone.preset), [].append, label="x")
    longest = 0.0
    for seconds, event in timed(generate(backbone, "a red house", method, heads, Sampling(7))):
        before = screen.spent
        screen(event, seconds)
        longest = max(longest, screen.spent - before)
    assert screen.spent <= 0.03 * seconds + longest
    assert screen.shown > 0


# Palette


SHADES = np.repeat(np.round(np.arange(8) / 7 * 255).astype(np.uint8)[:, None], 3, 1)


def test_a_palette_has_every_codes_own_colour():
    backbone = Painter(Grid(4, 5))
    assert np.array_equal(palette(backbone).of(np.arange(8)), SHADES)
    assert palette(backbone) is palette(backbone)


class Counting(Painter):
    """Counts the rows that it decodes."""

    rows = 0

    def decode(self, tokens: torch.Tensor) -> torch.Tensor:
        self.rows += len(tokens) * tokens.shape[1]
        return super().decode(tokens)


def test_no_picture_waits_for_its_palette():
    backbone = Counting(Grid(24, 24), codes=4096)
    palette(backbone)
    assert 0 < backbone.rows <= 4


def test_colours_of_unseen_codes_are_expected_from_their_vectors():
    backbone = Painter(Grid(1, 2), codes=64)
    with torch.no_grad():
        backbone.picture_codec.codebook.copy_(torch.arange(64.0)[:, None])
    made = palette(backbone)
    assert 0 < np.count_nonzero(made.cells) < 16
    off = made.of(np.arange(64))[:, 0] / 255 - np.arange(64) / 63
    assert np.abs(off).max() < 0.05


def test_a_palette_learns_from_pictures_and_is_kept_by_the_models_hash(tmp_path):
    def loaded(name):
        backbone = Counting(Grid(6, 6), codes=64)
        backbone.estimates, backbone.sha256 = Estimates.stored_in(tmp_path), name * 8
        return backbone

    backbone, wanted = loaded("a"), (np.arange(64) / 63 * 255).round()
    before = np.abs(palette(backbone).of(np.arange(64))[:, 0] - wanted).mean()
    tokens = torch.arange(36).view(1, 6, 6)
    screen = Preview(backbone, methods.AR(), [].append, label="x")
    screen.tokens[:] = tokens.numpy()
    screen.row = 6
    screen.finish(NO_STATS, backbone.decode(tokens))
    learned = palette(backbone).of(np.arange(64))
    assert np.abs(learned[:36, 0] - wanted[:36]).max() <= 1
    assert np.abs(learned[:, 0] - wanted).mean() < before
    assert np.array_equal(palette(loaded("a")).of(np.arange(64)), learned)
    assert not np.array_equal(palette(loaded("b")).of(np.arange(64)), learned)


@pytest.mark.parametrize("junk", [b"", b"PK\3\4", b"not an archive"])
def test_an_unreadable_palette_counts_as_none(tmp_path, junk):
    backbone = Painter(Grid(4, 5))
    backbone.estimates = Estimates.stored_in(tmp_path)
    (tmp_path / f"palette-{backbone.sha256[:16]}.npz").write_bytes(junk)
    assert np.array_equal(Palette(backbone).of(np.arange(8)), SHADES)


@given(codes=st.integers(1, 5000), columns=st.integers(1, 90))
def test_scattered_codes_are_codes_and_all_differ_if_there_are_enough(codes, columns):
    cells = scattered(2, 2, columns, codes).ravel()
    assert cells.min() >= 0 and cells.max() < codes
    assert len(set(cells)) == min(codes, len(cells))


@pytest.fixture(scope="module")
def postcard():
    return load_backbone("postcard", device="cpu")


@pytest.fixture(scope="module")
def house(postcard):
    """Tokens [1, R, C] of a picture, and its pixels at the small size."""
    *_, finished = generate(postcard, "a red house", methods.Rows())
    return finished.tokens, postcard.smallest.decode(finished.tokens)[0].numpy()


def test_the_codec_itself_tells_postcards_colours(postcard, house):
    tokens, picture = house[0][0].numpy(), house[1]
    real = cell_means(picture, *tokens.shape) * 255
    off = np.abs(palette(postcard).of(tokens) - real).mean()
    shuffled = np.abs(palette(postcard).of(tokens.T) - real).mean()
    assert off < 6 and off < 0.3 * shuffled


def test_a_glance_at_postcards_picture_is_near_it(postcard, house):
    tokens, picture = house
    glance = postcard.glance(tokens)[0].numpy()
    assert np.abs(glance - picture).mean() * 255 < 5
    patches = postcard.picture_codec.patches(postcard.picture_codec.quantised(tokens), tokens)
    raw = torch.nn.functional.pixel_shuffle(patches, 16).permute(0, 2, 3, 1)[0].numpy() / 2 + 0.5
    steps = [np.abs(each[16::16] - each[15:-1:16]).mean() for each in (raw, glance, picture)]
    assert steps[1] < 0.6 * steps[0], steps  # seams that the picture does not have


def test_rows_of_postcard_are_sharp_as_they_come(postcard, monkeypatch):
    """In no more time than the budget allows, and without a decode on the way."""
    monkeypatch.setattr(type(postcard), "decode", None)
    messages = []
    method = methods.Rows().resolve(postcard.preset)
    screen = Preview(postcard, method, messages.append, label="x")
    for seconds, event in timed(generate(postcard, "a red house", method)):
        screen(event, seconds)
    rows = [message for message in messages if message["kind"] == "rows"]
    assert rows and all(message["refined"] for message in rows) and rows[-1]["last"] == 24
    assert {pixels(message["strips"][0]).shape[1] for message in rows} == {384}


# Strips


def test_a_strip_is_decoded_with_its_neighbours_and_no_more(monkeypatch):
    backbone = Counting(Grid(24, 5))
    screen = Preview(backbone, methods.AR(), [].append, label="x")
    screen.tokens[:] = np.arange(120).reshape(24, 5) % 8
    screen.row, backbone.rows = 10, 0
    strip, = screen.decoded(7, 10)
    assert backbone.rows == 3 + preview_module.ABOVE + preview_module.BELOW
    whole = (backbone.decode(torch.from_numpy(screen.tokens))[0] * 255).round().byte().numpy()
    assert np.array_equal(strip, whole[14:20])


def test_the_budget_of_a_large_model_is_kept_palette_included(monkeypatch):
    """A decoder that takes 10 ms a row, in a run of 10 s."""
    clock, backbone = Clock(), Counting(Grid(24, 4))
    monkeypatch.setattr("time.thread_time", lambda: clock.now)
    real = Counting.decode
    monkeypatch.setattr(Counting, "decode", lambda self, tokens: (
        clock.take(0.01 * tokens.shape[1]), real(self, tokens))[1])
    screen = Preview(backbone, methods.AR(), [].append, label="x")
    for row in range(24):
        tokens = torch.zeros(1, 1, 4, dtype=torch.long)
        screen(FinalRows(row, row + 1, tokens), 10 * (row + 1) / 24)
    assert screen.refined > 0 and screen.spent <= 0.03 * 10
    assert backbone.rows * 0.01 <= 0.03 * 10


class Clock:
    now = 0.0

    def take(self, seconds: float) -> None:
        self.now += seconds


# Two sizes


def test_rows_are_drawn_at_the_small_size_and_the_finished_picture_at_its_own():
    model, sent = tiny_postcard(grid=Grid(6, 7), twice=True), []
    run = LiveRun(requested(model, None, methods.AR(), Sampling(seed=2), "a red house"),
                  send=sent.append)
    for _ in run:
        pass
    during = list(sent)
    picture, = (each.pixels for each in run.result.pictures())
    run.finish(picture[None])
    width, height = model.size
    assert (sent[0]["width"], sent[0]["height"]) == (width, height) == (224, 192)
    strips = [(message, pixels(message["strips"][0])) for message in during if "strips" in message]
    assert all(message["top"] == 32 * message["first"] for message, _ in strips)
    refined = [(message, strip) for message, strip in strips if message["kind"] == "rows"]
    assert {strip.shape[1] for _, strip in refined} == {width // 2}
    assert all(len(strip) == 16 * (message["last"] - message["first"])
               for message, strip in refined)
    small = to_bytes(model.smallest.glance(run.result.tokens)[0])
    last, strip = refined[-1]
    assert last["last"] == 6 and np.array_equal(strip, small[16 * last["first"] :])
    whole, = (pixels(message["strips"][0]) for message in sent[len(during):] if "strips" in message)
    assert np.array_equal(whole, to_bytes(picture)) and whole.shape == (height, width, 3)


def test_a_stopped_run_and_kept_rows_are_shown_at_the_size_of_the_picture():
    model, sent = tiny_postcard(grid=Grid(6, 7), twice=True), []
    kept = torch.arange(42).view(1, 6, 7) % model.codes
    run = LiveRun(requested(model, None, methods.AR(), Sampling(seed=2), "a red house", keep=kept,
                            keep_rows=2), send=sent.append)
    for event in run:
        if isinstance(event, FinalRows) and event.last == 4:
            run.finish(None)
            break
    shown = [pixels(message["strips"][0]).shape for message in sent if message["kind"] == "rows"]
    assert shown[0] == (64, 224, 3) and shown[-1] == (128, 224, 3)


def test_the_palette_is_that_of_the_small_size():
    model = tiny_postcard(grid=Grid(6, 7), twice=True)
    colours = palette(model).colours
    assert palette(model.smallest).colours is colours
    assert np.array_equal(Palette(model.smallest).colours, colours)
