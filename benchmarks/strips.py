"""Strips of pictures, one for each row of a table, with its label in front."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from ssd_core.backbones.base import Backbone

SHOWN, LABEL, FONT = 6, 230, 15  # pictures a row of the sheet; px of its labels' column; px


def sheet(backbone: Backbone, shown: list[tuple[str, torch.Tensor]]) -> Image.Image:
    """One strip of pictures a row, its label in front."""
    height, width = backbone.size[1], backbone.size[0]
    page = Image.new("RGB", (LABEL + SHOWN * width, len(shown) * height), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size=FONT)
    for y, (label, tokens) in enumerate(shown):
        draw.multiline_text((8, y * height + 8), label.replace(", ", ",\n"), "black", font)
        pictures = (backbone.decode(tokens) * 255).round().byte().cpu().numpy()
        page.paste(Image.fromarray(np.concatenate(list(pictures), axis=1)), (LABEL, y * height))
    return page
