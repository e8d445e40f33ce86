"""A known model that is not here: Load Model offers it, and gets it when it is asked to."""

import os
from pathlib import Path

import pytest
from support.comfyui_page import open_page
from support.comfyui_server import comfyui
from support.fake_hub import FakeHub
from support.tiny_image_models import janus_port
from test_downloaded import published

from ssd_core.weights.catalogue import CATALOGUE

expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect
NAME = "Janus-Pro-1B-hf"
CHOOSE = """name => {
    const node = LiteGraph.createNode("SSD_LoadModel");
    app.graph.clear();
    app.graph.add(node);
    const list = node.widgets.find((widget) => widget.name === "model");
    list.value = name;
    list.callback(name);
}"""
HEIGHT = "() => app.graph._nodes[0].size[1]"


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    janus_port(folder)
    with FakeHub(published(CATALOGUE[NAME], folder)) as running:
        yield running


@pytest.fixture(scope="module")
def client(hub, tmp_path_factory):
    """A ComfyUI with a Hub of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", hub.url)
        base = tmp_path_factory.mktemp("downloads")
        with comfyui(Path(os.environ["COMFYUI_PATH"]), base) as running:
            yield running


@pytest.fixture(scope="module")
def whole_page(client, chromium):
    return open_page(chromium, client.url)


def test_a_model_is_chosen_quoted_and_downloaded(page, hub, client):
    tab = page.page
    tab.evaluate(CHOOSE, NAME)
    card = tab.locator(".ssd-download")
    expect(card).to_contain_text("are needed", timeout=60_000)
    assert hub.requests == []
    tall = tab.evaluate(HEIGHT)
    press = "button => button.click()"
    card.locator("button", has_text="Download").evaluate(press)
    expect(card).to_contain_text(f"to download to models/ssd_backbones/{NAME}", timeout=60_000)
    card.locator("button", has_text="Download").evaluate(press)
    expect(card).to_contain_text("is here. Press Run.", timeout=60_000)
    assert tab.evaluate(HEIGHT) < tall
    assert client.get(f"/ssd/model?model={NAME}")["offer"] is None
    for path in (client.log.parent / "models" / "ssd_backbones" / NAME).rglob("*"):
        path.unlink()
    tab.evaluate("() => app.refreshComboInNodes()")
    hub.requests.clear()
