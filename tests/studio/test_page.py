"""The page's handlers without a browser: what they tell for what they are given."""

from inspect import isasyncgenfunction, signature, unwrap
from types import SimpleNamespace

import pytest
import torch
from support.coroutines import result_of

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

import gradio as gr  # noqa: E402

from ssd_core import SSDError  # noqa: E402
from ssd_core.output.recipe import read_recipe  # noqa: E402
from ssd_core.postcards import claims  # noqa: E402
from ssd_core.postcards.aliases import said, without_repeats  # noqa: E402
from studio.downloads import Downloads  # noqa: E402
from studio.models import switch  # noqa: E402
from studio.page import build, switched  # noqa: E402
from studio.plans import about_speed  # noqa: E402
from studio.prompts import CHINESE_EXAMPLES, EXAMPLES  # noqa: E402
from studio.runs import draw, redo  # noqa: E402
from studio.services import Services  # noqa: E402
from studio.settings import STOPS, Settings, from_dict, to_dict  # noqa: E402
from studio.tabs.controls import METHOD_KNOBS, NAMES, at_stop  # noqa: E402
from studio.tabs.guard import guarded  # noqa: E402
from studio.words import TABLE, say  # noqa: E402

SKIP = gr.skip()
ENGLISH = SimpleNamespace(headers={}, session_hash="me")
CHINESE = SimpleNamespace(headers={"accept-language": "zh-CN,zh"}, session_hash="me")


@pytest.fixture
def services(library, history, parked_seeds, worker, tmp_path):
    return Services(worker, library, history, parked_seeds, Downloads(tmp_path))


def owners(demo):
    """The objects whose methods are handlers, by the name of their class."""
    found = {}
    for fn in demo.fns.values():
        owner = getattr(unwrap(fn.fn), "__self__", None)
        found[type(owner).__name__] = owner
    return found


def names(demo):
    return demo.get_api_info()["named_endpoints"]


@pytest.fixture
def demo(services):
    return build(services)


@pytest.fixture
def controls(demo):
    return owners(demo)["Controls"]


@pytest.fixture
def history_tab(demo):
    return owners(demo)["HistoryTab"]


def values(**changed):
    raw = {**to_dict(Settings(prompt="a red house")), **changed}
    return [raw[name] for name in NAMES]


def saved(services, number=1):
    return [services.history.save(torch.zeros(16, 16, 3), None) for _ in range(number)]


# Controls


@pytest.mark.slow
@pytest.mark.parametrize("name, wrong", [
    ("k_h", 0), ("seed", "abc"), ("rounds", None)])
def test_a_number_out_of_range_is_told_by_its_name(controls, name, wrong):
    wrong = values(**{"method": "ssd", name: wrong})
    plan, speed, remembered, _ = controls.tell(ENGLISH, 2, *wrong)
    assert f"{name}" in plan and "problem" in plan
    assert (speed, remembered) == (SKIP, SKIP)


def test_numbers_have_no_limits_that_gradio_would_refuse_them_by(controls):
    numbers = [part for part in controls.parts.values() if isinstance(part, gr.Number)]
    assert numbers and all(part.minimum is None and part.maximum is None for part in numbers)


@pytest.mark.parametrize("stop", range(len(STOPS)))
def test_the_speed_stands_where_its_knobs_are_and_reads_no_others(controls, stop):
    knobs = dict(zip(METHOD_KNOBS, controls.at_speed(stop), strict=True))
    assert {name for name, value in knobs.items() if value != SKIP} == set(STOPS[stop].knobs)
    chosen = {name: value for name, value in knobs.items() if value != SKIP}
    settings = from_dict({**to_dict(Settings.of(k_h=3)), **chosen})
    assert at_stop(settings, (stop + 1) % len(STOPS)) == stop
    assert at_stop(settings, stop) == SKIP, "whoever chooses would lose the choice"


def test_where_no_stop_is_chosen_the_plan_says_so(controls):
    plan, speed, *_ = controls.tell(ENGLISH, 2, *values(method="mtp"))
    assert TABLE["speed_custom"][0].split("'")[0] in plan and speed == SKIP


@pytest.mark.parametrize("dtype, invariant, told", [
    (torch.float32, False, False), (torch.bfloat16, False, True),
    (torch.bfloat16, True, False)])
def test_rounding_is_mentioned_where_it_may_change_the_picture(
        services, monkeypatch, dtype, invariant, told):
    backbone = services.library.current.backbone
    monkeypatch.setattr(type(backbone), "dtype", property(lambda self: dtype))
    monkeypatch.setattr(backbone, "batch_invariant", invariant)
    faithful = Settings.of(**STOPS[1].knobs)
    assert ("Rounding in bf16" in about_speed(faithful, backbone, "en")) is told


def test_a_change_of_knobs_tells_plan_speed_and_what_to_remember(controls):
    plan, speed, remembered, _ = controls.tell(ENGLISH, 1, *values(
        method="ssd", rounds=2, fused_commit=True, acceptance="coupled"))
    assert "passes instead of" in plan and speed == SKIP and remembered["rounds"] == 2
    *_, speed, remembered, _ = controls.tell(ENGLISH, 1, *values(method="ar"))
    assert speed == 0 and remembered["method"] == "ar"


def test_what_only_the_backbone_refuses_is_remembered_all_the_same(controls):
    plan, speed, remembered, _ = controls.tell(ENGLISH, 1, *values(
        method="ssd", k_h=64, rounds=2, fused_commit=True, acceptance="coupled"))
    assert "k_h" in plan and speed == SKIP and remembered["k_h"] == 64


@pytest.mark.parametrize("raw, prompt", [
    (None, CHINESE_EXAMPLES[0]), ({"k_h": "no number"}, CHINESE_EXAMPLES[0]),
    (to_dict(Settings(prompt="a red house")), "a red house")])
def test_a_chinese_page_begins_with_its_last_settings_else_with_a_chinese_example(
        controls, raw, prompt):
    shown = dict(zip(NAMES, controls.last_settings(raw, CHINESE), strict=True))
    assert shown["prompt"] == prompt
    assert (shown["k_h"] == SKIP) is (prompt in CHINESE_EXAMPLES)


def test_the_dice_and_the_examples_speak_the_language_of_the_page(controls):
    for english, chinese in zip(EXAMPLES, CHINESE_EXAMPLES, strict=True):
        meant = " ".join(without_repeats(word for one in said(chinese) for word in one.words))
        assert claims(meant) == claims(english)
    for request, asciis in ((ENGLISH, True), (CHINESE, False)):
        texts = [controls.fresh_prompt(request), controls.example(3, request)]
        assert [text.isascii() for text in texts] == [asciis, asciis]


@pytest.mark.parametrize("raw, wanted", [
    ([True, False], [True, False]), (None, [SKIP, SKIP]), ([True], [SKIP, SKIP]),
    (["yes", True], [SKIP, SKIP])])
def test_lock_and_png_switch_are_remembered_by_themselves(raw, wanted):
    assert switched(raw) == wanted


# Endpoints


def test_every_parameter_of_an_endpoint_has_a_name(demo):
    told = {name: [one["parameter_name"] for one in info["parameters"]]
            for name, info in names(demo).items()}
    assert told["/plan"] == ["speed", *NAMES]
    assert told["/draw"] == ["locked", "metadata", *NAMES]
    assert not [name for parts in told.values() for name in parts if name.startswith("param_")]


def test_others_can_neither_switch_download_nor_delete(services, demo):
    shared = build(Services(**{**vars(services), "local": False}))
    mine, theirs = ({getattr(fn.fn, "__qualname__", "") for fn in page.fns.values()}
                    for page in (demo, shared))
    assert mine - theirs == {"HistoryTab.ask", "HistoryTab.remove", "Backbones.load",
                             "Backbones.about", "Backbones.get_quote", "Backbones.download",
                             "Backbones.cancelled", "Backbones.resume", "HistoryTab.settled"}
    assert "/use_backbone" in names(demo) and "/use_backbone" not in names(shared)
    visit = owners(shared)["Visit"]
    assert "Nothing leaves" not in visit.head_line(ENGLISH)
    assert "Nothing leaves" in owners(demo)["Visit"].head_line(ENGLISH)


def test_another_backbone_is_told_whatever_the_knobs_hold(services, controls):
    now = switch(services.library, "bare", "auto")
    assert (now.name, now.heads, now.problem) == ("bare", False, None)
    told = dict(zip(NAMES, controls.adopted(now.preset, now.sizes), strict=True))
    kept = {name for name, value in told.items() if value == SKIP}
    assert {"prompt", "seed", "method"} <= kept
    assert (told["rounds"], told["cfg"], told["size"]["value"]) == (now.preset.rounds, -1, "")


# History


def test_a_page_that_opens_after_a_switch_shows_the_model_in_use(services, demo):
    tab, first = owners(demo)["Backbones"], services.library.current.name
    other = {"tiny": "bare", "bare": "tiny"}[first]
    switch(services.library, other, "auto")
    model, size, expand = tab.in_use()
    assert expand["visible"] is False, "this one fills in nothing"
    assert model["value"] == other and {first, other} <= set(model["choices"])
    sizes = [f"{width}x{height}" for width, height in services.library.current.backbone.sizes]
    assert [text for _, text in size["choices"][1:]] == sizes


def test_only_a_model_whose_size_was_asked_for_is_downloaded(services, demo, monkeypatch):
    tab = owners(demo)["Backbones"]

    async def first(updates):
        return await anext(updates)

    *_, quoted = tab.about("Janus-Pro-1B-hf", ENGLISH)
    assert quoted is None
    monkeypatch.setattr(services.downloads, "start", lambda name: pytest.fail("nothing was asked"))
    told = result_of(first(tab.download(quoted, ENGLISH)))
    assert "Check size and licence" in told[0] and told[1] == gr.update(interactive=False)


def test_at_first_nothing_is_selected_in_the_list(services, history_tab):
    entries = saved(services, 2)
    _, gallery, ids, _, selected, delete, spare, sure, details, _ = history_tab.show(
        24, "", False, ENGLISH)
    assert set(ids) == {entry.id for entry in entries} and len(gallery["value"]) == 2
    assert selected is None and "<img" not in details and delete["visible"]
    assert say("en", "history_pick") in details, "it says what a click does"
    assert not spare["visible"] and not sure["visible"]
    assert all(path.endswith(".jpg") for path, _ in gallery["value"]), "thumbnails, not whole PNGs"


def test_a_picture_stays_selected_while_it_is_in_the_list(services, history_tab):
    entry, other = saved(services, 2)

    def shown(search, selected):
        return history_tab.keep(24, search, False, selected, ENGLISH)[4:-1:4]

    ids = history_tab.keep(24, "", False, None, ENGLISH)[2]
    gallery = history_tab.keep(24, "", False, entry.id, ENGLISH)[1]
    assert gallery["selected_index"] == ids.index(entry.id)
    selected, details = shown("", entry.id)
    assert selected == entry.id and f"/studio/picture/{entry.id}" in details
    selected, details = shown("a zebra", entry.id)
    assert selected is None and say("en", "history_pick") in details
    history_tab.remove(entry.id, ENGLISH)
    assert shown("", entry.id)[0] is None and shown("", other.id)[0] == other.id


def test_a_picture_is_deleted_only_after_its_name_was_asked_for(services, history_tab):
    entry, other = saved(services, 2)
    told, delete, spare, sure = history_tab.ask(entry.id, ENGLISH)
    assert sure["value"] == f"Delete {entry.path.name}?" and entry.path.exists()
    assert (delete["visible"], spare["visible"], sure["visible"]) == (False, True, True)
    selected, delete, spare, sure, *_ = history_tab.chosen(other.id, "en")
    assert selected == other.id and not sure["visible"], "another picture asks anew"
    assert entry.path.name in history_tab.remove(entry.id, ENGLISH)
    assert not entry.path.exists() and other.path.exists()
    assert "no such picture" in history_tab.remove(entry.id, ENGLISH)


def test_restoring_locks_the_seed_and_tells_of_rows_from_elsewhere(
        services, history_tab, ended, settings):
    library, history = services.library, services.history
    first = ended(draw(library, history, settings)).result.entries[0]
    again = ended(redo(library, history, settings, first.path, 2)).result.entries[0]
    assert read_recipe(again.path)["keep_rows"] == 2
    told, lock, *knobs = history_tab.restore_selected(first.id, ENGLISH)
    assert lock is True and knobs[NAMES.index("seed")] == "7" and "came from" not in told
    told, lock, *_ = history_tab.restore_selected(again.id, ENGLISH)
    assert lock is True and "first 2 rows came from another picture" in told
    told, lock, *_ = history_tab.restore_selected(None, ENGLISH)
    assert lock == SKIP


# Whatever goes wrong


@pytest.mark.parametrize("wrong", [{"prompt": "a \ud800 house"}, {"negative": "\udc00"}])
def test_half_a_character_is_refused_in_one_line_that_can_be_sent(controls, wrong):
    *_, note = controls.tell(ENGLISH, 2, *values(**wrong))
    assert "half of one" in note and next(iter(wrong)) in note
    note.encode()


def test_nothing_selected_is_told_without_an_error(history_tab):
    told, tabs, *shown = history_tab.to_redo(None, "", "", ENGLISH)
    assert "Select a picture first" in told and tabs == SKIP and set(map(str, shown)) == {str(SKIP)}


class Handlers:
    """One of each kind, all of which fail."""

    def plain(self, error, request: gr.Request):
        raise error

    async def waited(self, error, request: gr.Request):
        raise error

    async def step_by_step(self, error, request: gr.Request):
        yield 1
        raise error


@pytest.mark.parametrize("kind", ["plain", "waited", "step_by_step"])
@pytest.mark.parametrize("error, line, logged", [
    (SSDError("seed 'x': must be <b>"), "seed &#x27;x&#x27;: must be &lt;b&gt;", False),
    (KeyError("keep_rows"), "an error in this program: KeyError", True)])
def test_a_handler_that_fails_says_one_line(services, worker, caplog, kind, error, line, logged):
    handler = guarded(getattr(Handlers(), kind), services)
    assert list(signature(handler).parameters) == ["error", "request"]
    assert isasyncgenfunction(handler) is (kind == "step_by_step")

    async def call():
        if kind == "step_by_step":
            return [one async for one in handler(error, None)]
        return await handler(error, None) if kind == "waited" else handler(error, None)

    with pytest.raises(gr.Error) as caught:
        result_of(call())
    assert line in caught.value.message and not caught.value.print_exception
    assert ("Traceback" in caplog.text, worker.last_error is not None) == (logged, logged)


def test_every_handler_of_the_page_is_guarded(demo):
    assert all(hasattr(fn.fn, "__wrapped__") for fn in demo.fns.values() if fn.fn)
