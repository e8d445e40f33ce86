"""The language of ComfyUI's page, in which the nodes show their texts.

The page sends it, because ComfyUI's server does not know it. Programs that use ComfyUI without its
page get English.
"""

from __future__ import annotations

from collections import OrderedDict

from server import PromptServer

from ..ssd_core.output.chinese import report_in_chinese

ROUTE = "/ssd/language"
MAX_PAGES = 64
PAGES: OrderedDict[str, str] = OrderedDict()  # languages by the ids of pages, the latest last


def localized(text: str) -> str:
    """Translate a text to the language of the page that queued the run."""
    return translated(text, PAGES.get(PromptServer.instance.client_id or "", ""))


def localized_for_all(text: str) -> str:
    """Translate a text before a run, when its page is not known: the latest page's language."""
    return translated(text, next(reversed(PAGES.values()), ""))


def translated(text: str, language: str) -> str:
    return report_in_chinese(text) if language.lower().startswith("zh") else text


def remember(page: str, language: str) -> None:
    PAGES[page] = language
    PAGES.move_to_end(page)
    while len(PAGES) > MAX_PAGES:
        PAGES.popitem(last=False)


def register_route() -> None:
    """Add the route to which pages send their language."""
    @PromptServer.instance.routes.get(ROUTE)
    async def answer(request):
        from aiohttp import web  # installed with ComfyUI, but not for the tests

        remember(request.query.get("page", ""), request.query.get("language", ""))
        return web.json_response({})
