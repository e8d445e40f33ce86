"""The contact sheet: painted postcards above, the backbone's own below, by AR and by SSD.

    python benchmarks/contact_sheet.py --out docs/postcards.jpg
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from ssd_core import Finished, Sampling, generate, load_backbone, load_heads, methods
from ssd_core.measure.metrics import PROMPT_SEED
from ssd_core.postcards import paint
from ssd_core.train.data import fresh_caption, scene_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", default="postcard")
    parser.add_argument("--heads", default="postcard")
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("docs/postcards.jpg"))
    args = parser.parse_args()
    backbone = load_backbone(args.backbone)
    heads = load_heads(args.heads, backbone)
    seeds = range(PROMPT_SEED, PROMPT_SEED + args.columns)
    captions = [fresh_caption(seed, 0) for seed in seeds]
    strips = [np.concatenate([paint(scene_of(seed)) for seed in seeds], axis=1)]
    for method in (methods.AR(), methods.Exact(), methods.SSD(k_h=5, k_v=1, rounds=2),
                   methods.SSD(k_h=5, k_v=1, rounds=0)):
        *_, last = generate(backbone, captions, method, heads, Sampling(seed=args.seed))
        assert isinstance(last, Finished)
        pictures = (backbone.decode(last.tokens) * 255).round().byte().cpu().numpy()
        strips.append(np.concatenate(list(pictures), axis=1))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate(strips)).save(args.out, quality=85)
    for caption in captions:
        print(caption)


if __name__ == "__main__":
    main()
