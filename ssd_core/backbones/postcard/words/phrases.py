"""Phrases of a prompt that mean something only beside others, contradict others, or name limits.

Captions have "rocky" only before mountains and "red" only before a thing: such words say nothing
alone. Which they are is derived from the captions' tables. Limits are what a prompt asks for that
no postcard shows, such as four things or one behind another.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from .aliases import as_typed
from .canonical import shown_scene
from .captions import _COLOUR_WORDS, _FIRST, _MEANING, _NOUNS, _PARTS, PLURAL
from .everyday import stand_ins
from .filling import MOST, members_of, relate, wanted_of
from .short_prompts import CHINESE
from .spelling import _BEFORE_A_PLACE, END, HINTS, Named, Reading, meanings, read
from .unknown_objects import known_part

_VERBS = ("stands", "stand", "floats", "sails", "sail")
_SINGLE = ("time", "sky", "ridge", "ground", "light")  # a picture shows one value of each
Meaning = tuple[str, str]
SHOWN = 3  # phrases quoted in a note
_EXCLUSIVE = ("time", "sky", "ridge", "ground")  # a picture shows one value of each


def phrases_of(prompt: str) -> list[str]:
    """Each thing's words as typed, with its colour and place: "a red house on the left"."""
    reading = read(prompt)
    return [prompt[min(thing.front, thing.start) : _end(reading, thing)]
            for thing in reading.things]


def _end(reading: Reading, thing: Named) -> int:
    """Where the phrase ends: behind its noun, or behind the place after it."""
    for word in reading.words:
        if word.start < thing.end:
            continue
        if word.meaning[0] == "place":
            return word.end
        if word.word not in (*_BEFORE_A_PLACE, *_VERBS):
            break
    return thing.end


def without_contradictions(prompt: str, typed: str) -> str:
    """The prompt without parts between marks that name another time, sky, ... than typed words."""
    said = read(typed).scene
    return ", ".join(part for part in map(str.strip, re.split("[,.，。]", prompt))
                     if part and (part in typed or not _contradicts(read(part), said)))


def _contradicts(part: Reading, said: dict[str, list[str]]) -> bool:
    other = any(set(said[name]) != set(part.scene[name]) for name in _SINGLE
                if name in said and name in part.scene)
    return other and not part.things


def lonely(words: Sequence[str]) -> Iterator[int]:
    """The position of each word that is not followed by one of its partners.

    words: the known words of a prompt, in lower case and in order.
    """
    for position, (word, after) in enumerate(zip_longest(words, words[1:], fillvalue="")):
        if word in PHRASES and not belongs(word, after):
            yield position


def known_phrases(word: str, chinese: bool) -> Sequence[str]:
    """The phrases that captions have of a word; in Chinese those of colours alone."""
    if chinese and word in _COLOURS:
        colour = CHINESE[_MEANING[word][1]][0]
        return [f"{colour}的{CHINESE[kind][0]}" for kind in _NOUNS if kind not in PLURAL]
    return PHRASES[word]


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


def limits(prompt: str) -> list[str]:
    """Phrases for what a prompt asks for and no postcard shows, to follow "never draws"."""
    known = known_part(prompt)
    reading = read(known)
    return [*dict.fromkeys(stand_ins(as_typed(known))), *_numbers(reading),
            *(f"one thing “{word}” another"
              for word in relate(reading, sum(members_of(reading.things)))),
            *(f"both “{'” and “'.join(_typed(reading, name))}”" for name in _EXCLUSIVE
              if len(_typed(reading, name)) > 1),
            *(f"“{word}” in such a scene" for word in _out_of_place(reading))]


def _out_of_place(reading: Reading) -> Iterator[str]:
    """The words for what no postcard has beside the rest: a river under a bridge."""
    shown = shown_scene(reading)
    for name, values in reading.scene.items():
        typed = _typed(reading, name)
        if reading.things and len(typed) == 1 and shown.get(name) not in values:
            yield typed[0]


def _numbers(reading: Reading) -> list[str]:
    things = reading.things
    several = [thing for thing in things if thing.plural or thing.number not in (None, 1)]
    too_many = [thing for thing in things if (thing.number or 0) > MOST]
    asked = []
    if too_many or sum(wanted_of(things)) > MOST:
        asked.append("more than three things")
    if any(thing.kind == "balloon" for thing in several):
        asked.append("more than one balloon")
    if any(thing.place and _counted(thing) for thing in several):
        asked.append("more than one thing in one place")
    return asked


def _counted(thing: Named) -> bool:
    return thing.number not in (None, 1)


def _typed(reading: Reading, name: str) -> list[str]:
    """The words that name the values of an attribute, one for each."""
    typed: dict[str, str] = {}
    words = [*reading.words, END]
    for n, attribute, value in meanings(reading.words):
        word, after = words[n : n + 2]
        if not attribute and word.word in HINTS and after.word not in ("mountains", "peaks"):
            attribute, value = HINTS[word.word]
        if attribute == name:
            typed.setdefault(value, word.typed)
    return list(typed.values())
