"""The base class of decoding methods, and the steps that several methods share.

A method is a frozen dataclass of knobs. `resolve` takes unset knobs from the backbone's preset. The
resolved method counts its passes in advance (`plan`) and decodes the picture (`steps`), yielding
one event per pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.nn.functional as F

from ...backbones.base import Backbone, Preset
from ...errors import SSDError
from ...model.grid import LONGEST_SIDE, Grid
from ...model.knobs import KnobRecord, derived, knob
from ...model.noise import Purpose, Slots
from ...model.sampling import sample
from .. import accept
from ..events import PAPER_AR_PASSES, Pass, Plan
from ..region import Region
from ..state import DecodeState

if TYPE_CHECKING:
    from typing_extensions import Self

Draft = Callable[[DecodeState, int, int], torch.Tensor]
__all__ = ["cells_drafted", "codes_pooled", "drafted_by", "knob", "variation_bound",
           "verification_rounds"]


@dataclass(frozen=True)
class Method(KnobRecord):
    """The knobs of a method.

    A knob of the preset (k_h, k_v, rounds, incremental) may be None before `resolve`. All other
    functions require a resolved method.
    """

    name: ClassVar[str]
    guarantee: ClassVar[str] = "approximate"
    uses_heads: ClassVar[bool] = False
    takes_words: ClassVar[bool] = False  # whether it can edit a picture by words
    shares_buffers: ClassVar[bool] = True  # whether all its graphs read one state (sessions.py)

    def __post_init__(self) -> None:
        if not self.unset:
            self.check()

    def guarantee_on(self, grid: Grid) -> str:
        """The guarantee of these knobs on a grid: `guarantee`, or a stronger one that is proved."""
        return self.guarantee

    @property
    def unset(self) -> list[str]:
        """The names of knobs that the backbone's preset must still set."""
        of_preset = {f.name for f in fields(Preset)}
        return [f.name for f in fields(self)
                if f.name in of_preset and getattr(self, f.name) is None]

    def resolve(self, preset: Preset) -> Self:
        """The method with every knob set; raises SSDError if the values are incompatible."""
        unset = self.unset
        method = derived(self, **{name: getattr(preset, name) for name in unset})
        if unset:
            method.check()
        return method

    def check(self) -> None:
        """Raise SSDError if the knobs are incompatible with each other."""

    def check_backbone(self, backbone: Backbone) -> None:
        """Raise SSDError if the backbone lacks what the method needs."""

    def heads_needed(self, grid: Grid) -> tuple[int, int] | None:
        """(k_h, k_v) that the heads must provide, or None if the method needs no heads."""
        return (0, 0) if self.needs_row_drafter() else None

    def needs_row_drafter(self) -> bool:
        """Whether the heads' file must contain a row drafter."""
        return getattr(self, "drafter", None) == "row"

    def starts_from_parent(self, masked: bool) -> bool:
        """Whether the first guess of a cell may be the token that `keep` has there.

        masked: some cells are known by a mask.
        """
        guess = getattr(self, "guess", "usual")
        return guess == "parent" or (guess == "auto" and masked)

    def check_region(self, region: Region) -> None:
        """Raise SSDError if the method cannot draw these cells alone."""

    def plan(self, place: Grid | Region) -> Plan:
        """The passes over a region, or a whole grid; by default unknown, at most one per slot."""
        region = Region.of(place)
        return make_plan(region, None, sum(region.slot_mask), None)

    def for_device(self, grid: Grid, device: str, cells: int | None = None) -> Self:
        """The method with its window, or cells per row, set: the default on this type of device.

        cells: what this very device computes cheaply in a pass; a budget's window follows it.
        """
        return self

    def pass_width(self, grid: Grid) -> int:
        """The most slots per sequence that one pass feeds.

        A window that is not set counts with a graphics card's default, the widest.
        """
        raise NotImplementedError

    def scratch(self, grid: Grid) -> int:
        """The cache slots that a tree of candidates needs behind the picture."""
        return 0

    def tuning(self, grid: Grid, device: str) -> str:
        """The method's tuning for this type of device, in words; may be empty."""
        return ""

    def steps(self, state: DecodeState) -> Iterator[Pass]:
        """Decode the cells of `state.region`, and yield an event per pass."""
        raise NotImplementedError


def group_slots(grid: Grid, k: int) -> int:
    """The slots of the widest group: a sampled cell, up to k drafted cells and their row ends."""
    row_ends = grid.row_end * (1 + k // grid.columns)  # most if the sampled cell ends its row
    return min(k + 1 + row_ends, grid.slots)


def make_plan(region: Region, passes: int | None, passes_max: int,
              paper_passes: int | None) -> Plan:
    """A Plan whose AR count covers the same cells: the prefill, and every cell but the last."""
    return Plan(passes, passes_max, paper_passes, region.cells, PAPER_AR_PASSES.get(region.grid))


def require(rules: tuple[tuple[bool, str], ...]) -> None:
    """Raise SSDError with the message of the first rule that fails."""
    for holds, message in rules:
        if not holds:
            raise SSDError(message)


def require_codebook(method: Method, backbone: Backbone) -> None:
    """Raise SSDError if the codec has no codebook in which codes can be compared."""
    codec = getattr(backbone, "picture_codec", None)
    if getattr(codec, "codebook", None) is None:
        raise SSDError(f"method {method.name} compares codes and the picture codec of "
                       f"{backbone.name} has no codebook: use strict or sjd")


# Drafting


def drafting_noise(state: DecodeState, start: int, stop: int, acceptance: str,
                   draft_choice: str = "sample") -> torch.Tensor | None:
    """The noise that samples drafts in slots start..stop-1; None: take the likeliest tokens.

    `coupled` uses the slots' fixed noise, so that a good draft is already AR's token.
    """
    if draft_choice == "argmax":
        return None
    if acceptance == "coupled":
        return state.noise.fixed(start, stop)
    return state.noise.fresh(Purpose.DRAFT, 0, state.noise.slots[start:stop])


def picked(probs: torch.Tensor, noise: torch.Tensor | None) -> torch.Tensor:
    """Tokens [B, n] sampled from probs [B, n, V], or the likeliest ones without noise."""
    return probs.argmax(-1) if noise is None else sample(probs, noise)


def sample_draft(state: DecodeState, start: int, draft_probs: torch.Tensor,
                 acceptance: str = "residual", draft_choice: str = "sample") -> None:
    """Sample tokens from draft_probs [B, n, V] and write them from slot `start` on."""
    stop = start + draft_probs.shape[1]
    noise = drafting_noise(state, start, stop, acceptance, draft_choice)
    state.write(slice(start, stop), picked(draft_probs, noise))


def one_hot(state: DecodeState, tokens: torch.Tensor) -> torch.Tensor:
    """The draft distribution [B, n, V] that gives codes [B, n] probability 1."""
    return F.one_hot(tokens, state.backbone.codes).float()


def horizontal_states(state: DecodeState, slot: int, stop: int) -> torch.Tensor:
    """Estimates of h [N, n, d] for slots slot+1..stop-1, all drafted from `slot` (SSD Eq. 2).

    Head i estimates the i-th cell after it; the last head serves cells behind known ones, too. A
    row end is not a cell: its estimate is never used.
    """
    hidden = state.hidden[:, slot : slot + 1]
    embedding = state.expand_branches(state.backbone.embed(state.tokens[:, slot : slot + 1]))
    cells = (not state.grid.is_row_end(s) for s in range(slot + 1, stop))
    heads = state.draft_heads.horizontal[: stop - slot - 1]
    estimates = [head(hidden, embedding) for head in heads]
    return torch.cat([estimates[min(max(d, 1), len(heads)) - 1] for d in accumulate(cells)], dim=1)


def vertical_states(state: DecodeState, start: int, rows: int) -> torch.Tensor:
    """Estimates of h [N, n, d] for `rows` rows from slot `start` on (SSD Eq. 2).

    Head i estimates the cell i rows below each cell of the row above `start`.
    """
    above = slice(start - state.grid.width, start)
    hidden = state.hidden[:, above]
    embedding = state.expand_branches(state.backbone.embed(state.tokens[:, above]))
    return torch.cat([head(hidden, embedding) for head in state.draft_heads.vertical[:rows]], dim=1)


# Rounds


@dataclass
class Block:
    """Slots under verification, and q [B, stop - start, V] that their tokens were drawn from."""

    start: int
    stop: int
    draft_probs: torch.Tensor
    acceptance: str
    reach: int  # slots drafted at one offset: 1 along the row, a whole row from above

    def part(self, start: int, stop: int) -> Block:
        """A block of the slots start..stop-1."""
        return replace(self, start=start, stop=stop, draft_probs=self.draft_probs[
            :, start - self.start : stop - self.start])

    def verify(self, state: DecodeState, round_: int) -> torch.Tensor:
        """Accept or repair every slot, and set q to p; [B, n] bool: which tokens are unchanged."""
        slots = state.span(self.start, self.stop)
        if self.acceptance == "coupled":
            return state.judge(resample_step, state, slots)
        unchanged, target_probs = state.judge(
            verify_step, state, slots, self.draft_probs,
            state.noise.uniform(Purpose.ACCEPT, round_, slots),
            state.noise.fresh(Purpose.REPAIR, round_, slots))
        self.draft_probs.copy_(target_probs)
        return unchanged


def verify_step(state: DecodeState, slots: Slots, draft_probs: torch.Tensor,
                uniforms: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Capturable: verify slots [B, n] by p/q; unchanged [B, n] bool, and p [B, n, V]."""
    tokens, target_probs = state.codes(slots), state.target_probs(slots)
    repaired = accept.residual(tokens, draft_probs, target_probs, uniforms, noise).tokens
    unchanged = repaired == tokens
    state.write(slots, repaired)
    return unchanged, target_probs


def resample_step(state: DecodeState, slots: Slots) -> torch.Tensor:
    """Capturable: sample slots [B, n] again with their fixed noise; unchanged [B, n] bool."""
    target_probs, noise = state.target_probs(slots), state.noise.fixed_at(slots)
    result = accept.coupled(state.codes(slots), target_probs, noise)
    state.write(slots, result.tokens)
    return result.accepted


def rounds(state: DecodeState, block: Block, numbers: range, stage: str) -> Iterator[Pass]:
    """Run verification rounds over a block: the r of the paper's r + 1 passes.

    Stops early once nothing changes. Slots before the first change in any picture need no commit:
    the pass has just stored the keys, values and hidden states of their final tokens. The next pass
    starts at that change.
    """
    for number in numbers:
        first_fed = state.stale
        state.feed(block.stop)
        unchanged = block.verify(state, number)
        state.stale = block.start + int(unchanged.all(0).long().cumprod(0).sum())
        state.stats.converged = unchanged.all(-1)
        state.stats.add_acceptance(f"{stage}/{number}", unchanged, slice(block.start, block.stop))
        if number == 1:
            state.stats.add_offsets(stage, unchanged, block.stop, block.reach)
        state.clock.lap("verify")
        n_context = block.start - first_fed  # negative if the block's first cells are not stale
        fed = F.pad(unchanged, (n_context, 0), value=True)
        yield state.record_pass(stage, number, first_fed, block.stop, fed, max(0, n_context))
        if state.stale == block.stop:
            return


def commit(state: DecodeState, stop: int) -> Iterator[Pass]:
    """Make keys, values and hidden states before `stop` final: the 1 of the paper's r + 1 passes.

    No pass if they are final already.
    """
    if (start := state.stale) >= stop:
        return
    state.feed(stop)
    state.clock.lap("commit")
    yield state.record_pass("commit", 0, start, stop)


def cells_drafted() -> Any:
    """The knob k_h."""
    return knob(None, "Cells drafted at a time along a row.", low=1, high=LONGEST_SIDE,
                visibility="basic", none_means="the model's own")


def verification_rounds(default: int | None) -> Any:
    """The knob `rounds`."""
    return knob(default, "Verification rounds over what was drafted: more rounds give better "
                         "pictures and take more passes; 0 only drafts.", low=0, visibility="basic",
                none_means="the model's own")


def codes_pooled(default: int) -> Any:
    """The knob `similar`: k of LANTERN and MuLo-SD."""
    return knob(default, "Codes of the codebook, the draft's own and those nearest to it, whose "
                         "probabilities are added up for a draft.", low=1, high=1 << 16)


def variation_bound(default: float) -> Any:
    """The knob `delta` of LANTERN and MuLo-SD."""
    return knob(default, "Most probability that a draft may borrow from similar codes.", low=0,
                high=1, step=0.05)


def drafted_by() -> Any:
    """The knob `drafter`: draft heads, or the row drafter of the same file."""
    return knob("heads", "heads: draft heads, every cell on its own. row: the row drafter, whose "
                         "cells see their neighbours.", choices=("heads", "row"))
