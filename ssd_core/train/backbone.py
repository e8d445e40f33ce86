"""Stage 2: the backbone. It learns to read captions, then next-token prediction over pictures.

Captions are drawn anew at every use; one in ten is dropped, so that the branch without text exists
for guidance. Matrices inside the decoder learn by Muon, everything else by AdamW.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from ..backbones import postcard
from ..backbones.base import Backbone
from ..backbones.codecs.vq import VQTokenizer
from ..backbones.postcard import Postcard
from ..files import read_safetensors, written_whole
from ..postcards import WORDS
from . import tokenizer as tokenizer_stage
from .common import (
    Checkpoint,
    cosine,
    descend,
    mixed_precision,
    muon_and_adamw,
    set_rate,
    training_steps,
)
from .data import HELD_OUT, fresh_caption, pictures, prompt_batch, scene_of, to_signed
from .reading import SceneProbe, answers, heard_at_prompt, learn_to_read


@dataclass(frozen=True)
class BackboneRecipe:
    out: Path
    reading_steps: int = 800
    reading_batch: int = 256
    steps: int = 3600
    pictures: int = 24000
    batch: int = 16
    probe_weight: float = 0.01
    rate: float = 3e-3
    drop_text: float = 0.1
    held_out: int = 128
    seed: int = 0
    device: str = "cpu"


def load_codec(folder: Path) -> VQTokenizer:
    """The tokenizer that stage 1 left in `folder`."""
    tensors, _ = read_safetensors(Path(folder) / "tokenizer.safetensors", tokenizer_stage.FORMAT)
    codec = VQTokenizer(*tensors["codebook"].shape)
    codec.load_state_dict(tensors)
    return codec.requires_grad_(False).eval()


@torch.no_grad()
def tokenised(codec: VQTokenizer, painted: np.ndarray, path: Path) -> torch.Tensor:
    """int64 [n, R*C] tokens of painted pictures, kept in `path`."""
    if not path.exists():
        rows = [codec.encode(to_signed(painted[a : a + 64])).flatten(1).to(torch.int16).numpy()
                for a in range(0, len(painted), 64)]
        with written_whole(path) as temporary, open(temporary, "wb") as file:
            np.save(file, np.concatenate(rows))
    return torch.from_numpy(np.load(path)).long()


def hidden_states(backbone: Backbone, prompts: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """h_pre [B, R*C, d] of teacher-forced pictures: element c predicts cell c.

    prompts: [B, P] ids; tokens: [B, R*C].
    """
    x = torch.cat((backbone.embed_prompt(prompts), backbone.embed(tokens[:, :-1])), dim=1)
    return backbone(x)[:, prompts.shape[1] - 1 :]


def loss_of(backbone: Postcard, prompts: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy, nats a token."""
    logits = backbone.logits(hidden_states(backbone, prompts, tokens))
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def start(recipe: BackboneRecipe, codec: VQTokenizer, generator: torch.Generator) -> Postcard:
    """Fresh weights around the tokenizer of stage 1."""
    backbone = Postcard(WORDS, len(codec.codebook))
    backbone.initialise(generator)
    backbone.picture_codec.load_state_dict(codec.state_dict())
    backbone.picture_codec.requires_grad_(False)
    return backbone.to(recipe.device)


def learn_to_draw(backbone: Postcard, probe: SceneProbe, tokens: torch.Tensor,
                  recipe: BackboneRecipe, generator: torch.Generator) -> None:
    """Next-token prediction over pictures [n, R*C], the probe still listening."""
    model = nn.ModuleList((backbone, probe))
    weights = [p for p in model.parameters() if p.requires_grad]
    inside = {id(p) for p in backbone.decoder.parameters()}
    optimizers = muon_and_adamw(backbone.decoder, [p for p in weights if id(p) not in inside],
                                recipe.rate)
    checkpoint = Checkpoint(recipe.out / "backbone.ckpt", model, optimizers, generator)
    recent: deque[float] = deque(maxlen=100)
    for step in training_steps("backbone", recipe.steps, checkpoint, every=100,
                               report=lambda: f"nll {mean(recent):.3f}"):
        pick = torch.randint(len(tokens), (recipe.batch,), generator=generator)
        drop = torch.rand(recipe.batch, generator=generator) < recipe.drop_text
        prompts = prompt_batch(backbone, [fresh_caption(i, step) for i in pick.tolist()], drop)
        told = torch.tensor([answers(scene_of(i)) for i in pick.tolist()])
        set_rate(optimizers, cosine(step, recipe.steps, warmup=50))
        backbone.refresh_tables()
        with mixed_precision(recipe.device), heard_at_prompt(backbone) as heard:
            loss = loss_of(backbone, prompts.to(recipe.device), tokens[pick].to(recipe.device))
        scene = probe.loss(heard[0], told.to(recipe.device), ~drop.to(recipe.device))
        descend(loss + recipe.probe_weight * scene, optimizers, weights)
        recent.append(loss.item())


def train(recipe: BackboneRecipe) -> dict:
    """Train, save `backbone.safetensors` in recipe.out and return the held-out metrics."""
    generator = torch.Generator().manual_seed(recipe.seed)
    codec = load_codec(recipe.out)
    tokens = tokenised(codec, pictures(recipe.pictures, recipe.out),
                       recipe.out / f"tokens-0-{recipe.pictures}.npy")
    backbone = start(recipe, codec, generator)
    probe = SceneProbe(backbone.hidden_size).to(recipe.device)
    learn_to_read(backbone, probe, recipe.reading_steps, recipe.reading_batch, recipe.rate,
                  recipe.out / "reading.ckpt", generator)
    learn_to_draw(backbone, probe, tokens, recipe, generator)
    postcard.save(backbone, recipe.out / "backbone.safetensors")
    return {"stage": "backbone", "reading_steps": recipe.reading_steps, "steps": recipe.steps,
            "pictures": recipe.pictures,
            "parameters": sum(p.numel() for n, p in backbone.named_parameters()
                              if not n.startswith("picture_codec")),
            **held_out_metrics(backbone, probe, codec, recipe.out, recipe.held_out)}


@torch.no_grad()
def held_out_metrics(backbone: Postcard, probe: SceneProbe, codec: VQTokenizer, folder: Path,
                     count: int) -> dict:
    """NLL in nats a token on postcards never trained on, and what the probe reads of their text."""
    painted = pictures(count, folder, HELD_OUT)
    tokens = tokenised(codec, painted, folder / f"tokens-held-out-{count}.npy")
    backbone.refresh_tables()
    losses, told_right = [], []
    for a in range(0, count, 32):
        seeds = range(HELD_OUT + a, HELD_OUT + min(a + 32, count))
        text = torch.zeros(len(seeds), dtype=torch.bool)
        prompts = prompt_batch(backbone, [fresh_caption(seed, 0) for seed in seeds], text)
        told = torch.tensor([answers(scene_of(seed)) for seed in seeds])
        device = backbone.device
        with heard_at_prompt(backbone) as heard:
            losses.append(loss_of(backbone, prompts.to(device),
                                  tokens[a : a + 32].to(device)).item())
        told_right.append(probe.share_told(heard[0], told.to(device)))
    return {"held_out_pictures": count, "held_out_nll": mean(losses),
            "fields_read": mean(told_right)}
