"""Milliseconds of a pass by the cells it takes, on this machine: measured once, then kept.

A pass is what a method pays for one: feed the cells, compute their probabilities, choose tokens.
Short passes are measured in less than a second, before anything is drawn; of long ones only what
runs took is known. A run that takes half as long again as the figures say, or less than two thirds,
makes them forgotten, so that they are measured anew. Knows no host.
"""

from __future__ import annotations

import json
import os
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from .. import openmp
from ..backbones.base import Backbone
from ..backbones.presets import resolve_sampling
from ..errors import SSDError
from ..files import written_whole
from ..kept_files import cache_folder, switched_off
from ..model.processor import processor
from ..model.sampling import Sampling
from .clock import Stopwatch
from .graphs import runner
from .heads import DraftHeads
from .kept import MOST_KEYS, Kept, drop_oldest
from .methods import AR, Exact, Method, Rolling
from .methods.exact import FirstGuess, rechoose
from .methods.window import Window
from .state import DecodeState
from .threads import drawing, free_now, using_threads

FILE = "pace.json"
CELLS, CARD_CELLS = (1, 8, 16, 24, 48, 96), (1, 8, 16, 24, 48, 96, 192)
AT_MOST, EACH, REPEATS = 0.9, 0.03, 5  # s of a whole measurement and of a width; passes of a width
READS = 8e9  # bytes of weights that a CPU reads in a second: a bound for what is worth trying
TOO_LONG = 0.1  # s of one pass
PROMPT = 32  # tokens
CONTRADICTED = 1.5


@dataclass
class Pace:
    """ms: milliseconds by number of threads and by cells."""

    ms: dict[int, dict[int, float]] = field(default_factory=dict)

    def of(self, cells: int, threads: int) -> float | None:
        """Milliseconds of a pass over so many cells; None if too little is known.

        Between two known widths it is on their line, and beyond the widest on the last one. With a
        number of threads between the known ones, each further thread takes over its share.
        """
        if threads in self.ms:
            return on_line(self.ms[threads], cells)
        fewest, most = min(self.ms, default=1), max(self.ms, default=1)
        if not fewest < threads < most:
            return None
        slow, fast = self.of(cells, fewest), self.of(cells, most)
        share = (1 / fewest - 1 / threads) / (1 / fewest - 1 / most)
        return None if slow is None or fast is None else slow + share * (fast - slow)

    def best(self, cells: int, most: int) -> tuple[float, int] | None:
        """Milliseconds and number of threads that is faster: one, or `most`."""
        found = [(ms, count) for count in {1, most} if (ms := self.of(cells, count)) is not None]
        return min(found, default=None)

    @property
    def widest(self) -> int:
        """The widest pass that is known."""
        return max((cells for each in self.ms.values() for cells in each), default=0)


def on_line(known: dict[int, float], cells: int) -> float | None:
    """The value at `cells` of a line through the known points beside it."""
    widths = sorted(known)
    if cells in known or len(widths) < 2 or cells < widths[0]:
        return known.get(cells)
    right = min(max(bisect(widths, cells), 1), len(widths) - 1)
    a, b = widths[right - 1], widths[right]
    return known[a] + max(0.0, known[b] - known[a]) * (cells - a) / (b - a)


class Paces(Kept):
    """The pace of every backbone that was measured or ran, by `key_of`."""

    file = FILE

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, Pace] = {}

    def load(self, raw: dict) -> None:
        for key, ms in list(raw.items())[-MOST_KEYS:]:
            self.known[str(key)] = Pace({int(count): {int(cells): positive(one)
                                                      for cells, one in each.items()}
                                         for count, each in ms.items()})

    def to_json(self) -> dict:
        return {key: pace.ms for key, pace in self.known.items()}

    def put(self, key: str, pace: Pace) -> None:
        self.known.pop(key, None)
        self.known[key] = pace
        drop_oldest(self.known)
        self.save()

    def forget(self, key: str) -> None:
        del self.known[key]
        self.save()

    def note(self, key: str, threads: int, cells: int, ms: float) -> None:
        """What a pass of a run took: fills a gap, or makes figures forgotten that it contradicts.
        """
        pace = self.known.get(key, Pace())
        told = pace.of(cells, threads)
        if told is None:
            pace.ms.setdefault(threads, {})[cells] = ms
            self.put(key, pace)
        elif not told / CONTRADICTED <= ms <= told * CONTRADICTED:
            self.forget(key)


def positive(value: Any) -> float:
    """A number of milliseconds; ValueError for what cannot be one."""
    if not 0 < (ms := float(value)) < 1e7:
        raise ValueError(value)
    return ms


OWN = Paces()


def key_of(backbone: Backbone, pictures: int, branches: int, heads: bool,
           device: torch.device | None = None) -> str:
    """What a pace holds for. device: where the backbone will draw, if it is elsewhere now."""
    from .. import __version__

    waiting = os.environ.get(openmp.VARIABLE) or openmp.WAITING
    return " / ".join((device_name(device or backbone.device), backbone.sha256[:16],
                       str(backbone.grid), arithmetic(backbone),
                       f"{pictures}x{branches}{' with heads' * heads}", waiting,
                       __version__, torch.__version__))


def device_name(device: torch.device) -> str:
    if device.type == "cuda" and torch.cuda.is_available():
        return torch.cuda.get_device_name(device)
    return f"{device.type} {processor()} {os.cpu_count()}"


def arithmetic(backbone: Backbone) -> str:
    """The dtype of what is computed and the kind and dtype of the matrices."""
    matrix = backbone.decoder.layers[0].qkv
    return f"{backbone.dtype} {type(matrix).__name__} {getattr(matrix, 'dtype', '')}"


# Measuring


def measured(backbone: Backbone, pictures: int, branches: int, heads: DraftHeads | None,
             threads: Iterable[int], limit: float = AT_MOST) -> Pace | None:
    """Time passes with these numbers of threads; None if they are too long to be tried."""
    device, weights = backbone.device, backbone.decoder.parameters()
    bytes_read = sum(one.numel() * one.element_size() for one in weights)
    if device.type == "meta" or device.type == "cpu" and bytes_read > TOO_LONG * READS:
        return None
    sampling = resolve_sampling(Sampling(), backbone.preset)
    prompts = [[0] * min(PROMPT, backbone.prompt_limit)] * (pictures * branches)
    with torch.inference_mode():
        state = DecodeState(backbone, prompts, pictures, sampling, heads, run=runner(backbone))
        with closing(state.run):
            widths = [n for n in (CELLS if device.type == "cpu" else CARD_CELLS)
                      if n <= state.slots]
            return timed(lambda cells: pass_ms(state, cells), widths, threads, limit)


def timed(pass_of: Callable[[int], float], widths: Iterable[int], threads: Iterable[int],
          limit: float) -> Pace:
    """The median of a few passes of each width in turn, with each number of threads in turn.

    pass_of(cells): milliseconds of a pass. limit: s after which no wider pass is begun.
    """
    pace, spent, expected = Pace({count: {} for count in threads}), 0.0, 0.0
    for cells in widths:
        for count in list(pace.ms):
            if spent + expected > limit:
                return Pace({count: each for count, each in pace.ms.items() if each})
            if free_now(count) < count:  # other programs have begun to compute
                del pace.ms[count]
                continue
            with using_threads(count):
                each = several(pass_of, cells)
            pace.ms[count][cells] = sorted(each)[len(each) // 2]
            spent += sum(each) / 1000
        expected = 2 * max((each[cells] for each in pace.ms.values()), default=0) / 1000
    return pace


def several(pass_of: Callable[[int], float], cells: int) -> list[float]:
    """Milliseconds of up to REPEATS passes, after one that only prepares if passes are short."""
    first = pass_of(cells)
    each = [first] if first > EACH * 1000 else []
    while len(each) < REPEATS and sum(each) < EACH * 1000:
        each.append(pass_of(cells))
    return each


def pass_ms(state: DecodeState, cells: int) -> float:
    """Milliseconds of one pass in the middle of a picture."""
    start = min(state.slots // 2, state.slots - cells)
    state.clock = Stopwatch(state.tokens.device)
    one_cell(state, start) if cells == 1 else a_window(state, start, cells)
    state.clock.lap("verify")
    return 1000 * sum(state.clock.seconds.values())


def one_cell(state: DecodeState, start: int) -> None:
    """A pass of AR."""
    state.choose(start)
    state.stale = start
    state.feed(start + 1)


def a_window(state: DecodeState, start: int, cells: int) -> None:
    """A pass of `exact`, whose pictures have come to different cells."""
    starts = [max(0, start - n % cells) for n in range(state.pictures)]
    frontier = torch.tensor(starts, device=state.tokens.device)
    state.front = starts
    window = Window(state, 0, frontier, cells)
    entering_after(state, frontier, round(cells - cells**0.5)).fill(window)
    window.feed()
    rechoose(window)


def entering_after(state: DecodeState, frontier: torch.Tensor, cells: int) -> FirstGuess:
    """The drafter of `exact` when so many cells behind the frontier have a token.

    About as many cells enter a window as the square root of its width (benchmarks/results/exact.md:
    576 cells in as many passes).
    """
    guess = FirstGuess(state, by_row=False)
    guess.guessed, guess.known_guessed = frontier + cells, [one + cells for one in state.front]
    return guess


def pace_of(backbone: Backbone, pictures: int, branches: int, heads: DraftHeads | None = None,
            device: torch.device | None = None) -> Pace | None:
    """The kept pace, or else one measured now if that is possible; None: nothing is known.

    Nothing is measured while a picture is drawn, or while the backbone is elsewhere.
    """
    key = key_of(backbone, pictures, branches, heads is not None, device)
    pace = OWN.known.get(key)
    here = device in (None, backbone.device) and backbone.sha256
    most = torch.get_num_threads() if backbone.device.type == "cpu" else 1
    if pace is not None and most in pace.ms or switched_off() or not here or drawing():
        return pace
    if pace is not None and free_now(most) < most:  # with all threads it will be measured later
        return pace
    new = measured(backbone, pictures, branches, heads, (1, most) if most > 1 else (1,))
    if new is None:
        return pace
    OWN.put(key, new)
    if len(new.ms) > 1:
        keep_waiting(new, most)
    return new


def note_pace(backbone: Backbone, method: Method, heads: bool, sampling: Sampling,
              pictures: int, stats: Mapping) -> None:
    """Compare a finished run's own passes with the kept pace, or fill it.

    Only methods that pay for a pass what is measured count, and runs that kept one number of
    threads.
    """
    if not isinstance(method, AR | Exact | Rolling) or method.needs_row_drafter():
        return
    threads = stats["threads"]
    if len(threads) != 1 or not backbone.sha256 or switched_off():
        return
    decoding = sum(stats["seconds"][stage] for stage in ("draft", "verify", "commit"))
    ar = isinstance(method, AR)
    cells = 1 if ar else method.widest_pass(backbone.grid, backbone.device.type)
    count = threads[0] if backbone.device.type == "cpu" else 1
    branches = 1 if resolve_sampling(sampling, backbone.preset).cfg == 1 else 2
    OWN.note(key_of(backbone, pictures, branches, heads), count, cells,
             1000 * decoding / max(1, stats["passes"] - 1))




def keep_waiting(pace: Pace, most: int) -> None:
    """Tell the program's next start whether threads that spin are worth it (openmp.py)."""
    folder, both = cache_folder(), [pace.ms[count] for count in (1, most)]
    if folder is None or openmp.WAITING == openmp.OWN:
        return
    widths = [cells for cells in both[0] if cells in both[1]]
    one, all_ = (sum(each[cells] for cells in widths) for each in both)
    with suppress(SSDError, OSError), written_whole(folder / openmp.FILE) as temporary:
        temporary.write_text(json.dumps(
            {**openmp.kept(), openmp.WAITING: {"one": one, "all": all_}}), encoding="utf-8")
