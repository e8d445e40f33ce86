"""The quality table of `postcard`: every method on the same held-out captions and seeds.

    python benchmarks/quality.py --prompts 64 --out benchmarks/results/postcard.md
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from conditions import RESULTS, conditions, table

from ssd_core import Sampling, load_backbone, load_heads, methods
from ssd_core.evaluate import evaluate

METHODS = [
    ("AR", methods.AR()), ("1-D MTP, k_h 5", methods.MTP(k_h=5)),
    ("strict, horizontal", methods.Strict()),
    ("rows, distribution, r = 2", methods.Rows(rounds=2)),
    ("exact, window 24", methods.Exact()),
    *((f"SSD r = {r}, residual", methods.SSD(k_h=5, k_v=1, rounds=r)) for r in range(4)),
    ("SSD r = 2, coupled", methods.SSD(k_h=5, k_v=1, rounds=2, acceptance="coupled")),
    ("SSD r = 2, fused commit", methods.SSD(k_h=5, k_v=1, rounds=2, fused_commit=True)),
    ("SSD coupled to convergence",
     methods.SSD(k_h=5, k_v=1, rounds=24, acceptance="coupled")),
]
HEAD = ["decoding", "passes", "NLL", "captions", "objects", "entropy", "same as AR", "seconds"]


def line(row: dict) -> list[str]:
    def measured(name: str, digits: int) -> str:
        return f"{row[name]:.{digits}f} ± {row[name + '_se']:.{digits}f}"
    return [row["method"], f"{row['passes']:.0f}", measured("nll", 3),
            measured("caption_accuracy", 3), measured("object_accuracy", 3),
            measured("entropy", 2), f"{100 * row['identical_tokens']:.0f} %",
            f"{row['seconds']:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", default="postcard")
    parser.add_argument("--heads", default="postcard")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=RESULTS / "postcard.md")
    args = parser.parse_args()
    backbone = load_backbone(args.backbone)
    heads = load_heads(args.heads, backbone)
    rows = evaluate(backbone, heads, METHODS, args.prompts, args.batch, Sampling(seed=args.seed),
                    lambda label: print(label, file=sys.stderr))
    text = (f"# `postcard`, {args.prompts} held-out captions\n\n{conditions(backbone.device)}; "
            f"guidance {backbone.preset.cfg}, temperature 1, seeds from {args.seed}, batches of "
            f"{args.batch}, ± one standard error.\n\n{table(HEAD, [line(row) for row in rows])}\n"
            "Passes: prefill included, guidance branches counted once, mean over pictures. NLL: "
            "nats a token under the guided backbone; captions, objects: share of a caption's "
            "claims, and of its things with kind, colour and place all right, that a plain "
            "program finds in the pixels; entropy: nats of the codes within a picture; same as "
            "AR: tokens equal to AR's for that seed; seconds: all pictures of the row, in "
            "batches.\n")
    args.out.write_text(text)
    args.out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    print(text)


if __name__ == "__main__":
    main()
