"""What runs took on this machine: the last pictures by kind of run, and the time of a pass.

`Estimates` holds both for the backbones of a program. A host names the folder where they are
stored; without one they stay in memory. Only hashes, counts and times are stored.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from ..errors import SSDError
from ..state_files import StateFile

MOST_KEYS = 64  # entries in a file
LAST = 64  # pictures that are kept of each kind of run
STEP = 1.2  # the most that a new timing lowers a figure, so that no plan jumps
UP, DOWN = 1.05, 1.1  # the most that one run raises or lowers figures; other programs only slow it
TIMINGS = 2  # that must agree before another method is taken

Entry = TypeVar("Entry")


class StoredFigures(Generic[Entry]):
    """Figures by key, and their file; when full, the least recently updated key goes.

    folder: where they are loaded from, now, and saved to; None: they are not. An unreadable file
    counts as empty.
    """

    file: ClassVar[str]

    def __init__(self, folder: str | Path | None = None) -> None:
        self.stored = None if folder is None else StateFile[dict[str, Entry]](
            Path(folder) / self.file,
            lambda raw: {key: self.parsed(entry) for key, entry in raw.items()}, dict,
            lambda entries: {key: self.to_json(entry) for key, entry in entries.items()})
        self.entries = {} if self.stored is None else self.stored.read()

    def parsed(self, raw: Any) -> Entry:
        """The entry that `to_json` returned; raises ValueError for impossible values."""
        raise NotImplementedError

    def to_json(self, entry: Entry) -> Any:
        """The entry as values that JSON can store."""
        return entry

    def put(self, key: str, entry: Entry) -> None:
        self.change(key, lambda _: entry)

    def change(self, key: str, changed: Callable[[Entry | None], Entry]) -> None:
        """Replace an entry, beside those that other programs store; a failure to write is ignored.
        """
        def with_change(entries: dict[str, Entry]) -> dict[str, Entry]:
            entry = changed(entries.get(key))
            others = [other for other in entries.items() if other[0] != key]
            return dict([*others, (key, entry)][-MOST_KEYS:])

        if self.stored is not None:
            with suppress(SSDError):
                self.entries = self.stored.change(with_change)
                return
        self.entries = with_change(self.entries)


@dataclass(frozen=True)
class DrawnPicture:
    """What one picture took.

    when: seconds since 1970. heads: the beginning of the draft heads' sha256, "" without them.
    place: a hash of the device and its arithmetic. seconds: its share of its run, without pixels.
    acceptance: the share of first drafts that the model kept; None if there were none.
    """

    when: int
    heads: str
    place: str
    passes: float
    seconds: float
    acceptance: float | None = None


class StoredPictures(StoredFigures[list[DrawnPicture]]):
    """The last pictures of each kind, the latest last, by the keys of engine/own_runs.py."""

    file = "drawn_pictures.json"

    def parsed(self, raw: Any) -> list[DrawnPicture]:
        pictures = [DrawnPicture(*each) for each in raw[-LAST:]]
        if not pictures or not all(
                0 < each.passes < 1e6 and 0 <= each.seconds < 1e7 and each.when >= 0
                and 0 <= (each.acceptance or 0) <= 1 and isinstance(each.heads, str)
                and isinstance(each.place, str) for each in pictures):
            raise ValueError(raw)
        return pictures

    def to_json(self, entry: list[DrawnPicture]) -> Any:
        return [list(astuple(each)) for each in entry]

    def add(self, key: str, pictures: list[DrawnPicture]) -> None:
        """Include the pictures of a run, beside those that other programs have added."""
        self.change(key, lambda known: [*(known or []), *pictures][-LAST:])


@dataclass
class StepTimes:
    """ms: milliseconds of a pass without graphs, by number of threads and by cells.

    replays: milliseconds of a pass that is replayed as CUDA graphs, by cells; captures: those that
    capturing it takes beyond a replay. Both are empty where passes are not replayed. rest: those of
    a picture beside its passes: the prompt is read, pixels are decoded. timings: `ms` of the last
    timings, each as it was, {} of one that other programs disturbed; none if known from runs alone.
    """

    ms: dict[int, dict[int, float]] = field(default_factory=dict)
    replays: dict[int, float] = field(default_factory=dict)
    captures: dict[int, float] = field(default_factory=dict)
    rest: float | None = None
    timings: list[dict[int, dict[int, float]]] = field(default_factory=list)

    # As plans are made from it

    def of(self, cells: int, threads: int) -> float | None:
        """Milliseconds of a pass over `cells` cells; None if too little is known.

        Interpolates linearly between known widths, and extrapolates beyond the widest. Between the
        known numbers of threads the time is linear in 1 / threads.
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
        """The faster of one and `most` threads, as (milliseconds, number of threads)."""
        options = [(ms, count) for count in {1, most} if (ms := self.of(cells, count)) is not None]
        return min(options, default=None)

    def replayed(self, cells: int, share: float) -> float | None:
        """Milliseconds of a pass replayed as graphs; None if too little is known.

        share: captures per pass of the run, whose time is included.
        """
        replay, capture = on_line(self.replays, cells), on_line(self.captures, cells)
        return None if replay is None or capture is None else replay + share * capture

    @property
    def widest(self) -> int:
        """The cells of the widest pass with a known time."""
        return max((cells for each in self.ms.values() for cells in each), default=0)

    @property
    def separate(self) -> list[StepTimes]:
        """The last timings, each as step times of its own."""
        return [replace(self, ms=ms, timings=[]) for ms in self.timings]

    # As it becomes known

    def timed_again(self, new: StepTimes, alone: bool = True) -> StepTimes:
        """These step times after another timing: the least of each time, at most STEP lower.

        alone: no other program held the cores meanwhile; otherwise the timing counts as no timing.
        """
        ms = {count: dict(each) for count, each in self.ms.items()}
        for count, each in new.ms.items():
            for cells, value in each.items():
                ms.setdefault(count, {})[cells] = self._lowered(count, cells, value)
        return StepTimes(ms, lowered(self.replays, new.replays),
                         lowered(self.captures, new.captures), least(self.rest, new.rest),
                         [*filter(None, self.timings), new.ms if alone else {}][-TIMINGS:])

    def _lowered(self, count: int, cells: int, value: float) -> float:
        if (known := self.of(cells, count)) is not None:
            return min(known, max(value, known / STEP))
        others = [ms for other in self.ms if (ms := self.of(cells, other)) is not None]
        return max(value, min(others) / STEP) if others else value

    def after_run(self, expected: float, ms: float, replayed: bool) -> StepTimes:
        """These step times after a run whose passes took `ms` instead of `expected` ms."""
        ratio = moved(expected, ms) / expected
        if replayed:
            return replace(self, replays=scaled(self.replays, ratio),
                           captures=scaled(self.captures, ratio))
        return replace(self, ms={count: scaled(each, ratio) for count, each in self.ms.items()})


def moved(known: float, seen: float) -> float:
    """A figure after a run: slow runs raise it little, since other programs may have slowed them.
    """
    return min(max(seen, known / DOWN), known * UP)


def scaled(figures: dict[int, float], ratio: float) -> dict[int, float]:
    return {cells: ratio * value for cells, value in figures.items()}


def lowered(known: dict[int, float], new: dict[int, float]) -> dict[int, float]:
    """The least of both figures by cells, at most STEP below the known one."""
    return {**known, **{cells: least(known.get(cells), value) for cells, value in new.items()}}


def least(known: Any, new: Any) -> Any:
    """The lesser of two figures, at most STEP below the known one; None is no figure."""
    if known is None or new is None:
        return new if known is None else known
    return min(known, max(new, known / STEP))


def on_line(known: dict[int, float], cells: int) -> float | None:
    """The value at `cells` on the line through the nearest known points."""
    widths = sorted(known)
    if cells in known or len(widths) < 2 or cells < widths[0]:
        return known.get(cells)
    right = min(max(bisect(widths, cells), 1), len(widths) - 1)
    a, b = widths[right - 1], widths[right]
    return known[a] + max(0.0, known[b] - known[a]) * (cells - a) / (b - a)


class StoredStepTimes(StoredFigures[StepTimes]):
    """Step times of backbones that were measured or ran, by the keys of step_times.py."""

    file = "step_times.json"

    def __init__(self, folder: str | Path | None = None) -> None:
        self.timed_at: dict[str, float] = {}  # by time.monotonic(), in this process
        super().__init__(folder)

    def parsed(self, raw: Any) -> StepTimes:
        rest = raw["rest"]
        return StepTimes(by_threads(raw["ms"]), by_cells(raw["replays"]), by_cells(raw["captures"]),
                         None if rest is None else positive(rest),
                         [by_threads(each) for each in raw["timings"]][-TIMINGS:])

    def to_json(self, entry: StepTimes) -> Any:
        return asdict(entry)

    def note(self, key: str, threads: int, cells: int, ms: float,
             share: float | None = None) -> None:
        """Include the time of a run's passes.

        share: of `StepTimes.replayed`, for a run whose passes were replayed; what is unknown of
        these stays so, because a run alone does not tell replays from captures.
        """
        step_times = self.entries.get(key, StepTimes())
        expected = step_times.of(cells, threads) if share is None else step_times.replayed(cells,
                                                                                           share)
        if expected is not None:
            self.put(key, step_times.after_run(expected, ms, share is not None))
        elif share is None:
            ms_ = {**step_times.ms, threads: {**step_times.ms.get(threads, {}), cells: ms}}
            self.put(key, replace(step_times, ms=ms_))

    def note_rest(self, key: str, ms: float) -> None:
        """Include what a picture took beside its passes."""
        step_times = self.entries.get(key)
        if step_times is not None:
            self.put(key, replace(step_times, rest=ms if step_times.rest is None
                                  else moved(step_times.rest, ms)))


def by_threads(raw: Any) -> dict[int, dict[int, float]]:
    """Milliseconds by number of threads and by cells, from JSON."""
    return {int(count): by_cells(each) for count, each in raw.items()}


def by_cells(raw: Any) -> dict[int, float]:
    """Milliseconds by cells, from JSON."""
    return {int(cells): positive(value) for cells, value in raw.items()}


def positive(value: Any) -> float:
    """Convert to milliseconds; raises ValueError for impossible values."""
    if not 0 < (ms := float(value)) < 1e7:
        raise ValueError(value)
    return ms


class StoredWindows(StoredFigures[int]):
    """The cells of a budget's pass by card and model; an entry never changes (tuning.py)."""

    file = "windows.json"

    def parsed(self, raw: Any) -> int:
        if not isinstance(raw, int) or not 0 < raw < 1e5:
            raise ValueError(raw)
        return raw


@dataclass(eq=False)
class Estimates:
    """The figures of a program, for the choices and plans of its later runs."""

    pictures: StoredPictures = field(default_factory=StoredPictures)
    step_times: StoredStepTimes = field(default_factory=StoredStepTimes)
    windows: StoredWindows = field(default_factory=StoredWindows)

    @property
    def folder(self) -> Path | None:
        """Where they are stored; None: nowhere."""
        stored = self.step_times.stored
        return None if stored is None else stored.path.parent

    @classmethod
    def stored_in(cls, folder: str | Path | None) -> Estimates:
        """Figures that are loaded from this folder and saved there; None: in memory only."""
        return cls(StoredPictures(folder), StoredStepTimes(folder), StoredWindows(folder))
