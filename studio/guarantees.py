"""What is said of a finished race: a guarantee of each picture, and what was measured."""

from __future__ import annotations

import math

from .races import Raced
from .results import Facts
from .words import run_title, say


def race_rows(raced: Raced, language: str) -> list[tuple[str, str, str, str]]:
    """Name, passes, seconds and guarantee of each picture."""
    return [(run_title(facts.label, language), str(facts.measured.stats["passes"]),
             f"{facts.measured.stats['seconds']['total']:.2f}", in_short(facts, language))
            for facts in raced.facts]


def in_short(facts: Facts, language: str) -> str:
    """The guarantee of one picture, with its share of AR's tokens if measured."""
    if not facts.judged:
        return say(language, "race_ar")
    return say(language, facts.measured.guarantee) + shared(facts, language)


def shared(facts: Facts, language: str) -> str:
    """The share of AR's tokens; empty if not measured, or if they are all equal."""
    share = facts.measured.share
    return "" if share in (None, 1) else say(language, "race_share", share=percent(share))


def guarantee(raced: Raced, language: str) -> str:
    """A guarantee of each side that is not AR's own; the figures stand below the pictures."""
    sentences = [judgement(facts, language) for facts in raced.facts if facts.judged]
    if len(raced.facts) == 2 and any(facts.measured.share is None for facts in raced.facts):
        sentences.append(say(language, "race_equal", share=percent(raced.equal)))
    return " ".join(sentences)


def judgement(facts: Facts, language: str) -> str:
    """`in_short` as a sentence."""
    return say(language, "race_guarantee", label=run_title(facts.label, language),
               guarantee=say(language, facts.measured.guarantee),
               share=shared(facts, language))


def percent(share: float) -> str:
    """Rounded down, so that "100%" means all."""
    return f"{math.floor(share * 1000) / 10:g}%"
