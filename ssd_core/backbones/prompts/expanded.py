"""The result of expanding a prompt: the words to draw, and the additions to the typed ones.

Each addition is an edit of the typed prompt, so that it can be omitted, or written into the prompt,
without the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

CUT = "\0"  # stands where something was cut
_HANGING = re.compile(  # at the beginning of a part that was cut
    rf"(^|[,.;，。；、])\s*{CUT}\s*(?:[,，、]|"
    r"(?:and|with|but|of|to|next to|in front of|behind|的|和|与)(?![a-z]))", re.IGNORECASE)


@dataclass(frozen=True)
class Added:
    """An addition. name: identifies it among those of a prompt, also with other seeds.

    attribute: as in claims. text: for display. chinese: the same in Chinese. start, end: the
    characters of the typed prompt that `written` replaces; equal if it only inserts. replaced: the
    typed words that `written` rephrases, "" if it only inserts.
    """

    name: str
    attribute: str
    text: str
    chinese: str
    start: int
    end: int
    written: str
    replaced: str = ""


@dataclass(frozen=True)
class Expanded:
    """prompt, negative: the words to draw; negative is None if empty.

    added: in the order of the prompt. moved: negations of the typed prompt, such as "no trees", now
    in the negative prompt. left_out: its things that cannot be drawn, such as "a dog".
    """

    prompt: str
    negative: str | None
    added: tuple[Added, ...] = ()
    moved: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """A sentence for each phrase that was moved."""
        return [f"'{phrase}' was moved to the negative prompt" for phrase in self.moved]


def pinned(prompt: str, addition: Added) -> str:
    """The typed prompt with an addition written into it.

    With the same seed it expands to the same phrases as before, perhaps in another order.
    """
    return edited(prompt, [(addition.start, addition.end, addition.written)])


def blanked(prompt: str, cuts: Iterable[tuple[int, int]]) -> str:
    """The prompt with blanks in place of [start, end): the positions of the rest stay."""
    return edited(prompt, [(start, end, " " * (end - start)) for start, end in cuts])


def merged(cuts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cuts [start, end) without those that overlap."""
    whole: list[tuple[int, int]] = []
    for start, end in sorted(cuts):
        if whole and start <= whole[-1][1]:
            start, end = whole[-1][0], max(end, whole.pop()[1])
        whole.append((start, end))
    return whole


def edited(prompt: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The prompt with texts in place of [start, end); edits at the same place stay in order."""
    pieces, done = [], 0
    for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [prompt[done:start], text]
        done = max(done, end)
    return "".join([*pieces, prompt[done:]])


def without(prompt: str, cuts: Iterable[tuple[int, int]],
            edits: Iterable[tuple[int, int, str]] = ()) -> str:
    """The prompt without [start, end), and without marks and small words that were left hanging.

    edits: made besides, as in `edited`.
    """
    cuts = list(cuts)
    behind = dict(cuts)  # what is added where a cut begins goes behind it
    edits = [(behind.get(start, start) if start == end else start, behind.get(end, end)
              if start == end else end, new) for start, end, new in edits]
    prompt = edited(prompt, [*((start, end, CUT) for start, end in cuts), *edits])
    if not cuts:
        return prompt
    while (less := _HANGING.sub(rf"\1{CUT}", prompt)) != prompt:
        prompt = less
    return prompt.replace(CUT, "").strip(" ,，、;；")
