"""What a prompt says of two things: "a tree between two houses", "a boat under a bridge".

Postcards show things side by side. A thing between others stands in the middle; other relations
leave the places of both open, and are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .spelling import Named, Reading, Word

_BETWEEN = ("between", "之间", "中间")
# Relations that no postcard shows, as typed. A balloon floats above everything else.
_UNSEEN = ("behind", "front", "under", "below", "beneath", "underneath", "inside", "atop", "top",
           "over", "above", "后面", "背后", "前面", "下面", "上面", "里面")
_OVER = ("over", "above", "under", "below", "beneath", "上面", "下面")
_CHINESE_UNSEEN = re.compile("(?:下|上|里|后|後|前)(?=有)")  # 桥下有一条船
_MARKS = re.compile("[,.;，。；、]")


def relate(reading: Reading, total: int) -> list[str]:
    """Apply the relations between a reading's things; returns the words of those not shown.

    total: the number of single things in the picture.
    """
    things, unseen = reading.things, []
    middle = _thing_between(reading)
    if middle is not None and total == 3 and not middle.place:
        middle.place_hint = "middle"
    elif middle is not None and len(things) > 1:
        unseen.append("between")
        for thing in things:
            thing.free = True
    for first, second in zip(things, things[1:], strict=False):
        if word := _unseen(reading, first, second):
            unseen.append(word)
            first.free = second.free = True
    return unseen


def _thing_between(reading: Reading) -> Named | None:
    """The thing that stands between the others."""
    things = reading.things
    at = next((word.start for word in reading.words if word.typed.lower() in _BETWEEN), None)
    if at is None or not things:
        return None
    before = [thing for thing in things if thing.end <= at]
    after = [thing for thing in things if thing.start >= at]
    if any(mark in reading.prompt for mark in ("中间", "之间")):  # 两棵树中间有一座房子
        return after[0] if before and after else None
    return before[-1] if before else None


def _unseen(reading: Reading, first: Named, second: Named) -> str:
    """The word of a relation between two neighbours that no postcard shows, else ""."""
    words = list(_between(reading, first, second))
    typed = [word.typed.lower() for word in words]
    if _MARKS.search(reading.prompt[first.end : second.start]) or "and" in typed:
        return ""
    if "balloon" in (first.kind, second.kind) and set(_OVER) & set(typed):
        return ""
    if typed[:1] == ["on"] and not any(word.meaning[0] for word in words):
        return "on"
    chinese = _CHINESE_UNSEEN.match(reading.prompt[first.end : second.start])
    return chinese[0] if chinese else next((word for word in typed if word in _UNSEEN), "")


def _between(reading: Reading, first: Named, second: Named) -> Iterator[Word]:
    return (word for word in reading.words if first.end <= word.start < second.noun)
