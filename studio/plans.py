"""What is said of a run before it starts: its time and passes, and what is wrong with its words."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.postcard.words.aliases import weighted
from ssd_core.backbones.prompts.alternatives import every_prompt, has_alternatives
from ssd_core.backbones.prompts.own_words import NONE
from ssd_core.engine.events import Plan
from ssd_core.engine.methods import AR, Rolling
from ssd_core.engine.methods.window import Tunable
from ssd_core.engine.own_runs import KnownMethod, known_of, name_of
from ssd_core.engine.prior_passes import ENOUGH, is_postcard
from ssd_core.engine.tuning import brief, duration
from ssd_core.output.choices import SPEEDS
from ssd_core.output.drawing import Drawing
from ssd_core.output.guarantees import guarantee_holds
from ssd_core.output.labels import percent
from ssd_core.output.unknown import limits_of, objects_in
from ssd_core.runs.cost_estimate import CostEstimate
from ssd_core.runs.request import FALLBACK_NOTE, Request
from ssd_core.weights.model_size import stored_dtype

from .additions import moved
from .alternatives import with_alternative
from .errors import in_language
from .settings import STOPS, checked_words, stop_of
from .words import CHINESE, method_title, say

Span = tuple[int, int]  # [start, end) of a text


def request_text(request: Request, language: str) -> str:
    """How long a run takes, as far as that is known."""
    lines = about_cost(request, language)
    if request.note == FALLBACK_NOTE:
        lines.append(say(language, "fell_back"))
    return ("" if language == CHINESE else " ").join(lines)


def edit_text(cost: CostEstimate, language: str) -> str:
    """What an edit by words takes beside drawing its words anew."""
    if cost.seconds is None or cost.anew_seconds is None:
        line = say(language, "plan_unknown")
    else:
        line = say(language, "plan_edit", time=time_text(cost.seconds, language),
                   anew=time_text(cost.anew_seconds, language))
    if cost.cost <= 1:
        return line
    between = "" if language == CHINESE else " "
    return between.join((line, say(language, "plan_edit_slower")))


def edit_step_times_text(cost: CostEstimate, language: str) -> str:
    """The passes of an edit by words, in small print."""
    return say(language, "plan_edit_passes", passes=cost.passes, anew=cost.anew_passes)


def time_text(seconds: float, language: str) -> str:
    """An estimate in words: "a second", "2.5 s", "4 min"."""
    number, unit = duration(seconds).split()
    return say(language, "time_second" if (number, unit) == ("1", "s") else f"time_{unit}",
               number=number)


def about_passes(plan: Plan, language: str) -> str:
    """The passes of a run beside those of the reference."""
    if plan.passes_max == plan.ar_passes and plan.passes is not None:
        return say(language, "plan_same", passes=plan.passes)
    kind = "plan" if plan.passes is not None else "plan_prior" if plan.prior_passes else "plan_most"
    return say(language, kind, passes=plan.passes_max, ar=plan.ar_passes, prior=plan.prior_passes,
               times=f"{plan.ar_passes / plan.passes_max:.1f}")


def about_cost(request: Request, language: str) -> list[str]:
    """What the run takes on this machine, from the click to the picture.

    Of pictures that are drawn one after the other it is what each of them takes.
    """
    count, request = request.pictures, request.parts()[0]
    cost = request.tuning.cost
    if cost is None:
        return [say(language, "plan_unknown")]
    lines = [say(language, "plan_alone", count=count)] if request.pictures < count else []
    lines.append(say(language, "plan_cost", time=time_text(cost.seconds, language)))
    if (first := request.tuning.first) is not None:
        lines.append(say(language, "plan_first", time=time_text(first, language)))
    if request.plan.stand_in:
        lines.append(say(language, "plan_measuring"))
    return lines


def about_prior(plan: Plan, language: str) -> list[str]:
    """Where the expected passes come from; nothing of postcard's own, or if there are none."""
    if plan.stand_in:
        return [say(language, "plan_stand_in")]
    if plan.prior_pictures == 0:
        return []
    kind = "plan_measured" if plan.prior_pictures >= ENOUGH else "plan_so_far"
    return [say(language, kind, count=plan.prior_pictures, enough=ENOUGH)]


def step_times_text(request: Request, language: str) -> str:
    """The passes, their milliseconds, the window and the reference's time, in small print."""
    request = request.parts()[0]
    tuning, method, plain = request.tuning, request.method, isinstance(request.method, AR)
    cost, ar = tuning.cost, tuning.ar
    prior = about_prior(request.plan, language)
    if cost is None or ar is None:
        return " ".join([about_passes(request.plan, language), *prior])
    lines = [say(language, "plan_step_times_plain" if plain else "plan_step_times",
                 passes=f"{cost.passes:.0f}", ms=brief(cost.ms), most=f"{ar.passes:.0f}"), *prior]
    if isinstance(method, Tunable) and method.window:
        lines.append(say(language, f"plan_{method.window_knob}", size=method.window))
    if not plain:
        lines.append(say(language, "plan_reference", time=time_text(ar.seconds, language)))
    if request.tuning.stands_in or tuning.slower:
        lines.append(say(language, "plan_by_ar" if request.tuning.stands_in else "plan_slower"))
    return " ".join(lines)


def about_speed(drawing: Drawing, backbone: Backbone, language: str) -> str:
    """What the chosen speed means for the picture."""
    stop = stop_of(drawing, backbone.grid)
    if stop is None:
        return say(language, "speed_custom")
    about = about_quality(STOPS[stop].name, backbone, language)
    if STOPS[stop].name == "faithful" and not guarantee_holds(backbone):
        about += " " + say(language, "about_rounding", dtype=stored_dtype(backbone))
    return about


def about_quality(name: str, backbone: Backbone, language: str) -> str:
    """What a quality means for the picture; how good it is by few passes was seen on postcard only.
    """
    method = SPEEDS[name].method
    if isinstance(method, Rolling) and not is_postcard(backbone):
        return say(language, "about_budget", times=f"{method.times_fewer:g}")
    return say(language, f"about_{name}")


def known_lines(backbone: Backbone, language: str) -> tuple[list[str], list[str]]:
    """What the qualities take here with the loaded model, or that it has drawn nothing yet, and
    what all other methods do; the fewest passes first.
    """
    names = {name_of(speed.method) for speed in SPEEDS.values()} - {AR.name}
    known = sorted(known_of(backbone), key=lambda each: each.passes)
    lines = [[known_line(each, language) for each in known if (each.method in names) is usual]
             for usual in (True, False)]
    if not known and not is_postcard(backbone):
        lines[0] = [say(language, "known_nothing")]
    return lines[0], lines[1]


def known_line(known: KnownMethod, language: str) -> str:
    line = say(language, "known_method", title=method_title(known.method, language),
               passes=f"{known.passes:.0f}", time=time_text(known.seconds, language),
               count=known.pictures)
    if known.acceptance is None or not known.heads:
        return line
    return say(language, "known_drafts", line=line, share=percent(known.acceptance))


@dataclass(frozen=True)
class Note:
    """A line below the prompt; see `notes_of`.

    kind: refused, cannot, limit, own, moved, unknown, misplaced, weighted or weights.

    start, end: of an unknown word in the typed prompt. nearest: a known word that it may mean.
    without: of `cannot`, the prompt without the things that it names.
    """

    kind: str
    text: str
    start: int | None = None
    end: int | None = None
    nearest: str | None = None
    without: str | None = None


def notes_of(drawing: Drawing, backbone: Backbone, language: str) -> list[Note]:
    """What is wrong with the prompts, and which words are drawn as negative, unknown, or known
    only beside others. A thing that cannot be drawn is asked about. Weights are not used: those
    of a model that takes any text are part of its text.
    """
    prompt = drawing.prompt
    try:
        request = checked_words(with_alternative(drawing), backbone)
    except SSDError as error:
        refused = Note("refused", in_language(language, str(error)))
        spans = backbone.unknown_spans(prompt) if backbone.names_nothing_known(prompt) else []
        return [refused, *(unknown_note(prompt, span, backbone, language)
                           for span in joined(prompt, spans))]
    spans = unknown_spans(prompt, request)
    marked = {plain(prompt[start:end]) for start, end in spans}
    left = [word for word in request.unknown_words if word not in marked]
    misplaced = [in_language(language, word) for word in request.misplaced_words]
    words = {"moved": moved(request), "unknown": left, "misplaced": misplaced,
             "weights" if backbone.takes_any_words else "weighted": weighted(prompt)}
    own = backbone.own_words.notes(prompt, NONE, guided=True)  # the field shows the negative ones
    return [*cannot_notes(request, language),
            *(Note("own", in_language(language, line)) for line in own),
            *(unknown_note(prompt, span, backbone, language) for span in joined(prompt, spans)),
            *(Note(kind, say(language, kind, words=", ".join(names)))
              for kind, names in words.items() if names)]


def cannot_notes(request: Request, language: str) -> list[Note]:
    """A question about unknown things, whether to draw the rest alone, and what else is asked
    for in vain.
    """
    backbone = request.backbone
    limited = [Note("limit", in_language(language, line))
            for line in limits_of(backbone, request.typed)]
    things = objects_in(backbone, request.typed)
    if not things:
        return limited
    rest = backbone.without_unknown_objects(request.prompt)
    return [Note("cannot", say(language, "cannot", model=backbone.name, rest=rest,
                               things=say(language, "comma").join(things)), without=rest), *limited]


def unknown_note(prompt: str, span: Span, backbone: Backbone, language: str) -> Note:
    word = prompt[slice(*span)]
    return Note("unknown", say(language, "unknown", words=word), *span,
                backbone.nearest_word(word))


def unknown_spans(prompt: str, request: Request) -> list[Span]:
    """The unknown words of a typed prompt, alternatives included."""
    backbone = request.backbone
    words = {*request.unknown_words,
             *(word for thing in objects_in(backbone, request.typed)
               for word in backbone.unknown_words(thing))}
    if has_alternatives(prompt):
        others = {word for text in every_prompt(prompt) for word in backbone.unknown_words(text)}
        words |= others - set(backbone.unknown_words(request.prompt))
    return [(start, end) for start, end in backbone.unknown_spans(prompt)
            if plain(prompt[start:end]) in words]


def joined(prompt: str, spans: Iterable[Span]) -> list[Span]:
    """The spans with letters that touch as one: Chinese has no blanks between words."""
    whole: list[Span] = []
    for start, end in spans:
        if whole and whole[-1][1] == start and prompt[start - 1: start + 1].isalnum():
            start, _ = whole.pop()
        whole.append((start, end))
    return whole


def plain(text: str) -> str:
    """Full-width letters and ligatures as the model reads them."""
    return unicodedata.normalize("NFKC", text)
