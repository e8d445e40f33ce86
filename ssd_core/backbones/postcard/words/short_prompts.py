"""What hosts offer for prompts: short prompts in two languages, and chips of words by kind.

Short prompts leave most of the scene open, for expansion to fill in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...prompt_guide import Chip, Kind
from .captions import _COLOUR_WORDS, _LIGHT_ALONE, _NOUNS, _PARTS, _PLACE_WORDS, PLURAL
from .world import Scene, SceneObject, sample_scene

# By value: the preferred word, then synonyms.
CHINESE: dict[str, list[str]] = {value: words.split() for value, words in {
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
    "field": "麦田 田野", "sand": "沙漠 沙地", "snow": "雪地", "lake": "湖上 湖面 湖",
    "sea": "海上 大海 海面 海", "road": "小路 道路 路", "river": "河边 小河 河流 河",
    "flowers": "花丛 鲜花 野花 花",
}.items()}
SEVERAL = {"trees": "树丛", "boats": "船队"}  # for "几棵树", which takes no colour before it
COMMA = "，"
NAMED = ("ground", "time", "sky")  # a prompt names at most one of them
THING, COLOUR, PLACE, SCENE = "thing", "colour", "place", "scene"  # roles in a prompt


def fresh_chinese_prompt(rng: np.random.Generator) -> str:
    """A prompt for a new scene: its things, then two to four words about the rest."""
    scene = sample_scene(rng)
    words = [CHINESE[value][0] for value in scene_values(scene)]
    chosen = sorted(rng.permutation(len(words))[: int(rng.integers(2, 5))])
    return COMMA.join([*map(thing_text, scene.things), *(words[int(n)] for n in chosen)])


def thing_text(thing: SceneObject) -> str:
    """A thing's colour, name and place."""
    noun = SEVERAL.get(thing.kind, CHINESE[thing.kind][0])
    return f"{CHINESE[thing.colour][0]}的{noun}{CHINESE[thing.place][0]}"


def scene_values(scene: Scene) -> list[str]:
    """The values that a prompt may name besides the things, from the ground upwards."""
    seen = [scene.ground, scene.path, scene.ridge, scene.sky, scene.light, scene.time]
    return [value for value in seen if value != "none"]


def short_prompt(rng: np.random.Generator, chinese: bool = False) -> str:
    """A short prompt for a new scene."""
    scene, coloured, also = sample_scene(rng), rng.random() < 0.8, rng.random()
    name = chinese_name if chinese else english_name
    things = [name(thing, coloured) for thing in scene.things[: 2 if also < 0.25 else 1]]
    link = "和" if chinese else " and "
    part = scene_part(scene, NAMED[rng.integers(len(NAMED))], chinese) if also > 0.5 else ""
    return link.join(things) + part


def english_name(thing: SceneObject, coloured: bool) -> str:
    words = [_COLOUR_WORDS[thing.colour][0]] * coloured + [_NOUNS[thing.kind][0]]
    vowel = words[0][0] in "aeiou"
    return " ".join(["some" if thing.kind in PLURAL else "an" if vowel else "a", *words])


def chinese_name(thing: SceneObject, coloured: bool) -> str:
    colour = f"{CHINESE[thing.colour][0]}的" if coloured else ""
    return colour + SEVERAL.get(thing.kind, CHINESE[thing.kind][0])


def scene_part(scene: Scene, attribute: str, chinese: bool) -> str:
    """A prompt's phrase for an attribute of the scene, with its separator."""
    value = getattr(scene, attribute)
    return COMMA + CHINESE[value][0] if chinese else " " + _PARTS[attribute, value][0]


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
