"""Notes about words that a backbone does not know, or knows only in other phrases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..backbones.base import Backbone
from ..errors import SSDError

MISPLACED = "may draw these words elsewhere in the picture, or not at all"


def unknown_in(backbone: Backbone, texts: Iterable[str]) -> list[str]:
    """Words that the backbone ignores, without repeats."""
    return list(dict.fromkeys(word for text in texts for word in backbone.unknown_words(text)))


def misplaced_in(backbone: Backbone, texts: Iterable[str]) -> list[str]:
    """Words that the backbone reads but knows only in other phrases, without repeats."""
    return list(dict.fromkeys(word for text in texts for word in backbone.misplaced_words(text)))


def word_notes(backbone: Backbone, texts: Sequence[str], most: int | None = None) -> list[str]:
    """A sentence for each of the two kinds that occurs, with at most `most` words."""
    kinds = {"does not know, and ignores": unknown_in(backbone, texts),
             MISPLACED: misplaced_in(backbone, texts)}
    return [f"{backbone.name} {what}: {listed(words, most)}"
            for what, words in kinds.items() if words]


def listed(words: Sequence[str], most: int | None = None) -> str:
    more = len(words) - len(words[:most])
    return ", ".join(words[:most]) + (f" and {more} more" if more else "")


def require_known(backbone: Backbone, texts: Sequence[str]) -> None:
    """Raise SSDError for words of either kind, as --strict-words asks."""
    if words := [*unknown_in(backbone, texts), *misplaced_in(backbone, texts)]:
        raise SSDError(f"words unknown to {backbone.name}: {', '.join(words)}; use other words")
