"""Make `workflows/`: built and exported by ComfyUI's own page, thumbnails from real runs.

Writes the workflow as the page saves it, and the thumbnail. The first one also yields
docs/graph.webp, the page after its run.
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

from padding import REGISTRY_ID, ROOT, WORKFLOWS, text_of
from PIL import Image, ImageDraw, ImageFont
from stills import save
from workflow_graph import Graph
from workflow_graphs import GRAPHS, texts_of

from ssd_core.weights.catalogue import CATALOGUE

sys.path.append(str(ROOT / "tests"))

from support.comfyui_page import Page, comfyui_page
from support.comfyui_server import Client, Run, comfyui

COLUMN_GAP, ROW_GAP, SIDE = 50, 30, 512  # px
# Px that a node is tall before it draws, so that the page leaves room for its picture, and after.
# Both fit on a laptop's screen, at the zoom at which a graph of this height opens.
TO_DRAW, DRAWN = 860, 990
NO_ID = "00000000-0000-0000-0000-000000000000"  # every page gives it one of its own
CARD, TITLE, LINE = (910, 512), 44, 30  # px
PAINTED_OVER, PAINTED_PART = "3.jpg", (190, 370, 520, 670)  # a castle, and the box around it in px

BUILD = """async ([nodes, links, sizes, muted, titles, columnGap, rowGap, toDraw, drawn]) => {
    app.graph.clear();
    app.graph.id = crypto.randomUUID();  // else the new nodes show pictures of earlier runs
    const made = {}, columns = [];
    for (const [name, [kind, column, widgets, title]] of Object.entries(nodes)) {
        const node = made[name] = LiteGraph.createNode(kind);
        const defaults = (node.widgets ?? []).map((w) => w.value);
        app.graph.add(node);
        // A new node may find the values of a cleared graph's node that had its id.
        node.widgets?.forEach((w, n) => { w.value = defaults[n]; });
        if (title) node.title = title;
        if (muted.includes(name)) node.mode = LiteGraph.NEVER;
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
    await new Promise((resolve) => setTimeout(resolve, 1000));  // knobs of new choices are folded
    const nameOf = (node) => Object.keys(made).find((name) => made[name] === node);
    const boxes = [], border = 15, head = 50;  // of the boxes, px
    const draws = ({ widgets }) => widgets?.some(({ name }) => name === "ssd_preview");
    let x = 0;
    for (const [column, nodes] of columns.entries()) {
        let y = 0, width = 0;
        for (const node of nodes) {
            const least = node.computeSize();
            const usual = { SSD_LoadModel: 340, SSD_Sampler: 400, SSD_Finish: 400,
                            SSD_EditByWords: 400, SSD_Compare: 640 }[node.type] ?? 320;
            const [wide, high] = sizes[nameOf(node)] ?? [usual, 0];
            const tall = { PreviewImage: 320, MarkdownNote: 260, PreviewAny: 200,
                           SSD_SaveImage: 380, SSD_RunViewer: 480, SaveImage: 380 }[node.type] ?? 0;
            const whole = draws(node) ? toDraw : high || tall;
            node.setSize([Math.max(least[0], wide), Math.max(least[1], whole)]);
            node.pos = [x, y];
            // Nodes 2.0 draws every widget taller than the size that is saved here.
            const shown = node.widgets?.filter((w) => !w.hidden).length ?? 0;
            y += (draws(node) ? drawn : node.size[1] + 24 + 8 * shown) + rowGap;
            width = Math.max(width, node.size[0]);
        }
        const box = boxes.at(-1);
        if (titles[column] && titles[column] === box?.title) {
            box.right = x + width;
            box.bottom = Math.max(box.bottom, y);
        } else if (titles[column]) {
            boxes.push({ title: titles[column], left: x, right: x + width, bottom: y });
        }
        x += width + columnGap;
    }
    const bottom = Math.max(0, ...boxes.map((box) => box.bottom));
    for (const { title, left, right } of boxes) {
        const group = new LiteGraph.LGraphGroup(title);
        group.pos = [left - border, -head - border];
        group.size = [right - left + 2 * border, bottom + head + border - rowGap];
        app.graph.add(group);
    }
    return JSON.stringify([app.graph.serialize(),
                           Object.fromEntries(Object.entries(made).map(([k, n]) => [k, n.id]))]);
}"""

# Whether the last line of every preview is there: strips are painted a moment after the end.
PAINTED = """() => [...document.querySelectorAll(".ssd-pixels")].every((canvas) =>
    canvas.getContext("2d").getImageData(0, canvas.height - 1, 1, 1).data[3] > 0)"""

SAVED = """() => app.graph._nodes.find((node) => node.type === "SaveImage").imgs?.[0]?.complete"""


def build(page: Page, graph: Graph) -> tuple[dict, dict, dict[str, str]]:
    """(workflow, API form, node ids by name) from ComfyUI's page."""
    workflow, ids = json.loads(page.page.evaluate(
        BUILD, [graph.nodes, graph.links, graph.sizes, graph.muted, graph.columns, COLUMN_GAP,
                ROW_GAP, TO_DRAW, DRAWN]))
    page.frame()
    return workflow, page.api_form(), {name: str(id_) for name, id_ in ids.items()}


def tidy(workflow: dict, graph: Graph, ids: dict[str, str]) -> dict:
    """Remove the state of the window; add what the page does not save.

    That is the registry's id, by which ComfyUI-Manager finds this pack, the files of the weights,
    the Chinese texts, and the content of app mode.
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
    extra |= {"linearMode": graph.opens_as_app, "linearData": form,
              "ssd_texts": {"zh": texts_of(graph)}}
    return {**workflow, "id": NO_ID, "extra": extra}


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


def card(path: Path) -> None:
    """Save the names of the large models as the thumbnail: their pictures need their weights."""
    image = Image.new("RGB", CARD, "#1d3557")
    draw = ImageDraw.Draw(image)
    draw.text((48, 48), "Large models", "#ffffff", ImageFont.load_default(size=TITLE))
    names = list(dict.fromkeys(row.family for row in CATALOGUE.values()))
    half = -(-len(names) // 2)
    for left, column in ((48, names[:half]), (CARD[0] // 2 + 24, names[half:])):
        draw.text((left, 140), "\n".join(column), "#a8dadc", ImageFont.load_default(size=LINE),
                  spacing=16)
    image.save(path, quality=90)


def make(client: Client, page: Page, name: str) -> None:
    graph = GRAPHS[name]()
    workflow, api, ids = build(page, graph)
    text = text_of(tidy(workflow, graph, ids))
    (WORKFLOWS / f"{name}.json").write_text(text, encoding="utf-8")
    if graph.thumbnail:
        for node, values in graph.tried.items():
            api[ids[node]]["inputs"].update(values)
        run = client.run(api)
        if run.end != "execution_success":
            raise SystemExit(f"{name}: {run.error}")
        thumbnail(client, run, ids, graph.thumbnail, WORKFLOWS / f"{name}.jpg")
    else:
        card(WORKFLOWS / f"{name}.jpg")
    if name == next(iter(GRAPHS)):
        client.post("/free", {"unload_models": True, "free_memory": True})  # nothing from a cache
        page.open(workflow)
        page.frame()
        page.run()
        page.page.wait_for_function(PAINTED)
        page.page.wait_for_function(SAVED)
        page.rest()
        shot = Image.open(io.BytesIO(page.page.screenshot())).convert("RGB")
        save(shot, ROOT / "docs" / "graph.webp")


def painted(path: Path) -> None:
    """Save a picture as the mask editor does: transparent where it was painted."""
    with Image.open(ROOT / "studio" / "examples" / PAINTED_OVER) as image:
        picture = image.convert("RGBA").resize((768, 768))
    whole = picture.getchannel("A")
    ImageDraw.Draw(whole).ellipse(PAINTED_PART, fill=0)
    picture.putalpha(whole)
    picture.save(path)


@contextmanager
def opened_page() -> Iterator[tuple[Client, Page]]:
    """Start a ComfyUI with this pack and open its page."""
    if "COMFYUI_PATH" not in os.environ:
        raise SystemExit("COMFYUI_PATH is not set: name a ComfyUI, and in COMFYUI_PYTHON its "
                         "Python (tests/hosts/comfyui/README.md)")
    with tempfile.TemporaryDirectory() as base, \
            comfyui(Path(os.environ["COMFYUI_PATH"]), Path(base)) as client, \
            comfyui_page(client.url, 1600, 900) as page:
        page.set("Comfy.Minimap.Visible", False)
        painted(Path(base, "input", "painted.png"))
        yield client, page


def make_all(names: list[str]) -> None:
    with opened_page() as (client, page):
        # Graphs that are only shown come first: the page keeps pictures of earlier runs.
        for name in sorted(names, key=lambda name: bool(GRAPHS[name]().thumbnail)):
            make(client, page, name)
            print(name)
