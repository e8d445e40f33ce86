"""The rule of an edit by words: which cell keeps its token, and what a freed cell becomes.

It depends on probabilities, earlier tokens and the seed's noise only, so a run may judge many cells
at once and again, as `exact` does, and still come to the picture that it would draw one by one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
import torch.nn.functional as F

from ...model.near_ties import sample_with_ties
from ...model.noise import Slots
from ...model.sampling import COLD, probabilities, sample
from ..events import Pass
from ..region import by_slot
from ..state import DecodeState, at
from .maps import (
    about_rows,
    cells_of,
    cleaned,
    compact,
    each_guided,
    feed_objects,
    feed_words,
    grown,
    log_share,
    shares,
    shrunk,
    silhouettes,
    slots_of,
    variation,
)
from .words import Revision

USUAL_REACH, CHANGED = 0.25, 0.25  # at this reach, a cell whose map is above CHANGED is freed
# A cell keeps its token if it is at least so likely against the likeliest one: a number, and a
# share of what it was under the old words
LIKELY = (0.05, 0.1)
LIKELY_IN_CORE = (0.002, 0.004)
POSSIBLE = 0.1  # least p, against the likeliest, of a token that may replace one of an object
NEARNESS = 15.0  # how much it must resemble that token


def changed_above(reach: float) -> float:
    """The least value of the change map that frees a cell: 1 at reach 0, 0 at reach 1."""
    return (1 - reach) ** (math.log(CHANGED) / math.log(1 - USUAL_REACH)) if reach < 1 else 0.0


def floor(share: torch.Tensor, limits: tuple[float, float], scale: float) -> torch.Tensor:
    """The least log share that keeps a token, from its log share under the old words."""
    if scale == 0:
        return torch.full_like(share, -math.inf)
    number, part = limits
    return (share + math.log(part)).clamp(max=math.log(number)) + math.log(scale)


class Rule:
    """The rule for the cells of a batch.

    By slot, [B, slots + 1]: parent, the old tokens; inside, the cells of held objects; core, those
    with their object all around; mask, the cells that the new words free; least, the log share
    that keeps a token; push [K, B, slots + 1], 1 in an object, -1 beside it and some rows above,
    where it must not begin a second time, 0 elsewhere. object_cells [B, R, C]: the cells of held
    objects. objects, missing: the phrases of each picture that are held, and those whose object was
    not found. branches: prompt ids of the new words without each object.
    """

    def __init__(self, revision: Revision, before: DecodeState) -> None:
        """before: the pictures under the old words, see `read`."""
        grid, edit = before.grid, revision.edit
        share, gains = shares(before)
        object_cells = silhouettes(cells_of(grid, gains))
        if not revision.named:
            object_cells = object_cells & compact(object_cells)
        found = object_cells.flatten(2).any(-1)  # [K, B]
        self.objects, self.missing = ([[phrase for phrase, seen in zip(*each, strict=False)
                                        if seen == wanted]
                                       for each in zip(revision.objects, found.T.tolist(),
                                                       strict=True)] for wanted in (True, False))
        object_cells = object_cells[found.any(1)]
        self.branches = [ids for (_, new), seen in zip(revision.without, found.any(1).tolist(),
                                                       strict=True) if seen for ids in new]
        self.object_cells = object_cells.any(0)
        self.parent = by_slot(grid, before.picture())
        self.inside = slots_of(grid, self.object_cells)
        self.core = slots_of(grid, shrunk(object_cells).any(0))
        beside = ~grown(object_cells) & about_rows(object_cells)
        self.push = slots_of(grid, object_cells.float() - beside.float())
        self.edit = edit
        self._same = torch.tensor(revision.same, device=share.device)
        scale = edit.reach / USUAL_REACH
        share = F.pad(share, (0, 1))
        self.least = torch.where(
            self.core, floor(share, LIKELY_IN_CORE, min(scale, 1)), torch.where(
                self.inside, floor(share, LIKELY, min(scale, 1)), floor(share, LIKELY, scale)))
        self.least[self._same] = -math.inf
        self.mask = torch.zeros_like(self.inside)
        self._before: DecodeState | None = before
        self.fed = 0  # slots before this were fed to the words without objects, see `begin`

    def wanted(self) -> list[int]:
        """By slot: 1 where the words without an object matter in any picture."""
        return ((self.push != 0).flatten(0, 1).any(0) | self.inside.any(0)).int().tolist()

    def to_json(self) -> dict:
        """The objects of each picture that are held, and those that could not be found in it."""
        return {"objects": self.objects, "missing": self.missing}

    def begin(self, state: DecodeState) -> Pass:
        """Feed the old pictures under the new words, and find what these move."""
        assert self._before is not None
        before, self._before = self._before, None  # its memory is not needed any more
        prefill = feed_words(state, before)
        self._compare(before, state)
        self.fed = feed_objects(state, self.mask)
        return prefill

    def _compare(self, before: DecodeState, after: DecodeState) -> None:
        """Find what the new words move, in the pictures as they are under them."""
        grid, change = after.grid, variation(before, after)
        mask = cleaned(cells_of(grid, change) > changed_above(self.edit.reach))
        if self.edit.reach == 1:
            mask = torch.ones_like(mask)
        self.mask = slots_of(grid, mask & ~self.object_cells & ~self._same[:, None, None])

    def sampled(self, state: DecodeState, slots: Slots) -> torch.Tensor:
        """Capturable: the tokens [B, n] of slots, kept or drawn with their fixed noise."""
        known, weights, *_ = self._decided(state, slots)
        drawn = sample(weights, state.noise.fixed_at(slots))
        return torch.where(known, at(self.parent, slots), drawn)

    def sampled_with_ties(self, state: DecodeState,
                          slots: Slots) -> tuple[torch.Tensor, torch.Tensor]:
        """Capturable: `sampled`, and which samples [B, n] rounding may have decided."""
        known, weights, pushed, distance = self._decided(state, slots)
        drawn, near = sample_with_ties(pushed, weights, state.noise.fixed_at(slots), state.sampling,
                                       state.margin)
        if state.sampling.resolved_temperature < COLD:  # an object's tokens have other logits
            near = near | at(self.inside, slots)
        tokens = torch.where(known, at(self.parent, slots), drawn)
        return tokens, (distance.abs() < state.margin) | (~known & near)

    def _decided(self, state: DecodeState, slots: Slots) -> tuple[torch.Tensor, ...]:
        """Which cells keep their token [B, n], what a freed one is drawn from [B, n, V], its
        logits, and how far the token's log share lies above the least one [B, n].
        """
        plain, *others = each_guided(state, state.hidden_at(slots)).unbind(0)
        return self._decided_by(state, slots, plain, others)

    def drafted(self, state: DecodeState, logits: torch.Tensor, slots: Slots) -> torch.Tensor:
        """Capturable: the tokens [B, n] by guided logits [B, n, V] that are estimates."""
        known, weights, *_ = self._decided_by(state, slots, logits, [])
        drawn = sample(weights, state.noise.fixed_at(slots))
        return torch.where(known, at(self.parent, slots), drawn)

    def _decided_by(self, state: DecodeState, slots: Slots, plain: torch.Tensor,
                    others: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """`_decided` by guided logits [B, n, V]: of the words, and without those of each object."""
        pushed, parent = plain, at(self.parent, slots)
        for push, other in zip(self.push, others, strict=False):  # none: see `ObjectBranches`
            pushed = pushed + at(push, slots)[..., None] * (plain - other) / state.sampling.cfg
        inside, core, mask = (at(each, slots) for each in (self.inside, self.core, self.mask))
        share = torch.where(inside & ~core, log_share(plain, parent), log_share(pushed, parent))
        above = share - at(self.least, slots)
        known, forced = (above >= 0) & ~mask, state.stats.known_at(slots)
        if forced is not None:
            known = known | forced
        weights = probabilities(pushed, state.sampling)
        if others and state.run.padded:
            near = self._like(state, parent, plain, pushed)
            weights = torch.where(inside[..., None], near, weights)
        elif others:
            weights[inside] = self._like(state, *(x[inside] for x in (parent, plain, pushed)))
        return known, weights, pushed, torch.where(mask, math.inf, above)

    def _like(self, state: DecodeState, parent: torch.Tensor, plain: torch.Tensor,
              pushed: torch.Tensor) -> torch.Tensor:
        """Weights [..., V] of what may replace tokens [...] of an object: possible, and alike."""
        likely = plain >= plain.amax(-1, keepdim=True) + math.log(POSSIBLE)
        pushed = (pushed - self._unlikeness(state, parent)).masked_fill(~likely, -math.inf)
        return probabilities(pushed, replace(state.sampling, top_k=0, top_p=1.0, min_p=0.0))

    def _unlikeness(self, state: DecodeState, codes: torch.Tensor) -> torch.Tensor:
        """[..., V]: how little each code resembles codes [...] in the codebook."""
        distances = state.codebook.distances(codes)
        return NEARNESS * (distances / distances.mean(-1, keepdim=True)) ** 2
