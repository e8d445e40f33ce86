"""Replay a run from its preview messages: the pictures at every moment. Knows no host.

Nothing is decoded again: final cells have the pixels of the finished picture, even where the live
preview had time for plain colours only. `webp` and `mp4` write the moments to a file.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from operator import itemgetter
from types import MappingProxyType

import numpy as np
from PIL import Image

from ..errors import SSDError
from .preview import ACCEPTED, COMMITTED, DRAFT, REPAIRED, UNTOUCHED, as_wide_as
from .soft_cells import SoftCells

SHORTEST, LONGEST = 3.0, 12.0  # s of a film; otherwise it is as long as the run
HOLD = 2.0  # s that the finished picture is shown
FPS = 12
GROUND, PEN, GAP = 32, 255, 8  # grey of rows not drawn yet; grey of the pen; px
TILE = 8  # px of the patterns below; a test compares them with web/preview/drawing.js
SKY, ORANGE = (86, 180, 233, 72), (230, 159, 0, 110)
BLACK, WHITE, GREY, NONE = (40, 16, 0, 190), (255, 255, 255, 230), (128, 128, 128, 70), (0,) * 4
QUALITY = 90  # of WebP
CRF, MP4_FPS = "18", 24  # of MP4: x264's quality (less is better), frames per second


@dataclass(frozen=True)
class FilmFrame:
    """A picture uint8 [H, W, 3 or 4] that the film shows for `seconds`."""

    picture: np.ndarray
    seconds: float


def moments(messages: Sequence[Mapping], overlay: bool = False, length: float | None = None,
            fps: int = FPS) -> Iterator[FilmFrame]:
    """The film of a run, at most `fps` moments per second; several pictures are side by side.

    messages: of a run or race, from `started` on, as a Preview sent them. overlay: tint the cells
    by the fate of their drafts. length: seconds of the film without HOLD; None: those of the run,
    within SHORTEST and LONGEST. Raises SSDError if there is nothing to replay.
    """
    timeline = timed(messages)
    if not timeline:
        raise SSDError("nothing to replay: this run's preview was not kept; draw the picture again")
    duration = max(timeline[-1][0], 1e-9)
    length = min(max(duration, SHORTEST), LONGEST) if length is None else length
    frames = max(2, math.ceil(length * fps))
    cuts = np.searchsorted([seconds for seconds, _ in timeline],
                           np.linspace(0, duration, frames), side="right").tolist()
    finished = finished_pictures(messages)
    screens: dict[int, ReplayCanvas] = {}
    pending, done = 0.0, 0
    for upto, after in pairwise([*cuts, None]):
        for _, message in timeline[done:upto]:
            take(screens, message, finished)
        done, pending = upto, pending + length / frames
        if upto != after:  # otherwise the next frame shows nothing new
            yield FilmFrame(seen(screens, overlay), pending + (HOLD if after is None else 0))
            pending = 0.0


def grown(picture: np.ndarray, rows: int, first: int = 0, length: float = SHORTEST
          ) -> Iterator[FilmFrame]:
    """A film that reveals a finished picture uint8 [H, W, 3] row by row, without messages."""
    tall = len(picture) // rows
    for row in range(first, rows + 1):
        part = np.full_like(picture, GROUND)
        part[: row * tall] = picture[: row * tall]
        if row < rows:
            draw_pen(part, row * tall)
        yield FilmFrame(part, HOLD if row == rows else length / max(1, rows - first))


def timed(messages: Sequence[Mapping]) -> list[tuple[float, Mapping]]:
    """(seconds on the run's own clock, message), in order of time over all panels.

    Messages of a run without `started` are dropped.
    """
    clocks: dict[int, float] = {}
    timeline = []
    for message in messages:
        panel = message["panel"]
        if message["kind"] == "started":
            clocks[panel] = 0.0
        elif panel in clocks:
            clocks[panel] = max(clocks[panel], message.get("seconds") or 0.0)
        else:
            continue
        timeline.append((clocks[panel], message))
    return sorted(timeline, key=itemgetter(0))


def finished_pictures(messages: Sequence[Mapping]) -> dict[str, np.ndarray]:
    """The pictures as each run last decoded them, uint8 [B, h, W, 3], by the run's id.

    If the run was stopped, h is less than the picture's height.
    """
    last = {message["run"]: message["strips"] for message in messages
            if message["kind"] == "rows" and message["refined"] and message["first"] == 0}
    return {run: np.stack([rgba(strip)[..., :3] for strip in strips])
            for run, strips in last.items()}


class ReplayCanvas:
    """The pictures of a run: pixels uint8 [B, H, W, 3] and the letters of their cells [B, R * C].

    finished: the pictures at the run's end, uint8 [B, h, W, 3].
    """

    def __init__(self, started: Mapping, finished: np.ndarray | None = None) -> None:
        self.rows, self.columns = started["rows"], started["columns"]
        width, height, pictures = (started[key] for key in ("width", "height", "pictures"))
        self.pixels = np.full((pictures, height, width, 3), GROUND, np.uint8)
        self.finished = self.pixels[:, :0] if finished is None else as_wide_as(finished, width)
        self.soft = [SoftCells(self.rows, self.columns) for _ in self.pixels]
        self.marks = np.full((pictures, self.rows * self.columns), UNTOUCHED, np.uint8)
        self.row = 0  # rows whose pixels are final

    def take(self, message: Mapping) -> None:
        if message["kind"] in ("rows", "cells"):
            for number, strip in enumerate(message["strips"]):
                self._paint(number, rgba(strip), message)
        if message["kind"] == "rows":
            self.row = max(self.row, message["last"])
            first, last = (message[key] * self.columns for key in ("first", "last"))
            self.marks[:, first:last] = settled(self.marks[:, first:last], COMMITTED)
        elif message["kind"] == "pass":
            self._mark(message["first"], message["marks"])

    def _paint(self, number: int, strip: np.ndarray, message: Mapping) -> None:
        """Paint a strip uint8 [h, w, 4]; colours of single cells wait for `seen`."""
        pixels, finished = self.pixels[number], self.finished[number]
        known = message["kind"] == "cells" and message.get("known")
        sharp = bool(message.get("refined") or known)
        if sharp or message["top"] < len(finished):
            paste(pixels, strip, message["top"], finished)
        cells, decoded = self.soft[number], len(finished) * self.rows // len(pixels)
        cells.note(strip, message["first"], message["last"], sharp)
        cells.sharp[:decoded] |= cells.known[:decoded]

    def _mark(self, first: int | Sequence[int], lines: Sequence[str]) -> None:
        starts = [first] * len(lines) if isinstance(first, int) else first
        for marks, start, line in zip(self.marks, starts, lines, strict=True):
            new = np.frombuffer(line.encode("ascii"), np.uint8)
            current = marks[start : start + len(new)]
            marks[start : start + len(new)] = np.where(new == COMMITTED, settled(current, new),
                                                       np.where(new == UNTOUCHED, current, new))

    def seen(self, overlay: bool) -> np.ndarray:
        """The current pictures, uint8 [B, H, W, 3], with a line at the first row not drawn."""
        for cells, pixels in zip(self.soft, self.pixels, strict=True):
            cells.paint(pixels)
        shown = self._tinted() if overlay else self.pixels.copy()
        if 0 < self.row < self.rows:
            for picture in shown:
                draw_pen(picture, self.row * (len(picture) // self.rows))
        return shown

    def _tinted(self) -> np.ndarray:
        count, height, width, _ = self.pixels.shape
        tall, wide = height // self.rows, width // self.columns
        marks = self.marks.reshape(count, self.rows, self.columns).copy()
        painted = marks[:, : self.row]
        painted[painted == COMMITTED] = UNTOUCHED  # grey only until their pixels are painted
        tints = tiles(tall, wide)[marks].transpose(0, 1, 3, 2, 4, 5)
        tints = tints.reshape(count, self.rows * tall, self.columns * wide, 4)
        alpha = tints[..., 3:] / np.float32(255)
        return (self.pixels * (1 - alpha) + tints[..., :3] * alpha).round().astype(np.uint8)


def settled(marks: np.ndarray, final: np.ndarray | int) -> np.ndarray:
    """Marks of cells that became final: accepted and repaired ones stay, others get `final`."""
    return np.where(np.isin(marks, (UNTOUCHED, DRAFT)), final, marks)


def paste(pixels: np.ndarray, strip: np.ndarray, top: int, finished: np.ndarray) -> None:
    """Paint the opaque pixels of a strip uint8 [h, w, 4] from line `top` on.

    Colours are those of the finished picture uint8 [h, W, 3]; below its last line, the strip's.
    """
    colours = as_wide_as(strip[None], pixels.shape[1])[0]
    known = finished[top : top + len(colours)]
    lines, opaque = pixels[top : top + len(colours)], colours[..., 3:] > 0
    lines[:] = np.where(opaque, np.concatenate((known, colours[len(known) :, :, :3])), lines)


def rgba(strip: str) -> np.ndarray:
    """Decode a PNG in base64 to uint8 [h, W, 4]."""
    with Image.open(io.BytesIO(base64.b64decode(strip)), formats=["PNG"]) as image:
        return np.asarray(image.convert("RGBA"))


def draw_pen(picture: np.ndarray, top: int) -> None:
    picture[top : top + max(1, len(picture) // 256)] = PEN


def take(screens: dict[int, ReplayCanvas], message: Mapping,
         finished: Mapping[str, np.ndarray] = MappingProxyType({})) -> None:
    if message["kind"] == "started":
        screens[message["panel"]] = ReplayCanvas(message, finished.get(message["run"]))
    else:
        screens[message["panel"]].take(message)


def seen(screens: Mapping[int, ReplayCanvas], overlay: bool) -> np.ndarray:
    """All pictures of all panels as one picture, in a nearly square grid."""
    pictures = [picture for panel in sorted(screens) for picture in screens[panel].seen(overlay)]
    return side_by_side(pictures)


def side_by_side(pictures: Sequence[np.ndarray]) -> np.ndarray:
    """Pictures uint8 [H, W, 3] of any sizes as one picture, GAP px apart."""
    columns = math.ceil(math.sqrt(len(pictures)))
    height, width = (max(sides) for sides in zip(*(picture.shape[:2] for picture in pictures),
                                                 strict=True))
    lines = math.ceil(len(pictures) / columns)
    shape = (lines * (height + GAP) - GAP, columns * (width + GAP) - GAP, 3)
    whole = np.full(shape, GROUND, np.uint8)
    for i, picture in enumerate(pictures):
        y, x = i // columns * (height + GAP), i % columns * (width + GAP)
        whole[y : y + picture.shape[0], x : x + picture.shape[1]] = picture
    return whole


def tiles(tall: int, wide: int) -> np.ndarray:
    """The tint of every letter for cells of tall x wide px, uint8 [256, tall, wide, 4]."""
    table = np.zeros((256, tall, wide, 4), np.uint8)
    for letter in (ACCEPTED, REPAIRED, DRAFT, COMMITTED):
        table[letter] = np.asarray(Image.fromarray(tile(letter)).resize((wide, tall), 0))
    return table


def tile(letter: int) -> np.ndarray:
    """A letter's pattern uint8 [TILE, TILE, 4]; its last line and column are clear, as a grid."""
    return np.array([[NONE if TILE - 1 in (x, y) else tint(letter, x, y) for x in range(TILE)]
                     for y in range(TILE)], np.uint8)


def tint(letter: int, x: int, y: int) -> tuple[int, ...]:
    if letter == REPAIRED:
        return BLACK if (x + y) % 4 == 0 else ORANGE
    if letter == DRAFT:
        return WHITE if x % 3 == y % 3 == 1 else GREY
    return SKY if letter == ACCEPTED else GREY


def can_write_mp4() -> bool:
    """Whether the optional package av is installed."""
    return find_spec("av") is not None


def webp(moments: Iterable[FilmFrame], loop: int = 0) -> bytes:
    """An animated WebP that plays `loop` times; 0: without end."""
    durations: list[int] = []

    def images() -> Iterable[Image.Image]:
        for moment in moments:
            durations.append(max(1, round(moment.seconds * 1000)))
            yield Image.fromarray(moment.picture)

    first, *rest = images()
    file = io.BytesIO()
    first.save(file, "WEBP", save_all=True, append_images=rest, duration=durations, loop=loop,
               quality=QUALITY, method=2)
    return file.getvalue()


def mp4(moments: Iterable[FilmFrame]) -> bytes:
    """An H.264 video that browsers and phones play; SSDError if the package av is missing."""
    if not can_write_mp4():
        raise SSDError("an MP4 needs the package av: install it with `pip install av`, or choose "
                       "WebP, which needs nothing")
    import av

    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream, owed = None, 0.0
        for moment in moments:
            picture = even(moment.picture)
            if stream is None:
                stream = container.add_stream("libx264", MP4_FPS, options={"crf": CRF})
                stream.height, stream.width = picture.shape[:2]
                stream.pix_fmt = "yuv420p"
            owed += moment.seconds * MP4_FPS
            while owed >= 1:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
                owed -= 1
        if stream is not None:
            container.mux(stream.encode())
    return file.getvalue()


def even(picture: np.ndarray) -> np.ndarray:
    """A picture [H, W, 3] whose sides are even, as the video format needs."""
    height, width = picture.shape[:2]
    return np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")


FILMS = {"webp": webp, "mp4": mp4}  # by the ending of the file
