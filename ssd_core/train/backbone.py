"""Stage 2: the backbone. It learns to read captions, then next-token prediction over pictures.

Captions are drawn anew at every use; one in ten is dropped, so that the branch without text exists
for guidance. Matrices inside the decoder learn by Muon, everything else by AdamW. The rate stays at
its peak for most of the steps and then falls to zero, so that a run can be made longer later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import torch
import torch.nn.functional as F
from torch import nn

from ..backbones import postcard
from ..backbones.base import Backbone
from ..backbones.codecs.codec import PictureCodec
from ..backbones.codecs.vq import VQTokenizer
from ..backbones.postcard import GRID, SHAPE, Postcard
from ..errors import SSDError
from ..files import read_safetensors
from ..model.grid import Grid
from ..model.transformer import DecoderShape
from ..postcards import WORDS
from ..weights.load import load_backbone
from . import tokenizer as tokenizer_stage
from .checkpoints import Checkpoint, training_steps
from .common import descend, mixed_precision, muon_and_adamw, option, set_rate, trapezoid
from .data import HELD_OUT, fresh_caption, painted_tokens, prompt_batch, scene_of
from .reading import CellProbe, SceneProbe, answers, cell_labels, heard_at_prompt, learn_to_read


@dataclass(frozen=True)
class BackboneRecipe:
    out: Path
    start_from: str = option("", "A postcard to go on from, instead of fresh weights: a bundled "
                                 "name, a file or a folder.")
    tokenizer: str = option("", "A postcard whose tokenizer fresh weights get, instead of that of "
                                "stage 1 in --out.")
    side: int = option(GRID.rows, "Cells along a side of fresh weights: 24, or 12, 8 or 6 for a "
                                  "backbone that drafts for it in MuLo-SD.")
    layers: int = option(SHAPE.layers, "Layers of fresh weights.")
    hidden: int = option(SHAPE.hidden, "Channels of fresh weights, a multiple of "
                                       f"{SHAPE.head_dim}.")
    reading_steps: int = 1500
    reading_batch: int = 128
    steps: int = 12000
    cooldown: float = 0.3
    pictures: int = 24000
    batch: int = 8
    probe_weight: float = 0.01
    cell_weight: float = 0.5
    thing_weight: float = 2.0
    foreign_cells: float = option(0.2, "Up to this share of a picture's cells is shown to the "
                                       "backbone as in another picture.")
    foreign_patches: float = option(0.35, "Share of pictures in which a whole patch is shown so.")
    rate: float = 2.5e-3
    drop_text: float = 0.1
    held_out: int = 128
    seed: int = 0
    device: str = "cpu"


def load_codec(recipe: BackboneRecipe) -> VQTokenizer:
    """The tokenizer of the postcard that the recipe names, or what stage 1 left in its folder."""
    if recipe.tokenizer:
        named = require_postcard(load_backbone(recipe.tokenizer, "cpu", "fp32")).picture_codec
        assert isinstance(named, VQTokenizer)
        return named
    tensors, _ = read_safetensors(recipe.out / "tokenizer.safetensors", tokenizer_stage.FORMAT)
    codec = VQTokenizer(*tensors["codebook"].shape)
    codec.load_state_dict(tensors)
    return codec.requires_grad_(False).eval()


def hidden_states(backbone: Backbone, prompts: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """h_pre [B, R*C, d] of teacher-forced pictures: element c predicts cell c.

    prompts: [B, P] ids; tokens: [B, R*C].
    """
    x = torch.cat((backbone.embed_prompt(prompts), backbone.embed(tokens[:, :-1])), dim=1)
    return backbone(x)[:, prompts.shape[1] - 1 :]


def loss_of(backbone: Postcard, hidden: torch.Tensor, tokens: torch.Tensor,
            weights: torch.Tensor | None = None) -> torch.Tensor:
    """Cross-entropy of tokens [B, R*C] after states [B, R*C, d], nats a token.

    The mean over all cells, each as often as weights [B, R*C] say.
    """
    logits = backbone.logits(hidden).flatten(0, 1)
    if weights is None:
        return F.cross_entropy(logits, tokens.flatten())
    nll = F.cross_entropy(logits, tokens.flatten(), reduction="none")
    return (nll * weights.flatten()).sum() / weights.sum()


def start(recipe: BackboneRecipe, generator: torch.Generator) -> Postcard:
    """Fresh weights around the tokenizer of stage 1, or those of another postcard."""
    if recipe.start_from:
        backbone = require_postcard(load_backbone(recipe.start_from, recipe.device, "fp32"))
        backbone.requires_grad_(True)
    else:
        codec = load_codec(recipe)
        backbone = Postcard(WORDS, len(codec.codebook), shape_of(recipe),
                            Grid(recipe.side, recipe.side))
        backbone.initialise(generator)
        backbone.picture_codec.load_state_dict(codec.state_dict())
    backbone.picture_codec.requires_grad_(False)
    return backbone.to(recipe.device)


def shape_of(recipe: BackboneRecipe) -> DecoderShape:
    """The bundled decoder's shape at the recipe's depth and width; SSDError if it has none."""
    heads, rest = divmod(recipe.hidden, SHAPE.head_dim)
    for wrong, told in ((rest or not heads, f"hidden {recipe.hidden}: must be a multiple of "
                                            f"{SHAPE.head_dim}"),
                        (recipe.layers < 2, f"layers {recipe.layers}: must be at least 2, one to "
                                            "read and one to draw"),
                        (recipe.side < 2 or GRID.rows % recipe.side,
                         f"side {recipe.side}: choose 24, 12, 8, 6, 4, 3 or 2")):
        if wrong:
            raise SSDError(told)
    return replace(SHAPE, layers=recipe.layers, hidden=recipe.hidden, heads=heads, kv_heads=heads,
                   ffn=SHAPE.ffn * recipe.hidden // SHAPE.hidden)


def require_postcard(backbone: Backbone) -> Postcard:
    if not isinstance(backbone, Postcard):
        raise SSDError(f"{backbone.name} is not a postcard: name one, or leave --start-from and "
                       "--tokenizer out")
    return backbone


class Probes(nn.Module):
    """Read-outs that steer training and are thrown away: the scene's, and the next cell's."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.scene, self.cell = SceneProbe(hidden), CellProbe(hidden)


def learn_to_draw(backbone: Postcard, probes: Probes, tokens: torch.Tensor,
                  recipe: BackboneRecipe, generator: torch.Generator) -> None:
    """Next-token prediction over pictures [n, R*C], the probes still listening."""
    model = nn.ModuleList((backbone, probes))
    weights = [p for p in model.parameters() if p.requires_grad]
    inside = {id(p) for p in backbone.decoder.parameters()}
    optimizers = muon_and_adamw(backbone.decoder, [p for p in weights if id(p) not in inside],
                                recipe.rate)
    checkpoint = Checkpoint(recipe.out / "backbone.ckpt", model, optimizers, generator)
    for step in training_steps("backbone", recipe.steps, checkpoint,
                               report=lambda: f"nll {checkpoint.mean:.3f}"):
        pick = torch.randint(len(tokens), (recipe.batch,), generator=generator)
        factor = trapezoid(step, recipe.steps, warmup=50, cooldown=recipe.cooldown)
        set_rate(optimizers, factor)
        backbone.refresh_tables()
        things = 1 + (recipe.thing_weight - 1) * factor  # in the end the true distribution
        drawing, probing = losses(backbone, probes, pick.tolist(), tokens[pick], step, things,
                                  recipe, generator)
        descend(drawing + probing, optimizers, weights)
        checkpoint.recent.append(drawing.item())


SPRINKLED = 0.8  # the share of pictures that show single foreign cells
PATCH_SIDES = (2, 8)  # cells


def some_cells(whole: int, generator: torch.Generator) -> slice:
    """A stretch of a row or column of `whole` cells."""
    least, most = (min(side, whole) for side in PATCH_SIDES)
    side = int(torch.randint(least, most + 1, (), generator=generator))
    first = int(torch.randint(whole - side + 1, (), generator=generator))
    return slice(first, first + side)


def with_foreign_cells(tokens: torch.Tensor, grid: Grid, recipe: BackboneRecipe,
                       generator: torch.Generator) -> torch.Tensor:
    """Pictures [B, R*C] in which some cells are those of another picture of the batch.

    A backbone that has only seen flawless pictures believes a slip of its own more than the caption
    and goes on from it. The tokens to predict stay the picture's own.
    """
    count = len(tokens)
    share = recipe.foreign_cells * torch.rand(count, 1, 1, generator=generator)
    share *= torch.rand(count, 1, 1, generator=generator) < SPRINKLED
    foreign = torch.rand(count, grid.rows, grid.columns, generator=generator) < share
    patched = torch.rand(count, generator=generator) < recipe.foreign_patches
    for picture in patched.nonzero()[:, 0].tolist():
        rows, columns = (some_cells(side, generator) for side in (grid.rows, grid.columns))
        foreign[picture, rows, columns] = True
    return torch.where(foreign.flatten(1), tokens.roll(1, 0), tokens)


def losses(backbone: Postcard, probes: Probes, seeds: list[int], tokens: torch.Tensor, draw: int,
           things: float, recipe: BackboneRecipe,
           generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Of pictures [B, R*C]: cross-entropy in nats a token, and what the probes add to it.

    Cells that show things are few and decide most claims: they count `things` times.
    """
    device = recipe.device
    drop = torch.rand(len(seeds), generator=generator) < recipe.drop_text
    prompts = prompt_batch(backbone, [fresh_caption(seed, draw) for seed in seeds], drop)
    scenes = [scene_of(seed) for seed in seeds]
    told = torch.tensor([answers(scene) for scene in scenes]).to(device)
    labels = torch.stack([cell_labels(scene, backbone.grid.rows) for scene in scenes]).to(device)
    weights = torch.where(labels > 0, things, 1.0)
    with mixed_precision(device), heard_at_prompt(backbone) as heard:
        seen = with_foreign_cells(tokens, backbone.grid, recipe, generator)
        hidden = hidden_states(backbone, prompts.to(device), seen.to(device))
        drawing = loss_of(backbone, hidden, tokens.to(device), weights)
        cells = probes.cell.loss(hidden, labels)
    scene = probes.scene.loss(heard[0], told, ~drop.to(device))
    return drawing, recipe.probe_weight * scene + recipe.cell_weight * cells


def train(recipe: BackboneRecipe) -> dict:
    """Train, save `backbone.safetensors` in recipe.out and return the held-out metrics."""
    generator = torch.Generator().manual_seed(recipe.seed)
    backbone = start(recipe, generator)
    codec = backbone.picture_codec
    tokens = painted_tokens(codec, recipe.pictures, recipe.out, size=backbone.size[0])
    probes = Probes(backbone.hidden_size).to(recipe.device)
    learn_to_read(backbone, probes.scene, recipe.reading_steps, recipe.reading_batch, recipe.rate,
                  recipe.out / "reading.ckpt", generator)
    learn_to_draw(backbone, probes, tokens, recipe, generator)
    postcard.save(backbone, recipe.out / "backbone.safetensors")
    return {"stage": "backbone", "reading_steps": recipe.reading_steps, "steps": recipe.steps,
            "pictures": recipe.pictures,
            "parameters": sum(p.numel() for n, p in backbone.named_parameters()
                              if not n.startswith("picture_codec")),
            **held_out_metrics(backbone, probes.scene, codec, recipe.out, recipe.held_out)}


@torch.no_grad()
def held_out_metrics(backbone: Postcard, probe: SceneProbe, codec: PictureCodec, folder: Path,
                     count: int) -> dict:
    """NLL in nats a token on postcards never trained on, and what the probe reads of their text."""
    tokens = painted_tokens(codec, count, folder, HELD_OUT, backbone.size[0])
    backbone.refresh_tables()
    nll: list[float] = []
    told_right: list[float] = []
    for a in range(0, count, 32):
        seeds = range(HELD_OUT + a, HELD_OUT + min(a + 32, count))
        text = torch.zeros(len(seeds), dtype=torch.bool)
        prompts = prompt_batch(backbone, [fresh_caption(seed, 0) for seed in seeds], text)
        told = torch.tensor([answers(scene_of(seed)) for seed in seeds])
        device = backbone.device
        with heard_at_prompt(backbone) as heard:
            batch = tokens[a : a + 32].to(device)
            hidden = hidden_states(backbone, prompts.to(device), batch)
            nll.append(loss_of(backbone, hidden, batch).item())
        told_right.append(probe.share_told(heard[0], told.to(device)))
    return {"held_out_pictures": count, "held_out_nll": mean(nll),
            "fields_read": mean(told_right)}
