"""The cost of a schedule, which its node shows before anything runs."""

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
from .language import localized_for_all

ROUTE = "/ssd/plan"


def plan_of(widgets: Mapping[str, Any], name: str) -> str:
    """A text with the passes, the choice for this machine and the paper's count of a schedule.

    name: the connected backbone, empty if there is none. If an input is wrong, the text says so.
    """
    try:
        preset = str(widgets.get("preset"))
        method = schedules.method_of(preset, widgets)
        _, text = schedules.plan_for(method, preset, described(name), mm.get_torch_device())
        lines = text.split("\n")[1:]  # the first one repeats the widgets
    except SSDError as error:
        lines = [str(error)]
    return localized_for_all("\n".join(lines))


def described(name: str) -> Backbone | None:
    """A local backbone without its weights' values; None if no such backbone is installed."""
    model = folders.shelf().listed(name)
    return _described(model.path, folders.fingerprint(model.path)) if model else None


@lru_cache(maxsize=4)
def _described(path: Path, fingerprint: str) -> Backbone:
    """Load a description; the fingerprint, a cache key, changes when the file does."""
    return load_backbone(path, "meta", estimates=folders.estimates())


def register_route() -> None:
    """Add the route from which the page fetches plans."""
    @PromptServer.instance.routes.get(ROUTE)
    async def answer(request):
        from aiohttp import web  # installed with ComfyUI, but not for the tests

        widgets = json.loads(request.query.get("widgets", "{}"))
        name = request.query.get("backbone", "")
        return web.json_response({"plan": await asyncio.to_thread(plan_of, widgets, name)})
