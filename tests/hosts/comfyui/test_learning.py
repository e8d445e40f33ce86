"""Train Draft Heads in a running ComfyUI: draw, learn, interrupt, go on, draw with the drafts."""

from __future__ import annotations

import shutil

import pytest
from support.mock_backbone import tiny_postcard

from ssd_core.backbones import postcard
from ssd_core.model.grid import Grid
from ssd_core.output.choices import SSD_CHOICE
from ssd_core.train import LEAST_STEPS

WORDS = "a red house"


@pytest.fixture(scope="module")
def models(client):
    """The server's models, with a small postcard of random weights."""
    root = client.log.parent / "models"
    (root / "ssd_backbones" / "tiny").mkdir(parents=True)
    postcard.save(tiny_postcard(grid=Grid(6, 6)),
                  root / "ssd_backbones" / "tiny" / "backbone.safetensors")
    yield root
    for folder in ("ssd_backbones", "ssd_heads"):
        shutil.rmtree(root / folder / "tiny", ignore_errors=True)


def drawing(client, count: int, model: list, **sampler) -> dict:
    """Model 1, sampler 3, and its pictures saved in the folder `taught` by 4."""
    return {
        "1": client.node("SSD_LoadModel", model="tiny", dtype="fp32"),
        "3": client.node("SSD_Sampler", model=model, prompt=WORDS, batch_size=count, **sampler),
        "4": client.node("SSD_SaveImage", images=["3", 0], run=["3", 1],
                         filename_prefix="taught/picture"),
        "7": client.node("SSD_RunInfo", run=["3", 1]),
        "5": client.node("PreviewAny", source=["7", 0])}


def learning(client, **widgets) -> dict:
    """Model 1, and its drafts 2 that learn from the folder `taught`."""
    return {"1": client.node("SSD_LoadModel", model="tiny", dtype="fp32"),
            "2": client.node("SSD_TrainHeads", model=["1", 0], folder="taught", **widgets)}


def test_drafts_learn_from_what_was_drawn_and_ssd_draws_with_them(client, models):
    assert client.run(drawing(client, 12, ["1", 0])).end == "execution_success"
    file, checkpoint = (models / "ssd_heads" / "tiny" / name
                        for name in ("heads.safetensors", "heads.ckpt"))

    told = []

    def stop(progress):
        if progress["node"] == "2" and not told:
            told.append(progress["value"])
            client.post("/interrupt", {})

    stopped = client.run(learning(client), at={"progress": stop})
    assert stopped.end == "execution_interrupted", stopped.error
    assert stopped.said["2"].startswith("Interrupted.")
    assert checkpoint.exists() and not file.exists()
    seen = []
    learned = client.run(learning(client), at={"progress": seen.append})
    assert learned.end == "execution_success", learned.error
    steps = [progress["value"] for progress in seen if progress["node"] == "2"]
    assert steps[0] > told[0] and steps[-1] == seen[-1]["max"] == sum(LEAST_STEPS.values())
    assert "Draft heads: " in learned.text("2") and "Row drafter: " in learned.text("2")
    assert file.exists() and not checkpoint.exists()

    method = {"method": SSD_CHOICE, "method.k_h": 2, "method.k_v": 1, "method.rounds": 1,
              "method.incremental": 0, "method.drafter": "row"}
    both = {**learning(client), **drawing(client, 1, ["2", 0], **method)}
    drawn = client.run(both)
    assert drawn.end == "execution_success", drawn.error
    assert "0 new pictures" in drawn.text("2"), "Load Model has changed, the pictures have not"
    assert drawn.text("5").startswith("ssd") and "no draft heads" not in drawn.text("5")


BUILD = """() => {
    app.graph.clear();
    const [loader, trainer] = ["SSD_LoadModel", "SSD_TrainHeads"].map((kind) => {
        const node = LiteGraph.createNode(kind);
        app.graph.add(node);
        return node;
    });
    const set = (node, name, value) => {
        node.widgets.find((widget) => widget.name === name).value = value;
    };
    set(loader, "model", "tiny");
    set(trainer, "folder", "taught");
    loader.connect(0, trainer, 0);
}"""
SAYS = """() => [...document.querySelectorAll(".ssd-plan")].some((element) =>
    element.textContent.includes("drafts could learn from them, about"))"""


def test_the_node_says_before_it_runs_what_there_is_to_learn_from(client, models, whole_page):
    client.run(drawing(client, 8, ["1", 0], seed=50))  # the model is loaded
    whole_page.page.evaluate(BUILD)
    whole_page.page.wait_for_function(SAYS)


def test_a_folder_that_is_not_in_the_output_folder_is_refused(client, models):
    prompt = learning(client)
    prompt["2"]["inputs"]["folder"] = "../models"
    assert "none of this name" in client.refused(prompt)
