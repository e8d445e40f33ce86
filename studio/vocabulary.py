"""Words to click under the prompt: those of a backbone that knows few, else styles."""

from __future__ import annotations

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.prompt_guide import offered
from ssd_core.weights.advice import advice_lines
from ssd_core.weights.catalogue import CATALOGUE

from .errors import in_language
from .words import CHINESE, say

# (English, Chinese) of styles for backbones that know all words.
STYLES = (("watercolour", "水彩画"), ("oil painting", "油画"), ("pencil drawing", "铅笔素描"),
          ("photograph", "照片"), ("film still", "电影画面"), ("children's book illustration",
          "儿童绘本插图"), ("woodcut print", "木刻版画"), ("pixel art", "像素画"),
          ("low-poly render", "低多边形渲染"), ("soft light", "柔和的光线"),
          ("golden hour", "黄金时刻"), ("dramatic clouds", "戏剧性的云"))


def word_kinds(backbone: Backbone, language: str) -> list[dict]:
    """The words that word_chips.js offers for this backbone, in a language of the page."""
    kinds = offered(backbone.word_kinds, language == CHINESE)
    return kinds + [styles(language)] * backbone.takes_any_words


def draws(name: str, backbone: Backbone, language: str) -> str:
    """What a backbone of this name draws, what makes a good prompt and what is weak, in a line;
    empty if `word_kinds` has all of it.
    """
    if not backbone.takes_any_words:
        return ""
    if name not in CATALOGUE:
        return say(language, "any_text")
    row = CATALOGUE[name]
    begin = (f"{in_language(language, row.note)}{say(language, 'stop')}"
             if row.note.startswith("draws") else say(language, "any_text"))
    lines = [begin, *(in_language(language, line) for line in advice_lines(row)[1:])]
    return ("" if language == CHINESE else " ").join(lines)


def styles(language: str) -> dict:
    """Styles as one kind of words; a prompt may have several."""
    return {"name": say(language, "styles"), "role": "style",
            "chips": [{"phrases": [pair[language == CHINESE]], "attribute": pair[0],
                       "plural": False, "colour": ""} for pair in STYLES]}
