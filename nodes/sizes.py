"""The sizes that a backbone draws, for the lists on ComfyUI's page."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from pathlib import Path

from server import PromptServer

from ..ssd_core import load_backbone
from ..ssd_core.errors import SSDError
from ..ssd_core.weights.catalogue import CATALOGUE
from . import folders

ROUTE = "/ssd/sizes"


def sizes_of(name: str) -> list[str]:
    """ "384x384" ... of a backbone on the shelf or a known one; [] where they are not known."""
    found = folders.shelf().backbones().get(name)
    try:
        sizes = (_stored(found.path, folders.fingerprint(found.path)) if found
                 else (CATALOGUE[name].size,) if name in CATALOGUE else ())
    except SSDError:  # Load Backbone says what is wrong with it
        sizes = ()
    return [f"{width}x{height}" for width, height in sizes]


@lru_cache
def _stored(path: Path, fingerprint: str) -> tuple[tuple[int, int], ...]:
    """Sizes of a backbone's file; the fingerprint changes when the file does."""
    return load_backbone(path, "meta").sizes


def register_route() -> None:
    """Add the route by which the page asks."""
    @PromptServer.instance.routes.get(ROUTE)
    async def answer(request):
        from aiohttp import web  # installed with ComfyUI, but not for the tests

        name = request.query.get("backbone", "")
        return web.json_response(await asyncio.to_thread(sizes_of, name))
