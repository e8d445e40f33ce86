"""Legal values of every knob, and rows of settings in which every two values meet."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from ssd_core.model.knobs import KnobSpec

Row = dict[str, Any]
TRIES = 12  # values of a setting are tried in so many random orders, of which the best is taken


def legal_values(knob: KnobSpec) -> list[Any]:
    """The default, the lowest, the highest and an odd value of a knob; all of a choice."""
    if knob.kind is bool:
        return [knob.default, not knob.default]
    if knob.choices:
        return list(dict.fromkeys((knob.default, *knob.choices)))
    low = knob.low if knob.above is None else math.nextafter(knob.above, math.inf)
    low, high = low or 0, knob.most
    assert high is not None, knob
    odd = min(low + 7, high) if knob.kind is int else low + 0.377 * (min(high, 8) - low)
    return list(dict.fromkeys((knob.default, knob.kind(low), knob.kind(high), knob.kind(odd))))


def one_by_one(knobs: Iterable[KnobSpec]) -> list[Row]:
    """A row for every value of every knob."""
    return [{knob.name: value} for knob in knobs for value in legal_values(knob)]


def pairwise(settings: Mapping[str, Sequence[Any]], seed: int) -> list[Row]:
    """Rows in which every two values of two settings stand together at least once.

    Greedy: each row takes a pair that is still missing, then for each other setting the value that
    completes most missing pairs.
    """
    random_ = random.Random(seed)
    missing = {frozenset(((a, i), (b, j))) for a, b in combinations(settings, 2)
               for i in range(len(settings[a])) for j in range(len(settings[b]))}
    rows = []
    while missing:
        first = min(missing, key=sorted)
        tries = [completed(dict(first), settings, missing, random_) for _ in range(TRIES)]
        best = max(tries, key=lambda row: len(missing & pairs_of(row)))
        missing -= pairs_of(best)
        rows.append({name: settings[name][place] for name, place in best.items()})
    return rows


def completed(row: dict[str, int], settings: Mapping[str, Sequence[Any]],
              missing: set[frozenset], random_: random.Random) -> dict[str, int]:
    """The row with a value for every setting, by its place in the setting's list."""
    others = [name for name in settings if name not in row]
    for name in random_.sample(others, len(others)):
        places = random_.sample(range(len(settings[name])), len(settings[name]))
        row[name] = max(places, key=lambda place: sum(
            frozenset(((name, place), item)) in missing for item in row.items()))
    return row


def pairs_of(row: Mapping[str, int]) -> set[frozenset]:
    return {frozenset(pair) for pair in combinations(row.items(), 2)}
