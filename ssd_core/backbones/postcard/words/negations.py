"""Find negations in a prompt: "no trees", "without a sun", "not red", 没有树.

Their words are cut from the prompt and moved to the negative prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .aliases import MARKS
from .spelling import ARTICLES, NUMBERS, Word, pieces_of

# With any words after them.
_ALWAYS = ("no", "without", "minus", "instead", "zero", "0", "没", "沒", "無", "无", "零")
_BEFORE_A_CLAIM = ("not", "never", "don't", "dont", "不", "别")
_FILLER = (*ARTICLES, "any", "of", "at", "draw", "paint", "show", "have", "be", "is", "有", "要",
           "是", "一", "点")
_OR, _AND = ("or", "nor", "或"), ("and", "和", "与")
_INSIDE = ("in", "the", "sky")  # "no clouds in the sky"
# Marks and words before a negation that are cut with it.
_HANGING = re.compile(r"(?:[\s,，、;；]|\b(?:and|but|with|has|having|that|which|is|it)\b|但|而)*$",
                      re.IGNORECASE)
_NEAR = 200  # characters before a negation in which they are looked for
Piece = tuple[Word, ...]  # the words of one typed piece


@dataclass(frozen=True)
class Negation:
    """typed: the phrase, such as "no trees"; denied: its words, for the negative prompt.

    start, end: the cut from the prompt, with the marks and small words before it.
    """

    typed: str
    denied: str
    start: int
    end: int


def negations(prompt: str) -> list[Negation]:
    """The negations of a prompt, in order."""
    pieces = pieces_of(prompt)
    result: list[Negation] = []
    position = 0
    while position < len(pieces):
        end, denied = _denied(pieces, position)
        if denied:
            result.append(_negation(prompt, pieces, position, end, denied))
        position = max(end, position + 1)
    return result


def _negation(prompt: str, pieces: Sequence[Piece], first: int, end: int,
              denied: Sequence[Sequence[Piece]]) -> Negation:
    start, stop = pieces[first][0].start, pieces[end - 1][0].end
    hanging = _HANGING.search(prompt, max(0, start - _NEAR), start)
    texts = [prompt[phrase[0][0].start : phrase[-1][0].end] for phrase in denied]
    return Negation(prompt[start:stop], ", ".join(texts),
                    hanging.start() if hanging else start,
                    stop + (prompt[stop : stop + 1] == "的"))


def _denied(pieces: Sequence[Piece], first: int) -> tuple[int, list[Sequence[Piece]]]:
    """(end, phrases) of the negation that begins at `first`; (first, []) if none does."""
    typed = _typed(pieces[first])
    if not _denies(pieces[first]):
        return first, []
    anything = typed in _ALWAYS or _follows(pieces, first + 1, ("要",))  # 不要
    phrases: list[Sequence[Piece]] = []
    position = end = first + 1
    while (phrase := _phrase(pieces, position)) is not None:
        begin, end = phrase
        phrases.append(pieces[begin:end])
        position = _linked(pieces, end)
        if position == end:
            break
    meant = any(word.meaning[0] for phrase in phrases for piece in phrase for word in piece)
    return (end, phrases) if meant or (phrases and anything) else (first, [])


def _phrase(pieces: Sequence[Piece], position: int) -> tuple[int, int] | None:
    """(begin, end) of the words up to a noun, or of unknown words; None if there are none."""
    while position < len(pieces) and _typed(pieces[position]) in _FILLER:
        position += 1
    end, coloured = position, False
    while end < len(pieces) and not _stops(pieces[end]) and not _denies(pieces[end]):
        if end > position and not coloured and _typed(pieces[end]) == "的":
            break  # 没有叶子的树
        attribute = next((word.meaning[0] for word in pieces[end] if word.meaning[0]), "")
        if coloured and attribute not in ("kind", "colour") and _typed(pieces[end]) != "的":
            break
        end += 1
        coloured = attribute == "colour" or (coloured and not attribute)
        if attribute and not coloured:
            end += len(_INSIDE) * _follows(pieces, end, _INSIDE)
            break
    return (position, end) if end > position else None


def _denies(piece: Piece) -> bool:
    """Whether another negation may begin at the piece, which ends the phrase of the last one."""
    return _typed(piece) in (*_ALWAYS, *_BEFORE_A_CLAIM)


def _linked(pieces: Sequence[Piece], end: int) -> int:
    """Start of the next phrase after "or", or after "and" with a bare noun; else `end`."""
    link = _typed(pieces[end]) if end < len(pieces) else ""
    after = pieces[end + 1] if end + 1 < len(pieces) else None
    if after is None or _stops(after) or _typed(after) in _ALWAYS:
        return end
    bare = any(word.meaning[0] not in ("", "colour", "count") for word in after)
    return end + 1 if link in _OR or (link in _AND and bare) else end


def _stops(piece: Piece) -> bool:
    """Whether a phrase ends before the piece: a mark, conjunction, number or function word."""
    word, typed = piece[0], _typed(piece)
    return (word.word in (*MARKS, "and") or typed in (*_OR, *_AND, "but", *NUMBERS, *ARTICLES)
            or typed in ("但", "而") or (bool(word.word) and len(piece) == 1
                                       and not word.meaning[0] and word.word not in _ADJECTIVES))


def _follows(pieces: Sequence[Piece], position: int, typed: Sequence[str]) -> bool:
    return tuple(map(_typed, pieces[position : position + len(typed)])) == tuple(typed)


def _typed(piece: Piece) -> str:
    return piece[0].typed.lower()


_ADJECTIVES = ("snowy", "rocky", "bare", "rolling", "dark", "heavy", "thick", "soft", "deep",
               "winding", "calm", "grassy", "sandy", "lone", "of")
