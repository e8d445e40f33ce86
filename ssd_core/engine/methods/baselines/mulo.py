"""Multi-scale local speculative decoding (MuLo-SD): a smaller picture drafts the large one.

A low-resolution backbone draws a row, the up-sampler turns it into rows of the target, and one pass
verifies them. Cells whose pooled probability is below tau are rejected (MuLo-SD Eq. 5). The target
samples them and their neighbours (Eq. 6, 7) again. A cell waits only for those that touch it, so
that separate islands are sampled together, and within one a row follows the row above (as told of
the paper's second version; the first samples one cell per pass). The down-sampler returns the
verified rows to the drafter. The defaults suit 24 x 24 tokens; the paper uses tau 1e-4, k 1000,
delta 0.1 and radius 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F

from ....backbones.base import SMALL_SLOTS, Backbone
from ....backbones.drafter import Drafter
from ....errors import SSDError
from ....model.grid import Grid
from ... import accept
from ...events import Pass, Plan
from ...region import Region
from ...state import DecodeState
from ..base import Method, codes_pooled, knob, make_plan, variation_bound


@dataclass(frozen=True)
class MuLo(Method):
    """Verifies rows drafted at low resolution, and samples rejected neighbourhoods again."""

    tau: float = knob(1e-3, "Least probability, pooled over similar codes, with which a draft "
                            "stands; higher is closer to AR and slower.", low=0, high=1, step=1e-4,
                      visibility="basic")
    radius: int = knob(1, "Cells around a rejected one, in every direction, that are sampled again "
                          "with it.", low=0, high=64, visibility="basic")
    similar: int = codes_pooled(100)
    delta: float = variation_bound(0.4)
    name: ClassVar[str] = "mulo"
    shares_buffers: ClassVar[bool] = False

    def check_region(self, region: Region) -> None:
        if region.scattered or region.first % region.grid.width:
            raise SSDError("method mulo draws whole rows: keep only whole rows at the top, or use "
                           "another method")

    def plan(self, place: Grid | Region) -> Plan:
        region = Region.of(place)
        return make_plan(region, None, 1 + region.cells, None)

    def pass_width(self, grid: Grid) -> int:
        return min(8 * grid.width, grid.slots)  # four new rows behind four that have changed

    def check_backbone(self, backbone: Backbone) -> None:
        if backbone.find_drafter is None:
            raise SSDError(f"method mulo drafts with a low-resolution model and {backbone.name} "
                           "has none: make one with 'python -m ssd_core train mulo', or choose "
                           "another method")

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        drafter, first_row = drafter_of(state.backbone), state.region.kept_rows
        small = SmallPicture(drafter, state, first_row)
        for y in range(first_row // drafter.ratio, drafter.backbone.grid.rows):
            rows = range(max(first_row, y * drafter.ratio), (y + 1) * drafter.ratio)
            self._draft(state, small, y, rows)
            yield from self._verified(state, rows)
            small.correct(y)

    def _draft(self, state: DecodeState, small: SmallPicture, y: int, rows: range) -> None:
        drafts = F.pad(small.draft(y)[:, rows.start : rows.stop], (0, state.grid.row_end))
        width = state.grid.width
        state.write(slice(rows.start * width, rows.stop * width), drafts.flatten(1))
        state.clock.lap("draft")

    def _verified(self, state: DecodeState, rows: range) -> Iterator[Pass]:
        """Verify rows, then sample rejected cells and their neighbours again."""
        start, stop = rows.start * state.grid.width, rows.stop * state.grid.width
        first_fed = state.stale
        state.feed(stop)
        accepted = self._accepted(state, start, stop)
        state.stats.add_acceptance("verify/1", accepted, slice(start, stop))
        again = expanded(~accepted, len(rows), state.grid, self.radius)
        state.clock.lap("verify")
        n_context = start - first_fed
        yield state.record_pass("verify", 1, first_fed, stop,
                                F.pad(~again, (n_context, 0), value=True),
                                n_context, F.pad(accepted, (n_context, 0), value=True))
        turn = turns(again.cpu().numpy(), len(rows), state.grid)
        yield from resampled(state, start, stop, turn)
        state.final = stop

    def _accepted(self, state: DecodeState, start: int, stop: int) -> torch.Tensor:
        """[B, n] bool: which tokens have a pooled probability of at least tau (MuLo-SD Eq. 5)."""
        slots = slice(start, stop)
        tokens, target_probs = state.codes(slots), state.target_probs(slots)
        similar = state.codebook.similar(tokens, self.similar)
        pooled = accept.pooled(target_probs, similar, self.delta)
        accepted = pooled >= self.tau
        return accepted if state.row_end_mask is None else accepted | state.row_end_mask[slots]


def drafter_of(backbone: Backbone) -> Drafter:
    """The backbone's drafter, loaded on first use; raises SSDError if it draws another grid."""
    assert backbone.find_drafter is not None  # checked by `check_backbone`
    drafter = backbone.find_drafter(backbone)
    assert isinstance(drafter, Drafter)
    drafter.require(backbone)
    return drafter


class SmallPicture:
    """The drafter's own run, one row ahead of the target's."""

    def __init__(self, drafter: Drafter, state: DecodeState, first_row: int) -> None:
        self.drafter, self.target = drafter, state
        backbone = copy(drafter.backbone)
        backbone.first_slot = SMALL_SLOTS  # its random numbers are none of the target's
        grid, keep_rows = drafter.backbone.grid, first_row // drafter.ratio
        top = None
        if keep_rows:
            top = F.pad(self._target_rows(keep_rows), (0, 0, 0, grid.rows - keep_rows))
        self.state = DecodeState(backbone, state.prompts, state.pictures, state.sampling,
                                 None, run=state.run, region=Region.below(grid, keep_rows),
                                 keep=top)
        self.state.prefill()

    def _target_rows(self, rows: int) -> torch.Tensor:
        """Tokens [B, rows, C] of the target's picture at low resolution."""
        return self.drafter.downsampled(self.target.picture()[:, : rows * self.drafter.ratio])

    def draft(self, y: int) -> torch.Tensor:
        """Draw row y, one pass per cell; returns tokens [B, rows, C] of the target up to row y."""
        state, width = self.state, self.state.grid.width
        for slot in range(y * width, y * width + state.grid.columns):
            if state.stale < slot:
                self._feed(slot)
            state.sample(slot)
        return self.drafter.upsampled(state.picture()[:, : y + 1])

    def correct(self, y: int) -> None:
        """Replace row y by the verified row and feed it, unless it is the last."""
        state, width = self.state, self.state.grid.width
        if y + 1 < state.grid.rows:
            row = self._target_rows(y + 1)[:, y]
            state.write(slice(y * width, (y + 1) * width), F.pad(row, (0, state.grid.row_end)))
            state.stale = y * width
            self._feed((y + 1) * width)

    def _feed(self, stop: int) -> None:
        self.state.feed(stop)
        self.target.stats.drafter_passes += 1


def expanded(rejected: torch.Tensor, rows: int, grid: Grid, radius: int) -> torch.Tensor:
    """Mark rejected slots [B, n] of `rows` rows and their neighbours (MuLo-SD Eq. 6, 7).

    Returns [B, n] bool. Neighbours lie at most `radius` rows and columns away, and never before the
    first rejected slot.
    """
    cells = rejected.unflatten(1, (-1, grid.width))[:, -rows:, : grid.columns].float()
    near = F.max_pool2d(cells, 2 * radius + 1, 1, radius) > 0
    near = F.pad(near, (0, grid.row_end)).flatten(1)
    return near & rejected.long().cumsum(1).bool()


def turns(again: np.ndarray, rows: int, grid: Grid) -> np.ndarray:
    """In which turn each slot is sampled again, int64 [B, n]; 0 for one that stands.

    again: [B, n] bool, the slots of `rows` rows. A cell comes after the neighbours before it in
    raster order, of eight, that are sampled again, too.
    """
    turn = np.pad(again.reshape(-1, rows, grid.width), ((0, 0), (1, 0), (1, 1))).astype(np.int64)
    for y in range(1, rows + 1):
        for x in range(1, grid.width + 1):
            above = turn[:, y - 1, x - 1 : x + 2].max(1)
            turn[:, y, x] *= 1 + np.maximum(above, turn[:, y, x - 1])
    return turn[:, 1:, 1:-1].reshape(again.shape)


def resampled(state: DecodeState, start: int, stop: int, turn: np.ndarray) -> Iterator[Pass]:
    """Sample slots from `start` to `stop` again, those of a turn [B, n] together.

    A pass feeds all slots from the first that the last turn changed, so that the next ones see the
    final tokens around them; the first turn needs no pass, since verification has predicted it.
    """
    slots = state.span(start, stop)
    turn_of = torch.from_numpy(turn).to(state.tokens.device)
    for now in range(1, turn.max() + 1):
        if now > 1:
            first_fed = state.stale
            state.feed(stop)
            state.clock.lap("verify")
            stands = torch.ones_like(turn_of[:, first_fed - start :], dtype=torch.bool)
            yield state.record_pass("verify", 1, first_fed, stop, stands, stands.shape[1], stands)
        tokens = state.judge(state.sampled_at, slots)
        state.write(slots, torch.where(turn_of == now, tokens, state.codes(slots)))
        state.stale = start + int((turn == now).any(0).argmax())
