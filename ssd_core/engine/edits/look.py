"""The maps of an edit for scripts and hosts: what new words would change, where an object is."""

from __future__ import annotations

from typing import Any

import torch

from ...backbones.base import Backbone
from ...backbones.presets import resolve_sampling
from ...model.sampling import Sampling
from ..decode import alone, check_tokens, prompt_branches
from .maps import cells_of, read, shares, variation
from .words import ids_without, require_editable


class Changes:
    """What new words would change in a picture [R, C] or [1, R, C]; its old words are read once."""

    def __init__(self, backbone: Backbone, tokens: torch.Tensor, old_prompt: str, *,
                 guidance: float | None = None, min_p: float | None = None) -> None:
        self.backbone = backbone
        self.sampling = sampling_of(backbone, cfg=guidance, min_p=min_p)
        self.tokens = one_picture(backbone, tokens)
        with alone(backbone.device):
            self.before = read(backbone, self._branches(old_prompt), self.sampling, self.tokens)

    def by(self, new_prompt: str) -> torch.Tensor:
        """How much these words change each cell, float32 [R, C] in 0..1: one wide pass."""
        with alone(self.backbone.device):
            after = read(self.backbone, self._branches(new_prompt), self.sampling, self.tokens,
                         self.before)
            change = cells_of(self.backbone.grid, variation(self.before, after))[0].cpu()
        return change.clone()

    def _branches(self, prompt: str) -> list[list[int]]:
        return prompt_branches(self.backbone, [prompt], None, self.sampling.cfg)


def change_map(backbone: Backbone, tokens: torch.Tensor, old_prompt: str, new_prompt: str, *,
               guidance: float | None = None, min_p: float | None = None) -> torch.Tensor:
    """How much new words change each cell of a picture, float32 [R, C] in 0..1: two wide passes.

    tokens: [R, C] or [1, R, C]. guidance, min_p: by default the backbone's own.
    """
    return Changes(backbone, tokens, old_prompt, guidance=guidance, min_p=min_p).by(new_prompt)


def object_map(backbone: Backbone, tokens: torch.Tensor, prompt: str, phrase: str, *,
               guidance: float | None = None) -> torch.Tensor:
    """How much likelier a phrase of the prompt makes each token of a picture, in nats, float32
    [R, C]: one wide pass. The cells of the object that it names are above 1.5.
    """
    sampling, picture = sampling_of(backbone, cfg=guidance), one_picture(backbone, tokens)
    branches = [*prompt_branches(backbone, [prompt], None, sampling.cfg),
                ids_without(backbone, prompt, phrase)]
    with alone(backbone.device):
        _, gains = shares(read(backbone, branches, sampling, picture))
        gain = cells_of(backbone.grid, gains)[0, 0].cpu()
    return gain.clone()


def sampling_of(backbone: Backbone, **chosen: float | None) -> Sampling:
    """The sampling with these values; the backbone's own for those that are None."""
    named: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    return resolve_sampling(Sampling(**named), backbone.preset)


def one_picture(backbone: Backbone, tokens: torch.Tensor) -> torch.Tensor:
    """Tokens [1, R, C] of the picture to look at; SSDError if they do not fit the backbone."""
    require_editable(backbone)
    alone_ = isinstance(tokens, torch.Tensor) and tokens.dim() == 2
    return check_tokens(backbone, tokens[None] if alone_ else tokens, 1)
