"""The words that a backbone knows, which ComfyUI's page offers on nodes with a prompt."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from pathlib import Path
from typing import Any

from server import PromptServer

from ..ssd_core import load_backbone
from ..ssd_core.errors import SSDError
from ..ssd_core.output.word_kinds import offered
from ..ssd_core.postcards.chips import Kind
from . import folders

ROUTE = "/ssd/words"


def kinds_of(name: str, chinese: bool = False) -> list[dict[str, Any]]:
    """The words of a backbone by kind; [] if it takes any words or is not installed."""
    model = folders.shelf().listed(name)
    try:
        kinds = _stored(model.path, folders.fingerprint(model.path)) if model else ()
    except SSDError:  # Load Backbone says what is wrong with it
        kinds = ()
    return offered(kinds, chinese)


@lru_cache
def _stored(path: Path, fingerprint: str) -> tuple[Kind, ...]:
    """The words of a backbone's file by kind; the fingerprint changes when the file does."""
    return load_backbone(path, "meta").word_kinds


def register_route() -> None:
    """Add the route from which the page fetches words."""
    @PromptServer.instance.routes.get(ROUTE)
    async def answer(request):
        from aiohttp import web  # installed with ComfyUI, but not for the tests

        chinese = request.query.get("language", "").startswith("zh")
        name = request.query.get("backbone", "")
        return web.json_response(await asyncio.to_thread(kinds_of, name, chinese))
