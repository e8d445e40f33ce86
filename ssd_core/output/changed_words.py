"""Old and new words of an edit, from the recipe of a picture.

What was filled into the old words is filled into the new ones, too: else an edit would take all of
it for a change. Both also get what the picture shows and neither mentions, such as rain: else a
change of the whole picture would lose it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from difflib import SequenceMatcher

from ..backbones.base import Backbone
from ..errors import SSDError
from ..model.grid import size_of
from .pixels import pixels
from .recipe import recipe_tokens, to_bytes
from .words import drawn_words, typed_words

_PIECE = re.compile(r"[,.;，。；、]|[^\s,.;，。；、]+")
_MARK = re.compile(r"[,.;，。；、]")


def changed_words(backbone: Backbone, recipe: Mapping, prompt: str) -> tuple[str, str]:
    """The words that a recipe's picture was drawn from, and those to draw for a new prompt.

    The typed ones are completed alike unless the new prompt rewrites what was filled in.
    """
    typed, drawn = typed_words(recipe).prompt, drawn_words(recipe).prompt
    new = None if typed == drawn else completed_alike(typed, drawn, prompt)
    if new is None:
        return with_what_is_seen(backbone, recipe, typed, prompt)
    new = backbone.without_contradictions(new, prompt)
    return with_what_is_seen(backbone, recipe, drawn, new)


def with_what_is_seen(backbone: Backbone, recipe: Mapping, old: str, new: str) -> tuple[str, str]:
    """Both prompts, completed by what the picture shows, as far as the backbone takes it."""
    same = recipe["backbone"]["sha256"] == backbone.sha256
    if not (backbone.reads_pictures and same) or backbone.device.type == "meta":
        return old, new
    sized = backbone.resized(size_of(recipe["size"])).smallest
    (picture,) = pixels(sized, recipe_tokens(recipe)[None])
    for phrase in backbone.seen(to_bytes(picture), (old, new)):
        longer = f"{old}, {phrase}", f"{new}, {phrase}"
        with suppress(SSDError):
            for prompt in longer:
                backbone.tokenize(prompt)
            old, new = longer
    return old, new


def completed_alike(typed: str, drawn: str, prompt: str) -> str | None:
    """`drawn`, with the change from `typed` to `prompt`; None if it touches what was filled in."""
    old, full, new = (_PIECE.findall(text) for text in (typed, drawn, prompt))
    places = {i + n: j + n for i, j, size in SequenceMatcher(None, old, full, False)
              .get_matching_blocks() for n in range(size)}
    changes = []
    for kind, start, stop, first, last in SequenceMatcher(None, old, new, False).get_opcodes():
        if kind == "equal":
            continue
        if any(n not in places for n in range(max(start - 1, 0), stop)):
            return None
        at = places[start] if stop > start else behind(full, places, start)
        end = places[stop - 1] + 1 if stop > start else at
        changes.append((at, end, new[first:last]))
    for at, end, pieces in reversed(changes):
        full[at:end] = pieces
    return re.sub(r"\s+(?=[,.;，。；、])", "", " ".join(full))


def behind(full: list[str], places: Mapping[int, int], index: int) -> int:
    """Where to insert before the old piece `index`: behind what was filled in without a mark."""
    if index == 0:
        return 0
    at, known = places[index - 1] + 1, set(places.values())
    while at < len(full) and at not in known and not _MARK.match(full[at]) and full[at] != "and":
        at += 1
    return at
