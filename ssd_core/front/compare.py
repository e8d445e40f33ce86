"""The same seed by several methods: what is the same, measured, and one picture that shows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from ..engine.methods import AR, Method

GAP, LINE, FONT = 12, 18, 13  # px


def identical_share(tokens: torch.Tensor, others: torch.Tensor) -> float:
    """Share of cells whose tokens agree; both [..., R, C]."""
    return (tokens == others).float().mean().item()


def verdict(method: Method, dtype: torch.dtype, identical: float | None) -> str:
    """What may be said of a picture, as one word of the previews, stamps and reports.

    "identical" where all tokens were compared with AR's, or where fp32 makes them so. Rounding in
    bf16 and fp16 may turn a choice between two even tokens; each is still one that AR could make.
    identical: share of tokens equal to AR's in this run, None where AR did not run.
    """
    if identical == 1 or isinstance(method, AR):
        return "identical"
    if method.verdict != "identical":
        return method.verdict
    certain = identical is None and dtype == torch.float32
    return "identical" if certain else "same distribution"


def side_by_side(pictures: Sequence[np.ndarray], stamps: Sequence[Sequence[str]]) -> Image.Image:
    """uint8 pictures [H, W, 3] of one size in a row, each with its lines of text below it."""
    height, width = pictures[0].shape[:2]
    font = ImageFont.load_default(size=FONT)
    widest = max(int(font.getlength(line)) for lines in stamps for line in lines)
    pitch = max(width, widest) + GAP
    below = LINE * max(map(len, stamps)) + GAP
    sheet = Image.new("RGB", (GAP + pitch * len(pictures), 2 * GAP + height + below), "white")
    draw = ImageDraw.Draw(sheet)
    for i, (picture, lines) in enumerate(zip(pictures, stamps, strict=True)):
        left = GAP + i * pitch
        sheet.paste(Image.fromarray(picture), (left, GAP))
        for n, line in enumerate(lines):
            draw.text((left, 2 * GAP + height + n * LINE), line, fill="black", font=font)
    return sheet
