"""Compare several methods on the same prompt and seed: a table of measurements and a sheet.

Hosts that show progress run the requests themselves; `compare` is for scripts. Knows no host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from PIL import Image

from ..arguments import checked
from ..backbones.base import Backbone
from ..engine.events import Event
from ..engine.heads import DraftHeads
from ..engine.methods import AR, METHODS, Method
from ..errors import SSDError
from ..model.sampling import Sampling
from ..output.drawing import Drawing
from ..output.guarantees import identical_share
from ..output.labels import percent
from ..output.recipe import to_bytes
from ..output.sheet import Tile, contact_sheet
from ..weights.model_size import stored_dtype
from .request import Request, Result

OnEvent = Callable[[str, Event], None]
HEAD = ("method", "guarantee", "passes", "fewer", "seconds", "speed", "same as AR")


def every_method() -> dict[str, Method]:
    """All methods at their own settings, by name."""
    return {name: method() for name, method in METHODS.items()}


def checked_requests(methods: Mapping[str, Method] | None,
                     request_of: Callable[[Method], Request]
                     ) -> tuple[dict[str, Request], list[str]]:
    """Checked requests by label, and lines about methods that are left out, with the reason.

    methods: None: those of `every_method` that can run here. Raises SSDError if one of `methods`
    cannot run.
    """
    if methods is None:
        return runnable(every_method(), request_of)
    requests = {label: request_of(method) for label, method in methods.items()}
    for request in requests.values():
        request.check()
    return requests, []


def runnable(methods: Mapping[str, Method], request_of: Callable[[Method], Request]
             ) -> tuple[dict[str, Request], list[str]]:
    """The requests of the methods that can run, and lines about those that cannot, with the reason.

    Raises SSDError if even AR cannot run, since the cause is then not the method.
    """
    request_of(AR()).check()
    requests: dict[str, Request] = {}
    reasons: dict[str, list[str]] = {}
    for label, method in methods.items():
        request = attempt(request_of, method)
        if isinstance(request, SSDError):
            reason = str(request).removeprefix(f"method {method.name} ")
            reasons.setdefault(reason, []).append(label)
        else:
            requests[label] = request
    return requests, [f"left out: {', '.join(labels)} ({reason})"
                      for reason, labels in reasons.items()]


def attempt(request_of: Callable[[Method], Request], method: Method) -> Request | SSDError:
    """The request of a method, or the error if it cannot run."""
    try:
        request = request_of(method)
        request.check()
    except SSDError as error:
        return error
    return request


@dataclass
class Comparison:
    """The finished runs of several methods for one prompt and seed, by label.

    left_out: lines about methods that could not run. show_labels: whether sheet and table show the
    labels, or every method with its knobs.
    """

    results: dict[str, Result]
    left_out: list[str] = field(default_factory=list)
    show_labels: bool = True

    def __post_init__(self) -> None:
        compare_with_ar(list(self.results.values()))

    @classmethod
    def of(cls, results: Iterable[Result], left_out: Iterable[str] = ()) -> Comparison:
        """Runs without labels; two may be of the same method."""
        return cls({str(n): result for n, result in enumerate(results)}, list(left_out),
                   show_labels=False)

    def sheet(self, pictures: Sequence[np.ndarray] | None = None) -> Image.Image:
        """One labelled sheet with the first picture of every method and what was measured.

        pictures: uint8 [H, W, 3]; None: decode them.
        """
        drawn = pictures or [to_bytes(next(result.pictures()).pixels)
                             for result in self.results.values()]
        tiles = [self.tile(label, picture)
                 for label, picture in zip(self.results, drawn, strict=True)]
        first = next(iter(self.results.values())).request
        return contact_sheet(tiles, first.prompt, conditions(first), self.left_out)

    def rows(self) -> list[dict[str, str]]:
        """One row per method: the texts of a table's cells by the headings in HEAD."""
        return [self.cells(label) for label in self.results]

    def table(self) -> str:
        """The rows as lines of text in columns, with `left_out` below them."""
        rows = (tuple(row.values()) for row in self.rows())
        return "\n".join([*columns([HEAD, *rows]), *self.left_out])

    @property
    def ar_seconds(self) -> float | None:
        """What AR took; None if it did not run."""
        return next((result.measured["seconds"]["total"] for result in self.results.values()
                     if is_ar(result)), None)

    def tile(self, label: str, picture: np.ndarray) -> Tile:
        """A run's picture, uint8 [H, W, 3], with its words."""
        result, row = self.results[label], self.cells(label)
        knobs = result.request.label.removeprefix(row["method"]).strip()
        lines = [knobs,
                 f"{row['passes']} passes" + (f", {row['fewer']} fewer" if row["fewer"] else ""),
                 f"{row['seconds']} s" + (f", {row['speed']} as fast" if row["speed"] else ""),
                 f"{row['same as AR']} of tokens are AR's" if row["same as AR"] else ""]
        chip = "AR itself" if is_ar(result) else result.guarantee
        return Tile(picture, row["method"], chip, tuple(filter(None, lines)))

    def cells(self, label: str) -> dict[str, str]:
        """The texts of one table row; empty where nothing was measured or for AR itself."""
        result, fewer, speed, same = self.results[label], "", "", ""
        stats, seconds = result.measured, result.measured["seconds"]["total"]
        ar_seconds = self.ar_seconds
        if not is_ar(result):
            fewer = times(stats["step_acceleration"])
            speed = "" if ar_seconds is None else times(ar_seconds / max(seconds, 1e-9))
            same = "" if result.share is None else percent(result.share)
        label = label if self.show_labels else result.request.label
        return dict(zip(HEAD, (label, result.guarantee, str(stats["passes"]), fewer,
                               f"{seconds:.2f}", speed, same), strict=True))


@checked("size", "pictures")
def compare(backbone: Backbone, prompt: str, methods: Mapping[str, Method] | None = None,
            heads: DraftHeads | None = None, sampling: Sampling = Sampling(),  # noqa: B008
            negative: str | None = None, size: tuple[int, int] | None = None, pictures: int = 1,
            on_event: OnEvent = lambda label, event: None) -> Comparison:
    """Draw one prompt and seed with several methods, one after the other.

    methods: by label; None: all methods at their own settings, except those that cannot run here.
    pictures: drawn by every method. on_event(label, event) is called with every event. Raises
    SSDError before any method runs.
    """
    def request_of(method: Method) -> Request:
        drawing = Drawing(prompt, negative, method, sampling, size, pictures)
        return Request(backbone, heads, drawing, fall_back=False)

    requests, left_out = checked_requests(methods, request_of)
    return Comparison({label: request.run(partial(on_event, label))
                       for label, request in requests.items()}, left_out)


def compare_with_ar(results: Sequence[Result]) -> None:
    """Set every result's share of tokens equal to AR's; None if AR is not among them."""
    baseline = next((result.tokens for result in results if is_ar(result)), None)
    for result in results:
        result.share = None if baseline is None else identical_share(result.tokens, baseline)


def is_ar(result: Result) -> bool:
    return isinstance(result.request.method, AR)


def times(factor: float) -> str:
    return f"{factor:.1f}x"  # Pillow's font has no ×


def conditions(request: Request) -> str:
    """The common conditions of all pictures, for the line below the title."""
    sampling, module = request.sampling, request.backbone
    return (f"{module.name}, seed {sampling.seed}, guidance {sampling.cfg:g}, temperature "
            f"{sampling.temperature:g}, {stored_dtype(module)} on "
            f"{module.device.type}")


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, with the columns aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows]
