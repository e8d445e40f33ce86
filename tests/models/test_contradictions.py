"""What is filled into a prompt contradicts nothing of it: generated prompts, and people's own."""


from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.contradictions import broken, failures

from ssd_core.backbones.postcard.words.expansion import expand
from ssd_core.backbones.postcard.words.unknown_objects import names_nothing_known

LINES = (Path(__file__).parents[2] / "lab" / "benchmarks" / "collected.txt").read_text("utf-8")
COLLECTED = [line for line in LINES.splitlines() if not line.startswith("#")]
SEEDS = st.integers(0, 2**32)
MANY = settings(max_examples=3 * settings().max_examples)


def one_of(*texts: str) -> st.SearchStrategy:
    return st.sampled_from(texts)


def joined(*parts: st.SearchStrategy, by: str = " ") -> st.SearchStrategy:
    return st.tuples(*parts).map(lambda texts: by.join(filter(None, texts)))


# English. Articles, weather, sizes, unknown adjectives and colours before a noun.
ADJECTIVES = joined(one_of("", "", "", "foggy", "rainy", "misty", "stormy", "cloudy"),
                    one_of("", "", "little", "big"),
                    one_of("", "", "red", "blue", "green", "white", "black", "golden"),
                    one_of("", "", "wooden", "stone"))
SINGLE = one_of("house", "cottage", "tower", "lighthouse", "castle", "church", "tree", "windmill",
                "boat", "balloon", "fishing boat", "pine tree", "bridge", "tent")
PLURAL = one_of("houses", "towers", "castles", "trees", "boats", "churches", "balloons",
                "hot air balloons", "windmills", "pine trees", "huts")
PLACE = one_of("", "", "", "on the left", "in the middle", "on the right")
ONE = joined(one_of("a", "a", "the", "one", "my", "my grandma's", "a lonely", ""), ADJECTIVES,
             SINGLE, PLACE)
MORE = joined(one_of("", "two", "three", "2", "some", "several", "many", "four", "a couple of"),
              ADJECTIVES, PLURAL)
UNKNOWN = one_of("a dog", "two cats", "sunflowers", "an old train", "people", "a red car")
PAIR = joined(ONE, one_of("and", "next to", "behind", "under", "in front of", "on top of", "with",
                          "to the left of", "beside"), ONE)
BETWEEN = st.one_of(joined(ONE, st.just("between two"), PLURAL),
                    joined(st.just("two"), PLURAL, st.just("with"), ONE, st.just("between them")))
THINGS = st.one_of(ONE, ONE, MORE, PAIR, BETWEEN, joined(ONE, st.just("with"), UNKNOWN),
                   joined(UNKNOWN, st.just("and"), ONE), UNKNOWN, st.just(""))
GROUND = one_of("", "", "on the beach", "by the sea", "in a green valley", "in the countryside",
                "in the snow", "in the desert", "in a snowy field", "in the mountains",
                "at the edge of a forest", "on a hill", "by a lake", "snowy mountains", "at sea",
                "in a summer meadow", "on a misty lake", "over the hills", "on a sunny beach")
SKY = one_of("", "", "in the fog", "rainy", "under a cloudy sky", "foggy", "clear sky", "sunny",
             "with the moon above", "without clouds", "no trees")
TIME = one_of("", "", "at night", "at sunset", "a foggy morning", "rainy evening", "at noon")
ENGLISH = joined(joined(one_of("", "", "draw me", "a picture of"), THINGS, GROUND), SKY, TIME,
                 by=", ").map(lambda text: text.strip(" ,")).filter(bool)

# Chinese.
NOUN = one_of("房子", "塔", "灯塔", "树", "小船", "教堂", "风车", "老房子", "城堡")
COLOUR = one_of("", "", "红色的", "蓝色的", "黑色的", "小")
ONE_CHINESE = joined(one_of("一座", "一个", ""), COLOUR, NOUN,
                     one_of("", "", "在左边", "在右边"), by="")
MORE_CHINESE = joined(one_of("两座", "三座", "几座", "许多"), COLOUR, NOUN, by="")
THINGS_CHINESE = st.one_of(
    ONE_CHINESE, MORE_CHINESE, joined(ONE_CHINESE, st.just("和"), ONE_CHINESE, by=""),
    joined(st.just("两座"), NOUN, st.just("中间有一座"), NOUN, by=""),
    joined(ONE_CHINESE, one_of("后面有", "前面有"), st.just("一棵树"), by=""),
    joined(st.just("一只狗和"), ONE_CHINESE, by=""))
CHINESE = joined(THINGS_CHINESE, one_of("", "海边", "雪地", "山谷", "沙滩", "草地"),
                 one_of("", "雾中", "下雨天", "晴天", "没有云"), one_of("", "夜晚", "黄昏", "冬天"),
                 by="，").map(lambda text: text.strip("，"))


@given(st.one_of(ENGLISH, ENGLISH, CHINESE), SEEDS)
@MANY
def test_what_was_typed_still_holds_in_the_words_that_are_drawn(prompt, seed):
    if not names_nothing_known(prompt):
        assert failures(prompt, seed) == [], expand(prompt, None, seed).prompt


@pytest.mark.parametrize("seed", [7, 105])
def test_the_prompts_of_people_hold_too(seed):
    kept = [prompt for prompt in COLLECTED if not names_nothing_known(prompt)]
    lost = {prompt: failures(prompt, seed) for prompt in kept}
    assert {prompt: faults for prompt, faults in lost.items() if faults} == {}
    assert len(COLLECTED) == 300 and len(kept) > 200


@pytest.mark.parametrize("typed, drawn, fault", [
    ("hot air balloons over the desert", "a lone blue balloon in the middle, over the desert",
     "balloon: 2..9 wanted"),
    ("two red houses and a green tree between them",
     "three things, a red house in the middle, a red house on the right and a green tree on the "
     "left, between them", "tree is not between"),
    ("a train in a green valley", "a lone purple castle on the left, on the sand, hills behind",
     "castle was never asked for"),
    ("peaceful countryside in spring", "peaceful countryside in spring, on the sea", "ground"),
    ("foggy lighthouse", "foggy a lone blue lighthouse in the middle, at noon", "no caption"),
    ("foggy lighthouse", "a lone blue lighthouse, at noon", "sky ['fog'] became None"),
    ("my grandma's little cottage", "my grandma's little a lone white cottage", "left over"),
    ("a boat under a bridge", "a boat on the left, under a bridge on the right", "in spite of"),
    ("a teal tower", "a lone teal pink tower", "of a colour that is not known"),
    ("a red house", "a lone blue house", "red house became"),
    ("a house at noon", "a lone house, at night", "time"),
    ("a snowy village", "a snowy village, on a meadow", "snowy is dropped"),
    ("a house on the left", "a lone house on the right", "no longer at left"),
    ("a zebra on the beach", "a zebra on the beach", "a zebra is still there"),
    ("several towers", "a lone red tower", "tower: 2..9 wanted")])
def test_a_contradiction_is_seen(typed, drawn, fault):
    """The control of the law above: words that were really filled in once."""
    assert any(fault in one for one in broken(typed, drawn)), broken(typed, drawn)
