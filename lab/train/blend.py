"""After stage 2: the tokenizer's decoder learns to join tokens that the backbone sampled.

The tokens of a painted picture match each other. Sampled tokens are drawn separately: their shades
differ, and a sky shows squares. So every cell of a painted picture is sampled again from the
backbone's distribution, and the decoder learns to draw such a grid with the colours of the painted
picture and the strokes of the sampled codes. Things, and cells that keep their original tokens, are
drawn as painted. Encoder, codebook and backbone do not change, so that tokens keep their meaning
and draft heads stay valid.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from tqdm import tqdm

from ssd_core.backbones import postcard
from ssd_core.backbones.codecs.vq import VQTokenizer
from ssd_core.backbones.postcard import Postcard
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.backbones.postcard.words.world import scene_of
from ssd_core.errors import SSDError
from ssd_core.model.knobs import flag
from ssd_core.model.sampling import Sampling, guide, probabilities
from ssd_core.train.checkpoints import Checkpoint, training_steps
from ssd_core.train.common import (
    REQUIRED,
    cosine,
    descend,
    mixed_precision,
    remember_rates,
    set_rate,
)
from ssd_core.train.teacher import teach
from ssd_core.weights.load import load_backbone

from ..postcards.objects import cells_of
from .backbone import require_postcard
from .data import pictures, to_signed
from .tokenizer import PATCH, held_out_metrics

AT_ONCE = 16  # pictures whose tokens are sampled in one forward pass
# Weights of the parts of the loss.
COLOURS, SEAMS, STROKES, KNOWN = 4.0, 2.0, 1.0, 2.0
UNTOUCHED = 1 / 3  # share of pictures that keep all of their own tokens


@dataclass(frozen=True)
class BlendRecipe:
    """How the decoder of a postcard's tokenizer learns to join sampled tokens."""

    out: Path = flag(REQUIRED, "Folder of the finished backbone; its tokenizer is replaced.")
    backbone: str = flag("", "Bundled name, file or folder. Default: --out.")
    pictures: int = flag(1000, "Painted pictures whose tokens are sampled again.")
    steps: int = flag(2000, "Batches seen.")
    batch: int = flag(4, "Pictures of a step.")
    rate: float = flag(1e-3, "Peak learning rate.")
    held_out: int = flag(200, "Pictures for measurement only.")
    seed: int = 0
    device: str = flag("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")
    dtype: str = flag("fp32", "Of the backbone: fp32, bf16, fp16.")


class Examples(NamedTuple):
    """Painted pictures, their own tokens, sampled tokens, and the cells that show things."""

    painted: np.ndarray  # uint8 [n, H, W, 3]
    own: torch.Tensor  # int64 [n, R, C]
    sampled: torch.Tensor  # int64 [n, R, C]
    things: torch.Tensor  # bool [n, R, C], with the cells around them


def train(recipe: BlendRecipe) -> dict:
    """Train, save the backbone in recipe.out and return the tokenizer's held-out metrics."""
    if recipe.pictures < 1 or recipe.steps < 1 or recipe.batch < 1:
        raise SSDError("pictures, steps and batch must be at least 1")
    source = recipe.backbone or recipe.out
    reader = require_postcard(load_backbone(source, recipe.device, recipe.dtype))
    generator = torch.Generator().manual_seed(recipe.seed)
    examples = sampled_examples(reader, recipe, generator)
    earlier = reader.picture_codec
    assert isinstance(earlier, VQTokenizer)
    codec = copy.deepcopy(earlier).train()
    learn_to_blend(codec, earlier, examples, recipe, generator)
    # Load again: `reader` may have rounded its weights to bf16.
    finished = require_postcard(load_backbone(source, "cpu", "fp32"))
    finished.picture_codec = codec.cpu().eval()
    postcard.save(finished, recipe.out / "backbone.safetensors")
    return {**held_out_metrics(codec, recipe.held_out), "stage": "blend",
            "pictures": recipe.pictures, "steps": recipe.steps}


# Sampled tokens


def sampled_examples(backbone: Postcard, recipe: BlendRecipe,
                     generator: torch.Generator) -> Examples:
    painted = pictures(recipe.pictures, recipe.out)
    own, sampled = [], []
    for first in tqdm(range(0, len(painted), AT_ONCE), "sample", mininterval=2.0):
        block = painted[first : first + AT_ONCE]
        own.append(backbone.picture_codec.encode(to_signed(block).to(backbone.device)).cpu())
        captions = [fresh_caption(seed, 0) for seed in range(first, first + len(block))]
        sampled.append(resampled(backbone, captions, own[-1], generator))
    shown = torch.from_numpy(np.stack([cells_of(scene_of(n)) >= 0 for n in range(len(painted))]))
    return Examples(painted, torch.cat(own), torch.cat(sampled), with_neighbours(shown))


def with_neighbours(cells: torch.Tensor) -> torch.Tensor:
    """Add to cells bool [B, R, C] all their neighbours."""
    return F.max_pool2d(cells[:, None].float(), 3, 1, 1)[:, 0] > 0


@torch.no_grad()
def resampled(backbone: Postcard, captions: list[str], tokens: torch.Tensor,
              generator: torch.Generator) -> torch.Tensor:
    """Sample each of tokens [B, R, C] again, given all before it; guided like AR."""
    cfg, prompts = backbone.preset.cfg, [backbone.tokenize(caption) for caption in captions]
    if cfg != 1:
        prompts += [backbone.unconditional(ids) for ids in prompts]
    hidden, _ = teach(backbone, prompts, tokens.repeat(len(prompts) // len(captions), 1, 1))
    logits = guide(backbone.logits(hidden.to(backbone.dtype)).float(), cfg)
    target_probs = probabilities(logits, Sampling(min_p=backbone.preset.min_p)).cpu()
    return torch.multinomial(target_probs.flatten(0, 1), 1, generator=generator).view_as(tokens)


def mix(examples: Examples, count: int,
        generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pick pictures at random and replace a random share of their tokens by sampled tokens.

    Returns their numbers [count], their tokens [count, R, C], and bool [count, R, C]: the cells
    that must look as painted.
    """
    pick = torch.randint(len(examples.own), (count,), generator=generator)
    share = torch.rand(count, 1, 1, generator=generator) / (1 - UNTOUCHED)
    share = (share - UNTOUCHED / (1 - UNTOUCHED)).clamp(min=0)
    replaced = torch.rand(examples.own[pick].shape, generator=generator) < share
    tokens = torch.where(replaced, examples.sampled[pick], examples.own[pick])
    return pick, tokens, examples.things[pick] | ~with_neighbours(replaced)


# Learning


def learn_to_blend(codec: VQTokenizer, earlier: VQTokenizer, examples: Examples,
                   recipe: BlendRecipe, generator: torch.Generator) -> None:
    """Run all steps, from a checkpoint if there is one; trains only `codec.repair`."""
    codec.requires_grad_(False)
    weights = list(codec.repair.requires_grad_(True).parameters())
    optimizers = remember_rates([torch.optim.AdamW(weights, recipe.rate, weight_decay=0.0)])
    checkpoint = Checkpoint(recipe.out / "blend.ckpt", codec, optimizers, generator)
    device = weights[0].device
    for step in training_steps("blend", recipe.steps, checkpoint,
                               report=lambda: f"loss {checkpoint.mean:.4f}"):
        pick, tokens, known = mix(examples, recipe.batch, generator)
        set_rate(optimizers, cosine(step, recipe.steps, warmup=50, floor=0.02))
        with torch.no_grad():
            vectors = codec.quantised(tokens.to(device))
            strokes = earlier.pixels(vectors)
        with mixed_precision(str(device)):
            drawn = codec.pixels(vectors)
        painted = to_signed(examples.painted[pick.numpy()]).to(device)
        loss = loss_of(drawn.float(), painted, strokes, known.to(device))
        descend(loss, optimizers, weights)
        checkpoint.recent.append(loss.item())


def loss_of(drawn: torch.Tensor, painted: torch.Tensor, strokes: torch.Tensor,
            known: torch.Tensor) -> torch.Tensor:
    """Distance of pictures `drawn` [B, 3, H, W] from `painted` and `strokes`.

    Compares colours, seams and the cells `known` [B, R, C] with `painted`, the inside of cells with
    `strokes`.
    """
    colours = F.mse_loss(F.avg_pool2d(drawn, PATCH, PATCH // 2),
                         F.avg_pool2d(painted, PATCH, PATCH // 2))
    covered = known.repeat_interleave(PATCH, 1).repeat_interleave(PATCH, 2)[:, None]
    total = COLOURS * colours + KNOWN * ((drawn - painted).square() * covered).mean()
    for axis in (-1, -2):
        seam = torch.arange(1, drawn.shape[axis], device=drawn.device) % PATCH == 0
        steps, goal, inner = (x.diff(dim=axis).movedim(axis, -1) for x in (drawn, painted, strokes))
        total = total + SEAMS * F.mse_loss(steps[..., seam], goal[..., seam])
        total = total + STROKES * F.mse_loss(steps[..., ~seam], inner[..., ~seam])
    return total
