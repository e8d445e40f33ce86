"""Whether GLM-Image's sketch is a better first guess than the token above, on a tiny stand-in.

    python lab/benchmarks/sketch_guess.py --seconds 120

A decoder of GLM-Image's class with few weights learns postcards in two grids, as GLM-Image draws
them: a sketch of 6 x 6 cells, the postcard at 96 x 96 px, then the picture of 12 x 12 cells, the
same postcard at 192 x 192 px, both as codes of postcard's codec. Then `exact` draws pictures with
both first guesses. The sketch itself is drawn alike, so passes are those of the picture alone.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import torch
import torch.nn.functional as F
from conditions import conditions, table, write_page
from random_backbones import Words
from script import options, postcard

from ssd_core import Sampling, generate
from ssd_core.backbones import glm_image
from ssd_core.backbones.codecs.colours import CodeColours
from ssd_core.backbones.glm_image import GlmImage, Rotation
from ssd_core.backbones.postcard.words.world import scene_of
from ssd_core.engine.events import Finished, finished
from ssd_core.engine.methods import AR, Exact
from ssd_core.engine.sketches import enlarged
from ssd_core.model.transformer import DecoderShape
from ssd_core.train.teacher import WholeSequence
from ssd_lab.postcards.painter import paint
from ssd_lab.train.data import HELD_OUT

SIDE, SKETCH = 12, 6  # cells
CODE = 16  # px of a cell of postcard's codec
SHAPE = DecoderShape(3, 128, 4, 2, 32, 384, eps=1e-5, qkv_bias=True, rotary_dim=16,
                     post_norms=True)
SECTIONS = (2, 3, 3)
WINDOWS = (6, 12, 24, 48)
SAMPLINGS = {"temperature 0.9, top-p 0.75 (GLM-Image's)": {},
             "temperature 1": {"temperature": 1.0, "top_p": 1.0}}
WORDS = "a postcard"


@torch.no_grad()
def codes_of(seeds: range, codec: torch.nn.Module) -> torch.Tensor:
    """Sketch, then picture of each postcard: [n, 36 + 144] int64."""
    parts = []
    for first in range(seeds.start, seeds.stop, 32):
        some = range(first, min(first + 32, seeds.stop))
        whole = torch.stack([torch.from_numpy(paint(scene_of(seed))) for seed in some])
        pixels = whole.permute(0, 3, 1, 2).float() / 127.5 - 1
        grids = [codec.encode(F.interpolate(pixels, 2 * (side * CODE,), mode="area")).flatten(1)
                 for side in (SKETCH, SIDE)]
        parts.append(torch.cat(grids, 1))
    return torch.cat(parts)


def stand_in(codes: int) -> GlmImage:
    """A model of random weights; its sketch is half as wide as the picture, as at 1024 px."""
    glm_image.SKETCH = SKETCH
    model = GlmImage(SHAPE, codes + 4, codes, Words(), Rotation(1e4, SECTIONS))
    generator = torch.Generator().manual_seed(0)
    for name, weight in model.named_parameters():
        if "norm" in name:
            weight.data.fill_(1.0)
        elif weight.dim() < 2:
            weight.data.zero_()
        else:
            weight.data.normal_(0, 0.5 / math.sqrt(weight.shape[-1]), generator=generator)
    model.picture_codec = CodeColours(torch.randn(codes, 4, generator=generator), glm_image.STEP)
    model.sizes = ((SIDE * glm_image.STEP,) * 2,)
    model.apply_size()
    return model


def loss_of(model: GlmImage, tokens: torch.Tensor) -> torch.Tensor:
    """Nats of each token [n, 36 + 144] of sketch and picture, each after all before it."""
    words = torch.tensor(model.tokenize(WORDS)).expand(len(tokens), -1)
    ids = torch.cat((words, tokens), 1)[:, :-1]
    before = [[0] * (words.shape[1] + SKETCH**2)] * len(tokens)
    cache = WholeSequence(model, before, ids.shape[1])
    hidden = model(F.embedding(ids, model.word_embedding), cache)[:, words.shape[1] - 1 :]
    return F.cross_entropy(model.logits(hidden).transpose(1, 2), tokens, reduction="none")


def learn(model: GlmImage, tokens: torch.Tensor, seconds: float, batch: int = 24) -> int:
    """Train for so many seconds of processor time; returns the number of steps."""
    weights = [each for name, each in model.named_parameters() if "picture_codec" not in name]
    for weight in weights:
        weight.requires_grad_(True)
    optimizer = torch.optim.AdamW(weights, 3e-3, betas=(0.9, 0.95), weight_decay=0.01)
    generator, begun, steps = torch.Generator().manual_seed(1), time.process_time(), 0
    while (share := (time.process_time() - begun) / seconds) < 1:
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1, (steps + 1) / 20) * (0.02 + 0.98 * (1 - share))
        pick = torch.randint(len(tokens), (batch,), generator=generator)
        loss = loss_of(model, tokens[pick]).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        steps += 1
        if steps % 25 == 0:
            print(f"step {steps}: {loss.item():.2f} nats a token", flush=True)
    for weight in weights:
        weight.requires_grad_(False)
    return steps


def drawn(model: GlmImage, method: AR | Exact, pictures: int, sampling: dict) -> list[Finished]:
    return [finished(generate(model, WORDS, method, sampling=Sampling(seed=seed, **sampling)))
            for seed in range(pictures)]


def passes(done: list[Finished]) -> list[int]:
    """Passes over each picture, after its sketch."""
    return [each.stats["passes"] - each.stats["sketch_passes"] for each in done]


def saved(usual: list[int], other: list[int]) -> str:
    """The mean difference with its standard error, over the same seeds."""
    each = [a - b for a, b in zip(usual, other, strict=True)]
    return f"{statistics.mean(each):+.1f} ± {statistics.stdev(each) / len(each) ** 0.5:.1f}"


def standing(model: GlmImage, done: list[Finished]) -> list[str]:
    """Shares of cells whose token is that of the sketch's cell above, of the row above, left."""
    tokens = torch.cat([each.tokens for each in done])
    parent = enlarged(torch.cat([each.sketch for each in done]), model.grid)
    pairs = ((tokens, parent), (tokens[:, 1:], tokens[:, :-1]), (tokens[..., 1:], tokens[..., :-1]))
    return [f"{(cells == guess).float().mean():.0%}" for cells, guess in pairs]


def measured(model: GlmImage, pictures: int) -> list[str]:
    """Both tables: passes by window and first guess, and how often each guess stands."""
    rows, shares = [], []
    for name, sampling in SAMPLINGS.items():
        reference = drawn(model, AR(), pictures, sampling)
        shares.append([name, *standing(model, reference)])
        for window in WINDOWS:
            found = [drawn(model, Exact(window=window, guess=guess), pictures, sampling)
                     for guess in ("usual", "parent")]
            same = all(each.tokens.equal(ar.tokens) for done in found
                       for each, ar in zip(done, reference, strict=True))
            counts = [passes(done) for done in found]
            rows.append([name, str(window), *(f"{statistics.mean(each):.1f}" for each in counts),
                         saved(*counts), "yes" if same else "no"])
            print(rows[-1], flush=True)
    return [table(["sampling", "window", "token above", "sketch's cell above", "saved by it",
                   "AR's pictures"], rows),
            "How often a guess is the token that the cell gets, in AR's pictures:",
            table(["sampling", "sketch's cell above", "token above", "token to the left"], shares)]


def main() -> None:
    parser: argparse.ArgumentParser = options(__doc__, "sketch_guess.md")
    parser.add_argument("--seconds", type=float, default=120, help="of processor time for training")
    parser.add_argument("--postcards", type=int, default=600, help="that it learns from")
    parser.add_argument("--pictures", type=int, default=16, help="that each setting draws")
    args = parser.parse_args()
    backbone = postcard().backbone
    codec, codes = backbone.picture_codec, backbone.codes
    learnt, held_out = (codes_of(seeds, codec) for seeds in (
        range(args.postcards), range(HELD_OUT, HELD_OUT + 64)))
    model = stand_in(codes)
    steps = learn(model, learnt, args.seconds)
    with torch.no_grad():
        nats = loss_of(model, held_out).split((SKETCH**2, SIDE**2), 1)
    model.eval()
    weights = sum(each.numel() for each in model.parameters()) / 1e6
    write_page(
        args.out, "The sketch as first guess", conditions(dtype="fp32"),
        f"A stand-in of {weights:.1f} million weights after {steps} steps on {args.postcards:,} "
        f"postcards; held-out ones cost it {nats[0].mean():.2f} nats a token of the sketch and "
        f"{nats[1].mean():.2f} of the picture. Mean passes of `exact` over the picture "
        f"(AR: {SIDE**2}), {args.pictures} pictures one at a time, by what a cell starts from.",
        *measured(model, args.pictures))


if __name__ == "__main__":
    main()
