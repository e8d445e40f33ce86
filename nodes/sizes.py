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
    """Sizes such as "384x384" of a local or a known backbone; [] for any other name."""
    model = folders.shelf().listed(name)
    try:
        sizes = (_stored(model.path, folders.fingerprint(model.path)) if model
                 else (CATALOGUE[name].size,) if name in CATALOGUE else ())
    except SSDError:  # Load Backbone says what is wrong with it
        sizes = ()
    return [f"{width}x{height}" for width, height in sizes]


@lru_cache
def _stored(path: Path, fingerprint: str) -> tuple[tuple[int, int], ...]:
    """The sizes of a backbone's file; the fingerprint changes when the file does."""
    return load_backbone(path, "meta").sizes


def register_route() -> None:
    """Add the route from which the page fetches sizes."""
    @PromptServer.instance.routes.get(ROUTE)
    async def answer(request):
        from aiohttp import web  # installed with ComfyUI, but not for the tests

        name = request.query.get("backbone", "")
        return web.json_response(await asyncio.to_thread(sizes_of, name))
