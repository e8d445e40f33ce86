"""What filled-in words must leave as it was typed, by the reader that the program itself uses."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from ssd_core.backbones.postcard.words.captions import _PARTS
from ssd_core.backbones.postcard.words.expansion import expand
from ssd_core.backbones.postcard.words.filling import MANY
from ssd_core.backbones.postcard.words.phrases import limits
from ssd_core.backbones.postcard.words.spelling import END, Named, Reading, read
from ssd_core.backbones.postcard.words.unknown_objects import known_part, unknown_objects

GROUPS = {"houses": "house", "trees": "tree", "boats": "boat"}
SEVERAL = 2  # the least number of a group
ONE_VALUE = ("time", "sky", "ground", "ridge", "light", "path")
TIMES = ("morning", "noon", "day", "afternoon", "evening", "night", "dawn", "dusk", "sunset",
         "sunrise", "midnight", "sky", "skies", "scene", "weather")
ADJECTIVES = {"foggy": "fog", "misty": "fog", "rainy": "rain", "stormy": "rain",
              "cloudy": "cloudy", "overcast": "cloudy", "starry": "starry"}
# What may stand before "a lone": nothing, a mark, or a word that a noun phrase follows.
BEFORE_A_LONE = re.compile(
    r"(?:^|[,.;:!?，。]|\w+ing|\b(?:and|with|of|me|is|has|see|to|in|on|at|by|under|over|near|beside|"
    r"behind|between|around|paint|draw|want|up|past|from|for|the|above|like|into|along|without|out|"
    r"as|below|across|towards?|make|makes|inside))$", re.IGNORECASE)


def broken(prompt: str, drawn: str) -> list[str]:
    """What of a prompt no longer holds in the words that are drawn for it."""
    old, new = read(known_part(prompt)), read(drawn)
    return [*scene(old, new), *weather(old, drawn), *numbers(prompt, old, new),
            *colours(old, new), *places(old, new), *between(old, new), *leftovers(drawn),
            *(f"{thing.typed} is still there" for thing in unknown_objects(drawn))]


def failures(prompt: str, seed: int) -> list[str]:
    """What the expansion of a prompt breaks."""
    return broken(prompt, expand(prompt, None, seed).prompt)


def scene(old: Reading, new: Reading) -> list[str]:
    told = [f"{name} {values} became {new.scene.get(name)}" for name, values in old.scene.items()
            if name in ONE_VALUE and set(new.scene.get(name, ())) != set(values)
            and not (len(values) > 1 and set(new.scene.get(name, ())) < set(values))]
    snow = old.hints.get("ground") == "snow" and "ground" not in old.scene
    return told + ["snowy is dropped"] * (snow and new.scene.get("ground") != ["snow"])


def weather(old: Reading, drawn: str) -> list[str]:
    """Weather as an adjective is written as captions write it, too."""
    if len(old.scene.get("sky", ())) != 1:
        return []
    adjectives = [(word.typed, ADJECTIVES[word.typed.lower()], after.typed.lower() in TIMES)
                  for word, after in pairwise([*old.words, END])
                  if word.typed.lower() in ADJECTIVES]
    plain = any(at_a_time for *_, at_a_time in adjectives)
    return [f"{typed} is written as no caption has it" for typed, sky, _ in adjectives
            if not plain and not any(part in drawn for part in _PARTS["sky", sky])]


def family(kind: str) -> str:
    return GROUPS.get(kind, kind)


def least_and_most(thing: Named) -> tuple[int, int]:
    """How many of it there may be."""
    if thing.number is not None and thing.number <= MANY:
        number = thing.number
        most = 9 if thing.many else number  # 一群羊
        return (number, most) if number > 1 or thing.kind not in GROUPS else (SEVERAL, 9)
    if thing.plural or thing.kind in GROUPS or thing.number is not None:
        return SEVERAL, 9
    return 1, 1


def numbers(prompt: str, old: Reading, new: Reading) -> list[str]:
    wanted: dict[str, list[int]] = {}
    for thing in old.things:
        low, high = least_and_most(thing)
        total = wanted.setdefault(family(thing.kind), [0, 0])
        total[0], total[1] = total[0] + low, total[1] + high
    found: Counter = Counter()
    most: Counter = Counter()
    for thing in new.things:
        low, high = least_and_most(thing)
        found[family(thing.kind)] += low
        most[family(thing.kind)] += high
    lost = [f"{kind}: {low}..{high} wanted, {found[kind]}..{most[kind]} drawn"
            for kind, (low, high) in wanted.items()
            if most[kind] < low or found[kind] > high or not found[kind]]
    strangers = set(found) - set(wanted)
    asked = bool(wanted) or bool(unknown_objects(prompt))
    return lost + [f"{kind} was never asked for" for kind in strangers if asked]


def colours(old: Reading, new: Reading) -> list[str]:
    lost = []
    for thing in old.things:
        drawn = {one.colour for one in new.things if family(one.kind) == family(thing.kind)}
        if thing.colour and thing.colour not in drawn:
            lost.append(f"{thing.colour} {thing.kind} became {drawn}")
        alike = [one for one in old.things if family(one.kind) == family(thing.kind)]
        if thing.shaded and not thing.colour and len(alike) == 1 and drawn - {None} - {
                one.colour for one in old.things}:
            lost.append(f"{thing.kind} of a colour that is not known became {drawn}")
    return lost


def places(old: Reading, new: Reading) -> list[str]:
    return [f"{thing.kind} is no longer at {thing.place}" for thing in old.things if thing.place
            and not any(one.place == thing.place and family(one.kind) == family(thing.kind)
                        for one in new.things)]


def between(old: Reading, new: Reading) -> list[str]:
    """Of two things and one between them, that one is in the middle; no place where there is none.
    """
    typed = [limit for limit in limits(old.prompt) if limit.startswith("one thing")]
    if typed:
        return [f"{one.kind} got a place in spite of “{typed[0]}”" for one in new.things
                if one.place and not any(thing.place for thing in old.things)
                and len(old.things) == 2]
    said = re.search(r"\bbetween (?:two|them|the two)\b|之间|中间有", old.prompt)
    if said and len(new.things) == 3:
        kinds = Counter(family(one.kind) for one in new.things)
        single = [one for one in new.things if kinds[family(one.kind)] == 1]
        around = {one.place for one in new.things if one not in single} == {"left", "right"}
        if len(single) == 1 and single[0].place not in ("middle", *(None,) * around):
            return [f"{single[0].kind} is not between the others"]
    return []


def leftovers(drawn: str) -> list[str]:
    return [f"left over: {drawn[max(0, found.start() - 20):found.end()]!r}"
            for found in re.finditer(r"\ban? lone\b", drawn)
            if not BEFORE_A_LONE.search(drawn[: found.start()].rstrip())]
