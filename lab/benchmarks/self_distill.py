"""What self-distillation saves by drawing AR's pictures with `exact`: passes and seconds.

    python lab/benchmarks/self_distill.py                    writes results/self_distill.md
    python lab/benchmarks/self_distill.py --pictures 4 --batches 1,2

Both methods are timed in every dtype with one thread and with all, in turn, and each counts with
its fastest. Every row draws the same pictures; whether the tokens are AR's is checked.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path

from conditions import CPU, conditions, table, write_page
from script import loadable, options

from ssd_core.engine.methods import AR
from ssd_core.measure.bench import (
    AR_DTYPES,
    Setting,
    fastest,
    in_words,
    settings,
    take_turns,
    thread_counts,
)
from ssd_core.train import self_distill
from ssd_core.train.picture_files import load_pictures

HEAD = ["pictures at once", "method", "passes", "seconds a picture", "dtype", "best setting",
        "as fast as AR", "as AR in the same dtype", "tokens are AR's"]


def main() -> None:
    parser = options(__doc__, "self_distill.md")
    parser.add_argument("--backbone", default="postcard")
    parser.add_argument("--pictures", type=int, default=8)
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--dtypes", nargs="+", default=list(AR_DTYPES))
    args = parser.parse_args()
    counts, (backbones, left_out) = thread_counts(CPU), loadable(args.backbone, args.dtypes)
    rows = []
    for batch in map(int, args.batches.split(",")):
        rows += measured(args, batch, list(backbones), counts)
    about = (f"{conditions(CPU, ', '.join(backbones), counts)}. {args.pictures} pictures of "
             f"`{args.backbone}` with its own guidance, seeds 0 and up, drawn by `train "
             f"self-distill`; seconds of the whole stage, loading included, medians of "
             f"{args.repeats} turns. Each method counts with its fastest number of threads; 'as "
             "fast as AR' is against AR in the dtype and with the threads that are best for it. "
             "Made by `python lab/benchmarks/self_distill.py`.")
    write_page(args.out, "Self-distillation by `ar` and by `exact`", about, *left_out,
               table(HEAD, rows))


def stage(folder: Path, numbers: count, args: argparse.Namespace, batch: int, dtype: str,
          method: str) -> Mapping:
    """Draw all pictures into a new folder; returns the stage's results and the folder."""
    out = folder / str(next(numbers))
    recipe = self_distill.SelfDistillRecipe(out, args.backbone, pictures=args.pictures, batch=batch,
                                            method=method, device="cpu", dtype=dtype)
    return {**self_distill.train(recipe), "out": out}


def measured(args: argparse.Namespace, batch: int, dtypes: Sequence[str],
             counts: Sequence[int]) -> list[list[str]]:
    """The rows of both methods in all dtypes for one batch size."""
    backbones, numbers = loadable(args.backbone, dtypes)[0], count()
    with tempfile.TemporaryDirectory() as folder:
        timed = {(method, dtype): settings(method, dtype, counts, partial(
                     stage, Path(folder), numbers, args, batch, dtype, method))
                 for dtype in dtypes for method in self_distill.METHODS}
        take_turns([setting for own in timed.values() for setting in own], args.repeats, warmup=0)
        tokens = {key: load_pictures(fastest(own).outcomes[-1]["out"], backbones[key[1]]).tokens
                  for key, own in timed.items()}
    best = {key: fastest(own) for key, own in timed.items()}
    ar = {dtype: best[AR.name, dtype] for dtype in dtypes}
    return [[str(batch), *line(setting, args.pictures, ar),
             "yes" if tokens[key].equal(tokens[AR.name, key[1]]) else "no"]
            for key, setting in best.items()]


def line(setting: Setting, pictures: int, ar: Mapping[str, Setting]) -> list[str]:
    seconds = setting.median
    return [setting.label, f"{setting.outcomes[-1]['passes']:,}", f"{seconds / pictures:.2f}",
            setting.dtype, in_words(setting.threads),
            f"{fastest(ar.values()).median / seconds:.2f}",
            f"{ar[setting.dtype].median / seconds:.2f}"]


if __name__ == "__main__":
    main()
