"""What a decoding method is, and the two steps that several methods share.

A method is a frozen dataclass of knobs. Those left None take the backbone's preset (`resolved`);
what has all of them counts its passes before anything runs (`plan`), and takes a DecodeState
through the picture and yields one event a pass (`steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any, ClassVar

import torch
import torch.nn.functional as F

from ...backbones.base import Preset
from ...errors import SSDError
from ...model.grid import Grid
from ...model.knobs import check_knobs
from ...model.noise import Purpose
from ...model.sampling import choose
from .. import accept
from ..events import Pass
from ..plan import PAPER_AR_PASSES, Plan
from ..state import DecodeState

Draft = Callable[[DecodeState, int, int], torch.Tensor]


@dataclass(frozen=True)
class Method:
    """A user's wish: knobs left None take the backbone's preset."""

    name: ClassVar[str]
    verdict: ClassVar[str] = "approximate"
    uses_heads: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_knobs(self)

    def resolved(self, preset: Preset) -> Resolved:
        """The same method with every knob known; raises SSDError where knobs do not go together."""
        raise NotImplementedError

    def known(self, preset: Preset) -> dict[str, Any]:
        """The value of every knob; the preset's where it is None."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: getattr(preset, name) if value is None else value
                for name, value in own.items()}


class Resolved(Method):
    """A method that can run. One whose knobs are never None derives from this alone; the others
    have a class of this kind beside them, which says anew what types its knobs have."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check()

    def resolved(self, preset: Preset) -> Resolved:
        return self

    def check(self) -> None:
        """Raise SSDError where knobs do not go together."""

    def heads_needed(self, grid: Grid) -> tuple[int, int] | None:
        """(k_h, k_v) that the heads must reach; None where none are needed."""
        return None

    def plan(self, grid: Grid, first_row: int = 0) -> Plan:
        raise NotImplementedError

    def widest_pass(self, grid: Grid, device: str = "cuda") -> int:
        """Slots that one pass feeds in one row at most; device: its type, by default the one with
        the widest windows."""
        raise NotImplementedError

    def choice(self, grid: Grid, device: str) -> str:
        """In words, what the method chooses by itself for a type of device; may be empty."""
        return ""

    def steps(self, state: DecodeState, first_row: int) -> Iterator[Pass]:
        raise NotImplementedError


def group_slots(grid: Grid, k: int) -> int:
    """Slots of a group of one chosen and up to k drafted cells; a row end rides along."""
    return min(k + 1 + grid.row_end, grid.slots)


def make_plan(grid: Grid, first_row: int, passes: int | None, passes_max: int,
              paper_passes: int | None) -> Plan:
    """A Plan whose AR side decodes the same rows: first_row to the last."""
    ar_passes = (grid.rows - first_row) * grid.columns  # the prefill, then one for all but one cell
    return Plan(passes, passes_max, paper_passes, ar_passes, PAPER_AR_PASSES.get(grid))


def require(rules: tuple[tuple[bool, str], ...]) -> None:
    """Raise SSDError with the message of the first rule that does not hold."""
    for holds, message in rules:
        if not holds:
            raise SSDError(message)


# Drafting


def sample_draft(state: DecodeState, start: int, draft_probs: torch.Tensor,
                 acceptance: str = "residual", choice: str = "sample") -> None:
    """Write tokens for the slots from `start` on, drawn from draft_probs [B, n, V].

    Coupled drafts use the slots' fixed noise, so that a good draft already is AR's token.
    """
    slots = state.noise.slots[start : start + draft_probs.shape[1]]
    if choice == "argmax":
        tokens = draft_probs.argmax(-1)
    elif acceptance == "coupled":
        tokens = choose(draft_probs, state.noise.choosing(start, start + len(slots)))
    else:
        tokens = choose(draft_probs, state.noise.exponential(Purpose.DRAFT, 0, slots))
    state.write(start, tokens)


def one_hot(state: DecodeState, tokens: torch.Tensor) -> torch.Tensor:
    """The distribution [B, n, V] of a draft that is certain of its codes [B, n]."""
    return F.one_hot(tokens, state.backbone.codes).float()


def horizontal_states(state: DecodeState, slot: int, stop: int) -> torch.Tensor:
    """h estimates [rows, n, d] of slots slot+1..stop-1, all from `slot` (Eq. 2).

    Head d reaches d cells on; a row end in between is no cell, and its own estimate is unused.
    """
    hidden = state.hidden[:, slot : slot + 1]
    embedding = state.both(state.backbone.embed(state.tokens[:, slot : slot + 1]))
    cells = (not is_row_end(state.grid, s) for s in range(slot + 1, stop))
    heads = state.draft_heads.horizontal[: stop - slot - 1]
    estimates = [head(hidden, embedding) for head in heads]
    return torch.cat([estimates[max(d, 1) - 1] for d in accumulate(cells)], dim=1)


def vertical_states(state: DecodeState, start: int, rows: int) -> torch.Tensor:
    """h estimates [rows, n, d] of `rows` rows from slot `start` on, all from the row above it."""
    above = slice(start - state.grid.width, start)
    hidden = state.hidden[:, above]
    embedding = state.both(state.backbone.embed(state.tokens[:, above]))
    return torch.cat([head(hidden, embedding) for head in state.draft_heads.vertical[:rows]], dim=1)


# Rounds


@dataclass
class Block:
    """Slots under verification and the distributions that their tokens were drawn from."""

    start: int
    stop: int
    draft_probs: torch.Tensor  # [B, stop - start, V]
    acceptance: str
    reach: int  # slots that lie at one offset from what they were drafted from: 1, or a row

    def part(self, start: int, stop: int) -> Block:
        """The slots start..stop-1 of this block."""
        return replace(self, start=start, stop=stop, draft_probs=self.draft_probs[
            :, start - self.start : stop - self.start])

    def judge(self, state: DecodeState, round_: int) -> torch.Tensor:
        """Accept or repair every slot by itself; q becomes the p just computed. [B, n] bool."""
        slots = state.noise.slots[self.start : self.stop]
        tokens = state.codes(self.start, self.stop)
        target_probs = state.target_probs(self.start, self.stop)
        if self.acceptance == "coupled":
            verdict = accept.coupled(tokens, target_probs,
                                     state.noise.choosing(self.start, self.stop))
        else:
            verdict = accept.residual(tokens, self.draft_probs, target_probs,
                                      state.noise.uniform(Purpose.ACCEPT, round_, slots),
                                      state.noise.exponential(Purpose.REPAIR, round_, slots))
        stood = verdict.tokens == tokens  # before `write` changes what `tokens` views
        self.draft_probs.copy_(target_probs)
        state.write(self.start, verdict.tokens)
        return stood


def rounds(state: DecodeState, block: Block, numbers: range, stage: str) -> Iterator[Pass]:
    """Verification rounds over a block; ends early once nothing changes.

    Up to the first slot that changed in any picture a pass has already done the commit's work: its
    keys, values and hidden states are those of the final tokens, and the next pass begins there.
    """
    for number in numbers:
        first_fed = state.stale
        state.feed(block.stop)
        stood = block.judge(state, number)
        state.stale = block.start + int(stood.all(0).long().cumprod(0).sum())
        state.converged = stood.all(-1)
        state.note_acceptance(f"{stage}/{number}", stood, slice(block.start, block.stop))
        if number == 1:
            state.note_offsets(stage, stood, block.stop, block.reach)
        state.clock.lap("verify")
        before = block.start - first_fed  # negative where the block's first cells are not stale
        fed = F.pad(stood, (before, 0), value=True)
        yield state.passed(stage, number, first_fed, block.stop, fed, max(0, before))
        if state.stale == block.stop:
            return


def commit(state: DecodeState, stop: int) -> Iterator[Pass]:
    """One pass that makes keys, values and hidden states before `stop` final, if any are stale."""
    if (start := state.stale) >= stop:
        return
    state.feed(stop)
    state.clock.lap("commit")
    yield state.passed("commit", 0, start, stop)


# Groups along the raster


def group_bounds(grid: Grid, start: int, stop: int, k: int) -> list[tuple[int, int]]:
    """Slots start..stop-1 in groups: one chosen, up to k drafted cells; row ends ride along."""
    bounds = []
    while start < stop:
        end, cells = start, 0
        while end < stop and (cells <= k or is_row_end(grid, end)):
            cells += not is_row_end(grid, end)
            end += 1
        bounds.append((start, end))
        start = end
    return bounds


def is_row_end(grid: Grid, slot: int) -> bool:
    return grid.row_end and slot % grid.width == grid.columns


def drafted_cells(grid: Grid, begin: int, end: int) -> int:
    """How many cells of a group are drafted: all but its first, which is chosen, and row ends."""
    return sum(not is_row_end(grid, slot) for slot in range(begin + 1, end))


def group_passes(grid: Grid, start: int, stop: int, k: int, rounds_: int) -> int:
    """Passes that `groups` needs, the last group's commit included."""
    return sum(1 + min(rounds_, drafted_cells(grid, begin, end))
               for begin, end in group_bounds(grid, start, stop, k))


def groups(state: DecodeState, start: int, stop: int, k: int, rounds_: int, draft: Draft,
           acceptance: str, last_commit: bool) -> Iterator[Pass]:
    """Row 0 of SSD, or a whole picture by 1-D multi-token prediction.

    The commit of a group yields the exact h of the next slot, which is chosen from it for free.
    """
    for begin, end in group_bounds(state.grid, start, stop, k):
        state.choose(begin)
        if cells := drafted_cells(state.grid, begin, end):
            block = Block(begin + 1, end, draft(state, begin, end), acceptance, reach=1)
            state.clock.lap("draft")
            last = min(rounds_, cells)  # every round makes one more cell final
            yield from rounds(state, block, range(1, last + 1), "horizontal")
        if end < stop or last_commit:
            yield from commit(state, end)
        state.final = end
