"""A cache of the pictures that Finish has drawn, which are not drawn again.

ComfyUI's own cache knows only the whole list of pictures. No entry refers to a backbone, so that
its memory can be freed.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..ssd_core.backbones.base import Backbone
from ..ssd_core.engine.events import Event, FinalRows, Plan, Started
from ..ssd_core.runs.request import Result
from ..ssd_core.weights.model_size import stored_dtype

MAX_PICTURES = 16  # of one overview


@dataclass(frozen=True)
class Finished:
    """The outcome of a `NodeRun` of one picture."""

    tokens: torch.Tensor
    stats: Mapping
    passes: int
    seconds: float
    share: np.ndarray
    images: torch.Tensor
    messages: Sequence[dict]

    def events(self, plan: Plan) -> Iterator[Event]:
        """Events for a preview: all rows at once."""
        yield Started(plan)
        yield FinalRows(0, self.tokens.shape[1], self.tokens)

    def restore(self, result: Result) -> None:
        """Complete a result that received these events with the statistics of the first run."""
        result.stats, result.passes, result.seconds = self.stats, self.passes, self.seconds


FINISHED: OrderedDict[str, Finished] = OrderedDict()


def key_of(recipe: Mapping, backbone: Backbone) -> str:
    """The cache key of a begun picture: its recipe and the dtype of the stored weights."""
    return json.dumps([recipe, stored_dtype(backbone)], sort_keys=True)


def lookup(key: str) -> Finished | None:
    if key in FINISHED:
        FINISHED.move_to_end(key)
    return FINISHED.get(key)


def keep(key: str, outcome: Finished) -> None:
    FINISHED[key] = outcome
    while len(FINISHED) > MAX_PICTURES:
        FINISHED.popitem(last=False)
