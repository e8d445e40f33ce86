"""What ComfyUI's page asks the server: missed previews, the things of pictures, its language, and
facts about backbones.

The facts are the cost of a method, the sizes that a backbone draws and the words that it knows;
the nodes show them before anything runs. And the text for a bug report, which the menu asks for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import comfy.model_management as mm
from server import PromptServer

from ..ssd_core import load_backbone
from ..ssd_core.backbones.base import Backbone
from ..ssd_core.backbones.prompt_guide import offered
from ..ssd_core.errors import SSDError
from ..ssd_core.weights.catalogue import CATALOGUE
from ..ssd_core.weights.load import noted_hash
from . import (
    downloads,
    folders,
    language,
    learning,
    limits,
    previews,
    report,
    schedules,
    things,
)
from .schedules import LIST

Query = Mapping[str, Any]


def described(name: str) -> Backbone | None:
    """A local backbone without its weights' values; None if no such backbone is installed."""
    model = folders.registry().listed(name)
    if model is None:
        return None
    backbone = _described(model.path, folders.fingerprint(model.path))
    backbone.sha256 = backbone.sha256 or noted_hash(backbone.files)  # it may be loaded by now
    return backbone


@lru_cache(maxsize=16)
def _described(path: Path, fingerprint: str) -> Backbone:
    """Load a description; the fingerprint, a cache key, changes when the file does."""
    return load_backbone(path, "meta", estimates=folders.estimates(), hashed=False)


def plan_of(widgets: Mapping[str, Any], name: str, list_: str = LIST) -> dict[str, Any]:
    """A line with the passes of a list's method, and the model's own numbers for its knobs.

    name: the connected model, empty if there is none. If an input is wrong, the line says so.
    """
    own: dict[str, Any] = {}
    value = {key.removeprefix(f"{list_}."): set_ for key, set_ in widgets.items()}
    try:
        method, _ = schedules.chosen(value, list_)
        backbone = described(name)
        own = schedules.own_values(str(value[list_]), backbone)
        line = schedules.passes_line(schedules.plan_for(method, backbone, mm.get_torch_device()))
    except SSDError as error:
        line = str(error)
    return {"plan": language.localized_for_all(line), "own": own}


def outlook_of(widgets: Mapping[str, Any], name: str) -> str:
    """A text with the pictures that drafts could learn from, and how long that would take.

    If an input is wrong, the text says so.
    """
    try:
        folder, kind, epochs = (widgets[key] for key in ("folder", "kind", "epochs"))
        text = learning.outlook(name, str(folder), str(kind), int(epochs), described(name))
    except SSDError as error:
        text = str(error)
    return language.localized_for_all(text)


def sizes_of(name: str) -> list[str]:
    """Sizes such as "384x384" of a local or a known backbone; [] for any other name."""
    try:
        backbone = described(name)
    except SSDError:  # Load Model says what is wrong with it
        return []
    known = (CATALOGUE[name].size,) if name in CATALOGUE else ()
    return [f"{width}x{height}" for width, height in (backbone.sizes if backbone else known)]


def kinds_of(name: str, chinese: bool = False) -> list[dict[str, Any]]:
    """The words of a backbone by kind; [] if it takes any words or is not installed."""
    try:
        backbone = described(name)
    except SSDError:  # Load Model says what is wrong with it
        return []
    return offered(backbone.word_kinds if backbone else (), chinese)


# The routes


def preview(query: Query) -> list[dict]:
    return previews.messages_for(query.get("graph", ""), query.get("node"))


def page_language(query: Query) -> dict:
    language.remember(query.get("page", ""), query.get("language", ""))
    return {}


def plan(query: Query) -> dict[str, Any]:
    return plan_of(json.loads(query.get("widgets", "{}")), query.get("model", ""),
                   query.get("list", LIST))


def outlook(query: Query) -> dict[str, str]:
    return {"plan": outlook_of(json.loads(query["widgets"]), query.get("model", ""))}


def sizes(query: Query) -> list[str]:
    return sizes_of(query.get("model", ""))


def words(query: Query) -> list[dict[str, Any]]:
    return kinds_of(query.get("model", ""), query.get("language", "").startswith("zh"))


def things_of(query: Query) -> dict[str, Any]:
    return things.of(query.get("run", ""), query.get("language", "").startswith("zh"))


def doctor(_: Query) -> dict[str, str]:
    return {"report": report.doctor()}


def models(query: Query) -> dict[str, int | None]:
    return downloads.absent()


def model(query: Query) -> dict[str, Any]:
    """What to know of a known model that is not here, and the download that is going on."""
    spoken = query.get("language", "")
    return {"offer": downloads.offer(query.get("model", ""), query.get("dtype", "auto"), spoken),
            "download": downloads.progress(spoken)}


def quote(body: Query) -> dict[str, Any]:
    return downloads.quote(str(body.get("model")), body.get("language", ""))


def download(body: Query) -> dict[str, Any]:
    downloads.downloads().start(str(body.get("model")), body.get("bytes"))
    return downloads.progress(body.get("language", ""))


def cancel(body: Query) -> dict[str, Any]:
    downloads.downloads().cancel()
    return downloads.progress(body.get("language", ""))


def register() -> None:
    """Add all routes to ComfyUI's server, and a look at each prompt before it is checked."""
    routes = PromptServer.instance.routes
    for path, answer in (("preview", preview), ("language", page_language), ("plan", plan),
                         ("outlook", outlook), ("sizes", sizes), ("things", things_of),
                         ("words", words), ("models", models), ("model", model),
                         ("doctor", doctor)):
        add(routes.get(f"/ssd/{path}"), answer)
    for path, act in (("quote", quote), ("download", download), ("cancel", cancel)):
        add(routes.post(f"/ssd/{path}"), act, changes=True)
    PromptServer.instance.add_on_prompt_handler(limits.without_nan)


def add(route: Callable, answer: Callable[[Query], Any], changes: bool = False) -> None:
    """Add a route that answers in JSON; answers are computed outside the server's loop.

    changes: takes its values as JSON, which no page of another address may send.
    """
    @route
    async def respond(request):
        from aiohttp import web  # installed with ComfyUI, but not for the tests

        if changes and request.content_type != "application/json":
            return web.json_response({"error": "send JSON"}, status=415)
        values = values_in(await request.text()) if changes else request.query
        try:
            return web.json_response(await asyncio.to_thread(answer, values))
        except SSDError as error:
            line = language.translated(str(error), values.get("language", ""))
            return web.json_response({"error": line}, status=400)


def values_in(body: str) -> Query:
    """The named values of a JSON object; {} for any other text. `language` is a text."""
    try:
        values = json.loads(body)
    except ValueError:
        return {}
    named = values if isinstance(values, dict) else {}
    return {**named, "language": str(named.get("language", ""))}
