"""The README's short prompt: the same seeds, as typed above and expanded below."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw
from stills import save

from ssd_core import Sampling, load_backbone, load_heads, methods
from ssd_core.backbones.base import Backbone
from ssd_core.engine.heads import DraftHeads
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import to_bytes
from ssd_core.output.sheet import INK, PAPER, font_for
from ssd_core.runs.request import Request

OUT = Path(__file__).resolve().parents[1] / "docs" / "short_prompt.webp"
PROMPT, SEEDS = "a red house", range(1, 6)
ROWS = {False: f'"{PROMPT}", as typed',
        True: "the same seeds, with what the prompt leaves open filled in"}
SIDE, GAP, TITLE, EM = 192, 6, 30, 17  # px


def main(arguments: list[str]) -> None:
    backbone = load_backbone("postcard", "cpu")
    heads = load_heads("postcard", backbone)
    tall = TITLE + SIDE + GAP
    page = Image.new("RGB", (len(SEEDS) * (SIDE + GAP) - GAP, len(ROWS) * tall - GAP), PAPER)
    draw = ImageDraw.Draw(page)
    for row, (expand, title) in enumerate(ROWS.items()):
        draw.text((2, row * tall + 6), title, INK, font_for(title, EM))
        for column, seed in enumerate(SEEDS):
            page.paste(drawn(backbone, heads, seed, expand),
                       (column * (SIDE + GAP), row * tall + TITLE))
    save(page, OUT)


def drawn(backbone: Backbone, heads: DraftHeads, seed: int, expand: bool) -> Image.Image:
    """A small picture of the prompt by `exact`."""
    drawing = Drawing(PROMPT, method=methods.Exact(), sampling=Sampling(seed=seed), expand=expand)
    result = Request(backbone, heads, drawing).run()
    picture = to_bytes(next(result.pictures()).pixels)
    return Image.fromarray(picture).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
