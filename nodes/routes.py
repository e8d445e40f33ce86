"""What ComfyUI's page asks the server: missed previews, the things of pictures, its language, facts
about backbones, downloads, and the text for a bug report, which the menu asks for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from server import PromptServer

from ..ssd_core.errors import SSDError
from . import language, limits, previews
from .later import downloads, facts, report, things
from .widgets import LIST

Query = Mapping[str, Any]


def preview(query: Query) -> list[dict]:
    return previews.messages_for(query.get("graph", ""), query.get("node"))


def page_language(query: Query) -> dict:
    language.remember(query.get("page", ""), query.get("language", ""))
    return {}


def plan(query: Query) -> dict[str, Any]:
    return facts.plan_of(json.loads(query.get("widgets", "{}")), query.get("model", ""),
                   query.get("list", LIST))


def outlook(query: Query) -> dict[str, str]:
    return {"plan": facts.outlook_of(json.loads(query["widgets"]), query.get("model", ""))}


def sizes(query: Query) -> list[str]:
    return facts.sizes_of(query.get("model", ""))


def words(query: Query) -> list[dict[str, Any]]:
    return facts.kinds_of(query.get("model", ""), query.get("language", "").startswith("zh"))


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
