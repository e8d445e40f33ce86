"""Drive a backbone as the decoding loop does: a prompt, then blocks, some fed wrongly at first."""

from __future__ import annotations

import torch

from ssd_core.backbones.base import Backbone


@torch.no_grad()
def hidden_by_blocks(backbone: Backbone, prompts: list[list[int]], tokens: torch.Tensor,
                     block: int = 7) -> list[torch.Tensor]:
    """For each row h_pre [P + n, d] of its own prompt and its tokens [rows, n], block by block.

    Every block is fed with other tokens first and then, over the same slots, with its own.
    """
    lengths = torch.tensor([len(ids) for ids in prompts])
    cache = backbone.new_cache(len(prompts), int(lengths.max()) + tokens.shape[1])
    cache.prompts = lengths[:, None]
    hidden = [backbone.masked_prompt_slots(ids) for ids in prompts]
    if any(hidden):
        cache.hide(torch.tensor(hidden))
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in prompts], True)
    cache.seek(0, padded.shape[1])
    prompt, states, start = backbone(backbone.embed_prompt(padded), cache), [], 0
    for part in tokens.split(block, dim=1):
        for fed in ((part + 1) % backbone.codes, part):
            slots = torch.arange(start, start + part.shape[1])
            cache.seek_each(lengths[:, None] + slots, int(lengths.max()) + start + part.shape[1])
            state = backbone(backbone.embed(fed), cache)
        states.append(state)
        start += part.shape[1]
    picture = torch.cat(states, dim=1)
    return [torch.cat((prompt[row, :length], picture[row]))
            for row, length in enumerate(lengths.tolist())]


def random_tokens(backbone: Backbone, rows: int, seed: int = 0,
                  count: int | None = None) -> torch.Tensor:
    """[rows, count] codes; a whole picture in raster order where no count is given."""
    generator = torch.Generator().manual_seed(seed)
    shape = (rows, count or backbone.grid.cells)
    return torch.randint(backbone.codes, shape, generator=generator)
