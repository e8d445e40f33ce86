"""What a request chooses for this machine, and what its run teaches later choices."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Protocol

import torch

from ..backbones.base import Backbone
from ..engine.choice import Choice, Machine, chosen, filled, sooner_alone, threads
from ..engine.methods import Method
from ..engine.pace import note_pace, note_rest
from ..engine.usual import note
from ..errors import SSDError
from ..output.guarantees import guarantee_holds
from .fields import Choosing


def choices(request: Choosing, backbone: Backbone, method: Method) -> dict:
    """The fields of the request that hold the choice: the window, AR in place of `exact`, pictures
    one by one or together. request: a `Request`. method: resolved, with what the user set.
    """
    choice, region, alone = Choice(method), None, False
    with suppress(SSDError):  # `check` says what does not fit
        region = request.region if request.pictures > 0 else None
    if region is not None:
        machine = Machine.of(backbone, request.heads, request.branches, region, request.device)
        named = request.named or not request.fall_back or not guarantee_holds(backbone)
        if request.edit is not None:  # its cost is not known
            method_ = machine.sized(method, request.pictures)
            choice = Choice(method_, threads=threads(machine, method_, request.pictures))
        else:
            choice = chosen(machine, method, request.pictures, named)
            alone = request.pictures > 1 and sooner_alone(machine, method, choice,
                                                          request.pictures, named)
    return {"choice": choice, "asked": method, "alone": alone,
            "method": filled(choice.method, request.grid, request.device_type),
            "heads": request.heads if choice.method.uses_heads else None,
            "note": request.note or choice.note}


def record(request: Choosing, stats: Mapping) -> None:
    """Record passes and pace of a finished run; those of an edit, or of one that read source
    pictures in place of a sketch, say nothing about other runs.
    """
    if request.edit is not None or request.sized.sources:
        return
    kind = (request.sized, request.method, request.heads is not None, request.sampling)
    note(*kind, stats, partly=not bool(request.region.free.all()))
    note_pace(*kind, request.pictures, stats, request.choice.graphs)


class Decoding(Protocol):
    """The outcome of a run whose pictures are decoded."""

    stats: Mapping | None
    pixels_took: float

    @property
    def request(self) -> Choosing: ...


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
