"""Translate a prompt into the postcards' vocabulary: synonyms, typing errors, and Chinese.

Every piece that a person types becomes words of the closed vocabulary, or is marked as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache

from .captions import _MEANING, _NOUNS, WORDS
from .everyday import AUTUMN, ON_TOP, SNOWING, Said, as_meant

_SYNONYMS: dict[str, str] = {
    # things
    "home": "house", "hut": "house", "cabin": "house", "building": "house", "barn": "house",
    "homes": "houses", "huts": "houses", "cabins": "houses", "village": "houses",
    "town": "houses", "chapel": "church", "cathedral": "church", "palace": "castle",
    "fortress": "castle", "fort": "castle", "a keep": "a tower", "harbour light": "lighthouse",
    "harbor light": "lighthouse",
    "camping": "tent", "campsite": "tent", "heading home": "", "coming home": "",
    "the keep": "the tower",
    "beacon": "lighthouse",
    "camp": "tent", "teepee": "tent", "oak": "tree", "birch": "tree", "apple tree": "tree",
    "apple trees": "trees",
    "grove": "trees", "oaks": "trees", "spruce": "pine", "conifer": "pine", "firs": "pine",
    "pines": "pine", "ship": "boat", "yacht": "boat", "sailing": "", "ships": "boats",
    "yachts": "boats", "fleet": "boats", "aqueduct": "bridge", "viaduct": "bridge",
    "light house": "lighthouse", "light-house": "lighthouse", "airship": "balloon",
    "balloons": "balloon", "hot-air": "", "hot air balloon": "balloon",
    "hot air balloons": "balloon",
    "sailing boat": "boat", "sailing ship": "boat", "sail boat": "boat", "fishing boat": "boat",
    "fishing boats": "boats", "dinghy": "boat", "canoe": "boat", "vessel": "boat",
    "schooner": "boat", "rowing boat": "boat", "rowing boats": "boats", "rowboat": "boat",
    "row boat": "boat", "farmhouse": "house", "farm house": "house", "lodge": "house",
    "watchtower": "tower",
    "shack": "house", "chalet": "house", "villa": "house", "treehouse": "house",
    "tree house": "house", "hamlet": "houses", "abbey": "church", "monastery": "church",
    "church tower": "church", "church steeple": "church",
    # colours
    "crimson": "red", "scarlet": "red", "ruby": "red", "gold": "golden", "amber": "orange",
    "emerald": "green", "olive": "green", "azure": "blue", "navy": "blue", "cyan": "blue",
    "lilac": "violet", "lavender": "violet", "magenta": "pink", "rose": "pink", "rosy": "pink",
    "ivory": "white", "pale": "white", "cream": "white",
    "cream-white": "white",
    # time and weather
    "daybreak": "dawn", "daytime": "day", "daylight": "day", "midday": "noon",
    "noonday": "noon", "sundown": "sunset",
    "twilight": "dusk", "nightfall": "night", "tonight": "night", "nighttime": "night",
    "sunny": "sun", "sunshine": "sun", "moonlight": "moon", "moonlit": "moon", "star": "stars",
    "cloud": "clouds", "overcast": "cloudy", "raining": "rain", "storm": "heavy rain",
    "stormy": "rainy", "thunderstorm": "heavy rain",
    "thunderstorms": "heavy rain", "thunder": "heavy rain", "lightning": "heavy rain",
    "tempest": "heavy rain", "downpour": "heavy rain", "rainstorm": "heavy rain",
    "drizzle": "rain", "shower": "rain", "mist": "fog", "misty": "foggy", "haze": "fog",
    "hazy": "foggy", "blue sky": "clear sky", "golden hour": "at sunset",
    "blue hour": "at dusk", "first light": "at dawn", "last light": "at dusk",
    "going down": "at sunset", "goes down": "at sunset", "comes up": "at sunrise",
    "coming up": "at sunrise", "sun setting": "sun at sunset", "setting sun": "sun at sunset",
    "sun sinks": "sun at sunset", "sinking sun": "sun at sunset", "dying sun": "sun at sunset",
    "went down": "at sunset", "sun sets": "sun at sunset", "sun rising": "sun at sunrise",
    "rising sun": "sun at sunrise", "rainfall": "rain",
    "wintertime": "snow", "sunlight": "sun", "sunbeams": "sun",
    "sun beams": "sun", "sunlit": "sun", "grey sky": "cloudy sky", "gray sky": "cloudy sky",
    "grey skies": "cloudy sky", "grey day": "cloudy day", "gray day": "cloudy day",
    "gloomy": "cloudy", "heavy sky": "cloudy sky", "orange sky": "sky at sunset",
    "red sky": "sky at sunset", "early hours": "early in the morning", "full moon": "moon",
    "crescent moon": "moon",
    "milky way": "starry sky",
    # land
    "valley": "hills", "valleys": "hills", "hillside": "hills", "hilltop": "hills",
    "hillsides": "hills", "slope": "hills", "slopes": "hills",
    "pine forest": "forest", "pine woods": "woods", "birch forest": "forest",
    "birch woods": "woods", "oak forest": "forest", "oak woods": "woods", "countryside": "meadow",
    "country": "meadow", "plains": "meadow", "country road": "road", "country lane": "road",
    "farm": "field",
    "farms": "field", "snowy field": "snow", "snowy fields": "snow", "snowy meadow": "snow",
    "snowy plain": "snow", "sandy plain": "sand", "frozen landscape": "snow",
    "snowy landscape": "snow", "snow covered": "snowy",
    "snow-covered": "snowy", "snow capped": "snowy", "snow-capped": "snowy",
    "snowcapped": "snowy", "hill": "hills", "hilly": "hills", "mountain": "mountains",
    "alps": "snowy mountains",
    "peak": "peaks", "summit": "peaks", "summits": "peaks", "white peaks": "snowy peaks",
    "white mountains": "snowy mountains", "cliffs": "mountains", "cliff": "mountains",
    "clifftop": "mountains",
    "wood": "woods",
    "woodland": "forest", "wooded": "forest", "ridge": "hills", "jungle": "forest",
    "forests": "forest", "meadows": "meadow",
    "lawn": "grass",
    "pasture": "meadow", "prairie": "meadow", "grassland": "meadow", "fields": "field",
    "farmland": "field", "crops": "wheat", "corn": "wheat", "grain": "wheat", "rye": "wheat",
    "barley": "wheat", "cornfield": "wheat field", "cornfields": "wheat field",
    "dunes": "desert", "dune": "desert",
    "shore": "sandy beach", "beach": "sandy beach",  # captions never say "beach" alone
    "coast": "sea", "coastline": "sea", "shoreline": "sea", "seashore": "sea",
    "seaside": "sea", "harbour": "sea", "harbor": "sea", "bay": "sea", "ice": "snow",
    "winter": "snow", "snowfield": "snow",
    "lakeside": "lake", "lakeshore": "lake", "loch": "lake", "pond": "lake", "water": "lake",
    "lagoon": "lake", "seas": "sea", "oceans": "ocean",
    "wave": "waves", "path": "road", "street": "road", "lane": "road", "track": "road",
    "trail": "road", "highway": "road", "footpath": "road", "roadside": "road",
    "riverbank": "river", "riverside": "river", "wildflowers": "flowers",
    "stream": "river", "brook": "river", "creek": "river", "flower": "flowers",
    "blossoms": "flowers", "poppies": "flowers", "flowery": "flowers",
    **{words: "snow" for words in SNOWING if words.isascii()},
    **{words: "" for words in AUTUMN if words.isascii()},
    # places and small words
    **dict.fromkeys(ON_TOP, "on"),
    "centre": "center", "central": "middle", "centered": "middle", "centred": "middle",
    "lefthand": "left", "righthand": "right",
    "left-hand": "left", "right-hand": "right", "next": "", "beside": "by", "near": "by",
    "inside": "in", "over": "above", "below": "under", "beneath": "under", "within": "in",
    "during": "", "through": "", "across": "", "standing": "stands", "floating": "floats",
    "flying": "floats", "flies": "floats",
    "shining": "shines", "couple": "pair", "several": "some", "many": "some", "there": "",
    "are": "is", "has": "with", "having": "with", "its": "the", "it": "", "this": "the",
    "image": "picture", "photo": "picture", "drawing": "picture", "landscape": "view",
    "scene": "view", "scenery": "view", "from": "of", "into": "in", "onto": "on", "side": "",
    "front": "", "nice": "", "beautiful": "", "pretty": "", "lovely": "", "small": "",
    "little": "", "big": "", "large": "", "tall": "", "old": "", "please": "", "very": "",
    "tiny": "", "huge": "", "great": "", "lonely": "lone", "solitary": "lone",
    "something": "view", "anything": "view",
    "draw": "", "paint": "", "show": "", "me": "", "1": "one", "2": "two", "3": "three",
    "!": ".", "?": ".", ";": ",", ":": ",", "-": ",", "–": ",", "—": ",", "'": "", '"': "",
    "(": ",", ")": ",", "&": "and", "+": "and", "/": ",",
}
_CHINESE: dict[str, str] = {
    # things
    "房子": "house", "房屋": "house", "小屋": "cottage", "木屋": "cottage", "屋子": "house",
    "村庄": "houses", "村子": "houses", "小镇": "houses", "教堂": "church", "城堡": "castle",
    "宫殿": "castle", "塔楼": "tower", "高塔": "tower", "塔": "tower", "灯塔": "lighthouse",
    "风车": "windmill", "帐篷": "tent", "树林": "woods", "树": "tree", "大树": "tree",
    "几棵树": "some trees", "一些树": "some trees", "树丛": "trees", "松树": "pine",
    "杉树": "fir", "船": "boat", "小船": "boat", "帆船": "sailboat", "几艘船": "some boats",
    "船队": "boats", "桥": "bridge", "桥梁": "bridge", "热气球": "balloon", "气球": "balloon",
    # colours
    "红色": "red", "红": "red", "橙色": "orange", "橘色": "orange", "橙": "orange",
    "黄色": "yellow", "黄": "yellow", "金色": "golden", "绿色": "green", "绿": "green",
    "蓝色": "blue", "蓝": "blue", "紫色": "purple", "紫": "purple", "粉色": "pink",
    "粉红色": "pink", "粉红": "pink", "白色": "white", "白": "white",
    # places
    "在左边": "on the left", "左边": "on the left", "在左侧": "on the left",
    "左侧": "on the left", "左面": "on the left", "在右边": "on the right",
    "右边": "on the right", "在右侧": "on the right", "右侧": "on the right",
    "右面": "on the right", "在中间": "in the middle", "中间": "in the middle",
    "在中央": "in the middle", "中央": "in the middle", "正中": "in the middle",
    # time and weather
    "黎明": "at dawn ,", "拂晓": "at dawn ,", "日出": "at sunrise ,",
    "清晨": "early in the morning ,", "早晨": "early in the morning ,",
    "早上": "early in the morning ,", "中午": "at noon ,", "正午": "at noon ,",
    "白天": "by day ,", "下午": "in the afternoon ,", "黄昏": "at dusk ,",
    "傍晚": "in the evening ,", "日落": "at sunset ,", "夕阳": "at sunset ,",
    "夜晚": "at night ,", "晚上": "at night ,", "夜里": "at night ,", "午夜": "at midnight ,",
    "深夜": "at midnight ,", "晴朗的天空": "under a clear sky ,", "晴天": "under a clear sky ,",
    "晴空": "under a clear sky ,", "多云": "under a cloudy sky ,", "云": "clouds in the sky ,",
    "白云": "clouds in the sky ,", "星空": "under a starry sky ,",
    "星星": "stars in the sky ,", "繁星": "stars in the sky ,", "雨": "in the rain ,",
    "雨中": "in the rain ,", "下雨": "in the rain ,", "下着雨": "in the rain ,",
    "暮色": "at dusk ,", "月夜": "at night , the moon",
    "雾": "in the fog ,", "大雾": "in thick fog ,", "雾中": "in the fog ,", "太阳": "the sun",
    "月亮": "the moon", "月光": "under the moon ,", "明月": "the moon",
    # land
    "平坦的地平线": "a flat horizon ,", "地平线": "a flat horizon ,",
    "山丘": "hills behind ,", "丘陵": "hills behind ,", "小山": "hills behind ,",
    "群山": "rocky mountains ,", "山脉": "rocky mountains ,", "高山": "rocky mountains ,",
    "山": "rocky mountains ,", "雪山": "snowy mountains behind ,", "森林": "a forest behind ,",
    "草地": "on a meadow ,", "草原": "on a meadow ,", "草坪": "on a meadow ,",
    "麦田": "in a wheat field ,", "田野": "in a field ,", "沙漠": "in the desert ,",
    "沙滩": "on the sandy beach ,", "雪地": "in the snow ,", "雪原": "in the snow ,",
    "沙地": "on the sand ,",
    "雪": "in the snow ,",
    "湖": "on a lake ,", "湖面": "on a lake ,", "湖上": "on a lake ,", "湖边": "on a lake ,",
    "湖水": "on a lake ,", "海": "on the sea ,", "大海": "on the sea ,",
    "海上": "on the sea ,", "海面": "on the sea ,", "海边": "by the ocean ,",
    "道路": "by a road ,", "小路": "by a road ,", "路": "by a road ,",
    "河": "by a river ,", "河流": "by a river ,", "小河": "by a river ,",
    "河边": "by a river ,", "花": "among flowers ,", "鲜花": "among flowers ,",
    "花丛": "among flowers ,", "野花": "among flowers ,",
    # small words
    "和": "and", "与": "and", "以及": "and", "还有": "and", "一座": "a", "一个": "a",
    "一棵": "a", "一艘": "a", "一只": "a", "一顶": "a", "一条": "a", "一幅": "a", "两座": "",
    # as small words, so that what stands beside them is read whole
    "小": "", "大": "", "老": "", "下雪": "in the snow ,", "大雪": "in deep snow ,",
    **dict.fromkeys(("秋天", "秋季", "秋日", "金秋"), ""),
    **dict.fromkeys(("悬崖", "峭壁"), "rocky mountains ,"),
    "冬天": "in the snow ,", "冬日": "in the snow ,", "暴风雨": "in heavy rain ,",
    "大雨": "in heavy rain ,", "雨天": "in the rain ,", "下雨天": "in the rain ,",
    "薄雾": "in the fog ,", "凌晨": "at dawn ,",
    "夜空": "at night ,", "夜": "at night ,", "蓝天": "under a clear sky ,",
    "阳光": "the sun", "海岸": "on the sea ,", "海滩": "on the sandy beach ,",
    "海港": "on the sea ,", "港口": "on the sea ,", "公路": "by a road ,", "马路": "by a road ,",
    "大山": "rocky mountains ,", "山谷": "hills behind ,", "山坡": "hills behind ,",
    "小山坡": "hills behind ,", "山顶": "hills behind ,", "山脚": "hills behind ,",
    "乡村": "on a meadow ,", "乡下": "on a meadow ,", "渔船": "boat", "绿草地": "on a meadow ,",
    "河两岸": "by a river ,", "老房子": "house", "大房子": "house", "小房子": "house",
    "小村庄": "houses", "小教堂": "church", "松林": "a forest behind ,",
    "树叶": "", "烟雨": "in the rain ,", "山水画": "a painting of", "大雪纷飞": "in deep snow ,",
    "阴天": "under a cloudy sky ,", "雷雨": "in heavy rain ,", "半夜": "at midnight ,",
    "落日": "at sunset ,", "晚霞": "at sunset ,", "沙丘": "in the desert ,", "渔村": "houses",
    "小渔村": "houses", "池塘": "on a lake ,", "港湾": "on the sea ,",
    "天上": "", "渔港": "on the sea ,", "风雨": "in the rain ,",
    "两样东西": "two things ,", "三样东西": "three things ,",
    "孤独的": "a lone", "的": "", "在": "", "有": "", "是": "", "上": "", "下": "", "里": "",
    "着": "", "远处": "", "背后": "", "后面": "", "前面": "", "旁边": "", "天空": "",
    "画": "", "风景": "a view of", "明信片": "a postcard of", "一些": "some", "几": "",
    ",": ",", "，": ",", "。": ".", "、": ",", "；": ",", "：": ",", "！": ".", "？": ".",
}
# What a character of an unknown Chinese word most likely means.
_ALIKE: dict[str, str] = {character: word for word, characters in {
    "房子": "房屋楼樓宅墅", "村庄": "村镇莊", "城堡": "城堡宫殿", "灯塔": "灯燈",
    "帐篷": "帐帳篷蓬", "树": "樹", "森林": "林", "松树": "松杉柏", "船": "舟艇舰",
    "桥": "橋", "红色": "紅赤", "绿色": "綠翠", "蓝色": "藍", "黄色": "黃", "早晨": "晨",
    "黄昏": "昏", "夜晚": "夜", "星空": "星", "太阳": "阳陽", "月亮": "月", "晴天": "晴",
    "雾": "霧", "群山": "峰岭嶺",
    "草地": "草", "麦田": "田麦麥", "沙漠": "沙", "沙滩": "滩灘", "海边": "岸", "大海": "洋",
    "湖": "池塘", "小河": "溪", "小路": "道街",
}.items() for character in characters}
# Traditional characters of known words.
_TRADITIONAL = "漁邊紅藍綠黃橋樹燈風車頂雲霧陽莊鎮裡間塊雙兩個隻幾艘條遠處後麥飄沒無顏"
_SIMPLE = "渔边红蓝绿黄桥树灯风车顶云雾阳庄镇里间块双两个只几艘条远处后麦飘没无颜"
_SIMPLIFIED = str.maketrans(_TRADITIONAL, _SIMPLE)
MARKS = (",", ".")
# English words that resemble known words without being misspellings of them.
_OTHER_WORDS = frozenset("""barely battles bench bottle brain brides bright brightly cattle dessert
    done drain drawn during entered falling fellow fiddle flow flowing fridge hearth horse horses
    hours kettle knight light loud mellow mother mouse mouses outside own owner paining parrot place
    places plan plane planet pointing riddle rising rowing saddle salting sight submit submits
    tables testament train violent violets walls waving winging winning wooden words""".split())
_PIECE = re.compile(r"[a-z0-9]+(?:[-'][a-z0-9]+)*|[^\sa-z0-9]", re.IGNORECASE)
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff\u3001\u3002\uff00-\uffef]")
_KNOWN = frozenset(WORDS)
_KINDS = frozenset(noun for nouns in _NOUNS.values() for noun in nouns)
_PHRASES = [alias for alias in _SYNONYMS if " " in alias]
_FIRST_WORDS = {phrase.split()[0] for phrase in _PHRASES}
_LONGEST = max(map(len, _CHINESE))
# Words that tell neither a thing nor what it is like; nobody is offered one in place of a noun.
_SMALL = frozenset("""along among and are away before below beneath beside from has having image
    inside into its many near onto over picture scene see several some stand standing stands the
    things this under view with within""".split())
_OFFERED = [word for word in dict.fromkeys((*WORDS, *_SYNONYMS)) if len(word) > 2
            and _SYNONYMS.get(word, word) and word not in _SMALL]
# "(red:1.4)" of other programs: its words count, its weight does not.
_WEIGHTED = re.compile(r"(\()(?=[^():]*[^\W\d])[^():]+(:\s*[0-9]*\.?[0-9]+\s*\))")
_LIKE = 0.76  # least likeness of a word that is offered in place of an unknown one, 0..1


def said(prompt: str) -> tuple[Said, ...]:
    """The pieces of a prompt in order; see `Said`."""
    return as_meant(tuple(_pieces(prompt)))


def as_typed(prompt: str) -> tuple[Said, ...]:
    """The pieces of a prompt, each as it is read alone."""
    return tuple(_pieces(prompt))


def without_repeats(words: Iterable[str]) -> list[str]:
    """The words without immediate repeats and without a mark at the beginning.

    "," and "." count as equal, since the translations of Chinese words include marks.
    """
    unrepeated: list[str] = []
    for word in words:
        mark = word in MARKS
        if not (mark and (not unrepeated or unrepeated[-1] in MARKS)) and unrepeated[-1:] != [word]:
            unrepeated.append(word)
    return unrepeated


def weighted(prompt: str) -> list[str]:
    """The parts of a prompt with a weight, such as "(red:1.4)"; their words alone count."""
    return [match[0] for match in _WEIGHTED.finditer(prompt)]


def _pieces(prompt: str) -> Iterator[Said]:
    position, weights = 0, {match.start(n): match[n] for match in _WEIGHTED.finditer(prompt)
                            for n in (1, 2)}
    while match := _PIECE.search(prompt, position):
        start = match.start()
        if start in weights:
            position = start + len(weights[start])
            yield Said(weights[start], ())
            continue
        piece = (_chinese_at(prompt, start) if _IDEOGRAPH.match(match[0])
                 else _phrase_at(prompt, start, match[0]))
        position = start + len(piece)
        yield Said(piece, meaning_of(piece.lower()))


def _phrase_at(prompt: str, start: int, first: str) -> str:
    """The synonym of several words that is typed at `start`, or else its first word, `first`."""
    if first.lower() in _FIRST_WORDS:
        for phrase in _PHRASES:
            typed, after = prompt[start : start + len(phrase)], prompt[start + len(phrase) :][:1]
            if typed.lower() == phrase and not after.isalnum():
                return typed
    return first


def _chinese_at(prompt: str, start: int) -> str:
    """The longest known Chinese word that begins at `start`, or one character."""
    for length in range(_LONGEST, 1, -1):
        if prompt[start : start + length].translate(_SIMPLIFIED) in _CHINESE:
            return prompt[start : start + length]
    return prompt[start]


def simplified(text: str) -> str:
    """The text with the simplified characters that the tables have."""
    return text.translate(_SIMPLIFIED)


@cache
def meaning_of(piece: str) -> tuple[str, ...] | None:
    """The vocabulary's words for a piece in lower case; see `Said`."""
    piece = piece.translate(_SIMPLIFIED)
    for table in (_SYNONYMS, _CHINESE):
        if piece in table:
            return tuple(table[piece].split())
    if piece in _KNOWN:
        return (piece,)
    meant = _singular(piece) or _misspelt(piece) or _shade(piece)
    return None if meant is None else meaning_of(meant)


def _singular(piece: str) -> str | None:
    """The known thing of which `piece` is the plural: "towers", "churches"."""
    for ending in ("s", "es"):
        single = piece.removesuffix(ending)
        if single != piece and (single in _KINDS or _SYNONYMS.get(single) in _KINDS):
            return single
    return None


def _shade(piece: str) -> str | None:
    """The colour of "brick-red"."""
    last = piece.rpartition("-")[2]
    return last if last != piece and _MEANING.get(last, ("", ""))[0] == "colour" else None


def _misspelt(piece: str) -> str | None:
    """The known word that `piece` misspells, if there is exactly one, else None.

    Two letters may be swapped. In words of six letters and more, one may also be missing, wrong or
    extra; shorter words are too similar to other English words.
    """
    if len(piece) < 4 or not (piece.isascii() and piece.isalpha()) or piece in _OTHER_WORDS:
        return None
    near = {word for word in (*WORDS, *_SYNONYMS)
            if _swapped(piece, word) or (len(word) >= 6 and _one_letter_off(piece, word))}
    return near.pop() if len(near) == 1 else None


def nearest(piece: str) -> str | None:
    """A word with a meaning that is spelt much like an unknown piece; None if there is none.

    Of Chinese words the last character tells most.
    """
    typed = piece.lower()
    if _IDEOGRAPH.match(typed):
        return next((_ALIKE[sign] for sign in reversed(typed) if sign in _ALIKE), None)
    near = [] if typed in _OTHER_WORDS else get_close_matches(typed, _OFFERED, 3, _LIKE)
    return next((word for word in near if _is_slip(typed, word)), None)


def _is_slip(typed: str, word: str) -> bool:
    """Whether a hand that meant `word` may have typed this: people rarely miss the first letter."""
    return _swapped(typed, word) or (typed[0] == word[0] and _one_letter_off(typed, word))


def _first_difference(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y),
                min(len(a), len(b)))


def _swapped(a: str, b: str) -> bool:
    """Whether swapping two adjacent letters of a gives b."""
    at = _first_difference(a, b)
    x, y = a[at:], b[at:]
    return len(x) == len(y) > 1 and x[:2] == y[1::-1] and x[2:] == y[2:]


def _one_letter_off(a: str, b: str) -> bool:
    """Whether inserting, deleting or replacing a letter of a gives b."""
    at = _first_difference(a, b)
    x, y = a[at:], b[at:]
    return a != b and (x[1:] == y[1:] or x[1:] == y or x == y[1:])
