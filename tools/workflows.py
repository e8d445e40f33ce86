"""Make `workflows/`: built and exported by ComfyUI's own page, thumbnails from real runs.

Writes the workflow as the page saves it, its API form (the golden copy that tests compare with) and
the thumbnail. The first one also yields docs/graph.webp, the page after its run.
"""

from __future__ import annotations

import io
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from model_templates import CARDS, card
from padding import API_FORMS, ROOT, WORKFLOWS, text_of
from PIL import Image
from stills import save
from workflow_graph import Graph
from workflow_graphs import GRAPHS

sys.path.append(str(ROOT / "tests"))

from support.comfyui_page import Page, comfyui_page  # noqa: E402
from support.comfyui_server import Client, Run, comfyui  # noqa: E402

REGISTRY_ID = "ssd-decoding"
COLUMN_GAP, ROW_GAP, SIDE = 60, 60, 512  # px

BUILD = """([nodes, links, sizes, columnGap, rowGap]) => {
    app.graph.clear();
    const made = {}, columns = [];
    for (const [name, [kind, column, widgets, title]] of Object.entries(nodes)) {
        const node = made[name] = LiteGraph.createNode(kind);
        const defaults = (node.widgets ?? []).map((w) => w.value);
        app.graph.add(node);
        // A new node may find the values of a cleared graph's node that had its id.
        node.widgets?.forEach((w, n) => { w.value = defaults[n]; });
        if (title) node.title = title;
        for (const [key, value] of Object.entries(widgets)) {
            const widget = key === "text" ? node.widgets[0]
                : node.widgets.find((w) => w.name === key);
            if (!widget) throw new Error(`${kind} has no widget ${key}`);
            widget.value = value;
            widget.callback?.(value);
        }
        (columns[column] ??= []).push(node);
    }
    for (const [source, output, target, input] of links) {
        const slot = made[target].inputs.findIndex((i) => i.name === input);
        if (slot < 0 || !made[source].connect(output, made[target], slot))
            throw new Error(`${target} has no input ${input}`);
    }
    const nameOf = (node) => Object.keys(made).find((name) => made[name] === node);
    let x = 0;
    for (const nodes of columns) {
        let y = 0, width = 0;
        for (const node of nodes) {
            const least = node.computeSize();
            const [wide, high] = sizes[nameOf(node)] ?? [Math.max(node.size[0], 340), 0];
            const tall = { PreviewImage: 320, MarkdownNote: 260, PreviewAny: 200,
                           SSD_SaveImage: 380, SSD_Replay: 480, SaveImage: 380 }[node.type] ?? 0;
            node.setSize([Math.max(least[0], wide), Math.max(least[1], high || tall)]);
            node.pos = [x, y];
            // Nodes 2.0 draws every widget taller than the size that is saved here.
            y += node.size[1] + 24 + 10 * (node.widgets?.length ?? 0) + rowGap;
            width = Math.max(width, node.size[0]);
        }
        x += width + columnGap;
    }
    return JSON.stringify([app.graph.serialize(),
                           Object.fromEntries(Object.entries(made).map(([k, n]) => [k, n.id]))]);
}"""

# Whether the last line of every preview is there: strips are painted a moment after the end.
PAINTED = """() => [...document.querySelectorAll(".ssd-pixels")].every((canvas) =>
    canvas.getContext("2d").getImageData(0, canvas.height - 1, 1, 1).data[3] > 0)"""


def build(page: Page, graph: Graph) -> tuple[dict, dict, dict[str, str]]:
    """(workflow, API form, node ids by name) from ComfyUI's page."""
    workflow, ids = json.loads(page.page.evaluate(
        BUILD, [graph.nodes, graph.links, graph.sizes, COLUMN_GAP, ROW_GAP]))
    page.frame()
    return workflow, page.api_form(), {name: str(id_) for name, id_ in ids.items()}


def tidy(workflow: dict, graph: Graph, ids: dict[str, str]) -> dict:
    """Remove the state of the window; add what the page does not save.

    That is the registry's id, by which ComfyUI-Manager finds this pack, the files of the weights,
    and the content of app mode.
    """
    named = {id_: name for name, id_ in ids.items()}
    for node in workflow["nodes"]:
        if node["type"].startswith("SSD_"):
            node["properties"]["cnr_id"] = REGISTRY_ID
        if models := graph.models.get(named[str(node["id"])]):
            node["properties"]["models"] = models
    extra = {k: v for k, v in workflow.get("extra", {}).items()
             if k not in ("ds", "frontendVersion")}
    form = {"inputs": [[int(ids[name]), widget] for name, widget in graph.form],
            "outputs": [int(ids[name]) for name in graph.shown]}
    return {**workflow, "extra": {**extra, "linearMode": graph.opens_as_app, "linearData": form}}


def thumbnail(client: Client, run: Run, ids: dict[str, str], names: list[str], path: Path) -> None:
    """Save the run's pictures side by side, at most SIDE px tall."""
    pictures = [still(client.image(entry))
                for name in names for entry in run.output(ids[name])["images"]]
    sizes = {picture.size for picture in pictures}
    sheet = side_by_side(pictures) if len(sizes) == 1 else inset(*pictures)
    scale = max(1, SIDE // max(sheet.size))
    sheet = sheet.resize((sheet.width * scale, sheet.height * scale), Image.Resampling.NEAREST)
    sheet.thumbnail((2 * SIDE, SIDE))
    sheet.save(path, quality=90)


def side_by_side(pictures: list[Image.Image]) -> Image.Image:
    """Pictures of one size, in columns: close to a template's shape, and with few empty places."""
    width, height = pictures[0].size
    count = len(pictures)

    def odd(across: int) -> float:
        down = -(-count // across)
        shape = abs(math.log(across * width / (down * height) / 1.4))
        return shape + (across * down - count) / count

    across = min(range(1, count + 1), key=odd)
    sheet = Image.new("RGB", (width * across, height * -(-len(pictures) // across)), "white")
    for n, picture in enumerate(pictures):
        sheet.paste(picture, (n % across * width, n // across * height))
    return sheet


def inset(large: Image.Image, small: Image.Image) -> Image.Image:
    """An enlarged picture with the original in a corner."""
    edge = small.width // 16
    framed = Image.new("RGB", (small.width + 2 * edge, small.height + 2 * edge), "white")
    framed.paste(small, (edge, edge))
    large.paste(framed, (0, large.height - framed.height))
    return large


def still(file: bytes) -> Image.Image:
    """A picture; of a film, the frame at two thirds."""
    with Image.open(io.BytesIO(file)) as image:
        image.seek(2 * (getattr(image, "n_frames", 1) - 1) // 3)
        return image.convert("RGB")


def make(client: Client, page: Page, name: str) -> None:
    graph = GRAPHS[name]()
    workflow, api, ids = build(page, graph)
    for folder, content in ((WORKFLOWS, tidy(workflow, graph, ids)), (API_FORMS, api)):
        (folder / f"{name}.json").write_text(text_of(content), encoding="utf-8")
    if graph.thumbnail:
        run = client.run(api)
        if run.end != "execution_success":
            raise SystemExit(f"{name}: {run.error}")
        thumbnail(client, run, ids, graph.thumbnail, WORKFLOWS / f"{name}.jpg")
    elif name in CARDS:
        card(name, graph)
    else:
        shot = Image.open(io.BytesIO(page.page.screenshot())).convert("RGB")
        shot.resize((910, SIDE)).save(WORKFLOWS / f"{name}.jpg", quality=90)
    if name == next(iter(GRAPHS)):
        client.post("/free", {"unload_models": True, "free_memory": True})  # nothing from a cache
        page.open(workflow)
        page.frame()
        page.run()
        page.page.wait_for_function(PAINTED)
        shot = Image.open(io.BytesIO(page.page.screenshot())).convert("RGB")
        save(shot, ROOT / "docs" / "graph.webp")


@contextmanager
def opened_page() -> Iterator[tuple[Client, Page]]:
    """Start a ComfyUI with this pack and open its page."""
    if "COMFYUI_PATH" not in os.environ:
        raise SystemExit("COMFYUI_PATH is not set: name a ComfyUI, and in COMFYUI_PYTHON its "
                         "Python (tests/comfyui/README.md)")
    with tempfile.TemporaryDirectory() as base, \
            comfyui(Path(os.environ["COMFYUI_PATH"]), Path(base)) as client, \
            comfyui_page(client.url, 1600, 900) as page:
        page.set("Comfy.Minimap.Visible", False)
        yield client, page


def make_all(names: list[str]) -> None:
    with opened_page() as (client, page):
        # Graphs that are only shown come first: the page keeps pictures of earlier runs.
        for name in sorted(names, key=lambda name: bool(GRAPHS[name]().thumbnail)):
            make(client, page, name)
            print(name)
