"""What self-distillation saves by drawing AR's pictures with `exact`: passes and seconds.

    python benchmarks/self_distill.py                    writes results/self_distill.md
    python benchmarks/self_distill.py --pictures 4 --batches 1,2

Seconds are those of the processor, so that other work on the machine does not count. Every row
draws the same pictures; that the tokens are equal is checked.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from conditions import RESULTS, conditions, table

from ssd_core import load_backbone
from ssd_core.train import self_distill
from ssd_core.train.drawn import load_pictures

HEAD = ["pictures at once", "method", "passes", "seconds a picture", "times faster",
        "tokens are AR's"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", default="postcard")
    parser.add_argument("--pictures", type=int, default=8)
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--out", type=Path, default=RESULTS / "self_distill.md")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for batch in map(int, args.batches.split(",")):
        rows += measured(args.backbone, args.pictures, batch)
    about = (f"{conditions(torch.device('cpu'))}. {args.pictures} pictures of `{args.backbone}` "
             "in fp32 with its own guidance, seeds 0 and up, drawn by `train self-distill`; "
             "seconds of the processor for the whole stage, loading included. Made by "
             "`python benchmarks/self_distill.py`.")
    args.out.write_text(f"# Self-distillation by `ar` and by `exact`\n\n{about}\n\n"
                        f"{table(HEAD, rows)}", encoding="utf-8")
    print(args.out.read_text(encoding="utf-8"))


def measured(backbone: str, pictures: int, batch: int) -> list[list[str]]:
    """The rows of both methods at one size of batch."""
    rows, first, drawn = [], 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        for method in self_distill.METHODS:
            recipe = self_distill.SelfDistillRecipe(
                Path(folder) / method, backbone, pictures=pictures, batch=batch, method=method,
                device="cpu", dtype="fp32")
            started = time.process_time()
            told = self_distill.train(recipe)
            seconds = (time.process_time() - started) / pictures
            first = first or seconds
            drawn.append(load_pictures(recipe.out, load_backbone(backbone, "cpu", "fp32")).tokens)
            rows.append([str(batch), method, f"{told['passes']:,}", f"{seconds:.2f}",
                         f"{first / seconds:.1f}", "yes" if drawn[0].equal(drawn[-1]) else "no"])
    return rows


if __name__ == "__main__":
    main()
