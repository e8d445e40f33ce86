"""The noise field: every random number of a picture, addressed instead of drawn.

A number depends only on (image seed, purpose, round, slot, code), never on the batch, the order of
passes or the device. The field returns exponential variates E, because argmax(p / E) is a sample
from p (the exponential race; the same sample as argmax(log p + Gumbel)). It uses only integer
operations, table look-ups and single multiplications, so the bits agree on every device.

The race samples the tokens of a picture, with one number per code: two similar distributions then
mostly give the same token, and coupled methods depend on this. Drafts and repairs need no such
coupling, so one uniform number U per slot is enough for them (`fresh`).

In a variation a share of the cells draws from the noise of another seed. Which cells does not
depend on any noise that draws, so every variation is a fair sample. A cell that changes lets all
after it change, in raster order; so the new ones are rare at the top, and the rarer the smaller the
share is. What a smaller share changes, a larger one with the same seed does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import torch

from .grid import Grid
from .sampling import Sampling

STRENGTHS = {"subtle": 0.03, "medium": 0.15, "strong": 0.5}  # shares of the cells
CHANCES = 1 << 24  # a chance is a multiple of 1 / CHANCES
VERSION = 1  # stored in recipes, because another field would draw other pictures
TABLE_BITS = 16
CACHED_NUMBERS = 1 << 25  # a picture's field up to this size is computed once and cached
FEW_SLOTS = 128  # slots computed on request; after these the whole field is computed
SLAB_NUMBERS = 1 << 18  # computed at a time, because computing takes several times their memory
UNIFORMS_AT_ONCE = 1 << 20  # limits the rounds whose uniform numbers are computed together
MOST_ROUNDS = 64
_WORD = 0xFFFFFFFF


Slots = slice | torch.Tensor  # a slice for every picture, or slots [B, n] of each picture


@dataclass(frozen=True)
class Variation:
    """seeds: of the other noise, one per picture. chances: of every slot, out of CHANCES."""

    seeds: Sequence[int]
    chances: Sequence[int]

    @classmethod
    def of(cls, sampling: Sampling, grid: Grid, pictures: int) -> Variation | None:
        """None for no variation."""
        if not sampling.variation:
            return None
        return cls(sampling.variation_seeds(pictures), chances(grid, sampling.variation))


def chances(grid: Grid, share: float) -> list[int]:
    """The chance of each slot to draw from the other noise; `share` on average, all of 1."""
    return [round(share * (share + (1 - share) * (2 * (slot // grid.width) + 1) / grid.rows)
                  * CHANCES) for slot in range(grid.slots)]


class Purpose(IntEnum):
    """What a number is used for. Numbers for different purposes are independent."""

    SAMPLE = 0
    DRAFT = 1
    ACCEPT = 2
    REPAIR = 3
    PLACE = 4  # of a variation: which slots draw from the other seed's field


def _signed(word: int) -> int:
    """The int32 that has the bits of a 32-bit word."""
    return word - (1 << 32) if word >= 1 << 31 else word


def mix(x: torch.Tensor) -> torch.Tensor:
    """Scatter every bit of int32 `x`, in place; a bijection (Wellons' lowbias32)."""
    x ^= (x >> 16) & 0xFFFF
    x *= _signed(0x7FEB352D)
    x ^= (x >> 15) & 0x1FFFF
    x *= _signed(0x846CA68B)
    x ^= (x >> 16) & 0xFFFF
    return x


def mix_words(words: torch.Tensor) -> torch.Tensor:
    """Make both words of int32 [B, 2] depend on each other, in place; a bijection.

    Otherwise seeds that differ by a multiple of 2^32 + 1 would give one field with its slots
    permuted.
    """
    low, high = words.unbind(-1)
    low ^= mix(high + _signed(0x9E3779B9))
    high ^= mix(low + _signed(0x85EBCA77))
    return words


def varied_cells(grid: Grid, seed: int, share: float) -> torch.Tensor:
    """bool [R, C]: the cells that the variation `seed` of this share draws anew."""
    field = NoiseField([seed], grid.slots, 1, torch.device("cpu"))
    return field.varied(chances(grid, share))[0].view(grid.rows, grid.width)[:, : grid.columns]


def seed_words(seeds: Sequence[int], device: torch.device) -> torch.Tensor:
    """int32 [B, 2]: both words of each seed, mixed."""
    words = [[_signed(seed & _WORD), _signed(seed >> 32 & _WORD)] for seed in seeds]
    return mix_words(torch.tensor(words, dtype=torch.int32, device=device))


@cache
def exponential_table() -> torch.Tensor:
    """float32 [2^16 + 1]: -log(1 - i / 2^16); the last entry is set from the mean of the tail.

    All fields share it.
    """
    v = torch.arange((1 << TABLE_BITS) + 1, dtype=torch.float64) / (1 << TABLE_BITS)
    table = -torch.log1p(-v)
    table[-1] = table[-2] + 2.0
    return table.float()


class NoiseField:
    """The random numbers of a batch: one seed per picture, `slots` x `codes` numbers each."""

    def __init__(self, seeds: Sequence[int], slots: int, codes: int, device: torch.device,
                 at_once: bool = False, variation: Variation | None = None,
                 first: int = 0) -> None:
        """at_once: compute the whole field now, because captured graphs need it in memory.

        first: the number of slot 0, so that two grids of one picture have numbers of their own.
        """
        self.device, self.codes, self.first, self.at_once = device, codes, first, at_once
        self.seeds = torch.empty(len(seeds), 2, dtype=torch.int32, device=device)
        self.places: torch.Tensor | None = None  # seeds [B, slots, 2] of each slot
        self.strides = torch.tensor([1, _signed(0x85EBCA6B)], dtype=torch.int32, device=device)
        self.code_words = torch.arange(codes, dtype=torch.int32, device=device)
        self.code_words *= _signed(0x9E3779B1)
        self.table = exponential_table().to(device)
        self.steps = self.table[1:] - self.table[:-1]
        self.slots = torch.arange(slots, device=device)
        self.purposes = torch.tensor([[4 * p, 4 * p + 2] for p in Purpose], dtype=torch.int32,
                                     device=device)
        count = UNIFORMS_AT_ONCE // (len(seeds) * slots)
        self.rounds = torch.arange(min(max(count, 1), MOST_ROUNDS), device=device).int()
        self._uniforms: dict[Purpose, tuple[int, torch.Tensor]] = {}
        self._cached: torch.Tensor | None = None
        self._small = slots * codes <= CACHED_NUMBERS
        self.begin(seeds, variation)

    def begin(self, seeds: Sequence[int], variation: Variation | None) -> None:
        """The numbers of as many other seeds, in the same memory, where graphs read them."""
        self.seeds.copy_(seed_words(seeds, self.device))
        self._uniforms.clear()
        self._on_request = FEW_SLOTS  # how many slots are still computed on request
        large = self.at_once and not self._small  # then graphs compute it, with or without places
        if variation is not None or self.places is not None or large:
            self._place(variation)
        if self._cached is not None:
            self._fill(self._cached)
        elif self.at_once:
            self.hold()

    def _place(self, variation: Variation | None) -> None:
        """Let some slots draw from the fields of other seeds, for every purpose."""
        places = self.seeds[:, None].repeat(1, len(self.slots), 1)
        if variation is not None:
            other = NoiseField(variation.seeds, len(self.slots), 1, self.device, first=self.first)
            anew = other.varied(variation.chances)[..., None]
            places = torch.where(anew, other.seeds[:, None], places)
        self.places = places if self.places is None else self.places.copy_(places)

    def varied(self, chances: Sequence[int]) -> torch.Tensor:
        """bool [B, slots]: slots drawn by lot; chances: of the first slots, out of CHANCES."""
        share = torch.zeros(len(self.slots), device=self.device)
        share[: len(chances)] = torch.tensor(chances, device=self.device) / CHANCES
        return self.uniform(Purpose.PLACE, 0, slice(0, len(self.slots))) < share

    @property
    def held(self) -> torch.Tensor | None:
        """E [B, slots, codes] of all slots, for sampling tokens; None if that is too large."""
        self.hold()
        return self._cached

    def hold(self) -> None:
        """Compute the whole field now, for methods that sample every cell with it."""
        if self._cached is None and self._small:
            self._cached = self._fill(torch.empty(len(self.seeds), len(self.slots), self.codes,
                                                  device=self.device))

    def _fill(self, whole: torch.Tensor) -> torch.Tensor:
        """Write E [B, slots, codes] of all slots, for sampling tokens."""
        step = max(SLAB_NUMBERS // (len(self.seeds) * self.codes), 1)
        for first in range(0, len(self.slots), step):
            part = self.slots[first : first + step]
            whole[:, first : first + step] = self.exponential(Purpose.SAMPLE, 0, part)
        return whole

    def fixed(self, start: int, stop: int) -> torch.Tensor:
        """E [B, stop - start, codes] of the fixed field that samples tokens."""
        return self.fixed_at(slice(start, stop))

    def fixed_at(self, slots: Slots) -> torch.Tensor:
        """`fixed` for a slice of slots, or for slots [B, n], which may differ per picture."""
        cached = self._cached if self._on_request > 0 else self.held
        count = slots.stop - slots.start if isinstance(slots, slice) else slots.shape[1]
        self._on_request -= count
        if isinstance(slots, slice):
            if cached is not None:
                return cached[:, slots]
            slots = self.slots[slots]
        if cached is not None:
            return cached.gather(1, slots[..., None].expand(-1, -1, self.codes))
        return self.exponential(Purpose.SAMPLE, 0, slots)

    def fresh(self, purpose: Purpose, round_: int, slots: Slots) -> torch.Tensor:
        """The noise U [B, n, 1] with which `sample` samples drafts or repairs."""
        return self.uniform(purpose, round_, slots)[..., None]

    def exponential(self, purpose: Purpose, round_: int, slots: torch.Tensor) -> torch.Tensor:
        """E float32 [B, n, codes], exponential with mean 1, for slots [n] or [B, n] int64."""
        keys = self._keys(purpose, self.rounds[:1] + round_, slots)[:, 0]
        return self._exponential(mix(keys[..., :1] ^ self.code_words).add_(keys[..., 1:]))

    def uniform(self, purpose: Purpose, round_: int, slots: Slots) -> torch.Tensor:
        """U float32 [B, n] in [0, 1) in steps of 2^-24, for a slice, or slots [n] or [B, n] int64.

        Slots after the field's last slot get the numbers of the last slot.
        """
        block, index = divmod(round_, len(self.rounds))
        cached = self._uniforms.get(purpose)
        if cached is None or cached[0] != block:
            cached = block, self._uniform(purpose, self.rounds + block * len(self.rounds))
            self._uniforms[purpose] = cached
        numbers = cached[1][:, index]
        if isinstance(slots, slice):
            return numbers[:, slots]
        return numbers.gather(1, slots.clamp(max=len(self.slots) - 1).expand(len(self.seeds), -1))

    def _uniform(self, purpose: Purpose, rounds: torch.Tensor) -> torch.Tensor:
        """U [B, r, slots] of rounds [r] int32."""
        keys = self._keys(purpose, rounds, self.slots)
        word = mix(mix(keys[..., 0] ^ keys[..., 1]).add_(1))
        return (word >> 8 & 0xFFFFFF).float() * 2.0**-24

    def _keys(self, purpose: Purpose, rounds: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """int32 [B, r, n, 2]: two words for each (seed, purpose, round, slot)."""
        slots = slots.expand(len(self.seeds), -1)
        numbers = slots + self.first if self.first else slots
        key = mix(numbers.int()[..., None] * self.strides ^ self._seeds_at(slots))[:, None]
        key = key + _signed(0x9E3779B9) * (1 + rounds)[:, None, None]
        return mix(key.add_(self.purposes[purpose]))

    def _seeds_at(self, slots: torch.Tensor) -> torch.Tensor:
        """int32 [B, n or 1, 2]: the seeds of slots [B, n]."""
        if self.places is None:
            return self.seeds[:, None]
        index = slots.clamp(max=len(self.slots) - 1)[..., None]
        return self.places.gather(1, index.expand(-1, -1, 2))

    def _exponential(self, word: torch.Tensor) -> torch.Tensor:
        """32 random bits -> E: the high half selects a table entry; the low half interpolates."""
        word = mix(word)
        index = (word >> 16).bitwise_and_(0xFFFF).flatten()
        between = word.bitwise_and_(0xFFFF).float().add_(0.5).mul_(2.0**-16).flatten()
        low = self.table.index_select(0, index)
        return self.steps.index_select(0, index).mul_(between).add_(low).view(word.shape)
