"""The states of a frozen backbone on finished pictures, from which draft heads learn.

Works for any backbone and for prompts of different lengths: one causal pass over prompt and picture
in the backbone's own dtype, without storing keys and values. Knows nothing about heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import torch

from ..backbones.base import Backbone
from ..engine.state import followed, predicting
from ..model.grid import Grid
from ..model.kv_cache import KVCache
from .processes import ALONE, Team


class WholeSequence(KVCache):
    """A pass over all slots at once: stores no keys and values; masked slots stay masked."""

    def __init__(self, backbone: Backbone, prompts: Sequence[list[int]], slots: int) -> None:
        super().__init__(0, len(prompts), 1, 0, 1, backbone.dtype, backbone.device)
        counts = ([len(ids), backbone.masked_prompt_slots(ids)] for ids in prompts)
        self.prompts, hidden = torch.tensor(list(counts), device=backbone.device).split(1, dim=1)
        if hidden.any():
            self.hide(hidden[:, 0])
        self.seek(0, slots)

    def update(self, layer: int, kv: torch.Tensor) -> Sequence[torch.Tensor]:
        return kv.chunk(2, dim=1)


@torch.no_grad()
def teach(backbone: Backbone, prompts: Sequence[list[int]], tokens: torch.Tensor,
          team: Team = ALONE) -> tuple[torch.Tensor, torch.Tensor]:
    """h_pre and e, float32 [B, R*C, d], of the cells of pictures [B, R, C] with these prompts."""
    grid, tokens = backbone.grid, tokens.to(backbone.device, torch.long)
    tokens = with_row_ends(tokens, grid, backbone.codes)
    reduced = backbone.dtype != torch.float32
    with nullcontext() if reduced else team.autocast(backbone.device):
        embedding = backbone.embed(tokens)
        hidden = slot_states(backbone, prompts, embedding)
    return cells_of(hidden, grid).float(), cells_of(embedding, grid).float()


def slot_states(backbone: Backbone, prompts: Sequence[list[int]],
                embedding: torch.Tensor) -> torch.Tensor:
    """Return h_pre [B, slots, d] from the input embeddings [B, slots, d] of all slots."""
    lengths = torch.tensor([len(ids) for ids in prompts], device=backbone.device)
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in prompts], True)
    prompt = backbone.embed_prompt(ids.to(backbone.device))
    x = followed(prompt, lengths, embedding[:, :-1])
    cache = WholeSequence(backbone, prompts, x.shape[1])
    return predicting(backbone(x, cache), lengths, embedding.shape[1])


def with_row_ends(tokens: torch.Tensor, grid: Grid, codes: int) -> torch.Tensor:
    """Cells [B, R, C] -> the tokens of all slots [B, slots]."""
    return torch.nn.functional.pad(tokens, (0, grid.width - grid.columns), value=codes).flatten(1)


def cells_of(x: torch.Tensor, grid: Grid) -> torch.Tensor:
    """[B, slots, d] -> [B, R*C, d]: row ends are left out."""
    return x.unflatten(1, (grid.rows, grid.width))[:, :, : grid.columns].flatten(1, 2)


def branch(backbone: Backbone, ids: list[int], without_text: bool) -> list[int]:
    """Return a prompt's ids, or those of guidance's branch without text."""
    return backbone.unconditional(ids) if without_text and backbone.takes_guidance else ids
