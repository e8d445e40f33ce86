"""A sentence on a node: the text that ComfyUI's page shows below the node's widgets."""

from __future__ import annotations

from server import PromptServer


def tell(node: str | None, text: str) -> None:
    """Show it on the node in the tab that queued the run; nothing where no tab did."""
    server = PromptServer.instance
    if node is not None and server.client_id is not None:
        server.send_progress_text(text, node, server.client_id)
