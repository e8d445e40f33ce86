"""A PNG of the command line, dropped onto ComfyUI: its workflow opens and draws it again."""

from __future__ import annotations

import base64
from io import BytesIO

import pytest
from PIL import Image, ImageChops

from ssd_core.cli import main
from ssd_core.output.comfyui_workflow import SAVER
from ssd_core.output.recipe import read_recipe

DROP = """async ([name, data]) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    await app.handleFile(new File([bytes], name, { type: "image/png" }));
}"""
WAYS = {"ssd": ["--method", "ssd", "--rounds", "1"], "exact": ["--method", "exact"],
        "rows": ["--method", "rows", "--negative", "at night", "--keep-rows", "5"]}
SEED = 2**64 - 1  # more than a number of JavaScript holds


@pytest.mark.parametrize("way", WAYS)
def test_a_dropped_picture_is_drawn_again(page, client, tmp_path, way):
    path, parent = tmp_path / "picture.png", tmp_path / "parent.png"
    draw = ["generate", "a blue boat , at dawn", "--dtype", "fp32", "--method", "rows"]
    keep = ["--keep", str(parent)] if "--keep-rows" in WAYS[way] else []
    if keep:
        assert main([*draw, "--seed", "77", "--out", str(parent)]) == 0
    assert main([*draw, "--seed", str(SEED), "--out", str(path), *keep, *WAYS[way]]) == 0
    page.page.evaluate(DROP, [path.name, base64.b64encode(path.read_bytes()).decode()])
    page.page.wait_for_function("() => app.graph._nodes.some((n) => n.type === 'SSD_Sampler')")
    kinds = page.page.evaluate("() => app.graph._nodes.map((n) => n.type)")
    assert "KSampler" not in kinds
    run = client.run(page.api_form())
    assert run.end == "execution_success", run.error
    saver = next(name for name, node in page.api_form().items()
                 if node["class_type"] == SAVER)
    again = Image.open(BytesIO(client.image(run.output(saver)["images"][0])))
    extrema = ImageChops.difference(again, Image.open(path)).getextrema()
    assert max(most for _, most in extrema) <= 1, "ComfyUI cuts what we round"
    assert "prompt_expanded" in read_recipe(path) and page.errors == []
