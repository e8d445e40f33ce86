"""What a click on a picture may choose, as whole prompts; here by words that any model may know."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .expanded import edited, without

PLACES = (("left", "左边", 0.0), ("middle", "中间", 0.5), ("right", "右边", 1.0))
REMOVE, ANOTHER = ("remove", "去掉"), ("another one like it", "再来一个")
_COLOURS = {"red": "红色", "orange": "橙色", "yellow": "黄色", "green": "绿色", "blue": "蓝色",
            "purple": "紫色", "pink": "粉色", "white": "白色", "black": "黑色", "brown": "棕色",
            "grey": "灰色", "golden": "金色"}
_COLOUR = re.compile(rf"\b(?:{'|'.join(_COLOURS)}|gray|violet|gold)\b", re.IGNORECASE)
_CHINESE_COLOUR = re.compile("(?:粉红|[红橙黄绿蓝紫粉白黑棕灰金])色?")
_ARTICLE = re.compile(r"(?:an?|the|one|his|her|my|some|two|three|four|five)\s+", re.IGNORECASE)
_SINGLE = re.compile(r"(?:an?|one|the)\s+", re.IGNORECASE)
_COUNTED = re.compile("(?:[一两二三几][个只座棵艘辆位条张间朵匹头把顶])?")
# Where the noun of a phrase has ended: "a cat | sitting on a chair".
_BEHIND_NOUN = re.compile(r"\s+(?:\w+ing|in|on|at|with|of|under|over|by|near|and|beside|behind|"
                          r"above|below|among|inside|before|from|to|who|that|which|is|are)\b",
                          re.IGNORECASE)
_PLACE = re.compile(r"\b(?:(?:on|to|at|in)\s+the\s+)(left|middle|cent(?:er|re)|right)\b",
                    re.IGNORECASE)
_CHINESE_PLACE = re.compile("(左|中|右)(?:边|侧|间|央)")
_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_BEFORE = r"(?:(?:at|by|in|on|during|under)\s+(?:(?:the|a|an|early|late|heavy|thick|light)\s+)*)?"


@dataclass(frozen=True)
class Option:
    """A value that words of a prompt may have. label: in the language of the prompt.

    prompt: the whole prompt with it. now: whether the prompt says so already. at: of a place, how
    far from the left side of the picture it is, 0..1; else None.
    """

    label: str
    prompt: str
    now: bool = False
    at: float | None = None


@dataclass(frozen=True)
class Choices:
    """What may be chosen of one kind: of a thing its "colour", "kind" (another thing in its place),
    "place", "remove" or "another" (one like it); of a scene "ground", "behind", "weather", "time".
    """

    kind: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Value:
    """A value of the scene. phrase: of its own; bare: before a noun; words, signs: that name it."""

    label: str
    phrase: str
    bare: str
    words: str
    chinese: str
    signs: str


_WEATHER = (
    Value("clear", "under a clear sky", "sunny", "(?:clear|blue) sky|sunshine|sunny|sunlit", "晴天",
          "晴天|晴空|蓝天|阳光"),
    Value("cloudy", "under a cloudy sky", "cloudy", "(?:cloudy|overcast) sky|cloudy|overcast",
          "多云", "多云|阴天"),
    Value("rain", "in the rain", "rainy", "rain|drizzle|rainstorm|rainy|stormy", "雨中",
          "下雨|大雨|雨中|雨天"),
    Value("fog", "in the fog", "foggy", "fog|mist|haze|foggy|misty|hazy", "雾中", "大雾|雾中|薄雾"),
    Value("snow", "in falling snow", "snowy", "falling snow|snowfall|snowstorm|snow|snowy", "下雪",
          "下雪|大雪|雪中"),
)
_TIMES = (
    Value("dawn", "at dawn", "dawn", "dawn|sunrise|daybreak|morning", "黎明",
          "黎明|拂晓|日出|清晨|早晨"),
    Value("day", "at noon", "midday", "noon|midday|day|afternoon|daylight", "中午",
          "中午|正午|白天|下午"),
    Value("dusk", "at dusk", "dusk", "dusk|sunset|evening|twilight", "黄昏", "黄昏|傍晚|日落|夕阳"),
    Value("night", "at night", "night", "night|midnight", "夜晚", "夜晚|晚上|午夜|深夜|夜里"),
)
_SCENE = {"weather": _WEATHER, "time": _TIMES}


def is_chinese(prompt: str) -> bool:
    return bool(_IDEOGRAPH.search(prompt))


def scene_choices(prompt: str) -> list[Choices]:
    """Weather and time of day, in place of words for them or behind the prompt."""
    return [Choices(kind, _values(prompt, values)) for kind, values in _SCENE.items()]


def _values(prompt: str, values: Sequence[Value]) -> tuple[Option, ...]:
    chinese = is_chinese(prompt)
    patterns = [value.signs if chinese else rf"\b{_BEFORE}(?:{value.words})\b" for value in values]
    found = [re.search(pattern, prompt, re.IGNORECASE) for pattern in patterns]
    first = next((match for match in found if match), None)
    return tuple(Option(value.chinese if chinese else value.label,
                        prompt if match and match is first else _with(prompt, value, first),
                        match is not None and match is first)
                 for value, match in zip(values, found, strict=True))


def _with(prompt: str, value: Value, found: re.Match[str] | None) -> str:
    """The prompt with a value of the scene in place of what was found, or behind it."""
    if found is None:
        rest = prompt.rstrip(" .,。，")
        return f"{rest}，{value.chinese}" if is_chinese(prompt) else f"{rest}, {value.phrase}"
    new = value.chinese if is_chinese(prompt) else value.phrase if " " in found[0] else value.bare
    return edited(prompt, [(*found.span(), new)])


def thing_choices(prompt: str, phrase: str) -> list[Choices]:
    """What the words of a thing may be, of a prompt for any model; [] if it lacks the phrase."""
    start = prompt.casefold().find(phrase.casefold())
    if start < 0:
        return []
    typed = prompt[start : start + len(phrase)]
    span = start, start + len(phrase)

    def choices(kind: str, options: Sequence[tuple[str, str, float | None]]) -> Choices:
        return Choices(kind, tuple(Option(label, edited(prompt, [(*span, new)]), new == typed, at)
                                   for label, new, at in options))

    offered = [choices("colour", _coloured(typed)), choices("place", _placed(typed))]
    if rest := without(prompt, [span]):
        offered.append(Choices("remove", (Option(REMOVE[is_chinese(typed)], rest),)))
    if more := _doubled(typed):
        offered.append(choices("another", [(ANOTHER[is_chinese(typed)], more, None)]))
    return [choice for choice in offered if choice.options]


def _coloured(phrase: str) -> list[tuple[str, str, float | None]]:
    """The phrase in every colour: its own is replaced, else one is put before the noun."""
    chinese = is_chinese(phrase)
    found = (_CHINESE_COLOUR if chinese else _COLOUR).search(phrase)
    labels = _COLOURS.values() if chinese else _COLOURS
    if found:
        return [(label, with_article(phrase[: found.start()], label + phrase[found.end() :]), None)
                for label in labels]
    if chinese:
        counted = _COUNTED.match(phrase)
        at = counted.end() if counted else 0
        return [(label, f"{phrase[:at]}{label}的{phrase[at:]}", None) for label in labels]
    if not _ARTICLE.match(phrase):
        return []  # "at night", "golden hour", "oil painting"
    end = stop.start() if (stop := _BEHIND_NOUN.search(phrase)) else len(phrase)
    at = phrase.rfind(" ", 0, end) + 1
    return [(label, with_article(phrase[:at], f"{label} {phrase[at:]}"), None) for label in labels]


def _placed(phrase: str) -> list[tuple[str, str, float | None]]:
    """The phrase with every place, if it names one."""
    chinese = is_chinese(phrase)
    found = (_CHINESE_PLACE if chinese else _PLACE).search(phrase)
    if found is None:
        return []
    return [((label, chinese_label)[chinese],
             _with_place(phrase, found, label, chinese_label), at)
            for label, chinese_label, at in PLACES]


def _with_place(phrase: str, found: re.Match[str], label: str, chinese_label: str) -> str:
    said = found[1].casefold()
    if said[:1] in (label[0], chinese_label[0]) or (said.startswith("cent") and label == "middle"):
        return phrase
    new = (chinese_label if is_chinese(phrase)
           else f"{'in' if label == 'middle' else 'on'} the {label}")
    return edited(phrase, [(*found.span(), new)])


def _doubled(phrase: str) -> str:
    """The phrase and another one like it at another place; "" if it names no single thing."""
    chinese = is_chinese(phrase)
    if chinese:
        if not phrase.startswith("一"):
            return ""
        other, link = f"另{phrase}", "，"
    else:
        single = _SINGLE.match(phrase)
        if not single:
            return ""
        other, link = f"another {phrase[single.end() :]}", ", "
    for label, _, at in _placed(phrase):
        new = next(text for name, text, _ in _placed(other) if name == label)
        if at in (0.0, 1.0) and new != other:
            return f"{phrase}{link}{new}"
    return f"{phrase}{link}{other}"


def with_article(before: str, after: str) -> str:
    """Texts joined; an article at the end of the first one fits the second: "an orange"."""
    if found := re.search(r"\b([aA])n?(\s+)$", before):
        n = "n" if after[:1].casefold() in tuple("aeiou") else ""
        before = f"{before[: found.start()]}{found[1]}{n}{found[2]}"
    return before + after
