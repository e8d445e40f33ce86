"""Make `subgraphs/`: each graph as one subgraph node, as published by ComfyUI's page."""

from __future__ import annotations

import json
import re
import uuid

from blueprint_graphs import BLUEPRINTS, Blueprint
from padding import REGISTRY_ID, SUBGRAPHS, text_of

from ssd_core.files import write_text
from workflows import build, opened_page

CATEGORY, ESSENTIALS = "SSD", "Image Generation"  # where the page lists them
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

FOLD = """([ids, inputs, outputs, title]) => {
    const { subgraph, node } = app.graph.convertToSubgraph(new Set(app.graph._nodes));
    const inner = (name) => subgraph.getNodeById(ids[name])
        ?? subgraph.getNodeById(Number(ids[name]));
    for (const own of [...subgraph.inputs]) subgraph.removeInput(own);  // the page's choice
    for (const [shown, name, input] of inputs) {
        const slot = inner(name).inputs.find((one) => one.name === input);
        const { value, label } = inner(name).widgets.find((one) => one.name === input) ?? {};
        const made = subgraph.addInput(shown, slot.type);
        made.connect(slot, inner(name));
        if (label && label !== shown) subgraph.renameInput(made, label);
        // As in BUILD: it may have found another node's.
        const widget = node.widgets.find((one) => one.name === shown);
        if (widget) widget.value = value;
    }
    for (const [shown, name, output] of outputs) {
        const slot = inner(name).outputs[output];
        subgraph.addOutput(shown, slot.type).connect(slot, inner(name));
    }
    node.title = subgraph.name = title;
    node.setSize([Math.max(node.size[0], 340), node.computeSize()[1]]);
    subgraph.inputNode.arrange();
    subgraph.outputNode.arrange();
    const { nodes, subgraphs } = app.canvas._serializeItems([node]);
    return JSON.stringify({ revision: 0, last_node_id: Number(node.id), last_link_id: 0, nodes,
                            links: [], version: 0.4, definitions: { subgraphs } });
}"""


def tidy(workflow: dict, name: str, made: Blueprint) -> dict:
    """Add the registry's id and the category; replace random ids by reproducible ones."""
    inside, = workflow["definitions"]["subgraphs"]
    for node in inside["nodes"]:
        if node["type"].startswith("SSD_"):
            node["properties"]["cnr_id"] = REGISTRY_ID
    inside |= {"category": CATEGORY, "essentials_category": ESSENTIALS,
               "description": made.description}
    workflow["extra"] = {"BlueprintDescription": made.description,
                         "BlueprintSearchAliases": made.aliases}
    text = json.dumps(workflow)
    for n, old_id in enumerate(dict.fromkeys(UUID.findall(text))):
        text = text.replace(old_id, str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {n}")))
    return json.loads(text)


def make_all(names: list[str]) -> None:
    with opened_page() as (_, page):
        for name in names:
            made = BLUEPRINTS[name]()
            _, _, ids = build(page, made.graph)
            workflow = json.loads(page.page.evaluate(FOLD, [ids, made.inputs, made.outputs, name]))
            SUBGRAPHS.mkdir(exist_ok=True)
            write_text(SUBGRAPHS / f"{name}.json", text_of(tidy(workflow, name, made)))
            print(name)
