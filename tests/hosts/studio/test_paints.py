"""The app paints the pixels of GLM-Image's pictures and saves them beside the codes."""

import pytest
from support.tiny_glm_image import glm_image
from support.tiny_glm_pipeline import glm_pipeline

from ssd_core.output.recipe import read_recipe
from studio import paints
from studio.library import Library

pytest.importorskip("diffusers", reason="diffusers paints GLM-Image's pixels")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """In place of the folder with `tiny`: one with a GLM-Image and its whole pipeline."""
    folder = tmp_path_factory.mktemp("models")
    glm_pipeline(glm_image(folder / "ssd_backbones" / "GLM-Image"))
    return folder


@pytest.fixture
def library(models):
    return Library(models, "GLM-Image", device="cpu")


def test_a_button_paints_the_pixels_of_a_picture(client, services, finished, monkeypatch):
    monkeypatch.setattr(paints, "STEPS", 2)
    job = finished("/api/draw", settings={"prompt": "a red", "seed": "7", "size": "256x256",
                                          "method": "ssd", "k_v": 8, "rounds": 0})
    drawn = job["saved"][0]["id"]
    assert client.get(f"/api/history/{drawn}").json()["paintable"]
    job = finished("/api/paint", id=drawn)
    assert job["state"] == "done" and job["kind"] == "paint", job
    painted = client.get(f"/api/history/{job['saved'][0]['id']}").json()
    assert painted["source"] == drawn and not painted["paintable"]
    recipes = [read_recipe(services.history.entry(each).path) for each in (drawn, painted["id"])]
    assert recipes[1]["painted"] == {"seed": 7, "steps": 2, "guidance": 1.5}
    assert recipes[0]["tokens"] == recipes[1]["tokens"]
    assert recipes[0]["pixels_sha256"] != recipes[1]["pixels_sha256"]
    refused = client.post("/api/paint", json={"id": painted["id"]})
    assert refused.status_code == 400 and "not painted yet" in refused.json()["error"]
