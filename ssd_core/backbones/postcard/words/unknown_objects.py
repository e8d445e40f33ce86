"""Find the things of a prompt that no postcard shows: "a dog", "two trains", 一只狗.

A word that the vocabulary lacks counts as a thing unless it modifies a known word ("wooden house")
or is one of the small words, verbs and words about style below.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from ...prompt_guide import UnknownObject
from ...prompts.expanded import blanked, merged, without
from .aliases import MARKS, simplified
from .negations import negations
from .spelling import ARTICLES, NUMBERS, QUANTITIES, Word, pieces_of, words_of

# Words without an object of their own. Those of the first lines may stand before or after a noun.
_NO_THING = frozenset("""
    my your his her our their these those that who which whose what where when while as so than
    then i we you he she they us them him was were be been being do does did can could will would
    should to for but or nor if because too also not no yes all every each any another other both
    half most more much less few lots lot kind sort type pairs bunch group row rows line lines
    number side across through around round toward towards past off up down out about against
    after during until beyond upon behind along among amongst amid between like via per plus
    without within here away far close together apart alone just only really quite almost still
    even ever never always again four five six seven eight nine ten dozen hundred thousand
    hundreds thousands great good best better bad new young tiny huge giant enormous massive mini
    long short high low wide narrow thick thin deep square open closed empty full bright dim warm
    cold cool hot dry wet fresh clean dirty soft hard light heavy quiet calm silent peaceful
    serene tranquil cozy cosy cute sweet happy sad gloomy moody dreamy eerie scary spooky creepy
    magic magical mystic mystical enchanted fantasy fairytale surreal romantic rustic vintage
    retro ancient medieval modern gothic simple minimal minimalist minimalistic abstract
    realistic photorealistic stylized detailed intricate dramatic cinematic epic vivid vibrant
    colorful colourful pastel muted monochrome stunning gorgeous charming picturesque scenic
    idyllic majestic grand amazing breathtaking perfect wild remote distant nearby isolated
    abandoned deserted ruined broken haunted sleepy lazy lonely solitary wooden stone brick steel
    metal iron glass straw thatched white-washed whitewashed weathered rusty dusty mossy
    overgrown lush verdant leafy barren tropical arctic alpine coastal rural urban southern
    northern eastern western dutch french japanese italian english irish scottish swiss greek
    nordic norwegian scandinavian german windy breezy chilly frosty icy frozen humid wintry
    autumnal grey gray black brown beige silver turquoise teal maroon multicolored multicoloured
    dark darker lighter pale reddish bluish spring summer autumn fall season january february
    march april may june july august september october november december monday tuesday wednesday
    thursday friday saturday sunday today christmas easter halloween weather wind breeze air
    temperature lights lighting lit shadow shadows glow color colour colors colours palette tone
    tones hue hues contrast style styles art artwork artstation watercolor watercolour oil
    acrylic ink pencil sketch illustration render rendering wallpaper poster postcard card print
    photograph photography photo image masterpiece quality resolution hd uhd hdr 4k 8k detail
    details highly ultra hyper unreal engine octane trending background foreground backdrop
    distance horizon atmosphere mood vibe vibes feeling sense silence peace solitude memory
    memories dream dreams beauty edge top bottom center corner front back rest part end middle
    version something anything everything nothing someone somewhere way time times moment late
    early soon overhead above stand sit sits sat lie lies lay run runs ran walk walks fly flies
    flew swim swims float rise rises rising set sets look looks overlook overlooks overlooking
    see seen seems falls grow grows hang hangs shine glows reflect reflects cover covers surround
    surrounds make makes made put want wants need needs love loves let lets give gives get gets
    create generate imagine add include includes feature features depict depicts either else instead
    tied built pls foot rim travel springtime summertime ok okay same straight miles
""".split())
# The same in Chinese, where words have no blanks between them.
_CHINESE_NO_THING = """
    的 地 得 了 过 们 这 那 我 你 他 她 它 很 最 太 真 非常 有点 一 两 二 三 四 五 六 七 八 九 十
    座 个 只 条 棵 艘 间 朵 片 匹 头 幅 张 辆 顶 把 群 排 对 栋 幢 盏 道 阵 些 多 少 大 小 老 旧
    新 高 矮 长 短 远 近 美 美丽 漂亮 可爱 安静 宁静 温馨 古老 孤独 孤单 独自 明亮 昏暗 黑 灰 棕
    春 夏 秋 春天 夏天 秋天 夏日 秋日 春日 季 天 时 时候 时分 请 要 想 给 让 帮 用 以 从 到 向 被 比
    就 都 也 又 还 再 不 没 中 内 外 前 后 左 右 上 下 边 旁 面 处 那边 这里 那里 附近 之间 对面
    身边 底 停 站 坐 躺 走 跑 飞 游 飘 落 开 照 挂 立 矗 矗立 坐落 停泊 奔跑 飞翔 漂浮 行驶 航行
    倒映 盛开 覆盖 环绕 笼罩 穿过 穿 随便 唯美 治愈系 梦幻 高清 热闹 一点 蒙蒙 纷飞 刮 亮 升起
    落下 闪烁 照耀 任意 风格 油画 水彩 水墨 插画 照片 图片 画面 风景画 色 色彩 木 石 石头 木头
""".split()
_NO_THING_ENDINGS = re.compile(r".+(?:ly|ful|ous|less|able|ible|ive|esque)$|.{2,}(?:ing|ed)$")
_NOUN_ENDINGS = frozenset("""
    family butterfly fly jelly lily belly king ring wing wings sing thing string spring
    ceiling wedding clothing painting pudding duckling sapling fishing bed shed sled seed weed
    reed table stable vegetable hive dive beehive olive
""".split())
_LEADS = ("in", "on", "at", "by", "under", "above", "among", "before", "along", "with", "of",
          "between", "and", "behind", "around", "against", "through", "across", "past", "beyond",
          "near", "beside", "over", "below", "next", "to", "from", "into", "onto", "like",
          "without", "for", "和", "与", "在", "有")
_MODIFIED = ("kind", "ground", "path", "ridge", "sky", "light", "time", "colour")
# Words that join a phrase to the one behind it, and are left out with it.
_AFTER = ("and", ",", "with", "next", "to", "beside", "near", "behind", "under", "over", "above",
          "below", "between", "of", "front", "和", "与", "，", "、")
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")
_SMALL = "|".join(sorted(_CHINESE_NO_THING, key=len, reverse=True))
_SMALL_BEFORE, _SMALL_BEHIND = re.compile(f"(?:{_SMALL})*"), re.compile(f"(?:{_SMALL})*$")
# Words of which everything may be left open.
_WHOLE = ("view", "picture", "painting", "postcard")
_CHINESE_ADJECTIVES = ("的", "小", "大", "老", "两座", "兩座")
_STYLE = ["style", "of"]
Piece = tuple[Word, ...]


def unknown_objects(prompt: str) -> list[UnknownObject]:
    """The things of a prompt that are unknown, in order; those in its negations do not count."""
    text = blanked(prompt, [(denied.start, denied.end) for denied in negations(prompt)])
    pieces, found, position = pieces_of(text), [], 0
    while position < len(pieces):
        end = _end_of_run(pieces, position)
        while end > position and _typed(pieces[position]) in _LEADS:
            position += 1
        if end > position and _is_thing(pieces, position, end):
            found.append(_thing(text, pieces, position, end))
        position = max(end, position + max(1, _small_words(_chinese_run(pieces, position))))
    return found


def without_unknown_objects(prompt: str) -> str:
    """The prompt without its unknown things."""
    return without(prompt, merged(thing.cut for thing in unknown_objects(prompt)))


def known_part(prompt: str) -> str:
    """The prompt with blanks in place of its negations and of its unknown things."""
    return blanked(prompt, merged([*((denied.start, denied.end) for denied in negations(prompt)),
                                   *(thing.cut for thing in unknown_objects(prompt))]))


def names_nothing_known(prompt: str) -> bool:
    """Whether a prompt has unknown words, and no other that says anything of a picture."""
    unknown = unknown_objects(prompt)
    rest = words_of(blanked(prompt, merged(thing.cut for thing in unknown)))
    whole = not unknown and any(word.word in _WHOLE for word in rest)
    return any(map(_unknown, pieces_of(prompt))) and not (
        whole or any(word.meaning[0] for word in rest))


def _end_of_run(pieces: Sequence[Piece], first: int) -> int:
    """The end of the unknown words from `first` up to and including the head of their phrase.

    In "a red fox running" that is "fox"; `first` if no word may be a head.
    """
    if _chinese(pieces[first]):
        return _end_of_chinese_run(pieces, first)
    end = first
    for position in range(first, len(pieces)):
        if not _unknown(pieces[position]) or _chinese(pieces[position]):
            break
        if _may_be_thing(pieces[position]):
            end = position + 1
        elif end > first:
            break  # a verb or another small word
    return end


def _end_of_chinese_run(pieces: Sequence[Piece], first: int) -> int:
    text = _chinese_run(pieces, first)
    behind = _SMALL_BEHIND.search(text)
    stop = behind.start() if behind else len(text)
    return first + stop if _small_words(text) < stop else first


def _chinese_run(pieces: Sequence[Piece], first: int) -> str:
    """The unknown Chinese words from `first` on; a piece is one letter."""
    run = takewhile(lambda piece: _unknown(piece) and _chinese(piece), pieces[first:])
    return "".join(map(_typed, run))


def _small_words(text: str) -> int:
    """The number of letters of the small words at the beginning."""
    small = _SMALL_BEFORE.match(text)
    return small.end() if small else 0


def _is_thing(pieces: Sequence[Piece], first: int, end: int) -> bool:
    """Whether the run that ends here does not modify what follows: "sunflower field", 美丽的."""
    if _typed(pieces[end - 1]).endswith("'s"):
        return False
    if [_typed(piece) for piece in pieces[:first]][-2:] == _STYLE:
        return False
    after = next((piece for piece in pieces[end:] if piece[0].word or piece[0].unknown
                  or _typed(piece) == "的"), None)
    if first and _typed(pieces[first - 1]) == "有":
        return True
    return after is None or not (_typed(after) == "的" or after[0].meaning[0] in _MODIFIED)


def _thing(text: str, pieces: Sequence[Piece], first: int, end: int) -> UnknownObject:
    begin = first
    while begin and _belongs_before(pieces[begin - 1]) and not (
            begin < first and _opens(pieces[begin])):
        begin -= 1
    while begin < first and _typed(pieces[begin]) == "的":
        begin += 1
    start, stop = pieces[begin][0].start, pieces[end - 1][-1].end
    return UnknownObject(text[start:stop], start, stop, _cut(pieces, begin, end))


def _belongs_before(piece: Piece) -> bool:
    """Whether a piece is an article, number, colour or adjective of the noun behind it."""
    word = piece[0]
    if _typed(piece) in (*_LEADS, *MARKS, *_AFTER) or len(piece) > 1:
        return False
    return (word.word in (*ARTICLES, *QUANTITIES) or word.number is not None
            or word.meaning[0] == "colour" or _unknown(piece)
            or (not word.word and _typed(piece).isalnum()
                and (_typed(piece).isascii() or _typed(piece) in _CHINESE_ADJECTIVES)))


def _opens(piece: Piece) -> bool:
    """Whether a noun phrase begins here: with an article or a number."""
    return piece[0].word in ARTICLES or piece[0].number is not None


def _cut(pieces: Sequence[Piece], begin: int, end: int) -> tuple[int, int]:
    """With the prepositions before the phrase, and the verbs after it."""
    while end < len(pieces) and _unknown(pieces[end]) and not _may_be_thing(pieces[end]):
        end += 1
    while begin and _leads(pieces[begin - 1]):
        begin -= 1
    if begin and _typed(pieces[begin - 1]) in _AFTER:
        begin -= 1
    elif not begin or pieces[begin - 1][0].word in MARKS:
        while end < len(pieces) and _typed(pieces[end]) in _AFTER:
            end += 1
    start = pieces[begin - 1][-1].end if begin else pieces[0][0].start
    return start, pieces[end - 1][-1].end


def _leads(piece: Piece) -> bool:
    """Whether it is a preposition; Chinese phrases such as "by the ocean" are none."""
    return _typed(piece) in _LEADS or (len(piece) == 1 and piece[0].word in _LEADS)


def _may_be_thing(piece: Piece) -> bool:
    typed = _typed(piece)
    if typed.isascii() and len(typed) == 1:
        return False
    if typed in (*NUMBERS, *_CHINESE_NO_THING) or not any(map(str.isalpha, typed)):
        return False
    if typed in _NO_THING:
        return False
    return typed in _NOUN_ENDINGS or not _NO_THING_ENDINGS.match(typed)


def _unknown(piece: Piece) -> bool:
    return piece[0].unknown and any(sign.isalnum() for sign in piece[0].typed)


def _chinese(piece: Piece) -> bool:
    return bool(_IDEOGRAPH.match(piece[0].typed))


def _typed(piece: Piece) -> str:
    return simplified(piece[0].typed.lower())
