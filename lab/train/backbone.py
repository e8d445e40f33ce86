"""Stage 2: the backbone learns to read captions, then next-token prediction over pictures.

Captions are drawn again at every use; a tenth is dropped, so that guidance has a branch without
text. Muon trains the matrices inside the decoder, AdamW all other weights. The rate stays at its
peak for most of the steps and then falls to zero, so that a run can be extended later.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import mean

import torch
import torch.nn.functional as F
from torch import nn

from ssd_core.backbones import postcard
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.codecs.codec import PictureCodec
from ssd_core.backbones.codecs.vq import VQTokenizer
from ssd_core.backbones.postcard import GRID, SHAPE, Postcard
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.backbones.postcard.words.world import scene_of
from ssd_core.errors import SSDError
from ssd_core.files import read_safetensors
from ssd_core.model.grid import Grid
from ssd_core.model.transformer import DecoderShape
from ssd_core.train.checkpoints import Checkpoint, training_steps
from ssd_core.train.common import (
    descend,
    mixed_precision,
    require_least,
    set_rate,
    trapezoid,
)
from ssd_core.weights.load import load_backbone

from ..postcards import SQUARE, WORDS, Frame
from . import tokenizer as tokenizer_stage
from .backbone_recipe import BackboneRecipe
from .batches import Batch, Batches, Painted, made_ahead
from .data import HELD_OUT, counts_by_shape, painted_tokens, prompt_batch
from .optimizers import muon_and_adamw, require_muon
from .reading import CellProbe, SceneProbe, answers, heard_at_prompt, learn_to_read


def load_codec(recipe: BackboneRecipe) -> VQTokenizer:
    """Load the tokenizer of the postcard that the recipe names, else that of stage 1."""
    if recipe.tokenizer:
        source = require_postcard(load_backbone(recipe.tokenizer, "cpu", "fp32")).picture_codec
        assert isinstance(source, VQTokenizer)
        return source
    return stored_codec(recipe.out / "tokenizer.safetensors")


def stored_codec(path: Path) -> VQTokenizer:
    """Read the tokenizer that stage 1 saved."""
    tensors, _ = read_safetensors(path, tokenizer_stage.FORMAT)
    codec = VQTokenizer.sized_like(tensors)
    codec.load_state_dict(tensors)
    return codec.requires_grad_(False).eval()


def take_decoder(backbone: Postcard, recipe: BackboneRecipe) -> None:
    """Use the recipe's tokenizer if there is one. SSDError if its encoder is another."""
    path = recipe.out / "tokenizer.safetensors"
    if not recipe.tokenizer and not path.exists():
        return
    codec, name = load_codec(recipe), "encoder.1.weight"
    own = backbone.picture_codec.state_dict()[name].to("cpu")
    if not codec.state_dict()[name].equal(own):
        raise SSDError(f"{recipe.tokenizer or path}: not made from the tokenizer of the postcard "
                       "to continue from; train it with --start-from, or leave it out")
    backbone.picture_codec = codec


def hidden_states(backbone: Backbone, prompts: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """h_pre [B, R*C, d] of teacher-forced pictures: element c predicts cell c.

    prompts: [B, P] ids; tokens: [B, R*C].
    """
    x = torch.cat((backbone.embed_prompt(prompts), backbone.embed(tokens[:, :-1])), dim=1)
    return backbone(x)[:, prompts.shape[1] - 1 :]


def loss_of(backbone: Postcard, hidden: torch.Tensor, tokens: torch.Tensor,
            weights: torch.Tensor | None = None) -> torch.Tensor:
    """Cross-entropy of tokens [B, R*C] after states [B, R*C, d], in nats per token.

    A mean over all cells, weighted by weights [B, R*C] if there are any.
    """
    logits = backbone.logits(hidden).flatten(0, 1)
    if weights is None:
        return F.cross_entropy(logits, tokens.flatten())
    nll = F.cross_entropy(logits, tokens.flatten(), reduction="none")
    return (nll * weights.flatten()).sum() / weights.sum()


def start(recipe: BackboneRecipe, generator: torch.Generator) -> Postcard:
    """Return fresh weights with the tokenizer of stage 1, or the weights of another postcard."""
    if recipe.start_from:
        backbone = require_postcard(load_backbone(recipe.start_from, recipe.device, "fp32"))
        take_decoder(backbone, recipe)
    else:
        codec = load_codec(recipe)
        backbone = Postcard(WORDS, len(codec.codebook), shape_of(recipe),
                            Grid(recipe.side, recipe.side), codec=codec)
        backbone.initialise(generator)
    if recipe.shapes:
        postcard.learn_all_shapes(backbone)
    backbone.requires_grad_(True)
    backbone.picture_codec.requires_grad_(False)
    return backbone.to(recipe.device)


def shape_of(recipe: BackboneRecipe) -> DecoderShape:
    """Return the bundled decoder's shape at the recipe's depth and width; SSDError if invalid."""
    heads, rest = divmod(recipe.hidden, SHAPE.head_dim)
    if rest or not heads:
        raise SSDError(f"hidden {recipe.hidden}: must be a multiple of {SHAPE.head_dim}")
    if recipe.layers < 2:
        raise SSDError(f"layers {recipe.layers}: must be at least 2, one to read and one to draw")
    if recipe.side < 2 or GRID.rows % recipe.side:
        raise SSDError(f"side {recipe.side}: choose 24, 12, 8, 6, 4, 3 or 2")
    return replace(SHAPE, layers=recipe.layers, hidden=recipe.hidden, heads=heads, kv_heads=heads,
                   ffn=SHAPE.ffn * recipe.hidden // SHAPE.hidden)


def require_postcard(backbone: Backbone) -> Postcard:
    if not isinstance(backbone, Postcard):
        raise SSDError(f"{backbone.name} is not a postcard: name one, or leave --start-from and "
                       "--tokenizer out")
    return backbone


class Probes(nn.Module):
    """Probes of scene and next cell, which add to the loss and are discarded after training."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.scene, self.cell = SceneProbe(hidden), CellProbe(hidden)


def view_of(backbone: Postcard, frame: Frame) -> Postcard:
    """The backbone at a shape; for pictures of fewer cells, as it is."""
    if frame == SQUARE:
        return backbone
    view = backbone.resized((frame.width, frame.height))
    assert isinstance(view, Postcard)
    return view


def learn_to_draw(backbone: Postcard, probes: Probes, painted: Painted, recipe: BackboneRecipe,
                  generator: torch.Generator) -> None:
    """Next-token prediction over pictures, with the losses of both probes; a step sees one shape.
    """
    model = nn.ModuleList((backbone, probes))
    weights = [p for p in model.parameters() if p.requires_grad]
    inside = {id(p) for p in backbone.decoder.parameters()}
    optimizers = muon_and_adamw(backbone.decoder, [p for p in weights if id(p) not in inside],
                                recipe.rate)
    checkpoint = Checkpoint(recipe.out / "backbone.ckpt", model, optimizers, generator)
    first = checkpoint.resume()
    batches = Batches(painted, {frame: view_of(backbone, frame).grid for frame in painted}, recipe)
    ahead = made_ahead(batches, range(first, recipe.steps), recipe.workers)
    steps = training_steps("backbone", recipe.steps, checkpoint, start=first,
                           report=lambda: f"nll {checkpoint.mean:.3f}")
    for step, batch in zip(steps, ahead, strict=False):  # steps end first and save their last
        factor = trapezoid(step, recipe.steps, warmup=50, cooldown=recipe.cooldown)
        set_rate(optimizers, factor)
        view = view_of(backbone, batch.frame)
        view.refresh_tables()
        things = 1 + (recipe.thing_weight - 1) * factor  # at the end the true distribution
        drawing, probing = losses(view, probes, batch, things, recipe)
        descend(drawing + probing, optimizers, weights)
        checkpoint.recent.append(drawing.detach())


def losses(backbone: Postcard, probes: Probes, batch: Batch, things: float,
           recipe: BackboneRecipe) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cross-entropy in nats per token of the pictures, and the probes' loss.

    Cells that show things are few and decide most claims: they count `things` times.
    """
    prompts = prompt_batch(backbone, list(batch.captions), batch.dropped)
    prompts, inputs, tokens, labels, fields, dropped = (
        part.to(recipe.device, non_blocking=True)
        for part in (prompts, batch.inputs, batch.tokens, batch.labels, batch.fields,
                     batch.dropped))
    with mixed_precision(recipe.device), heard_at_prompt(backbone) as heard:
        hidden = hidden_states(backbone, prompts, inputs)
        drawing = loss_of(backbone, hidden, tokens, torch.where(labels > 0, things, 1.0))
        cells = probes.cell.loss(hidden, labels)
    scene = probes.scene.loss(heard[0], fields, ~dropped)
    return drawing, recipe.probe_weight * scene + recipe.cell_weight * cells


def train(recipe: BackboneRecipe) -> dict:
    """Train, save `backbone.safetensors` in recipe.out and return the held-out metrics."""
    require_least(recipe, pictures=1, reading_steps=0, reading_batch=1, steps=1, batch=1,
                  held_out=1, workers=0)
    require_muon()  # before hours of painting
    generator = torch.Generator().manual_seed(recipe.seed)
    backbone = start(recipe, generator)
    codec = backbone.picture_codec
    size = backbone.smallest.size[0]
    painted = {frame: painted_tokens(codec, count, recipe.out, size=size, frame=frame)
               for frame, count in counts_by_shape(recipe.pictures, recipe.shapes).items()}
    probes = Probes(backbone.hidden_size).to(recipe.device)
    learn_to_read(backbone, probes.scene, recipe.reading_steps, recipe.reading_batch, recipe.rate,
                  recipe.out / "reading.ckpt", generator)
    learn_to_draw(backbone, probes, painted, recipe, generator)
    postcard.save(backbone, recipe.out / "backbone.safetensors")
    return {"stage": "backbone", "reading_steps": recipe.reading_steps, "steps": recipe.steps,
            "pictures": recipe.pictures,
            "parameters": sum(p.numel() for n, p in backbone.named_parameters()
                              if not n.startswith("picture_codec")),
            **held_out_metrics(backbone, probes.scene, codec, recipe.out, recipe.held_out),
            **{f"held_out_nll_{frame.name}": held_out_metrics(
                view_of(backbone, frame), probes.scene, codec, recipe.out, recipe.held_out,
                frame)["held_out_nll"] for frame in painted if frame != SQUARE}}


@torch.no_grad()
def held_out_metrics(backbone: Postcard, probe: SceneProbe, codec: PictureCodec, folder: Path,
                     count: int, frame: Frame = SQUARE) -> dict:
    """Measure NLL in nats per token and the share of fields read, on held-out postcards."""
    tokens = painted_tokens(codec, count, folder, HELD_OUT, backbone.smallest.size[0],
                            frame)
    backbone.refresh_tables()
    nll: list[float] = []
    fields_read: list[float] = []
    for a in range(0, count, 32):
        seeds = range(HELD_OUT + a, HELD_OUT + min(a + 32, count))
        text = torch.zeros(len(seeds), dtype=torch.bool)
        prompts = prompt_batch(backbone, [fresh_caption(seed, 0) for seed in seeds], text)
        fields = torch.tensor([answers(scene_of(seed)) for seed in seeds])
        device = backbone.device
        with heard_at_prompt(backbone) as heard:
            batch = tokens[a : a + 32].to(device)
            hidden = hidden_states(backbone, prompts.to(device), batch)
            nll.append(loss_of(backbone, hidden, batch).item())
        fields_read.append(probe.share_right(heard[0], fields.to(device)))
    return {"held_out_pictures": count, "held_out_nll": mean(nll),
            "fields_read": mean(fields_read)}
