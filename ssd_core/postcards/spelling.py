"""Read a prompt: its words with their positions, and its statements about scene and things.

It applies the rules of `claims` to the words of `aliases` and records their positions, so that
words can be added beside them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile

from .aliases import MARKS, Said, meaning_of, said
from .captions import _MEANING

NUMBERS = {"one": 1, "two": 2, "pair": 2, "three": 3, "trio": 3, "four": 4, "five": 5, "six": 6,
           "一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "4": 4, "5": 5, "6": 6}
ARTICLES = ("a", "an", "the")
QUANTITIES = ("lone", "single", "some", "few")
_HINTS = {"snowy": ("ground", "snow"), "rocky": ("ridge", "mountains")}  # "a snowy village"
_BEFORE_A_PLACE = ("on", "to", "at", "in", "the")
BREAKS = (*MARKS, "and")
# Pieces without meaning that do not belong to the noun phrase after them.
_ASKING = ("draw", "paint", "show", "me", "please", "there", "it", "next", "side", "front", "only",
           "with", "just", "no", "without", "not")
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")
_LETTER = re.compile(r"[a-z]", re.IGNORECASE)


@dataclass(frozen=True)
class Word:
    """A known word, or "" for a piece without meaning, at [start, end) of the prompt.

    unknown: whether the vocabulary lacks the piece.
    """

    word: str
    typed: str
    start: int
    end: int
    unknown: bool = False

    @property
    def meaning(self) -> tuple[str, str]:
        """The claim of the word alone: attribute and value, both "" if there is none."""
        return _MEANING.get(self.word, ("", ""))

    @property
    def number(self) -> int | None:
        """The number it names, if any; a Chinese number may include its measure word."""
        return NUMBERS.get(self.word or self.typed.lower()) or (
            None if self.word else NUMBERS.get(self.typed[:1]))


@dataclass
class Named:
    """A thing as typed: its noun phrase begins at `start`, and its noun is at [noun, end).

    front: where it begins including a place before it: "on the left a house".
    number: as typed, None without one. plural: typed in the plural. twice: with two nouns, as in
    "pine tree". shades, place_hint: its colour, or those of its members, and its place, by words
    that make no claim.
    """

    kind: str
    start: int
    noun: int
    end: int
    colour: str | None = None
    place: str | None = None
    number: int | None = None
    plural: bool = False
    article: Word | None = None
    twice: bool = False
    front: int = 0
    shades: list[str] = field(default_factory=list)
    place_hint: str | None = None


@dataclass
class Reading:
    """The content of a prompt. scene: values by attribute; things: in the order of their nouns.

    hints: values by attribute that words without a claim suggest. light_place: where the sun or the
    moon is.
    """

    prompt: str
    words: list[Word]
    scene: dict[str, list[str]] = field(default_factory=dict)
    things: list[Named] = field(default_factory=list)
    hints: dict[str, str] = field(default_factory=dict)
    light_place: str | None = None

    @property
    def chinese(self) -> bool:
        """Whether additions are in Chinese."""
        return bool(_IDEOGRAPH.search(self.prompt)) and not _LETTER.search(self.prompt)

    @property
    def length(self) -> int:
        """The number of words and marks that a backbone receives."""
        return length_of(self.prompt)


def length_of(prompt: str) -> int:
    """The number of words and marks of a prompt; a backbone, which drops repeats, may get fewer."""
    return sum(len(piece.words or ()) for piece in said(unicodedata.normalize("NFKC", prompt)))


def words_of(prompt: str) -> list[Word]:
    """The words of a prompt; those of one piece share its position."""
    return [Word(word, piece.typed, *span, piece.words is None and not word)
            for piece, *span in placed(prompt) for word in _known(piece) or ("",)]


def pieces_of(prompt: str) -> list[tuple[Word, ...]]:
    """The words of a prompt, together if they are of one typed piece."""
    return [tuple(group) for _, group in groupby(words_of(prompt), key=lambda word: word.start)]


def placed(prompt: str) -> Iterator[tuple[Said, int, int]]:
    """The pieces of a prompt, each at [start, end) of it."""
    plain = [unicodedata.normalize("NFKC", character) for character in prompt]
    origin = [n for n, text in enumerate(plain) for _ in text]
    text, position = "".join(plain), 0
    for piece in said(text):
        start = text.index(piece.typed, position)
        position = start + len(piece.typed)
        yield piece, origin[start], origin[position - 1] + 1


def _known(piece: Said) -> tuple[str, ...]:
    """The words of a piece; a plural of a known thing is that thing."""
    if piece.words is not None:
        return piece.words
    typed = piece.typed.lower()
    for ending in ("s", "es"):
        if typed.endswith(ending):
            words = meaning_of(typed.removesuffix(ending)) or ()
            if len(words) == 1 and _MEANING.get(words[0], ("",))[0] == "kind":
                return words
    return ()


def read(prompt: str) -> Reading:
    """Read a prompt by the rules of `claims`."""
    reading = Reading(prompt, words_of(prompt))
    _Reader(reading).run()
    return reading


@dataclass
class _Reader:
    """Reads the words in order; a place belongs to the noun before it, else to the one after it."""

    reading: Reading
    noun: Named | str | None = None
    colour: str | None = None
    place: str | None = None
    at: int = 0  # start of the phrase of that place
    place_hint: str | None = None

    def run(self) -> None:
        words = self.reading.words
        for n, word in enumerate(words):
            following = words[n + 1].word if n + 1 < len(words) else ""
            attribute, value = _MEANING.get(f"{word.word} {following}") or word.meaning
            if _MEANING.get(f"{words[n - 1].word if n else ''} {word.word}"):
                continue  # the second word of "snowy mountains"
            self._take(n, attribute, value)
        self._end()

    def _take(self, n: int, attribute: str, value: str) -> None:
        word = self.reading.words[n]
        if word.word in BREAKS:
            self._end()
        elif attribute == "colour":
            self.colour = value
            self._paint(n, value)
        elif attribute == "place":
            self._locate(n, value)
        elif attribute == "kind":
            self._name(n, value)
        elif attribute:
            self._state(attribute, value)
        elif word.word in _HINTS:
            self.reading.hints.update([_HINTS[word.word]])

    def _end(self) -> None:
        """End a part at a mark or "and": a place without a noun becomes a hint."""
        self.place_hint = self.place or self.place_hint
        self.noun = self.colour = self.place = None

    def _paint(self, n: int, value: str) -> None:
        """A colour after its noun: "the house is red", "two towers, one red and one blue"."""
        words, last = self.reading.words, next(reversed(self.reading.things), None)
        before = words[n - 1].word if n else ""
        follows = n + 1 < len(words) and words[n + 1].meaning[0] == "kind"
        if isinstance(self.noun, Named) and before in ("is", "in"):
            self.noun.shades = [value]
        elif last and last.number not in (None, 1) and before == "one" and not follows:
            last.shades.append(value)
            last.end = words[n].end

    def _locate(self, n: int, place: str) -> None:
        if self.noun is None:
            words = self.reading.words
            while n and words[n - 1].word in _BEFORE_A_PLACE:
                n -= 1
            self.place, self.at = place, words[n].start
        elif isinstance(self.noun, Named):
            self.noun.place = self.noun.place or place
        else:
            self.reading.light_place = place

    def _name(self, n: int, kind: str) -> None:
        words, last = self.reading.words, self.noun
        if isinstance(last, Named) and _same_noun(words, n, last, kind):
            last.twice = last.end != words[n - 1].end or kind != last.kind
            last.end, last.colour = words[n].end, last.colour or self.colour
            return
        thing = _phrase(words, n, kind)
        thing.colour, thing.place, thing.place_hint = self.colour, self.place, self.place_hint
        thing.front = self.at if self.place else thing.start
        self.reading.things.append(thing)
        self.noun, self.colour, self.place, self.place_hint = thing, None, None, None

    def _state(self, attribute: str, value: str) -> None:
        values = self.reading.scene.setdefault(attribute, [])
        if value not in values:
            values.append(value)
        if attribute == "light":
            self.reading.light_place = self.place or self.reading.light_place
            self.noun, self.place = "light", None


def _same_noun(words: Sequence[Word], n: int, last: Named, kind: str) -> bool:
    """Whether words[n] repeats the last noun: "oak tree", "pine tree", "fleet of boats"."""
    if kind != last.kind and (last.kind, kind) != ("pine", "tree"):
        return False
    between = [word for word in words[:n] if word.start >= last.end]
    return not between or (between[0].word == "of" and all(
        word.word in ("of", *ARTICLES, "") or word.meaning[0] == "colour" for word in between))


def _phrase(words: Sequence[Word], n: int, kind: str) -> Named:
    """The thing whose noun is words[n], with the words before it."""
    noun, first, number, article = words[n], n, None, None
    for m, word in _before(words, n):
        if word.number is not None:
            number, first = word.number, m
        elif word.word in ARTICLES:
            article, first = word, m
        elif word.word in QUANTITIES or word.meaning[0] == "colour":
            first = m
    if first == n:  # "old windmill"
        first -= len(list(takewhile(lambda word: not word.word and word.typed.isascii()
                                    and word.typed.isalpha(),
                                    (word for _, word in _before(words, n)))))
    typed = noun.typed.lower()
    plural = typed.endswith("s") and not typed.endswith("ss")
    return Named(kind, words[first].start, noun.start, noun.end, number=number, plural=plural,
                 article=article)


def _before(words: Sequence[Word], n: int) -> Iterator[tuple[int, Word]]:
    """The words of the noun phrase before words[n], backwards to its article or number."""
    for m in range(n - 1, -1, -1):
        word = words[m]
        other = word.word and word.number is None and word.word not in (
            *ARTICLES, *QUANTITIES, "of") and word.meaning[0] != "colour"
        if other or word.typed.lower() in _ASKING:
            return
        yield m, word
        if word.word in ARTICLES or (word.number is not None and not (
                m and words[m - 1].word == "a" and word.word in ("pair", "trio"))):
            return
