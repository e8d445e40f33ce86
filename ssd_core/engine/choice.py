"""What costs least time on this machine: the window of a pass, AR behind `exact`, how many at once.

What is said of windows holds for the cells of each row that `wave` chooses.

It is chosen from milliseconds of a pass (pace.py) and from the passes that windows take (usual.py).
Without these figures nothing is chosen, and a method's own defaults hold. Knows no host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

import torch

from ..backbones.base import Backbone
from ..model.grid import Grid
from .heads import DraftHeads
from .methods import AR, Exact, Method, Rolling
from .methods.paced import Paced
from .pace import Pace, pace_of
from .threads import free_now
from .usual import between, expected_passes

SLOWEST = 0.05  # each doubling of a batch: passes of its slowest picture beyond the mean
ALIKE = 1.08  # on a card, windows that cost less than so many times the cheapest are alike
WORTH = 0.97  # AR takes the place of `exact` below this share of its seconds: figures are rough


@dataclass(frozen=True)
class Cost:
    """What a run takes: passes of so many milliseconds, with so many threads."""

    passes: float
    ms: float
    threads: int

    @property
    def seconds(self) -> float:
        return self.passes * self.ms / 1000


@dataclass(frozen=True)
class Machine:
    """What is known of runs on this machine. pace_of: the pace for so many pictures at once.

    device: its type. threads: all that a pass may use, of which `free` find a free core now. heads:
    whether draft heads are there.
    """

    backbone: Backbone
    pace_of: Callable[[int], Pace | None]
    heads: bool = False
    threads: int = 1
    free: int = 1
    keep_rows: int = 0
    device: str = "cpu"

    @classmethod
    def of(cls, backbone: Backbone, heads: DraftHeads | None, branches: int, keep_rows: int = 0,
           device: torch.device | None = None) -> Machine:
        """This one. device: where the backbone will draw, if it is elsewhere now."""
        place = (device or backbone.device).type
        most = torch.get_num_threads() if place == "cpu" else 1
        paces = cache(lambda pictures: pace_of(backbone, pictures, branches, heads, device))
        return cls(backbone, paces, heads is not None, most, free_now(most), keep_rows, place)

    def cost(self, method: Method, pictures: int = 1) -> Cost | None:
        """The cost of a run; None where too little is known."""
        passes, pace = self.passes(method, pictures), self.pace_of(pictures)
        if passes is None or pace is None:
            return None
        found = pace.best(self.cells(method), self.free)
        return None if found is None else Cost(passes, *found)

    def prefers_one_thread(self, method: Method, pictures: int) -> bool:
        """Whether the method's passes are quicker in one thread, even where all cores are free."""
        pace = self.pace_of(pictures)
        found = None if pace is None else pace.best(self.cells(method), self.threads)
        return found is not None and self.threads > 1 == found[1]

    def cells(self, method: Method) -> int:
        """Cells of the passes that decide a run's time."""
        if isinstance(method, AR):
            return 1
        grid = self.backbone.grid
        if isinstance(method, Paced):
            return method.usual_width(grid, self.device)
        return method.widest_pass(grid, self.device)

    def passes(self, method: Method, pictures: int = 1) -> float | None:
        grid = self.backbone.grid
        plan = method.plan(grid, self.keep_rows)
        if plan.passes is not None or not isinstance(method, Paced):
            return plan.passes
        curve = expected_passes(self.backbone, method, self.heads)
        if not curve:
            return plan.passes_max if isinstance(method, Rolling) else None
        whole = between(curve, method.width(grid, self.device))
        whole *= 1 + SLOWEST * math.log2(pictures)
        return min(whole * (grid.rows - self.keep_rows) / grid.rows, plan.passes_max)

    def sized(self, method: Method, pictures: int = 1) -> Method:
        """The method with the window that costs least; as it is if it has one or none is known."""
        if not isinstance(method, Paced) or not method.is_open:
            return method
        if getattr(method, "tree_width", 1) > 1:  # a tree has more cells than its window
            return method
        pace = self.pace_of(pictures)
        if pace is None:
            return method
        costs = {one: cost.seconds for one in self._candidates(method, pace)
                 if (cost := self.cost(one, pictures)) is not None}
        return self._cheapest(costs) if costs else method

    def _candidates(self, method: Paced, pace: Pace) -> list[Paced]:
        """The method with each size that may be chosen; no pass is half as wide again as the widest
        that is known."""
        grid = self.backbone.grid
        each = [method.sized(size) for size in method.sizes(grid)]
        return [one for one in each if self.cells(one) <= 1.5 * pace.widest]

    def _cheapest(self, costs: dict[Paced, float]) -> Paced:
        """On a card the widest of those that cost about the same: it waits for the host less often.
        """
        least = min(costs.values())
        if self.device == "cpu":
            return min(costs, key=costs.__getitem__)
        return [one for one, seconds in costs.items() if seconds < ALIKE * least][-1]


@dataclass(frozen=True)
class Choice:
    """The method that draws, what it costs, and what AR would; None where nothing is known.

    threads: 1 where one is quickest; None: all that find a free core. instead: what `exact` would
    cost where AR draws in its place.
    """

    method: Method
    cost: Cost | None = None
    ar: Cost | None = None
    threads: int | None = None
    instead: Cost | None = None

    @property
    def text(self) -> str:
        """One line for plans; empty if nothing is known."""
        if self.cost is None:
            return ""
        method, size = self.method, ""
        if isinstance(method, Paced) and method.size is not None:
            size = f"{method.paced} {method.size}, "
        line = (f"about {seconds(self.cost.seconds)}: {size}"
                f"{self.cost.passes:.0f} passes of {brief(self.cost.ms)} ms")
        if self.ar is None or isinstance(self.method, AR):
            return line
        slower = "; it does not beat AR here" if self.cost.seconds >= self.ar.seconds else ""
        return f"{line}; plain AR {seconds(self.ar.seconds)}{slower}"

    @property
    def note(self) -> str | None:
        """Why AR draws instead of `exact`."""
        if self.instead is None or self.cost is None:
            return None
        return (f"drawn by AR, which is quicker here and draws the same picture: about "
                f"{seconds(self.cost.seconds)}, exact {seconds(self.instead.seconds)}")


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def brief(ms: float) -> str:
    return f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"


def chosen(machine: Machine, method: Method, pictures: int = 1, named: bool = False) -> Choice:
    """The method with its window, or AR in place of `exact`.

    named: the user asked for this very method, as in a comparison, so that no other takes its
    place. A method that does not promise AR's picture has the window that suits a single picture on
    free cores, so that a picture depends neither on its batch nor on other programs.
    """
    if method.verdict == "identical":
        one = machine.sized(method, pictures)
    else:
        one = replace(machine, free=machine.threads).sized(method)
    cost, ar = machine.cost(one, pictures), machine.cost(AR(), pictures)
    replaceable = isinstance(method, Exact) and method.window is None and not named
    if replaceable and cost and ar and ar.seconds < WORTH * cost.seconds:
        return Choice(AR(), ar, ar, threads(machine, AR(), pictures), cost)
    return Choice(one, cost, ar, threads(machine, one, pictures))


def threads(machine: Machine, method: Method, pictures: int) -> int | None:
    return 1 if machine.prefers_one_thread(method, pictures) else None


def sooner_alone(machine: Machine, method: Method, together: Choice, pictures: int,
                 named: bool = False) -> bool:
    """Whether so many pictures are done sooner one after the other than by `together`."""
    one = chosen(machine, method, 1, named).cost
    return one is not None and together.cost is not None and (
        pictures * one.seconds < WORTH * together.cost.seconds)


@dataclass(frozen=True)
class AtOnce:
    """How many pictures to draw at once, with which method; seconds: of one picture."""

    pictures: int
    choice: Choice
    seconds: float


def at_once(machine: Machine, method: Method, sizes: Iterable[int],
            named: bool = False) -> AtOnce | None:
    """So many pictures at once, one of `sizes`, as cost least time; None: unknown."""
    found = []
    for pictures in sorted(set(sizes)):
        choice = chosen(machine, method, pictures, named)
        if choice.cost is not None:
            found.append(AtOnce(pictures, choice, choice.cost.seconds / pictures))
    return min(found, key=lambda one: one.seconds, default=None)


def filled(method: Method, grid: Grid, device: str) -> Method:
    """The method with its window, or cells of a row, written out where the picture depends on it.

    A recipe then restores it on a machine that would choose another one.
    """
    if device == "meta" or method.verdict == "identical":  # meta: others draw, perhaps elsewhere
        return method
    if isinstance(method, Paced) and method.size is None:
        return method.sized(min(method.width(grid, device), grid.slots))
    return method
