"""Drafts learned from own pictures on a model as hard as Janus-Pro, against none.

    python lab/benchmarks/run.py stand_in_learned [--pictures 16] [--counts 50 200 800]

The stand-in like Janus-Pro (stand_in.py) draws pictures by `ar`; heads and a row drafter learn from
them in as many steps of four pictures as `train heads --pictures-from` takes; other pictures are
drawn with each. NLL is in nats a token, as the difference to AR's picture of the same seed; windows
are those of a graphics card.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import mean

import torch
from conditions import conditions, table, write_page
from script import described, options
from stand_in import janus_like
from stand_in_heads import learned_heads
from stand_in_table import draw, error, nll

from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, SSD, Exact, Method, Rolling, Rows
from ssd_core.train import HEADS, LEAST_STEPS

WITHOUT = {"exact": Exact(), "rolling, 1/8": Rolling(fewer=8), "rows, r = 1": Rows(rounds=1),
           "rows, r = 2": Rows(rounds=2)}
WITH = {"exact, row drafter": Exact(drafter="row"),
        "rolling, 1/8, row drafter": Rolling(fewer=8, drafter="row"),
        "ssd, r = 1": SSD(k_v=1, rounds=1, incremental=0),
        "ssd, r = 2": SSD(k_v=1, rounds=2, incremental=0)}
LEARNED = ["own pictures", "steps", "horizontal +1", "vertical +1", "row", "seconds to learn"]
HEAD = ["method", "drafts from", "passes", "NLL above AR's", "tokens that are AR's"]


def main() -> None:
    parser = options(__doc__, "stand_in_learned.md")
    parser.add_argument("--pictures", type=int, default=16)
    parser.add_argument("--counts", type=int, nargs="+", default=[50, 200, 800])
    args = parser.parse_args()
    backbone, drafts, learned = janus_like(), {}, []
    for count in args.counts:
        steps, begun = max(LEAST_STEPS[HEADS], 3 * count // 4), time.process_time()
        drafts[count], shares = learned_heads(backbone, count, steps, with_row=True)
        learned.append([f"{count}", f"{steps}", *(f"{shares[name]:.2f}" for name in (
            "horizontal+1", "vertical+1", "row")), f"{time.process_time() - begun:.0f}"])
        print(*learned[-1], flush=True)
    rows = list(lines(backbone, drafts, args.pictures))
    write_page(args.out, "Drafts from own pictures on a model as hard as Janus-Pro",
               f"**Of random weights.** {described(__doc__)} {args.pictures} pictures, ± one "
               "standard error; seconds are of the processor, drawing the pictures included. Made "
               f"by `python lab/benchmarks/run.py stand_in_learned`. {conditions(dtype='fp32')}.",
               table(LEARNED, learned), table(HEAD, rows))


def lines(backbone: torch.nn.Module, drafts: dict[int, DraftHeads], pictures: int
          ) -> Iterator[list[str]]:
    """One row for every method with every drafts."""
    ar, _ = draw(backbone, None, AR(), pictures)
    likely = nll(backbone, ar)

    def line(label: str, source: str, method: Method, heads: DraftHeads | None) -> list[str]:
        tokens, passes = draw(backbone, heads, method, pictures)
        above = (nll(backbone, tokens) - likely).tolist()
        same = (tokens == ar).float().mean()
        row = [label, source, f"{mean(passes):.0f} ± {error(passes):.0f}",
               f"{mean(above):+.2f} ± {error(above):.2f}", f"{same:.0%}"]
        print(*row, flush=True)
        return row

    for label, method in WITHOUT.items():
        yield line(label, "none", method, None)
    for label, method in WITH.items():
        for count, heads in drafts.items():
            yield line(label, f"{count} pictures", method, heads)


if __name__ == "__main__":
    main()
