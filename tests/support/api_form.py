"""A saved workflow as ComfyUI's page queues it: inputs by name, links as [node, output]."""

from __future__ import annotations

NOT_QUEUED = ("control_after_generate", "upload", "audioUI")  # the page's own widgets
NOTES = ("MarkdownNote", "Note")
MUTED = 2  # LiteGraph.NEVER


def api_form(workflow: dict) -> dict:
    """The nodes by id, without muted ones; for graphs without subgraphs and reroutes."""
    links = {link[0]: [str(link[1]), link[2]] for link in workflow["links"]}
    return {str(node["id"]): {"class_type": node["type"], "inputs": inputs_of(node, links)}
            for node in workflow["nodes"]
            if node["type"] not in NOTES and node["mode"] != MUTED}


def inputs_of(node: dict, links: dict[int, list]) -> dict:
    named = node.get("widgets_values_named", {})
    values = {name: value for name, value in named.items() if name not in NOT_QUEUED}
    linked = {slot["name"]: links[slot["link"]] for slot in node["inputs"]
              if slot.get("link") is not None}
    return {**values, **linked}
