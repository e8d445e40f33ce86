"""The contact sheet: painted postcards above, the backbone's own below, by AR and by SSD.

CROPS is a second sheet of enlarged details: the same pictures as painted, through the tokenizer
and by AR.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from stills import save

from ssd_core import Finished, Sampling, generate, load_backbone, load_heads, methods
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.backbones.postcard.words.world import scene_of
from ssd_core.output.recipe import to_bytes
from ssd_lab.evaluate.metrics import PROMPT_SEED
from ssd_lab.postcards import paint

DOCS = Path(__file__).resolve().parents[1] / "docs"
# Of a picture: the left, upper, right and lower edge in px; and how many times it is enlarged.
CROP, LARGER = (120, 140, 264, 284), 2
SMALLER = 2  # how many times the sheet is reduced


def crops(rows: list[np.ndarray]) -> Image.Image:
    """The same part of every picture uint8 [n, H, W, 3], enlarged; a row for each."""
    left, upper, right, lower = CROP
    strips = [np.concatenate(list(row[:, upper:lower, left:right]), axis=1) for row in rows]
    page = Image.fromarray(np.concatenate(strips))
    return page.resize((LARGER * page.width, LARGER * page.height), Image.Resampling.LANCZOS)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", default="postcard")
    parser.add_argument("--heads", default="postcard")
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=DOCS / "postcards.webp")
    parser.add_argument("--crops", type=Path, default=DOCS / "crops.webp")
    args = parser.parse_args(arguments)
    backbone = load_backbone(args.backbone).smallest  # beside painted pictures
    heads = load_heads(args.heads, backbone)
    seeds = range(PROMPT_SEED, PROMPT_SEED + args.columns)
    captions = [fresh_caption(seed, 0) for seed in seeds]
    painted = np.stack([paint(scene_of(seed)) for seed in seeds])
    rows = [painted]
    for method in (methods.AR(), methods.Exact(), methods.SSD(k_h=5, k_v=1, rounds=2),
                   methods.SSD(k_h=5, k_v=1, rounds=0)):
        *_, last = generate(backbone, captions, method, heads, Sampling(seed=args.seed))
        assert isinstance(last, Finished)
        rows.append(to_bytes(backbone.decode(last.tokens)))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    strips = [np.concatenate(list(row), axis=1) for row in rows]
    page = Image.fromarray(np.concatenate(strips))
    save(page.reduce(SMALLER), args.out)
    encoded = backbone.encode(torch.from_numpy(painted).float() / 255)
    save(crops([painted, to_bytes(backbone.decode(encoded)), rows[1]]), args.crops)
    for caption in captions:
        print(caption)
