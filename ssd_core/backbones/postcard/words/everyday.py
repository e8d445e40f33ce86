"""Everyday words as people mean them, where captions have no words of their own for it.

By a lake is beside its water, a wooden house has a colour, and autumn colours trees. Where
postcards lack something, the nearest that they have is drawn, and `stand_ins` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .captions import _MEANING

# What a thing is made of, or what is always made so, and the colour for it that captions have.
MATERIALS = {"stone": "white", "marble": "white", "whitewashed": "white", "brick": "red",
             "wooden": "red", "timber": "red",  # as barns and cabins are painted
             "cabin": "red", "hut": "red", "shack": "red", "barn": "red",
             "石": "white", "砖": "red", "磚": "red", "木屋": "red"}
COLOURFUL = ("colorful", "colourful", "multicolored", "multicoloured")
# The colours of colourful things, and of colourful trees.
MIXED, LEAVES = ("red", "yellow", "blue"), ("red", "orange", "yellow")
AUTUMN = ("autumn", "autumnal", "in fall", "in the fall", "fall colors", "fall colours",
          "fall foliage", "autumn leaves", "autumn colors", "autumn colours", "秋天", "秋季",
          "秋日", "金秋")
SNOWING = ("snowing", "snowfall", "snowstorm", "blizzard", "snow falling", "falling snow",
           "snow falls", "snow is falling", "下雪", "大雪", "大雪纷飞")
ON_TOP = ("on top of", "on the top of", "at the top of", "atop")
_LAKE = "the shore of a lake; a river is drawn instead"
_SEA = "the shore of a sea; a river through sand is drawn instead"
# The water beside a thing on land, in the words of captions, and what is said of it.
_SHORES = {"lake": (("river",), _LAKE), "sea": (("sandy", "river"), _SEA),
           "ocean": (("sandy", "river"), _SEA)}
_STAND_INS = {
    **dict.fromkeys(SNOWING, "falling snow; snow on the ground is drawn instead"),
    **dict.fromkeys(("cliff", "cliffs", "clifftop", "悬崖", "峭壁"),
                    "cliffs; rocky mountains are drawn instead"),
    **dict.fromkeys(("hill", "hilltop", "hillside", "slope", "山坡", "小山坡", "山顶"),
                    "anything on a hill; hills are drawn behind it"),
    **dict.fromkeys(("valley", "valleys", "山谷"), "a valley; hills are drawn behind")}
_BESIDE = tuple(phrase.split() for phrase in (
    "by", "beside", "at", "near", "next to", "close to", "shore of", "shores of", "edge of",
    "bank of", "banks of", "overlooking", "facing", "along", "alongside", "before"))
_PLAIN = tuple(words[0] for words in _BESIDE if len(words) == 1)
_ARTICLES = ("a", "an", "the", "some")
_PARTING = frozenset("on in of over above under with and , . between behind against".split())
_LANDED = ("beach", "beaches", "seaside", "seashore", "coast", "coastline", "shoreline", "lakeside",
           "lakeshore", "湖边", "海边", "海岸", "沙滩", "海滩")  # which are beside the water alone
_EDGES = ("shore", "shores", "edge", "bank", "banks", "row", "rows", "line", "cluster")
_AFLOAT = ("boat", "boats", "bridge")
_TREES = ("tree", "trees")
_NEAR = 5  # pieces in which a phrase such as "by the calm blue lake" ends


@dataclass(frozen=True)
class Said:
    """A typed piece of a prompt, and its words in the vocabulary.

    words: None if the piece is unknown; () if it has no meaning here.
    """

    typed: str
    words: tuple[str, ...] | None


def as_meant(pieces: Sequence[Said]) -> tuple[Said, ...]:
    """The pieces of a prompt, those that depend on others with what they mean beside them."""
    return tuple(replace(piece, words=_words(pieces, n)) for n, piece in enumerate(pieces))


def stand_ins(pieces: Sequence[Said]) -> Iterator[str]:
    """What a prompt asks for and postcards lack, and what is drawn instead.

    pieces: as they are typed; see `as_meant`.
    """
    for n, piece in enumerate(pieces):
        if (water := _water(pieces, n)) and _is_ashore(pieces, n):
            yield _SHORES[water][1]
        elif note := _STAND_INS.get(_typed(piece)):
            yield note


def _words(pieces: Sequence[Said], n: int) -> tuple[str, ...] | None:
    piece = pieces[n]
    typed, after = _typed(piece), [_typed(other) for other in pieces[n + 1 : n + 2]]
    if (water := _water(pieces, n)) and _is_ashore(pieces, n):
        marks = tuple(word for word in piece.words or () if word == ",")
        return (*_SHORES[water][0], *marks)
    if typed in AUTUMN:
        return () if _kinds(pieces) & {*_TREES} else None
    if typed in _EDGES and after == ["of"]:
        return ()
    thing = _thing_behind(pieces, n) if piece.words is None else None
    if thing and (typed in MATERIALS or (typed in COLOURFUL and _typed(thing).endswith("s"))):
        return ()
    return piece.words


def _water(pieces: Sequence[Said], n: int) -> str | None:
    """The water that a piece names: "lake", or "sea" for a beach, too."""
    words = pieces[n].words or ()
    if _typed(pieces[n]) in _LANDED and "beach" in words:
        return "sea"
    return next((word for word in words if word in _SHORES), None)


def _is_ashore(pieces: Sequence[Said], n: int) -> bool:
    """Whether a thing stands beside this water, as in "a house by the lake", "a lake house"."""
    kinds, typed = _kinds(pieces), _typed(pieces[n])
    if not kinds or kinds & {*_AFLOAT}:
        return False
    if kinds == {"lighthouse"} and "beach" not in (pieces[n].words or ()):
        return _water(pieces, n) == "lake" and _is_beside(pieces, n)  # on its rock in the sea
    return (typed in _LANDED or _is_beside(pieces, n)
            or (typed.isascii() and _thing_behind(pieces, n) is not None))


def _is_beside(pieces: Sequence[Said], n: int) -> bool:
    typed = [_typed(piece) for piece in pieces[:n]]
    for end in range(n, max(0, n - _NEAR), -1):
        near = next((words for words in _BESIDE if typed[max(0, end - len(words)) : end] == words),
                    None)
        if near:  # a boat "at sea" is out there
            return not (near == ["at"] and end == n and _typed(pieces[n]) == "sea")
        if typed[end - 1] in _PARTING or _kinds(pieces[end - 1 : end]):
            return False
    return False


def _thing_behind(pieces: Sequence[Said], n: int) -> Said | None:
    """The thing whose noun phrase a piece belongs to: "stone" in "stone bridge"."""
    for piece in pieces[n + 1 : n + _NEAR]:
        if _typed(piece) in (*_PARTING, *_PLAIN, *_ARTICLES):
            return None
        if _kinds([piece]):
            return piece
    return None


def _kinds(pieces: Sequence[Said]) -> set[str]:
    meanings = (_MEANING.get(word, ("", "")) for piece in pieces for word in piece.words or ())
    return {value for attribute, value in meanings if attribute == "kind"}


def _typed(piece: Said) -> str:
    return piece.typed.lower()
