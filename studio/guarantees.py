"""What is said of a finished race: a guarantee of each picture, and what was measured."""

from __future__ import annotations

import math

from .races import Raced
from .words import run_title, say


def race_rows(raced: Raced, language: str) -> list[tuple[str, str, str, str]]:
    """Name, passes, seconds and guarantee of each picture."""
    return [(run_title(label, language), str(stats["passes"]), f"{stats['seconds']['total']:.2f}",
             in_short(raced, n, language))
            for n, (label, stats) in enumerate(zip(raced.labels, raced.stats, strict=True))]


def in_short(raced: Raced, n: int, language: str) -> str:
    """The guarantee of one picture, with its share of AR's tokens if measured."""
    if n not in raced.judged:
        return say(language, "race_ar")
    return say(language, raced.guarantees[n]) + shared(raced, n, language)


def shared(raced: Raced, n: int, language: str) -> str:
    """The share of AR's tokens; empty if not measured, or if they are all equal."""
    share = raced.identical[n]
    return "" if share in (None, 1) else say(language, "race_share", share=percent(share))


def guarantee(raced: Raced, language: str) -> str:
    """A guarantee of each side that is not AR's own; the figures stand below the pictures."""
    sentences = [judgement(raced, n, language) for n in raced.judged]
    if len(raced.identical) == 2 and None in raced.identical:
        sentences.append(say(language, "race_equal", share=percent(raced.equal)))
    return " ".join(sentences)


def judgement(raced: Raced, n: int, language: str) -> str:
    """`in_short` as a sentence."""
    return say(language, "race_guarantee", label=run_title(raced.labels[n], language),
               guarantee=say(language, raced.guarantees[n]), share=shared(raced, n, language))


def percent(share: float) -> str:
    """Rounded down, so that "100%" means all."""
    return f"{math.floor(share * 1000) / 10:g}%"
