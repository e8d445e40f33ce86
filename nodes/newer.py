"""Arguments that newer versions of ComfyUI accept and 0.3.64, the oldest supported one, does not.

Each name is a mapping of arguments; it is empty if this ComfyUI does not know them.
"""

from __future__ import annotations

from dataclasses import fields

from comfy_api.v0_0_2 import io

_SCHEMA = {field.name for field in fields(io.Schema)}

# Sends a cached node's `ui` again.
RESENT = {"has_intermediate_output": True} if "has_intermediate_output" in _SCHEMA else {}


def search_aliases(*words: str) -> dict[str, list[str]]:
    """Further words that find a node in the search."""
    return {"search_aliases": list(words)} if "search_aliases" in _SCHEMA else {}
