"""What expansion makes of a prompt: the words to draw, and what was added to those typed.

Everything added is an edit of the typed prompt, so that each addition can be left away, or written
into the prompt, without the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Added:
    """One addition. name: identifies it among those of a prompt, also under other seeds.

    attribute: what it says something about, as in claims. text: how a host shows it. chinese: the
    same in Chinese. start, end: the characters of the typed prompt that `written` takes the place
    of; equal where it only stands between others. replaced: the typed words among them that are
    said in another way, "" where all of them stay.
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

    added: in the order in which they stand in the prompt. moved: negations that were typed in the
    prompt, such as "no trees"; they now stand in the negative prompt.
    """

    prompt: str
    negative: str | None
    added: tuple[Added, ...] = ()
    moved: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """A sentence for everything that was moved."""
        return [f"'{phrase}' was moved to the negative prompt" for phrase in self.moved]


def pinned(prompt: str, addition: Added) -> str:
    """The typed prompt with one of its additions written into it.

    With the same seed it is expanded to the same phrases as before, at most in another order.
    """
    return edited(prompt, [(addition.start, addition.end, addition.written)])


def edited(prompt: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The prompt with texts put in place of [start, end), in the order given where they meet."""
    pieces, done = [], 0
    for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [prompt[done:start], text]
        done = max(done, end)
    return "".join([*pieces, prompt[done:]])
