"""The odds of values that a prompt does not name, and a die that throws them by a seed.

They favour fair weather by day; rain, fog and night are rare.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from .world import WATER

Value = TypeVar("Value", bound=Hashable)
Odds = Mapping[Value, float]

TIME = {"day": 0.58, "dusk": 0.28, "dawn": 0.09, "night": 0.05}
SKY = {"day": {"clear": 0.55, "cloudy": 0.41, "rain": 0.02, "fog": 0.02},
       "night": {"starry": 0.7, "cloudy": 0.26, "rain": 0.02, "fog": 0.02}}
LIT = {"clear": 0.8, "starry": 0.8, "cloudy": 0.2}  # if the sun or the moon is visible
GROUND = {"meadow": 0.5, "field": 0.18, "sand": 0.14, "snow": 0.1, "lake": 0.04, "sea": 0.04}
AFLOAT = {"lake": 0.5, "sea": 0.5}
# For things that stand by the water as often as on land.
ASHORE = {"sea": 0.4, "lake": 0.25, "meadow": 0.2, "sand": 0.15}
RIDGE = {"hills": 0.35, "mountains": 0.2, "snowy": 0.15, "forest": 0.2, "none": 0.1}
OPEN_RIDGE = {"none": 0.3, "hills": 0.3, "mountains": 0.25, "snowy": 0.15}  # by water and on sand
LIGHT = {"none": 0.6, "sun": 0.4, "moon": 0.4}
KIND = {"house": 0.2, "tree": 0.12, "boat": 0.2, "lighthouse": 0.12, "castle": 0.08,
        "windmill": 0.1, "church": 0.08, "tower": 0.04, "tent": 0.06, "pine": 0.06,
        "balloon": 0.06, "bridge": 0.04}
COLOUR = {"red": 0.35, "blue": 0.22, "yellow": 0.15, "purple": 0.12, "pink": 0.1, "white": 0.06}
PALE = {"field": ("yellow",), "sand": ("yellow", "white"), "snow": ("white",)}  # hardly visible
GREEN = {"green": 0.8, "red": 0.1, "yellow": 0.1}
PLANTS = ("tree", "trees", "pine")


def ground_odds(kinds: tuple[str, ...]) -> Odds[str]:
    """Odds of the ground under these things: boats and bridges are on water."""
    if {"boat", "boats", "bridge"} & set(kinds):
        return AFLOAT
    return ASHORE if "lighthouse" in kinds else GROUND


def ridge_odds(ground: str) -> Odds[str]:
    return OPEN_RIDGE if ground in (*WATER, "sand") else RIDGE


def sky_odds(time: str, lit: bool) -> Odds[str]:
    return LIT if lit else SKY["night" if time == "night" else "day"]


def colour_odds(kind: str, ground: str) -> Odds[str]:
    """Odds of the usual colours of a kind, low if they hardly show on the ground."""
    odds = GREEN if kind in PLANTS else COLOUR
    return {colour: weight * (0.01 if colour in PALE.get(ground, ()) else 1)
            for colour, weight in odds.items()}


@dataclass(frozen=True)
class Die:
    """Throws that depend only on the seed, the salt and their name.

    Every value has its own random number, so that ruling out others does not change the result.
    """

    seed: int
    salt: str = ""

    def throw(self, name: str, odds: Odds[Value], allowed: Callable[[Value], bool]) -> Value | None:
        """An allowed value, None if there is none."""
        left = {value: self._delay(name, value) / weight for value, weight in odds.items()
                if allowed(value)}
        return min(left, key=left.__getitem__, default=None)

    def _delay(self, name: str, value: Hashable) -> float:
        """An exponential random number."""
        text = f"{self.seed}/{self.salt}/{name}/{value}".encode()
        number = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
        return -math.log((number + 1) / ((1 << 64) + 1))
