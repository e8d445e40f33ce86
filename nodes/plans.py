"""What a schedule takes, for the text on its node before anything runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import comfy.model_management as mm
from server import PromptServer

from ..ssd_core import load_backbone
from ..ssd_core.backbones.base import Backbone
from ..ssd_core.errors import SSDError
from . import folders, schedules
from .language import said_to_all

ROUTE = "/ssd/plan"


def plan_of(widgets: Mapping[str, Any], name: str) -> str:
    """Passes, what was chosen for this machine, and the paper's count, for a schedule's widgets.

    name: of the connected backbone, empty if there is none; what is wrong with either is said too.
    """
    try:
        preset = str(widgets.get("preset"))
        method = schedules.method_of(preset, widgets)
        _, text = schedules.plan_for(method, preset, described(name), mm.get_torch_device())
        lines = text.split("\n")[1:]  # the first one repeats the widgets
    except SSDError as error:
        lines = [str(error)]
    return said_to_all("\n".join(lines))


def described(name: str) -> Backbone | None:
    """A backbone on the shelf without its values; None for none, and for one that is not here."""
    found = folders.shelf().backbones().get(name)
    return _described(found.path, folders.fingerprint(found.path)) if found else None


@lru_cache(maxsize=4)
def _described(path: Path, fingerprint: str) -> Backbone:
    """The fingerprint changes when the file does."""
    return load_backbone(path, "meta")


def register_route() -> None:
    """Add the route by which the page asks."""
    @PromptServer.instance.routes.get(ROUTE)
    async def answer(request):
        from aiohttp import web  # installed with ComfyUI, but not for the tests

        widgets = json.loads(request.query.get("widgets", "{}"))
        name = request.query.get("backbone", "")
        return web.json_response({"plan": await asyncio.to_thread(plan_of, widgets, name)})
