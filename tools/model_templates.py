"""Templates of large models: the graph of 6_janus_pro with another model; needs no ComfyUI.

Their thumbnails are cards with the model's name and grid, because its pictures need its weights.
"""

from __future__ import annotations

import json
from copy import deepcopy

from padding import API_FORMS, WORKFLOWS, text_of
from PIL import Image, ImageDraw, ImageFont
from workflow_graph import Graph
from workflow_graphs import GRAPHS

from ssd_core.weights.catalogue import known

MODEL = "6_janus_pro"
CARD, LARGE, SMALL = (910, 512), 42, 26  # px
SHOWN = 4  # one dot stands for so many rows and columns of cells
CARDS = {"13_simplear": "#1f6f5c", "14_lumina_mgpt_2": "#7a3b69", "15_emu3_5": "#8a5a00",
         "16_glm_image": "#1d4f91", "17_control": "#a03a2b"}  # their colours
BELOW = {"17_control": "below a depth or edge map"}  # draws below another picture


def make_all(names: list[str]) -> None:
    for name in names:
        graph = GRAPHS[name]()
        for folder, write in ((WORKFLOWS, workflow_of), (API_FORMS, api_of)):
            saved = json.loads((folder / f"{MODEL}.json").read_text(encoding="utf-8"))
            (folder / f"{name}.json").write_text(text_of(write(saved, graph)), encoding="utf-8")
        card(name, graph)
        print(name)


def nodes_of(graph: Graph) -> dict[str, tuple[dict, list[dict]]]:
    """(widgets, files of the weights) of the graph's nodes by their type, which differ."""
    return {kind: (widgets, graph.models.get(name, []))
            for name, (kind, _, widgets, _) in graph.nodes.items()}


def workflow_of(saved: dict, graph: Graph) -> dict:
    """The saved workflow with this graph's widgets."""
    workflow, own = deepcopy(saved), nodes_of(graph)
    for node in workflow["nodes"]:
        widgets, models = own[node["type"]]
        named = node.get("widgets_values_named", {}) | widgets
        if named:
            node["widgets_values_named"] = named
            node["widgets_values"] = list(named.values())
        if models:
            node["properties"]["models"] = models
    return workflow


def api_of(saved: dict, graph: Graph) -> dict:
    """The saved API form with this graph's widgets."""
    api, own = deepcopy(saved), nodes_of(graph)
    for node in api.values():
        widgets, _ = own[node["class_type"]]
        node["inputs"] |= {key: value for key, value in widgets.items() if key in node["inputs"]}
    return api


def card(name: str, graph: Graph) -> None:
    """Save the model's name and size, and dots for its cells, as the thumbnail.

    Of a model that draws below another picture, the upper half of the cells are rings.
    """
    row = known(graph.nodes["backbone"][2]["backbone"])
    image = Image.new("RGB", CARD, CARDS[name])
    draw = ImageDraw.Draw(image)
    rows, columns = row.grid.rows // SHOWN, row.grid.columns // SHOWN
    step = CARD[1] / rows
    for y in range(rows):
        for x in range(columns):
            left, top = CARD[0] - step * (columns - x), step * y
            ring = name in BELOW and y < rows / 2
            draw.ellipse((left, top, left + step / 2, top + step / 2), None if ring else "#ffffff",
                         "#ffffff")
    draw.text((32, 190), row.family, "#ffffff", ImageFont.load_default(size=LARGE))
    about = "{} x {}\n{}".format(*row.size, BELOW.get(name, ""))
    draw.text((32, 260), about, "#ffffff", ImageFont.load_default(size=SMALL), spacing=14)
    image.save(WORKFLOWS / f"{name}.jpg", quality=90)
