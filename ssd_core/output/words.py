"""The words a picture is drawn from: the typed prompt, its expansion, or those of a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..backbones.base import Backbone
from ..backbones.prompts.expanded import Expanded
from ..errors import SSDError
from .unknown import require_something_known

FIELDS = ("prompt_expanded", "negative_expanded")  # of a recipe, and of JSON


@dataclass(frozen=True)
class Words:
    """Prompt and negative prompt that a picture is drawn from. negative: None if empty."""

    prompt: str
    negative: str | None = None


def expansions(backbone: Backbone, prompt: object, negative: object, seeds: Sequence[int],
               leave_open: Sequence[str] = (), fill: bool = True) -> list[Expanded]:
    """The expanded prompt for each seed; [] if there is nothing to expand.

    fill: False only moves negations to the negative prompt. Raises SSDError for a prompt of unknown
    words alone: whatever was drawn would take the place of what it names.
    """
    if not isinstance(prompt, str) or not isinstance(negative, str | None) or not prompt.strip():
        return []  # the engine refuses it and says why
    require_something_known(backbone, prompt)
    made = [backbone.expand(prompt, negative, seed, tuple(leave_open), fill) for seed in seeds]
    return [expanded for expanded in made if expanded is not None and (fill or expanded.moved)]


def words_to_draw(backbone: Backbone, typed: Words, seed: int, guided: bool, fill: bool) -> Words:
    """The words a picture is drawn from; without guidance, none of the negations in the prompt."""
    made = expansions(backbone, typed.prompt, typed.negative, [seed], fill=fill)
    drawn = Words(made[0].prompt, made[0].negative) if made else typed
    return drawn if guided or typed.negative else replace(drawn, negative=None)


def shared(fixed: Sequence[Words], pictures: int) -> tuple[Words, ...]:
    """The words of each picture: one for all, repeated, or one per picture."""
    if len(fixed) not in (1, pictures):
        raise SSDError(f"fixed: words of {len(fixed)} pictures do not fit {pictures}")
    if len({words.negative for words in fixed}) > 1:
        raise SSDError("fixed: the pictures of one run share the negative prompt; draw those with "
                       "another one by themselves")
    return tuple(fixed) * (pictures if len(fixed) == 1 else 1)


def inherited(parent: Mapping | None, typed: Words) -> tuple[Words, ...]:
    """For `Request.fixed`: a parent's drawn words if its typed words are these, else ()."""
    same = parent is not None and typed_words(parent) == typed
    return (drawn_words(parent),) if parent is not None and same else ()


def typed_words(recipe: Mapping) -> Words:
    return Words(recipe["prompt"], recipe["negative"] or None)


def drawn_words(recipe: Mapping) -> Words:
    """The words that a recipe's picture was drawn from: the expanded or else the typed ones."""
    prompt, negative = FIELDS
    if prompt not in recipe:
        return typed_words(recipe)
    return Words(recipe[prompt], recipe.get(negative) or None)
