"""Several methods on one prompt and seed: which can run, what they took, and one sheet of all.

Hosts that show progress follow the runs themselves; `compare` is for scripts. Knows no host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from PIL import Image

from ..backbones.base import Backbone
from ..engine.events import Event
from ..engine.heads import DraftHeads
from ..engine.methods import AR, METHODS, Method
from ..errors import SSDError
from ..model.sampling import Sampling
from ..weights.figures import stored_dtype
from .labels import percent
from .recipe import to_bytes
from .request import Request, Result, compare_with_ar
from .sheet import Tile, contact_sheet

Watch = Callable[[str, Event], None]
HEAD = ("method", "verdict", "passes", "fewer", "seconds", "speed", "same as AR")


def every_method() -> dict[str, Method]:
    """All methods at their own settings, by name."""
    return {name: kind() for name, kind in METHODS.items()}


def able(methods: Mapping[str, Method], request_of: Callable[[Method], Request]
         ) -> tuple[dict[str, Request], list[str]]:
    """The requests of the methods that can run, and lines about those that cannot, with the reason.

    Raises SSDError if not even AR can run: then something else than the method is wrong.
    """
    request_of(AR()).check()
    requests: dict[str, Request] = {}
    reasons: dict[str, list[str]] = {}
    for label, method in methods.items():
        request, reason = attempt(request_of, method)
        if request is None:
            reasons.setdefault(reason.removeprefix(f"method {method.name} "), []).append(label)
        else:
            requests[label] = request
    return requests, [f"left out: {', '.join(labels)} ({reason})"
                      for reason, labels in reasons.items()]


def attempt(request_of: Callable[[Method], Request], method: Method
            ) -> tuple[Request | None, str]:
    """The request of a method if it can run, else None and the reason."""
    try:
        request = request_of(method)
        request.check()
    except SSDError as error:
        return None, str(error)
    return request, ""


@dataclass
class Contest:
    """The finished runs of several methods for one prompt and seed, by label.

    left_out: lines about methods that could not run.
    """

    results: dict[str, Result]
    left_out: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        compare_with_ar(list(self.results.values()))

    def sheet(self) -> Image.Image:
        """The first picture of every method with what was measured."""
        return sheet_of(list(self.results.values()), labels=list(self.results),
                        notes=self.left_out)

    def rows(self) -> list[dict[str, str]]:
        """One row per method: the texts of a table's cells by the headings in HEAD."""
        return rows_of(list(self.results.values()), list(self.results))

    def table(self) -> str:
        """The same as lines of text in columns."""
        return table_of(list(self.results.values()), list(self.results), self.left_out)


def compare(backbone: Backbone, prompt: str, methods: Mapping[str, Method] | None = None,
            heads: DraftHeads | None = None, sampling: Sampling = Sampling(),  # noqa: B008
            negative: str | None = None, size: tuple[int, int] | None = None,
            watch: Watch = lambda label, event: None) -> Contest:
    """Draw one prompt and seed with several methods, one after the other.

    methods: by label; None: all methods at their own settings, except those that cannot run here.
    watch(label, event) is called with every event.
    """
    def request_of(method: Method) -> Request:
        return Request(backbone, heads, method, sampling, prompt, negative, size, fall_back=False)

    left_out: list[str] = []
    if methods is None:
        requests, left_out = able(every_method(), request_of)
    else:
        requests = {label: request_of(method) for label, method in methods.items()}
    for request in requests.values():
        request.check()  # before any of them runs
    return Contest({label: request.run(partial(watch, label))
                    for label, request in requests.items()}, left_out)


# What is said of finished runs


def sheet_of(results: Sequence[Result], pictures: Sequence[np.ndarray] | None = None,
             labels: Sequence[str] | None = None, notes: Sequence[str] = ()) -> Image.Image:
    """One labelled sheet of runs for the same prompt.

    pictures: the first one of every run, uint8 [H, W, 3]; None: decode them. labels: shown
    instead of the methods with their knobs.
    """
    drawn = pictures or [to_bytes(next(one.pictures())) for one in results]
    seconds = ar_seconds(results)
    tiles = [tile(*shown, seconds) for shown in zip(results, drawn, labels or [""] * len(results),
                                                    strict=True)]
    first = results[0].request
    return contact_sheet(tiles, first.prompt, conditions(first), notes)


def rows_of(results: Sequence[Result], labels: Sequence[str] | None = None
            ) -> list[dict[str, str]]:
    """One row per run: the texts of a table's cells by the headings in HEAD."""
    seconds = ar_seconds(results)
    labels = labels or [one.request.label for one in results]
    return [cells(label, one, seconds) for label, one in zip(labels, results, strict=True)]


def table_of(results: Sequence[Result], labels: Sequence[str] | None = None,
             notes: Sequence[str] = ()) -> str:
    """The same as lines of text in columns, with notes below them."""
    rows = (tuple(row.values()) for row in rows_of(results, labels))
    return "\n".join([*columns([HEAD, *rows]), *notes])


def ar_seconds(results: Iterable[Result]) -> float | None:
    """What AR took among these runs; None if it did not run."""
    return next((one.measured["seconds"]["total"] for one in results if is_ar(one)), None)


def tile(result: Result, picture: np.ndarray, label: str, beside: float | None) -> Tile:
    """A run's picture, uint8 [H, W, 3], with its words.

    label: shown instead of the method's own, if not empty. beside: what AR took.
    """
    row, own = cells("", result, beside), result.request.label
    lines = ["" if label in ("", own) else own.removeprefix(label).strip(),
             f"{row['passes']} passes" + (f", {row['fewer']} fewer" if row["fewer"] else ""),
             f"{row['seconds']} s" + (f", {row['speed']} as fast" if row["speed"] else ""),
             f"{row['same as AR']} of tokens are AR's" if row["same as AR"] else ""]
    chip = "AR itself" if is_ar(result) else result.verdict
    return Tile(picture, label or own, chip, tuple(filter(None, lines)))


def cells(label: str, result: Result, beside: float | None) -> dict[str, str]:
    """The texts of one table row; empty where nothing was measured or for AR itself."""
    stats, seconds = result.measured, result.measured["seconds"]["total"]
    fewer = "" if is_ar(result) else times(stats["step_acceleration"])
    speed = "" if is_ar(result) or beside is None else times(beside / max(seconds, 1e-9))
    same = "" if is_ar(result) or result.share is None else percent(result.share)
    return dict(zip(HEAD, (label, result.verdict, str(stats["passes"]), fewer, f"{seconds:.2f}",
                           speed, same), strict=True))


def is_ar(result: Result) -> bool:
    return isinstance(result.request.method, AR)


def times(factor: float) -> str:
    return f"{factor:.1f}x"  # Pillow's font has no ×


def conditions(request: Request) -> str:
    """What all pictures of a contest have in common, for below its title."""
    sampling, module = request.sampling, request.backbone
    return (f"{module.name}, seed {sampling.seed}, guidance {sampling.cfg:g}, temperature "
            f"{sampling.temperature:g}, {stored_dtype(module)} on "
            f"{module.device.type}")


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines whose cells stand below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows]
