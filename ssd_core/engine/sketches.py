"""Runs of models that draw a small sketch before the picture (GLM-Image).

Both grids are drawn by the same method, one run after the other. The sketch's codes then belong to
the prompt of the second run, whose prefill feeds them in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import torch
import torch.nn.functional as F

from ..backbones.base import Backbone
from ..model.grid import Grid
from .events import Event, Finished, Pass, Plan, Sketched
from .methods import Method
from .methods.window import Tunable

Events = Generator[Event, None, None]


def fitted(method: Method, sketch: Grid, grid: Grid) -> tuple[Method, Method]:
    """The method for a sketch and for the picture: they share a budget of passes."""
    from .methods.rolling import Rolling

    first = second = method
    if isinstance(method, Rolling) and method.budget:
        passes = round(method.budget * sketch.cells / (sketch.cells + grid.cells))
        first = replace(method, budget=max(passes, 2))
        second = replace(method, budget=max(method.budget - passes, 2))
    if isinstance(first, Tunable) and first.window is not None:
        first = first.with_window(min(first.window, max(first.windows(sketch),
                                                        default=first.window)))
    return first, second


def joined(sketch: Plan, picture: Plan) -> Plan:
    """The passes of both; `prior_passes` counts both already, as runs do."""
    known = sketch.passes is not None and picture.passes is not None
    both = (sketch.passes or 0) + (picture.passes or 0) if known else None
    return replace(picture, passes=both, passes_max=sketch.passes_max + picture.passes_max,
                   paper_passes=None, paper_ar_passes=None,
                   ar_passes=sketch.ar_passes + picture.ar_passes)


def with_sketch(sketch: Events, picture: Callable[[torch.Tensor], Events], grid: Grid,
                plan: Plan) -> Events:
    """The events of both runs after `Started`, as those of one run.

    picture: starts the second run, given the sketch [B, r, c]. grid, plan: of the whole run.
    """
    before: Finished | None = None
    with closing(sketch) as events:
        for event in events:
            if isinstance(event, Pass):
                yield aside(event, grid)
            elif isinstance(event, Finished):
                before = event.detached()
    assert before is not None
    yield Sketched(before.tokens)
    with closing(picture(before.tokens)) as events:
        yield from continued(events, before, plan)


def prompts_after(backbone: Backbone, branches: Sequence[list[int]],
                  sketch: torch.Tensor) -> list[list[int]]:
    """The prompts of all pictures, each with the codes of its sketch [B, r, c]."""
    return [backbone.after_sketch(ids, tokens) for ids, tokens
            in zip(branches, sketch.flatten(1).tolist(), strict=True)]


def enlarged(sketch: torch.Tensor, grid: Grid) -> torch.Tensor:
    """The tokens [B, R, C] of a sketch [B, r, c] as large as the picture."""
    return F.interpolate(sketch[:, None].double(), (grid.rows, grid.columns),
                         mode="nearest-exact")[:, 0].long()


def aside(event: Pass, grid: Grid) -> Pass:
    """A pass over the sketch: its cells are none of the picture's, as row ends are none."""
    cells = torch.zeros_like(event.cells)
    cells[..., 1] = grid.columns
    return replace(event, cells=cells)


def continued(events: Iterator[Event], before: Finished, plan: Plan) -> Iterator[Event]:
    """The events of the picture's run, counted from those of the sketch's run."""
    for event in events:
        if isinstance(event, Pass):
            event = replace(event, index=event.index + before.stats["passes"])
        elif isinstance(event, Finished):
            event = replace(event, stats=added(before.stats, event.stats, plan),
                            sketch=before.tokens)
        yield event


def added(sketch: Mapping, picture: Mapping, plan: Plan) -> dict:
    """The statistics of a whole run; those by round and row are the picture's."""
    passes = sketch["passes"] + picture["passes"]
    parts = (sketch["seconds"], picture["seconds"])
    seconds = {stage: sum(part.get(stage, 0.0) for part in parts)
               for stage in dict.fromkeys((*parts[1], *parts[0]))}
    tokens = sum(part["tokens_per_second"] * part["seconds"]["total"] for part in (sketch, picture))
    each = zip(sketch["passes_each"], picture["passes_each"], strict=True)
    return {**picture, "passes": passes, "sketch_passes": sketch["passes"], "seconds": seconds,
            "step_acceleration": plan.ar_passes / passes, "ar_passes": plan.ar_passes,
            "tokens_per_second": tokens / max(seconds["total"], 1e-9),
            "passes_each": [sum(pair) for pair in each],
            "threads": sorted({*sketch["threads"], *picture["threads"]})}
