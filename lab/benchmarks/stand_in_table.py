"""How hard the stand-in for large models is, beside what is published, and every method on it.

    python lab/benchmarks/run.py stand_in_table [--pictures 64] [--models janus lumina]

Nothing here was run with real weights. Stand-ins (stand_in.py) of random weights: like Janus-Pro
(24 x 24 cells), in two other structures as well, and like Lumina-mGPT (48 x 48 cells and row ends);
their draft heads learned from 64 and 16 of their own pictures. Passes are counted for each picture
by itself, windows are those of a graphics card unless a row names one. NLL is in nats a token of
the finished picture under the stand-in's own distributions, as the difference to AR's picture of
the same seed. The distance by ranks (rank_distance.py) is from AR's distribution, at least, in nats
a token: 0 for AR.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev

import torch
import torch.nn.functional as F
from conditions import conditions, table, write_page
from rank_distance import rank_distance, ranks
from script import described, options
from stand_in import STRUCTURES, StandIn, janus_like, lumina_like
from stand_in_heads import learned_heads

from ssd_core import Sampling, generate
from ssd_core.engine.events import finished
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import (
    AR,
    MTP,
    SJD,
    SSD,
    Exact,
    Hawk,
    Jacobi,
    Method,
    Rolling,
    Rows,
    Strict,
    Wave,
)
from ssd_core.engine.methods.window import Tunable
from ssd_core.files import write_text
from ssd_core.train.teacher import teach

MODELS = {"janus": janus_like, **{f"janus, {name}": partial(janus_like, structure=name)
                                  for name in STRUCTURES}, "lumina": lumina_like}
FIRST = SJD(window=16, init="random", continuation=False)
PAC = SJD(window=64, init="random", tree_width=4, tree_depth=3)
SJD_LABEL, PAC_LABEL = "sjd, as first published", "sjd, as SJD-PAC"
# Times fewer passes, drafts accepted, and correlations of entropy, by which the stand-in was set
PUBLISHED = {
    "janus": {SJD_LABEL: 1.81, f"{SJD_LABEL}, window 32": 576 / 318, "exact, window 32": 576 / 154,
              "horizontal+1": 0.4327, "horizontal+2": 0.2969, "horizontal+3": 0.2547,
              "vertical+1": 0.3032, "vertical+2": 0.2703, "vertical+3": 0.2571,
              "entropy, right": 0.66, "entropy, below": 0.32},
    "lumina": {SJD_LABEL: 4.42 / 2, f"{SJD_LABEL}, window 32": 2.31, "exact, window 64": 2390 / 568,
               f"{PAC_LABEL}, window 32": 3.52, PAC_LABEL: 4.51,
               "entropy, right": 0.66, "entropy, below": 0.32},
}
NEAR = 0.25  # of a published figure, by which the stand-in may miss it
SOURCES = ("Published: windows of 16 and drafts (of Janus-Pro-7B) in the [SSD paper]"
           "(https://arxiv.org/abs/2606.20543), its Table 1, whose AR takes two passes a token on "
           "Lumina-mGPT, and its Figure 1; `exact`, and `sjd` at 32, in "
           "[SCD](https://arxiv.org/abs/2510.24211) and [SJD-PAC](https://arxiv.org/abs/2603.18599)"
           " (COCO prompts). Correlations of the entropy of neighbouring cells are those of "
           "`postcard`.")
HEAD = ["decoding", "passes", "times fewer", "NLL above AR's", "distance by ranks",
        "tokens that are AR's"]
CELLS_AT_ONCE = 32 * 576


def methods() -> dict[str, Method]:
    """Every method that needs neither a codebook nor a second backbone, at its own settings."""
    return {
        SJD_LABEL: FIRST, f"{SJD_LABEL}, window 32": replace(FIRST, window=32), PAC_LABEL: PAC,
        f"{PAC_LABEL}, window 32": replace(PAC, window=32), "exact": Exact(),
        **{f"exact, window {cells}": Exact(window=cells) for cells in (32, 48, 64)},
        "rolling, 1/4 of AR's passes": Rolling(fewer=4), "rolling, 1/8": Rolling(fewer=8),
        "rolling, 1/12": Rolling(fewer=12), "wave": Wave(), "wave, 1 cell (ZipAR)": Wave(cells=1),
        "rows": Rows(), "ssd, r = 1": SSD(k_v=1, rounds=1, incremental=0),
        "ssd, r = 2": SSD(k_v=1, rounds=2, incremental=0),
        "ssd, r = 3": SSD(k_v=1, rounds=3, incremental=0), "ssd, the paper's": SSD(),
        "ssd, coupled": SSD(acceptance="coupled"), "sjd": SJD(), "mtp": MTP(),
        "jacobi": Jacobi(), "strict": Strict(), "hawk": Hawk()}


def draw(backbone: StandIn, heads: DraftHeads | None, method: Method, pictures: int
         ) -> tuple[torch.Tensor, list[int]]:
    """Tokens [n, R, C] of seeds 1 and up, and the passes of each picture."""
    method = method.resolve(backbone.preset)
    if isinstance(method, Tunable):
        method = method.for_device(backbone.grid, "cuda")
    batch, tokens, passes = max(1, CELLS_AT_ONCE // backbone.grid.cells), [], []
    for first in range(0, pictures, batch):
        count = min(batch, pictures - first)
        done = finished(generate(backbone, ["a"] * count, method,
                                 heads=heads if method.uses_heads else None,
                                 sampling=Sampling(seed=1 + first)))
        tokens.append(done.tokens)
        passes += done.stats["passes_each"]
    return torch.cat(tokens), passes


@torch.no_grad()
def nll(backbone: StandIn, tokens: torch.Tensor) -> torch.Tensor:
    """[n] nats a token of pictures [n, R, C]."""
    return torch.stack([F.cross_entropy(log, picture.flatten())
                        for log, picture in zip(logits(backbone, tokens), tokens, strict=True)])


@torch.no_grad()
def logits(backbone: StandIn, tokens: torch.Tensor) -> Iterator[torch.Tensor]:
    """[cells, V] of each of these pictures [n, R, C], one after the other."""
    for picture in tokens:
        hidden, _ = teach(backbone, [backbone.tokenize("")], picture[None])
        yield backbone.logits(hidden)[0]


def apart(backbone: StandIn, tokens: torch.Tensor) -> float:
    """The distance of pictures [n, R, C] from AR's distribution by ranks, in nats a token."""
    draw = torch.Generator().manual_seed(0)
    return rank_distance(torch.cat([
        ranks(log, picture.flatten(), draw)
        for log, picture in zip(logits(backbone, tokens), tokens, strict=True)]))


def measured(name: str, pictures: int, known: dict[str, dict]) -> Iterator[dict]:
    """One row for AR with the stand-in's difficulty, then one for every method.

    known: rows of before; those of as many pictures are not measured again.
    """
    backbone = MODELS[name]()
    heads, acceptance = learned_heads(backbone)
    tokens, _ = draw(backbone, None, AR(), pictures)
    own = nll(backbone, tokens)
    yield {"method": "ar", "passes": [backbone.grid.cells] * pictures, "nll": own.tolist(),
           "apart": apart(backbone, tokens), "acceptance": acceptance,
           "correlation": correlation(backbone, tokens)}
    for label, method in methods().items():
        if len(known.get(label, {}).get("passes", ())) == pictures:
            yield {"method": label, **known[label]}
            continue
        found, passes = draw(backbone, heads, method, pictures)
        above = nll(backbone, found) - own
        same = (found == tokens).float().flatten(1).mean(1)
        yield {"method": label, "passes": passes, "nll_above": above.tolist(),
               "apart": apart(backbone, found), "same": same.tolist()}


def error(values: Sequence[float]) -> float:
    """Standard error of a mean."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def difficulty(rows: dict[str, dict]) -> dict[str, float]:
    """Times fewer passes by each method, shares of accepted drafts, correlations of entropy."""
    ar = mean(rows["ar"]["passes"])
    return {**{label: ar / mean(row["passes"]) for label, row in rows.items()},
            **rows["ar"]["acceptance"], **rows["ar"]["correlation"]}


@torch.no_grad()
def correlation(backbone: StandIn, tokens: torch.Tensor) -> dict[str, float]:
    """Of the entropy of cells with those beside and below them, in pictures [n, R, C]."""
    log = [each.log_softmax(-1) for each in logits(backbone, tokens)]
    entropy = torch.stack([-(each.exp() * each).sum(-1) for each in log]).view(tokens.shape)
    pairs = {"right": (entropy[..., 1:], entropy[..., :-1]),
             "below": (entropy[:, 1:], entropy[:, :-1])}
    return {f"entropy, {where}": float(torch.corrcoef(torch.stack([
        cells.flatten() for cells in pair]))[0, 1]) for where, pair in pairs.items()}


def lines(rows: dict[str, dict]) -> Iterator[list[str]]:
    ar = mean(rows["ar"]["passes"])
    for label, row in rows.items():
        passes = mean(row["passes"])
        counted = f"{passes:,.0f} ± {error(row['passes']):.0f}"
        if label == "ar":
            yield [label, f"{ar:,.0f}", "1", "0", f"{row['apart']:.3f}", "100 %"]
            continue
        yield [label, counted, f"{ar / passes:.1f}", f"{mean(row['nll_above']):.2f} "
               f"± {error(row['nll_above']):.2f}", f"{row['apart']:.3f}",
               f"{mean(row['same']):.0%}".replace("%", " %")]


def page(out: Path, found: dict[str, dict[str, dict]]) -> None:
    """Write the page of all rows, by model and label."""
    shown = {name: difficulty(rows) for name, rows in found.items()}
    head = ["figure", *(f"{name}: {what}" for name in found for what in ("published", "here"))]
    parts = [table(head, [[
        key, *(f"{figures[key]:.2f}" if key in figures else "-" for name in found
               for figures in (PUBLISHED.get(name, {}), shown[name]))]
        for key in dict.fromkeys(key for each in PUBLISHED.values() for key in each)])]
    for name, rows in found.items():
        nats = rows["ar"]["nll"]
        parts += [f"## Like {name.capitalize()}: {MODELS[name]().grid}",
                  f"{len(nats)} pictures. AR has {mean(nats):.2f} ± {error(nats):.2f} nats a "
                  "token.",
                  table(HEAD, list(lines(rows)))]
    write_page(out, "A stand-in as hard as large models",
               f"**Of random weights.** {described(__doc__)} ± is one standard error. Made by "
               f"`python lab/benchmarks/run.py stand_in_table`. {conditions(dtype='fp32')}.",
               SOURCES, *parts, "`gsd` and `lantern` need a codebook, `mulo` a second backbone; "
               "the stand-in has neither.")


def main() -> None:
    parser = options(__doc__, "stand_in.md")
    parser.add_argument("--pictures", type=int, default=64)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS])
    args = parser.parse_args()
    rows_file = args.out.with_suffix(".json")
    found = json.loads(rows_file.read_text(encoding="utf-8")) if rows_file.exists() else {}
    for name in args.models:
        rows: dict[str, dict] = {}
        for row in measured(name, args.pictures, dict(found.get(name, {}))):
            rows[row.pop("method")] = row
            print(name, *next(reversed(list(lines(rows)))), flush=True)
            found[name] = rows
            write_text(rows_file, json.dumps(found) + "\n")
    page(args.out, found)


if __name__ == "__main__":
    main()
