"""Modelled seconds of real models on graphics cards, beside the seconds that others published.

    python lab/benchmarks/modelled.py [--out FILE.md]

Nothing here was run on a card or with real weights. Passes are those of the stand-in like Lumina-
mGPT (stand_in.py) on the true grid, at 1.4 and at 2 nats a token. A pass is modelled to take the
longest of 45 launches of 5 microseconds, of reading the layers, the image head and half of the last
cache in bf16, and of its products, at 69 % of the card's stated bandwidth (what gpt-fast reaches
with 7B on an A100) and 40 % of its stated bf16 products.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from conditions import table, write_page
from script import described, options
from stand_in import LUMINA_WORLD, StandIn

from ssd_core import Sampling, generate
from ssd_core.engine.events import finished
from ssd_core.engine.methods import AR, Exact, Method, Rolling
from ssd_core.model.grid import Grid
from ssd_core.weights.cards import CARDS, Card, pass_seconds
from ssd_core.weights.catalogue import known
from ssd_core.weights.model_size import ModelSize

ENTROPIES = (1.4, 2.0)  # nats a token
A100, H100 = (replace(CARDS[name], name=f"{name} 80 GB") for name in ("A100", "H100"))
RTX_4090 = CARDS["RTX 4090"]


@dataclass(frozen=True)
class Published:
    """A row of the catalogue, a card, and what others measured with whatever code they ran.

    grids: of what is drawn one after the other, None: the row's own. window: of `exact`; so many
    cells cost little more than one by the model. card_known: whether the source says that it was
    this card.
    """

    name: str
    card: Card
    seconds: str
    source: str
    grids: tuple[Grid, ...] | None = None
    window: int = 48
    card_known: bool = True


LUMINA = "https://github.com/Alpha-VLLM/Lumina-mGPT-2.0"
ROWS = (
    Published("Lumina-mGPT-2.0", A100, "694; 324 with its Jacobi decoding", f"[README]({LUMINA})"),
    Published("GLM-Image", H100, "31.85 (first stage, 1152 x 768)",
              "[sglang #17689](https://github.com/sgl-project/sglang/pull/17689)",
              (Grid(13, 19), Grid(24, 36)), window=96),
    Published("Emu3.5-Image", H100, "410 (a picture from another one, on two cards)",
              "[Emu3.5 #33](https://github.com/baaivision/Emu3.5/issues/33)", card_known=False),
    Published("Emu3-Gen", H100, "300", "[Emu3 #18](https://github.com/baaivision/Emu3/issues/18)"),
    Published("Emu3-Gen", RTX_4090, "370 (both branches in a batch)",
              "[Emu3 #77](https://github.com/baaivision/Emu3/issues/77)"),
    Published("SimpleAR-0.5B-RL", A100, "14 with vLLM",
              "[its paper](https://arxiv.org/abs/2504.11455)", card_known=False))


@cache
def passes(grid: Grid, method: Method, entropy: float) -> int:
    """Passes of one picture of the stand-in."""
    stand_in = StandIn(grid, replace(LUMINA_WORLD, entropy=entropy))
    run = generate(stand_in, "a", method, sampling=Sampling(seed=1, cfg=1.0))
    taken = finished(run).stats["passes"]
    print(grid, method.name, getattr(method, "window", ""), entropy, taken, flush=True)
    return taken


def seconds(row: Published, method: Method, entropy: float | None = None) -> tuple[int, float]:
    """(passes, modelled seconds) of all grids of a row; without entropy the passes are planned."""
    total, spent = 0, 0.0
    model = ModelSize.of(known(row.name))
    for grid in row.grids or (model.grid,):
        planned = method.resolve(model.preset).plan(grid)
        taken = planned.passes or planned.passes_max if entropy is None else passes(
            grid, method, entropy)
        cells = getattr(method, "window", None) or 1
        total, spent = total + taken, spent + taken * pass_seconds(model, grid, row.card, cells)
    return total, spent


def between(pairs: list[tuple[int, float]]) -> list[str]:
    """Passes and seconds of several entropies, from the least to the most."""
    counts, spent = zip(*sorted(pairs), strict=True)
    return [f"{counts[0]:,} to {counts[-1]:,}", f"{spent[0]:.1f} to {spent[-1]:.1f}"]


def lines() -> Iterator[list[str]]:
    for row in ROWS:
        ar, plain = seconds(row, AR())
        found = [seconds(row, Exact(row.window), entropy) for entropy in ENTROPIES]
        budget, rolled = seconds(row, Rolling(window=row.window, fewer=8.0))
        unstated = "" if row.card_known else " (card not stated)"
        grids = " + ".join(map(str, row.grids or (known(row.name).grid,)))
        yield [row.name, grids, row.card.name, f"{row.seconds}{unstated}, {row.source}",
               f"{ar:,}", f"{plain:.1f}", str(row.window), *between(found), f"{budget:,}",
               f"{rolled:.1f}"]


HEAD = ["model", "grid", "card", "published seconds", "AR: passes", "modelled s",
        "`exact`: window", "passes at 1.4 to 2 nats", "modelled s", "`rolling`: passes",
        "modelled s"]


def main() -> None:
    out = options(__doc__, "modelled.md").parse_args().out
    rows = list(lines())
    write_page(out, "Modelled seconds on graphics cards", f"**Modelled, not measured.** "
               f"{described(__doc__)} Made by `python lab/benchmarks/modelled.py`.",
               table(HEAD, rows),
               "`exact` draws AR's picture; `rolling` an approximate one in at most an eighth of "
               "the passes. Prefill, pixels and GLM-Image's second stage are left out. Published "
               "seconds are of other programs: modelled AR says what they could reach at best, "
               "not what this program takes.")


if __name__ == "__main__":
    main()
