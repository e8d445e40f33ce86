"""Write one change into a prompt: another colour, thing, place or part of the scene.

Each function returns the prompt, or None if its words are too unusual for that. What a result says
is for its caller to check.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from ...prompts.choices import with_article
from ...prompts.expanded import edited, merged, pinned, without
from .captions import (
    _COLOUR_WORDS,
    _LIGHT_ALONE,
    _NOUNS,
    _PARTS,
    _SKY_ADJECTIVES,
    _TIME_NOUNS,
    _VERBS,
    PLURAL,
)
from .content import content_of
from .expansion import break_after, end_of_parts, expand, place_words, scene_words
from .phrases import _VERBS as VERBS
from .phrases import _end
from .short_prompts import CHINESE, COMMA, SEVERAL
from .spelling import (
    _BEFORE_A_PLACE,
    _MEASURES,
    _OTHER_COLOURS,
    ARTICLES,
    BREAKS,
    QUANTITIES,
    Named,
    Reading,
    Word,
    read,
)

_MEASURE = {"tent": "顶", "tree": "棵", "pine": "棵", "boat": "艘", "balloon": "个"}  # else 座
_LAMPS = {"sun": "moon", "sunny": "moonlit", "sunlit": "moonlit", "sunlight": "moonlight",
          "sunshine": "moonlight", "太阳": "月亮", "阳光": "月光"}
_OTHER_LAMPS = {**_LAMPS, **{moon: sun for sun, moon in reversed(_LAMPS.items())}, "明月": "太阳"}
_LONE = ("lone", "single", "one")
_LINK = re.compile(r"\s*(?:,\s*and\b|,|\band\b|，|、|和|与)\s*", re.IGNORECASE)
_BESIDE = r"next to|close to|beside|near|by|with"
_AND = re.compile(rf"\s*(?:\b(?:and|{_BESIDE})|和|与)\s*$", re.IGNORECASE)
_BEHIND = re.compile(rf"\s*(?:{_BESIDE})\b\s*", re.IGNORECASE)
_OPENING = re.compile(r"(?:\ba (?:postcard|painting|view|picture) of|\bwe see)\s*$", re.IGNORECASE)
_DANGLING = re.compile(r"\s*[,，、]\s*(?=[.。])")
_SIDES = re.compile(r"\b(?:on|to) the (left|right)\b")
_LEAD = re.compile(r"\b(?:two|three) things\s*,\s*|\ba (?:pair|trio)\s*,\s*|[两三]样东西[，,]\s*",
                   re.IGNORECASE)
_INSIDE_PARTS = ("behind", "above", "falls", "sky", "far", "away", "everywhere", "field", "meadow")
Span = tuple[int, int]


# A thing


def coloured(reading: Reading, n: int, colour: str) -> str | None:
    thing = reading.things[n]
    said = [word for word in inside(reading, thing) if word.meaning[0] == "colour"
            or word.typed.lower() in _OTHER_COLOURS] or [
        word for word in reading.words if word.start in reading.painted
        and word.start >= thing.end and word.meaning[1] == thing.colour][:1]
    if thing.shades or len(said) > 1:
        return None
    new = CHINESE[colour][0] if reading.chinese else _COLOUR_WORDS[colour][0]
    if said:
        return spliced(reading.prompt, (said[0].start, said[0].end), new)
    return spliced(reading.prompt, (thing.own, thing.own),
                   f"{new}的" if reading.chinese else f"{new} ")


def renamed(reading: Reading, n: int, kind: str) -> str | None:
    """With a noun of another kind, and the article, measure word and verb that suit it."""
    thing, count = reading.things[n], content_of(reading).things[n].count
    noun = noun_of(kind, count, reading.chinese)
    edits = [(thing.noun, thing.end, noun)]
    start, end = determiner(reading, thing)
    if start < end:
        edits.append((start, end, determiner_of(reading.prompt[start:end], kind, thing)))
    if not reading.chinese:
        edits += verb_edits(reading, thing, kind, count)
    text = edited(reading.prompt, edits)
    return articles_fixed(text, start)


def noun_of(kind: str, count: int, chinese: bool) -> str:
    if chinese:
        return SEVERAL.get(kind, CHINESE[kind][0])
    noun = _NOUNS[kind][0]
    return noun if count == 1 else f"{noun}es" if noun.endswith("ch") else f"{noun}s"


def determiner(reading: Reading, thing: Named) -> Span:
    """The article, number or "a lone" of a thing; in Chinese with its measure word."""
    words = [word for word in inside(reading, thing) if word.end <= thing.noun and (
        word.word in (*ARTICLES, *QUANTITIES) or word.number is not None)]
    if not words:
        return thing.start, thing.start
    start, end = words[0].start, words[0].end if reading.chinese else words[-1].end
    while reading.chinese and end < thing.noun and reading.prompt[end] in _MEASURES:
        end += 1
    return start, end


def determiner_of(old: str, kind: str, thing: Named) -> str:
    """What stands before a noun of this kind in place of `old`."""
    group, many = kind in PLURAL, thing.kind in PLURAL and thing.number is None
    if re.search("[\u3400-\u9fff]", old):
        if "孤独" in old:
            return "" if group else old
        return "" if group else f"{old[0]}{_MEASURE.get(kind, '座')}"
    if old.lower() == "the" or group == many or thing.number not in (None, 1):
        return old
    return "some" if group else "a"


def verb_edits(reading: Reading, thing: Named, kind: str, count: int) -> list[tuple]:
    """The verb beside a thing: a boat sails where a house stands."""
    before = [word for word in reading.words if word.end <= thing.start][-1:]
    after = [word for word in reading.words if word.start >= thing.end][:1]
    verb = _VERBS.get(kind, "stands")
    verb = verb.removesuffix("s") if count > 1 else verb
    return [(word.start, word.end, verb) for word in (*before, *after) if word.word in VERBS]


def placed(reading: Reading, n: int, place: str) -> str:
    thing, new = reading.things[n], place_words(place)[reading.chinese]
    if thing.place:
        return edited(reading.prompt, [place_edit(reading, thing, place)])
    blank = "" if reading.chinese else " "
    return edited(reading.prompt, [(thing.end, thing.end,
                                    f"{blank}{new}{break_after(reading, thing)}")])


def swapped_places(reading: Reading, n: int, k: int) -> str:
    """Two things with each other's place."""
    first, second = reading.things[n], reading.things[k]
    return edited(reading.prompt, [place_edit(reading, first, second.place or ""),
                                   place_edit(reading, second, first.place or "")])


def place_edit(reading: Reading, thing: Named, place: str) -> tuple[int, int, str]:
    """Another place instead of a thing's own; 左边 stays without 在."""
    start, end = place_span(reading, thing)
    new = place_words(place)[reading.chinese]
    return start, end, new if reading.prompt[start] == "在" else new.removeprefix("在")


def place_span(reading: Reading, thing: Named) -> Span:
    """The words of a thing's place: "on the left"."""
    front = thing.front < thing.start
    low, high = (thing.front, thing.start) if front else (thing.end, _end(reading, thing))
    words = [word for word in reading.words if low <= word.start and word.end <= high]
    at = next(k for k, word in enumerate(words) if word.meaning[0] == "place")
    first = at
    while first and words[first - 1].word in _BEFORE_A_PLACE:
        first -= 1
    after = [word for word in reading.words if word.start >= words[at].end][:1]
    end = next((word.end for word in after if word.typed.lower() == "side"), words[at].end)
    return words[first].start, end


def without_thing(reading: Reading, n: int) -> str:
    """Without a thing, in a list that is joined as before: "a, b and c" -> "a and c"."""
    prompt, spans = reading.prompt, spans_of(reading)
    gaps = gaps_of(prompt, spans)
    if gaps is not None and gaps:
        left = [prompt[slice(*span)] for k, span in enumerate(spans) if k != n]
        return prompt[: spans[0][0]] + joined(left, gaps[1:]) + prompt[spans[-1][1] :]
    start, end = spans[n]
    before = (_OPENING if len(spans) == 1 else _AND).search(prompt[:start])
    behind = _BEHIND.match(prompt, end) if n == 0 and len(spans) > 1 else None
    return cut(prompt, [(before.start() if before else start, behind.end() if behind else end)])


def doubled(reading: Reading, n: int, place: str | None) -> str | None:
    """With another thing like this one, at a place; "two houses" become three."""
    thing, prompt, chinese = reading.things[n], reading.prompt, reading.chinese
    count = content_of(reading).things[n].count
    if count > 1:
        words = [word for word in inside(reading, thing) if word.number == count]
        if not words:
            return None
        three = words[0].typed.replace("两", "三") if chinese else "three"
        return edited(prompt, [(words[0].start, words[0].end, three)])
    article = "some " if thing.kind in PLURAL else "a "
    rest = prompt[determiner(reading, thing)[1] : thing.end].strip()
    where = "" if place is None else place_words(place)[chinese]
    like = (prompt[thing.start : thing.end] + where if chinese
            else with_article(article, f"{rest} {where}".strip()))
    return with_more(reading, n, like)


def added(reading: Reading, kind: str, place: str) -> str:
    """With a thing of this kind at a place, after the others."""
    noun, where = noun_of(kind, 1, reading.chinese), place_words(place)[reading.chinese]
    like = f"{noun}{where}" if reading.chinese else with_article("a ", f"{noun} {where}")
    if reading.things:
        return with_more(reading, len(reading.things) - 1, like)
    return f"{like}{COMMA if reading.chinese else ', '}{reading.prompt}"


def with_more(reading: Reading, n: int, like: str) -> str:
    """With the words of one more thing, in the list of all or behind that of this number."""
    prompt, chinese, spans = reading.prompt, reading.chinese, spans_of(reading)
    if gaps_of(prompt, spans) is None:
        stop = spans[n][1]
        return edited(prompt, [(stop, stop, f"{COMMA if chinese else ' and '}{like}")])
    texts = [prompt[slice(*span)] for span in spans]
    gaps = [COMMA if chinese else ", "] * (len(spans) - 1) + [COMMA if chinese else " and "]
    return prompt[: spans[0][0]] + joined([*texts, like], gaps) + prompt[spans[-1][1] :]


def spans_of(reading: Reading) -> list[Span]:
    """Each thing's words with its place and verb."""
    spans = []
    for thing in reading.things:
        end = _end(reading, thing)
        after = [word for word in reading.words if word.start >= end][:1]
        end = next((word.end for word in after if word.word in VERBS), end)
        spans.append((min(thing.front, thing.start), end))
    return spans


def gaps_of(prompt: str, spans: Sequence[Span]) -> list[str] | None:
    """What joins the things; None if anything but marks and "and" stands between them."""
    gaps = [prompt[first[1] : second[0]] for first, second in itertools.pairwise(spans)]
    return gaps if all(_LINK.fullmatch(gap) for gap in gaps) else None


def joined(texts: Sequence[str], gaps: Sequence[str]) -> str:
    return "".join(text + gap for text, gap in zip(texts, [*gaps, ""], strict=True))


def cut(prompt: str, cuts: Iterable[Span], edits: Iterable[tuple[int, int, str]] = ()) -> str:
    """`without`, and without a comma that is left before a full stop."""
    return _DANGLING.sub("", without(prompt, cuts, edits))


def inside(reading: Reading, thing: Named) -> list[Word]:
    """The words of a thing up to its noun."""
    return [word for word in reading.words if thing.start <= word.start < thing.end]


def spliced(prompt: str, span: Span, new: str) -> str:
    """The prompt with a text in place of [start, end), and "an" before a vowel."""
    return with_article(prompt[: span[0]], new + prompt[span[1] :])


def articles_fixed(prompt: str, at: int) -> str:
    """With the article that begins here as the word behind it wants."""
    found = re.compile(r"an?\s+", re.IGNORECASE).match(prompt, at)
    return prompt if found is None else with_article(prompt[: found.end()], prompt[found.end() :])


# The number of things


def counted(prompt: str, complete: bool) -> str:
    """With the number of its things as captions have it, if it is complete; no wrong one stays."""
    reading = read(prompt)
    total, group = content_of(reading).number
    edits = [edit for thing in reading.things for edit in lone_edits(reading, thing)
             if total != 1 or group]
    if wrong_lead(reading, total, group):
        edits += [(*found.span(), "") for found in _LEAD.finditer(prompt)]
    for start, end, new in sorted(edits, reverse=True):
        prompt = articles_fixed(spliced(prompt, (start, end), new), start)
    if not complete:
        return prompt
    added = expand(prompt, None, 0, limit=len(prompt)).added
    return next((pinned(prompt, each) for each in added if each.name == "count"), prompt)


def is_complete(prompt: str) -> bool:
    """Whether expansion would add no number of things."""
    return all(each.name != "count" for each in expand(prompt, None, 0, limit=len(prompt)).added)




def wrong_lead(reading: Reading, total: int, group: bool) -> bool:
    says = {"one": 1, "two": 2, "three": 3}
    return group or any(says[value] != total for value in reading.scene.get("count", ()))


def lone_edits(reading: Reading, thing: Named) -> list[tuple[int, int, str]]:
    """What makes "a lone house" and "one house" "a house"."""
    edits = []
    for word in inside(reading, thing):
        if word.word not in _LONE or word.end > thing.noun:
            continue
        end = word.end + len(reading.prompt[word.end :]) - len(reading.prompt[word.end :].lstrip())
        bare = word.word == "one" and not reading.chinese
        edits.append((word.start, word.end, "a") if bare else (word.start, end, ""))
    return edits


def shortened(prompt: str) -> str:
    """The same in fewer words: "at left" for "on the left", and no number of three things."""
    return re.sub("three things, ", "", _SIDES.sub(r"at \1", prompt))


# The scene


def stated(reading: Reading, attribute: str, value: str | None) -> str | None:
    """With another value of the scene in place of the old one, or added; None leaves it out."""
    prompt = reading.prompt
    found = [mention_of(reading, k) for k, word in enumerate(reading.words)
             if meaning_at(reading.words, k) == attribute]
    spans = merged(found)
    if value is None:
        return cut(prompt, spans)
    if spans:
        first, *others = spans
        new = said_in_place(reading, attribute, value, first)
        return cut(prompt, others, [(*first, new)]) if others else edited(
            prompt, [(*first, new)])
    place = end_of_parts(reading, attribute)
    comma = COMMA if reading.chinese else ", "
    new = scene_words(attribute, value)[reading.chinese]
    return edited(prompt, [(place, place, f"{comma}{new}" if place else f"{new}{comma}")])


def meaning_at(words: Sequence[Word], k: int) -> str:
    """The attribute that a word names."""
    return words[k].meaning[0]


def said_in_place(reading: Reading, attribute: str, value: str, span: Span) -> str:
    """The words of a value as the place of the old ones wants: "a rainy evening"."""
    if not reading.chinese and beside_time(reading, span):
        return _SKY_ADJECTIVES.get(value, value) if attribute == "sky" else _TIME_NOUNS[value]
    return scene_words(attribute, value)[reading.chinese]


def beside_time(reading: Reading, span: Span) -> bool:
    """Whether a single word is one of "a rainy evening"."""
    words = reading.words
    at = [k for k, word in enumerate(words) if (word.start, word.end) == span]
    return bool(at) and (adjective_at(words, at[0]) or (
        at[0] > 0 and adjective_at(words, at[0] - 1)))


def adjective_at(words: Sequence[Word], k: int) -> bool:
    """Whether a word of the weather is an adjective of the time of day behind it."""
    return words[k].meaning[0] in ("sky", "light") and words[k].word != "clouds" and (
        k + 1 < len(words)) and words[k + 1].meaning[0] == "time"


def mention_of(reading: Reading, k: int) -> Span:
    """The words that a value of the scene is named with, around words[k]: "in a wheat field"."""
    words = reading.words
    if reading.chinese or adjective_at(words, k) or (k and adjective_at(words, k - 1)):
        return words[k].start, words[k].end
    attribute = words[k].meaning[0]
    for phrase in sorted(phrases_for(attribute), key=len, reverse=True):
        for found in re.finditer(rf"\b{re.escape(phrase)}\b", reading.prompt, re.IGNORECASE):
            if found.start() <= words[k].start < found.end():
                return found.span()
    first = last = k
    while first and plain_before(words[first - 1], attribute):
        first -= 1
    while last + 1 < len(words) and (words[last + 1].word in _INSIDE_PARTS
                                     or words[last + 1].meaning[0] == attribute):
        last += 1
    return words[first].start, words[last].end


def phrases_for(attribute: str) -> list[str]:
    """What captions say of an attribute."""
    if attribute == "light":
        return [text.format(light=light) for text in _LIGHT_ALONE for light in ("sun", "moon")]
    return [text for (name, _), texts in _PARTS.items() if name == attribute for text in texts]


def plain_before(word: Word, attribute: str) -> bool:
    """Whether a word belongs to the phrase behind it: an article, preposition or adjective."""
    return word.word not in (*BREAKS, *VERBS) and word.meaning[0] in ("", attribute)


def with_lamp(reading: Reading, lamp: str) -> str | None:
    """With the sun in place of the moon, or the other way round."""
    words = [word for word in reading.words if word.meaning[0] == "light"]
    if any(word.typed.lower() not in _OTHER_LAMPS for word in words):
        return None
    return edited(reading.prompt, [(word.start, word.end, _OTHER_LAMPS[word.typed.lower()])
                           for word in words if word.meaning[1] != lamp])
