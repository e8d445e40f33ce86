"""What is filled into a prompt before it is drawn, as web/fill_ins.js shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from ssd_core import Sampling, SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.prompts.alternatives import resolved
from ssd_core.backbones.prompts.expanded import Added, Expanded, edited, pinned
from ssd_core.output.drawing import Drawing
from ssd_core.output.words import Words, expansions
from ssd_core.runs.request import Request

from .alternatives import with_alternative


def expands(backbone: Backbone) -> bool:
    """Whether a backbone has words for what a prompt leaves open."""
    return backbone.expand("a house", None, 0) is not None


def filled(typed: Drawing, backbone: Backbone, chinese: bool) -> dict | None:
    """What the page shows: additions, or the words of another picture; None for nothing."""
    drawing = with_alternative(typed)
    names, made, fixed = drawing.open, None, next(iter(drawing.fixed), None)
    if drawing.expand:
        names, made = ((names, filled_in(drawing, backbone, names)) if fixed is None
                       else as_fixed(drawing, fixed, backbone))
    if made is None:
        if fixed is None or fixed == Words(drawing.prompt, drawing.negative):
            return None
        return message(typed, text=text_of(fixed))
    chips = [chip(typed, added, chinese) for added in made.added]
    return message(typed, names, chips) if chips or names else None


def message(drawing: Drawing, names: Sequence[str] = (), chips: Sequence[dict] = (),
            text: str = "") -> dict:
    return {"prompt": drawing.prompt, "open": list(names), "chips": list(chips), "text": text,
            "pictures": drawing.pictures}


def chip(typed: Drawing, added: Added, chinese: bool) -> dict:
    """An addition: what it says, what it takes the place of, and the prompt with it."""
    return {"name": added.name, "text": added.chinese if chinese else added.text,
            "instead": added.replaced, "pinned": pinned_into(typed, added)}


def pinned_into(typed: Drawing, added: Added) -> str:
    """The typed prompt with an addition in it; without its alternatives if one is rewritten."""
    seed = typed.sampling.seed
    own = resolved(typed.prompt, seed)
    start = own.place(added.start)
    end = own.origin[added.end - 1] + 1 if added.end > added.start else start
    whole, wanted = edited(typed.prompt, [(start, end, added.written)]), pinned(own.text, added)
    return whole if resolved(whole, seed).text == wanted else wanted


def filled_in(drawing: Drawing, backbone: Backbone, names: Sequence[str]) -> Expanded | None:
    with suppress(SSDError):  # that nothing can be drawn is told as a note
        return next(iter(expansions(backbone, drawing.prompt, drawing.negative,
                                    [drawing.sampling.seed], names)), None)
    return None


def as_fixed(drawing: Drawing, fixed: Words,
             backbone: Backbone) -> tuple[tuple[str, ...], Expanded | None]:
    """The additions, and those left open, by which the prompt becomes the words that are fixed.

    None if the seed or a newer version fills in others.
    """
    whole = filled_in(drawing, backbone, ())
    names = tuple(added.name for added in whole.added
                  if added.written.strip(" ,，") not in fixed.prompt) if whole else ()
    made = filled_in(drawing, backbone, names)
    same = made is not None and Words(made.prompt, made.negative) == fixed
    return (names, made) if same else ((), None)


def own_additions(backbone: Backbone, typed: Words | None, drawn: Words | None,
                  seed: int | None) -> Callable[[str], str] | None:
    """What fills other prompts in as a picture's own one was; None if that is not known.

    typed, drawn, seed: of the picture.
    """
    if typed is None or drawn is None or seed is None or typed == drawn:
        return None
    own = Drawing(typed.prompt, typed.negative, sampling=Sampling(seed=seed))
    names, made = as_fixed(own, drawn, backbone)
    if made is None:
        return None

    def complete(prompt: str) -> str:
        whole = filled_in(replace(own, prompt=prompt), backbone, names)
        return prompt if whole is None else whole.prompt

    return complete


def text_of(words: Words) -> str:
    return words.prompt if words.negative is None else f"{words.prompt} (− {words.negative})"


def moved(request: Request) -> tuple[str, ...]:
    """Negations that are drawn as part of the negative prompt."""
    return request.expansions[0].moved if request.expansions else ()
