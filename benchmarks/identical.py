"""Whether methods that promise AR's picture draw it: pictures compared token by token.

    python benchmarks/identical.py --pictures 200

Per dtype, the same captions and seeds by AR and by windows of several widths, alone and in batches
of three, all compared with AR's picture drawn alone. Resumes where it was interrupted. Writes
benchmarks/results/identical.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from conditions import RESULTS, conditions, table, write_page

from ssd_core import Sampling, generate, load_backbone, load_heads
from ssd_core.engine.methods import AR, SSD, Exact, Jacobi, Method, Rolling
from ssd_core.evaluate.metrics import PROMPT_SEED
from ssd_core.train.data import fresh_caption

DTYPES = ("fp32", "bf16", "int8")
METHODS: dict[str, Method] = {
    **{f"exact, window {n}": Exact(window=n) for n in (13, 24, 48, 50)},
    "jacobi, window 24": Jacobi(window=24),
    "rolling at AR's budget, window 24": Rolling(budget=576, window=24),
    "ssd coupled to convergence": SSD(k_h=5, k_v=1, rounds=24, acceptance="coupled")}
BATCH, FEWER = 3, 10  # methods other than `exact` draw one picture in FEWER


def drawn(backbone, prompts: list[str], method: Method, seed: int, heads) -> torch.Tensor:
    """Tokens [B, R, C]."""
    *_, last = generate(backbone, prompts, method, heads, Sampling(seed=seed))
    return last.tokens


def compared(backbone, heads, caption: str, seed: int, whole: bool) -> dict[str, list[int]]:
    """Pictures equal to AR's and pictures compared, by method; whole: by all of them."""
    alone = [drawn(backbone, [caption], AR(), seed + n, None) for n in range(BATCH if whole else 1)]
    counts = {}
    for label, method in METHODS.items():
        if isinstance(method, Exact) or whole:
            same = drawn(backbone, [caption], method, seed, heads).equal(alone[0])
            counts[label] = [int(same), 1]
    if whole:
        batch = drawn(backbone, [caption] * BATCH, Exact(window=24), seed, None)
        same = sum(picture.equal(own[0]) for picture, own in zip(batch, alone, strict=True))
        counts[f"exact, window 24, batches of {BATCH}"] = [same, BATCH]
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES))
    parser.add_argument("--runs", type=Path, default=Path("runs/identical.json"))
    asked = parser.parse_args()
    asked.runs.parent.mkdir(parents=True, exist_ok=True)
    done = json.loads(asked.runs.read_text()) if asked.runs.is_file() else {}
    for dtype in asked.dtypes:
        backbone = load_backbone("postcard", "cpu", dtype)
        heads = load_heads("postcard", backbone)
        for n in range(asked.pictures):
            if (key := f"{dtype}/{n}") not in done:
                done[key] = compared(backbone, heads, fresh_caption(PROMPT_SEED + n, 0), n,
                                     n % FEWER == 0)
                asked.runs.write_text(json.dumps(done))
                print(key, done[key], flush=True)
    write(done, asked.dtypes)


def write(done: dict, dtypes: list[str]) -> None:
    labels = [*METHODS, f"exact, window 24, batches of {BATCH}"]
    rows = [[label, *(cell(done, dtype, label) for dtype in dtypes)] for label in labels]
    write_page(RESULTS / "identical.md", "Pictures equal to AR's",
               "`postcard`, held-out captions, caption n with seed n, guidance 2. "
               f"{conditions(torch.device('cpu'))}. Made by `python benchmarks/identical.py`.",
               table(["method", *dtypes], rows))


def cell(done: dict, dtype: str, label: str) -> str:
    counts = [result[label] for key, result in done.items()
              if key.startswith(f"{dtype}/") and label in result]
    return f"{sum(c[0] for c in counts)} of {sum(c[1] for c in counts)}" if counts else ""


if __name__ == "__main__":
    main()
