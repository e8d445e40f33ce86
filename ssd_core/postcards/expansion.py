"""Expand a prompt: move its negations, and add what it leaves open, in the words of captions.

A backbone that was trained on full captions invents whatever a short prompt does not name. Typed
words stay, except a number with its noun: "two houses" becomes two things.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

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
from .chinese import CHINESE, COMMA, SEVERAL
from .expanded import Added, Expanded, blanked, edited
from .filling import Filled, Filler, firsts, ruled_out
from .negations import negations
from .spelling import ARTICLES, Named, Reading, length_of, read
from .unknown_things import unknown_things

# If a prompt becomes too long, additions are omitted from the end of this list.
PRIORITY = ("things", "kind", "place", "count", "ground", "sky", "colour", "time", "ridge", "light")
PARTS = ("ground", "path", "ridge", "sky", "light", "time")  # in the order of writing
# First words of a phrase about the place or company of a thing.
_LEADING = ("in", "on", "at", "by", "under", "above", "among", "before", "along", "with", "between",
            "next", "against", "full")
_RIDGES = ("behind", "away", "before", "bare", "rocky", "rolling", "flat", "dark")
_MARKS = re.compile("[,.;，。；、]")
Edit = tuple[int, int, str]
Said = tuple[str, str]  # in English and in Chinese


def expand(prompt: str, negative: str | None, seed: int, leave_open: Sequence[str] = (),
           fill: bool = True, limit: int = MAX_TOKENS) -> Expanded:
    """The words to draw for a prompt.

    seed: chooses the additions. leave_open: names of additions to omit. fill: whether to add
    anything; negations move in any case. limit: the most words and marks of the result, unless the
    prompt alone has more.
    """
    denied, unknown = negations(prompt), unknown_things(prompt) if fill else []
    cuts = [*((negation.start, negation.end, "") for negation in denied),
            *((*thing.cut, "") for thing in unknown)]
    ruled = ", ".join([negative or "", *(negation.denied for negation in denied)]).strip(", ")
    additions: list[Added] = []
    if fill:
        rest = read(blanked(prompt, [cut[:2] for cut in cuts]))
        filled = Filler(rest, ruled_out(read(ruled)), seed, invents=not unknown).filled()
        wanted = [addition for addition in Writer(rest, filled).additions()
                  if addition.name not in leave_open]
        additions = shortened(wanted, prompt, cuts, limit)
    return Expanded(drawn(prompt, cuts, additions), ruled if denied else negative or None,
                    tuple(additions), tuple(negation.typed for negation in denied),
                    tuple(thing.typed for thing in unknown))


def drawn(prompt: str, cuts: Sequence[Edit], additions: Sequence[Added]) -> str:
    """The prompt with its cuts and additions."""
    edits = [*cuts, *((addition.start, addition.end, addition.written) for addition in additions)]
    return edited(prompt, edits).strip(" ,，") if cuts else edited(prompt, edits)


def shortened(additions: list[Added], prompt: str, cuts: Sequence[Edit], limit: int
              ) -> list[Added]:
    """The most important additions, as many as the limit allows."""
    left = list(additions)
    for addition in sorted(additions, key=lambda added: -PRIORITY.index(added.attribute)):
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
        if not self.filled.places or thing.place:
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
        if colour and not thing.colour:
            said = _COLOUR_WORDS[colour][0], f"{CHINESE[colour][0]}的"
            yield self._added(f"colour {n}", "colour", said, (thing.noun, thing.noun), "", blank)
        if self.filled.places and not thing.place:
            yield self._added(f"place {n}", "place", place_words(self.filled.places[n]),
                              (thing.end, thing.end), blank, self._break_after(thing))

    def _break_after(self, thing: Named) -> str:
        """A comma before another phrase: "a house on the left, by the sea"."""
        after = [word for word in self.reading.words if word.start >= thing.end]
        leads = after[:1] != [] and {after[0].word, after[0].typed.lower()} & set(_LEADING)
        coloured = len(after) > 1 and after[1].meaning[0] == "colour"  # "a house in red"
        return "," if leads and not coloured else ""

    def _rewriting(self, first: int, count: int, thing: Named) -> Added:
        """The single things of a number with its noun, each with its place."""
        every = [self._thing(n) for n in range(first, first + count)]
        last = len(self.mentions) == 1
        joined = joint(every[:-1], every[-1:], last)
        return self._added(f"things {first}", "things", joined, (thing.start, thing.end),
                           "", self._break_after(thing))

    def _thing(self, n: int) -> Said:
        filled = self.filled
        kind, colour, place = filled.kinds[n], filled.colours[n], filled.places[n]
        several, alone = kind in PLURAL, len(self.filled.kinds) == 1
        article = "some" if several else "a lone" if alone else "an" if colour == "orange" else "a"
        shade = (_COLOUR_WORDS[colour][0], f"{CHINESE[colour][0]}的") if colour else ("", "")
        where = place_words(place)
        english = " ".join(filter(None, (article, shade[0], _NOUNS[kind][0], where[0])))
        lone = "孤独的" if alone and not several else ""
        return english, f"{lone}{shade[1]}{SEVERAL.get(kind, CHINESE[kind][0])}{where[1]}"

    def _count(self) -> Iterator[Added]:
        """The number of things, so that no others are drawn.

        Groups have none, and three things fill the picture.
        """
        total = len(self.filled.kinds)
        first = min((thing.front for *_, thing in self.mentions), default=0)
        if not total or self._counted() or any(kind in PLURAL for kind in self.filled.kinds):
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
            return self._added("count", "count", ("a lone", "孤独的"), (thing.start, thing.start),
                               "", blank)
        if article.typed.lower() == "an":
            return self._added("count", "count", ("a lone", "孤独的"), (article.start, article.end))
        return self._added("count", "count", ("lone", "孤独的"), (article.end, article.end), blank)

    def _invented(self) -> Iterator[Added]:
        if self.filled.places:
            yield self._appended("kind", "kind", self._thing(0))

    # The scene

    def _parts(self) -> Iterator[Added]:
        for attribute in PARTS:
            value = self.filled.scene.get(attribute)
            named = attribute in self.reading.scene and not self._vague(attribute)
            if value is not None and not named and (attribute == "ridge" or value != "none"):
                yield self._appended(attribute, attribute, scene_words(attribute, value))

    def _vague(self, attribute: str) -> bool:
        """Whether ground or ridge is named as no caption names it: "at sea", "on a hill".

        The part is then added again in a caption's words.
        """
        if attribute not in ("ridge", "ground") or len(self.reading.scene[attribute]) > 1:
            return False
        words = [word for word in self.reading.words if word.word not in ARTICLES]
        if attribute == "ridge":
            return not any(word.word in _RIDGES for word in words)
        return any(word.word == "at" and after.meaning[0] == "ground"
                   for word, after in pairwise(words))

    @property
    def _comma(self) -> str:
        return COMMA if self.chinese else ", "

    def _appended(self, name: str, attribute: str, said: Said) -> Added:
        """An addition after everything typed, but before the parts that follow it in PARTS."""
        end = len(self.reading.prompt.rstrip(" \n\t.,!?。，！？…"))
        marks = [mark.start() for mark in _MARKS.finditer(self.reading.prompt, 0, end)]
        rank = PARTS.index(attribute) if attribute in PARTS else -1  # things precede the parts
        place = end
        for start, stop in reversed(list(pairwise([*marks, end]))):
            attributes = {word.meaning[0] for word in self.reading.words
                          if start <= word.start < stop} & {"kind", *PARTS}
            if "kind" in attributes or not attributes:
                break
            if max(map(PARTS.index, attributes)) > rank:
                place = start
        return self._added(name, attribute, said, (place, place), self._comma if place else "",
                           "" if place else self._comma)


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
