"""Count accepted drafts per cell over a run, and show them as a heat map."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from ..engine.events import Event, Pass
from ..model.grid import Grid

SIDE, CHART, GAP, LINE, FONT = 384, 300, 16, 26, 20  # px
AXIS, LEGEND, STROKE, DOT = 46, 112, 4, 6  # px: space for numbers and names; line; point
SHARE = np.linspace(0, 1, 5)
RAMP = np.array([(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)])
STROKES = ("#21918c", "#443983", "#b5651d", "#555555")


class AcceptanceCount:
    """How often each cell was verified and accepted. Call it with every event."""

    def __init__(self, pictures: int, grid: Grid) -> None:
        self._shape = (pictures, grid.rows, grid.columns)
        # Evaluated only in `share`, so that the run does not wait for the device.
        self._passes: list[tuple[Pass, torch.Tensor]] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Pass) and event.unchanged is not None:
            self._passes.append((event, event.unchanged))

    def share(self) -> np.ndarray:
        """[B, R, C]: how often a cell's draft was accepted when verified; NaN if it never was."""
        pictures, rows, columns = self._shape
        # An extra column collects the forced row ends, which are not cells.
        verified, accepted = np.zeros((2, pictures, rows, columns + 1))
        for event, unchanged in self._passes:
            cells = event.cells[:, event.n_context :].cpu().numpy()
            where = (np.arange(pictures)[:, None], cells[..., 0], cells[..., 1])  # [B, n] each
            verified[where] += 1
            accepted[where] += unchanged[:, event.n_context :].cpu().numpy()
        with np.errstate(invalid="ignore"):
            return (accepted / verified)[:, :, :columns]


def acceptance_sheet(share: np.ndarray, acceptance: Mapping[str, float],
                     picture: np.ndarray | None, label: str) -> Image.Image:
    """A heat map of shares [R, C] over the picture uint8 [H, W, 3], beside the curve per round.

    acceptance: "stage/round" -> mean, as in a run's statistics.
    """
    cells = heat(share, picture)
    sheet = Image.new("RGB", (cells.width + CHART + 3 * GAP, cells.height + 3 * GAP + LINE),
                      "white")
    sheet.paste(cells, (GAP, GAP))
    draw = ImageDraw.Draw(sheet)
    verified = share[~np.isnan(share)]
    text = f"{label}: {verified.mean():.0%} of drafts accepted" if verified.size else (
        f"{label}: no drafts to judge")
    write(draw, (GAP, cells.height + 2 * GAP), text)
    curve(draw, (cells.width + 2 * GAP, GAP, sheet.width - GAP, cells.height + GAP), acceptance)
    return sheet


def heat(share: np.ndarray, picture: np.ndarray | None) -> Image.Image:
    """Shares as colours, dark violet (rejected) to yellow (accepted), over the picture in grey."""
    rows, columns = share.shape
    scale = max(1, round(SIDE / (columns if picture is None else picture.shape[1])))
    if picture is None:
        grey = np.full((rows, columns, 3), 255, np.uint8)
        scale = max(1, round(SIDE / columns))
    else:
        grey = np.asarray(Image.fromarray(picture).convert("L").convert("RGB"))
    size = (grey.shape[1] * scale, grey.shape[0] * scale)
    under = np.asarray(Image.fromarray(grey).resize(size, Image.Resampling.NEAREST), float)
    known = np.nan_to_num(share)
    tint = np.stack([np.interp(known, SHARE, RAMP[:, c]) for c in range(3)], -1).astype(np.uint8)
    over = np.asarray(Image.fromarray(tint).resize(size, Image.Resampling.NEAREST), float)
    verified = Image.fromarray((~np.isnan(share)).astype(np.uint8))
    weight = 0.6 * np.asarray(verified.resize(size, Image.Resampling.NEAREST))[..., None]
    return Image.fromarray((under * (1 - weight) + over * weight).astype(np.uint8))


def curve(draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int],
          acceptance: Mapping[str, float]) -> None:
    """Plot mean acceptance by round, one line per stage, on an axis from 0 to 1."""
    left, top, right, bottom = box[0] + AXIS, box[1] + LINE, box[2], box[3] - 2 * LINE
    stages: dict[str, list[tuple[int, float]]] = {}
    for key, mean in acceptance.items():
        stage, _, number = key.partition("/")
        stages.setdefault(stage, []).append((int(number), mean))
    most = max((n for points in stages.values() for n, _ in points), default=1)
    for share in SHARE:
        y = bottom - share * (bottom - top)
        draw.line((left, y, right, y), fill="#dddddd")
        write(draw, (box[0], y - LINE / 2), f"{share:.2f}")
    write(draw, (left, box[1] - LINE / 2), "accepted, by round")
    for place, (stage, points) in enumerate(sorted(stages.items())):
        colour = STROKES[place % len(STROKES)]
        spots = [(left + (n - 0.5) / most * (right - left), bottom - mean * (bottom - top))
                 for n, mean in sorted(points)]
        draw.line(spots, fill=colour, width=STROKE)
        for (x, y), (round_, _) in zip(spots, sorted(points), strict=True):
            draw.ellipse((x - DOT, y - DOT, x + DOT, y + DOT), fill=colour)
            write(draw, (x - DOT, bottom + 2), str(round_))
        write(draw, (left + place * LEGEND, bottom + LINE), stage, colour)


def write(draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str,
          colour: str = "black") -> None:
    draw.text(at, text, fill=colour, font=ImageFont.load_default(size=FONT))
