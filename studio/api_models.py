"""Endpoints of models: those that are here, whether they fit, loading and downloading; Doctor."""

from __future__ import annotations

from ssd_core import SSDError
from ssd_core.measure.expected import in_units, picture_seconds
from ssd_core.runs.diagnostics import report
from ssd_core.weights import hub
from ssd_core.weights.catalogue import CATALOGUE

from .calls import Call, listed
from .models import load
from .selftesting import start as start_selftest
from .services import Services
from .views import download_view, fit_view, job_view, models_view, quote_view
from .words import say


def models(call: Call) -> dict:
    return models_view(call.services, call.language)


def fit(call: Call) -> dict:
    """Whether a run with these settings would fit into memory with a model, and how long it takes.

    The owner may name any file; visitors of a shared app name what GET /api/models lists.
    """
    name, dtype, library = call.text("name"), call.text("dtype", "auto"), call.services.library
    if not call.services.local:
        name = listed_name(call.services, name)
    estimate, row = library.fit(name, call.drawing, dtype), CATALOGUE.get(name)
    seconds = (picture_seconds(row, dtype, library.device)
               if row is not None and estimate.fits else None)
    return {**fit_view(estimate, call.language), "time": time_text(seconds, call.language)}


def time_text(seconds: float | None, language: str) -> str:
    """A time with one significant figure; empty if it is unknown."""
    if seconds is None:
        return ""
    count, unit = in_units(seconds)
    return say(language, f"expected_{unit}", count=count)


def listed_name(services: Services, shown: str) -> str:
    """The model that a visitor sees under a name. Every other name is refused in the same words, so
    that they tell nothing of this machine's files.
    """
    names = [*(model.name for model in services.library.models()), *CATALOGUE]
    for name in names:
        if services.for_visitors(name) == shown:
            return name
    raise SSDError(f"name {shown[:80]!r}: no model of this app: choose one that it lists")


def use(call: Call) -> dict:
    call.require_local()
    lora = listed("lora", call.values.get("lora") or [])
    loading = load(call.services, call.owner, call.text("name"), call.text("dtype", "auto"), lora)
    return job_view(call.services, loading, call.language)


def quote(call: Call) -> dict:
    """Size and licence of a download, asked for at the Hub."""
    call.require_local()
    quoted = hub.quote(call.text("name"), call.services.library.models_dir)
    return quote_view(quoted, call.language)


def start_download(call: Call) -> dict:
    """Download a model; `bytes`: those that are missing by its quote, which must have been seen."""
    call.require_local()
    call.services.downloads.start(call.text("name"), call.values.get("bytes"))
    return download(call)


def cancel(call: Call) -> dict:
    call.require_local()
    call.services.downloads.cancel()
    return download(call)


def download(call: Call) -> dict:
    call.require_local()
    return download_view(call.services, call.services.downloads.last, call.language)


def selftest(call: Call) -> dict:
    """Queue the self-test of this machine."""
    call.require_local()
    return job_view(call.services, start_selftest(call.services, call.owner), call.language)


def doctor(call: Call) -> dict:
    services = call.services
    text = report(services.library.doctor_lines(), services.worker.last_error)
    return {"report": services.for_visitors(text)}
