"""Passes that `exact` takes on `postcard`, and how often bf16 and fp16 differ from AR's picture.

    python lab/benchmarks/exact_passes.py --prompts 16

Writes lab/benchmarks/results/exact.md and the figures that plans show (ssd_core/assets/postcard/
prior_passes.json). Prompts are held-out captions, one picture at a time, guidance and all else by
default.
"""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Iterator
from dataclasses import replace

import torch
from conditions import RESULTS, table, write_page
from script import options, postcard

from ssd_core import Sampling, generate
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.engine.events import finished
from ssd_core.engine.methods import AR, GSD, SJD, Exact, Jacobi, Method, Wave
from ssd_core.engine.own_runs import key_of
from ssd_core.files import ASSETS, write_text
from ssd_core.output.guarantees import identical_share
from ssd_core.runs.batch.workers import LoadedModels
from ssd_lab.evaluate.metrics import PROMPT_SEED

WINDOWS = (48, 96, 24, 8, 12, 16, 192)
OTHERS = (SJD, GSD, Jacobi)  # plans choose their windows, too
CELLS = (2, 3, 4, 6, 8, 12, 16, 24)  # of each row, for wave


def drawn(loaded: LoadedModels, method: Method, captions: list[str]):
    """(tokens, passes) of every caption; caption i uses seed i."""
    for seed, caption in enumerate(captions):
        done = finished(generate(loaded.backbone, caption, method, loaded.heads,
                                 Sampling(seed=seed)))
        yield done.tokens[0], done.stats["passes_each"][0]


def settings(with_row: bool) -> Iterator[tuple[Method, bool]]:
    """Every method to measure, and whether it gets the draft heads."""
    for window in WINDOWS:
        yield Exact(window), True
        yield Exact(window), False
        if with_row:
            yield Exact(window, "row"), True
        yield from ((kind(window), False) for kind in OTHERS)
    yield from ((Wave(cells=cells), False) for cells in CELLS)


def passes(loaded: LoadedModels, captions: list[str]) -> dict[str, list[int]]:
    """Passes of every caption, by the key that plans look up."""
    bare, passes_by_key = replace(loaded, heads=None), {}
    for method, heads in settings(loaded.heads.row is not None):
        key = key_of(method, loaded.backbone, heads)
        passes_by_key[key] = [n for _, n in drawn(loaded if heads else bare, method, captions)]
        print(key, statistics.mean(passes_by_key[key]), flush=True)
    return passes_by_key


def shares(dtype: str, captions: list[str]) -> list[float]:
    """For every caption, the share of tokens that `exact` has in common with AR in this dtype."""
    loaded = postcard(dtype)
    both = [drawn(loaded, method, captions) for method in (AR(), Exact())]
    shares = [identical_share(a, b) for (a, _), (b, _) in zip(*both, strict=True)]
    print(dtype, shares, flush=True)
    return shares


def asked(text: str, otherwise: int) -> dict[str, int]:
    """"bf16:4,fp32" -> how many captions to compare in each dtype."""
    each = (part.partition(":") for part in text.split(","))
    return {dtype: int(count or otherwise) for dtype, _, count in each}


def page(backbone: Backbone, passes_by_key: dict[str, list[int]], equal: dict[str, list[float]],
         captions: int) -> list[str]:
    """The paragraphs and tables of the page."""
    taken = [[key.removeprefix("exact/"), f"{statistics.mean(n):.0f}", str(min(n)), str(max(n))]
             for key, n in passes_by_key.items() if key.startswith("exact/")]
    shared = [[dtype, f"{sum(n == 1 for n in each)} of {len(each)}",
               f"{statistics.mean(each):.0%}", f"{min(each):.0%}"] for dtype, each in equal.items()]
    return [
        f"{captions} held-out captions, one picture each and one at a time (caption i with seed "
        f"i), guidance {backbone.preset.cfg:g}, temperature 1, {platform.machine()} CPU, torch "
        f"{torch.__version__}. Made by `python lab/benchmarks/exact_passes.py`.",
        "Passes, int8 (AR takes 576). `heads`: first guesses by the vertical head, `none`: the "
        "token above, `row`: by the row drafter, which also carries changes over.",
        table(["window, drafter", "mean", "least", "most"], taken),
        "Tokens equal to AR's of the same seed and dtype, default window "
        f"({Exact().for_device(backbone.grid, 'cpu').window}), with heads, of the first captions:",
        table(["dtype", "pictures identical", "mean share of tokens", "least"], shared),
        "Where passes do not give the same bits at any width, a pass over a window and a pass over "
        "one cell can round differently. If two tokens are nearly even, the other one may win, and "
        "the picture goes on from there. "
        "Every token is still chosen from AR's own distribution after the tokens before it."]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--dtypes", default="fp32,bf16,int8,fp16:2",
                        help="bf16:4 compares only the first 4 captions")
    args = parser.parse_args()
    compared = asked(args.dtypes, args.prompts)
    most = max(args.prompts, *compared.values())
    captions = [fresh_caption(PROMPT_SEED + i, 0) for i in range(most)]
    loaded = postcard("int8")
    measured = passes(loaded, captions[: args.prompts])
    assets = {"sha256": loaded.backbone.sha256,
              "passes": {key: round(statistics.mean(n)) for key, n in measured.items()}}
    write_text(ASSETS / "postcard" / "prior_passes.json", json.dumps(assets, indent=1) + "\n")
    equal = {dtype: shares(dtype, captions[:count]) for dtype, count in compared.items()}
    write_page(RESULTS / "exact.md", "`exact` on postcard",
               *page(loaded.backbone, measured, equal, args.prompts))


if __name__ == "__main__":
    main()
