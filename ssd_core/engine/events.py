"""What a run tells while it decodes: four plain events, each with its JSON form.

The schema is read by the preview in the browser as well; it changes only by addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import torch

from .plan import Plan

T = TypeVar("T", bound="Told")


@dataclass(frozen=True)
class Told:
    """An event; inside a run its tensors may be views of what is still going to change."""

    def handed_out(self: T) -> T:
        """The event for the caller: with tensors of its own, which may be written to."""
        own = {f.name: value.clone() for f in fields(self)
               if isinstance(value := getattr(self, f.name), torch.Tensor)}
        return replace(self, **own)


@dataclass(frozen=True)
class Started(Told):
    """The schedule, before anything ran."""

    plan: Plan

    def to_json(self) -> dict:
        return {"kind": "started", "plan": self.plan.to_json()}


@dataclass(frozen=True)
class Pass(Told):
    """One pass through the backbone.

    cells [B, n, 2] (row, column) and tokens [B, n] int64 after it; accepted [B, n] bool says which
    of them stood, None where the pass judged nothing (a commit, a prefill). The first `refed` cells
    were final already and only fed again: they stand, but nothing about them was judged.
    """

    index: int
    stage: str
    round: int
    cells: torch.Tensor
    tokens: torch.Tensor
    accepted: torch.Tensor | None
    refed: int = 0

    def to_json(self) -> dict:
        accepted = None if self.accepted is None else self.accepted.tolist()
        return {"kind": "pass", "index": self.index, "stage": self.stage, "round": self.round,
                "cells": self.cells.tolist(), "tokens": self.tokens.tolist(),
                "accepted": accepted, "refed": self.refed}


@dataclass(frozen=True)
class RowsDone(Told):
    """Rows first..last-1 are final in every picture: tokens [B, last - first, C] int64."""

    first: int
    last: int
    tokens: torch.Tensor

    def to_json(self) -> dict:
        return {"kind": "rows", "first": self.first, "last": self.last,
                "tokens": self.tokens.tolist()}


@dataclass(frozen=True)
class Finished(Told):
    """All tokens [B, R, C] int64 and the statistics that docs/contract.md lists."""

    tokens: torch.Tensor
    stats: Mapping

    def to_json(self) -> dict:
        return {"kind": "finished", "tokens": self.tokens.tolist(), "stats": dict(self.stats)}


Rows = RowsDone  # as docs/contract.md calls it; methods have a Rows too
Event = Started | Pass | RowsDone | Finished
