"""Turn engine events into messages of the live preview (protocol version 1, read by `web/`).

A Preview receives events and sends plain dicts. Rows are first painted with one colour per code,
and decoded when there is time. Messages take at most BUDGET of the run's time; kept rows, shown
once at the start, do not count. Messages beyond the budget are merged into later ones. Where the
backbone decodes the same tokens at several sizes, rows are shown at the smallest one while they
are drawn: a larger one takes several times as long to decode and to send. Knows no host.
"""

from __future__ import annotations

import base64
import io
import math
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch.utils.weak import WeakIdKeyDictionary

from ..backbones.base import Backbone
from ..engine.events import Event, FinalRows, Pass, Sketched, Started
from ..engine.methods import Method
from ..engine.sketches import enlarged
from ..model.grid import Grid
from ..weights.memory import empty_caches, is_out_of_memory
from .guarantees import guarantee
from .pieces import Piece
from .pixels import pixels, repeat_last_row
from .recipe import to_bytes

MOST_PICTURES = 32  # decoded to make a palette; larger codebooks use smaller patches
LARGE, SAMPLED = 50_000, 2  # codes from which on so many pictures of some codes must do
GREY = 128
VERSION = 1
# The share of the run's seconds that all messages may take. Only this thread's CPU time counts, so
# that a busy machine does not stop the preview.
BUDGET = 0.03
PASSES, REFINING = 0.4, 0.5  # shares of BUDGET for pass messages and for decoding rows
KEPT_SECONDS = 0.5  # kept rows are shown decoded if that takes at most this long
ACCEPTED, REPAIRED, DRAFT, COMMITTED, UNTOUCHED = (ord(letter) for letter in "ardc.")


@dataclass(frozen=True)
class Palette:
    """colours uint8 [codes, 3]; seconds: the measured time to decode one picture."""

    colours: np.ndarray
    seconds: float


_MADE = WeakIdKeyDictionary()  # keyed by a weight, which all sizes of a backbone share


def palette(backbone: Backbone) -> Palette:
    """The backbone's palette, made once while it is loaded; grey if memory runs out."""
    try:
        if backbone.norm not in _MADE:
            _MADE[backbone.norm] = make_palette(backbone.smallest)
        return _MADE[backbone.norm]
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        empty_caches()
        return Palette(np.full((backbone.codes, 3), GREY, np.uint8), math.inf)


def make_palette(backbone: Backbone) -> Palette:
    """Decode patchworks of all codes, and average the pixels of each code's patch.

    Of a large codebook some codes are decoded; the others' colours are fitted to their vectors.
    """
    make = scattered if backbone.codes >= LARGE else patchwork
    codes = make(backbone.grid.rows, backbone.grid.columns, backbone.codes)
    sums, counts = np.zeros((backbone.codes, 3)), np.zeros((backbone.codes, 1))
    begin = time.perf_counter()
    for picture in codes:
        tokens = torch.from_numpy(picture)[None].to(backbone.device)
        with torch.inference_mode():
            pixels = backbone.decode(tokens)[0].float().cpu()
        colours = cell_means(pixels.numpy(), *picture.shape)
        np.add.at(sums, picture.ravel(), colours.reshape(-1, 3))
        np.add.at(counts, picture.ravel(), 1)
    seconds = (time.perf_counter() - begin) / len(codes)
    means = sums / np.maximum(counts, 1)
    if not (seen := counts[:, 0] > 0).all():
        vectors = backbone.picture_codec.code_vectors[: backbone.codes].detach().float().cpu()
        means[~seen] = fitted(vectors.numpy(), means, seen)
    return Palette((means * 255).round().astype(np.uint8), seconds)


def fitted(vectors: np.ndarray, colours: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Colours of the unseen codes by least squares in their vectors [codes, d] and squares."""
    terms = np.concatenate((np.ones((len(vectors), 1)), vectors, vectors**2), axis=1)
    weights = np.linalg.lstsq(terms[seen], colours[seen], rcond=None)[0]
    return (terms[~seen] @ weights).clip(0, 1)


def scattered(rows: int, columns: int, codes: int) -> np.ndarray:
    """SAMPLED token pictures int64 [n, R, C] of codes from all over the codebook, a cell each."""
    step = int(codes * 0.618)
    while math.gcd(step, codes) > 1:
        step += 1
    return (np.arange(SAMPLED * rows * columns) * step % codes).reshape(-1, rows, columns)


def patchwork(rows: int, columns: int, codes: int) -> np.ndarray:
    """Token pictures int64 [n, R, C] in which every code fills a square patch."""
    for side in (4, 3, 2, 1):
        across, down = max(1, columns // side), max(1, rows // side)
        pictures = -(-codes // (across * down))
        if pictures <= MOST_PICTURES:
            break
    y = np.minimum(np.arange(rows) // side, down - 1)[:, None]
    x = np.minimum(np.arange(columns) // side, across - 1)[None]
    patch = y * across + x
    return (np.arange(pictures)[:, None, None] * across * down + patch) % codes


def cell_means(pixels: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Mean colour of each cell: [H, W, 3] -> [R, C, 3]."""
    height, width, _ = pixels.shape
    cells = pixels.reshape(rows, height // rows, columns, width // columns, 3)
    return cells.mean((1, 3))


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
        self.palette = palette(backbone)
        self.decode_seconds = self.palette.seconds * pictures
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
        self.seconds, self.spent, self.over = 0.0, 0.0, False
        self.last: Pass | None = None
        self.run = str(uuid.uuid4())
        envelope = {"version": VERSION, "node": node, "run": self.run, "panel": panel}
        self.send = lambda kind, **fields: send({**envelope, "kind": kind, **fields})

    def __call__(self, event: Event, seconds: float) -> None:
        """Process an event. seconds: the run's own time so far."""
        if self.over:
            return
        begin = time.thread_time()
        self.seconds = seconds
        with self._spared():
            self._take(event)
        if not isinstance(event, Started):
            self.spent += time.thread_time() - begin

    @contextmanager
    def _spared(self) -> Iterator[None]:
        """If memory runs out, stop using the decoder; if it runs out again, cancel the preview."""
        try:
            yield
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            empty_caches()
            if self.decode_seconds == math.inf:
                self.cancel("failed")
            self.decode_seconds = math.inf

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
            if self.row > self.shown and self._left() > 0:
                self._paint()

    def _left(self, share: float = 1.0) -> float:
        """Seconds left of a share of the budget."""
        return share * BUDGET * self.seconds - self.spent

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
        if self._moves_weights or self.own_seconds > KEPT_SECONDS:
            strips = self.looked_up(0, self.first_row)
        else:
            strips = self.decoded(0, self.first_row, self.backbone)
            self.refined = self.first_row
        self._send_rows(0, strips, refined=self.refined > 0, known=True)

    def _show_standing(self, known: torch.Tensor) -> None:
        """Show the kept cells with their own pixels; they stay until the picture is finished."""
        if self.own is not None:
            own = np.stack([to_bytes(picture) for picture in self.own])
            own = own.repeat(self.pictures // len(own), 0)
        elif self._moves_weights or self.own_seconds > KEPT_SECONDS:
            own = self.looked_up(0, self.grid.rows)
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
        strips = self.enlarged(self.palette.colours[cells])
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
        colours = self.palette.colours[self.marks.tokens[:, self.row : last, :-1]]
        opaque = np.where(final[:, : last - self.row, :, None], 255, 0).astype(np.uint8)
        strips = self.enlarged(np.concatenate((colours, opaque), -1))
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
        """About what decoding takes at the size of the pictures."""
        return self.decode_seconds * self.backbone.scale**2

    def _paint(self) -> None:
        """Show the final rows, decoded if the budget allows it, else in plain colours."""
        if self._moves_weights or self.decode_seconds > REFINING * self._left():
            return self._send_rows(self.shown, self.looked_up(self.shown, self.row), refined=False)
        begin = time.thread_time()
        first = max(0, self.refined - 1)  # the row below it was unknown before
        strips = self.decoded(first, self.row)
        self.decode_seconds = time.thread_time() - begin
        self.refined = self.row
        return self._send_rows(first, strips, refined=True)

    def looked_up(self, first: int, last: int) -> np.ndarray:
        """Rows first..last-1 as uint8 [B, h, W, 3], every cell in its code's colour."""
        return self.enlarged(self.palette.colours[self.tokens[:, first:last]])

    def enlarged(self, cells: np.ndarray) -> np.ndarray:
        """Enlarge cells [B, rows, C, channels] to pixels [B, h, W, channels]."""
        width, height = self.small.size
        tall = cells.repeat(height // self.grid.rows, axis=1)
        return tall.repeat(width // self.grid.columns, axis=2)

    def decoded(self, first: int, last: int, backbone: Backbone | None = None) -> np.ndarray:
        """The same, decoded; the decoder's input repeats the last final row below it, or has the
        picture of which cells are kept. backbone: the view that decodes; None: the smallest.
        """
        tokens = torch.from_numpy(self.tokens)
        if self.known is None:
            tokens = repeat_last_row(tokens, last)
        whole = np.stack([to_bytes(picture) for picture in pixels(backbone or self.small, tokens)])
        tall = whole.shape[1] // self.grid.rows
        return whole[:, first * tall : last * tall]

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
            self._send_rows(self.shown, self.looked_up(self.shown, self.row), refined=False)
        means = stats["acceptance"].values()
        self.over = True
        self.send("finished", passes=stats["passes"], ar_passes=stats["ar_passes"],
                  step_acceleration=stats["step_acceleration"],
                  seconds=stats["seconds"]["total"] + took,
                  tokens_per_second=stats["tokens_per_second"],
                  acceptance=sum(means) / len(means) if means else None,
                  guarantee=self._guarantee(identical), identical=identical)

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
