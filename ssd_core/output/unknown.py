"""Notes about words that a backbone does not know, or knows only in other phrases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..backbones.base import Backbone
from ..errors import SSDError

LEFT_OUT = "does not know, and leaves out"
NAMED = 5  # words in an error line
MISPLACED = "may draw these words elsewhere in the picture, or not at all"


def unknown_in(backbone: Backbone, texts: Iterable[str]) -> list[str]:
    """Words that the backbone ignores, without repeats."""
    return list(dict.fromkeys(word for text in texts for word in backbone.unknown_words(text)))


def objects_in(backbone: Backbone, texts: Iterable[str]) -> list[str]:
    """Things that the backbone cannot draw, such as "a dog", without repeats."""
    return list(dict.fromkeys(thing.typed for text in texts
                              for thing in backbone.unknown_objects(text)))


def misplaced_in(backbone: Backbone, texts: Iterable[str]) -> list[str]:
    """Words that the backbone reads but knows only in other phrases, without repeats."""
    return list(dict.fromkeys(word for text in texts for word in backbone.misplaced_words(text)))


def limits_of(backbone: Backbone, prompts: Iterable[str]) -> list[str]:
    """Sentences about what prompts ask for and the backbone never draws, without repeats."""
    return list(dict.fromkeys(f"{backbone.name} never draws {limit}"
                              for prompt in prompts for limit in backbone.limits(prompt)))


def word_notes(backbone: Backbone, texts: Sequence[str], prompts: Sequence[str],
               most: int | None = None) -> list[str]:
    """Sentences about unknown and misplaced words, with at most `most` of them, and about limits.

    texts: as drawn. prompts: as typed; the words of their unknown things are not told again.
    """
    objects = objects_in(backbone, prompts)
    words = {word for thing in objects for word in backbone.unknown_words(thing)}
    others = [word for word in unknown_in(backbone, texts) if word not in words]
    kinds = {LEFT_OUT: [*objects, *others], MISPLACED: misplaced_in(backbone, texts)}
    return [f"{backbone.name} {what}: {listed(words, most)}"
            for what, words in kinds.items() if words] + limits_of(backbone, prompts)


def listed(words: Sequence[str], most: int | None = None) -> str:
    more = len(words) - len(words[:most])
    return ", ".join(words[:most]) + (f" and {more} more" if more else "")


def require_something_known(backbone: Backbone, prompt: str) -> None:
    """Raise SSDError for a prompt of unknown words alone."""
    if backbone.names_nothing_known(prompt):
        unknown = objects_in(backbone, [prompt]) or unknown_in(backbone, [prompt])
        raise SSDError(
            f"{backbone.name} cannot draw {listed(unknown, NAMED)}, and the prompt names nothing "
            "else: name what it knows, such as a house, a tree or the sea")


def require_known(backbone: Backbone, texts: Sequence[str], objects: Sequence[str] = ()) -> None:
    """Raise SSDError for unknown things and words of either kind, as --strict-words asks."""
    if words := [*objects, *unknown_in(backbone, texts), *misplaced_in(backbone, texts)]:
        raise SSDError(f"words unknown to {backbone.name}: {', '.join(words)}; use other words")
