"""Whether methods that guarantee AR's picture draw it: pictures compared token by token.

    python lab/benchmarks/identical.py --pictures 200

Per dtype, the same captions and seeds by AR and by windows of several widths, alone and in batches
of three, all compared with AR's picture drawn alone. Resumes where it was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from conditions import conditions, table, write_page
from script import options, postcard

from ssd_core import Sampling, generate
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.engine.events import finished
from ssd_core.engine.methods import AR, SSD, Exact, Jacobi, Method, Rolling
from ssd_core.files import write_text
from ssd_core.runs.batch.workers import LoadedModels
from ssd_lab.evaluate.metrics import PROMPT_SEED

DTYPES = ("fp32", "bf16", "int8")
METHODS: dict[str, Method] = {
    **{f"exact, window {n}": Exact(window=n) for n in (13, 24, 48, 50)},
    "jacobi, window 24": Jacobi(window=24),
    "rolling at AR's budget, window 24": Rolling(budget=576, window=24),
    "ssd coupled to convergence": SSD(k_h=5, k_v=1, rounds=24, acceptance="coupled")}
BATCH, FEWER = 3, 10  # methods other than `exact` draw one picture in FEWER


def drawn(loaded: LoadedModels, prompts: list[str], method: Method, seed: int) -> torch.Tensor:
    """Tokens [B, R, C]."""
    return finished(generate(loaded.backbone, prompts, method, loaded.heads,
                             Sampling(seed=seed))).tokens


def compared(loaded: LoadedModels, caption: str, seed: int, whole: bool) -> dict[str, list[int]]:
    """Pictures equal to AR's and pictures compared, by method; whole: by all of them."""
    alone = [drawn(loaded, [caption], AR(), seed + n) for n in range(BATCH if whole else 1)]
    counts = {}
    for label, method in METHODS.items():
        if isinstance(method, Exact) or whole:
            same = drawn(loaded, [caption], method, seed).equal(alone[0])
            counts[label] = [int(same), 1]
    if whole:
        batch = drawn(replace(loaded, heads=None), [caption] * BATCH, Exact(window=24), seed)
        same = sum(picture.equal(own[0]) for picture, own in zip(batch, alone, strict=True))
        counts[f"exact, window 24, batches of {BATCH}"] = [same, BATCH]
    return counts


def main() -> None:
    parser = options(__doc__, "identical.md")
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES))
    parser.add_argument("--runs", type=Path, default=Path("runs/identical.json"))
    args = parser.parse_args()
    done = json.loads(args.runs.read_text()) if args.runs.is_file() else {}
    for dtype in args.dtypes:
        loaded = postcard(dtype)
        for n in range(args.pictures):
            if (key := f"{dtype}/{n}") not in done:
                caption = fresh_caption(PROMPT_SEED + n, 0)
                done[key] = compared(loaded, caption, n, n % FEWER == 0)
                write_text(args.runs, json.dumps(done))
                print(key, done[key], flush=True)
    write_page(args.out, "Pictures equal to AR's",
               "`postcard`, held-out captions, caption n with seed n, guidance 2. "
               f"{conditions()}. Made by `python lab/benchmarks/identical.py`.",
               table(["method", *args.dtypes], lines(done, args.dtypes)))


def lines(done: dict, dtypes: Sequence[str]) -> list[list[str]]:
    labels = [*METHODS, f"exact, window 24, batches of {BATCH}"]
    return [[label, *(cell(done, dtype, label) for dtype in dtypes)] for label in labels]


def cell(done: dict, dtype: str, label: str) -> str:
    counts = [result[label] for key, result in done.items()
              if key.startswith(f"{dtype}/") and label in result]
    return f"{sum(c[0] for c in counts)} of {sum(c[1] for c in counts)}" if counts else ""


if __name__ == "__main__":
    main()
