"""How likely pictures are that take a budget of passes, on stand-ins and `postcard`.

    python lab/benchmarks/run.py budgets [--pictures 16] [--models janus lumina postcard]

Of every method the setting that fits into the budget: the most rounds of `rows` and of `ssd` (fused
commits; the heads of the first stand-in learned from 64 of its pictures, the second one has none),
the longest delay of `wave`, which from 5 on sees all that the stand-ins depend on. NLL is in
nats a token under the model's own distributions, as the difference to AR's picture of the same
seed; *surplus* is NLL less the entropy of these distributions, which is 0 for AR and below 0 where
tokens are likelier than samples. Windows are those of a graphics card.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean

import torch
import torch.nn.functional as F
from conditions import conditions, table, write_page
from script import described, options, postcard
from stand_in import janus_like, lumina_like
from stand_in_heads import learned_heads

from ssd_core import Sampling, generate
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.backbones.presets import Preset, resolve_sampling
from ssd_core.engine.decode import prompt_branches
from ssd_core.engine.events import finished
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, SSD, Exact, Method, Rolling, Rows, Wave
from ssd_core.model.grid import Grid
from ssd_core.model.sampling import guide
from ssd_core.output.labels import label
from ssd_lab.evaluate.metrics import PROMPT_SEED, with_errors

FEWER = (4, 8, 12)  # AR's passes divided by these
AT_ONCE = 16 * 576  # cells of a batch
MOST_ROUNDS = 24


@dataclass(frozen=True)
class Subject:
    """A model to draw with, its heads, and a prompt for each picture."""

    name: str
    backbone: Backbone
    heads: DraftHeads | None
    prompts: list[str]


def janus(pictures: int) -> Subject:
    backbone = janus_like()
    return Subject(f"A stand-in like Janus-Pro, {backbone.grid}", backbone,
                   learned_heads(backbone)[0], ["a"] * pictures)


def lumina(pictures: int) -> Subject:
    """Without heads, whose learning takes longer than all the rest."""
    backbone = lumina_like()
    return Subject(f"A stand-in like Lumina-mGPT, {backbone.grid}", backbone, None,
                   ["a"] * max(4, pictures // 4))


def bundled(pictures: int) -> Subject:
    loaded = postcard()
    return Subject("`postcard` and its heads, fp32", loaded.backbone, loaded.heads,
                   [fresh_caption(PROMPT_SEED + i, 0) for i in range(max(4, pictures // 2))])


SUBJECTS = {"janus": janus, "lumina": lumina, "postcard": bundled}


def within(passes: int, grid: Grid, preset: Preset) -> Iterator[Method]:
    """The settings to compare that take at most so many passes."""
    yield Rolling(budget=passes)
    schedules = ((Rows(k_v=1, rounds=rounds),
                  SSD(k_h=5, k_v=1, rounds=rounds, incremental=0, fused_commit=rounds > 0))
                 for rounds in range(MOST_ROUNDS))
    for each in zip(*schedules, strict=True):
        found = [method.resolve(preset) for method in each]
        yield from [method for method in found if method.plan(grid).passes_max <= passes][-1:]
    delay = min((passes - grid.columns) // (grid.rows - 1), grid.columns)
    if delay > 0:
        yield Wave(delay)


@torch.inference_mode()
def nll_and_entropy(subject: Subject, prompts: list[str], tokens: torch.Tensor
                    ) -> tuple[torch.Tensor, torch.Tensor]:
    """[B] nats a token of tokens [B, R, C] under the guided backbone, and the entropy there."""
    backbone = subject.backbone
    cfg = resolve_sampling(Sampling(), backbone.preset).cfg
    ids = torch.tensor(prompt_branches(backbone, prompts, None, cfg))
    flat = F.pad(tokens, (0, backbone.grid.row_end), value=backbone.codes).flatten(1)
    fed = backbone.embed(flat[:, :-1].repeat(len(ids) // len(flat), 1))
    hidden = backbone(torch.cat((backbone.embed_prompt(ids), fed), dim=1))[:, ids.shape[1] - 1 :]
    log = guide(backbone.logits(hidden), cfg).float().log_softmax(-1)
    cells, codes = flat < backbone.codes, flat.clamp(max=backbone.codes - 1)
    nll = -log.gather(-1, codes[..., None])[..., 0]
    entropy = -(log.exp() * log).sum(-1)
    return (nll * cells).sum(1) / cells.sum(1), (entropy * cells).sum(1) / cells.sum(1)


@dataclass(frozen=True)
class Drawn:
    """Of every picture: tokens [n, R, C], passes, NLL and its surplus over the entropy."""

    tokens: torch.Tensor
    passes: list[int]
    nll: list[float]
    surplus: list[float]


def drawn(subject: Subject, method: Method) -> Drawn:
    """All pictures; picture i by seed i."""
    found = Drawn(torch.empty(0, subject.backbone.grid.rows, subject.backbone.grid.columns,
                              dtype=torch.long), [], [], [])
    batch = max(1, AT_ONCE // subject.backbone.grid.cells)
    tokens = []
    heads = subject.heads if isinstance(method, SSD) else None
    for first in range(0, len(subject.prompts), batch):
        prompts = subject.prompts[first : first + batch]
        done = finished(generate(subject.backbone, prompts, method, heads, Sampling(seed=first)))
        tokens.append(done.tokens)
        nll, entropy = nll_and_entropy(subject, prompts, done.tokens)
        found.passes.extend(done.stats["passes_each"])
        found.nll.extend(nll.tolist())
        found.surplus.extend((nll - entropy).tolist())
    return Drawn(torch.cat(tokens), found.passes, found.nll, found.surplus)


def row(subject: Subject, method: Method, reference: Drawn) -> list[str]:
    found = drawn(subject, method)
    both = with_errors({"above": [own - ar for own, ar in zip(found.nll, reference.nll,
                                                               strict=True)],
                        "surplus": found.surplus})
    same = float((found.tokens == reference.tokens).double().mean())
    words = [label(method), f"{mean(found.passes):.0f}",
             *(f"{both[name]:+.2f} ± {both[name + '_se']:.2f}" for name in both
               if not name.endswith("_se")), f"{same:.0%}"]
    print(subject.name, *words, sep=" | ", flush=True)
    return words


def rows(subject: Subject) -> Iterator[list[str]]:
    grid, reference = subject.backbone.grid, drawn(subject, AR())
    yield ["", *row(subject, Exact().for_device(grid, "cuda"), reference)]
    for fewer in FEWER:
        for method in within(grid.cells // fewer, grid, subject.backbone.preset):
            if isinstance(method, SSD) and subject.heads is None:
                continue
            yield [f"1/{fewer}", *row(subject, method.for_device(grid, "cuda"), reference)]


HEAD = ["at most, of AR's passes", "method", "passes", "NLL above AR's", "surplus", "same as AR"]


def main() -> None:
    parser = options(__doc__, "budgets.md")
    parser.add_argument("--pictures", type=int, default=16,
                        help="by the first stand-in; a quarter by the other, half by postcard")
    parser.add_argument("--models", nargs="+", default=list(SUBJECTS), choices=SUBJECTS)
    args = parser.parse_args()
    parts = []
    for name in args.models:
        subject = SUBJECTS[name](args.pictures)
        parts += [f"## {subject.name}, {len(subject.prompts)} pictures",
                  table(HEAD, list(rows(subject)))]
    write_page(args.out, "Pictures for a budget of passes",
               f"{described(__doc__)} Made by `python lab/benchmarks/run.py budgets`. "
               f"{conditions()}; ± one standard error over pictures.", *parts)


if __name__ == "__main__":
    main()
