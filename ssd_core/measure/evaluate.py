"""Quality of a method's pictures, compared with plain AR on the same prompts and seeds.

Every prompt is a postcard caption that was not used in training. A low NLL alone can mean bland
pictures; read it with object accuracy, entropy and the Frechet distance to real postcards.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev

import torch

from ..backbones.base import Backbone
from ..backbones.presets import guidance_of
from ..engine.decode import generate, prompt_branches
from ..engine.events import Finished
from ..engine.heads import DraftHeads
from ..engine.methods import AR, Method
from ..model.sampling import Sampling, guide
from ..postcards import Claim, check, claims
from ..train.backbone import hidden_states
from ..train.data import HELD_OUT, fresh_caption
from ..train.features import FeatureNet, load_classifier

PROMPT_SEED = HELD_OUT + 500_000  # disjoint from the training stages' held-out pictures


def evaluate(backbone: Backbone, heads: DraftHeads | None, methods: Sequence[tuple[str, Method]],
             prompts: int = 64, batch: int = 16, sampling: Sampling = Sampling(),  # noqa: B008
             progress: Callable[[str], None] = lambda label: None) -> list[dict]:
    """One row per method: keys as in docs/contract.md, with standard errors of measured ones."""
    trial = Trial(backbone, prompts, batch, sampling)
    progress("ar")
    baseline = trial.run(AR(), None)
    rows = []
    for label, method in methods:
        progress(label)
        decoded = baseline if isinstance(method, AR) else trial.run(method, heads)
        rows.append({"method": label, **trial.row(decoded, baseline.tokens)})
    return rows


@dataclass
class Decoded:
    """One method on all prompts: tokens [n, R, C] and the statistics of every batch."""

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
        """The measured keys of a method; baseline: AR's tokens for the same seeds."""
        measured = measure(self.backbone, self.classifier, self.captions, decoded.tokens, baseline,
                           self.sampling, self.batch)
        features = torch.stack(measured.pop("features"))
        measured["passes"] = [float(n) for stats in decoded.stats for n in stats["passes_each"]]
        return {"prompts": len(self.captions), **with_errors(measured),
                **self.classifier.distance(features),
                **{key: mean_acceptance(decoded.stats, key)
                   for key in ("acceptance", "acceptance_by_offset")},
                "seconds": sum(stats["seconds"]["total"] for stats in decoded.stats)}


def decode_all(backbone: Backbone, heads: DraftHeads | None, method: Method, captions: list[str],
               batch: int, sampling: Sampling) -> Decoded:
    """All captions by one method; prompt i uses seed + i."""
    tokens, stats = [], []
    for a in range(0, len(captions), batch):
        own = replace(sampling, seed=(sampling.seed + a) % (1 << 64))
        for event in generate(backbone, captions[a : a + batch], method, heads, own):
            if isinstance(event, Finished):
                tokens.append(event.tokens)
                stats.append(event.stats)
    return Decoded(torch.cat(tokens), stats)


@torch.inference_mode()
def measure(backbone: Backbone, classifier: FeatureNet, captions: list[str], tokens: torch.Tensor,
            baseline: torch.Tensor, sampling: Sampling, batch: int) -> dict[str, list]:
    """Per metric one number per picture (object accuracy: one per thing), plus `features`."""
    out: dict[str, list] = defaultdict(list)
    for a in range(0, len(captions), batch):
        part, words = tokens[a : a + batch], captions[a : a + batch]
        pixels = (backbone.decode(part) * 255).round().byte().cpu()
        out["features"] += classifier.features_of(pixels)
        for picture, caption in zip(pixels.numpy(), words, strict=True):
            said = claims(caption)
            verdicts = check(picture, said)
            out["caption_accuracy"].append(sum(verdicts) / len(verdicts))
            out["object_accuracy"] += objects(said, verdicts)
        out["nll"] += nll(backbone, words, part, sampling).tolist()
        out["entropy"] += [code_entropy(picture) for picture in part]
        same = (part == baseline[a : a + batch]).float().flatten(1).mean(1)
        out["identical_tokens"] += same.tolist()
    return out


def objects(said: tuple[Claim, ...], verdicts: tuple[bool, ...]) -> list[float]:
    """For every thing in a caption 1.0 if kind, colour and place are all right, else 0.0."""
    things: dict[int, bool] = {}
    for claim, holds in zip(said, verdicts, strict=True):
        if claim.thing is not None:
            things[claim.thing] = things.get(claim.thing, True) and holds
    return [float(holds) for holds in things.values()]


@torch.inference_mode()
def nll(backbone: Backbone, captions: list[str], tokens: torch.Tensor,
        sampling: Sampling) -> torch.Tensor:
    """[B] nats per token of finished pictures under the guided backbone at temperature 1."""
    cfg = guidance_of(sampling, backbone.preset)
    prompts = torch.tensor(prompt_branches(backbone, captions, None, cfg), device=backbone.device)
    flat = tokens.flatten(1)
    hidden = hidden_states(backbone, prompts, flat.repeat(len(prompts) // len(flat), 1))
    log_probs = guide(backbone.logits(hidden), cfg).log_softmax(-1)
    return -log_probs.gather(-1, flat[..., None])[..., 0].mean(-1)


def code_entropy(tokens: torch.Tensor) -> float:
    """Entropy in nats of the codes in one picture [R, C]; bland pictures score low."""
    share = torch.bincount(tokens.flatten()).float() / tokens.numel()
    return -torch.special.xlogy(share, share).sum().item()


def with_errors(measured: dict[str, list[float]]) -> dict[str, float]:
    """Means, and standard errors under name + "_se"."""
    out = {}
    for name, values in measured.items():
        spread = stdev(values) if len(values) > 1 else 0.0
        out[name], out[f"{name}_se"] = mean(values), spread / math.sqrt(len(values))
    return out


def mean_acceptance(runs: list[Mapping], name: str) -> dict[str, float]:
    """Mean over batches of one mapping in the statistics."""
    keys = dict.fromkeys(key for run in runs for key in run[name])
    return {key: mean([run[name][key] for run in runs if key in run[name]]) for key in keys}
