"""The words of the postcards' world by kind, in English and Chinese: for a host to offer as chips.

Each chip has its phrase as it is best written, then the other phrases that mean the same. A prompt
made of them is one the captions could have had. Knows neither page nor prompt box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .captions import _COLOUR_WORDS, _LIGHT_ALONE, _NOUNS, _PARTS, _PLACE_WORDS, PLURAL

THING, COLOUR, PLACE, SCENE = "thing", "colour", "place", "scene"  # roles in a prompt


@dataclass(frozen=True)
class Chip:
    """english, chinese: the phrase to write, then others that mean the same.

    attribute: what it says something about; of those with one attribute, a scene has one. plural:
    a thing that is several at once, and takes no "a".
    """

    attribute: str
    english: tuple[str, ...]
    chinese: tuple[str, ...]
    plural: bool = False


@dataclass(frozen=True)
class Kind:
    """Chips that are offered together. role: how they go into a prompt."""

    name: str
    chinese: str
    role: str
    chips: tuple[Chip, ...]


_CHINESE: dict[str, str] = {
    "house": "房子 房屋 小屋 木屋 屋子", "houses": "村庄 村子 小镇", "church": "教堂",
    "castle": "城堡 宫殿", "tower": "塔楼 高塔 塔", "lighthouse": "灯塔", "windmill": "风车",
    "tent": "帐篷", "tree": "大树 树", "trees": "几棵树 一些树 树丛", "pine": "松树 杉树",
    "boat": "小船 船 帆船", "boats": "几艘船 船队", "bridge": "桥 桥梁", "balloon": "热气球 气球",
    "red": "红色 红", "orange": "橙色 橘色 橙", "yellow": "黄色 黄 金色", "green": "绿色 绿",
    "blue": "蓝色 蓝", "purple": "紫色 紫", "pink": "粉色 粉红色 粉红", "white": "白色 白",
    "left": "在左边 左边 在左侧 左侧", "middle": "在中间 中间 在中央 中央",
    "right": "在右边 右边 在右侧 右侧",
    "dawn": "黎明 拂晓 日出 清晨 早晨", "day": "中午 正午 白天 下午", "dusk": "黄昏 日落 傍晚",
    "night": "夜晚 晚上 午夜", "clear": "晴空 晴天", "cloudy": "多云 白云",
    "starry": "星空 繁星 星星", "rain": "雨中 下雨 雨", "fog": "雾中 大雾 雾", "sun": "太阳",
    "moon": "月光 月亮 明月", "none": "平坦的地平线 地平线", "hills": "山丘 丘陵 小山",
    "mountains": "群山 高山 山脉 山", "snowy": "雪山", "forest": "森林", "meadow": "草地 草原",
    "field": "麦田 田野", "sand": "沙滩 沙漠", "snow": "雪地", "lake": "湖上 湖面 湖边 湖",
    "sea": "海上 大海 海面 海边 海", "road": "小路 道路 路", "river": "河边 小河 河流 河",
    "flowers": "花丛 鲜花 野花 花",
}


def _chips(attribute: str, english: Mapping[str, Sequence[str]]) -> tuple[Chip, ...]:
    return tuple(Chip(attribute, tuple(dict.fromkeys(words)), tuple(_CHINESE[value].split()),
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
