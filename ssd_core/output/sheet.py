"""A sheet with the pictures of several runs, each with its method, guarantee and measurements.

Knows no host and no engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

LEAST, MOST = 320, 768  # px: smaller pictures are enlarged by a whole number, larger ones shrunk
SHAPE = 1.6  # columns per row of a large sheet, roughly
PAPER, INK, QUIET, EDGE = "#faf9f6", "#1c1c1e", "#5b5b66", "#d9d7d0"
CHIPS = {  # (background, text) by guarantee
    "identical": ("#d7efdf", "#14532d"), "same distribution": ("#dbe7fb", "#1e3a8a"),
    "approximate": ("#fcebc5", "#713f12"), "relaxed": ("#f8dcea", "#831843")}
OTHER_CHIP = ("#e7e5df", INK)
# Pillow's own font has no Chinese; these fonts of the systems do.
EAST_ASIAN = ("NotoSansCJK-Regular.ttc", "msyh.ttc", "PingFang.ttc", "Hiragino Sans GB.ttc",
              "wqy-microhei.ttc", "wqy-zenhei.ttc", "simhei.ttf", "DroidSansFallbackFull.ttf")
BREAKS = re.compile(r"[\u2e80-\uffff]|[^\s:,=\u2e80-\uffff]*[\s:,=]+|[^\s:,=\u2e80-\uffff]+")


@dataclass(frozen=True)
class Tile:
    """A picture, uint8 [H, W, 3], and the words below it."""

    picture: np.ndarray
    name: str
    guarantee: str
    lines: tuple[str, ...] = ()


def contact_sheet(tiles: Sequence[Tile], title: str = "", below_title: str = "",
                  notes: Sequence[str] = (), columns: int | None = None) -> Image.Image:
    """All tiles in rows below a title, with notes at the foot.

    columns: of a grid; None: as many as look well.

    Small pictures are enlarged and large ones are shrunk, so that the text is legible on every
    sheet.
    """
    pictures = [shown(tile.picture) for tile in tiles]
    layout = SheetLayout(*pictures[0].size, columns or columns_for(len(tiles)))
    head = [*layout.text(title, layout.wide, 1.25), *layout.text(below_title, layout.wide, 0.9,
                                                                  QUIET)]
    foot = [line for note in notes for line in layout.text(note, layout.wide, 0.9, QUIET)]
    words = [layout.words(tile) for tile in tiles]
    top = layout.gap + height_of(head) + (layout.gap if head else 0)
    rows = [words[i : i + layout.columns] for i in range(0, len(words), layout.columns)]
    tall = [layout.height + layout.gap // 2 + max(map(height_of, row)) + layout.gap for row in rows]
    bottom = height_of(foot) + layout.gap if foot else 0
    sheet = Image.new("RGB", (layout.wide + 2 * layout.gap, top + sum(tall) + bottom), PAPER)
    draw = ImageDraw.Draw(sheet)
    put(draw, head, layout.gap, layout.gap)
    for i, (picture, own) in enumerate(zip(pictures, words, strict=True)):
        x = layout.gap + i % layout.columns * (layout.width + layout.gap)
        y = top + sum(tall[: i // layout.columns])
        sheet.paste(picture, (x, y))
        draw.rectangle((x - 1, y - 1, x + layout.width, y + layout.height), outline=EDGE)
        put(draw, own, x, y + layout.height + layout.gap // 2)
    put(draw, foot, layout.gap, top + sum(tall))
    return sheet


def shown(picture: np.ndarray) -> Image.Image:
    """A picture at its size on the sheet."""
    image = Image.fromarray(picture)
    if max(image.size) > MOST:
        image.thumbnail((MOST, MOST), Image.Resampling.LANCZOS)
        return image
    times = -(-LEAST // max(image.size))
    return image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)


@dataclass(frozen=True)
class TextLine:
    """A line of text. chip: the colour of its background, if any.

    beside: further words on the same line.
    """

    text: str
    font: ImageFont.ImageFont | ImageFont.FreeTypeFont
    height: int
    colour: str = INK
    chip: str = ""
    beside: TextLine | None = None

    @property
    def width(self) -> float:
        return self.font.getlength(self.text) + (0.7 * self.height if self.chip else 0)


class SheetLayout:
    """Gaps and type of a sheet with so many columns of pictures of width x height px."""

    def __init__(self, width: int, height: int, columns: int) -> None:
        self.width, self.height = width, height
        self.columns = columns
        self.gap = max(width // 14, 16)
        self.em = max(round(width / 23), 14)  # px
        self.wide = self.columns * (width + self.gap) - self.gap

    def text(self, text: str, width: int, size: float = 1.0, colour: str = INK) -> list[TextLine]:
        """Lines of at most `width` px; size: in em."""
        em = round(self.em * size)
        font = font_for(text, em)
        return [TextLine(line, font, round(em * 1.45), colour)
                for line in wrapped(text, font, width)]

    def words(self, tile: Tile) -> list[TextLine]:
        """Name, guarantee and figures of a picture; the guarantee beside the name if it fits."""
        ground, colour = CHIPS.get(tile.guarantee, OTHER_CHIP)
        em = round(self.em * 0.85)
        chip = TextLine(tile.guarantee, font_for(tile.guarantee, em), round(em * 2.0), colour,
                        ground)
        figures = [line for text in tile.lines
                   for line in self.text(text, self.width, 0.95, QUIET)]
        *above, name = self.text(tile.name, self.width, 1.3)
        if name.width + self.em + chip.width <= self.width:
            return [*above, replace(name, beside=chip), *figures]
        return [*above, name, chip, *figures]


def columns_for(count: int) -> int:
    """Columns of a sheet whose last row is nearly full."""
    rows = max(round((count / SHAPE) ** 0.5), 1)
    return -(-count // rows)


def font_for(text: str, size: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    """Pillow's own font, or for Chinese, Japanese and Korean one of the system's."""
    east_asian = east_asian_font() if any(letter >= "\u2e80" for letter in text) else None
    return ImageFont.truetype(east_asian, size) if east_asian else ImageFont.load_default(size=size)


@cache
def east_asian_font() -> str | None:
    """The first of EAST_ASIAN that this machine has."""
    return next(filter(is_there, EAST_ASIAN), None)


def is_there(font: str) -> bool:
    try:
        ImageFont.truetype(font, 12)
    except OSError:
        return False
    return True


def wrapped(text: str, font: ImageFont.ImageFont | ImageFont.FreeTypeFont,
            width: int) -> list[str]:
    """Lines of at most `width` px, broken between words and after ":", "," and "="."""
    lines: list[str] = []
    for part in BREAKS.findall(text):
        if lines and font.getlength((lines[-1] + part).rstrip()) <= width:
            lines[-1] += part
        else:
            lines.append(part)
    return [line.strip() for line in lines]


def height_of(words: Sequence[TextLine]) -> int:
    return sum(line.height for line in words)


def put(draw: ImageDraw.ImageDraw, words: Sequence[TextLine], x: float, y: float) -> None:
    """Draw lines one below the other."""
    for line in words:
        middle = y + line.height / 2
        put_line(draw, line, x, middle)
        if line.beside:
            put_line(draw, line.beside, x + line.width + line.height * 0.45, middle)
        y += line.height


def put_line(draw: ImageDraw.ImageDraw, line: TextLine, x: float, middle: float) -> None:
    if line.chip:
        half = 0.4 * line.height
        draw.rounded_rectangle((x, middle - half, x + line.width, middle + half), half,
                               fill=line.chip)
        x += 0.35 * line.height
    draw.text((x, middle), line.text, fill=line.colour, font=line.font, anchor="lm")
