"""The app over HTTP as JSON: one function an endpoint, listed in docs/contract.md.

Every error is {"error": one line}. The page and other programs use the same endpoints.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.routing import Route

from ssd_core import SSDError
from ssd_core.backbones.postcard.words.captions import fresh_prompt
from ssd_core.backbones.postcard.words.short_prompts import fresh_chinese_prompt
from ssd_core.output.drawing import whole

from . import api_history as saved
from . import api_learning as learning
from . import api_models as models
from . import edits, orders, paints, panels, runs, sketches
from .alternatives import with_alternative
from .calls import Call, answering, nowhere
from .orders import finish_seeds, keep_top, start_seeds, submit, with_rows_of
from .payloads import listed, one_of
from .schema import schema_view
from .services import Services
from .settings import anew, racing
from .views import (
    asked_for,
    entry_view,
    feed_view,
    job_view,
    jobs_view,
    plan_view,
    source_view,
)
from .words import CHINESE

# Forms and plans


def schema(call: Call) -> dict:
    return schema_view(call.services, call.language)


def plan(call: Call) -> dict:
    services, drawing, parent = call.services, call.editing, call.named("parent")
    backbone, history = services.library.current.backbone, services.history
    if not parent or edits.varies(drawing):
        below = panels.fitted(backbone, with_alternative(drawing), call.panel
                              ) if call.named("panel") else None
        return plan_view(services, call.drawing, call.language, run=below, drafts=call.drafts)
    drawing = edits.fitted(backbone, history, drawing, parent)
    if drawing.edit is None:
        return plan_view(services, drawing, call.language, drafts=call.drafts)
    drawing = edits.with_parent(backbone, history, drawing, parent)
    return plan_view(services, drawing, call.language, parent, drafts=call.drafts)


def change(call: Call) -> dict:
    """Which cells of a picture other words would change."""
    services = call.services
    return {"map": services.change_maps.of(services.library, services.history, call.editing,
                                           call.named("parent"))}


def things(call: Call) -> dict:
    """The things of a picture, and what a click on each may choose."""
    services, path = call.services, call.entry(call.query("id")).path
    return services.things.of(services.library, services.history, services.worker, path,
                              call.language == CHINESE)


def surprise(call: Call) -> dict:
    """Words for the prompt that the loaded model can draw; any model can draw a landscape."""
    backbone, seed = call.services.library.current.backbone, random.getrandbits(32)
    chinese = call.language == CHINESE
    landscape = (fresh_chinese_prompt if chinese else fresh_prompt)(np.random.default_rng(seed))
    return {"prompt": backbone.fresh_prompt(seed, chinese) or landscape}


# Runs


def draw(call: Call) -> dict:
    """Queue a picture; with `all`, one for each alternative in the prompt."""
    order = orders.DrawOrder(call.drawing, call.flag("metadata", True), drafts=call.drafts)
    if not call.flag("all", False):
        return submitted(call, order)
    made = orders.draw_each(call.services, call.owner, order)
    return {"jobs": jobs_view(call.services, made, call.language)}


def race(call: Call) -> dict:
    """Queue a race; `setting`, `values`: a row for each value of a setting."""
    values = call.values.get("values", [])
    if not isinstance(values, list):
        raise SSDError("values: must be a list, with a value for each row")
    drawing = call.drawing
    racers = tuple((name, anew(racing(call.settings, name)).with_seed(drawing.sampling.seed))
                   for name in listed("racers", call.values.get("racers")))
    return submitted(call, orders.RaceOrder(drawing, call.flag("metadata", True), racers,
                                            call.text("setting", ""), tuple(values)))


def edit(call: Call) -> dict:
    """Redraw the cells of a picture that `settings.keep_mask` leaves open."""
    services = call.services
    parent = call.named("parent")
    drawing = edits.fitted(services.library.current.backbone, services.history, call.editing,
                           parent)
    return submitted(call, orders.EditOrder(drawing, call.flag("metadata", True), parent,
                                            drafts=call.drafts))


def control(call: Call) -> dict:
    """Draw below the picture `settings.panel`, a map or a subject."""
    return submitted(call, orders.BelowOrder(call.drawing, call.flag("metadata", True), call.panel,
                                             drafts=call.drafts))


def redo(call: Call) -> dict:
    source = call.entry(call.text("source")).path
    return submitted(call, orders.RedoOrder(call.drawing, call.flag("metadata", True), source,
                                       whole("rows", call.values.get("rows")),
                                       call.text("size", "") or None, drafts=call.drafts))


def paint(call: Call) -> dict:
    """Paint the pixels of a picture that shows GLM-Image's codes."""
    services = call.services
    work = paints.paint(services.library, services.history, call.entry(call.text("id")),
                        call.flag("metadata", True))
    return job_view(services, services.worker.submit(paints.PAINT, work, call.owner),
                    call.language)


def sketch(call: Call) -> dict:
    """Sketch the next picture while nothing else runs or waits; it is not saved."""
    job = sketches.sketch(call.services, call.owner, call.drawing, call.language)
    return job_view(call.services, job, call.language)


def submitted(call: Call, order: orders.Order) -> dict:
    """Queue an order; whatever runs goes on."""
    return job_view(call.services, submit(call.services, call.owner, order), call.language)


def look(call: Call) -> dict:
    """What a redo of a picture would use."""
    services = call.services
    backbone = services.library.current.backbone
    source = runs.look(services.history, call.entry(call.query("id")).path, backbone)
    return source_view(source, backbone, call.language)


def seeds_start(call: Call) -> dict:
    """Draw the top of some seeds; `like`: a picture whose rows from elsewhere all of them keep."""
    like = call.text("like", "")
    drawing = call.drawing
    if like:
        drawing = with_rows_of(call.services, drawing, call.entry(like).id)
    jobs = start_seeds(call.services, call.owner, drawing,
                       whole("count", call.values.get("count", 8)),
                       one_of("part", call.values.get("part", "most"), orders.PARTS))
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
        order = order.with_seed(random.getrandbits(32))
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
    return feed_view(call.services, asked_for(call.parameters), call.language)


# Routes


ENDPOINTS: list[tuple[str, str, Callable[[Call], Any]]] = [
    ("GET", "/schema", schema), ("POST", "/plan", plan), ("GET", "/surprise", surprise),
    ("POST", "/draw", draw), ("POST", "/sketch", sketch), ("POST", "/race", race),
    ("POST", "/edit", edit), ("POST", "/change", change), ("GET", "/things", things),
    ("POST", "/redo", redo),
    ("POST", "/control", control),
    ("POST", "/paint", paint),
    ("GET", "/look", look),
    ("POST", "/seeds/start", seeds_start), ("POST", "/seeds/finish", seeds_finish),
    ("GET", "/jobs", jobs), ("GET", "/jobs/{job}", job), ("DELETE", "/jobs/{job}", job_remove),
    ("POST", "/jobs/{job}/stop", job_stop), ("POST", "/jobs/{job}/move", job_move),
    ("POST", "/jobs/{job}/repeat", job_repeat), ("POST", "/jobs/{job}/keep", job_keep),
    ("POST", "/queue/clear", queue_clear), ("POST", "/queue/stop", queue_stop),
    ("GET", "/feed", feed),
    ("GET", "/history", saved.history), ("POST", "/history/delete", saved.delete),
    ("POST", "/history/undo", saved.undo), ("POST", "/history/favourite", saved.favourite),
    ("GET", "/history/zip", saved.zipped), ("GET", "/history/{entry:path}", saved.details),
    ("GET", "/thumbnail/{entry:path}", saved.thumbnail), ("GET", "/restore", saved.restore_entry),
    ("GET", "/steps", saved.steps), ("GET", "/send", saved.send),
    ("GET", "/models", models.models), ("POST", "/models/fit", models.fit),
    ("POST", "/models/use", models.use), ("POST", "/models/quote", models.quote),
    ("POST", "/models/download", models.start_download),
    ("GET", "/models/download", models.download), ("POST", "/models/cancel", models.cancel),
    ("GET", "/learn", learning.learning), ("POST", "/learn", learning.start),
    ("GET", "/learn/idle", learning.idle), ("POST", "/learn/idle", learning.switch),
    ("GET", "/doctor", models.doctor), ("POST", "/selftest", models.selftest),
]
UPLOADS: list[tuple[str, Callable[[Call], Any]]] = [
    ("/restore", saved.restore_upload), ("/history/add", saved.add)]
METHODS_OF_HTTP = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def api_routes(services: Services) -> list[Route]:
    """All endpoints, and an answer to all other addresses; they begin where they are mounted."""
    routes = [Route(path, answering(services, endpoint), methods=[method])
              for method, path, endpoint in ENDPOINTS]
    uploads = [Route(path, answering(services, endpoint, upload=True), methods=["POST"])
               for path, endpoint in UPLOADS]
    known = [*uploads, *routes]
    return [*known, Route("/{rest:path}", nowhere(services, known), methods=METHODS_OF_HTTP)]
