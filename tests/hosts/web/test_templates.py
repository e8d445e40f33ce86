"""The templates as ComfyUI's page laid them out: large enough to be read where they open."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).resolve().parents[3] / "workflows").glob("*.json"))
LEAST_ZOOM = 0.62  # below, the classic canvas draws no letters
SCREEN, SHARE = (1366, 768), 0.75  # ComfyUI's page fits a graph into this share of its window
EDGES = (20, 50)  # px around the nodes: a margin on all sides, and their titles
TITLE = 30  # px above a node


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def workflow(request):
    return json.loads(request.param.read_text(encoding="utf-8"))


def test_a_template_opens_large_enough_to_be_read(workflow):
    sides = [max(node["pos"][n] + node["size"][n] for node in workflow["nodes"])
             - min(node["pos"][n] for node in workflow["nodes"]) + EDGES[n] for n in (0, 1)]
    zoom = SHARE * min(screen / side for screen, side in zip(SCREEN, sides, strict=True))
    assert zoom >= LEAST_ZOOM, sides


def test_no_node_of_a_template_lies_on_another_or_outside_its_box(workflow):
    boxes = [(x, y - TITLE, x + wide, y + high) for (x, y), (wide, high) in
             ((node["pos"], node["size"]) for node in workflow["nodes"])]
    for a, b in combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (a, b)
    groups = [(x, y, x + wide, y + high) for x, y, wide, high in
              (group["bounding"] for group in workflow["groups"])]
    for box in boxes:
        assert any(group[0] <= box[0] and group[1] <= box[1] and box[2] <= group[2]
                   and box[3] <= group[3] for group in groups), box
