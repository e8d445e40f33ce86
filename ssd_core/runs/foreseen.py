"""What an edit by words will cost, judged by two wide passes before it runs. Knows no host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from ..engine.choice import Machine, duration
from ..engine.edits.look import change_map
from ..engine.edits.maps import cleaned, grown
from ..engine.edits.rule import moved_above
from ..engine.edits.words import unchanged_things
from ..engine.methods.exact import Exact
from ..engine.methods.window import CARD_CELLS, CPU_CELLS

if TYPE_CHECKING:
    from .request import Request

WHOLE = 0.5  # of a row's cells; from here on what lies below it changes, too
CELLS_A_PASS = 6  # that `exact` makes final, where nothing else is known
UNTOUCHED = 200  # cells that a pass makes final where nothing changes
NEAR_THINGS = 0.4  # share of the passes that feed the words without things, on a CPU


@dataclass(frozen=True)
class Foreseen:
    """About how many passes an edit and a new picture take, and how long the edit takes.

    cost: times what the new picture takes. anew_seconds: of the new picture; None if unknown.
    """

    passes: int
    anew_passes: int
    cost: float
    anew_seconds: float | None

    @property
    def note(self) -> str | None:
        """A sentence if drawing the new words anew would be quicker."""
        if self.cost <= 1:
            return None
        if self.anew_seconds is None:
            return (f"these words change most of the picture: the edit takes about {self.cost:.1f} "
                    "times as long as drawing it anew")
        return (f"these words change most of the picture: the edit takes about "
                f"{duration(self.cost * self.anew_seconds)}, drawing it anew "
                f"{duration(self.anew_seconds)}")


def foreseen(request: Request, change: torch.Tensor | None = None) -> Foreseen:
    """The cost of a request's edit. Raises SSDError if the edit cannot run.

    change [R, C]: the result of `change_map`, if it is known.
    """
    request.check()
    edit, grid, machine = request.edit, request.grid, machine_of(request)
    assert edit is not None and request.keep is not None
    exact = machine.sized(Exact()).for_device(grid, machine.device)
    assert isinstance(exact, Exact)
    anew = machine.passes(exact) or grid.cells / CELLS_A_PASS
    new = request.words[0].prompt
    if change is None:
        change = change_map(request.sized, request.keep[0], edit.old_prompt, new,
                            guidance=request.sampling.cfg, min_p=request.sampling.min_p)
    moved = grown(cleaned(change > moved_above(edit.reach))) & request.region.free[0]
    below = moved.float().mean(1).gt(WHOLE).nonzero()
    if len(below):  # what stands below a changed sky or ground follows it
        moved[int(below[0]) :] = True
    share = moved.float().mean().item()
    things = len(unchanged_things(request.backbone, edit.old_prompt, new)) if edit.hold else 0
    cheap = request.branches * (CPU_CELLS if machine.device == "cpu" else CARD_CELLS)
    window, all_ = exact.width(grid), request.branches + things
    near = NEAR_THINGS if machine.device == "cpu" else 1.0
    drawn = share * anew
    waiting = (1 - share) * grid.cells / UNTOUCHED
    cost = (width(grid.cells * (all_ + 1), cheap) + waiting * width(UNTOUCHED * all_, cheap)
            + drawn * width(window * (request.branches + near * things), cheap))
    known = machine.cost(exact)
    return Foreseen(round(2 + drawn + waiting), round(anew),
                    cost / (anew * width(window * request.branches, cheap)),
                    known.seconds if known else None)


def machine_of(request: Request) -> Machine:
    """What is known about whole pictures on the request's machine."""
    return Machine.of(request.sized, request.heads, request.branches, device=request.device)


def width(cells: float, cheap: int) -> float:
    """The time of a pass over so many cells of all sequences, in passes over a cheap number."""
    return max(1.0, cells / cheap)
