"""The app with a model that decodes its tokens at two sizes: what each picture is drawn at."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from support.mock_backbone import random_heads, tiny_postcard
from support.solo import PIXELS, SIDE

from ssd_core import Grid
from ssd_core.backbones.postcard import save
from ssd_core.engine.heads import save_heads
from ssd_core.output.kept_pixels import weights
from ssd_core.output.packed import pack_mask
from ssd_core.output.recipe import read_recipe, recipe_tokens
from ssd_core.weights.load import load_backbone

HOUSE = {"prompt": "a red house", "seed": "7", "expand": False}
SMALL, LARGE = f"{PIXELS}x{PIXELS}", f"{2 * PIXELS}x{2 * PIXELS}"
SIZES = pytest.mark.parametrize(("size", "chosen"), [(SMALL, LARGE), (LARGE, SMALL)])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    place = folder / "ssd_backbones" / "tiny"
    place.mkdir(parents=True)
    save(tiny_postcard(0, Grid(SIDE, SIDE), twice=True), place / "backbone.safetensors")
    backbone = load_backbone(place)
    save_heads(random_heads(backbone), folder / "ssd_heads" / "tiny" / "heads.safetensors",
               backbone, {})
    return folder


@pytest.fixture
def draw(finished):
    """Draw by these settings; the id of the picture."""
    def run(**settings):
        return finished("/api/draw", settings={**HOUSE, **settings})["saved"][0]["id"]

    return run


@pytest.fixture
def seen(services):
    """Pixels, tokens and size of a picture, which its recipe tells, too."""
    def of(id_):
        path = services.history.folder / id_
        recipe, pixels = read_recipe(path), np.asarray(Image.open(path))
        assert recipe["size"] == f"{pixels.shape[1]}x{pixels.shape[0]}"
        return pixels, recipe_tokens(recipe), recipe["size"]

    return of


def mask():
    known = torch.ones(SIDE, SIDE, dtype=torch.bool)
    known[5:8, 4:9] = False
    return known


def test_the_page_offers_the_larger_size_first_and_draws_it(client, draw, seen):
    assert client.get("/api/schema").json()["model"]["sizes"] == [LARGE, SMALL]
    large, small = seen(draw()), seen(draw(size=SMALL))
    assert (large[2], small[2]) == (LARGE, SMALL) and large[1].equal(small[1])


@SIZES
def test_cells_are_redrawn_at_the_size_of_the_picture(finished, draw, seen, size, chosen):
    parent, known = draw(size=size), mask()
    job = finished("/api/edit", settings={**HOUSE, "seed": "9", "size": chosen, "parent": parent,
                                          "keep_mask": pack_mask(known)})
    (before, old, _), (after, new, own) = seen(parent), seen(job["saved"][0]["id"])
    assert own == size and old[known].equal(new[known])
    outside = (weights(known, after.shape[:2]) == 0).numpy()
    assert outside.any() and np.array_equal(after[outside], before[outside])
    assert not np.array_equal(after, before)


@SIZES
def test_words_and_rows_are_changed_at_the_size_of_the_picture(finished, draw, seen, size, chosen):
    parent = draw(size=size)
    worded = finished("/api/edit", settings={**HOUSE, "prompt": "a red sun", "seed": "9",
                                             "size": chosen, "parent": parent,
                                             "old_prompt": "a red house"})
    assert seen(worded["saved"][0]["id"])[2] == size
    redone = finished("/api/redo", settings={**HOUSE, "seed": "9", "size": chosen}, source=parent,
                      rows=4)
    _, tokens, own = seen(redone["saved"][0]["id"])
    assert own == size and tokens[:4].equal(seen(parent)[1][:4])


@SIZES
def test_settings_are_restored_with_their_size(client, draw, size, chosen):
    parent = draw(size=size)
    assert client.get("/api/restore", params={"id": parent}).json()["settings"]["size"] == size


@pytest.mark.parametrize(("side", "size"), [
    (PIXELS, SMALL), (2 * PIXELS, LARGE), (PIXELS + 20, SMALL), (900, LARGE)])
def test_an_uploaded_picture_is_kept_at_the_nearer_size(client, finished, services, side, size):
    file = io.BytesIO()
    shades = np.arange(side)[:, None, None].repeat(side, 1).repeat(3, 2) * 255 // side
    Image.fromarray(shades.astype(np.uint8)).save(file, "PNG")
    entry = client.post("/api/history/add?name=photo.png", content=file.getvalue()).json()
    assert f"{entry['width']}x{entry['height']}" == size and entry["encoded"]
    job = finished("/api/edit", settings={**HOUSE, "parent": entry["id"],
                                          "keep_mask": pack_mask(mask())})
    recipe = read_recipe(services.history.folder / job["saved"][0]["id"])
    assert recipe["size"] == size


def test_a_race_and_a_stopped_run_have_the_size_of_the_picture(client, finished, seen, stopped_at,
                                                               every_message):
    job = finished("/api/race", settings=HOUSE, racers=["ar", "faithful"])
    assert {seen(saved["id"])[2] for saved in job["saved"]} == {LARGE}
    stopped_at(5)
    stopped = finished("/api/draw", settings=HOUSE)
    partial = client.post(f"/api/jobs/{stopped['id']}/keep").json()
    assert (partial["width"], seen(partial["id"])[2]) == (2 * PIXELS, LARGE)
