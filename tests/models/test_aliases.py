"""What prompts may say: synonyms, slips and Chinese become the postcards' own words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssd_core.backbones.postcard.words import aliases as a
from ssd_lab.postcards import WORDS, Claim
from ssd_lab.postcards.claims import claims

LONG = [word for word in WORDS if len(word) >= 6]


def understood(prompt: str) -> str:
    return " ".join(a.without_repeats(w for piece in a.said(prompt) for w in piece.words or ()))


def unknown(prompt: str) -> list[str]:
    return [piece.typed for piece in a.said(prompt) if piece.words is None]


@pytest.mark.parametrize("table", [a._SYNONYMS, a._CHINESE])
def test_an_alias_stands_for_known_words_and_hides_none(table):
    assert {word for text in table.values() for word in text.split()} <= set(WORDS)
    hidden = {typed for typed, text in table.items() if typed in WORDS and typed not in text}
    assert not hidden


@pytest.mark.parametrize(("prompt", "words"), [
    ("A crimson ship on the pond", "a red boat on the lake"),
    ("hot air balloon over the Alps", "balloon above the snowy mountains"),
    ("a boat on the beach", "a boat on the sandy beach"),
    ("on the sandy beach, near the coast", "on the sandy beach , by the sea"),
    ("an azure Sailing Boat, misty", "an blue boat , foggy"),
    ("a huose and a ligthhouse at sunst", "a house and a lighthouse at sunset"),
    ("红色的房子在左边", "red house on the left"),
    ("a (red:1.4) house, (two trees:.8)", "a red house , two trees"),
    ("a house (red), left: a tree", "a house , red , left , a tree"),
    ("夜晚，海上有一艘红色的船，月亮在右边",
     "at night , on the sea , a red boat , the moon on the right"),
    ("草地上有一座蓝色的灯塔和一棵绿色的树",
     "on a meadow , a blue lighthouse and a green tree"),
])
def test_prompts_become_the_worlds_own_words(prompt, words):
    assert (understood(prompt), unknown(prompt)) == (words, [])


def test_chinese_claims_what_english_does():
    assert set(claims(understood("黄昏的湖边，左边有一座紫色的城堡"))) == {
        Claim("time", "dusk"), Claim("path", "river"), Claim("kind", "castle", 0),
        Claim("colour", "purple", 0), Claim("place", "left", 0)}


@pytest.mark.parametrize("storm", ["a storm", "thunder and lightning", "a downpour"])
def test_a_storm_is_weather(storm):
    assert Claim("sky", "rain") in claims(understood(f"{storm} over a house"))


@pytest.mark.parametrize(("prompt", "names"), [
    ("a dragon near the house", ["dragon"]), ("a horse", ["horse"]), ("cattle", ["cattle"]),
    ("一条龙在左边", ["龙"]), ("a red hose", ["hose"]),
    ("Ünïcode 🏠", ["Ü", "n", "ï", "code", "🏠"])])
def test_what_remains_unknown_is_named(prompt, names):
    assert unknown(prompt) == names


@pytest.mark.parametrize(("word", "near"), [
    ("古堡", "城堡"), ("别墅", "房子"), ("帐蓬", "帐篷"), ("晨曦", "早晨"), ("恐龙", None),
    ("汽车", None)])
def test_an_unknown_chinese_word_has_a_known_one_near_it(word, near):
    assert a.nearest(word) == near and unknown(word)
    assert set(a._ALIKE.values()) <= set(a._CHINESE)


@pytest.mark.parametrize(("word", "near"), [
    ("Haus", None), ("them", None), ("falling", None), ("during", None), ("own", None),
    ("light", None), ("train", None), ("skyy", "sky"), ("castel", "castle")])
def test_a_word_without_a_picture_is_offered_for_none(word, near):
    assert a.nearest(word) == near


@given(st.sampled_from(LONG), st.data())
def test_a_slip_in_a_long_word_means_that_word_or_is_named(word, data):
    at = data.draw(st.integers(0, len(word) - 1))
    letter = data.draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz"))
    slip = data.draw(st.sampled_from([word[:at] + word[at + 1 :], word[:at] + letter + word[at:],
                                      word[:at] + letter + word[at + 1 :]]))
    assert slip in {*WORDS, *a._SYNONYMS} or a.meaning_of(slip) in (None, (word,))


@given(st.text())
def test_any_text_is_read_without_losing_a_piece(text):
    pieces = [piece.typed for piece in a.said(text)]
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(word in WORDS for piece in a.said(text) for word in piece.words or ())
