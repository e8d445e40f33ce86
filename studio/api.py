"""The app over HTTP as JSON: one function an endpoint, listed in docs/contract.md.

Every error is {"error": one line}. The page and other programs use the same endpoints.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import Any
from zipfile import ZIP_STORED, ZipFile

from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ssd_core import SSDError
from ssd_core.runs.diagnostics import report
from ssd_core.weights import quotes

from . import orders, runs
from .calls import Call, answering
from .facts import hint_text, restored_text, wanted, why_empty
from .history import restore
from .models import load
from .orders import finish_seeds, keep_top, rows_kept_from, start_seeds, submit
from .payloads import listed, one_of
from .schema import schema_view
from .seeds import NOTHING
from .services import Services
from .settings import whole
from .views import (
    asked_for,
    details_view,
    download_view,
    entry_view,
    feed_view,
    job_view,
    jobs_view,
    models_view,
    plan_view,
    quote_view,
    restored_view,
    source_view,
)
from .words import CHINESE

PAGE, MOST_ENTRIES = 24, 500  # pictures in one answer


# Forms and plans


def schema(call: Call) -> dict:
    return schema_view(call.services, call.language)


def plan(call: Call) -> dict:
    return plan_view(call.services, call.settings, call.language)


def surprise(call: Call) -> dict:
    """Words for the prompt that the loaded model can draw."""
    backbone = call.services.library.current.backbone
    return {"prompt": backbone.fresh_prompt(random.getrandbits(32), call.language == CHINESE)}


# Runs


def draw(call: Call) -> dict:
    """Queue a picture; with `all`, one for each alternative in the prompt."""
    order = orders.Draw(call.settings, call.flag("metadata", True))
    if not call.flag("all", False):
        return submitted(call, order)
    made = orders.draw_each(call.services, call.owner, order)
    return {"jobs": jobs_view(call.services, made, call.language)}


def race(call: Call) -> dict:
    racers = tuple(listed("racers", call.values.get("racers")))
    return submitted(call, orders.Race(call.settings, call.flag("metadata", True), racers))


def redo(call: Call) -> dict:
    source = call.entry(call.text("source")).path
    return submitted(call, orders.Redo(call.settings, call.flag("metadata", True), source,
                                       whole("rows", call.values.get("rows")),
                                       call.text("size", "") or None))


def submitted(call: Call, order: orders.Order) -> dict:
    """Queue an order; whatever runs goes on."""
    return job_view(call.services, submit(call.services, call.owner, order), call.language)


def look(call: Call) -> dict:
    """What a redo of a picture would use."""
    services = call.services
    source = runs.look(services.history, call.entry(call.query("id")).path,
                       services.library.current.backbone)
    return source_view(source, call.language)


def seeds_start(call: Call) -> dict:
    """Draw the top of some seeds; `like`: a picture whose rows from elsewhere all of them keep."""
    like = call.text("like", "")
    top = rows_kept_from(call.services, call.entry(like).id) if like else NOTHING
    jobs = start_seeds(call.services, call.owner, call.settings,
                       whole("count", call.values.get("count", 8)),
                       one_of("part", call.values.get("part", "most"), orders.PARTS), top)
    return {"jobs": jobs_view(call.services, jobs, call.language)}


def seeds_finish(call: Call) -> dict:
    jobs = finish_seeds(call.services, call.owner, call.ids("jobs"), call.flag("metadata", True))
    return {"jobs": jobs_view(call.services, jobs, call.language)}


# The queue


def jobs(call: Call) -> dict:
    known = call.services.worker.of(call.owner)
    return {"jobs": jobs_view(call.services, known, call.language)}


def job(call: Call) -> dict:
    return job_view(call.services, call.job(), call.language)


def job_stop(call: Call) -> dict:
    """Stop a run, or take it out of the queue; paused seeds stay paused."""
    stopped = call.job()
    stopped.cancel(parked=False)
    return job_view(call.services, stopped, call.language)


def job_remove(call: Call) -> dict:
    """End a job, paused or not, and forget it; what it saved stays."""
    removed = call.job()
    removed.cancel()
    call.services.worker.forget(removed)
    return {"removed": removed.id}


def job_move(call: Call) -> dict:
    """Put a waiting job before another one of the same visitor, or last."""
    before = call.text("before", "")
    call.services.worker.move(call.job(), call.own_job(before) if before else None)
    return jobs(call)


def job_repeat(call: Call) -> dict:
    """Ask for the same run again, with a new seed or, with `same`, exactly so."""
    order = call.job().order
    if not isinstance(order, orders.Order):
        raise SSDError("this run cannot be repeated: start it anew")
    if not call.flag("same", False):
        order = replace(order, settings=order.settings.changed(seed=random.getrandbits(32)))
    return submitted(call, order)


def job_keep(call: Call) -> dict:
    """Save the finished rows of a stopped run."""
    services = call.services
    entry = keep_top(services, call.job(), call.flag("metadata", True))
    return entry_view(services, entry, call.language, services.history.favourites.ids)


def queue_clear(call: Call) -> dict:
    """Take out what waits; what runs goes on."""
    return cancelled(call, "waiting")


def queue_stop(call: Call) -> dict:
    """Stop what runs, and take out what waits."""
    return cancelled(call, "waiting", "running")


def cancelled(call: Call, *states: str) -> dict:
    for own in reversed(call.services.worker.of(call.owner)):  # so that no next one begins
        if own.state in states:
            own.cancel(parked=False)
    return jobs(call)


def feed(call: Call) -> dict:
    return feed_view(call.services, asked_for(call.request.query_params), call.language)


# History


def history(call: Call) -> dict:
    """Saved pictures, newest first: those that match `search` and, with `favourites`, are marked.
    """
    services, language = call.services, call.language
    search, only = call.query("search"), call.query("favourites") == "true"
    limit = min(max(1, whole("limit", call.query("limit", str(PAGE)))), MOST_ENTRIES)
    before = call.query("before")
    last = call.entry(before).id if before else None
    entries = services.history.entries(limit + 1, last, wanted(services, search, only, language))
    marked = services.history.favourites.ids
    hint = hint_text(services, why_empty(entries, search, only or bool(before)), language)
    return {"entries": [entry_view(services, entry, language, marked)
                        for entry in entries[:limit]],
            "more": len(entries) > limit, "hint": hint}


def history_entry(call: Call) -> dict:
    entry = call.entry(call.request.path_params["entry"])
    return details_view(call.services, entry, call.language)


def thumbnail(call: Call) -> Response:
    entry = call.entry(call.request.path_params["entry"])
    return Response(call.services.history.thumbnail(entry), media_type="image/jpeg")


def history_delete(call: Call) -> dict:
    """Delete pictures; `history_undo` brings them back for a while."""
    call.require_local()
    entries = [call.entry(id_) for id_ in call.ids()]
    for entry in entries:
        call.services.history.delete(entry.id)
    return {"deleted": [entry.id for entry in entries]}


def history_undo(call: Call) -> dict:
    call.require_local()
    entries = [call.services.history.restore_deleted(id_) for id_ in call.ids()]
    return {"restored": [entry.id for entry in entries]}


def history_favourite(call: Call) -> dict:
    """Mark pictures as favourites, or take the marks away."""
    ids = [call.entry(id_).id for id_ in call.ids()]
    call.services.history.favourites.mark(ids, call.flag("favourite", True))
    return {"ids": ids, "favourite": call.flag("favourite", True)}


def history_zip(call: Call) -> Response:
    """The pictures that `?id=...&id=...` names, byte for byte, in one file."""
    entries = [call.entry(id_) for id_ in call.request.query_params.getlist("id")[:MOST_ENTRIES]]
    if not entries:
        raise SSDError("no picture was chosen: name some by id")
    packed = SpooledTemporaryFile(32 << 20)  # noqa: SIM115 - closed once it is sent
    with ZipFile(packed, "w", ZIP_STORED) as archive:
        for entry in entries:
            archive.writestr(entry.id, call.services.history.png(entry.id))
    packed.seek(0)
    named = {"content-disposition": 'attachment; filename="pictures.zip"'}
    return StreamingResponse(iter(lambda: packed.read(1 << 20), b""), headers=named,
                             media_type="application/zip", background=BackgroundTask(packed.close))


def restore_upload(call: Call) -> dict:
    """The settings of a PNG that is the body of the request; `?name=`: what it is called."""
    name = bare_name(call.query("name", "picture.png"))
    with TemporaryDirectory(prefix="ssd-restore-") as folder:
        path = Path(folder, "picture.png")
        path.write_bytes(call.body)
        try:
            settings, recipe = restore(path)
        except SSDError as error:
            raise SSDError(str(error).replace(str(path), name)) from error
    return restored_view(settings, restored_text(call.services, name, recipe, call.language))


def restore_entry(call: Call) -> dict:
    """The settings of a saved picture."""
    path = call.entry(call.query("id")).path
    settings, recipe = call.services.history.restore(path)
    return restored_view(settings, restored_text(call.services, path.name, recipe, call.language))


def bare_name(name: str) -> str:
    """The last part of a file's name, to be shown and for nothing else."""
    last = PureWindowsPath(PurePosixPath(name).name).name
    return "".join(sign for sign in last if sign.isprintable())[:100] or "picture.png"


# Models


def models(call: Call) -> dict:
    return models_view(call.services)


def fit(call: Call) -> dict:
    """Whether a run with these settings would fit into memory with a model."""
    return {"text": call.services.library.fit(call.text("name"), call.settings,
                                              call.text("dtype", "auto"))}


def models_use(call: Call) -> dict:
    call.require_local()
    loading = load(call.services, call.owner, call.text("name"), call.text("dtype", "auto"))
    return job_view(call.services, loading, call.language)


def models_quote(call: Call) -> dict:
    """Size and licence of a download, asked for at the Hub."""
    call.require_local()
    return quote_view(quotes.quote(call.text("name"), call.services.library.models_dir))


def models_download(call: Call) -> dict:
    """Download a model; `bytes`: those that are missing by its quote, which must have been seen."""
    call.require_local()
    quoted = quotes.quote(call.text("name"), call.services.library.models_dir)
    if call.values.get("bytes") != quoted.missing:
        raise SSDError(f"bytes: {quoted.missing} are to be downloaded: ask for size and licence "
                       "first, and send this number")
    download = call.services.downloads.start(call.text("name"))
    return download_view(call.services, download, call.language)


def models_cancel(call: Call) -> dict:
    call.require_local()
    call.services.downloads.cancel()
    return download(call)


def download(call: Call) -> dict:
    call.require_local()
    return download_view(call.services, call.services.downloads.last, call.language)


def doctor(call: Call) -> dict:
    services = call.services
    text = report(services.library.doctor_lines(), services.worker.last_error)
    return {"report": services.for_visitors(text)}


# Routes


ENDPOINTS: list[tuple[str, str, Callable[[Call], Any]]] = [
    ("GET", "/schema", schema), ("POST", "/plan", plan), ("GET", "/surprise", surprise),
    ("POST", "/draw", draw), ("POST", "/race", race),
    ("POST", "/redo", redo), ("GET", "/look", look),
    ("POST", "/seeds/start", seeds_start), ("POST", "/seeds/finish", seeds_finish),
    ("GET", "/jobs", jobs), ("GET", "/jobs/{job}", job), ("DELETE", "/jobs/{job}", job_remove),
    ("POST", "/jobs/{job}/stop", job_stop), ("POST", "/jobs/{job}/move", job_move),
    ("POST", "/jobs/{job}/repeat", job_repeat), ("POST", "/jobs/{job}/keep", job_keep),
    ("POST", "/queue/clear", queue_clear), ("POST", "/queue/stop", queue_stop),
    ("GET", "/feed", feed),
    ("GET", "/history", history), ("POST", "/history/delete", history_delete),
    ("POST", "/history/undo", history_undo), ("POST", "/history/favourite", history_favourite),
    ("GET", "/history/zip", history_zip), ("GET", "/history/{entry:path}", history_entry),
    ("GET", "/thumbnail/{entry:path}", thumbnail), ("GET", "/restore", restore_entry),
    ("GET", "/models", models), ("POST", "/models/fit", fit), ("POST", "/models/use", models_use),
    ("POST", "/models/quote", models_quote), ("POST", "/models/download", models_download),
    ("GET", "/models/download", download), ("POST", "/models/cancel", models_cancel),
    ("GET", "/doctor", doctor),
]


def api_routes(services: Services) -> list[Route]:
    """All endpoints; their addresses begin where the routes are mounted."""
    uploads = Route("/restore", answering(services, restore_upload, upload=True),
                    methods=["POST"])
    return [uploads, *(Route(path, answering(services, endpoint), methods=[method])
                       for method, path, endpoint in ENDPOINTS)]
