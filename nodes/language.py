"""The language of ComfyUI's page, in which the nodes show their texts.

The page sends it, because ComfyUI's server does not know it. Programs that use ComfyUI without its
page get English.
"""

from __future__ import annotations

from collections import OrderedDict

from server import PromptServer

from ..ssd_core.output.chinese import report_in_chinese

MAX_PAGES = 64
PAGES: OrderedDict[str, str] = OrderedDict()  # languages by the ids of pages, the latest last
SPOKEN: set[tuple[str, str]] = set()  # pages and nodes that show a text


def localized(text: str) -> str:
    """Translate a text to the language of the page that queued the run."""
    return translated(text, page_language())


def localized_for_all(text: str) -> str:
    """Translate a text before a run, when its page is not known: the latest page's language."""
    return translated(text, next(reversed(PAGES.values()), ""))


def translated(text: str, language: str) -> str:
    return report_in_chinese(text) if is_chinese(language) else text


def remember(page: str, language: str) -> None:
    PAGES[page] = language
    PAGES.move_to_end(page)
    while len(PAGES) > MAX_PAGES:
        PAGES.popitem(last=False)


def is_chinese(language: str) -> bool:
    return language.lower().startswith("zh")


def page_language() -> str:
    """The language of the page that queued the run; empty if it is not known."""
    return PAGES.get(PromptServer.instance.client_id or "", "")


def show_text(node: str | None, text: str) -> None:
    """Show a text on the node in the tab that queued the run, in its language; no tab, no text.

    It stays there until another one takes its place, or `clear_text`.
    """
    server = PromptServer.instance
    if node is not None and server.client_id is not None:
        SPOKEN.add((server.client_id, node))
        server.send_progress_text(localized(text), node, server.client_id)


def clear_text(node: str | None) -> None:
    """Take away what was said on the node in an earlier run; the page removes an empty text."""
    server = PromptServer.instance
    if node is not None and (server.client_id, node) in SPOKEN:
        SPOKEN.discard((server.client_id, node))
        server.send_progress_text("", node, server.client_id)
