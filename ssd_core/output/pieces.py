"""How hosts show a prompt that differs from the typed one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby

from .words import Words

Piece = tuple[str, bool]  # a text, and whether it was added to the typed prompt
_TOKENS = re.compile(r"[a-z0-9'-]+|\s+|.", re.IGNORECASE | re.DOTALL)


def pieces(typed: str, drawn: str) -> list[Piece]:
    """The drawn prompt split into pieces, alternately typed and added."""
    return [("".join(text for text, _ in group), added)
            for added, group in groupby(_marked(typed, drawn), key=lambda piece: piece[1])]


def _marked(typed: str, drawn: str) -> Iterator[Piece]:
    before, after = _TOKENS.findall(typed), _TOKENS.findall(drawn)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, _, _, first, last in matcher.get_opcodes():
        yield from ((text, kind != "equal") for text in after[first:last])


def shown(typed: Words, words: Sequence[Words]) -> list[list[Piece]]:
    """The pieces of each picture's prompt; [] if every prompt equals the typed one."""
    if all(drawn.prompt == typed.prompt for drawn in words):
        return []
    return [pieces(typed.prompt, drawn.prompt) for drawn in words]


def word_lines(typed: Words, words: Sequence[Words], seeds: Sequence[int]) -> list[str]:
    """Lines with the prompts that are drawn; [] if they equal the typed ones."""
    if all(drawn == typed for drawn in words):
        return []
    prompts = [drawn.prompt for drawn in words]
    lines = ([f"drawn from: {prompts[0]}"] if len(set(prompts)) == 1 else
             [f"seed {seed} is drawn from: {prompt}"
              for seed, prompt in zip(seeds, prompts, strict=True)])
    negative = words[0].negative
    return [*lines, f"negative prompt: {negative}"] if negative != typed.negative else lines
