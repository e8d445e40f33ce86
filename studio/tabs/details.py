"""What the History tab shows of a picture: the picture itself, and what its recipe says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import quote

from ssd_core import SSDError
from ssd_core.output.recipe import opened, read_recipe
from ssd_core.output.words import drawn_words

from ..history import Entry
from ..words import label_in, run_title, say


def caption(entry: Entry, language: str) -> str:
    """The prompt and the method of a picture; its name if it has no recipe."""
    if entry.prompt is None or entry.label is None:
        return entry.path.stem
    return f"{entry.prompt} · {run_title(entry.label, language)}"


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


def facts(entry: Entry, recipe: Mapping | None, language: str) -> Sequence[tuple[str, str]]:
    """(name, value) of what is known about a picture, the most telling first."""
    size = [(say(language, "size"), f"{entry.width} x {entry.height}")]
    if recipe is None:
        return [*size, (say(language, "recipe"), say(language, "no_recipe"))]
    seconds = recipe.get("seconds", {}).get("total")
    drawn = drawn_words(recipe)
    pairs = [(say(language, "prompt"), recipe["prompt"]),
             (say(language, "drawn_from"),
              drawn.prompt if drawn.prompt != recipe["prompt"] else ""),
             (say(language, "negative"), drawn.negative or ""),
             (say(language, "method"), run_title(entry.label or "", language)),
             (label_in(language, "seed"), str(recipe["seed"])), *size,
             (say(language, "backbone"), recipe["backbone"]["name"][:60]),
             (say(language, "passes"), str(recipe.get("passes", ""))),
             (say(language, "seconds"), f"{seconds:.2f}" if isinstance(seconds, float) else "")]
    return [(name, value) for name, value in pairs if value]


def copy_buttons(entry: Entry, recipe: Mapping, language: str) -> str:
    """Buttons whose data-copy web/manners.js puts on the clipboard."""
    with opened(entry.path) as image:
        settings = image.info.get("parameters")
    texts = {"copy_prompt": recipe["prompt"], **({"copy_settings": settings} if settings else {})}
    return "".join(
        f'<button type="button" class="studio-copy" data-copy="{escape(text)}" '
        f'data-copied="{escape(say(language, "copied"))}">{escape(say(language, key))}</button>'
        for key, text in texts.items())
