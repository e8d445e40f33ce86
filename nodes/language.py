"""The language of ComfyUI's page, in which the nodes say what they have to say.

The page tells it, since ComfyUI's server does not know it. Programs that use ComfyUI without its
page get English.
"""

from __future__ import annotations

from collections import OrderedDict

from server import PromptServer

from ..ssd_core.front.chinese import report_in_chinese

ROUTE = "/ssd/language"
KEPT = 64  # pages
PAGES: OrderedDict[str, str] = OrderedDict()  # languages by the ids of pages, the latest last


def said(text: str) -> str:
    """A text in the language of the page whose run this is."""
    return translated(text, PAGES.get(PromptServer.instance.client_id or "", ""))


def said_to_all(text: str) -> str:
    """The same before a run, when ComfyUI does not say whose it will be: as the latest page has it.
    """
    return translated(text, next(reversed(PAGES.values()), ""))


def translated(text: str, language: str) -> str:
    return report_in_chinese(text) if language.lower().startswith("zh") else text


def learn(page: str, language: str) -> None:
    PAGES[page] = language
    PAGES.move_to_end(page)
    while len(PAGES) > KEPT:
        PAGES.popitem(last=False)


def register_route() -> None:
    """Add the route by which a page tells its language."""
    @PromptServer.instance.routes.get(ROUTE)
    async def answer(request):
        from aiohttp import web  # installed with ComfyUI, but not for the tests

        learn(request.query.get("page", ""), request.query.get("language", ""))
        return web.json_response({})
