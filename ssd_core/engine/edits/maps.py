"""Where words act in a picture: read off two wide passes over all its cells.

The change map is the total variation between the distributions of a cell under old and new words.
The map of an object says how much likelier its own words make the picture's token of each cell.
Both take the present picture as context.

Where the bits of a cell do not depend on its pass, the unconditional sequences are taken over from
the pass under the old words, and the words without an object are fed up to the first cell that the
new words move. Elsewhere one pass feeds all. This changes no token.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from ...backbones.base import Backbone
from ...model.grid import Grid
from ...model.sampling import Sampling, probabilities
from ..events import Pass
from ..region import by_slot
from ..state import DecodeState

ALONE, SMALLEST = 3, 6  # cells: of 9, fewer are dropped; of an object, fewer are ignored
ABOVE = 4  # rows above an object in which it might begin a second time
LIKELIER = 1.5  # nats that an object's words add to the tokens of its cells
# A part of the words names an object, where no guide says so, if its map has this shape: most of
# the picture, least share in one piece, and of the rectangle around that piece
LARGEST, IN_ONE, FILLED = 0.4, 0.6, 0.4
NUMBERS_AT_ONCE = 1 << 24  # of logits, which limits their memory


def feed_words(state: DecodeState, before: DecodeState) -> Pass:
    """Feed the new words all cells; before: the pictures under the old words."""
    if not in_parts(state):
        return state.prefill(state.region.end)
    prefill = state.prefill()
    unconditional = slice(state.pictures, state.guidance * state.pictures)
    known = state.prompts[unconditional] == before.prompts[unconditional]
    if known:  # without guidance there are none
        state.cache.take(before.cache, unconditional)
        state.hidden[unconditional] = before.hidden[unconditional]
    with state.only(0, 1 if known else state.guidance):
        state.feed(state.region.end)
    state.stale = state.region.first
    return prefill


def feed_objects(state: DecodeState, mask: torch.Tensor) -> int:
    """Feed the words without objects the cells before the first masked one; returns its slot.

    mask [B, slots + 1] bool: the cells that the new words free.
    """
    first, end = state.region.first, state.region.end
    if not in_parts(state):
        return end
    known = state.stats.known_at(slice(first, end))
    mask = mask[:, first:end] if known is None else mask[:, first:end] & ~known
    stop = first + int(torch.cat((mask.any(0), mask.new_ones(1))).int().argmax())
    if stop > first and state.branches > state.guidance:
        with state.only(state.guidance, state.branches):
            state.feed(stop)
        state.stale = first
    return stop


def in_parts(state: DecodeState) -> bool:
    """Whether a pass may feed some of the sequences, without any difference to their bits."""
    return state.backbone.batch_invariant and not state.run.padded


def read(backbone: Backbone, branches: list[list[int]], sampling: Sampling,
         tokens: torch.Tensor, before: DecodeState | None = None) -> DecodeState:
    """Pictures [B, R, C] under some words: the state after one pass over all their cells.

    branches: prompt ids of the words, unconditional ones (with guidance), and the words without
    each object's. before: the same pictures under other words, see `feed_words`.
    """
    state = DecodeState(backbone, branches, len(tokens), sampling, None)
    state.write(slice(0, state.slots), by_slot(backbone.grid, tokens.to(backbone.device))[:, :-1])
    if before is None:
        state.prefill(backbone.grid.slots)
    else:
        feed_words(state, before)
    return state


def parts(state: DecodeState) -> Iterator[slice]:
    """All slots, as many at a time as fit into memory with their logits."""
    step = max(NUMBERS_AT_ONCE // (len(state.hidden) * state.backbone.codes), 1)
    return (slice(first, min(first + step, state.slots)) for first in range(0, state.slots, step))


def each_guided(state: DecodeState, hidden: torch.Tensor) -> torch.Tensor:
    """Guided logits [1 + objects, B, n, V] from h [N, n, d]: under the words, and without those of
    each object.
    """
    logits = state.backbone.logits(hidden).unflatten(0, (-1, state.pictures))
    if state.guidance == 1:
        return logits
    return torch.lerp(logits[1], torch.cat((logits[:1], logits[2:])), state.sampling.cfg)


def shares(state: DecodeState) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each slot's token: log p against the likeliest token's [B, slots], and log p against that
    without each object's words [objects, B, slots].
    """
    own, gains = [], []
    for slots in parts(state):
        logits = each_guided(state, state.hidden[:, slots])
        words, without = logits[0], logits[1:]
        codes = state.codes(slots)
        own.append(log_share(words, codes))
        others = log_probs(without, codes.expand(len(without), -1, -1))
        gains.append(log_probs(words, codes) - others)
    return torch.cat(own, -1), torch.cat(gains, -1)


def variation(before: DecodeState, after: DecodeState) -> torch.Tensor:
    """[B, slots]: the total variation between each slot's distributions under two prompts."""
    each = []
    for slots in parts(before):
        p, q = (probabilities(each_guided(state, words_of(state)[:, slots])[0], state.sampling)
                for state in (before, after))
        each.append((p - q).clamp_(min=0).sum(-1))
    return torch.cat(each, -1)


def words_of(state: DecodeState) -> torch.Tensor:
    """h [N, slots, d] under the words, without the branches of objects."""
    return state.hidden[: state.guidance * state.pictures]


def log_share(logits: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """log (p / largest p) [...] of codes [...], from logits [..., V]."""
    return logits.gather(-1, codes[..., None])[..., 0] - logits.amax(-1)


def log_probs(logits: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """log p [...] of codes [...], from logits [..., V]."""
    return logits.gather(-1, codes[..., None])[..., 0] - logits.logsumexp(-1)


# Masks of cells, [..., R, C]


def counts(mask: torch.Tensor) -> torch.Tensor:
    """How many of the 9 cells around each are set; none are outside the picture."""
    return F.avg_pool2d(_stacked(mask), 3, 1, 1).mul(9).round().view(mask.shape)


def grown(mask: torch.Tensor) -> torch.Tensor:
    """The mask with one more cell on every side."""
    return counts(mask) > 0


def shrunk(mask: torch.Tensor) -> torch.Tensor:
    """The cells whose neighbours are all set; those outside the picture count as set."""
    return ~grown(~mask)


def cleaned(mask: torch.Tensor) -> torch.Tensor:
    """The mask without lone cells and small holes."""
    return shrunk(grown(mask & (counts(mask) >= ALONE)))


def about_rows(mask: torch.Tensor) -> torch.Tensor:
    """The rows of a mask up to its last cell, and some above them; none if it is empty."""
    begun = mask.any(-1).cumsum(-1) > 0
    above = F.pad(begun[..., ABOVE:], (0, ABOVE), value=True)[..., : begun.shape[-1]]
    return above[..., None] & (mask.flatten(-2).flip(-1).cumsum(-1) > 0).flip(-1).view(mask.shape)


def _stacked(mask: torch.Tensor) -> torch.Tensor:
    return mask.float().reshape(-1, 1, *mask.shape[-2:])


def silhouettes(gains: torch.Tensor) -> torch.Tensor:
    """The cells of objects, bool [..., R, C], from their maps; empty if an object is too small."""
    mask = cleaned(gains > LIKELIER)
    return mask & (mask.sum((-2, -1), keepdim=True) >= SMALLEST)


def compact(masks: torch.Tensor) -> torch.Tensor:
    """Which masks [..., R, C] look like an object, bool [..., 1, 1]: one part of the picture, most
    of them in one piece that fills its rectangle.
    """
    flat = masks.reshape(-1, *masks.shape[-2:])
    each = [_is_compact(mask) for mask in flat]
    return torch.tensor(each, dtype=torch.bool, device=masks.device).view(*masks.shape[:-2], 1, 1)


def _is_compact(mask: torch.Tensor) -> bool:
    size = int(mask.sum())
    if not 0 < size <= LARGEST * mask.numel():
        return False
    piece = largest_piece(mask)
    y, x = piece.nonzero().unbind(-1)
    rectangle = int((y.max() - y.min() + 1) * (x.max() - x.min() + 1))
    return int(piece.sum()) >= IN_ONE * size and int(piece.sum()) >= FILLED * rectangle


def largest_piece(mask: torch.Tensor) -> torch.Tensor:
    """The largest connected piece of a mask [R, C], also across corners."""
    best, left = torch.zeros_like(mask), mask.clone()
    while left.any():
        piece = torch.zeros_like(mask)
        piece.view(-1)[left.flatten().nonzero()[0]] = True
        while not piece.equal(more := grown(piece) & mask):
            piece = more
        left &= ~piece
        best = piece if piece.sum() > best.sum() else best
    return best


# Between slots and cells


def cells_of(grid: Grid, table: torch.Tensor) -> torch.Tensor:
    """[..., slots] -> [..., R, C] without row ends."""
    return table[..., : grid.slots].unflatten(-1, (grid.rows, grid.width))[..., : grid.columns]


def slots_of(grid: Grid, table: torch.Tensor) -> torch.Tensor:
    """[..., R, C] -> [..., slots + 1]; 0 at row ends and behind the picture."""
    return F.pad(F.pad(table, (0, grid.width - grid.columns)).flatten(-2), (0, 1))
