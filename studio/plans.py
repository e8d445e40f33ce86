"""What is said of a run before it starts: its passes and time, and what is wrong with its words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.engine.methods import AR
from ssd_core.engine.methods.paced import Paced
from ssd_core.engine.plan import Plan
from ssd_core.output.guarantees import guarantee_holds
from ssd_core.runs.fallback import FALLBACK_NOTE
from ssd_core.runs.request import Request
from ssd_core.weights.figures import stored_dtype

from .additions import moved
from .errors import in_language
from .library import Loaded
from .settings import STOPS, Settings, stop_of
from .words import CHINESE, say

MOST_UNKNOWN = 32  # words that are noted; a letter is no prompt


def plan_text(loaded: Loaded, settings: Settings, language: str) -> str:
    """How many passes a run takes, and how long; SSDError if the settings do not fit."""
    return request_text(settings.request(loaded.backbone, loaded.heads), language)


def request_text(request: Request, language: str) -> str:
    """`plan_text` of a request: its seconds and passes, or its passes if seconds are unknown."""
    lines = about_cost(request, language) or [about_passes(request.plan, language)]
    if request.note == FALLBACK_NOTE:
        lines.append(say(language, "fell_back"))
    return ("" if language == CHINESE else " ").join(lines)


def about_passes(plan: Plan, language: str) -> str:
    """The passes of a run beside those of the reference."""
    if plan.passes_max == plan.ar_passes and plan.passes is not None:
        return say(language, "plan_same", passes=plan.passes)
    kind = "plan" if plan.passes is not None else "plan_usual" if plan.usual else "plan_most"
    return say(language, kind, passes=plan.passes_max, ar=plan.ar_passes, usual=plan.usual,
               times=f"{plan.ar_passes / plan.passes_max:.1f}")


def about_cost(request: Request, language: str) -> list[str]:
    """What the run takes on this machine beside the reference; empty if that is unknown.

    Of pictures that are drawn one after the other it is what each of them takes.
    """
    count, request = request.pictures, request.parts()[0]
    choice = request.choice
    if choice.cost is None or choice.ar is None:
        return []
    cost, ar = choice.cost, choice.ar
    lines = [say(language, "plan_alone", count=count)] if request.pictures < count else []
    plain = isinstance(request.method, AR)
    lines.append(say(language, "plan_cost_plain" if plain else "plan_cost",
                     seconds=f"{cost.seconds:.2f}", passes=f"{cost.passes:.0f}",
                     most=f"{ar.passes:.0f}", ar=f"{ar.seconds:.2f}"))
    if choice.instead is not None:
        lines.append(say(language, "plan_by_ar", exact=f"{choice.instead.seconds:.2f}"))
    elif cost.seconds >= ar.seconds and not plain:
        lines.append(say(language, "plan_slower"))
    return lines


def pace_text(request: Request, language: str) -> str:
    """The milliseconds of a pass and the window, for those who ask; empty if unknown."""
    request = request.parts()[0]
    cost, method = request.choice.cost, request.method
    lines = [] if cost is None else [
        say(language, "plan_pace", passes=f"{cost.passes:.0f}", ms=f"{cost.ms:.1f}")]
    if isinstance(method, Paced) and method.size:
        lines.append(say(language, f"plan_{method.paced}", size=method.size))
    return " ".join(lines)


def about_speed(settings: Settings, backbone: Backbone, language: str) -> str:
    """What the chosen speed means for the picture."""
    stop = stop_of(settings)
    if stop is None:
        return say(language, "speed_custom")
    about = say(language, f"about_{STOPS[stop].name}")
    if STOPS[stop].name == "faithful" and not guarantee_holds(backbone):
        about += " " + say(language, "about_rounding", dtype=stored_dtype(backbone))
    return about


@dataclass(frozen=True)
class Note:
    """A line about a prompt. kind: refused, moved, unknown or misplaced; see `notes_of`.

    start, end: where an unknown word stands in the prompt, in characters; 0 if it does not stand
    there. nearest: the known word that looks most like it, "" if none does.
    """

    kind: str
    text: str
    start: int = 0
    end: int = 0
    nearest: str = ""


def notes_of(settings: Settings, backbone: Backbone, language: str) -> list[Note]:
    """What is wrong with the prompts, and which words are drawn as negative, unknown, or known
    only beside others; a note for each place of an unknown word.
    """
    try:
        request = settings.checked_words(backbone)
    except SSDError as error:
        return [Note("refused", in_language(language, str(error)))]
    words = {"moved": moved(request), "misplaced": request.misplaced_words}
    notes = [Note(kind, say(language, kind, words=", ".join(names)))
             for kind, names in words.items() if names]
    return notes + [Note("unknown", say(language, "unknown", words=word), *place,
                         backbone.nearest_word(word))
                    for word in request.unknown_words[:MOST_UNKNOWN]
                    for place in places_of(word, settings.prompt) or [(0, 0)]]


def places_of(word: str, prompt: str) -> list[tuple[int, int]]:
    """Where a word stands in a prompt, not as a part of another one."""
    letter = r"[a-z0-9]" if word.isascii() and word.isalnum() else r"(?!)"
    found = re.finditer(f"(?<!{letter}){re.escape(word)}(?!{letter})", prompt, re.IGNORECASE)
    return [match.span() for match in found]
