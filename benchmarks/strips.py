"""Strips of pictures, one for each row of a table, with its label in front."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from ssd_core.backbones.base import Backbone
from ssd_core.front.recipe import to_bytes

SHOWN, LABEL, FONT = 6, 230, 15  # pictures a row of the sheet; px of its labels' column; px


def sheet(backbone: Backbone, shown: list[tuple[str, torch.Tensor]]) -> Image.Image:
    """One strip of pictures a row, its label in front."""
    height, width = backbone.size[1], backbone.size[0]
    page = Image.new("RGB", (LABEL + SHOWN * width, len(shown) * height), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size=FONT)
    for y, (label, tokens) in enumerate(shown):
        draw.multiline_text((8, y * height + 8), label.replace(", ", ",\n"), "black", font)
        strip = np.concatenate([to_bytes(picture) for picture in backbone.decode(tokens)], axis=1)
        page.paste(Image.fromarray(strip), (LABEL, y * height))
    return page
