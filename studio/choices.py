"""Alternatives in prompts: of `{a|b}` the seed chooses one, or each is drawn."""

from __future__ import annotations

import hashlib
import re

from ssd_core import SSDError

CHOICE = re.compile(r"\{([^{}]*\|[^{}]*)\}")  # innermost ones first
MOST = 64  # pictures that alternatives make at once


def chosen(prompt: str, seed: int) -> str:
    """A prompt with one of each of its alternatives, always the same for a seed."""
    place = 0
    while (found := CHOICE.search(prompt)) is not None:
        words = found[1].split("|")
        digest = hashlib.sha256(f"{seed}/{place}".encode()).digest()
        word = words[int.from_bytes(digest[:8], "big") % len(words)]
        prompt, place = with_word(prompt, found, word), place + 1
    return prompt


def every(prompt: str) -> list[str]:
    """Each prompt that alternatives make, in their order; SSDError if there are too many."""
    if how_many(prompt) > MOST:
        raise SSDError(f"prompt: its alternatives make more than {MOST} pictures: leave some out")
    return expanded(prompt)


def how_many(prompt: str) -> int:
    """How many prompts its alternatives make; more than MOST are not all counted."""
    return len(expanded(prompt))


def expanded(prompt: str) -> list[str]:
    prompts = [prompt]
    while len(prompts) <= MOST and any(map(CHOICE.search, prompts)):
        prompts = list(dict.fromkeys(one for prompt in prompts for one in split(prompt)))
    return prompts


def split(prompt: str) -> list[str]:
    """The prompts that the first alternatives make."""
    found = CHOICE.search(prompt)
    if found is None:
        return [prompt]
    return [with_word(prompt, found, word) for word in found[1].split("|")]


def with_word(prompt: str, found: re.Match[str], word: str) -> str:
    """The prompt with a word in place of what was found; no double blanks around an empty one."""
    before, after = prompt[: found.start()], prompt[found.end() :]
    if not word.strip():
        return (before.rstrip() + " " + after.lstrip()).strip()
    return f"{before}{word.strip()}{after}"
