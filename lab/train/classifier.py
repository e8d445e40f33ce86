"""A small classifier whose features measure the distance of drawn postcards from real postcards.

It learns to recognise the scene (the fields of reading.py's probe) in painted pictures. It uses the
picture tokenizer's blocks: coarse convolutions, then one feature vector per picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ssd_core.backbones.postcard.words.world import scene_of
from ssd_core.files import write_safetensors
from ssd_core.train.checkpoints import Checkpoint, training_steps
from ssd_core.train.common import (
    cosine,
    descend,
    mixed_precision,
    remember_rates,
    require_least,
    set_rate,
)

from .data import HELD_OUT, pictures
from .features import FORMAT, FeatureNet, moments
from .reading import SceneProbe, answers


@dataclass(frozen=True)
class ClassifierRecipe:
    out: Path
    steps: int = 1200
    pictures: int = 6000
    batch: int = 32
    rate: float = 2e-3
    held_out: int = 256
    reference: int = 2000
    seed: int = 0
    device: str = "cpu"


def batch_of(painted: np.ndarray, first_seed: int,
             pick: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """uint8 [B, H, W, 3] pictures and the indices of their scenes' values [B, fields]."""
    fields = torch.tensor([answers(scene_of(first_seed + i)) for i in pick])
    return torch.from_numpy(np.stack([painted[i] for i in pick])), fields


def train(recipe: ClassifierRecipe) -> dict:
    """Train, save `classifier.safetensors` in recipe.out and return the held-out accuracy."""
    require_least(recipe, pictures=1, steps=1, batch=1, held_out=1, reference=2)
    torch.manual_seed(recipe.seed)
    generator = torch.Generator().manual_seed(recipe.seed)
    painted = pictures(recipe.pictures, recipe.out)
    net = FeatureNet().to(recipe.device)
    probe = SceneProbe(net.features).to(recipe.device)
    model = nn.ModuleList((net, probe))
    weights = list(model.parameters())
    optimizers = remember_rates([torch.optim.AdamW(weights, recipe.rate, weight_decay=0.01)])
    checkpoint = Checkpoint(recipe.out / "classifier.ckpt", model, optimizers, generator)
    for step in training_steps("classifier", recipe.steps, checkpoint,
                               report=lambda: f"loss {checkpoint.mean:.3f}"):
        pick = torch.randint(len(painted), (recipe.batch,), generator=generator).tolist()
        batch, fields = batch_of(painted, 0, pick)
        set_rate(optimizers, cosine(step, recipe.steps, warmup=50))
        with mixed_precision(recipe.device):
            features = net(batch.to(recipe.device))
        loss = probe.loss(features.float(), fields.to(recipe.device))
        descend(loss, optimizers, weights)
        checkpoint.recent.append(loss.item())
    net.eval().cpu()
    share = held_out_share(net, probe.cpu(), recipe)
    real = np.array(pictures(recipe.reference, recipe.out, HELD_OUT))
    centre, covariance = moments(net.features_of(torch.from_numpy(real)))
    net.mean.copy_(centre)
    net.covariance.copy_(covariance)
    write_safetensors(
        {name: tensor.detach().contiguous() for name, tensor in net.state_dict().items()},
        recipe.out / "classifier.safetensors", {"format": FORMAT})
    return {"stage": "classifier", "steps": recipe.steps, "pictures": recipe.pictures,
            "reference": recipe.reference, "held_out": recipe.held_out, "fields_told": share}


@torch.no_grad()
def held_out_share(net: FeatureNet, probe: SceneProbe, recipe: ClassifierRecipe) -> float:
    """Return the share of fields that are right on held-out postcards."""
    painted = pictures(recipe.held_out, recipe.out, HELD_OUT)
    batch, fields = batch_of(painted, HELD_OUT, list(range(recipe.held_out)))
    return probe.share_right(net(batch), fields)
