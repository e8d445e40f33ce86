"""The picture of docs/editing.md: a picture, its change map, an edit by words, a region anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from stills import save

from ssd_core import Sampling, change_map, load_backbone, methods
from ssd_core.output.recipe import to_bytes
from ssd_core.runs.request import Request, Result

OUT = Path(__file__).resolve().parents[1] / "docs" / "editing.webp"
OLD = "a red house on the left, on a lake, hills behind, at sunset"
NEW = "a yellow house on the left, on a lake, hills behind, at sunset"
REGION = "a green tree on the right, on a lake, hills behind, at sunset"
SEED, SIDE, GAP = 1, 288, 6  # px


def main(arguments: list[str]) -> None:
    backbone = load_backbone("postcard", "cpu")
    run = {"backbone": backbone, "heads": None, "method": methods.Exact(),
           "sampling": Sampling(seed=SEED)}
    parent = Request(**run, prompt=OLD).run()
    tokens = parent.tokens
    keep = torch.ones(backbone.grid.rows, backbone.grid.columns, dtype=torch.bool)
    keep[10:19, 15:23] = False
    panels = [shown(parent), lit(change_map(backbone, tokens[0], OLD, NEW)),
              shown(Request(**run, prompt=NEW, keep=tokens, old_prompt=OLD).run()),
              shown(Request(**run, prompt=REGION, keep=tokens, keep_mask=keep).run())]
    page = Image.new("RGB", (len(panels) * (SIDE + GAP) - GAP, SIDE), "white")
    for n, panel in enumerate(panels):
        page.paste(panel.resize((SIDE, SIDE), Image.Resampling.LANCZOS), (n * (SIDE + GAP), 0))
    save(page, OUT)


def shown(result: Result) -> Image.Image:
    return Image.fromarray(to_bytes(next(result.pictures())))


def lit(change: torch.Tensor) -> Image.Image:
    """The map [R, C] as grey cells, white where the words change everything."""
    cells = (change.clamp(0, 1) * 255).byte().numpy()
    return Image.fromarray(np.kron(cells, np.ones((16, 16), np.uint8))).convert("RGB")
