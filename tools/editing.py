"""The pictures of docs/editing.md: edits by words, a region drawn anew, and variations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from stills import save

from ssd_core import Edit, Sampling, change_map, load_backbone, methods
from ssd_core.backbones.base import Backbone
from ssd_core.model.noise import STRENGTHS
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import to_bytes
from ssd_core.runs.request import Request, Result
from ssd_core.runs.suggestions import likeliest_first

DOCS = Path(__file__).resolve().parents[1] / "docs"
REST = "on a lake, hills behind, {}"
OLD, NEW, NIGHT, REGION = (f"{thing}, {REST.format(time)}" for thing, time in (
    ("a red house on the left", "at sunset"), ("a yellow house on the left", "at sunset"),
    ("a red house on the left", "at night"), ("a green tree on the right", "at sunset")))
VARIED = "a tower and a house"
BOX = (slice(10, 19), slice(15, 23))  # rows and columns of the region
SEED, OTHER_SEED = 1, 8  # of all pictures, and of the variations
SIDE, GAP = 288, 6  # px
SUGGESTED = 4  # pictures of the region, of which the two that fit best are shown


@dataclass(frozen=True)
class Parent:
    """A picture that edits begin with."""

    drawn: Result

    @classmethod
    def of(cls, backbone: Backbone, prompt: str) -> Parent:
        return cls(drawn(backbone, Drawing(prompt, None, methods.Exact(), Sampling(seed=SEED))))

    def again(self, **changes) -> Result:
        request = self.drawn.request
        return drawn(request.backbone, replace(request.drawing, **changes))

    def edited(self, prompt: str, **options) -> Result:
        return self.again(prompt=prompt, keep=self.drawn.tokens, **options)

    def by_words(self, prompt: str) -> Result:
        return self.edited(prompt, edit=Edit(OLD))

    def suggestions(self, keep: torch.Tensor) -> Result:
        return self.edited(REGION, keep_mask=keep, pictures=SUGGESTED)

    def varied(self, share: float) -> Result:
        sampling = Sampling(seed=SEED, variation=share, variation_seed=OTHER_SEED)
        return self.again(sampling=sampling)


def drawn(backbone: Backbone, drawing: Drawing) -> Result:
    return Request(backbone, None, drawing).run()


def main(arguments: list[str]) -> None:
    backbone = load_backbone("postcard", "cpu")
    parent, varied = Parent.of(backbone, OLD), Parent.of(backbone, VARIED)
    before, by_words = shown(parent.drawn), shown(parent.by_words(NEW))
    change = lit(change_map(backbone, parent.drawn.tokens[0], OLD, NEW))
    keep = torch.ones(backbone.grid.rows, backbone.grid.columns, dtype=torch.bool)
    keep[BOX] = False
    suggested = parent.suggestions(keep)
    shown_all = list(all_shown(suggested))
    best = [shown_all[n] for n in likeliest_first([suggested])[:2]]
    strips = {"editing": [before, change, by_words, best[0]],
              "editing_words": [before, change, by_words, shown(parent.by_words(NIGHT))],
              "editing_region": [before, whitened(before, keep), *best],
              "editing_variations": [shown(varied.drawn), *(shown(varied.varied(share))
                                                            for share in STRENGTHS.values())]}
    for name, panels in strips.items():
        save(strip(panels), DOCS / f"{name}.webp")


def all_shown(result: Result) -> Iterator[Image.Image]:
    return (Image.fromarray(to_bytes(picture.pixels)) for picture in result.pictures())


def shown(result: Result) -> Image.Image:
    return next(all_shown(result))


def lit(change: torch.Tensor) -> Image.Image:
    """The map [R, C] as grey cells, white where the words change everything."""
    cells = (change.clamp(0, 1) * 255).byte().numpy()
    return Image.fromarray(np.kron(cells, np.ones((16, 16), np.uint8))).convert("RGB")


def whitened(picture: Image.Image, keep: torch.Tensor) -> Image.Image:
    """The picture with the cells that `keep` [R, C] frees in white."""
    free = Image.fromarray((~keep).numpy().astype(np.uint8) * 255)
    return Image.composite(Image.new("RGB", picture.size, "white"), picture,
                           free.resize(picture.size, Image.Resampling.NEAREST))


def strip(panels: Sequence[Image.Image]) -> Image.Image:
    """Pictures side by side."""
    page = Image.new("RGB", (len(panels) * (SIDE + GAP) - GAP, SIDE), "white")
    for n, panel in enumerate(panels):
        page.paste(panel.resize((SIDE, SIDE), Image.Resampling.LANCZOS), (n * (SIDE + GAP), 0))
    return page
