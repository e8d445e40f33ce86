"""Words that have a meaning only next to certain others, derived from the captions' tables.

Captions have "rocky" only before mountains and "red" only before a thing: in "a rocky beach" or
"a red sky" such a word has no effect, although the vocabulary contains it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from .captions import _COLOUR_WORDS, _FIRST, _MEANING, _NOUNS, _PARTS

Meaning = tuple[str, str]
SHOWN = 3  # phrases quoted in a note


def lonely(words: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(position, its known phrases) of each word that is not followed by one of its partners.

    words: the known words of a prompt, in lower case and in order.
    """
    for position, (word, after) in enumerate(zip_longest(words, words[1:], fillvalue="")):
        if word in PHRASES and not belongs(word, after):
            yield position, PHRASES[word]


def belongs(word: str, after: str) -> bool:
    """Whether `after` is a word that follows `word` in captions, or one of the same meaning."""
    if word in _COLOURS:
        return meaning(word, after)[0] == "kind"
    return meaning(word, after) == _DECORATIONS[word]


def meaning(word: str, after: str) -> Meaning:
    """The claim of `after` when it follows `word`; a few pairs have a claim of their own."""
    return _MEANING.get(f"{word} {after}") or _MEANING.get(after, ("", ""))


def quoted(phrases: Sequence[str]) -> str:
    """The first phrases, quoted for a note: "rocky peaks", "rocky mountains"."""
    listed = [f'"{phrase}"' for phrase in phrases[:SHOWN]]
    return ", ".join(listed + ["..."] * (len(phrases) > SHOWN))


def _followers() -> dict[str, list[tuple[str, Meaning]]]:
    """For each word without a claim of its own: the next words, and the claims of its phrases."""
    followers = defaultdict(list)
    openings = {word for text in _FIRST for word in text.split()}
    for claim, texts in _PARTS.items():
        for words in map(str.split, texts):
            for word, after in zip_longest(words, words[1:], fillvalue=""):
                if word not in _MEANING and word not in openings:
                    followers[word].append((after, claim))
    return followers


def _decorates(seen: list[tuple[str, Meaning]], word: str) -> bool:
    """Whether the word always directly precedes the word of one and the same claim."""
    return len({claim for _, claim in seen}) == 1 and all(
        meaning(word, after) == claim for after, claim in seen)


_FOLLOWERS = _followers()
_DECORATIONS: dict[str, Meaning] = {
    word: seen[0][1] for word, seen in _FOLLOWERS.items() if _decorates(seen, word)}
_COLOURS = {word for words in _COLOUR_WORDS.values() for word in words}
PHRASES: dict[str, tuple[str, ...]] = {
    **{word: tuple(dict.fromkeys(f"{word} {after}" for after, _ in _FOLLOWERS[word]))
       for word in _DECORATIONS},
    **{word: tuple(f"{word} {kind}" for kind in _NOUNS) for word in _COLOURS}}
