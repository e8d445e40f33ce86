"""A PNG of the command line, dropped onto ComfyUI: its workflow opens and draws it again."""

from __future__ import annotations

import base64

import pytest

from ssd_core.cli import main
from ssd_core.output.recipe import read_recipe
from ssd_core.output.words import drawn_words

DROP = """async ([name, data]) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    await app.handleFile(new File([bytes], name, { type: "image/png" }));
}"""
WAYS = {"ssd": ["--method", "ssd", "--rounds", "1"], "exact": ["--method", "exact"],
        "rows": ["--method", "rows", "--negative", "at night", "--keep-rows", "5"]}
SEED = 2**64 - 1  # more than a number of JavaScript holds


@pytest.mark.parametrize("way", WAYS)
def test_a_dropped_picture_is_drawn_again_token_for_token(page, client, tmp_path, way):
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
                 if node["class_type"] == "SSD_SaveImage")
    again = tmp_path / "again.png"
    again.write_bytes(client.image(run.output(saver)["images"][0]))
    before, after = read_recipe(path), read_recipe(again)
    assert after["tokens"] == before["tokens"]
    told = ("backbone", "method", "knobs", "seed", "cfg", "size", "keep_rows")
    assert {key: after[key] for key in told} == {key: before[key] for key in told}
    assert drawn_words(after) == drawn_words(before) and "prompt_expanded" in before
    assert page.errors == []
