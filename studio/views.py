"""What the API answers: jobs, pictures, plans and models as JSON, in the visitor's language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Protocol
from urllib.parse import quote

from ssd_core import SSDError
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.prompts.alternatives import (
    MOST_ALTERNATIVES,
    every_prompt,
    has_alternatives,
    resolved,
)
from ssd_core.errors import shortened
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import read_recipe
from ssd_core.runs.cost_estimate import cost_estimate
from ssd_core.runs.request import Request
from ssd_core.train.judging import ROW
from ssd_core.weights.advice import advice_on, sizes_text
from ssd_core.weights.catalogue import CATALOGUE, KnownBackbone, Licence
from ssd_core.weights.downloads import Download
from ssd_core.weights.fit import Fit, gib
from ssd_core.weights.hub import DownloadPlan
from ssd_core.weights.model_size import stored_dtype
from ssd_core.weights.registry import LocalModel

from .additions import filled, own_additions
from .alternatives import with_alternative
from .entries import called, own_name, saved_at
from .errors import in_language
from .facts import caption, copied, facts
from .guarantees import guarantee, race_rows
from .history import Entry
from .jobs import Job
from .learning import Learned
from .measurements import figures, summary
from .models import InUse
from .orders import Order, RaceOrder
from .paints import is_paintable
from .plans import (
    about_speed,
    edit_step_times_text,
    edit_text,
    known_lines,
    notes_of,
    request_text,
    step_times_text,
)
from .races import Raced
from .results import FinishedPicture
from .runs import DrawResult, Redoable
from .selftesting import SELFTEST
from .services import Services
from .settings import STOPS, as_json, first_values, request_of, stop_of
from .sketches import sketch_cost
from .words import CHINESE, run_title, say

# Smaller ones first; all draw any text and come as safetensors.
RECOMMENDED = ("Janus-Pro-1B-hf", "SimpleAR-1.5B-RL", "Janus-Pro-7B-hf")
NO_FREE_TEXT = ("LlamaGen-c2i", "Tar")  # how their names begin


class Query(Protocol):
    """The parameters of an address; each may stand there several times."""

    def getlist(self, key: Any) -> list[str]: ...


def readable(services: Services, language: str, error: str) -> str:
    """An error as this visitor may read it."""
    return shortened(services.for_visitors(in_language(language, error)))


def readable_or_none(services: Services, language: str, error: str | None) -> str | None:
    """`readable` of an error, if there is one."""
    return readable(services, language, error) if error else None


# Jobs


def asked_for(query: Query) -> list[tuple[str, int]]:
    """(job, messages seen) of `?job=ID&after=N&job=...`."""
    return [(job, int(n)) for job, n in zip(query.getlist("job"), query.getlist("after"),
                                            strict=False) if n.isdecimal() and len(n) < 10]


def feed_view(services: Services, polled: Iterable[tuple[str, int]], language: str) -> dict:
    """By job: its state, its new messages, and its finished pictures once it is over."""
    return {job: spoken(services, job, after, language)
            | {"saved": saved_by(services.worker.job(job), language)} for job, after in polled}


def saved_by(job: Job | None, language: str) -> list[dict]:
    """The finished pictures of an ended job, for the tools beside its stage."""
    if job is None or not job.over or not isinstance(job.result, (DrawResult, Raced)):
        return []
    raced = isinstance(job.result, Raced)
    return [picture_view(picture, language, raced) for picture in job.result.saved.pictures]


def picture_view(picture: FinishedPicture, language: str, raced: bool) -> dict:
    """A finished picture, on the disk or in memory; one that raced has its label."""
    id_, facts, prompt = picture.id, picture.facts, picture.entry.prompt if picture.entry else None
    return {"id": id_, "seed": str(facts.seed),
            "label": run_title(facts.label, language) if raced else None, "prompt": prompt,
            "called": called(prompt, facts.seed, PurePosixPath(id_).stem),
            "words": facts.words, "place": facts.place, "picture": f"studio/picture/{quote(id_)}",
            "summary": summary(facts.measured, language),
            "facts": figures(facts.measured, language)}


def spoken(services: Services, job: str, after: int, language: str) -> dict:
    """A job's news, with its error as this visitor may read it."""
    news = services.worker.feed(job, after)
    error = news["error"]
    return {**news, "error": readable_or_none(services, language, error)}


def jobs_view(services: Services, jobs: Sequence[Job], language: str) -> list[dict]:
    """Jobs as they were asked for; those that wait come last, in the order they will run."""
    views = [job_view(services, job, language) for job in jobs]
    return sorted(views, key=lambda view: view["position"])


def job_view(services: Services, job: Job, language: str) -> dict:
    """A job without its messages: its state, what was asked for, and what came of it."""
    news = spoken(services, job.id, len(job.messages), language)
    rows = services.parked_seeds.rows([job.id])
    order = job.order
    return {"id": job.id, "kind": job.title, "seed": job.tag or None, "seconds": job.seconds,
            **{key: news[key] for key in ("state", "position", "error", "progress",
                                          "seconds_left")},
            "expired": job.freed, "rows": list(rows[0]) if rows else None,
            "settings": {**as_json(order.drawing), **order.named} if isinstance(order, Order)
            else None,
            **race_view(order),
            "saved": saved_by(job, language), "result": result_view(services, job, language)}


def race_view(order: object) -> dict:
    """Who races, and the setting with whose values there are rows, if there are."""
    if not isinstance(order, RaceOrder):
        return {"racers": [], "setting": "", "values": []}
    return {"racers": [name for name, _ in order.racers], "setting": order.setting,
            "values": list(order.values)}


def result_view(services: Services, job: Job, language: str) -> dict | None:
    """What came of a job that is over, beside its pictures; None if nothing did."""
    result = job.result if job.over else None
    if isinstance(result, DrawResult):
        return {"label": run_title(result.label, language), "stats": dict(result.stats),
                "stopped_rows": result.stopped_rows, "rows": result.tokens.shape[1],
                "kept": result.partial[0].id if result.partial else None,
                "unchanged": result.unchanged, "order": result.order,
                "notes": [in_language(language, note) for note in result.notes],
                "problem": readable_or_none(services, language, result.saved.problem)}
    if isinstance(result, Raced):
        return {"guarantee": guarantee(result, language), "rows": race_rows(result, language),
                "sheet": result.sheet.id if result.sheet else None,
                "problem": readable_or_none(services, language, result.saved.problem)}
    if job.title == SELFTEST and isinstance(result, str):
        return {"summary": result}
    if isinstance(result, Learned):
        return learned_view(result, language)
    return in_use_view(services, result, language) if isinstance(result, InUse) else None


def learned_view(learned: Learned, language: str) -> dict:
    """Whether new drafts are in use, and what each kind brings, in a line for each."""
    lines = [judged_line(kind, each, language) for kind, each in learned.judged.items()]
    lines.append(say(language, "learned" if learned.saved else "learned_nothing"))
    return {"better": bool(learned.saved), "text": " ".join(lines)}


def judged_line(kind: str, each: Mapping, language: str) -> str:
    digits = 0 if kind == ROW else 2
    values = {name: f"{each[name]:.{digits}f}" for name in ("new", "none")}
    before = "" if each["before"] is None else say(language, "judged_before",
                                                   before=f"{each['before']:.{digits}f}")
    return say(language, f"judged_{kind}", count=each["pictures"], before=before, **values)


def in_use_view(services: Services, now: InUse, language: str) -> dict:
    """A newly loaded model, and the settings that are its own."""
    own, names = first_values(now.preset), ("k_h", "k_v", "rounds", "incremental", "cfg")
    return {"name": now.name, "heads": now.heads,
            "problem": readable_or_none(services, language, now.problem),
            "sizes": sizes_of(now.sizes),
            "settings": {name: own[name] for name in names}}


def sizes_of(sizes: Iterable[tuple[int, int]]) -> list[str]:
    return [f"{width}x{height}" for width, height in sizes]


# Plans


def plan_view(services: Services, drawing: Drawing, language: str, parent: str = "",
              run: Drawing | None = None, drafts: str = "") -> dict:
    """What a drawing takes, and what is wrong with its words.

    parent: id of the picture that it edits by words. run: what is drawn for it, if that is another
    drawing. drafts: as of `runs.draw`.
    """
    backbone = services.library.current.backbone
    stop = stop_of(drawing, backbone.grid)
    return {"settings": as_json(replace(drawing, keep=None)),
            "quality": None if stop is None else STOPS[stop].name,
            "notes": [vars(note) for note in notes_of(drawing, backbone, language)],
            "filled": filled(drawing, backbone, language == CHINESE),
            "alternatives": alternatives_view(drawing),
            "sketch": None if parent or run else vars(sketch_cost(services, drawing, language)),
            **cost_view(services, run or with_alternative(drawing), language, parent, drafts)}


def alternatives_view(drawing: Drawing) -> dict | None:
    """How many prompts there are to choose from, and the one that the seed draws."""
    if not has_alternatives(drawing.prompt):
        return None
    own = resolved(drawing.prompt, drawing.sampling.seed)
    return {"count": len(every_prompt(drawing.prompt)), "most": MOST_ALTERNATIVES,
            "prompt": own.text, "words": own.words}


def cost_view(services: Services, drawing: Drawing, language: str, parent: str = "",
              drafts: str = "") -> dict:
    """Passes and seconds; `problem` says why the drawing does not fit the model, if it does not."""
    try:
        loaded = services.library.loaded_with(drafts)
        request = request_of(drawing, loaded.backbone, loaded.heads)
        text, plan = request_text(request, language), request.plan
        if parent:
            return edit_cost_view(services, drawing, parent, request, language)
    except SSDError as error:
        return {"text": "", "problem": readable(services, language, str(error)), "plan": None,
                "about": "", "step_times": "", "seconds": None, "ar_seconds": None}
    tuning = request.parts()[0].tuning
    return {"text": text, "problem": None, "plan": plan.to_json(),
            "about": about_speed(drawing, loaded.backbone, language),
            "step_times": step_times_text(request, language),
            "seconds": tuning.cost.seconds if tuning.cost else None,
            "ar_seconds": tuning.ar.seconds if tuning.ar else None}


def edit_cost_view(services: Services, drawing: Drawing, parent: str, request: Request,
                   language: str) -> dict:
    """What an edit by words takes beside drawing its words anew, or that it draws nothing; raises
    SSDError.
    """
    cost = cost_estimate(request, services.change_maps.shares(services.library, services.history,
                                                              drawing, parent))
    nothing = say(language, "plan_edit_nothing") if request.plan.passes == 0 else None
    return {"text": edit_text(cost, language), "problem": nothing, "plan": request.plan.to_json(),
            "about": about_speed(drawing, request.backbone, language),
            "step_times": edit_step_times_text(cost, language), "seconds": cost.seconds,
            "ar_seconds": None}


# Pictures


def entry_view(services: Services, entry: Entry, language: str, marked: Iterable[str]) -> dict:
    """A saved picture; seeds are text, since browsers' numbers end at 2^53."""
    return {"id": entry.id, "name": entry.path.stem, "kind": entry.kind, "width": entry.width,
            "height": entry.height, "prompt": entry.prompt, "method": entry.method,
            "seed": None if entry.seed is None else str(entry.seed),
            "title": entry.prompt or own_name(entry.path.stem),
            "quality": run_title(entry.label, language) if entry.label else None,
            "called": called(entry.prompt, entry.seed, entry.path.stem),
            "saved_at": saved_at(entry.path), "source": entry.source,
            "caption": caption(entry, language), "favourite": entry.id in marked,
            "where": services.place(entry.path.parent),
            "picture": f"studio/picture/{quote(entry.id)}",
            "thumbnail": f"api/thumbnail/{quote(entry.id)}"}


def details_view(services: Services, entry: Entry, language: str) -> dict:
    """A picture with its facts as [name, value], and what can be copied of it."""
    try:
        recipe: Mapping | None = read_recipe(entry.path)
    except SSDError:
        recipe = None
    return {**entry_view(services, entry, language, services.history.favourites.ids),
            "facts": [list(pair) for pair in facts(entry, recipe, language)],
            "source": known_source(services, entry), "paintable": is_paintable(recipe),
            "copy": copied(entry, recipe) if recipe else {}}


def known_source(services: Services, entry: Entry) -> str | None:
    """The picture that this one was redone from, while the history still has it."""
    try:
        return services.history.entry(entry.source).id if entry.source else None
    except SSDError:
        return None


def source_view(source: Redoable, backbone: Backbone, language: str) -> dict:
    """A picture to redo: its rows, the sizes to extend it to, and its words by its recipe.

    prompt: what was typed, if an edit can fill others in likewise (`completes`), else all words.
    """
    typed, drawn = source.typed, source.drawn
    completes = own_additions(backbone, typed, drawn, source.seed) is not None
    typed = typed if completes else drawn
    return {"how": in_language(language, source.how), "encoded": source.encoded,
            "rows": source.rows, "columns": source.columns,
            "finished": source.finished, "taller": list(source.taller),
            "prompt": typed.prompt if typed else None, "completes": completes,
            "negative": typed.negative if typed else None,
            "prompt_expanded": drawn.prompt if drawn else None,
            "negative_expanded": drawn.negative if drawn else None}


def restored_view(drawing: Drawing, text: str, named: Mapping[str, str] = {}) -> dict:
    """Settings of a picture; the switch of what is filled in stays as it is."""
    raw = {**as_json(drawing), **named}
    del raw["expand"]
    return {"text": text, "settings": raw}


# Models


def models_view(services: Services, language: str) -> dict:
    """The models on this machine, the one in use, and those that can be downloaded."""
    library, loaded = services.library, services.library.current
    measured, others = known_lines(loaded.backbone, language)
    known = [{"name": name, "title": row.title, "bytes": row.about_bytes,
              "note": in_language(language, row.note), **advice_view(row, language),
              "why": say(language, f"why_{name}") if name in RECOMMENDED else "",
              "licence": licence_view(row.licence, language)} for name, row in by_use()]
    return {"models": [model_view(services, model) for model in library.models()],
            "in_use": {"name": services.for_visitors(loaded.name),
                       "dtype": stored_dtype(loaded.backbone),
                       "heads": loaded.heads is not None,
                       "lora": [vars(lora) for lora in loaded.backbone.lora],
                       "sizes": sizes_of(loaded.backbone.sizes),
                       "measured": measured, "others": others},
            "places": [services.for_visitors(str(place)) for place in library.places()],
            "loras": list(library.registry.loras()) if services.local else [],
            "known": known, "local": services.local}


def by_use() -> list[tuple[str, KnownBackbone]]:
    """The rows of the catalogue: recommended ones first, those that draw no free text last."""
    ranks = {name: n for n, name in enumerate(RECOMMENDED)}
    return sorted(CATALOGUE.items(), key=lambda pair: (
        pair[0].startswith(NO_FREE_TEXT), ranks.get(pair[0], len(ranks))))


def advice_view(row: KnownBackbone, language: str) -> dict:
    """What is known of a model before one draws."""
    known = advice_on(row)
    return {"sizes": in_language(language, sizes_text(row)),
            "prompts": in_language(language, known.prompts),
            "weak": in_language(language, known.weak),
            "sources": [{"name": in_language(language, name), "link": link}
                        for name, link in known.sources]}


def model_view(services: Services, model: LocalModel) -> dict:
    return {"name": services.for_visitors(model.name), "family": model.family,
            "heads": model.heads is not None, "licence": model.licence, "bytes": model.bytes,
            "path": services.for_visitors(str(model.path)),
            "problem": services.for_visitors(model.why_not)}


def fit_view(estimate: Fit, language: str) -> dict:
    """Whether a run fits, what its memory consists of, and both in one line."""
    counts = {"weights": estimate.weights, "cache": estimate.cache, "pass": estimate.activations,
              "pixels": estimate.pixels, "graphs": estimate.graphs}
    parts = say(language, "comma").join(f"{say(language, f'memory_{name}')} {gib(count)}"
                                        for name, count in counts.items() if count)
    advice = in_language(language, estimate.advice)
    return {"text": f"{advice} ({parts})", "advice": advice, "parts": parts}


def licence_view(licence: Licence, language: str) -> dict:
    return {"name": licence.name, "link": licence.link,
            "restricts": in_language(language, licence.restricts)}


def quote_view(quoted: DownloadPlan, language: str) -> dict:
    """What a download takes, from the Hub."""
    return {"name": quoted.name, "bytes": quoted.bytes, "missing": quoted.missing,
            "where": str(quoted.destination),
            "licence": licence_view(quoted.licence, language)}


def download_view(services: Services, download: Download | None, language: str) -> dict:
    """The download that is going on, or the last one."""
    if download is None:
        return {"name": None}
    return {"name": download.name, "done": download.done, "total": download.total,
            "file": download.file, "over": download.over.is_set(),
            "cancelled": download.cancelled,
            "error": readable_or_none(services, language, download.error),
            "where": services.for_visitors(str(download.where)) if download.where else None}
