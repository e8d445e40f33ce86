"""The words that are drawn for what was typed: by expansion, or as a recipe has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..backbones.base import Backbone
from ..errors import SSDError
from ..postcards.expanded import Expanded

FIELDS = ("prompt_expanded", "negative_expanded")  # of a recipe, and of JSON


@dataclass(frozen=True)
class Words:
    """What a picture is drawn from. negative: None if empty."""

    prompt: str
    negative: str | None = None


def expansions(backbone: Backbone, prompt: object, negative: object, seeds: Sequence[int],
               leave_open: Sequence[str]) -> list[Expanded]:
    """What expansion makes of a prompt for each seed; [] if there is nothing to expand."""
    if not isinstance(prompt, str) or not isinstance(negative, str | None) or not prompt.strip():
        return []  # the engine refuses it with the reason
    made = [backbone.expand(prompt, negative, seed, tuple(leave_open)) for seed in seeds]
    return [one for one in made if one is not None]


def filled_in(backbone: Backbone, typed: Words, seed: int, guided: bool) -> Words:
    """What one picture is drawn from. Without guidance no negation that was typed in the prompt."""
    made = expansions(backbone, typed.prompt, typed.negative, [seed], ())
    drawn = Words(made[0].prompt, made[0].negative) if made else typed
    return drawn if guided or typed.negative else replace(drawn, negative=None)


def shared(fixed: Sequence[Words], pictures: int) -> tuple[Words, ...]:
    """The same words for all pictures, or those of each."""
    if len(fixed) not in (1, pictures):
        raise SSDError(f"fixed: words of {len(fixed)} pictures do not fit {pictures}")
    if len({words.negative for words in fixed}) > 1:
        raise SSDError("fixed: the pictures of one run share the negative prompt; draw those with "
                       "another one by themselves")
    return tuple(fixed) * (pictures if len(fixed) == 1 else 1)


def inherited(parent: Mapping | None, typed: Words) -> tuple[Words, ...]:
    """For `Request.fixed`: what a parent's recipe was drawn from, if the same was typed for it."""
    same = parent is not None and typed_words(parent) == typed
    return (drawn_words(parent),) if parent is not None and same else ()


def recorded(typed: Words, drawn: Words) -> dict[str, str | None]:
    """The fields that a recipe has if other words were drawn than were typed."""
    return {} if typed == drawn else dict(zip(FIELDS, (drawn.prompt, drawn.negative), strict=True))


def typed_words(recipe: Mapping) -> Words:
    return Words(recipe["prompt"], recipe["negative"] or None)


def drawn_words(recipe: Mapping) -> Words:
    """The words that a recipe's picture was drawn from: expanded ones, or else those typed."""
    prompt, negative = FIELDS
    if prompt not in recipe:
        return typed_words(recipe)
    return Words(recipe[prompt], recipe.get(negative) or None)
