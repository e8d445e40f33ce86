"""What the History tab shows of a picture: the picture itself, and what its recipe says."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from urllib.parse import quote

from ssd_core import SSDError
from ssd_core.output.recipe import read_recipe

from ..facts import copied, facts
from ..history import Entry
from ..words import say


def details_html(entry: Entry, language: str, favourite: bool) -> str:
    """The picture, its facts, and buttons that copy its prompt and its settings."""
    try:
        recipe = read_recipe(entry.path)
    except SSDError:
        recipe = None
    pairs = facts(entry, recipe, language)
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs)
    copies = copy_buttons(entry, recipe, language) if recipe else ""
    mark = ' <span class="studio-mark" aria-hidden="true">★</span>' if favourite else ""
    return (f'<div class="studio-details"><img src="/studio/picture/{quote(entry.id)}" '
            f'alt="{escape(entry.prompt or entry.path.stem)}"><h3>{escape(entry.path.stem)}{mark}'
            f"</h3><dl>{rows}</dl>{copies}</div>")


def copy_buttons(entry: Entry, recipe: Mapping, language: str) -> str:
    """Buttons whose data-copy web/manners.js puts on the clipboard."""
    return "".join(
        f'<button type="button" class="studio-copy" data-copy="{escape(text)}" '
        f'data-copied="{escape(say(language, "copied"))}">{escape(say(language, key))}</button>'
        for key, text in copied(entry, recipe).items())
