"""Turn engine events into messages of the live preview (protocol version 1, read by `web/`).

A Preview receives events and sends plain dicts. Rows are first painted with one colour per code, as
strips of a pixel per cell, and decoded when there is time: a few rows, not the whole picture. Where
the codec has a quicker way than decoding, rows are sharp at once. All this takes at most BUDGET of
the run's time; kept rows, shown once at the start, do not count. Messages beyond the budget are
merged into later ones. Where the backbone decodes the same tokens at several sizes, rows are shown
at the smallest one while they are drawn: a larger one takes several times as long to decode and to
send. Knows no host.
"""

from __future__ import annotations

import base64
import io
import math
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from PIL import Image

from ..backbones.base import Backbone
from ..engine.events import Event, FinalRows, Pass, Sketched, Started
from ..engine.methods import Method
from ..engine.sketches import enlarged
from ..model.grid import Grid
from ..weights.memory import empty_caches, is_out_of_memory
from .guarantees import guarantee
from .palette import palette
from .pieces import Piece
from .pixels import pixels, repeat_last_row
from .recipe import to_bytes

VERSION = 1
# The share of the run's seconds that all messages may take. Only this thread's CPU time counts, so
# that a busy machine does not stop the preview.
BUDGET = 0.03
# Shares of BUDGET: for decoding rows where that is done, for messages about passes. The rest is for
# rows without the decoder.
DECODING, PASSES = 0.6, 0.3
SOME = 4  # rows that are decoded at a time, where the budget is scarce
ABOVE, BELOW = 2, 1  # rows that are decoded with a strip, since the codec reads cells around it
KEPT_SECONDS = 0.5  # kept rows are shown decoded if that takes at most this long
ACCEPTED, REPAIRED, DRAFT, COMMITTED, UNTOUCHED = (ord(letter) for letter in "ardc.")


class CellMarks:
    """The state of every cell, and which cells changed since the last message.

    tokens and final [B, R, C + 1]: final cells of rows that are not finished yet.
    """

    def __init__(self, pictures: int, grid: Grid) -> None:
        # An extra column collects the forced row ends, which are not cells.
        shape = (pictures, grid.rows, grid.columns + 1)
        self.letters = np.full(shape, UNTOUCHED, np.uint8)
        self.tokens, self.final = np.zeros(shape, np.int64), np.zeros(shape, bool)
        self.columns = grid.columns
        self.pending: list[Pass] = []  # read only when a message is sent

    def note(self, event: Pass) -> None:
        if event.stage != "prefill" and event.cells.shape[1]:  # some passes only feed
            self.pending.append(event)

    def to_message(self) -> dict:
        """`first` and `marks` of a message; `first` is a single number if all pictures agree."""
        first, last = self._settle()
        cells = self.letters[:, :, :-1].reshape(len(self.letters), -1)
        marks = [row[a:b].tobytes().decode("ascii")
                 for row, a, b in zip(cells, first, last, strict=True)]
        first = first.tolist()
        return {"first": first[0] if len(set(first)) == 1 else first, "marks": marks}

    def whole(self) -> dict:
        """`first` and `marks` of a message with every cell, for viewers who missed the others."""
        cells = self.letters[:, :, :-1].reshape(len(self.letters), -1)
        return {"first": 0, "marks": [row.tobytes().decode("ascii") for row in cells]}

    def _settle(self) -> tuple[np.ndarray, np.ndarray]:
        """Apply the pending passes; return first and end [B] of the raster cells they changed."""
        every = np.arange(len(self.letters))[:, None]
        rasters = [np.zeros((len(self.letters), 0), np.int64)]
        for event in self.pending:
            y, x = event.cells.cpu().numpy().transpose(2, 0, 1)  # [B, n] each
            letters, current = letters_of(event).cpu().numpy(), self.letters[every, y, x]
            already_judged = (letters == COMMITTED) & np.isin(current, (ACCEPTED, REPAIRED))
            self.letters[every, y, x] = np.where(already_judged, current, letters)
            if event.stage == "verify":  # elsewhere an accepted token may still change
                self.tokens[every, y, x] = event.tokens.cpu().numpy()
                self.final[every, y, x] |= np.isin(letters, (ACCEPTED, COMMITTED))
            rasters.append(y * self.columns + np.minimum(x, self.columns - 1))
        self.pending = []
        raster = np.concatenate(rasters, 1)
        if raster.size == 0:  # a pass of an edit may judge slots that are no cells
            return raster.sum(1), raster.sum(1)
        return raster.min(1), raster.max(1) + 1


def letters_of(event: Pass) -> torch.Tensor:
    """int64 [B, n]: a rejected token was repaired; in a sliding window it is still a draft."""
    if event.accepted is None:
        return torch.full_like(event.tokens, COMMITTED)
    rejected = DRAFT if event.stage == "verify" else REPAIRED
    letters = torch.where(event.accepted, ACCEPTED, rejected)
    letters[:, : event.n_context] = COMMITTED
    return letters


class Preview:
    """The preview of a run on a panel. Call it with every event, then call `finish` or `cancel`.

    If memory runs out, the run continues and rows use plain colours. If it runs out again, the
    preview is cancelled.
    """

    def __init__(self, backbone: Backbone, method: Method, send: Callable[[dict], None], *,
                 label: str, pictures: int = 1, node: str | None = None, panel: int = 0,
                 keep: torch.Tensor | None = None, keep_rows: int = 0,
                 notes: Sequence[str] = (), known: torch.Tensor | None = None,
                 own: torch.Tensor | None = None) -> None:
        """method: resolved. keep: tokens [B or 1, R, C] whose first keep_rows rows are kept, or the
        cells of known [B or 1, R, C]; own: their picture's pixels [B or 1, H, W, 3], if known.

        notes: sentences about this run to show beside the picture.
        """
        grid = backbone.grid
        self.backbone, self.method, self.label, self.grid = backbone, method, label, grid
        self.small = backbone.smallest
        begun = time.thread_time()
        self.palette = palette(backbone)
        self.decoding = time.thread_time() - begun  # seconds in which rows and colours were decoded
        self.row_seconds = self.palette.row_seconds * pictures
        self.glances = not self._moves_weights and self.palette.glances
        self.marks, self.pictures, self.notes = CellMarks(pictures, grid), pictures, list(notes)
        self.words: list[list[Piece]] = []  # of each picture's prompt, if a host shows them
        self.tokens = np.zeros((pictures, grid.rows, grid.columns), np.int64)
        if keep is not None:
            self.tokens[:, :keep_rows] = keep[:, :keep_rows].cpu().numpy()
        self.known, self.own = known, own
        self.standing: Standing | None = None  # once the run has started
        if keep is not None and known is not None:
            self.tokens[:] = keep.cpu().numpy()
        self.first_row, self.row, self.shown, self.refined = keep_rows, keep_rows, 0, 0
        self.seconds, self.over = 0.0, False
        self.telling = 0.0  # seconds that all else took
        self.last: Pass | None = None
        self.run = str(uuid.uuid4())
        envelope = {"version": VERSION, "node": node, "run": self.run, "panel": panel}
        self.send = lambda kind, **fields: send({**envelope, "kind": kind, **fields})

    def __call__(self, event: Event, seconds: float) -> None:
        """Process an event. seconds: the run's own time so far."""
        if self.over:
            return
        begin, before = time.thread_time(), self.decoding
        self.seconds = seconds
        with self._spared():
            self._take(event)
        if not isinstance(event, Started):
            self.telling += time.thread_time() - begin - (self.decoding - before)

    @contextmanager
    def _spared(self) -> Iterator[None]:
        """If memory runs out, stop using the decoder; if it runs out again, cancel the preview."""
        try:
            yield
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            empty_caches()
            if self.row_seconds == math.inf and not self.glances:
                self.cancel("failed")
            self.row_seconds, self.glances = math.inf, False

    def _take(self, event: Event) -> None:
        if isinstance(event, Started):
            self._start(event)
        elif isinstance(event, Pass):
            self.marks.note(event)
            self.last = event
            if self._left(PASSES) > 0:
                self._tell_pass(event)
                self._tell_cells()
        elif isinstance(event, Sketched):
            self._show_sketch(event.tokens)
        elif isinstance(event, FinalRows):
            self.tokens[:, event.first : event.last] = event.tokens.cpu().numpy()
            self.row = max(self.row, event.last)
            self._paint()

    @property
    def spent(self) -> float:
        """Seconds that the preview took so far."""
        return self.telling + self.decoding

    def _left(self, share: float = 1.0) -> float:
        """Seconds left of the budget for all but decoding, or of a share of it."""
        telling = 1 - DECODING if self.palette.learns else 1.0
        return share * telling * BUDGET * self.seconds - self.telling

    def _start(self, started: Started) -> None:
        (width, height), plan = self.backbone.size, started.plan
        self.send("started", label=self.label, rows=self.grid.rows, columns=self.grid.columns,
                  width=width, height=height, pictures=self.pictures, method=self.method.name,
                  guarantee=self._guarantee(None), passes=plan.passes, passes_max=plan.passes_max,
                  ar_passes=plan.ar_passes, first_row=self.first_row, notes=self.notes,
                  **({"words": self.words} if self.words else {}),
                  **({"prepares": True} if started.prepares else {}))
        if self.known is not None:
            self._show_standing(self.known)
        elif self.first_row:
            self._show_kept()

    def _show_kept(self) -> None:
        """Show the kept rows, decoded if that is quick, so that they look as in their picture."""
        decodes = not self._moves_weights and self.own_seconds <= KEPT_SECONDS
        if decodes or self.glances:
            self.refined = self.first_row
        strips = (self.decoded(0, self.first_row, self.backbone) if decodes
                  else self.quick(0, self.first_row))
        self._send_rows(0, strips, refined=self.refined > 0, known=True)

    def _show_standing(self, known: torch.Tensor) -> None:
        """Show the kept cells with their own pixels; they stay until the picture is finished."""
        if self.own is not None:
            own = np.stack([to_bytes(picture) for picture in self.own])
            own = own.repeat(self.pictures // len(own), 0)
        elif self._moves_weights or self.own_seconds > KEPT_SECONDS:
            own = self.quick(0, self.grid.rows)
        else:
            own = self.decoded(0, self.grid.rows, self.backbone)
        self.standing = Standing(as_wide_as(own, self.backbone.size[0]), known)
        self.send("cells", first=0, last=self.grid.rows, top=0, known=True,
                  strips=[png(strip) for strip in self.standing.strips(0)])

    def _show_sketch(self, sketch: torch.Tensor) -> None:
        """Show a sketch [B, r, c] where nothing is kept, until rows of the picture cover it."""
        if self.known is not None:
            return
        cells = enlarged(sketch, self.grid)[:, self.first_row :].cpu().numpy()
        strips = self.palette.of(cells)
        self.send("cells", first=self.first_row, last=self.grid.rows,
                  top=self.first_row * self.tall,
                  strips=[png(strip) for strip in strips])

    def _guarantee(self, identical: float | None) -> str:
        return guarantee(self.method, self.backbone, identical)

    def _tell_pass(self, event: Pass) -> None:
        self.send("pass", stage=event.stage, round=event.round, **self._speed(),
                  acceptance=self._acceptance(event), row=self.row, **self.marks.to_message())

    def _acceptance(self, event: Pass) -> float | None:
        """The share of unchanged drafts, as the run's statistics count it; None without drafts."""
        if event.unchanged is None:
            return None
        are_cells = event.cells[:, event.n_context :, 1] < self.grid.columns  # no forced row ends
        unchanged = event.unchanged[:, event.n_context :][are_cells].float()
        return unchanged.mean().item() if unchanged.numel() else None

    def _tell_cells(self) -> None:
        """Paint the final cells of unfinished rows, if any lies below the first of these rows."""
        final = self.marks.final[:, self.row :, :-1]
        reach = np.flatnonzero(final.any((0, 2)))
        if not reach.size or reach[-1] == 0:
            return
        last = self.row + int(reach[-1]) + 1
        colours = self.palette.of(self.marks.tokens[:, self.row : last, :-1])
        opaque = np.where(final[:, : last - self.row, :, None], 255, 0).astype(np.uint8)
        strips = np.concatenate((colours, opaque), -1)
        self.send("cells", first=self.row, last=last, top=self.row * self.tall,
                  strips=[png(strip) for strip in strips])

    def _speed(self) -> dict:
        """The number of the current pass, and the speed."""
        tokens = (self.row - self.first_row) * self.grid.columns * self.pictures
        return {"index": self.last.index if self.last else 0, "seconds": self.seconds,
                "tokens_per_second": tokens / max(self.seconds, 1e-9)}

    # Rows of pixels

    @property
    def tall(self) -> int:
        """Lines of a row of cells in the finished picture."""
        return self.backbone.size[1] // self.grid.rows

    @property
    def _moves_weights(self) -> bool:
        """Whether decoding during a run moves weights to the device and back (offload)."""
        return self.backbone.offloader is not None

    @property
    def own_seconds(self) -> float:
        """About what decoding the pictures takes at their size."""
        if self.row_seconds == math.inf and self.glances:
            self.row_seconds = self.palette.timed(self.small) * self.pictures
        return self.row_seconds * self.grid.rows * self.backbone.scale**2

    def _paint(self) -> None:
        """Show the final rows as sharp as the budget allows, the upper ones first."""
        if self.palette.learns and not self._moves_weights:
            self._sharpen()
        if self.row > self.shown and self._left() > 0:
            first = max(0, self.refined - 1) if self.glances else self.shown
            self._send_rows(first, self.quick(first, self.row), refined=self.glances)
            self.refined = self.row if self.glances else self.refined

    def _sharpen(self) -> None:
        """Decode rows that are not decoded yet, if there is time for SOME of them."""
        first = max(0, self.refined - 1)  # the row below it was unknown before
        left = DECODING * BUDGET * self.seconds - self.decoding
        around = self.refined - first + ABOVE + BELOW
        rows = int(min(left / max(self.row_seconds, 1e-9), 1e9)) - around
        last = min(self.row, self.refined + rows)
        if rows < SOME or last == self.refined:
            return
        begun = time.thread_time()
        self._send_rows(first, self.decoded(first, last), refined=True)
        took = time.thread_time() - begun
        self.decoding += took
        self.row_seconds, self.refined = took / (last - self.refined + around), last

    def quick(self, first: int, last: int) -> np.ndarray:
        """Rows first..last-1 without the decoder, uint8 [B, h, W, 3]."""
        return self.glanced(first, last) if self.glances else self.looked_up(first, last)

    def looked_up(self, first: int, last: int) -> np.ndarray:
        """Rows first..last-1 as uint8 [B, rows, C, 3], a pixel in its code's colour each."""
        return self.palette.of(self.tokens[:, first:last])

    def glanced(self, first: int, last: int) -> np.ndarray:
        """Rows first..last-1 as uint8 [B, h, W, 3], sharp but not decoded."""
        top = max(0, first - 1)
        tokens = torch.from_numpy(self.tokens[:, top:last]).to(self.backbone.device)
        with torch.inference_mode():
            whole = self.small.glance(tokens)
        tall = whole.shape[1] // tokens.shape[1]
        return to_bytes(whole[:, (first - top) * tall :].cpu())

    def decoded(self, first: int, last: int, backbone: Backbone | None = None) -> np.ndarray:
        """The same, decoded, from which the palette learns.

        Below the last final row the decoder's input repeats it, or has the picture of which cells
        are kept. backbone: the view that decodes all rows, so that these look as they will when the
        picture is finished; None: the smallest, with some rows around these.
        """
        tokens = torch.from_numpy(self.tokens)
        top, end = (0, None) if backbone else (max(0, first - ABOVE), last + BELOW)
        if self.known is None:
            tokens = repeat_last_row(tokens, max(last, self.row))
        strip = tokens[:, top:end]
        drawn = np.stack([to_bytes(picture) for picture in pixels(backbone or self.small, strip)])
        tall = drawn.shape[1] // strip.shape[1]
        drawn = drawn[:, (first - top) * tall : (last - top) * tall]
        self._learn(first, last, drawn)
        return drawn

    def _learn(self, first: int, last: int, drawn: np.ndarray) -> None:
        for tokens, picture in zip(self.tokens[:, first:last], drawn, strict=True):
            self.palette.learn(tokens, picture)

    def _send_rows(self, first: int, strips: np.ndarray, **flags: bool) -> None:
        times = self.backbone.size[0] // strips.shape[2]
        last = first + times * strips.shape[1] // self.tall
        if self.standing is not None:
            strips = self.standing.over(strips, first * self.tall)
        self.shown = max(self.shown, last)
        self.send("rows", first=first, last=last, top=first * self.tall,
                  strips=[png(strip) for strip in strips], **self._speed(), **flags)

    # Ends

    def finish(self, stats: Mapping, pictures: torch.Tensor | None = None,
               identical: float | None = None, took: float = 0.0) -> None:
        """Paint the remaining rows, or the finished pictures [B, H, W, 3], and send the statistics.

        identical: share of tokens equal to AR's, None if it was not measured. took: the seconds in
        which the pictures were decoded.
        """
        if self.over:
            return
        if self.last is not None and self.marks.pending:
            self._tell_pass(self.last)
        self.standing = None  # finished pictures have what they kept
        if pictures is not None:
            self._send_rows(0, to_bytes(pictures), refined=True)
        elif self.shown < self.row:
            self._send_rows(self.shown, self.quick(self.shown, self.row), refined=self.glances)
        means = stats["acceptance"].values()
        self.over = True
        self.send("finished", passes=stats["passes"], ar_passes=stats["ar_passes"],
                  step_acceleration=stats["step_acceleration"],
                  seconds=stats["seconds"]["total"] + took,
                  tokens_per_second=stats["tokens_per_second"],
                  acceptance=sum(means) / len(means) if means else None,
                  guarantee=self._guarantee(identical), identical=identical)
        if pictures is not None:
            self._learn(0, self.grid.rows, to_bytes(pictures))
        self.palette.store()

    def refine(self, within: float = math.inf) -> None:
        """Show all final rows decoded, if that is expected to take at most `within` seconds.

        The run may continue afterwards.
        """
        if self.over or self.own_seconds > within:
            return
        with self._spared():
            if self.last is not None and self.marks.pending:
                self._tell_pass(self.last)
            if self.row:
                self._send_rows(0, self.decoded(0, self.row, self.backbone), refined=True)
                self.refined = self.row

    def pause(self) -> None:
        """Show all final rows decoded and end the preview as paused."""
        self.refine()
        self.cancel("paused")
        self.palette.store()

    def cancel(self, reason: str) -> None:
        """End an unfinished preview. reason: "interrupted", "paused" or "failed"."""
        if not self.over:
            self.over = True
            self.send("cancelled", reason=reason)


def png(pixels: np.ndarray) -> str:
    """Encode uint8 [h, W, 3 or 4] as a PNG in base64, with fast compression."""
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG", compress_level=1)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def as_wide_as(strips: np.ndarray, width: int) -> np.ndarray:
    """Strips [B, h, w, channels], enlarged by a whole number."""
    times = width // strips.shape[2]
    return strips if times == 1 else strips.repeat(times, 1).repeat(times, 2)


class Standing:
    """Kept cells in a preview: they stand from the start, and the free ones appear between them.

    own: the pixels uint8 [B, H, W, 3] of the kept picture. known: bool [B or 1, R, C]."""

    def __init__(self, own: np.ndarray, known: torch.Tensor) -> None:
        pictures, height, width = own.shape[:3]
        tall, wide = height // known.shape[1], width // known.shape[2]
        whole = known.expand(pictures, -1, -1).cpu().numpy()
        self.own, self.known = own, whole.repeat(tall, 1).repeat(wide, 2)

    def strips(self, top: int) -> np.ndarray:
        """The lines from `top` on, [B, h, W, 4]; free cells are transparent."""
        alpha = np.where(self.known, 255, 0).astype(np.uint8)[..., None]
        return np.concatenate((self.own, alpha), -1)[:, top:]

    def over(self, strips: np.ndarray, top: int) -> np.ndarray:
        """Strips [B, h, w, 3] from line `top` on, as wide as the picture, with its kept cells."""
        strips = as_wide_as(strips, self.own.shape[2])
        lines = slice(top, top + strips.shape[1])
        return np.where(self.known[:, lines, :, None], self.own[:, lines], strips)
