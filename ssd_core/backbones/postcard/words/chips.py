"""The words of the postcards' world by kind, in English and Chinese, for a host to offer as chips.

A prompt made of chips uses the phrases of captions. Knows neither page nor prompt box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...prompt_guide import Chip, Kind
from .captions import _COLOUR_WORDS, _LIGHT_ALONE, _NOUNS, _PARTS, _PLACE_WORDS, PLURAL
from .chinese import CHINESE

THING, COLOUR, PLACE, SCENE = "thing", "colour", "place", "scene"  # roles in a prompt


def _chips(attribute: str, english: Mapping[str, Sequence[str]]) -> tuple[Chip, ...]:
    return tuple(Chip(attribute, tuple(dict.fromkeys(words)), tuple(CHINESE[value]),
                      value in PLURAL) for value, words in english.items())


def _scene(attribute: str) -> tuple[Chip, ...]:
    return _chips(attribute, {value: words for (name, value), words in _PARTS.items()
                              if name == attribute})


_LIGHTS = {light: [words.format(light=light) for words in _LIGHT_ALONE]
           for light in ("sun", "moon")}
KINDS: tuple[Kind, ...] = (
    Kind("Thing", "事物", THING, _chips("kind", _NOUNS)),
    Kind("Colour", "颜色", COLOUR, _chips("colour", _COLOUR_WORDS)),
    Kind("Place", "位置", PLACE, _chips("place", _PLACE_WORDS)),
    Kind("Ground", "地面", SCENE, (*_scene("ground"), *_scene("path"))),
    Kind("Behind", "远景", SCENE, _scene("ridge")),
    Kind("Weather", "天气", SCENE, (*_scene("sky"), *_chips("light", _LIGHTS))),
    Kind("Time", "时间", SCENE, _scene("time")),
)
