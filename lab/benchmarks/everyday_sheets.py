"""Contact sheets of everyday prompts, as typed beside expanded, and the judgement of viewers.

NAME_eyes.json holds their judgement of the sheets of table NAME, once there is one:
{"as typed": {PROMPT: true}, "expanded": {...}}, where true means that they would keep the picture.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch
from conditions import RESULTS, table
from everyday_rule import words_of
from PIL import Image, ImageDraw, ImageOps

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.postcard.words.aliases import without_repeats
from ssd_core.files import atomic_write
from ssd_core.output.recipe import to_bytes
from ssd_core.output.sheet import INK, PAPER, east_asian_font, font_for, wrapped

SHOWN, SHEETS, COLUMNS = 40, 4, 5  # prompts, sheets, prompts side by side
SIDE, BETWEEN, GAP, EM = 184, 2, 14, 15  # px of a picture, behind it, between prompts, of a letter
TEXT = 3 * 20  # px below a picture: three lines


def on_sheets(prompts: Sequence[Any]) -> list[Any]:
    """The prompts on the sheets, spread evenly over the file."""
    return list(prompts[:: max(1, len(prompts) // SHOWN)])[:SHOWN]


def write_sheets(backbone: Backbone, rows: Sequence[Sequence[Any]], name: str) -> None:
    """Write NAME-1.webp and so on; rows: the pictures of all prompts, as typed and expanded."""
    shown, each = list(zip(*map(on_sheets, rows), strict=True)), SHOWN // SHEETS
    for n, first in enumerate(range(0, len(shown), each), 1):
        with atomic_write(RESULTS / f"{name}-{n}.webp") as temporary:
            sheet(backbone, shown[first : first + each]).save(
                temporary, format="WEBP", quality=82, method=6)


def sheet(backbone: Backbone, shown: Sequence[Sequence[Any]]) -> Image.Image:
    """Pictures of one prompt side by side, with the prompt below."""
    wide, tall = len(shown[0]) * (SIDE + BETWEEN) - BETWEEN + GAP, SIDE + TEXT
    page = Image.new("RGB", (COLUMNS * wide - GAP, -(-len(shown) // COLUMNS) * tall), PAPER)
    draw = ImageDraw.Draw(page)
    for n, pictures in enumerate(shown):
        x, y = n % COLUMNS * wide, n // COLUMNS * tall
        for m, picture in enumerate(pictures):
            page.paste(small(backbone, picture), (x + m * (SIDE + BETWEEN), y))
        text = legible(pictures[0].prompt.text)
        font = font_for(text, EM)
        for line, words in enumerate(wrapped(text, font, wide - 2 * GAP)[:3]):
            draw.text((x, y + SIDE + 3 + line * 18), words, INK, font)
    return page


def legible(prompt: str) -> str:
    """The prompt; in postcard's English words if it is Chinese and no Chinese font is installed."""
    if prompt.isascii() or east_asian_font():
        return prompt
    words = without_repeats(word for word in words_of(prompt) if word.isascii())
    return " ".join(words).replace(" ,", ",").rstrip(",")


def small(backbone: Backbone, picture: Any) -> Image.Image:
    pixels = to_bytes(backbone.decode(torch.from_numpy(picture.tokens)[None]))[0]
    return ImageOps.contain(Image.fromarray(pixels), (SIDE, SIDE), Image.Resampling.LANCZOS)


def eyes_table(name: str) -> str:
    """The share of pictures that viewers would keep; empty without a judgement."""
    path = RESULTS / f"{name}_eyes.json"
    if not path.is_file():
        return ""
    saved = json.loads(path.read_text(encoding="utf-8"))
    rows = [[expansion, f"{sum(liked.values())} of {len(liked)}"]
            for expansion, liked in saved.items()]
    return "Kept by eye, of the pictures on the sheets:\n\n" + table(["prompt", "kept"], rows)
