"""How good the pictures of a method are, beside plain AR on the same prompts and seeds.

Every prompt is the caption of a postcard that was never trained on. Low NLL alone can mean bland
pictures: read it beside object accuracy and entropy.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import mean, stdev

import torch

from .backbones.base import Backbone
from .decode import generate, prompt_branches
from .events import Finished
from .heads import DraftHeads
from .methods import AR, Method
from .postcards import Claim, check, claims
from .sampling import Sampling, guide
from .train.backbone import hidden_states
from .train.data import HELD_OUT, fresh_caption

PROMPT_SEED = HELD_OUT + 500_000  # apart from the held-out pictures of the training stages


def evaluate(backbone: Backbone, heads: DraftHeads | None, methods: Sequence[tuple[str, Method]],
             prompts: int = 64, batch: int = 16, sampling: Sampling = Sampling(),  # noqa: B008
             progress: Callable[[str], None] = lambda label: None) -> list[dict]:
    """One row a method: CONTRACT.md's keys, each measured one also with its standard error."""
    captions = [fresh_caption(PROMPT_SEED + i, 0) for i in range(prompts)]
    progress("ar")
    baseline, ar_runs = decode_all(backbone, heads, AR(), captions, batch, sampling)
    rows = []
    for label, method in methods:
        progress(label)
        tokens, runs = (baseline, ar_runs) if isinstance(method, AR) else decode_all(
            backbone, heads, method, captions, batch, sampling)
        measured = measure(backbone, captions, tokens, baseline, sampling, batch)
        measured["passes"] = [float(n) for run in runs for n in run["passes_each"]]
        rows.append({"method": label, "prompts": prompts, **with_errors(measured),
                     **{key: mean_acceptance(runs, key)
                        for key in ("acceptance", "acceptance_by_offset")},
                     "seconds": sum(run["seconds"]["total"] for run in runs)})
    return rows


def decode_all(backbone: Backbone, heads: DraftHeads | None, method: Method, captions: list[str],
               batch: int, sampling: Sampling) -> tuple[torch.Tensor, list[dict]]:
    """Tokens [n, R, C] and the statistics of every batch; prompt i uses seed + i."""
    tokens, runs = [], []
    for a in range(0, len(captions), batch):
        own = replace(sampling, seed=(sampling.seed + a) % (1 << 64))
        for event in generate(backbone, captions[a : a + batch], method, heads, own):
            if isinstance(event, Finished):
                tokens.append(event.tokens)
                runs.append(event.stats)
    return torch.cat(tokens), runs


def measure(backbone: Backbone, captions: list[str], tokens: torch.Tensor, baseline: torch.Tensor,
            sampling: Sampling, batch: int) -> dict[str, list[float]]:
    """One number a picture (object accuracy: one a thing) for every metric."""
    out: dict[str, list[float]] = defaultdict(list)
    for a in range(0, len(captions), batch):
        part, words = tokens[a : a + batch], captions[a : a + batch]
        pixels = (backbone.decode(part) * 255).round().byte().cpu().numpy()
        for picture, caption in zip(pixels, words, strict=True):
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
    """1.0 for every thing of a caption whose kind, colour and place all hold, else 0.0."""
    things: dict[int, bool] = {}
    for claim, holds in zip(said, verdicts, strict=True):
        if claim.thing is not None:
            things[claim.thing] = things.get(claim.thing, True) and holds
    return [float(holds) for holds in things.values()]


@torch.inference_mode()
def nll(backbone: Backbone, captions: list[str], tokens: torch.Tensor,
        sampling: Sampling) -> torch.Tensor:
    """[B] nats per token of finished pictures under the guided backbone at temperature 1."""
    cfg = backbone.preset.cfg if sampling.cfg is None else sampling.cfg
    prompts = torch.tensor(prompt_branches(backbone, captions, None, cfg), device=backbone.device)
    flat = tokens.flatten(1)
    hidden = hidden_states(backbone, prompts, flat.repeat(len(prompts) // len(flat), 1))
    log_probs = guide(backbone.logits(hidden), cfg).log_softmax(-1)
    return -log_probs.gather(-1, flat[..., None])[..., 0].mean(-1)


def code_entropy(tokens: torch.Tensor) -> float:
    """Nats: entropy of the codes that occur in one picture [R, C]; bland pictures score low."""
    share = torch.bincount(tokens.flatten()).float() / tokens.numel()
    return -torch.special.xlogy(share, share).sum().item()


def with_errors(measured: dict[str, list[float]]) -> dict[str, float]:
    """Means, and standard errors under name + "_se"."""
    out = {}
    for name, values in measured.items():
        spread = stdev(values) if len(values) > 1 else 0.0
        out[name], out[f"{name}_se"] = mean(values), spread / math.sqrt(len(values))
    return out


def mean_acceptance(runs: list[dict], name: str) -> dict[str, float]:
    """Mean over batches of a mapping of the statistics."""
    keys = dict.fromkeys(key for run in runs for key in run[name])
    return {key: mean([run[name][key] for run in runs if key in run[name]]) for key in keys}
