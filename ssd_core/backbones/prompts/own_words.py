"""Words that a model's authors write with every prompt, and how a user writes others.

A bar in the prompt parts the words that take their place: "a fox | in oil". The negative prompt
"none" leaves out the authors' own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BAR = re.compile(r"(?<!<)\|(?!>)")  # not one of a control token, such as <|image|>
NONE = "none"


def is_none(negative: str | None) -> bool:
    """Whether a negative prompt asks for no words at all, not even the authors'."""
    return (negative or "").strip().lower() == NONE


@dataclass(frozen=True)
class OwnWords:
    """before, after: of every prompt, at most one of the two. negative: of guidance's second
    branch.
    """

    before: str = ""
    after: str = ""
    negative: str = ""

    @property
    def added(self) -> str:
        return (self.before or self.after).strip()

    def written(self, prompt: str) -> str:
        """A prompt with these words, or with those that the user wrote behind a bar (before it,
        if the authors' come first).
        """
        if self.added and BAR.search(prompt):
            return " ".join(part.strip() for part in BAR.split(prompt)).strip()
        return f"{self.before}{prompt}{self.after}"

    def asked(self, negative: str | None) -> str | None:
        """A negative prompt; None if it is empty, or leaves out what there is not."""
        return None if is_none(negative) and not self.negative else negative or None

    def notes(self, prompt: str, negative: str | None, guided: bool) -> list[str]:
        """What is drawn besides the typed words, and how to write something else."""
        notes = []
        if self.added and not BAR.search(prompt):
            example = "in oil | a fox" if self.before else "a fox | in oil"
            notes.append(f"the model's own words are added to the prompt: {self.added} To replace "
                         f"them write a bar and your own, as in '{example}', or the bar alone")
        if self.negative and guided and not negative:
            notes.append(f"the model's own negative prompt is used: {self.negative} Write another "
                         f"one, or {NONE}")
        return notes
