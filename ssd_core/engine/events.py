"""The events of a decoding run, each with its JSON form.

The browser preview reads the same schema. Fields are only ever added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TypeVar

import torch

from ..backbones.presets import PAPER

PAPER_AR_PASSES = {setting.grid: setting.ar_passes for setting in PAPER.values()}
T = TypeVar("T", bound="EventBase")


@dataclass(frozen=True)
class Plan:
    """Passes of this engine (None if they depend on the picture) and of the paper's formula.

    The prefill counts as one pass. Guidance branches that share a forward pass count once. tuning:
    the method's tuning for this device, in words. prior_passes: the passes of similar runs, if
    known. prior_pictures: the own pictures by this method that count in them. stand_in: whether
    they are those of a stand-in, because this backbone has not drawn this way yet.
    """

    passes: int | None
    passes_max: int
    paper_passes: int | None
    ar_passes: int
    paper_ar_passes: int | None
    tuning: str = ""
    prior_passes: int | None = None
    prior_pictures: int = 0
    stand_in: bool = False

    @property
    def step_acceleration(self) -> float | None:
        return None if self.passes is None else self.ar_passes / max(1, self.passes)

    def to_json(self) -> dict:
        return {**asdict(self), "step_acceleration": self.step_acceleration}


def blocks(first: int, rows: int, k_v: int) -> list[range]:
    """Split rows first..rows-1 into blocks of up to k_v rows."""
    return [range(y, min(y + k_v, rows)) for y in range(first, rows, k_v)]


@dataclass(frozen=True)
class EventBase:
    """Base of all events. During a run its tensors may be views of buffers that still change."""

    def detached(self: T) -> T:
        """A copy whose tensors the caller may keep and modify."""
        copies = {f.name: value.clone() for f in fields(self)
                  if isinstance(value := getattr(self, f.name), torch.Tensor)}
        return replace(self, **copies)


@dataclass(frozen=True)
class Started(EventBase):
    """The schedule, yielded before the first pass.

    prepares: whether this run captures graphs that later ones replay, which takes a moment.
    """

    plan: Plan
    prepares: bool = False

    def to_json(self) -> dict:
        return {"kind": "started", "plan": self.plan.to_json(), "prepares": self.prepares}


@dataclass(frozen=True)
class Pass(EventBase):
    """One forward pass through the backbone.

    cells [B, n, 2] (row, column) and tokens [B, n] int64 as of the end of the pass. accepted [B, n]
    bool: which tokens were accepted, None if the pass verified nothing (prefill, commit). The first
    `n_context` cells were final already and only fed again; their `accepted` is True.

    unchanged [B, n] bool, or None like `accepted`: which tokens the verification left unchanged. In
    a sliding window these may still change later, and `accepted` marks the final ones.
    """

    index: int
    stage: str
    round: int
    cells: torch.Tensor
    tokens: torch.Tensor
    accepted: torch.Tensor | None
    n_context: int = 0
    unchanged: torch.Tensor | None = None

    def to_json(self) -> dict:
        accepted, unchanged = (None if mask is None else mask.tolist()
                               for mask in (self.accepted, self.unchanged))
        return {"kind": "pass", "index": self.index, "stage": self.stage, "round": self.round,
                "cells": self.cells.tolist(), "tokens": self.tokens.tolist(),
                "accepted": accepted, "n_context": self.n_context, "unchanged": unchanged}


@dataclass(frozen=True)
class Sketched(EventBase):
    """The sketch is final that some models draw before the picture: tokens [B, r, c] int64."""

    tokens: torch.Tensor

    def to_json(self) -> dict:
        return {"kind": "sketch", "tokens": self.tokens.tolist()}


@dataclass(frozen=True)
class FinalRows(EventBase):
    """Rows first..last-1 are final in every picture: tokens [B, last - first, C] int64."""

    first: int
    last: int
    tokens: torch.Tensor

    def to_json(self) -> dict:
        return {"kind": "rows", "first": self.first, "last": self.last,
                "tokens": self.tokens.tolist()}


@dataclass(frozen=True)
class Finished(EventBase):
    """All tokens [B, R, C] int64 and the statistics that docs/contract.md lists.

    object_cells [B, R, C] bool: the cells of objects that an edit by words held; None without an
    edit. sketch [B, r, c] int64: the tokens of the sketch, for models that draw one first; else
    None.
    """

    tokens: torch.Tensor
    stats: Mapping
    object_cells: torch.Tensor | None = None
    sketch: torch.Tensor | None = None

    def to_json(self) -> dict:
        more = {name: value.tolist() for name, value in (("object_cells", self.object_cells),
                                                         ("sketch", self.sketch))
                if value is not None}
        return {"kind": "finished", "tokens": self.tokens.tolist(), "stats": dict(self.stats),
                **more}


Event = Started | Pass | Sketched | FinalRows | Finished


def finished(events: Iterable[Event],
             on_event: Callable[[Event], None] = lambda event: None) -> Finished:
    """Run to the end and return the last event, which has the tokens and statistics.

    on_event is called with every event.
    """
    for event in events:
        on_event(event)
        if isinstance(event, Finished):
            return event
    raise ValueError("the run ended without its last event")
