"""The rule of an edit by words: which cell keeps its token, and what a freed cell becomes.

It depends on probabilities, earlier tokens and the seed's noise only, so a run may judge many cells
at once and again, as `exact` does, and still come to the picture that it would draw one by one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
import torch.nn.functional as F

from ...model.near_ties import choose_closely
from ...model.noise import Slots
from ...model.sampling import COLD, choose, probabilities
from ..events import Pass
from ..region import by_slot
from ..state import DecodeState, at
from .maps import (
    about_rows,
    cells_of,
    cleaned,
    compact,
    each_guided,
    grown,
    log_share,
    shares,
    shrunk,
    silhouettes,
    slots_of,
    variation,
)
from .old_picture import feed_things, feed_words
from .words import Revision

USUAL_REACH, MOVED = 0.25, 0.25  # at this reach, a cell whose map is above MOVED is freed
# A cell keeps its token if it is at least so likely against the likeliest one: a number, and a
# share of what it was under the old words
LIKELY = (0.05, 0.1)
LIKELY_IN_CORE = (0.002, 0.004)
POSSIBLE = 0.1  # least p, against the likeliest, of a token that may replace one of a thing
NEARNESS = 15.0  # how much it must resemble that token


def moved_above(reach: float) -> float:
    """The least value of the change map that frees a cell: 1 at reach 0, 0 at reach 1."""
    return (1 - reach) ** (math.log(MOVED) / math.log(1 - USUAL_REACH)) if reach < 1 else 0.0


def floor(share: torch.Tensor, limits: tuple[float, float], scale: float) -> torch.Tensor:
    """The least log share that keeps a token, from its log share under the old words."""
    if scale == 0:
        return torch.full_like(share, -math.inf)
    number, part = limits
    return (share + math.log(part)).clamp(max=math.log(number)) + math.log(scale)


class Rule:
    """The rule for the cells of a batch.

    By slot, [B, slots + 1]: parent, the old tokens; inside, the cells of held things; core, those
    with their thing all around; moved, the cells that the new words free; least, the log share
    that keeps a token; push [K, B, slots + 1], 1 in a thing, -1 beside it and some rows above,
    where it must not begin a second time, 0 elsewhere. held [B, R, C]: the cells of held things.
    things, missing: the phrases of each picture that are held, and those whose thing was not
    found. branches: prompt ids of the new words without each thing.
    """

    def __init__(self, revision: Revision, before: DecodeState) -> None:
        """before: the pictures under the old words, see `read`."""
        grid, edit = before.grid, revision.edit
        share, gains = shares(before)
        held = silhouettes(cells_of(grid, gains))
        if not revision.named:
            held = held & compact(held)
        found = held.flatten(2).any(-1)  # [K, B]
        self.things, self.missing = ([[thing for thing, seen in zip(*each, strict=False)
                                       if seen == wanted]
                                      for each in zip(revision.things, found.T.tolist(),
                                                      strict=True)] for wanted in (True, False))
        held = held[found.any(1)]
        self.branches = [ids for (_, new), seen in zip(revision.without, found.any(1).tolist(),
                                                       strict=True) if seen for ids in new]
        self.held = held.any(0)
        self.parent = by_slot(grid, before.picture())
        self.inside = slots_of(grid, self.held)
        self.core = slots_of(grid, shrunk(held).any(0))
        self.push = slots_of(grid, held.float() - (~grown(held) & about_rows(held)).float())
        self.edit = edit
        self._same = torch.tensor(revision.same, device=share.device)
        scale = edit.reach / USUAL_REACH
        share = F.pad(share, (0, 1))
        self.least = torch.where(
            self.core, floor(share, LIKELY_IN_CORE, min(scale, 1)), torch.where(
                self.inside, floor(share, LIKELY, min(scale, 1)), floor(share, LIKELY, scale)))
        self.least[self._same] = -math.inf
        self.moved = torch.zeros_like(self.inside)
        self._before: DecodeState | None = before
        self.fed = 0  # slots before this were fed to the words without things, see `begin`

    def wanted(self) -> list[int]:
        """By slot: 1 where the words without a thing matter in any picture."""
        return ((self.push != 0).flatten(0, 1).any(0) | self.inside.any(0)).int().tolist()

    def to_json(self) -> dict:
        """The things of each picture that are held, and those that could not be found in it."""
        return {"things": self.things, "missing": self.missing}

    def begin(self, state: DecodeState) -> Pass:
        """Feed the old pictures under the new words, and find what these move."""
        assert self._before is not None
        before, self._before = self._before, None  # its memory is not needed any more
        prefill = feed_words(state, before)
        self._compare(before, state)
        self.fed = feed_things(state, self.moved)
        return prefill

    def _compare(self, before: DecodeState, after: DecodeState) -> None:
        """Find what the new words move, in the pictures as they are under them."""
        grid, change = after.grid, variation(before, after)
        mask = cleaned(cells_of(grid, change) > moved_above(self.edit.reach))
        if self.edit.reach == 1:
            mask = torch.ones_like(mask)
        self.moved = slots_of(grid, mask & ~self.held & ~self._same[:, None, None])

    def chosen(self, state: DecodeState, slots: Slots) -> torch.Tensor:
        """Capturable: the tokens [B, n] of slots, kept or drawn with their fixed noise."""
        stays, weights, *_ = self._judged(state, slots)
        drawn = choose(weights, state.noise.fixed_at(slots))
        return torch.where(stays, at(self.parent, slots), drawn)

    def chosen_closely(self, state: DecodeState, slots: Slots) -> tuple[torch.Tensor, torch.Tensor]:
        """Capturable: `chosen`, and which choices [B, n] rounding may have decided."""
        stays, weights, pushed, distance = self._judged(state, slots)
        drawn, near = choose_closely(pushed, weights, state.noise.fixed_at(slots), state.sampling,
                                     state.margin)
        if state.sampling.heat < COLD:  # a thing's tokens have other logits than `pushed`
            near = near | at(self.inside, slots)
        tokens = torch.where(stays, at(self.parent, slots), drawn)
        return tokens, (distance.abs() < state.margin) | (~stays & near)

    def _judged(self, state: DecodeState, slots: Slots) -> tuple[torch.Tensor, ...]:
        """Which cells keep their token [B, n], what a freed one is drawn from [B, n, V], its
        logits, and how far the token's log share lies above the least one [B, n].
        """
        plain, *others = each_guided(state, state.hidden_at(slots)).unbind(0)
        return self._judged_by(state, slots, plain, others)

    def drafted(self, state: DecodeState, logits: torch.Tensor, slots: Slots) -> torch.Tensor:
        """Capturable: the tokens [B, n] by guided logits [B, n, V] that are estimates."""
        stays, weights, *_ = self._judged_by(state, slots, logits, [])
        drawn = choose(weights, state.noise.fixed_at(slots))
        return torch.where(stays, at(self.parent, slots), drawn)

    def _judged_by(self, state: DecodeState, slots: Slots, plain: torch.Tensor,
                   others: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """`_judged` by guided logits [B, n, V]: of the words, and without those of each thing."""
        pushed, parent = plain, at(self.parent, slots)
        for push, other in zip(self.push, others, strict=False):  # none: see lanes.py
            pushed = pushed + at(push, slots)[..., None] * (plain - other) / state.sampling.cfg
        inside, core, moved = (at(each, slots) for each in (self.inside, self.core, self.moved))
        share = torch.where(inside & ~core, log_share(plain, parent), log_share(pushed, parent))
        above = share - at(self.least, slots)
        stays, certain = (above >= 0) & ~moved, state.stats.certain_at(slots)
        if certain is not None:
            stays = stays | certain
        weights = probabilities(pushed, state.sampling)
        if others and state.run.padded:
            near = self._like(state, parent, plain, pushed)
            weights = torch.where(inside[..., None], near, weights)
        elif others:
            weights[inside] = self._like(state, *(x[inside] for x in (parent, plain, pushed)))
        return stays, weights, pushed, torch.where(moved, math.inf, above)

    def _like(self, state: DecodeState, parent: torch.Tensor, plain: torch.Tensor,
              pushed: torch.Tensor) -> torch.Tensor:
        """Weights [..., V] of what may replace tokens [...] of a thing: possible, and alike."""
        likely = plain >= plain.amax(-1, keepdim=True) + math.log(POSSIBLE)
        pushed = (pushed - self._unlikeness(state, parent)).masked_fill(~likely, -math.inf)
        return probabilities(pushed, replace(state.sampling, top_k=0, top_p=1.0, min_p=0.0))

    def _unlikeness(self, state: DecodeState, codes: torch.Tensor) -> torch.Tensor:
        """[..., V]: how little each code resembles codes [...] in the codebook."""
        distances = state.codebook.distances(codes)
        return NEARNESS * (distances / distances.mean(-1, keepdim=True)) ** 2
