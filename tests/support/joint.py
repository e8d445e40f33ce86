"""The distribution of whole small pictures, enumerated, and the statistics of those drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
import torch

from ssd_core import Sampling
from ssd_core.model.grid import Grid

from .mock_backbone import MockBackbone, random_heads, tokens

SMALL = {"2x3": (Grid(2, 3), 3, {}), "2x2-row-end": (Grid(2, 2, True), 4, {}),
         "3x2-top-k": (Grid(3, 2), 4, {"top_k": 2, "temperature": 1.3})}



def in_turn(methods: Sequence, kinds: Iterable[str] = SMALL) -> pytest.MarkDecorator:
    """Parameters `method, small`: each method draws one kind of small pictures, by turns; by night
    it draws the other kinds too.
    """
    kinds = list(kinds)
    return pytest.mark.parametrize("method, small", [
        pytest.param(method, kind, id=f"{method}-{kind}",
                     marks=() if place == turn % len(kinds) else pytest.mark.nightly)
        for turn, method in enumerate(methods) for place, kind in enumerate(kinds)])


def joint(backbone: MockBackbone, sampling: Sampling, prompt: str = "sun") -> torch.Tensor:
    """[codes ^ cells] probability of every picture, by plain forwards without cache."""
    grid, codes = backbone.grid, backbone.codes
    pictures = torch.cartesian_prod(*[torch.arange(codes)] * grid.cells).view(-1, grid.rows,
                                                                             grid.columns)
    row_ends = pictures if not grid.row_end else torch.nn.functional.pad(
        pictures, (0, 1), value=codes)
    letters = torch.tensor([backbone.tokenize(prompt)]).expand(len(pictures), -1)
    x = torch.cat((backbone.embed_prompt(letters), backbone.embed(row_ends.flatten(1))), dim=1)
    hidden = backbone(x)[:, letters.shape[1] - 1 : -1]
    logits = backbone.logits(hidden) / sampling.resolved_temperature
    if sampling.top_k:
        least = logits.topk(sampling.top_k).values[..., -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    probs = logits.double().softmax(-1)
    slots = torch.tensor([grid.slot(cell) for cell in range(grid.cells)])
    return probs[:, slots].gather(-1, pictures.flatten(1)[..., None]).prod(1)[:, 0]


def drawn(backbone: MockBackbone, method, sampling: dict, total: int) -> torch.Tensor:
    """Counts [codes ^ cells] of the pictures of `total` seeds, in batches of 4096."""
    heads, cells = random_heads(backbone, row=True), backbone.grid.cells
    weights = backbone.codes ** torch.arange(cells - 1, -1, -1)
    counts = torch.zeros(backbone.codes**cells, dtype=torch.long)
    for first in range(0, total, 4096):
        pictures = tokens(backbone, method, ["sun"] * 4096, heads=heads,
                          sampling=Sampling(seed=first, **sampling))
        index = (pictures.flatten(1) * weights).sum(1)
        counts += torch.bincount(index, minlength=len(counts))
    return counts


def p_value(counts: torch.Tensor, probs: torch.Tensor) -> float:
    """Chi-square; outcomes expected fewer than five times are pooled."""
    from scipy import stats  # takes a second, and few workers need it

    assert counts[probs == 0].sum() == 0
    expected = probs * counts.sum()
    rare = expected < 5
    observed = torch.cat((counts[~rare], counts[rare].sum()[None])).double()
    expected = torch.cat((expected[~rare], expected[rare].sum()[None]))
    kept = expected > 0
    return stats.chisquare(observed[kept].numpy(), expected[kept].numpy()).pvalue
