"""Alternatives in a prompt: of `{red|blue}` one is drawn, by the seed; groups may be nested.

Knows no host.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice, pairwise

MOST_ALTERNATIVES = 64  # prompts that are drawn at once
_GROUP = re.compile(r"\{[^{}|]*(?:\|[^{}|]*)+\}")  # one without another inside


@dataclass(frozen=True)
class Resolved:
    """A prompt without some alternatives. origin: the position of each character as typed."""

    typed: str
    origin: tuple[int, ...]

    @property
    def text(self) -> str:
        return "".join(self.typed[at] for at in self.origin)

    @property
    def tidy(self) -> Resolved:
        """The same without the blanks that an alternative leaves behind."""
        text = self.text
        blank = [sign.isspace() for sign in text]
        return Resolved(self.typed, tuple(at for n, at in enumerate(self.origin)
                                          if not blank[n] or (
            text[:n].strip() and text[n:].strip() and not blank[n - 1])))

    @property
    def words(self) -> list[str]:
        """What is drawn in place of each group."""
        inside = [self.typed[:at].count("{") > self.typed[:at].count("}") for at in self.origin]
        groups = groupby(zip(inside, self.text, strict=True), key=lambda pair: pair[0])
        return ["".join(sign for _, sign in group).strip()
                for in_group, group in groups if in_group]

    def variants(self) -> list[Resolved]:
        """This prompt with each alternative of its first group; [] without one."""
        group = _GROUP.search(self.text)
        if group is None:
            return []
        bars = [group.start(), *(group.start() + n for n, sign in enumerate(group[0])
                                 if sign == "|"), group.end() - 1]
        before, after = self.origin[: group.start()], self.origin[group.end():]
        return [Resolved(self.typed, before + self.origin[bar + 1: end] + after)
                for bar, end in pairwise(bars)]

    def place(self, at: int) -> int:
        """Where as typed a text belongs that is inserted at `at`: outside of groups, if it can."""
        before = self.origin[at - 1] + 1 if at else 0
        after = self.origin[at] if at < len(self.origin) else len(self.typed)
        return before if self.typed[before:after].startswith("{") else after


def as_typed(prompt: str) -> Resolved:
    return Resolved(prompt, tuple(range(len(prompt))))


@lru_cache(64)
def resolved(prompt: str, seed: int) -> Resolved:
    """The prompt that a seed draws."""
    current, draw = as_typed(prompt), random.Random(seed)
    if not has_alternatives(prompt):
        return current
    while variants := current.variants():
        current = draw.choice(variants)
    return current.tidy


def has_alternatives(prompt: str) -> bool:
    return _GROUP.search(prompt) is not None


def every_prompt(prompt: str) -> list[str]:
    """All prompts, or MOST_ALTERNATIVES + 1 of them if there are more."""
    return list(dict.fromkeys(islice(_every(as_typed(prompt)), MOST_ALTERNATIVES + 1)))


def _every(current: Resolved) -> Iterator[str]:
    left = [current]
    while left:
        current = left.pop()
        variants = current.variants()
        left += reversed(variants)
        if not variants:
            yield current.tidy.text
