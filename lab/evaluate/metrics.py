"""Metrics of a method's pictures, and their comparison with AR's for the same prompts and seeds.

Every prompt is a postcard caption that was not used in training. A low NLL alone can mean bland
pictures; read it with object accuracy, entropy and the Frechet distance to real postcards.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

import torch

from ssd_core.backbones.base import Backbone
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.backbones.presets import resolve_sampling
from ssd_core.engine.decode import generate, prompt_branches
from ssd_core.engine.events import finished
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import Method
from ssd_core.errors import SSDError
from ssd_core.model.sampling import Sampling, guide

from ..postcards import FRAMES, Claim, check, frame_of
from ..postcards.claims import claims
from ..train.backbone import hidden_states
from ..train.data import HELD_OUT
from ..train.features import FeatureNet, load_classifier

SIZES = ", ".join(f"{frame.width}x{frame.height}" for frame in FRAMES)
PROMPT_SEED = HELD_OUT + 500_000  # disjoint from the training stages' held-out pictures


def require_postcards(backbone: Backbone) -> None:
    """Raise SSDError unless pictures have a size of postcards, as the checker requires."""
    width, height = backbone.smallest.size
    if frame_of(height, width) is None:
        raise SSDError(f"{backbone.name} draws {width}x{height} pixels, and claims are checked on "
                       f"postcards of {SIZES}: use evaluate --suite for other backbones")


@dataclass
class Decoded:
    """A method's tokens [n, R, C] for all prompts, and the statistics of every batch."""

    tokens: torch.Tensor
    stats: list[Mapping]


class Trial:
    """The prompts on which methods are compared; prompt i uses seed + i."""

    def __init__(self, backbone: Backbone, prompts: int, batch: int, sampling: Sampling) -> None:
        self.backbone, self.batch, self.sampling = backbone, batch, sampling
        self.captions = [fresh_caption(PROMPT_SEED + i, 0) for i in range(prompts)]
        self.classifier = load_classifier()

    def run(self, method: Method, heads: DraftHeads | None) -> Decoded:
        return decode_all(self.backbone, heads, method, self.captions, self.batch, self.sampling)

    def row(self, decoded: Decoded, baseline: torch.Tensor) -> dict:
        """Return a method's metrics; baseline: AR's tokens for the same seeds."""
        measured = measure(self.backbone, self.classifier, self.captions, decoded.tokens,
                           self.sampling, self.batch)
        return self.summary(measured, decoded.stats, identical(decoded.tokens, baseline))

    def summary(self, measured: Mapping[str, list], stats: Sequence[Mapping],
                same: list[float]) -> dict:
        """Return means with errors. measured: from `measure`. same: from `identical`."""
        values = {**measured, "identical_tokens": same,
                  "passes": [float(n) for batch in stats for n in batch["passes_each"]]}
        features = torch.tensor(values.pop("features"), dtype=torch.float64)
        return {"prompts": len(self.captions), **with_errors(values),
                **self.classifier.distance(features),
                **{key: mean_acceptance(stats, key)
                   for key in ("acceptance", "acceptance_by_offset")},
                "seconds": sum(batch["seconds"]["total"] for batch in stats)}


def decode_all(backbone: Backbone, heads: DraftHeads | None, method: Method,
               captions: Sequence[str], batch: int, sampling: Sampling) -> Decoded:
    """Decode all captions by one method; prompt i uses seed + i."""
    tokens, stats = [], []
    for a in range(0, len(captions), batch):
        result = finished(generate(backbone, captions[a : a + batch], method, heads,
                                   sampling.offset_seed(a)))
        tokens.append(result.tokens)
        stats.append(result.stats)
    return Decoded(torch.cat(tokens), stats)


@torch.inference_mode()
def measure(backbone: Backbone, classifier: FeatureNet, captions: Sequence[str],
            tokens: torch.Tensor, sampling: Sampling, batch: int) -> dict[str, list]:
    """Return {metric: number per picture (object accuracy: per thing)}, plus `features`."""
    out: dict[str, list] = defaultdict(list)
    for a in range(0, len(captions), batch):
        part, words = tokens[a : a + batch], captions[a : a + batch]
        pixels = (backbone.smallest.decode(part) * 255).round().byte().cpu()
        out["features"] += classifier.features_of(pixels).tolist()
        for picture, caption in zip(pixels.numpy(), words, strict=True):
            caption_claims = claims(caption)
            held = check(picture, caption_claims)
            out["caption_accuracy"].append(sum(held) / len(held))
            out["object_accuracy"] += objects(caption_claims, held)
        out["nll"] += nll(backbone, words, part, sampling).tolist()
        out["entropy"] += [code_entropy(picture) for picture in part]
    return dict(out)


def identical(tokens: torch.Tensor, baseline: torch.Tensor) -> list[float]:
    """Share of tokens [n, R, C] equal to the baseline's, per picture."""
    return (tokens == baseline.to(tokens.device)).float().flatten(1).mean(1).tolist()


def objects(checked: tuple[Claim, ...], held: tuple[bool, ...]) -> list[float]:
    """Return for every thing in a caption 1.0 if kind, colour and place are right, else 0.0."""
    things: dict[int, bool] = {}
    for claim, holds in zip(checked, held, strict=True):
        if claim.thing is not None:
            things[claim.thing] = things.get(claim.thing, True) and holds
    return [float(holds) for holds in things.values()]


@torch.inference_mode()
def nll(backbone: Backbone, captions: Sequence[str], tokens: torch.Tensor,
        sampling: Sampling) -> torch.Tensor:
    """[B] nats per token of finished pictures under the guided backbone at temperature 1."""
    cfg = resolve_sampling(sampling, backbone.preset).cfg
    branches = prompt_branches(backbone, list(captions), None, cfg)
    prompts = torch.tensor(branches, device=backbone.device)
    flat = tokens.flatten(1)
    hidden = hidden_states(backbone, prompts, flat.repeat(len(prompts) // len(flat), 1))
    log_probs = guide(backbone.logits(hidden), cfg).log_softmax(-1)
    return -log_probs.gather(-1, flat[..., None])[..., 0].mean(-1)


def code_entropy(tokens: torch.Tensor) -> float:
    """Entropy in nats of the codes in one picture [R, C]; bland pictures score low."""
    share = torch.bincount(tokens.flatten()).float() / tokens.numel()
    return -torch.special.xlogy(share, share).sum().item()


def with_errors(measured: dict[str, list[float]]) -> dict[str, float]:
    """Return means, and standard errors under name + "_se"."""
    out = {}
    for name, values in measured.items():
        spread = stdev(values) if len(values) > 1 else 0.0
        out[name], out[f"{name}_se"] = mean(values), spread / math.sqrt(len(values))
    return out


def mean_acceptance(runs: Sequence[Mapping], name: str) -> dict[str, float]:
    """Mean over batches of one mapping in the statistics."""
    keys = dict.fromkeys(key for run in runs for key in run[name])
    return {key: mean([run[name][key] for run in runs if key in run[name]]) for key in keys}
