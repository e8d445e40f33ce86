"""The contact sheet of edits: for each a strip with the picture before and every way to edit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageOps

from ssd_core.backbones.base import Backbone
from ssd_core.files import atomic_write
from ssd_core.output.recipe import to_bytes
from ssd_core.output.sheet import INK, PAPER, font_for, wrapped

EACH = 2  # edits of each kind
SIDE, GAP, EM, LINE = 160, 6, 14, 18  # px of a picture, between pictures, of a letter, of a line
TEXT = 4 * LINE + GAP  # px below the pictures: two lines for each caption


def save_sheet(backbone: Backbone, edits: Sequence[Mapping], path: Path) -> None:
    with atomic_write(path) as temporary:
        sheet(backbone, shown(edits)).save(temporary, format="WEBP", quality=78, method=6)


def shown(edits: Sequence[Mapping]) -> list[Mapping]:
    """The first edits of each kind."""
    kinds = dict.fromkeys(edit["kind"] for edit in edits)
    return [edit for kind in kinds
            for edit in [edit for edit in edits if edit["kind"] == kind][:EACH]]


def sheet(backbone: Backbone, edits: Sequence[Mapping]) -> Image.Image:
    """A strip for each edit, with both captions below it and the ways above the first."""
    ways = list(dict.fromkeys(way for edit in edits for way in edit["ways"] if "AR" not in way))
    strip, head = SIDE + TEXT, 2 * LINE + GAP
    page = Image.new("RGB", (len(ways) * (SIDE + GAP) - GAP, head + len(edits) * strip), PAPER)
    draw = ImageDraw.Draw(page)
    for x, way in enumerate(ways):
        write(draw, (x * (SIDE + GAP), 0), way.replace("*", "").replace("`", ""), SIDE)
    for n, edit in enumerate(edits):
        y = head + n * strip
        for x, way in enumerate(ways):
            if way in edit["ways"]:
                page.paste(small(backbone, edit["ways"][way]["tokens"]), (x * (SIDE + GAP), y))
        for m, text in enumerate((f"{edit['kind']}: {edit['old']}", f"now: {edit['new']}")):
            write(draw, (0, y + SIDE + 2 * m * LINE), text, page.width)
    return page


def write(draw: ImageDraw.ImageDraw, place: tuple[int, int], text: str, width: int) -> None:
    """Write a text in at most two lines."""
    font = font_for(text, EM)
    for n, words in enumerate(wrapped(text, font, width)[:2]):
        draw.text((place[0], place[1] + n * LINE), words, INK, font)


def small(backbone: Backbone, tokens: list) -> Image.Image:
    pixels = to_bytes(backbone.decode(torch.tensor(tokens)[None]))[0]
    return ImageOps.contain(Image.fromarray(pixels), (SIDE, SIDE), Image.Resampling.LANCZOS)
