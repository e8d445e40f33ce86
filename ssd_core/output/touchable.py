"""What hosts offer on a picture, as JSON: its things, their names, and what each may become."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import torch

from ..backbones.base import Backbone
from ..backbones.prompts.choices import Choices, is_chinese
from ..engine.edits.things import Thing, place_of, things_of
from .packed import pack_mask

TITLES = {"colour": ("Colour", "颜色"), "kind": ("Another thing", "换成"),
          "place": ("Place", "位置"),
          "remove": ("Remove", "去掉"), "another": ("Another one", "再来一个"),
          "add": ("Add a thing", "添加事物"), "ground": ("Ground", "地面"),
          "behind": ("Behind", "远景"),
          "weather": ("Weather", "天气"), "time": ("Time of day", "时间")}
PLACES = {"left": "左边", "middle": "中间", "right": "右边"}
_ENGLISH_PLACE = re.compile(r"\s*\b(?:(?:stands?|sails?|floats?)\s+)?(?:(?:on|to|in)\s+the|at)\s+"
                            r"(?:left|middle|cent(?:er|re)|right)\b(?:\s+side\b)?", re.IGNORECASE)
_CHINESE_PLACE = re.compile("在?(?:左|中|右)(?:边|侧|面|间|央)(?:有|是)?")
_ARTICLE = re.compile(r"^\s*(?:(?:stands?|sails?|floats?)\s+)?(?:an?|the|some|a few|one)?\s*"
                      r"\b(?:(?:lone|single)\s+)?", re.IGNORECASE)
_CHINESE_ARTICLE = re.compile("^一[座个棵艘只顶条间辆位张]?|孤独的")


def touchable(backbone: Backbone, tokens: torch.Tensor, prompt: str, *,
              chinese: bool = False, guidance: float | None = None,
              pixels: torch.Tensor | None = None,
              before_pass: Callable[[], None] = lambda: None) -> dict:
    """`rows`, `columns`, the `things` of a picture in reading order and its `scene`.

    chinese: the language of titles; labels have the prompt's. Other arguments as in `things_of`.
    """
    things = sorted(things_of(backbone, tokens, prompt, guidance, pixels, before_pass), key=order)
    names = names_of(things)
    return {"rows": backbone.grid.rows, "columns": backbone.grid.columns,
            "things": [{"phrase": thing.phrase, "name": name, "box": list(thing.box),
                        "mask": pack_mask(thing.mask), "sure": thing.sure,
                        "choices": as_json(backbone.choices(prompt, thing.phrase), chinese)}
                       for thing, name in zip(things, names, strict=True)],
            "scene": as_json(backbone.choices(prompt), chinese)}


def order(thing: Thing) -> tuple[int, int]:
    """By rows, then by columns: the third of the picture that the middle of the box is in."""
    top, left, rows, _ = thing.box
    return (2 * top + rows) * 3 // (2 * thing.mask.shape[0]), left


def as_json(choices: Sequence[Choices], chinese: bool) -> list[dict]:
    return [{"kind": each.kind, "title": TITLES[each.kind][chinese],
             "options": [{"label": option.label, "prompt": option.prompt, "now": option.now,
                          **({} if option.at is None else {"at": option.at})}
                         for option in each.options]} for each in choices]


def names_of(things: Sequence[Thing]) -> list[str]:
    """A short name of each: "red house", with its place if its phrase names one or if another
    thing would have the same name.
    """
    short = [short_name(thing.phrase) for thing in things]
    return [placed(name, thing) if place_of(thing.phrase) is not None or short.count(name) > 1
            else name for name, thing in zip(short, things, strict=True)]


def short_name(phrase: str) -> str:
    """A phrase without article and place."""
    if is_chinese(phrase):
        return _CHINESE_ARTICLE.sub("", _CHINESE_PLACE.sub("", phrase)).strip() or phrase
    return _ARTICLE.sub("", _ENGLISH_PLACE.sub("", phrase)).strip() or phrase


def placed(name: str, thing: Thing) -> str:
    return (f"{PLACES[thing.place]}的{name}" if is_chinese(name)
            else f"{name}, {thing.place}")
