"""Passes that `exact` takes on `postcard`, and how often bf16 and fp16 differ from AR's picture.

    python benchmarks/exact_passes.py --prompts 16

Writes benchmarks/results/exact.md and the figures that plans show (ssd_core/assets/postcard/
usual.json). Prompts are held-out captions, one picture at a time, guidance and all else by default.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
from pathlib import Path

import torch

from ssd_core import Sampling, generate, load_backbone, load_heads
from ssd_core.backbones.base import Backbone
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, GSD, SJD, Exact, Jacobi, Method, Rolling, Wave
from ssd_core.engine.usual import key_of
from ssd_core.evaluate.metrics import PROMPT_SEED
from ssd_core.files import ASSETS, atomic_write
from ssd_core.output.guarantees import identical_share
from ssd_core.train.data import fresh_caption

ROOT = Path(__file__).resolve().parents[1]
WINDOWS = (48, 96, 24, 8, 12, 16, 192)
OTHERS = (SJD, GSD, Jacobi)  # plans choose their windows, too
CELLS = (2, 3, 4, 6, 8, 12, 16, 24)  # of each row, for wave
BUDGETS = {8.0: (27, 39, 48, 72), 12.0: (39, 48, 72)}  # values of `fewer` and windows, for rolling


def drawn(backbone: Backbone, method: Method, heads: DraftHeads | None, captions: list[str]):
    """(tokens, passes) of every caption; caption i uses seed i."""
    for seed, caption in enumerate(captions):
        *_, finished = generate(backbone, caption, method, heads, Sampling(seed=seed))
        yield finished.tokens[0], finished.stats["passes_each"][0]


def passes(backbone: Backbone, heads: DraftHeads, captions: list[str]) -> dict[str, list[int]]:
    """Passes of every caption, by the key that plans look up."""
    passes_by_key = {}
    for window in WINDOWS:
        for drafter in ("heads", "none", *(["row"] if heads.row is not None else [])):
            own = None if drafter == "none" else heads
            method = Exact(window, "row" if drafter == "row" else "heads")
            key = key_of(method, backbone, own is not None)
            passes_by_key[key] = [n for _, n in drawn(backbone, method, own, captions)]
            print(key, statistics.mean(passes_by_key[key]), flush=True)
        for kind in OTHERS:
            key = key_of(kind(window), backbone, False)
            passes_by_key[key] = [n for _, n in drawn(backbone, kind(window), None, captions)]
    for method in (Wave(cells=cells) for cells in CELLS):
        key = key_of(method, backbone, False)
        passes_by_key[key] = [n for _, n in drawn(backbone, method, None, captions)]
    for method in (Rolling(window=window, fewer=fewer)
                   for fewer, each in BUDGETS.items() for window in each):
        for own in (heads, None):
            key = key_of(method, backbone, own is not None)
            passes_by_key[key] = [n for _, n in drawn(backbone, method, own, captions)]
    return passes_by_key


def shares(dtype: str, captions: list[str]) -> list[float]:
    """For every caption, the share of tokens that `exact` has in common with AR in this dtype."""
    backbone = load_backbone("postcard", "cpu", dtype)
    heads = load_heads("postcard", backbone)
    both = [drawn(backbone, method, heads, captions) for method in (AR(), Exact())]
    shares = [identical_share(a, b) for (a, _), (b, _) in zip(*both, strict=True)]
    print(dtype, shares, flush=True)
    return shares


def asked(text: str, otherwise: int) -> dict[str, int]:
    """"bf16:4,fp32" -> how many captions to compare in each dtype."""
    each = (part.partition(":") for part in text.split(","))
    return {dtype: int(count or otherwise) for dtype, _, count in each}


def table(passes_by_key: dict[str, list[int]], equal: dict[str, list[float]], captions: int) -> str:
    backbone = load_backbone("postcard", dtype="fp32")
    lines = [
        "# `exact` on postcard", "",
        f"{captions} held-out captions, one picture each and one at a time (caption i with seed "
        f"i), guidance {backbone.preset.cfg:g}, temperature 1, {platform.machine()} CPU, torch "
        f"{torch.__version__}. Made by `python benchmarks/exact_passes.py`.", "",
        "Passes, int8 (AR takes 576). `heads`: first guesses by the vertical head, `none`: the "
        "token above, `row`: by the row drafter, which also carries changes over.", "",
        "| window, drafter | mean | least | most |", "|---|---|---|---|",
        *(f"| {key.removeprefix('exact/')} | {statistics.mean(n):.0f} | {min(n)} | {max(n)} |"
          for key, n in passes_by_key.items() if key.startswith("exact/")), "",
        "Tokens equal to AR's of the same seed and dtype, default window "
        f"({Exact().for_device(backbone.grid, 'cpu').window}), with heads, of the first captions:",
        "",
        "| dtype | pictures identical | mean share of tokens | least |", "|---|---|---|---|",
        *(f"| {dtype} | {sum(n == 1 for n in each)} of {len(each)} | {statistics.mean(each):.0%} | "
          f"{min(each):.0%} |" for dtype, each in equal.items()), "",
        "Where passes do not give the same bits at any width, a pass over a window and a pass over "
        "one cell can round differently. If two tokens are nearly even, the other one may win, and "
        "the picture goes on from there. "
        "Every token is still chosen from AR's own distribution after the tokens before it.", ""]
    return "\n".join(lines)


def write(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--dtypes", default="fp32,bf16,int8,fp16:2",
                        help="bf16:4 compares only the first 4 captions")
    args = parser.parse_args()
    compared = asked(args.dtypes, args.prompts)
    most = max(args.prompts, *compared.values())
    captions = [fresh_caption(PROMPT_SEED + i, 0) for i in range(most)]
    backbone = load_backbone("postcard", "cpu", "int8")
    measured = passes(backbone, load_heads("postcard", backbone), captions[: args.prompts])
    assets = {"sha256": backbone.sha256,
            "passes": {key: round(statistics.mean(n)) for key, n in measured.items()}}
    write(ASSETS / "postcard" / "usual.json", json.dumps(assets, indent=1) + "\n")
    equal = {dtype: shares(dtype, captions[:count]) for dtype, count in compared.items()}
    write(ROOT / "benchmarks" / "results" / "exact.md", table(measured, equal, args.prompts))


if __name__ == "__main__":
    main()
