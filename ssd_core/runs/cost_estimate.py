"""What an edit by words will cost, judged by two wide passes before it runs. Knows no host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from ..engine.edits.look import change_map
from ..engine.edits.maps import cleaned, grown
from ..engine.edits.rule import changed_above
from ..engine.edits.words import unchanged_objects
from ..engine.methods.exact import Exact
from ..engine.methods.window import CARD_CELLS, CPU_CELLS
from ..engine.tuning import Machine, duration

if TYPE_CHECKING:
    from .request import Request

WHOLE = 0.5  # of a row's cells; from here on what lies below it changes, too
FIRST = 0.25  # the same of the first row, which nothing above it holds
UNTOUCHED = 200  # cells that a pass makes final where nothing changes
RULE = 1.4  # an edit's passes in passes of the same width: its rule reads the old picture, too
NEAR_THINGS = 0.4  # share of the passes that feed the words without things, on a CPU


@dataclass(frozen=True)
class CostEstimate:
    """About how many passes an edit and a new picture take, and how long the edit takes.

    cost: times what the new picture takes. anew_seconds: of the new picture; None if unknown.
    seconds: of the edit; None if unknown.
    """

    passes: int
    anew_passes: int
    cost: float
    anew_seconds: float | None
    seconds: float | None

    @property
    def note(self) -> str | None:
        """A sentence if drawing the new words anew would be quicker."""
        if self.cost <= 1:
            return None
        if self.seconds is None or self.anew_seconds is None:
            return (f"these words change most of the picture: the edit takes about {self.cost:.1f} "
                    "times as long as drawing it anew")
        return (f"these words change most of the picture: the edit takes about "
                f"{duration(self.seconds)}, drawing it anew "
                f"{duration(self.anew_seconds)}")


def cost_estimate(request: Request, change: torch.Tensor | None = None) -> CostEstimate:
    """The cost of a request's edit. Raises SSDError if the edit cannot run.

    change [R, C]: the result of `change_map`, if it is known.
    """
    request.check()
    drawing, grid, machine = request.drawing, request.grid, machine_of(request)
    edit = drawing.edit
    assert edit is not None and drawing.keep is not None
    exact = machine.with_window(Exact()).for_device(grid, machine.device)
    assert isinstance(exact, Exact)
    anew = machine.passes(exact)
    assert anew is not None  # a stand-in's at least
    new = request.words[0].prompt
    if change is None:
        change = change_map(request.sized, drawing.keep[0], edit.old_prompt, new,
                            guidance=request.sampling.cfg, min_p=request.sampling.min_p)
    share = share_drawn(change, edit.reach, request.region.mask[0])
    objects = len(unchanged_objects(request.backbone, edit.old_prompt, new)) if edit.hold else 0
    window, all_ = exact.window_on(grid), request.branches + objects
    near = NEAR_THINGS if machine.device == "cpu" else 1.0
    drawn, waiting = share * anew, (1 - share) * grid.cells / UNTOUCHED
    passes = [(1.0, grid.cells * (all_ + 1)), (waiting, UNTOUCHED * all_),
              (drawn, window * (request.branches + near * objects))]
    known, step_times = machine.cost(exact), machine.step_times_of(1)
    if known is None or step_times is None:
        cheap = request.branches * (CPU_CELLS if machine.device == "cpu" else CARD_CELLS)
        cost = sum(count * width(cells, cheap) for count, cells in passes)
        return CostEstimate(round(2 + drawn + waiting), round(anew),
                            RULE * cost / (anew * width(window * request.branches, cheap)), None,
                            None)
    each = [(count, step_times.best(round(cells / request.branches), machine.threads))
            for count, cells in passes]
    edit_seconds = known.rest + RULE * sum(count * best[0] for count, best in each if best) / 1000
    return CostEstimate(round(2 + drawn + waiting), round(anew), edit_seconds / known.seconds,
                        known.seconds, edit_seconds)


def share_drawn(change: torch.Tensor, reach: float, mask: torch.Tensor) -> float:
    """About which share of the cells is drawn, by how much the words change each [R, C]."""
    redrawn = grown(cleaned(change > changed_above(reach))) & mask
    by_row = redrawn.float().mean(1)
    below = (by_row > WHOLE) | (by_row > FIRST) & (torch.arange(len(by_row)) == 0)
    if below.any():  # what stands below a changed sky or ground follows it
        redrawn[int(below.nonzero()[0]) :] = True
    return redrawn.float().mean().item()


def machine_of(request: Request) -> Machine:
    """What is known about whole pictures on the request's machine."""
    return Machine.of(request.sized, request.heads, request.branches, device=request.device)


def width(cells: float, cheap: int) -> float:
    """The time of a pass over so many cells of all sequences, in passes over a cheap number."""
    return max(1.0, cells / cheap)
