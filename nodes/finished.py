"""Pictures that Finish has drawn, so that one more picked does not draw the others again.

ComfyUI's own cache knows only the whole list of pictures. Nothing here refers to a backbone, whose
memory would otherwise stay taken.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..ssd_core.engine.events import Event, Rows, Started
from ..ssd_core.engine.plan import Plan
from ..ssd_core.front.request import Result
from ..ssd_core.weights.figures import stored_dtype
from .weights import LoadedBackbone

KEPT = 16  # pictures, as many as Start Seeds begins at most


@dataclass(frozen=True)
class Finished:
    """The outcome of a run of one picture, as `Run` has it."""

    tokens: torch.Tensor
    stats: Mapping
    passes: int
    seconds: float
    share: np.ndarray
    images: torch.Tensor
    story: Sequence[dict]

    def events(self, plan: Plan) -> Iterator[Event]:
        """What a preview shows of it: all of its rows at once."""
        yield Started(plan)
        yield Rows(0, self.tokens.shape[1], self.tokens)

    def shown_in(self, panel: int) -> list[dict]:
        """Its story, told of another panel."""
        return [{**message, "panel": panel} for message in self.story]

    def restore(self, result: Result) -> None:
        """Complete a result that took these events; nothing is counted a second time."""
        result.stats, result.passes, result.seconds = self.stats, self.passes, self.seconds


FINISHED: OrderedDict[str, Finished] = OrderedDict()


def key_of(recipe: Mapping, backbone: LoadedBackbone) -> str:
    """What decides a picture that was begun: its recipe and how the weights are stored."""
    return json.dumps([recipe, stored_dtype(backbone.module)], sort_keys=True)


def found(key: str) -> Finished | None:
    if key in FINISHED:
        FINISHED.move_to_end(key)
    return FINISHED.get(key)


def keep(key: str, one: Finished) -> None:
    FINISHED[key] = one
    while len(FINISHED) > KEPT:
        FINISHED.popitem(last=False)
