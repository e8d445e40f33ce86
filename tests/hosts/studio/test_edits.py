"""Edits: cells of a saved picture are redrawn in place; steps, plans, repeating, restoring."""

from __future__ import annotations

import pytest
import torch

from ssd_core.engine.edits import look
from ssd_core.output.packed import pack_mask, unpack_mask
from ssd_core.output.recipe import read_recipe, recipe_tokens

HOUSE = {"prompt": "a red house", "seed": "7", "expand": False}


@pytest.fixture
def parent(finished):
    return finished("/api/draw", settings=HOUSE)["saved"][0]["id"]


@pytest.fixture
def known(library):
    """All cells but a few in the middle."""
    grid = library.current.backbone.grid
    mask = torch.ones(grid.rows, grid.columns, dtype=torch.bool)
    mask[5:8, 4:9] = False
    return mask


@pytest.fixture
def edited(finished, parent, known):
    """Edit the parent; the job."""
    def run(mask=known, **settings):
        return finished("/api/edit", settings={
            **HOUSE, "seed": "9", "parent": parent, "keep_mask": pack_mask(mask), **settings})

    return run


def tokens(services, id_):
    return recipe_tokens(read_recipe(services.history.folder / id_))


def line_of(answer):
    assert answer.status_code == 400
    return answer.json()["error"]


def test_only_open_cells_are_redrawn_and_the_recipe_tells(services, parent, edited, known):
    job = edited()
    id_ = job["saved"][0]["id"]
    old, new = tokens(services, parent), tokens(services, id_)
    assert old[known].equal(new[known]) and not old.equal(new)
    recipe = read_recipe(services.history.folder / id_)
    assert recipe["source"] == parent and unpack_mask(recipe["keep_mask"]).equal(known)
    assert job["kind"] == "edit" and job["settings"]["parent"] == parent


def test_an_edit_is_repeated_and_restored_as_it_was(client, worker, services, parent, edited):
    job = edited(pictures=2)
    first, second = (tokens(services, saved["id"]) for saved in job["saved"])
    assert not first.equal(second)
    again = client.post(f"/api/jobs/{job['id']}/repeat", json={"same": True}).json()
    assert worker.job(again["id"]).wait(30)
    saved = client.get(f"/api/jobs/{again['id']}").json()["saved"]
    assert tokens(services, saved[1]["id"]).equal(second)
    restored = client.get("/api/restore", params={"id": saved[1]["id"]}).json()["settings"]
    assert restored["parent"] == parent
    assert restored["keep_mask"] == job["settings"]["keep_mask"]
    services.history.delete(parent)
    restored = client.get("/api/restore", params={"id": saved[1]["id"]}).json()["settings"]
    assert restored["parent"] == saved[1]["id"], "what stays is the same in the picture itself"


def test_rows_at_the_top_are_kept_as_by_a_redo(services, finished, parent, edited, known):
    mask = torch.zeros_like(known)
    mask[:5] = True
    job = edited(mask)
    redone = finished("/api/redo", settings={**HOUSE, "seed": "9"}, source=parent, rows=5)
    ids = [each["saved"][0]["id"] for each in (job, redone)]
    assert tokens(services, ids[0]).equal(tokens(services, ids[1]))
    assert read_recipe(services.history.folder / ids[0])["keep_rows"] == 5


def test_steps_are_the_family_of_a_picture(client, finished, parent, edited):
    first = edited()["saved"][0]["id"]
    branch = edited(seed="10")["saved"][0]["id"]
    then = edited(parent=first, seed="11")["saved"][0]["id"]
    finished("/api/draw", settings={**HOUSE, "seed": "12"})
    steps = client.get("/api/steps", params={"id": then}).json()["entries"]
    assert [(step["id"], step["source"]) for step in steps] == [
        (parent, None), (first, parent), (branch, parent), (then, first)]


def test_a_plan_counts_the_open_cells_alone(client, parent, known):
    whole, edit = (client.post("/api/plan", json={"settings": {**HOUSE, **more}}).json()
                   for more in ({}, {"parent": parent, "keep_mask": pack_mask(known)}))
    assert edit["plan"]["ar_passes"] < whole["plan"]["ar_passes"]


def test_what_cannot_be_edited_is_refused_in_a_line(client, parent, known):
    def refused(**settings):
        return line_of(client.post("/api/edit", json={"settings": {**HOUSE, **settings}}))

    packed = pack_mask(known)
    assert refused(keep_mask=packed).startswith("parent: missing")
    assert refused(parent=parent).startswith("keep_mask: missing")
    assert "no such picture" in refused(parent="gone.png", keep_mask=packed)
    assert refused(parent=parent, keep_mask={"shape": [3]}).startswith("keep_mask: cannot be read")
    assert "do not fit a picture" in refused(parent=parent, keep_mask=pack_mask(known[:5]))
    everything = pack_mask(torch.ones_like(known))
    assert "every cell is kept" in refused(parent=parent, keep_mask=everything)


def test_words_alone_edit_a_picture_and_a_map_tells_where(client, services, finished, parent):
    words = {**HOUSE, "prompt": "a blue boat", "seed": "9", "parent": parent,
             "old_prompt": HOUSE["prompt"], "method": "rolling"}
    shares = client.post("/api/change", json={"settings": words}).json()["map"]
    grid = services.library.current.backbone.grid
    assert [len(row) for row in shares] == [grid.columns] * grid.rows
    assert 0 < max(map(max, shares)) <= 1
    plan = client.post("/api/plan", json={"settings": words}).json()
    assert plan["problem"] is None and plan["plan"]["passes_max"]
    same = {**words, "prompt": f"{HOUSE['prompt']}, zzxq"}
    assert client.post("/api/plan", json={"settings": same}).json()["problem"] == (
        "These words change nothing in the picture.")
    job = finished("/api/edit", settings=words)
    recipe = read_recipe(services.history.folder / job["saved"][0]["id"])
    assert recipe["method"] == "exact" and recipe["old_prompt"] == HOUSE["prompt"]
    assert job["result"]["notes"]
    restored = client.get("/api/restore", params={"id": job["saved"][0]["id"]}).json()["settings"]
    assert (restored["parent"], restored["old_prompt"]) == (parent, HOUSE["prompt"])


def test_while_one_types_the_old_words_are_read_once(client, services, library, parent,
                                                     monkeypatch):
    settings = {**HOUSE, "parent": parent, "old_prompt": HOUSE["prompt"]}
    read, maps = [], "ssd_core.engine.edits.look.read"

    def counted(*args):
        read.append(args)
        return maps_read(*args)

    def change(**changed):
        read.clear()
        answer = client.post("/api/change", json={"settings": {**settings, **changed}})
        return answer.json()["map"], len(read)

    maps_read = look.read
    monkeypatch.setattr(maps, counted)
    first, passes = change(prompt="a blue boat")
    assert passes == 2
    other, passes = change(prompt="a red house, at night")
    assert passes == 1 and other != first
    assert change(prompt="a blue boat") == (first, 1)
    assert change(prompt="a blue boat", old_prompt="a red tower")[1] == 2
    assert change(prompt="a blue boat", old_prompt="a red tower", cfg=3.0)[1] == 2
    with library.put_away():
        assert services.change_maps._last is None, "nothing keeps the backbone in memory"


def test_variations_come_from_the_settings_of_a_picture(client, services, finished, parent):
    own = client.get("/api/restore", params={"id": parent}).json()["settings"]
    job = finished("/api/edit", settings={**own, "parent": parent, "pictures": 2,
                                          "variation": 0.1, "variation_seed": "5"})
    recipes = [read_recipe(services.history.folder / saved["id"]) for saved in job["saved"]]
    assert [recipe["source"] for recipe in recipes] == [parent] * 2
    assert [recipe["variation_seed"] for recipe in recipes] == [5, 6]


def test_suggestions_are_told_in_the_order_of_how_well_they_fit(edited):
    result = edited(pictures=3)["result"]
    assert sorted(result["order"]) == [0, 1, 2]
