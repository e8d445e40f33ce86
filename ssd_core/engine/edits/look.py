"""The maps of an edit for scripts and hosts: what new words would change, and where a thing is."""

from __future__ import annotations

from typing import Any

import torch

from ...backbones.base import Backbone
from ...backbones.presets import resolve_sampling
from ...model.sampling import Sampling
from ..decode import alone, check_tokens, prompt_branches
from ..state import DecodeState
from .maps import cells_of, read, shares, variation
from .words import ids_without, require_editable


def change_map(backbone: Backbone, tokens: torch.Tensor, old_prompt: str, new_prompt: str, *,
               guidance: float | None = None, min_p: float | None = None) -> torch.Tensor:
    """How much new words change each cell of a picture, float32 [R, C] in 0..1: two wide passes.

    tokens: [R, C] or [1, R, C]. guidance, min_p: by default the backbone's own.
    """
    sampling = sampling_of(backbone, cfg=guidance, min_p=min_p)
    with alone(backbone.device):
        before, after = (_read(backbone, tokens, prompt, None, sampling)
                         for prompt in (old_prompt, new_prompt))
        change = cells_of(backbone.grid, variation(before, after))[0].cpu()
    return change.clone()


def thing_map(backbone: Backbone, tokens: torch.Tensor, prompt: str, phrase: str, *,
              guidance: float | None = None) -> torch.Tensor:
    """How much likelier a phrase of the prompt makes each token of a picture, in nats, float32
    [R, C]: one wide pass. The cells of the thing that it names are above 1.5.
    """
    sampling = sampling_of(backbone, cfg=guidance)
    with alone(backbone.device):
        _, gains = shares(_read(backbone, tokens, prompt, phrase, sampling))
        gain = cells_of(backbone.grid, gains)[0, 0].cpu()
    return gain.clone()


def sampling_of(backbone: Backbone, **chosen: float | None) -> Sampling:
    """The sampling with these values; the backbone's own for those that are None."""
    named: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    return resolve_sampling(Sampling(**named), backbone.preset)


def _read(backbone: Backbone, tokens: torch.Tensor, prompt: str, phrase: str | None,
          sampling: Sampling) -> DecodeState:
    """One picture under a prompt, and without a phrase of it."""
    require_editable(backbone)
    picture = tokens[None] if isinstance(tokens, torch.Tensor) and tokens.dim() == 2 else tokens
    picture = check_tokens(backbone, picture, 1)
    branches = prompt_branches(backbone, [prompt], None, sampling.cfg)
    if phrase is not None:
        branches = [*branches, ids_without(backbone, prompt, phrase)]
    return read(backbone, branches, sampling, picture)
