"""Choices that save time on this machine: the window, AR in place of `exact`, the batch size, and
whether passes are replayed as CUDA graphs. None of them changes a picture.

They rest on the milliseconds of a pass (step_times.py) and on the number of passes that windows
take (prior_passes.py). Without these figures nothing is chosen, and a method's defaults apply. What
other programs do at the moment changes no tuning and no estimate. Knows no host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial

import torch

from ..backbones.base import Backbone
from ..backbones.estimates import TIMINGS, StepTimes
from ..model.grid import Grid
from .heads import DraftHeads
from .methods import AR, Exact, Method, Rolling
from .methods.rolling import FEWER, NARROW_FEWER
from .methods.window import CARD_CELLS, MIDDLE_CELLS, NARROW_CELLS, Tunable
from .prior_passes import between, by_stand_in, expected_passes
from .region import Region
from .sessions import RunSession
from .step_times import captures_of, card_of, step_times_of
from .threads import most_threads

SLOWEST = 0.05  # share of passes that each doubling of a batch adds for its slowest picture
LITTLE_MORE = 1.25  # the cost of a pass over the widest window, as a multiple of a narrower one's
CLASSES = (CARD_CELLS, MIDDLE_CELLS, NARROW_CELLS)  # of cards, by the cells of a budget's pass
ALIKE = 1.08  # windows below this multiple of the least cost are equally good
MOST_BYTES = 1 << 28  # of the probabilities of all cells of a chosen window
WORTH = 0.97  # AR replaces `exact` below this share of its seconds, because figures are rough
BY_RUNS = 0.67  # the same where no timing of passes tells, but single runs
NOTICED = 0.1  # share of a run's seconds from which more time for the first one is told
PLAIN_AR = AR()
LADDER = (1, 1.2, 1.5, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10)  # estimates are told in these


@dataclass(frozen=True)
class Cost:
    """The cost of a run: its passes, the milliseconds of each, and the number of threads.

    rest: seconds beside the passes, until the pixels are there. graphs: whether passes are replayed
    as CUDA graphs; None if only one way is known. first: seconds that the next run takes longer,
    because it captures them.
    """

    passes: float
    ms: float
    threads: int
    graphs: bool | None = None
    rest: float = 0.0
    first: float = 0.0

    @property
    def seconds(self) -> float:
        """Of a run that need not capture its graphs."""
        return self.passes * self.ms / 1000 + self.rest


def never(pictures: int) -> bool:
    return False


def left_ready(backbone: Backbone, heads: DraftHeads | None, branches: int, pictures: int) -> bool:
    """Whether the last run has left graphs for so many pictures, drawn by these heads or by none.
    """
    session = backbone.session.latest
    return isinstance(session, RunSession) and (
        session.shape.grid, session.shape.size, session.shape.pictures, session.shape.sequences,
    ) == (backbone.grid, backbone.size, pictures, pictures * branches) and (
        session.shape.heads in (heads, None))


@dataclass(frozen=True)
class Machine:
    """What is known about runs on this machine.

    step_times_of: the step times for a number of pictures at once. heads: whether draft heads are
    loaded. threads: the most that a pass may use. region: the cells to draw, None: all. device: its
    type. ready: whether the last run has left graphs for so many pictures at once. card: see
    `card_of`; empty on a CPU.
    """

    backbone: Backbone
    step_times_of: Callable[[int], StepTimes | None]
    heads: bool = False
    threads: int = 1
    region: Region | None = None
    device: str = "cpu"
    ready: Callable[[int], bool] = never
    card: str = ""

    @classmethod
    def of(cls, backbone: Backbone, heads: DraftHeads | None, branches: int,
           region: Region | None = None, device: torch.device | None = None) -> Machine:
        """The current machine. device: where the backbone will draw, if it is elsewhere now."""
        kind = (device or backbone.device).type
        most = most_threads() if kind == "cpu" else 1
        times_for = cache(lambda pictures: step_times_of(backbone, pictures, branches, heads,
                                                         device))
        card = "" if kind in ("cpu", "meta") else card_of(backbone, device)
        return cls(backbone, times_for, heads is not None, most, region, kind,
                   partial(left_ready, backbone, heads, branches), card)

    def cost(self, method: Method, pictures: int = 1) -> Cost | None:
        """The cost of a run, or None if too little is known."""
        passes, step_times = self.passes(method, pictures), self.step_times_of(pictures)
        if passes is None or step_times is None:
            return None
        cells = self.pass_width(method)
        best, rest = step_times.best(cells, self.threads), pictures * (step_times.rest or 0) / 1000
        replayed, captured = step_times.replayed(cells, 0), step_times.replayed(cells, 1)
        if best is None or replayed is None or captured is None:
            return None if best is None else Cost(passes, *best, rest=rest)
        capturing = 0 if self.ready(pictures) else captures_of(self.backbone)
        first = capturing * (captured - replayed) / 1000
        return min(Cost(passes, *best, False, rest), Cost(passes, replayed, 1, True, rest, first),
                   key=lambda cost: cost.seconds)

    def ar_is_quicker(self, method: Method, pictures: int) -> bool:
        """Whether AR takes less time than the method, by each of several timings.

        Not known before the method has drawn here: a stand-in's passes decide nothing for good.
        """
        step_times = self.step_times_of(pictures)
        if step_times is None or 0 < len(step_times.timings) < TIMINGS:
            return False
        if isinstance(method, Tunable) and by_stand_in(self.backbone, method, self.heads):
            return False
        worth = WORTH if step_times.timings else BY_RUNS
        machines = [replace(self, step_times_of=partial(same, each)) for each in [step_times,
                                                                                  *step_times.separate]]
        costs = [(here.cost(PLAIN_AR, pictures), here.cost(method, pictures)) for here in machines]
        return all(ar and own and ar.seconds < worth * own.seconds for ar, own in costs)

    def prefers_one_thread(self, method: Method, pictures: int) -> bool:
        """Whether the method's passes are quicker in one thread, even if all cores are free."""
        step_times = self.step_times_of(pictures)
        best = None if step_times is None else step_times.best(self.pass_width(method),
                                                               self.threads)
        return best is not None and self.threads > 1 == best[1]

    def pass_width(self, method: Method) -> int:
        """The number of cells in the passes that dominate a run's time."""
        if isinstance(method, AR):
            return 1
        grid = self.backbone.grid
        method = method.for_device(grid, self.device)
        return method.typical_pass_width(grid) if isinstance(method,
                                                             Tunable) else method.pass_width(grid)

    def passes(self, method: Method, pictures: int = 1) -> float | None:
        """The expected number of passes of a run, or None if too little is known."""
        grid = self.backbone.grid
        region = self.region or Region.of(grid)
        plan = method.plan(region)
        if plan.passes is not None or not isinstance(method, Tunable):
            return plan.passes
        curve = expected_passes(self.backbone, method, self.heads)
        if not curve:
            return plan.passes_max if isinstance(method, Rolling) else None
        whole = between(curve, method.for_device(grid, self.device).window_on(grid))
        whole *= 1 + SLOWEST * math.log2(pictures)
        return min(whole * region.cells / grid.cells, plan.passes_max)

    def with_window(self, method: Method, pictures: int = 1) -> Method:
        """The method with its window, or cells per row: what costs least here if no picture depends
        on it, else the default of the type of device. Unchanged if set or if costs are unknown.
        """
        if not isinstance(method, Tunable) or method.window is not None:
            return method
        if method.guarantee != "identical":
            return filled(method, self.backbone.grid, self.device, self.cells)
        step_times = self.step_times_of(pictures)
        if step_times is None:
            return method
        costs = {candidate: cost.seconds for candidate in self._candidates(method, step_times,
                                                                           pictures)
                 if (cost := self.cost(candidate, pictures)) is not None}
        return self._cheapest(costs) if costs else method

    @property
    def cells(self) -> int | None:
        """What this card computes cheaply in a pass; None: a CPU, or not timed yet.

        Pictures by a budget depend on it, so the first timing of a card, a model and its arithmetic
        decides for good, and for any number of pictures.
        """
        windows = self.backbone.estimates.windows
        if not self.card:
            return None
        if self.card not in windows.entries and len(ms := self._pass_ms()) == len(CLASSES):
            windows.put(self.card, cells_of(ms.__getitem__))
        return windows.entries.get(self.card)

    def _pass_ms(self) -> dict[int, float]:
        """Milliseconds of a pass of each of CLASSES, as a later run replays it, where known."""
        times = self.step_times_of(1) or StepTimes()
        if times.widest < MIDDLE_CELLS:
            return {}
        both = {cells: (times.replayed(cells, 0), times.of(cells, 1)) for cells in CLASSES}
        return {cells: min(filter(None, known)) for cells, known in both.items() if any(known)}

    def _candidates(self, method: Tunable, step_times: StepTimes, pictures: int) -> list[Tunable]:
        """The method with each size whose passes are at most 1.5 times as wide as the widest timed,
        and whose probabilities, float32 [pictures, cells, codes], take at most MOST_BYTES.
        """
        most = min(1.5 * step_times.widest, MOST_BYTES / (4 * self.backbone.codes * pictures))
        candidates = [method.with_window(window) for window in method.windows(self.backbone.grid)]
        return [candidate for candidate in candidates if self.pass_width(candidate) <= most]

    def _cheapest(self, costs: dict[Tunable, float]) -> Tunable:
        """The cheapest candidate; on a card the widest of those that cost about the same, because
        it waits for the host less often.
        """
        least = min(costs.values())
        if self.device == "cpu":
            return min(costs, key=costs.__getitem__)
        return [method for method, seconds in costs.items() if seconds < ALIKE * least][-1]


def same(step_times: StepTimes, pictures: int) -> StepTimes:
    """The step times, for any number of pictures."""
    return step_times


@dataclass(frozen=True)
class Tuning:
    """The method that draws, its cost, and the cost of AR; None where a cost is unknown.

    threads: 1 where a single thread is quickest; None: all that find a free core. instead: the cost
    of `exact` where AR draws in its place. slower: AR is quicker, as several timings agree.
    """

    method: Method
    cost: Cost | None = None
    ar: Cost | None = None
    threads: int | None = None
    instead: Cost | None = None
    slower: bool = False

    @property
    def stands_in(self) -> bool:
        """Whether AR draws in place of `exact`."""
        return self.instead is not None

    @property
    def graphs(self) -> bool:
        """Whether to replay passes as CUDA graphs where they can be."""
        return self.cost is None or self.cost.graphs is not False

    @property
    def text(self) -> str:
        """A line for plans; empty if the cost is unknown."""
        if self.cost is None:
            return ""
        method, size = self.method, ""
        if isinstance(method, Tunable) and method.window is not None:
            size = f"{method.window_knob} {method.window}, "
        line = (f"about {duration(self.cost.seconds)}: {size}"
                f"{self.cost.passes:.0f} passes of {brief(self.cost.ms)} ms")
        if self.first is not None:
            line += f", the first picture {duration(self.first)}"
        if self.ar is None or isinstance(self.method, AR):
            return line
        slower = "; it does not beat AR here" if self.slower else ""
        return f"{line}; plain AR {duration(self.ar.seconds)}{slower}"

    @property
    def first(self) -> float | None:
        """Seconds of the next run, if that takes noticeably longer than those after it."""
        if self.cost is None or self.cost.first < NOTICED * self.cost.seconds:
            return None
        return self.cost.seconds + self.cost.first

    @property
    def note(self) -> str | None:
        """Why AR draws instead of `exact`; None if it does not."""
        if self.instead is None or self.cost is None:
            return None
        return (f"drawn by AR, which is quicker here and draws the same picture: about "
                f"{duration(self.cost.seconds)}, exact {duration(self.instead.seconds)}")


def rounded(seconds: float) -> float:
    """An estimate as it is told: no more digits than it deserves."""
    power = 10.0 ** math.floor(math.log10(seconds))
    return min((step * power for step in LADDER), key=lambda step: abs(math.log(seconds / step)))


def duration(seconds: float) -> str:
    """ "2.5 s", "4 min": an estimate in words."""
    number = rounded(max(seconds, 0.01))
    return f"{number:g} s" if number < 100 else f"{rounded(seconds / 60):g} min"


def brief(ms: float) -> str:
    return f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"


def tune(machine: Machine, method: Method, pictures: int = 1, named: bool = False) -> Tuning:
    """The method with its window, or AR in place of `exact`.

    named: the user asked for this very method, as in a comparison, so that no other method replaces
    it.
    """
    own = machine.with_window(method, pictures)
    cost, ar = machine.cost(own, pictures), machine.cost(PLAIN_AR, pictures)
    slower = not isinstance(own, AR) and machine.ar_is_quicker(own, pictures)
    if slower and isinstance(method, Exact) and method.window is None and not named:
        return Tuning(PLAIN_AR, ar, ar, threads(machine, PLAIN_AR, pictures), cost)
    return Tuning(own, cost, ar, threads(machine, own, pictures), slower=slower)


def threads(machine: Machine, method: Method, pictures: int) -> int | None:
    """1 where a single thread is quickest, else None: all that find a free core."""
    return 1 if machine.prefers_one_thread(method, pictures) else None


def sooner_alone(machine: Machine, method: Method, together: Tuning, pictures: int,
                 named: bool = False) -> bool:
    """Whether drawing the pictures one after the other is quicker than `together`.

    Never where a batch may round otherwise than its pictures alone.
    """
    if not machine.backbone.batch_invariant:
        return False
    single = tune(machine, method, 1, named).cost
    return single is not None and together.cost is not None and (
        pictures * single.seconds < WORTH * together.cost.seconds)


@dataclass(frozen=True)
class AtOnce:
    """How many pictures to draw at once, and with which method; seconds: per picture."""

    pictures: int
    tuning: Tuning
    seconds: float


def at_once(machine: Machine, method: Method, sizes: Iterable[int],
            named: bool = False) -> AtOnce | None:
    """The batch size among `sizes` with the least time per picture; None if costs are unknown.

    The largest where a batch may round otherwise than its pictures alone.
    """
    options, sizes = [], list(sizes)
    if not machine.backbone.batch_invariant:
        sizes = [max(sizes)]
    for pictures in sorted(set(sizes)):
        tuning = tune(machine, method, pictures, named)
        if tuning.cost is not None:
            options.append(AtOnce(pictures, tuning, tuning.cost.seconds / pictures))
    return min(options, key=lambda option: option.seconds, default=None)


def cells_of(ms: Callable[[int], float]) -> int:
    """The class of a card: the cells of a budget's pass with which its pictures are done soonest.

    ms: milliseconds of a pass by its cells. The widest repairs most, so it is taken where it costs
    little more; a narrow window needs more passes.
    """
    middle, narrow = ms(MIDDLE_CELLS) / FEWER, ms(NARROW_CELLS) / NARROW_FEWER
    if ms(CARD_CELLS) < LITTLE_MORE * FEWER * min(middle, narrow):
        return CARD_CELLS
    return MIDDLE_CELLS if middle <= narrow else NARROW_CELLS


def filled(method: Method, grid: Grid, device: str, cells: int | None = None) -> Method:
    """The method with its window, or cells per row, set explicitly if the picture depends on it.

    A recipe then restores the same value on another device. cells: see `Method.for_device`.
    """
    if device == "meta" or method.guarantee == "identical":  # meta: another device will draw
        return method
    return method.for_device(grid, device, cells)
