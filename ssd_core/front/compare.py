"""Compare methods on one seed: the share of equal tokens, a verdict, and a side-by-side picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from ..engine.methods import AR, Method

GAP, LINE, FONT = 12, 18, 13  # px


def identical_share(tokens: torch.Tensor, others: torch.Tensor) -> float:
    """Share of cells with equal tokens; both [..., R, C]."""
    return (tokens == others).float().mean().item()


def verdict(method: Method, dtype: torch.dtype, identical: float | None) -> str:
    """What can be claimed of a picture, as one word for previews, stamps and reports.

    "identical" if all tokens were compared with AR's, or if fp32 guarantees it. In bf16 and fp16
    rounding can decide between two nearly even tokens; AR could have chosen either. identical:
    measured share of tokens equal to AR's, None if AR did not run.
    """
    if identical == 1 or isinstance(method, AR):
        return "identical"
    if method.verdict != "identical":
        return method.verdict
    certain = identical is None and dtype == torch.float32
    return "identical" if certain else "same distribution"


def side_by_side(pictures: Sequence[np.ndarray], stamps: Sequence[Sequence[str]]) -> Image.Image:
    """Place uint8 pictures [H, W, 3] of one size in a row, each above its lines of text."""
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
