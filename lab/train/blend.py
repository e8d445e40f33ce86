"""After stage 2: the tokenizer's decoder learns to draw sampled tokens as the painter paints.

The tokens of a painted picture match each other. Sampled tokens are drawn separately: their shades
differ, and a sky shows squares. And a code stands for patches that differ: around things it shows
speckles of other colours. So cells of painted pictures are sampled again from the backbone's
distribution, and the decoder learns to draw such grids like the painter, with a table of what each
code's patches look like on average. Silhouettes and borders of cells count more. Encoder, codebook
and backbone do not change, so that tokens keep their meaning and draft heads stay valid.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

from ssd_core.backbones import postcard
from ssd_core.backbones.codecs.vq import ByteTable, VQTokenizer
from ssd_core.backbones.postcard import Postcard
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.backbones.postcard.words.world import Frame, frame_of, scene_of
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
    require_least,
    set_rate,
)
from ssd_core.train.teacher import teach
from ssd_core.weights.load import load_backbone

from ..postcards.objects import cover_of
from .backbone import require_postcard, view_of
from .data import counts_by_shape, pictures, to_signed
from .tokenizer import PATCH, held_out_metrics

AT_ONCE = 16  # pictures whose tokens are sampled in one forward pass
PRIOR = 4  # patches without a residual that the mean of each code's residuals includes
NEAR = 16  # px around things that count as near
# Weights of the parts of the loss.
COLOURS, SQUARES, AROUND, BORDERS, HUES = 3.0, 6.0, 2.0, 1.0, 1.0
UNTOUCHED = 0.5  # share of pictures that keep all of their own tokens
MOST = 0.7  # largest share of a picture's tokens that are replaced


@dataclass(frozen=True)
class BlendRecipe:
    """How the decoder of a postcard's tokenizer learns to draw sampled tokens."""

    out: Path = flag(REQUIRED, "Folder of the finished backbone; its tokenizer is replaced.")
    backbone: str = flag("", "Bundled name, file or folder. Default: --out.")
    pictures: int = flag(6000, "Painted pictures. With fewer the decoder learns them by heart.")
    sampled: int = flag(1500, "Of these, whose tokens are sampled again.")
    shapes: float = flag(0.5, "Share of the pictures that are 32 x 18 or 18 x 32 cells, if "
                                "the backbone draws these.")
    steps: int = flag(4000, "Batches seen.")
    batch: int = flag(2, "Pictures of a step.")
    rate: float = flag(8e-4, "Peak learning rate.")
    held_out: int = flag(200, "Pictures for measurement only.")
    seed: int = 0
    device: str = flag("auto", "auto, cpu, cuda, cuda:1, mps, xpu.")
    dtype: str = flag("fp32", "Of the backbone: fp32, bf16, fp16.")


class Examples(NamedTuple):
    """Painted pictures of one shape, by seed, their own tokens, and sampled tokens of some."""

    painted: np.ndarray  # uint8 [n, H, W, 3]
    own: torch.Tensor  # int64 [n, R, C]
    sampled: torch.Tensor  # int64 [m, R, C], of the first m of them


def train(recipe: BlendRecipe) -> dict:
    """Train, save the backbone in recipe.out and return the tokenizer's held-out metrics."""
    require_least(recipe, pictures=1, sampled=1, steps=1, batch=1, held_out=1)
    source = recipe.backbone or recipe.out
    reader = require_postcard(load_backbone(source, recipe.device, recipe.dtype))
    if reader.grid != postcard.GRID:
        raise SSDError(f"{source}: draws {reader.grid} cells, the pictures to learn from have "
                       f"{postcard.GRID}: name another postcard")
    generator = torch.Generator().manual_seed(recipe.seed)
    shapes = recipe.shapes if len(reader.grids) > 1 else 0.0
    again = counts_by_shape(min(recipe.sampled, recipe.pictures), shapes)
    examples = [examples_of(view_of(reader, frame), frame, count, again.get(frame, 1), recipe.out,
                            generator)
                for frame, count in counts_by_shape(recipe.pictures, shapes).items()]
    assert isinstance(reader.picture_codec, VQTokenizer)
    codec = copy.deepcopy(reader.picture_codec).train()
    learn_to_blend(codec, examples, recipe, generator)
    # Load again: `reader` may have rounded its weights to bf16.
    finished = require_postcard(load_backbone(source, "cpu", "fp32"))
    finished.picture_codec = codec.cpu().eval()
    postcard.save(finished, recipe.out / "backbone.safetensors")
    return {**held_out_metrics(codec, recipe.held_out), "stage": "blend",
            "pictures": recipe.pictures, "steps": recipe.steps}


# Sampled tokens


def examples_of(backbone: Postcard, frame: Frame, count: int, again: int, folder: Path,
                generator: torch.Generator) -> Examples:
    """`count` painted pictures, the first `again` of them with sampled tokens."""
    painted = pictures(count, folder, frame=frame)
    codec = backbone.picture_codec
    own = torch.cat([codec.encode(to_signed(painted[a : a + AT_ONCE]).to(backbone.device)).cpu()
                     for a in range(0, count, AT_ONCE)])
    sampled = []
    for first in tqdm(range(0, again, AT_ONCE), "sample", mininterval=2.0):
        block = own[first : min(first + AT_ONCE, again)]
        captions = [fresh_caption(seed, 0) for seed in range(first, first + len(block))]
        sampled.append(resampled(backbone, captions, block, generator))
    return Examples(painted, own, torch.cat(sampled))


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
        generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Pick pictures at random and replace a random share of some pictures' tokens by sampled ones.

    Returns their numbers [count] and their tokens [count, R, C].
    """
    def draw(*sizes: int) -> torch.Tensor:
        return torch.rand(*sizes, generator=generator)

    untouched = draw(count) < UNTOUCHED
    choices = torch.where(untouched, len(examples.own), len(examples.sampled))
    pick = (draw(count) * choices).long()
    share = torch.where(untouched, 0.0, MOST * draw(count))[:, None, None]
    replaced = draw(*examples.own[pick].shape) < share
    sampled = examples.sampled[pick.clamp(max=len(examples.sampled) - 1)]
    return pick, torch.where(replaced, sampled, examples.own[pick])


# Learning


def learn_to_blend(codec: VQTokenizer, examples: list[Examples], recipe: BlendRecipe,
                   generator: torch.Generator) -> None:
    """Run all steps, from a checkpoint if there is one; trains `repair` and `residual`."""
    codec.requires_grad_(False)
    table = nn.Embedding.from_pretrained(residual_of(codec, examples), freeze=False)
    codec.residual = table
    weights = [*codec.repair.requires_grad_(True).parameters(), table.weight]
    optimizers = remember_rates([torch.optim.AdamW(weights, recipe.rate, weight_decay=0.0,
                                                   fused=True)])
    checkpoint = Checkpoint(recipe.out / "blend.ckpt", codec, optimizers, generator)
    counts = torch.tensor([len(shape.own) for shape in examples], dtype=torch.float)
    device = weights[0].device
    for step in training_steps("blend", recipe.steps, checkpoint,
                               report=lambda: f"loss {checkpoint.mean:.4f}"):
        shape = examples[int(torch.multinomial(counts, 1, generator=generator))]
        pick, tokens = mix(shape, recipe.batch, generator)
        set_rate(optimizers, cosine(step, recipe.steps, warmup=50, floor=0.02))
        with mixed_precision(str(device)):
            drawn = codec.decode(tokens.to(device))
        painted = to_signed(shape.painted[pick.numpy()])
        near = torch.stack([near_things(seed, painted.shape[2:]) for seed in pick.tolist()])
        loss = loss_of(drawn.float(), painted.to(device), near.to(device))
        descend(loss, optimizers, weights)
        checkpoint.recent.append(loss.item())
    codec.residual = ByteTable.of(table.weight.detach())


@torch.no_grad()
def residual_of(codec: VQTokenizer, examples: list[Examples]) -> torch.Tensor:
    """The table [codes, pixels] that the codec has, or each code's mean residual."""
    codes = torch.arange(len(codec.codebook), device=codec.codebook.device)
    if codec.residual is not None:
        return codec.residual(codes)
    total = codec.codebook.new_zeros(len(codes), 3 * PATCH**2)
    count = codec.codebook.new_full((len(codes), 1), PRIOR)
    for shape in examples:
        for first in range(0, len(shape.own), AT_ONCE):
            tokens = shape.own[first : first + AT_ONCE].to(codes.device)
            painted = to_signed(shape.painted[first : first + AT_ONCE]).to(codes.device)
            off = F.pixel_unshuffle(painted - codec.decode(tokens), PATCH)
            total.index_add_(0, tokens.flatten(), off.permute(0, 2, 3, 1).flatten(0, 2))
            count += torch.bincount(tokens.flatten(), minlength=len(codes))[:, None]
    return total / count


def near_things(seed: int, size: tuple[int, ...]) -> torch.Tensor:
    """Whether each px of the picture of a seed is at most NEAR px from a thing, bool [H, W]."""
    frame = frame_of(*size)
    assert frame is not None
    near = torch.from_numpy(cover_of(scene_of(seed), frame) > 0.5)
    for _ in range(2):  # rows, then columns; running sums take less time than a maximum
        total = F.pad(near.int(), (NEAR + 1, NEAR)).cumsum(1)
        near = (total[:, 2 * NEAR + 1 :] > total[:, : -2 * NEAR - 1]).T
    return near


def loss_of(drawn: torch.Tensor, painted: torch.Tensor, near: torch.Tensor,
            cell: int = PATCH) -> torch.Tensor:
    """Distance of pictures `drawn` [B, 3, H, W] from `painted`: of colours, and of slopes.

    Px near things, bool [B, H, W], count 1 + AROUND times, and their squares are added; what is
    wrong in hue counts 1 + HUES times. Slopes are those of px and of blocks of px, so that neither
    lines nor shades show the borders of cells. cell: px of a cell's side.
    """
    off, nearby = drawn - painted, near[:, None].float()
    weight = 1 + AROUND * nearby
    hued = off + HUES * (off - off.mean(1, keepdim=True))
    total = COLOURS * (hued.abs() * weight).mean() + SQUARES * (off.square() * nearby).mean()
    for size in (1, cell // 4, cell // 2):
        total = total + slopes_of(F.avg_pool2d(hued, size), F.avg_pool2d(weight, size),
                                  cell // size)
    return total


def slopes_of(off: torch.Tensor, weight: torch.Tensor, cell: int) -> torch.Tensor:
    """Mean differences between neighbours in `off` [B, 3, H, W], by weight [B, 1, H, W]; those
    across borders of cells count once more BORDERS times as much as all together."""
    total = off.new_zeros(())
    for axis in (-1, -2):
        border = torch.arange(1, off.shape[axis], device=off.device) % cell == 0
        slopes = off.diff(dim=axis).abs() * weight.narrow(axis, 1, len(border))
        total = total + slopes.mean() + BORDERS * slopes.movedim(axis, -1)[..., border].mean()
    return total
