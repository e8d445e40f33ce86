"""What is filled into a prompt: shown before it is drawn, left open, fixed by pictures."""

from __future__ import annotations

from dataclasses import replace

import pytest

gr = pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.drawings import by_methods, wished  # noqa: E402
from support.solo import PIXELS  # noqa: E402
from support.studio_client import CHINESE, line_of  # noqa: E402

from ssd_core import SSDError  # noqa: E402
from ssd_core.backbones.postcard import Postcard  # noqa: E402
from ssd_core.backbones.postcard.words.expansion import expand  # noqa: E402
from ssd_core.output.recipe import read_recipe  # noqa: E402
from ssd_core.output.words import Words, drawn_words  # noqa: E402
from studio import races, runs  # noqa: E402
from studio.additions import filled, pinned  # noqa: E402
from studio.settings import as_json, asked, of_recipe, request_of  # noqa: E402

HOUSE = wished(prompt="a red house", seed=7)
WHOLE = expand("a red house", None, 7)


@pytest.fixture
def expanding(monkeypatch):
    """The tiny backbones fill in, too; of the words they know only few."""
    monkeypatch.setattr(Postcard, "expand", lambda self, *args: expand(*args))


@pytest.fixture
def backbone(library, expanding):
    return library.current.backbone


@pytest.fixture
def plan(client, expanding):
    """What a plan says is filled in."""
    def filled_in(settings):
        answer = client.post("/api/plan", json={"settings": as_json(settings)})
        return answer.json()["filled"]

    return filled_in


def texts(shown):
    return [chip["text"] for chip in shown["chips"]]


def drawn_from(entry):
    return drawn_words(read_recipe(entry.path))


@pytest.fixture
def parent(services, ended, expanding):
    """A picture whose words its seed filled in."""
    return ended(runs.draw(services.library, services.history, HOUSE)).result.entries[0]


# Settings


def test_additions_stay_open_only_as_long_as_their_prompt_stands():
    own = asked(as_json(replace(HOUSE, open=("sky",), fixed=(Words("a tent", "rain"),))))
    assert own.open == ("sky",) and own.fixed == (Words("a tent", "rain"),)
    other = asked({"prompt": "a red tent"}, own)
    assert (other.open, other.fixed) == ((), ())
    assert asked({"negative": "a boat"}, own).fixed == ()
    assert asked({"negative": "a boat"}, own).open == ("sky",)


@pytest.mark.parametrize(("name", "value"), [
    ("open", "sky"), ("open", [1]), ("open", {}), ("prompt_expanded", 7),
    ("negative_expanded", ["a"])])
def test_what_no_page_wrote_is_refused_in_one_line(name, value):
    with pytest.raises(SSDError, match=f"^{name}[ :]"):
        asked({"prompt": "a", "prompt_expanded": "b", name: value})


def test_a_request_is_filled_in_unless_the_switch_is_off(backbone):
    request = request_of(HOUSE, backbone, None)
    assert request.words[0] == Words(WHOLE.prompt)
    assert request_of(replace(HOUSE, expand=False), backbone, None).words[0] == Words("a red house")
    bare = request_of(replace(HOUSE, open=("sky",)), backbone, None).words[0].prompt
    assert "sky" in WHOLE.prompt and "sky" not in bare


def test_a_recipe_gives_back_its_own_words_where_the_switch_is_off(backbone):
    request = request_of(replace(HOUSE, negative="rain"), backbone, None)
    recipe = {"prompt": HOUSE.prompt, "negative": "rain", "method": "exact", "seed": 3, "cfg": 2.0,
              "size": f"{PIXELS}x{PIXELS}",
              "prompt_expanded": "a lone red house, in the snow", "negative_expanded": "rain"}
    settings = replace(of_recipe(recipe), expand=False)
    again = request_of(settings, backbone, None)
    assert again.words[0] == Words("a lone red house, in the snow", "rain") != request.words[0]


# Plans


def test_additions_are_chips_that_can_be_left_open_or_written_into_the_prompt(plan):
    shown = plan(HOUSE)
    assert texts(shown) == [added.text for added in WHOLE.added]
    assert shown["prompt"] == HOUSE.prompt
    first = shown["chips"][0]
    fewer = plan(replace(HOUSE, open=(first["name"],)))
    assert texts(fewer) == texts(shown)[1:] and fewer["open"] == [first["name"]]
    chip = fewer["chips"][1]
    assert chip["pinned"] == pinned(HOUSE.prompt, WHOLE.added[2])
    after = plan(asked({"prompt": chip["pinned"], "open": fewer["open"]}, HOUSE))
    assert sorted(texts(after)) == sorted(set(texts(fewer)) - {chip["text"]})


def test_a_chinese_page_tells_additions_in_chinese(backbone):
    chips = filled(HOUSE, backbone, chinese=True)["chips"]
    assert [chip["text"] for chip in chips] == [one.chinese for one in WHOLE.added]


def test_nothing_is_shown_of_what_is_drawn_as_typed(client, plan, monkeypatch):
    assert plan(replace(HOUSE, expand=False)) is None
    assert plan(replace(HOUSE, prompt="")) is None
    whole = "one red house on the left, on a lake, hills behind, in the rain, at sunset"
    assert plan(replace(HOUSE, prompt=whole)) is None
    assert client.get("/api/schema").json()["model"]["expands"]
    monkeypatch.undo()
    assert plan(HOUSE) is None and not client.get("/api/schema").json()["model"]["expands"]


def test_what_is_shown_of_a_seed_is_what_is_drawn(plan, finished):
    shown = plan(HOUSE)
    words = finished("/api/draw", settings=as_json(HOUSE))["saved"][0]["words"]
    assert words == WHOLE.prompt and all(text in words for text in texts(shown))
    assert texts(plan(asked({"seed": 8}, HOUSE))) != texts(shown)


def test_negations_are_told_below_the_prompt(client, expanding):
    asked = as_json(replace(HOUSE, prompt="a red house, no trees"))
    notes = client.post("/api/plan", json={"settings": asked}).json()["notes"]
    assert "Moved to the negative prompt: no trees" in [note["text"] for note in notes]


def notes(client, prompt):
    """What a plan says of a prompt."""
    settings = as_json(replace(HOUSE, prompt=prompt))
    return client.post("/api/plan", json={"settings": settings}).json()["notes"]


def test_a_thing_that_cannot_be_drawn_is_asked_about_and_no_other_is_filled_in(client, expanding):
    asked = {"settings": as_json(replace(HOUSE, prompt="a zzxq on the beach, two qxz"))}
    for headers, question in (({}, "cannot draw a zzxq, two qxz. Draw only “on the beach”?"),
                              (CHINESE, "画不出a zzxq，two qxz。只画“on the beach”吗？")):
        answer = client.post("/api/plan", json=asked, headers=headers).json()
        note, = (note for note in answer["notes"] if note["kind"] == "cannot")
        assert note["text"].endswith(question) and note["without"] == "on the beach"
    assert not {"kind", "things"} & {chip["name"] for chip in answer["filled"]["chips"]}
    agreed = notes(client, note["without"])
    assert not {"cannot", "refused"} & {one["kind"] for one in agreed}


def test_what_no_postcard_shows_is_noted_in_the_language_of_the_page(client):
    asked = {"settings": as_json(replace(HOUSE, prompt="four red houses"))}
    for headers, text in (({}, "never draws more than three things"),
                          (CHINESE, "从不画三样以上的东西")):
        answer = client.post("/api/plan", json=asked, headers=headers).json()
        line, = (note["text"] for note in answer["notes"] if note["kind"] == "limit")
        assert line.endswith(text)


def test_of_unknown_words_alone_nothing_is_drawn(client, worker):
    refused, *_, unknown = notes(client, "a zzxq")
    assert (refused["kind"], unknown["kind"]) == ("refused", "unknown")
    assert "cannot draw a zzxq, and the prompt names nothing else" in refused["text"]
    assert (unknown["start"], unknown["end"]) == (2, 6)
    answer = client.post("/api/draw", json={"settings": as_json(replace(HOUSE, prompt="a zzxq"))})
    assert answer.status_code == 400 and "zzxq" in line_of(answer) and not worker._jobs


# Pictures


def test_a_restored_picture_shows_and_draws_its_own_words(client, plan, services, parent, ended):
    values = client.get("/api/restore", params={"id": parent.id}).json()["settings"]
    assert "expand" not in values, "the switch stays as it is"
    for seed, on in ((7, True), (8, True), (7, False)):
        settings = asked({**values, "seed": seed, "expand": on})
        entry, = ended(runs.draw(services.library, services.history, settings)).result.entries
        assert drawn_from(entry) == Words(WHOLE.prompt)
    same, other = (plan(asked({**values, "seed": seed})) for seed in (7, 8))
    assert texts(same) == [added.text for added in WHOLE.added]
    assert other["text"] == WHOLE.prompt and other["chips"] == []


def test_additions_that_a_picture_was_drawn_without_are_known_again(backbone):
    bare = expand("a red house", None, 7, ("sky", "time"))
    shown = filled(replace(HOUSE, fixed=(Words(bare.prompt),)), backbone, chinese=False)
    assert set(shown["open"]) == {"sky", "time"} and len(shown["chips"]) == len(bare.added)


def test_redo_keeps_the_words_of_its_picture_unless_another_prompt_is_typed(
        client, services, parent, ended):
    seen = client.get("/api/look", params={"id": parent.id}).json()
    raw = {**as_json(wished(seed=9)),
           **{name: seen[name] for name in ("prompt", "negative", "prompt_expanded",
                                            "negative_expanded")}}
    for typed, words in (("a red house", WHOLE.prompt),
                         ("a red tent", expand("a red tent", None, 9).prompt)):
        settings = asked({"prompt": typed}, asked(raw))
        work = runs.redo(services.library, services.history, settings, parent.path, 5)
        assert drawn_from(ended(work).result.entries[0]) == Words(words)


def test_redo_keeps_the_words_of_a_picture_without_recipe(services, ended, expanding):
    library, history = services.library, services.history
    parent, = ended(runs.draw(library, history, HOUSE, metadata=False)).result.entries
    for typed, words in (("a red house", WHOLE.prompt),
                         ("a red tent", expand("a red tent", None, 9).prompt)):
        settings = asked({"prompt": typed, "seed": 9}, HOUSE)
        drawn = ended(runs.redo(library, history, settings, parent.path, 5)).result
        assert drawn_from(drawn.entries[0]) == Words(words)


def test_variations_have_the_words_of_their_picture(client, worker, services, parent):
    own = client.get("/api/restore", params={"id": parent.id}).json()["settings"]
    answer = client.post("/api/seeds/start", json={
        "settings": {**own, "seed": "6", "expand": False}, "count": 2, "part": "third",
        "like": parent.id})
    assert all(worker.job(job["id"]).wait(30) for job in answer.json()["jobs"])
    parked = services.parked_seeds._parked.values()
    assert [paused.run.request.words for paused in parked] == [(Words(WHOLE.prompt),)] * 2
    assert len({paused.run.request.seeds[0] for paused in parked}) == 2


def test_each_seed_fills_in_by_itself_and_every_racer_alike(services, ended, expanding):
    library, history = services.library, services.history
    for seed, work in services.parked_seeds.start(HOUSE, 2, owner="me"):
        ended(work)
        *_, last = services.parked_seeds._parked.values()
        assert last.run.request.words[0].prompt == expand("a red house", None, seed).prompt
    raced = ended(races.race(library, history, by_methods(HOUSE, "ar", "exact"))).result
    assert {drawn_from(entry) for entry in raced.entries} == {Words(WHOLE.prompt)}


def test_the_words_of_a_picture_are_told_with_it(client, services, parent, finished):
    facts = client.get(f"/api/history/{parent.id}").json()["facts"]
    assert ["Drawn from", WHOLE.prompt] in facts
    for settings, words in ((HOUSE, WHOLE.prompt), (replace(HOUSE, expand=False), "")):
        job = finished("/api/draw", settings=as_json(settings))
        assert [saved["words"] for saved in job["saved"]] == [words]
