"""Show a sentence on a node: the text below its widgets on ComfyUI's page."""

from __future__ import annotations

from server import PromptServer

from .language import said


def tell(node: str | None, text: str) -> None:
    """Show text on the node in the tab that queued the run, if there is one, in its language."""
    server = PromptServer.instance
    if node is not None and server.client_id is not None:
        server.send_progress_text(said(text), node, server.client_id)
