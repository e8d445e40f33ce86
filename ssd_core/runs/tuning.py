"""The tuning of a request for this machine, and what its run teaches later tunings."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Protocol

import torch

from ..backbones.base import Backbone
from ..engine.methods import Method
from ..engine.prior_passes import note
from ..engine.step_times import note_rest, note_step_times
from ..engine.tuning import Machine, Tuning, filled, sooner_alone, threads, tune
from ..errors import SSDError
from ..output.guarantees import guarantee_holds
from .fields import TuningInput


def tuned(request: TuningInput, backbone: Backbone, method: Method) -> dict:
    """The fields of the request that hold the tuning: the window, AR in place of `exact`, pictures
    one by one or together. request: a `Request`. method: resolved, with what the user set.
    """
    tuning, region, alone = Tuning(method), None, False
    with suppress(SSDError):  # `check` says what does not fit
        region = request.region if request.pictures > 0 else None
    if region is not None:
        machine = Machine.of(backbone, request.heads, request.branches, region, request.device)
        named = request.named or not request.fall_back or not guarantee_holds(backbone)
        if request.edit is not None:  # its cost is not known
            method_ = machine.with_window(method, request.pictures)
            tuning = Tuning(method_, threads=threads(machine, method_, request.pictures))
        else:
            tuning = tune(machine, method, request.pictures, named)
            alone = request.pictures > 1 and sooner_alone(machine, method, tuning,
                                                          request.pictures, named)
    return {"tuning": tuning, "asked": method, "alone": alone,
            "method": filled(tuning.method, request.grid, request.device_type),
            "heads": request.heads if tuning.method.uses_heads else None,
            "note": request.note or tuning.note}


def record(request: TuningInput, stats: Mapping) -> None:
    """Record passes and step times of a finished run; those of an edit, or of one that read source
    pictures in place of a sketch, say nothing about other runs.
    """
    if request.edit is not None or request.sized.sources:
        return
    kind = (request.sized, request.method, request.heads is not None, request.sampling)
    note(*kind, stats, partly=not bool(request.region.mask.all()))
    note_step_times(*kind, request.pictures, stats, request.tuning.graphs)


class Decoding(Protocol):
    """The outcome of a run whose pictures are decoded."""

    stats: Mapping | None
    pixels_took: float

    @property
    def request(self) -> TuningInput: ...


def noting(result: Decoding, decoded: Iterator[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The pictures; the seconds of the first one are recorded for later plans."""
    begun = time.perf_counter()
    first = next(decoded)
    result.pixels_took, run = time.perf_counter() - begun, result.request
    if result.stats is not None:
        note_rest(run.sized, run.heads is not None, run.branches, run.pictures, result.stats,
                  result.pixels_took)
    yield first
    yield from decoded
