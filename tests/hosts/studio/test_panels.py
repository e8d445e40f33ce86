"""Control: a picture below a map or a subject. Two panels are the tiny backbone's own picture."""

from __future__ import annotations

import io

import pytest
import torch
from PIL import Image
from support.studio_client import CHINESE, line_of

from ssd_core.backbones.prompts.two_panels import CONTROLS, Control
from ssd_core.output.picture_files import opened, pixels_of
from ssd_core.output.recipe import read_recipe, recipe_tokens

BALL = {"prompt": "a {red|blue} house", "seed": "7", "control": "depth", "method": "ar"}


@pytest.fixture(autouse=True)
def omni(library):
    """The tiny backbone as one that draws below a picture."""
    backbone = library.current.backbone
    backbone.controls, backbone.two_panels = CONTROLS, backbone.size
    return backbone


@pytest.fixture
def panel(client):
    """The id of a map that was sent, of another size than any that the backbone draws."""
    file = io.BytesIO()
    Image.effect_noise((90, 60), 80).convert("RGB").save(file, "PNG")
    answer = client.post("/api/history/add?name=depth.png", content=file.getvalue())
    return answer.json()["id"]


def test_the_lower_panel_is_saved_and_its_recipe_tells_of_both(services, finished, panel, omni):
    job = finished("/api/control", settings={**BALL, "panel": panel, "pictures": 2})
    width, height = omni.size
    assert (job["kind"], job["state"], len(job["saved"])) == ("control", "done", 2)
    paths = [services.history.folder / saved["id"] for saved in job["saved"]]
    recipe = read_recipe(paths[0])
    with opened(paths[0]) as image:
        assert image.size == (width, height - height // 2)
    assert recipe["keep_rows"] == omni.grid.rows // 2 and recipe["source"] == panel
    assert recipe["prompt"] in [Control("depth", f"a {colour} house").written(omni.size)
                                for colour in ("red", "blue")]
    first, second = (recipe_tokens(read_recipe(path)).chunk(2) for path in paths)
    assert first[0].equal(second[0]) and not first[1].equal(second[1])
    side, middle = height // omni.grid.rows, height // 2
    drawn = omni.decode(recipe_tokens(recipe)[None])[:, middle + side :]
    below = pixels_of(paths[0])[None, side:]
    assert torch.allclose(below, drawn, atol=1 / 255), "all but the row that blends"



def test_what_was_drawn_below_is_repeated_and_restored(client, worker, services, finished, panel):
    settings = {**BALL, "panel": panel, "control": "subject", "subject": "a glass"}
    job = finished("/api/control", settings=settings)
    id_ = job["saved"][0]["id"]
    restored = client.get("/api/restore", params={"id": id_}).json()["settings"]
    assert {name: restored[name] for name in ("panel", "control", "subject", "keep_mask", "size")
            } == {"panel": panel, "control": "subject", "subject": "a glass", "keep_mask": None,
                  "size": None}
    again = client.post("/api/control", json={"settings": restored}).json()
    assert worker.job(again["id"]).wait(30)
    saved = client.get(f"/api/jobs/{again['id']}").json()["saved"][0]["id"]
    recipes = [read_recipe(services.history.folder / each) for each in (id_, saved)]
    assert recipes[0]["tokens"] == recipes[1]["tokens"]


def test_a_plan_counts_the_lower_panel_alone(client, panel):
    plans = [client.post("/api/plan", json={"settings": {**BALL, **more}}).json()
             for more in ({}, {"panel": panel})]
    whole, lower = (plan["plan"]["ar_passes"] for plan in plans)
    assert lower * 2 == whole and plans[1]["settings"]["prompt"] == BALL["prompt"]


def test_the_page_offers_what_the_backbone_takes(client, omni):
    chinese = client.get("/api/schema", headers=CHINESE).json()["model"]["controls"]
    assert [control["label"] for control in chinese] == ["深度", "边缘", "主体"]
    omni.controls = ()
    assert client.get("/api/schema").json()["model"]["controls"] == []


def test_what_cannot_be_drawn_below_is_refused_in_a_line(client, panel, omni):
    def refused(status=400, **settings):
        answer = client.post("/api/control", json={"settings": {**BALL, **settings}})
        assert answer.status_code == status
        return line_of(answer)

    assert refused().startswith("panel: missing")
    assert "no such picture" in refused(panel="gone.png")
    assert refused(panel=panel, control="pose").startswith("control 'pose': choose one of depth")
    assert refused(panel=panel, control="subject").startswith("subject: empty")
    assert "the prompt is empty" in refused(panel=panel, prompt=" ")
    omni.controls = ()
    assert "draws no panels" in refused(panel=panel)
