"""Expand a prompt: move its negations, and add what it leaves open, in the words of captions.

A backbone that was trained on full captions invents whatever a short prompt does not name. Typed
words stay, except a number with its noun: "two houses" becomes two things.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ...prompts.expanded import Added, Expanded, blanked, merged, without
from .captions import (
    _COLOUR_WORDS,
    _LIGHT_ALONE,
    _MANY,
    _NOUNS,
    _PARTS,
    _PLACE_WORDS,
    MAX_TOKENS,
    PLURAL,
)
from .everyday import COLOURFUL
from .filling import Filled, Filler, firsts, ruled_out
from .negations import negations
from .short_prompts import CHINESE, COMMA, SEVERAL
from .spelling import ARTICLES, BREAKS, END, Named, Reading, Word, length_of, read
from .unknown_objects import unknown_objects

# If a prompt becomes too long, additions are omitted from the end of this list.
PRIORITY = ("things", "kind", "place", "count", "ground", "sky", "colour", "time", "ridge", "light")
PARTS = ("ground", "path", "ridge", "sky", "light", "time")  # in the order of writing
_VERBS = ("stands", "stand", "floats", "sails", "sail", "is")
_RIDGES = ("behind", "away", "before", "bare", "rocky", "rolling", "flat", "dark")
_WEATHER_ADJECTIVES = ("foggy", "rainy", "cloudy", "clear", "cloudless", "starry")
_LIGHT_ADJECTIVES = ("sunny", "moonlit", "sunlit")
_BEHIND = ("behind", "后面")
_MARKS = re.compile("[,.;，。；、]")
Span = tuple[int, int]  # [start, end) of the prompt
Said = tuple[str, str]  # in English and in Chinese


def expand(prompt: str, negative: str | None, seed: int, leave_open: Sequence[str] = (),
           fill: bool = True, limit: int = MAX_TOKENS) -> Expanded:
    """The words to draw for a prompt.

    seed: chooses the additions. leave_open: names of additions to omit. fill: whether to add
    anything; negations move in any case. limit: the most words and marks of the result, unless the
    prompt alone has more.
    """
    denied, unknown = negations(prompt), unknown_objects(prompt) if fill else []
    cuts = merged([*((negation.start, negation.end) for negation in denied),
                   *(thing.cut for thing in unknown)])
    ruled = ", ".join([negative or "", *(negation.denied for negation in denied)]).strip(", ")
    additions: list[Added] = []
    if fill:
        rest = read(blanked(prompt, cuts))
        filled = Filler(rest, ruled_out(read(ruled)), seed, invents=not unknown).filled()
        writer = Writer(rest, filled)
        wanted = [addition for addition in writer.additions() if addition.name not in leave_open]
        additions = shortened(wanted, prompt, cuts, limit, writer.typed)
    return Expanded(drawn(prompt, cuts, additions), ruled if denied else negative or None,
                    tuple(additions), tuple(negation.typed for negation in denied),
                    tuple(thing.typed for thing in unknown))


def drawn(prompt: str, cuts: Sequence[Span], additions: Sequence[Added]) -> str:
    """The prompt with its cuts and additions."""
    return without(prompt, cuts, (
        (addition.start, addition.end, addition.written) for addition in additions))


def shortened(additions: list[Added], prompt: str, cuts: Sequence[Span], limit: int,
              typed: set[str]) -> list[Added]:
    """The most important additions, as many as the limit allows.

    typed: names and attributes of those that say what was typed, which are omitted last.
    """
    left = list(additions)
    for addition in sorted(additions, key=lambda added: (
            {added.attribute, added.name} & typed != set(), -PRIORITY.index(added.attribute))):
        if length_of(drawn(prompt, cuts, left)) <= limit:
            break
        left.remove(addition)
    return left


class Writer:
    """Writes the filled-in values as additions to a prompt."""

    def __init__(self, reading: Reading, filled: Filled) -> None:
        self.reading, self.filled = reading, filled
        self.chinese = reading.chinese
        self.mentions = [
            (first, count, thing) for first, count, thing
            in zip(firsts(filled.members), filled.members, reading.things, strict=False)]
        self.rewritten = [thing for _, count, thing in self.mentions
                          if self._rewrites(count, thing)]

    @property
    def typed(self) -> set[str]:
        """Names and attributes of additions that say in other words what was typed."""
        hinted = {f"place {first}" for first, _, thing in self.mentions if thing.place_hint}
        return {*self.reading.scene, *self.reading.hints, *hinted}

    def additions(self) -> list[Added]:
        things = [*self._invented()] if self.filled.invented else [*self._count(), *self._things()]
        return sorted([*things, *self._parts()], key=lambda addition: addition.start)

    def _added(self, name: str, attribute: str, said: Said, at: tuple[int, int],
               before: str = "", after: str = "") -> Added:
        """An addition with its own separators, `before` and `after`, in the prompt's language."""
        text = said[1] if self.chinese else said[0]
        return Added(name, attribute, *said, *at, f"{before}{text}{after}",
                     self.reading.prompt[slice(*at)])

    # Things

    def _rewrites(self, count: int, thing: Named) -> bool:
        """Whether captions lack such a phrase: "two houses", "balloons", "a pine tree"."""
        if not self.filled.places or thing.place or thing.free or _balloons(thing):
            return False
        several = thing.plural and thing.kind not in PLURAL
        return count > 1 or several or thing.twice or (thing.number is not None
                                                  and len(self.filled.kinds) > 1)

    def _things(self) -> Iterator[Added]:
        for first, count, thing in self.mentions:
            if thing in self.rewritten:
                yield self._rewriting(first, count, thing)
            else:
                yield from self._described(first, thing)

    def _described(self, n: int, thing: Named) -> Iterator[Added]:
        colour, blank = self.filled.colours[n], "" if self.chinese else " "
        if colour and not (thing.colour or thing.shaded):
            said = _COLOUR_WORDS[colour][0], f"{CHINESE[colour][0]}的"
            yield self._added(f"colour {n}", "colour", said, (thing.own, thing.own), "", blank)
        if self.filled.places and not (thing.place or thing.free or _balloons(thing)
                                       or self._continues(thing)):
            yield self._added(f"place {n}", "place", place_words(self.filled.places[n]),
                              (thing.end, thing.end), blank, break_after(self.reading, thing))

    def _continues(self, thing: Named) -> bool:
        """Whether a thing is part of a Chinese phrase that goes on: 塔的旁边."""
        return self.reading.prompt[thing.end : thing.end + 1] == "的"

    def _rewriting(self, first: int, count: int, thing: Named) -> Added:
        """The single things of a number with its noun, each with its place."""
        every = [self._thing(n, thing) for n in range(first, first + count)]
        before = [word.word for word in self.reading.words if word.start < thing.start]
        last = self.mentions[-1][2] is thing and before[-1:] != ["and"]
        joined = joint(every[:-1], every[-1:], last)
        return self._added(f"things {first}", "things", joined, (thing.start, thing.end),
                           "", break_after(self.reading, thing))

    def _thing(self, n: int, typed: Named | None = None) -> Said:
        """A thing in full. typed: as which it was typed, if it was."""
        filled = self.filled
        kind, colour, place = filled.kinds[n], filled.colours[n], filled.places[n]
        own = "" if typed is None else self.reading.prompt[typed.own : typed.noun].strip()
        own = "" if own.lower() in COLOURFUL else own
        if typed is not None and typed.shaded and not typed.colour:
            colour = None
        several, alone = kind in PLURAL, len(self.filled.kinds) == 1
        article = "some" if several else "a lone" if alone else "an" if colour == "orange" else "a"
        shade = (_COLOUR_WORDS[colour][0], f"{CHINESE[colour][0]}的") if colour else ("", "")
        where = place_words(place)
        english = " ".join(filter(None, (article, shade[0], own, _NOUNS[kind][0], where[0])))
        lone = "孤独的" if alone and not several else ""
        return english, f"{lone}{shade[1]}{SEVERAL.get(kind, CHINESE[kind][0])}{where[1]}"

    def _count(self) -> Iterator[Added]:
        """The number of things, so that no others are drawn.

        Groups have none, and three things fill the picture.
        """
        total = 0 if self.filled.crowded else len(self.filled.kinds)
        first = min((thing.front for *_, thing in self.mentions), default=0)
        if not total or self._counted() or any(
                kind in PLURAL for kind in self.filled.kinds) or any(
                _balloons(thing) for *_, thing in self.mentions):
            return
        if total == 1 and not self.rewritten:
            yield self._lone(self.mentions[0][2])
        elif total == 2 or (total == 3 and self.rewritten):
            said = _MANY[total][0].replace(" ,", ""), f"{'两三'[total - 2]}样东西"
            yield self._added("count", "count", said, (first, first), "", self._comma)

    def _counted(self) -> bool:
        """Whether the typed prompt has a number that is not rewritten."""
        return any(word.meaning[0] == "count" and not any(
            thing.start <= word.start < thing.end for thing in self.rewritten)
            for word in self.reading.words)

    def _lone(self, thing: Named) -> Added:
        article, blank = thing.article, "" if self.chinese else " "
        if article is None:
            alone = "lone" if thing.owned else "a lone"
            at = thing.own if self.chinese else thing.start
            return self._added("count", "count", (alone, "孤独的"), (at, at), "", blank)
        if article.typed.lower() == "an":
            return self._added("count", "count", ("a lone", "孤独的"), (article.start, article.end))
        return self._added("count", "count", ("lone", "孤独的"), (article.end, article.end), blank)

    def _invented(self) -> Iterator[Added]:
        if self.filled.places:
            yield self._appended("kind", "kind", self._thing(0))

    # The scene

    def _parts(self) -> Iterator[Added]:
        if noun := self._bare_ridge():
            yield self._added("ridge", "ridge", _BEHIND, (noun.end, noun.end), " ")
        for attribute in PARTS:
            value = self.filled.scene.get(attribute)
            named = attribute in self.reading.scene and not self._vague(attribute)
            if attribute == "ridge" and self._bare_ridge():
                continue
            if attribute == "sky" and (word := self._bare_weather()):
                yield self._added("sky", "sky", scene_words("sky", str(value)),
                                  (word.start, word.end))
            elif value is not None and not named and (attribute == "ridge" or value != "none"):
                yield self._appended(attribute, attribute, scene_words(attribute, value))

    def _bare_weather(self) -> Word | None:
        """An adjective of the weather that is a part by itself, as in "a boat, cloudy"."""
        if not self._vague("sky"):
            return None
        words = [END, *self.reading.words, END]
        return next((word for before, word, after in zip(words, words[1:], words[2:], strict=False)
                     if word.meaning[0] == "sky"
                     and {before.word, after.word} <= set(BREAKS)), None)

    def _bare_ridge(self) -> Word | None:
        """The noun of "mountains" or "snowy mountains", if that is a part by itself."""
        if self.chinese or "ridge" not in self.reading.scene or not self._vague("ridge"):
            return None
        words = [*self.reading.words, END]
        for n, word in enumerate(words[:-1]):
            ends = words[n + 1].word in BREAKS and word.meaning == ("ridge", word.meaning[1])
            begin = n - (n > 0 and words[n - 1].word in ("snowy", "the", "some"))
            if ends and (begin == 0 or words[begin - 1].word in BREAKS):
                return word
        return None

    def _vague(self, attribute: str) -> bool:
        """Whether it is named as no caption names it: "at sea", "on a hill", "a foggy lighthouse".

        The part is then added again in a caption's words.
        """
        if attribute not in self.reading.scene or len(self.reading.scene[attribute]) > 1:
            return False
        if attribute in ("sky", "light"):
            return self._is_adjective(attribute)
        if attribute not in ("ridge", "ground"):
            return False
        words = [word for word in self.reading.words if word.word not in ARTICLES]
        if attribute == "ridge":
            return not any(word.word in _RIDGES for word in words)
        return any(word.word == "at" and after.meaning[0] == "ground"
                   for word, after in pairwise(words))

    def _is_adjective(self, attribute: str) -> bool:
        """Whether weather is only an adjective of something else than the sky or a time."""
        words = [*self.reading.words, END]
        before = [(word, after) for word, after in pairwise(words) if word.meaning[0] == attribute]
        return not self.chinese and all(
            (word.word in _WEATHER_ADJECTIVES and after.word != "sky"
             and after.meaning[0] != "time")
            or (word.typed.lower() in _LIGHT_ADJECTIVES and after.meaning[0] != "time")
            for word, after in before)

    @property
    def _comma(self) -> str:
        return COMMA if self.chinese else ", "

    def _appended(self, name: str, attribute: str, said: Said) -> Added:
        place = end_of_parts(self.reading, attribute)
        return self._added(name, attribute, said, (place, place), self._comma if place else "",
                           "" if place else self._comma)


def break_after(reading: Reading, thing: Named) -> str:
    """A comma before another phrase: "a house on the left, by the sea"."""
    after = [word for word in reading.words if word.start >= thing.end]
    if reading.chinese:
        return COMMA if after and after[0].word not in BREAKS else ""
    goes_on = after[:1] != [] and after[0].word not in (*BREAKS, *_VERBS)
    coloured = any(word.meaning[0] == "colour" for word in after[:2])  # "a house in red"
    return "," if goes_on and not coloured else ""


def end_of_parts(reading: Reading, attribute: str) -> int:
    """Where a part is added: after everything typed, but before the parts that follow it in PARTS.
    """
    end = len(reading.prompt.rstrip(" \n\t.,!?。，！？…"))
    marks = [mark.start() for mark in _MARKS.finditer(reading.prompt, 0, end)]
    rank = PARTS.index(attribute) if attribute in PARTS else -1  # things precede the parts
    place = end
    for start, stop in reversed(list(pairwise([*marks, end]))):
        attributes = {word.meaning[0] for word in reading.words
                      if start <= word.start < stop} & {"kind", *PARTS}
        if "kind" in attributes or not attributes:
            break
        if max(map(PARTS.index, attributes)) > rank:
            place = start
    return place


def _balloons(thing: Named) -> bool:
    """Whether these are several balloons: no postcard has more than one."""
    return thing.kind == "balloon" and (thing.plural or thing.number not in (None, 1))


def place_words(place: str) -> Said:
    return _PLACE_WORDS[place][0], CHINESE[place][0]


def scene_words(attribute: str, value: str) -> Said:
    english = (_LIGHT_ALONE[0].format(light=value) if attribute == "light"
               else _PARTS[attribute, value][0])
    return english, CHINESE[value][0]


def joint(texts: Sequence[Said], last: Sequence[Said], closing: bool) -> Said:
    """A list of phrases. closing: no other thing follows, so "and" precedes the last phrase."""
    english, chinese = zip(*texts, *last, strict=True)
    commas = ", ".join(english[:-1])
    link = " and " if closing else ", "
    return (f"{commas}{link}{english[-1]}" if commas else english[-1]), COMMA.join(chinese)
