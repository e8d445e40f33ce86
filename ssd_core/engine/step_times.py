"""Milliseconds of a pass by its number of cells, on this machine: measured, then stored.

The time of a pass includes feeding the cells, computing probabilities and choosing tokens. Short
passes are measured in less than a second, before anything is drawn, and once more at another time;
for long passes only the times of finished runs are known. The least of several timings counts,
because other programs only ever slow a pass. Each run moves the figures a little. They are in the
backbone's `estimates`. Knows no host.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial

import torch

from .. import openmp
from ..backbones.base import Backbone
from ..backbones.estimates import TIMINGS, StepTimes, StoredStepTimes
from ..backbones.presets import resolve_sampling
from ..errors import SSDError
from ..kept_files import cache_folder, switched_off
from ..model.processor import processor
from ..model.sampling import Sampling
from ..state_files import StateFile
from .first_replay import WrongReplay
from .graphs import (
    KEYS,
    EagerRunner,
    GraphRunner,
    PassRunner,
    graphs_off_reason_of,
    rounded,
    rounded_keys,
    runner,
    switch_off_graphs,
)
from .heads import DraftHeads
from .methods import AR, Exact, Method, Rolling
from .methods.exact import FirstGuess, resample
from .methods.window import Window
from .run_statistics import Stopwatch
from .state import DecodeState, PictureSlots
from .threads import cores, cores_held, drawing, free_now, most_threads, using_threads

CELLS = (1, 8, 16, 24, 48, 96)
CARD_CELLS = (*CELLS, 192, 384, 768, 1536, 3072)
AT_MOST, EACH, REPEATS = 0.5, 0.03, 5  # s per measurement; s and passes per width
WARM_UP = 0.1  # s
READS = 8e9  # bytes of weights per second that a CPU reads, to estimate a pass before measuring
TOO_LONG = 0.1  # s; decoders with longer passes are not measured, no width gets a second pass
PROMPT = 32  # tokens
APART = 30.0  # s between two timings of the same passes
LEAST = 0.001  # ms, of a capture
GUIDED = 2.0  # guidance of timed passes, for backbones that have none of their own; any costs alike


def key_of(backbone: Backbone, pictures: int, branches: int, heads: bool,
           device: torch.device | None = None) -> str:
    """The conditions of step times. device: where the backbone will draw, if elsewhere now."""
    from .. import __version__

    graphs = " with graphs" * (not graphs_off_reason_of(backbone, device))
    streaming = backbone.decoder.streaming
    streamed = f" with {streaming.waiting} layers streamed" if streaming is not None else ""
    waiting = os.environ.get(openmp.VARIABLE) or openmp.WAITING
    return " / ".join((device_name(device or backbone.device), backbone.sha256[:16],
                       f"{backbone.grid}{f' x{backbone.scale}' * (backbone.scale > 1)}",
                       arithmetic(backbone),
                       f"{pictures}x{branches}{' with heads' * heads}{graphs}{streamed}",
                       waiting, __version__, torch.__version__))


def card_of(backbone: Backbone, device: torch.device | None = None) -> str:
    """A card, a model and its arithmetic, for which the window of a budget is chosen once."""
    return " / ".join((device_name(device or backbone.device), backbone.sha256[:16],
                       arithmetic(backbone)))


def device_name(device: torch.device) -> str:
    if device.type == "cuda" and torch.cuda.is_available():
        return torch.cuda.get_device_name(device)
    return f"{device.type} {processor()} {cores()}"


def arithmetic(backbone: Backbone) -> str:
    """The dtype of the hidden states, and the kind and dtype of the matrices."""
    matrix = backbone.decoder.layers[0].qkv
    return f"{backbone.dtype} {type(matrix).__name__} {getattr(matrix, 'dtype', '')}"


# Measuring


def measured(backbone: Backbone, pictures: int, branches: int, heads: DraftHeads | None,
             threads: Iterable[int], limit: float = AT_MOST) -> StepTimes | None:
    """Time passes with these numbers of threads; None if passes would take too long.

    Where graphs can be captured, passes are also timed as replays.
    """
    device, weights = backbone.device, backbone.decoder.parameters()
    bytes_read = sum(weight.numel() * weight.element_size() for weight in weights)
    if device.type == "meta" or (device.type == "cpu" and bytes_read > TOO_LONG * READS):
        return None
    passes = Passes(backbone, pictures, branches, heads)
    step_times = replace(passes.direct(threads, limit), rest=passes.rest())
    try:
        with closing(runner(backbone)) as run:
            if isinstance(run, GraphRunner):
                return passes.replayed(run, step_times, limit)
            return step_times
    except WrongReplay as error:
        switch_off_graphs(backbone, error)
        return step_times


@dataclass(frozen=True)
class Passes:
    """The passes to time: of growing width, in the middle of `pictures` pictures."""

    backbone: Backbone
    pictures: int
    branches: int
    heads: DraftHeads | None

    @torch.inference_mode()
    def direct(self, threads: Iterable[int], limit: float) -> StepTimes:
        """The step times without graphs, with these numbers of threads, in some `limit` seconds."""
        with closing(EagerRunner(padded=self.backbone.device.type != "cpu")) as run:
            state = self._state(run)
            warm_up(partial(pass_ms, state), self._widths(state))
            return timed(partial(pass_ms, state), self._widths(state), threads, limit)

    @torch.inference_mode()
    def rest(self) -> float | None:
        """Milliseconds of a picture beside its passes; None on a card, which may lack the memory.
        """
        if self.backbone.device.type != "cpu":
            return None
        with closing(EagerRunner()) as run:
            state = self._state(run)
            codes = torch.zeros(1, self.backbone.grid.rows, self.backbone.grid.columns,
                                dtype=torch.long)
            # Once: the first picture waits, and every run corrects it (`note_rest`).
            return prefill_ms(state) / self.pictures + decode_ms(self.backbone, codes)

    @torch.inference_mode()
    def replayed(self, run: GraphRunner, step_times: StepTimes, limit: float) -> StepTimes:
        """The step times with the times of replays too. Raises WrongReplay if one is wrong."""
        state = self._state(run)
        replays, captures = replays_of(partial(pass_ms, state), self._widths(state), limit,
                                       lambda: bool(run.failure))
        return replace(step_times, replays=replays, captures=captures)

    def _widths(self, state: DecodeState) -> list[int]:
        return widths_of(state.slots, self.backbone.device.type)

    def _state(self, run: PassRunner) -> DecodeState:
        sampling = sampling_with(self.branches, self.backbone)
        prompts = [[0] * min(PROMPT, self.backbone.prompt_limit)] * (self.pictures * self.branches)
        state = DecodeState(self.backbone, prompts, self.pictures, sampling, self.heads, run=run)
        state.noise.hold()  # once a picture: no single pass may pay for it
        return state


def sampling_with(branches: int, backbone: Backbone) -> Sampling:
    """The backbone's own sampling, with or without guidance, as so many branches need it."""
    own = resolve_sampling(Sampling(), backbone.preset)
    if branches == 1:
        return replace(own, cfg=1.0)
    return own if own.cfg != 1 else replace(own, cfg=GUIDED)


def widths_of(slots: int, device: str) -> list[int]:
    """The widths to time, in cells; on a card up to the whole picture, while time is left."""
    if device == "cpu":
        return [cells for cells in CELLS if cells <= slots]
    return sorted({*(cells for cells in CARD_CELLS if cells <= slots), slots})


def warm_up(pass_of: Callable[[int], float], widths: Iterable[int]) -> None:
    """Run passes of growing width until they have taken WARM_UP seconds.

    Until the memory allocator has seen wide passes, it returns their memory to the system after
    each, and passes take up to 1.5 times as long as in a run.
    """
    spent = 0.0
    for cells in widths:
        if spent < WARM_UP:
            spent += pass_of(cells) / 1000


def timed(pass_of: Callable[[int], float], widths: Iterable[int], threads: Iterable[int],
          limit: float) -> StepTimes:
    """The least time of a few passes of each width with each number of threads.

    pass_of(cells): runs a pass and returns its milliseconds. limit: s after which no wider pass is
    started. Passes for which memory is too small are left out.
    """
    step_times, spent, expected = StepTimes({count: {} for count in threads}), 0.0, 0.0
    for cells in widths:
        for count in list(step_times.ms):
            if spent + expected > limit:
                return StepTimes({count: each for count, each in step_times.ms.items() if each})
            if free_now(count) < count:  # other programs need the cores
                del step_times.ms[count]
                continue
            try:
                with using_threads(count):
                    each = several(pass_of, cells)
            except torch.OutOfMemoryError:
                return StepTimes({count: each for count, each in step_times.ms.items() if each})
            step_times.ms[count][cells] = min(each)
            spent += sum(each) / 1000
        expected = 2 * max((each[cells] for each in step_times.ms.values()), default=0) / 1000
    return step_times


def replays_of(pass_of: Callable[[int], float], widths: Iterable[int], limit: float,
               failed: Callable[[], bool]) -> tuple[dict[int, float], dict[int, float]]:
    """The milliseconds of a replay, and what capturing takes beyond it; both by cells.

    The first pass of a width prepares a capture, the second captures and checks, later ones replay.
    failed: whether graphs were given up, so that what was timed last is no replay.
    """
    replays: dict[int, float] = {}
    captures: dict[int, float] = {}
    spent = expected = 0.0
    for cells in widths:
        if spent + expected > limit:
            break
        try:
            with warnings.catch_warnings():
                # "runs without graphs": a timing that fails changes no run
                warnings.simplefilter("ignore", RuntimeWarning)
                capturing = [pass_of(cells), pass_of(cells)]
                each = several(pass_of, cells)
        except torch.OutOfMemoryError:
            break
        if failed():
            break
        replays[cells] = min(each)
        captures[cells] = max(LEAST, sum(capturing) - len(capturing) * replays[cells])
        spent += (sum(capturing) + sum(each)) / 1000
        expected = 2 * (sum(capturing) + replays[cells]) / 1000
    return replays, captures


def several(pass_of: Callable[[int], float], cells: int) -> list[float]:
    """Milliseconds of up to REPEATS passes; the first only warms up, unless passes are long."""
    first = pass_of(cells)
    if first > TOO_LONG * 1000:
        return [first]
    each: list[float] = []
    while len(each) < 2 or (len(each) < REPEATS and sum(each) < EACH * 1000):
        each.append(pass_of(cells))
    return each


def pass_ms(state: DecodeState, cells: int) -> float:
    """Milliseconds of one pass in the middle of a picture.

    Of a single thread of a CPU they are its own: it may have waited for other programs.
    """
    start = min(state.slots // 2, state.slots - cells)
    state.clock, begun = Stopwatch(state.tokens.device), time.thread_time()
    cell_pass(state, start) if cells == 1 else window_pass(state, start, cells)
    own = time.thread_time() - begun
    state.clock.lap("verify")
    passed = sum(state.clock.seconds.values())
    single = state.tokens.device.type == "cpu" and torch.get_num_threads() == 1
    return 1000 * (min(own, passed) or passed if single else passed)


def prefill_ms(state: DecodeState) -> float:
    begun = time.perf_counter()
    state.prefill()
    return 1000 * (time.perf_counter() - begun)


def decode_ms(backbone: Backbone, codes: torch.Tensor) -> float:
    """Milliseconds of a picture's pixels; 0 of a backbone that has none."""
    begun = time.perf_counter()
    with suppress(NotImplementedError):
        backbone.decode(codes)
    return 1000 * (time.perf_counter() - begun)


def cell_pass(state: DecodeState, start: int) -> None:
    """Run a pass of AR."""
    state.sample(start)
    state.stale = start
    state.feed(start + 1)


def window_pass(state: DecodeState, start: int, cells: int) -> None:
    """Run a pass of `exact` whose pictures have different frontiers."""
    starts = [max(0, start - n % cells) for n in range(state.pictures)]
    state.frontier = PictureSlots(torch.tensor(starts, device=state.tokens.device), starts)
    window = Window(state, cells)
    entering_after(state, round(cells - cells**0.5)).fill(window)
    window.feed()
    resample(window)


def entering_after(state: DecodeState, cells: int) -> FirstGuess:
    """The drafter of `exact` when the first `cells` cells after the frontier have a token.

    About sqrt(width) cells enter a window in each pass (lab/benchmarks/results/exact.md: 576 cells
    in as many passes).
    """
    drafter = FirstGuess(state, by_row=False)
    drafter.guessed = state.frontier.plus(cells)
    return drafter


def step_times_of(backbone: Backbone, pictures: int, branches: int, heads: DraftHeads | None = None,
                  device: torch.device | None = None) -> StepTimes | None:
    """The stored step times, timed now if that helps; None if nothing is known.

    Nothing is timed while a picture is drawn or while the backbone is on another device. Step times
    is timed until there are TIMINGS that no other program disturbed; none follows at once on
    another.
    """
    stored = backbone.estimates.step_times
    key = key_of(backbone, pictures, branches, heads is not None, device)
    step_times = stored.entries.get(key)
    here = device in (None, backbone.device) and backbone.sha256
    most = most_threads() if backbone.device.type == "cpu" else 1
    if switched_off() or not here or drawing() or not worth_timing(stored, key, most):
        return step_times
    stored.timed_at[key] = time.monotonic()
    before = cores_held()
    new = measured(backbone, pictures, branches, heads, (1, most) if most > 1 else (1,))
    if new is None:
        return step_times
    step_times = (step_times or StepTimes()).timed_again(new, alone=not (before or cores_held()))
    stored.put(key, step_times)
    if len(step_times.ms) > 1:
        keep_waiting(step_times, most)
    return step_times


def worth_timing(stored: StoredStepTimes, key: str, most: int) -> bool:
    """Whether another timing could tell more than is known."""
    step_times = stored.entries.get(key)
    if step_times is None or not step_times.ms:
        return True
    known = sum(map(bool, step_times.timings)) >= TIMINGS and most in step_times.ms
    lately = time.monotonic() - stored.timed_at.get(key, -APART) < APART
    return not (known or lately) and (most in step_times.ms or free_now(most) >= most)


def note_step_times(backbone: Backbone, method: Method, heads: bool, sampling: Sampling,
                    pictures: int, stats: Mapping, graphs: bool = True) -> None:
    """Include a finished run's passes in the stored step times.

    Uses only methods whose passes do what is measured, and runs with a constant number of threads.
    graphs: whether passes were replayed where they can be.
    """
    if not isinstance(method, AR | Exact | Rolling) or method.needs_row_drafter():
        return
    threads = stats["threads"]
    if len(threads) != 1 or not backbone.sha256 or switched_off():
        return
    decoding = sum(stats["seconds"][stage] for stage in ("draft", "verify", "commit"))
    ar = isinstance(method, AR)
    cells = 1 if ar else method.for_device(
        backbone.grid, backbone.device.type).pass_width(backbone.grid)
    count = threads[0] if backbone.device.type == "cpu" else 1
    branches = 1 if resolve_sampling(sampling, backbone.preset).cfg == 1 else 2
    passes = max(1, stats["passes"] - 1)
    share = stats["captured"] / passes if graphs and not graphs_off_reason_of(backbone) else None
    backbone.estimates.step_times.note(key_of(backbone, pictures, branches, heads), count, cells,
                                       1000 * decoding / passes, share)


def note_rest(backbone: Backbone, heads: bool, branches: int, pictures: int,
              stats: Mapping, pixels: float) -> None:
    """Include what a finished run took beside its passes; pixels: the seconds of a picture's."""
    if backbone.sha256 and not switched_off() and not stats["captured"]:
        prefill = stats["seconds"]["prefill"] / pictures
        backbone.estimates.step_times.note_rest(key_of(backbone, pictures, branches, heads),
                                                1000 * (prefill + pixels))


def captures_of(backbone: Backbone) -> int:
    """How many graphs a first run captures of its usual pass: one for each number of keys that it
    reads.
    """
    slots = rounded(backbone.prompt_limit + backbone.grid.slots + 1, KEYS)
    return len({rounded_keys(stop, slots) for stop in range(KEYS, slots + 1, KEYS)})


def keep_waiting(step_times: StepTimes, most: int) -> None:
    """Store for the program's next start whether spinning threads are faster (openmp.py)."""
    folder, both = cache_folder(), [step_times.ms[count] for count in (1, most)]
    if folder is None or openmp.WAITING == openmp.OWN:
        return
    widths = [cells for cells in both[0] if cells in both[1]]
    single, all_ = (sum(each[cells] for cells in widths) for each in both)
    stored = StateFile[dict[str, dict[str, float]]](folder / openmp.FILE, openmp.parsed, dict, dict)
    with suppress(SSDError):
        stored.change(lambda known: {**known, openmp.WAITING: {"one": float(single),
                                                             "all": float(all_)}})
