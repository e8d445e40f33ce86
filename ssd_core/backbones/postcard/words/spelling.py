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

from .aliases import MARKS, Said, said, simplified
from .captions import _MEANING, PLURAL
from .everyday import COLOURFUL, LEAVES, MATERIALS, MIXED

NUMBERS = {"one": 1, "two": 2, "pair": 2, "three": 3, "trio": 3, "four": 4, "five": 5, "six": 6,
           "seven": 7, "eight": 8, "nine": 9, "ten": 10, "dozen": 12, "twenty": 20,
           "一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "4": 4, "5": 5, "6": 6}
ARTICLES = ("a", "an", "the")
QUANTITIES = ("lone", "single", "some", "few")
_MANY = ("several", "many", "lots", "dozens", "多", "几", "些", "群", "排", "片", "十", "都")
_LONE = "孤独的"  # an article that may stand behind a colour
_SIZES = ("小", "大", "老")  # between a colour and its noun
_SCENERY = ("ground", "path", "ridge", "sky", "time")  # "a lake house" is a lone one
_OWNERS = ("my", "your", "his", "her", "our", "their", "its", "this", "that", "these", "those")
_WEATHER = ("foggy", "rainy", "cloudy", "snowy", "sun", "moon", "starry")  # "a misty lighthouse"
_MEASURES = "一两二三四五六七八九十几多只座棵艘间朵片匹个条顶群排些都这那张幅"
# Colours that no caption has: no other one is filled in beside them.
_OTHER_COLOURS = ("black", "grey", "gray", "brown", "beige", "silver", "turquoise", "teal",
                  "maroon", "colorful", "colourful", "multicolored", "coloured", "colored", "dark",
                  "rainbow", "黑", "灰",
                  "棕", "褐", "银", "彩")
# Two nouns for one thing, and its kind: "pine tree", "village church".
_TWO_NOUNS = {("pine", "tree"): "pine", ("pine", "trees"): "pine", ("tree", "trees"): "trees",
              ("houses", "church"): "church"}
_GROUPS = ("pair", "trio", "dozen")  # numbers behind an article
_LINKS = ("有", "是")  # behind a place, they join it to the next noun: 左边有一座房子
HINTS = {"snowy": ("ground", "snow"), "rocky": ("ridge", "mountains")}  # "a snowy village"
_BEFORE_A_PLACE = ("on", "to", "at", "in", "the")
BREAKS = (*MARKS, "and")
_ALL = ("both", "all")
_SHADED_BY = ("is", "are", "was", "were", "that's", "thats", "in", "of", "painted", "coloured",
              "colored")
# Words behind which a colour before them no longer counts: "a red roof by a tree".
_LINKING = ("on", "to", "in", "at", "by", "of", "with", "under", "above", "before", "behind",
            "along", "among", "next")
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
        if not self.word and self.typed.isdecimal() and self.typed.isascii():
            return int(self.typed)
        return NUMBERS.get(self.word or self.typed.lower()) or (
            None if self.word else NUMBERS.get(simplified(self.typed[:1])))


END = Word(".", ".", 0, 0)  # behind the last word


@dataclass
class Named:
    """A thing as typed: its noun phrase begins at `start`, and its noun is at [noun, end).

    front: where it begins including a place before it: "on the left a house". own: where its own
    adjectives begin: "wooden" in "my wooden house".
    number: as typed, None without one. plural: typed in the plural. many: "several" or "many".
    twice: with two nouns, as in "pine tree". shades: the colours of its members. place_hint: its
    place, by words that make no claim. colour_hint: the colour of what it is made of. owned: behind
    "my" or "grandma's".
    free: its place is left open, as the prompt says it in words that no postcard follows. shaded:
    its colour is left open for the same reason.
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
    colour_hint: str | None = None
    own: int = 0
    many: bool = False
    owned: bool = False
    free: bool = False
    shaded: bool = False


@dataclass
class Reading:
    """The content of a prompt. scene: values by attribute; things: in the order of their nouns.

    hints: values by attribute that words without a claim suggest. light_place: where the sun or the
    moon is. painted: where the colours begin that are read as those of things.
    """

    prompt: str
    words: list[Word]
    scene: dict[str, list[str]] = field(default_factory=dict)
    things: list[Named] = field(default_factory=list)
    hints: dict[str, str] = field(default_factory=dict)
    light_place: str | None = None
    painted: set[int] = field(default_factory=set)

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
    return [Word(word, piece.typed, start, end, piece.words is None)
            for piece, start, end in placed(prompt) for word in piece.words or ("",)]


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


def read(prompt: str) -> Reading:
    """Read a prompt by the rules of `claims`."""
    reading = Reading(prompt, words_of(prompt))
    _Reader(reading).run()
    return reading


def meanings(words: Sequence[Word]) -> Iterator[tuple[int, str, str]]:
    """(number, attribute, value) of each word, both "" without a claim.

    "snowy mountains" makes one claim, at its first word; the second is left out.
    """
    for n, (before, word, after) in enumerate(zip(
            (END, *words), words, (*words[1:], END), strict=False)):
        if not _MEANING.get(f"{before.word} {word.word}"):
            yield n, *(_MEANING.get(f"{word.word} {after.word}") or word.meaning)


@dataclass
class _Reader:
    """Reads the words in order; a place belongs to the noun before it, else to the one after it."""

    reading: Reading
    noun: Named | str | None = None
    colour: str | None = None
    colour_at: int = 0  # start of that colour
    place: str | None = None
    at: int = 0  # start of the phrase of that place
    place_hint: str | None = None
    apart: list[tuple[Word, Word]] = field(default_factory=list)  # see `_set_apart`

    def run(self) -> None:
        for n, attribute, value in meanings(self.reading.words):
            self._take(n, attribute, value)
        self._end()
        last = next(reversed(self.reading.things), None)
        if last and not last.place:  # "a tower, middle of the picture"
            last.place_hint = last.place_hint or self.place_hint

    def _take(self, n: int, attribute: str, value: str) -> None:
        word = self.reading.words[n]
        if word.word in BREAKS:
            self._set_apart(n)
            self._end()
        elif attribute == "colour":
            self.colour, self.colour_at = value, word.start
            self._paint(n, value)
        elif attribute == "place":
            self._locate(n, value)
        elif attribute == "kind":
            self._name(n, value)
        elif attribute:
            self._state(attribute, value)
        elif word.word in HINTS:
            self.reading.hints.update([HINTS[word.word]])
        elif {word.word, word.typed.lower()} & set(_LINKING):
            self.colour = None

    def _end(self) -> None:
        """End a part at a mark or "and": a place without a noun becomes a hint."""
        self.place_hint = self.place or self.place_hint
        self.noun = self.colour = self.place = None

    def _set_apart(self, n: int) -> None:
        """Keep a colour whose noun comes later, with its article: "a red and a blue boat"."""
        words = (END, *self.reading.words[:n])
        colours = [*takewhile(lambda word: word.meaning[0] == "colour" and (
            word.start not in self.reading.painted), reversed(words))]
        if not colours and words[-1].word not in BREAKS:
            self.apart.clear()
        self.apart += [*zip(words[-len(colours) - 1 :], colours[::-1], strict=False)]

    def _share(self, thing: Named, colour: str) -> None:
        """A noun's colour and those before it: of its members, or of one "red and white boat"."""
        (article, first), colours = self.apart[0], [
            *(word.meaning[1] for _, word in self.apart), colour]
        if thing.article and any(before.word not in ARTICLES for before, _ in self.apart):
            return
        if thing.article or thing.plural:
            thing.number = max(thing.number or article.number or 0, len(colours))
            thing.shades, thing.colour, thing.place_hint = colours, None, None
        else:
            thing.colour = next((each for each in colours if each != "white"), colour)
            thing.article = article if article.word in ARTICLES else None
        self.reading.painted.update(word.start for _, word in self.apart if (
            word.meaning[1] in (thing.colour, *thing.shades)))
        thing.owned = _owns(article)
        counted = article.word in ARTICLES or article.number is not None
        thing.start = article.start if counted else first.start

    def _paint(self, n: int, value: str) -> None:
        """A colour behind its noun.

        "The house is red", "a house red on the left", "a tower of red stone", "a tower, a red one",
        "two towers, one red and one blue", "a house and a tower, both red".
        """
        words, things = self.reading.words, self.reading.things
        before, word = words[n - 1] if n else END, words[n]
        after = words[n + 1] if n + 1 < len(words) else END
        if not things or after.meaning[0] in ("kind", "light", *_SCENERY):  # "in green grass"
            return
        last, ends = things[-1], after.word in (*BREAKS, *_BEFORE_A_PLACE, "left", "right")
        alone = after.word == "one" or (
            before.word in BREAKS and (ends or after.typed.lower() == "as"))
        behind = self.noun is last and (
            before.typed.lower() in _SHADED_BY or (ends and before.end == last.end))
        several = last.number not in (None, 1) and (before.word == "one" or alone)
        if before.typed.lower() in _ALL:
            for thing in things:
                thing.colour = thing.colour or value
        elif several:
            last.shades += [*(colour.meaning[1] for _, colour in self.apart), value]
            last.end = (after if after.word == "one" else word).end
        elif alone or behind:
            last.colour = last.colour or value
        else:
            return
        self.reading.painted.add(word.start)

    def _locate(self, n: int, place: str) -> None:
        words = self.reading.words
        if self.noun is None or next((word.typed for word in words[n + 1:]), "") in _LINKS:
            while n and words[n - 1].word in _BEFORE_A_PLACE:
                n -= 1
            self.place, self.at = place, words[n].start
        elif isinstance(self.noun, Named):
            self.noun.place = self.noun.place or place
        else:
            self.reading.light_place = place

    def _name(self, n: int, kind: str) -> None:
        words, last = self.reading.words, self.noun
        if self.colour:
            self.reading.painted.add(self.colour_at)
        if isinstance(last, Named) and _same_noun(words, n, last, kind):
            last.twice = last.end != words[n - 1].end or kind != last.kind
            last.end, last.colour = words[n].end, last.colour or self.colour
            last.plural = last.plural or _is_plural(words[n])
            last.kind = _TWO_NOUNS.get((last.kind, kind), kind)
            return
        thing = _phrase(words, n, kind)
        if (known := self._named_before(thing)) is not None:
            known.colour = known.colour or self.colour
            self.noun, self.colour, self.place, self.place_hint = known, None, None, None
            return
        thing.colour, thing.place, thing.place_hint = self.colour, self.place, self.place_hint
        if self.apart and self.colour:
            self._share(thing, self.colour)
        self.apart.clear()
        thing.front = self.at if self.place else thing.start
        self.reading.things.append(thing)
        self.noun, self.colour, self.place, self.place_hint = thing, None, None, None

    def _named_before(self, thing: Named) -> Named | None:
        """The thing that "the house" means, after "a house", or ", blue house" after "house"."""
        before = [word.word for word in self.reading.words if word.start < thing.start][-1:]
        the = thing.article is not None and thing.article.word == "the"
        again = self.colour and before == [","] and _is_bare(thing) and not self.reading.chinese
        if self.place or not (the or again):
            return None
        return next((known for known in self.reading.things if known.kind == thing.kind and (
            self.colour in (None, known.colour) if the else
            _is_bare(known) and not (known.colour or known.place or known.shaded))), None)

    def _state(self, attribute: str, value: str) -> None:
        values = self.reading.scene.setdefault(attribute, [])
        if value not in values:
            values.append(value)
        if attribute == "light":
            self.reading.light_place = self.place or self.reading.light_place
            self.noun, self.place = "light", None


def _is_bare(thing: Named) -> bool:
    return not (thing.article or thing.number or thing.plural)


def _same_noun(words: Sequence[Word], n: int, last: Named, kind: str) -> bool:
    """Whether words[n] repeats the last noun: "oak tree", "pine tree", "fleet of boats"."""
    if kind != last.kind and (last.kind, kind) not in _TWO_NOUNS:
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
    own = n - len(list(takewhile(_modifies, (word for _, word in _before(words, n)))))
    first = min(first, _first_adjective(words, n))
    if _counted_many(words, n, first):  # 十几只
        first -= len(list(takewhile(lambda word: simplified(word.typed) in _MEASURES,
                                    reversed(words[:first]))))
    before = words[first - 1] if first else None
    mixed = _is_plural(noun) and any(
        word.typed.lower() in COLOURFUL for _, word in _before(words, n))
    if mixed:  # each has its own colour
        kind, number = single(kind), number or len(MIXED)
    return Named(
        kind, words[first].start, noun.start, noun.end, number=number, article=article,
        plural=_is_plural(noun) or _counted_many(words, n, first), own=words[own].start,
        many=_counted_many(words, n, first),
        colour_hint=next((MATERIALS[word.typed.lower()] for word in words[own : n + 1]
                          if word.typed.lower() in MATERIALS), None),
        owned=before is not None and (_owns(before) or before.meaning[0] in _SCENERY),
        shades=[*(LEAVES if kind == "tree" else MIXED)] * mixed,
        shaded=not mixed and any(
            word.typed.lower() in _OTHER_COLOURS for _, word in _before(words, n)))


def single(kind: str) -> str:
    """The kind of a group's members."""
    return kind[:-1] if kind in PLURAL else kind


def _is_plural(noun: Word) -> bool:
    typed = noun.typed.lower()
    return typed.endswith("s") and not typed.endswith("ss")


def _counted_many(words: Sequence[Word], n: int, first: int) -> bool:
    """Whether the noun is one of several: "many towers", 都是房子."""
    near = [word.typed.lower() for word in words[max(0, first - 3) : n]]
    return any(typed in _MANY for typed in near)


def _modifies(word: Word) -> bool:
    """Whether a word before a noun is an adjective that stays with it: "wooden", 小."""
    typed = word.typed.lower()
    if _IDEOGRAPH.match(typed):
        return typed in _SIZES or (word.unknown and simplified(typed) not in _MEASURES)
    made = not word.word and typed in (*MATERIALS, *COLOURFUL)
    return ((word.unknown or made) and typed.isalpha() and len(typed) > 1 and word.number is None
            and typed not in _OWNERS and not typed.endswith("ing"))


def _first_adjective(words: Sequence[Word], n: int) -> int:
    """Where the adjectives before words[n] begin: "old windmill", "misty little wooden house"."""
    first = n
    for m, word in _before(words, n):
        small = not word.word and word.typed.isascii() and word.typed.isalpha()
        verb = word.typed.lower().endswith("ing") and m > 0 and words[m - 1].word not in BREAKS
        if _owns(word) or verb or not (_modifies(word) or small or word.word in _WEATHER
                                       or word.meaning[0] == "colour"):
            break
        first = m
    return first


def _owns(word: Word) -> bool:
    return word.typed.lower() in _OWNERS or word.typed.endswith("'s")


def _before(words: Sequence[Word], n: int) -> Iterator[tuple[int, Word]]:
    """The words of the noun phrase before words[n], backwards to its article or number."""
    for m in range(n - 1, -1, -1):
        word = words[m]
        other = word.word and word.number is None and word.word not in (
            *ARTICLES, *QUANTITIES, *_WEATHER, "of") and word.meaning[0] != "colour"
        if other or word.typed.lower() in _ASKING:
            return
        yield m, word
        if (word.word in ARTICLES and word.typed != _LONE) or (word.number is not None and not (
                m and words[m - 1].word == "a" and (word.word or word.typed) in _GROUPS)):
            return
