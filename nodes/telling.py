"""Show a sentence on a node, below its widgets on ComfyUI's page."""

from __future__ import annotations

from server import PromptServer

from .language import localized


def show_text(node: str | None, text: str) -> None:
    """Show a text on the node in the tab that queued the run, in its language; no tab, no text."""
    server = PromptServer.instance
    if node is not None and server.client_id is not None:
        server.send_progress_text(localized(text), node, server.client_id)
