"""Strips of small pictures, one for each row of a table, with its label in front."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from ssd_core.backbones.base import Backbone
from ssd_core.files import atomic_write
from ssd_core.output.recipe import to_bytes

SHOWN, SIDE = 3, 128  # pictures a row of the sheet, and their height in px
LABEL, FONT, QUALITY = 230, 15, 75  # px of the labels' column and of its font; of the WebP


def sheet(backbone: Backbone, shown: list[tuple[str, torch.Tensor]]) -> Image.Image:
    """One strip of pictures per row, with its label in front."""
    width = SIDE * backbone.size[0] // backbone.size[1]
    page = Image.new("RGB", (LABEL + SHOWN * width, len(shown) * SIDE), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size=FONT)
    for y, (label, tokens) in enumerate(shown):
        draw.multiline_text((8, y * SIDE + 8), label.replace(", ", ",\n"), "black", font)
        pictures = [to_bytes(picture) for picture in backbone.decode(tokens)]
        strip = Image.fromarray(np.concatenate(pictures, axis=1))
        page.paste(strip.resize((width * len(pictures), SIDE), Image.Resampling.LANCZOS),
                   (LABEL, y * SIDE))
    return page


def save_sheet(backbone: Backbone, shown: list[tuple[str, torch.Tensor]], path: Path) -> None:
    with atomic_write(path) as temporary:
        sheet(backbone, shown).save(temporary, format="WEBP", quality=QUALITY, method=6)
