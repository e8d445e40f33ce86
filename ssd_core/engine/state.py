"""The state of a run: tokens, hidden states, the cache, noise and statistics.

All tensors are indexed by image slot (grid.py). `hidden[:, s]` is h of the paper: the state that
*predicts* slot s, which the backbone returns one position earlier. Forced row ends and known cells
look like tokens of probability 1, so methods need no special case. Knows nothing about methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.nn.functional as F

from ..backbones.base import Backbone
from ..model.knobs import derived
from ..model.near_ties import sample_with_ties
from ..model.noise import NoiseField, Slots, Variation
from ..model.sampling import Sampling, guide, probabilities, sample
from .events import Pass
from .graphs import KEYS, EagerRunner, PassRunner, rounded, rounded_cells, rounded_keys
from .heads import DraftHeads
from .region import KnownCells, Region, by_slot, cells_on
from .run_statistics import RunCounters, Stopwatch

if TYPE_CHECKING:
    from .edits.rule import Rule

T = TypeVar("T")
BY_SEQUENCE = ("branches", "prompts", "lengths", "hidden", "seq_index", "cache", "offset")


@dataclass(frozen=True)
class PictureSlots:
    """A slot of each picture: int64 [B] on the run's device, and the same on the host."""

    device: torch.Tensor
    host: list[int]

    @classmethod
    def read(cls, device: torch.Tensor) -> PictureSlots:
        """Waits for the device."""
        return cls(device, device.tolist())

    def plus(self, count: int) -> PictureSlots:
        return PictureSlots(self.device + count, [slot + count for slot in self.host])

    def at_most(self, slot: int) -> PictureSlots:
        return PictureSlots(self.device.clamp(max=slot), [min(own, slot) for own in self.host])

    def at_least(self, other: PictureSlots) -> PictureSlots:
        return PictureSlots(torch.maximum(self.device, other.device),
                        list(map(max, self.host, other.host)))


class DecodeState:
    """A batch of B pictures; N = B sequences, or 2B [cond; uncond] with guidance.

    An edit has B more for each object that it holds: the words without it.
    """

    def __init__(self, backbone: Backbone, prompts: Sequence[list[int]], pictures: int,
                 sampling: Sampling, heads: DraftHeads | None, scratch: int = 0,
                 run: PassRunner = EagerRunner(), margin: float = 0.0,  # noqa: B008
                 region: Region | None = None, keep: torch.Tensor | None = None,
                 parent: torch.Tensor | None = None, rule: Rule | None = None) -> None:
        """scratch: cache slots behind the picture. run: calls capturable functions; the caller
        closes it. margin: the result of `repeat_near_ties.margin`. region: the cells to draw, by
        default all; keep: tokens [B, R, C], needed where others are known. parent: tokens [B, R,
        C] for first guesses. rule: of an edit, which begins with its parent's tokens.
        """
        grid, device = backbone.grid, backbone.device
        self.backbone, self.heads, self.grid = backbone, heads, grid
        self.pictures, self.branches, self.slots = pictures, len(prompts) // pictures, grid.slots
        self.run, self.scratch = run, scratch
        self.lengths = torch.zeros(len(prompts), dtype=torch.long, device=device)
        self.noise = NoiseField(sampling.seeds(pictures), grid.slots + 1, backbone.codes, device,
                                run.padded, Variation.of(sampling, grid, pictures),
                                backbone.first_slot)
        self.cache = backbone.new_cache(len(prompts), self._cache_slots(prompts))
        self.cache.prompts = self.lengths[:, None]
        self.tokens = torch.zeros(pictures, grid.slots + 1, dtype=torch.long, device=device)
        self.seq_index = torch.arange(len(prompts), device=device)[:, None]
        # slots, the end, and one more, where the surplus cells of a pass write their state
        self.hidden = torch.zeros(len(prompts), grid.slots + 2, backbone.hidden_size,
                                  dtype=backbone.dtype, device=device)
        self.coordinates = grid.coordinates.to(device).expand(pictures, -1, -1)
        self.row_end_mask = (self.coordinates[0, :, 1] == grid.columns) if grid.row_end else None
        if self.row_end_mask is not None:
            self.row_end_mask = F.pad(self.row_end_mask, (0, 1))
            self.row_end_probs = torch.zeros(backbone.codes, device=device)
            self.row_end_probs[0] = 1
        self.codebook = Codebook(backbone, device)
        self.region = region or Region.below(grid, 0)
        self.known_cells: KnownCells | None = None
        self._begin(prompts, sampling, margin)
        self.parent = None if parent is None else by_slot(grid, parent.to(device))
        if keep is not None:
            self._pin(keep)
        self.rule = rule
        if rule is not None:
            self.write(slice(0, grid.slots), rule.parent[:, :-1])

    def again(self, prompts: Sequence[list[int]], sampling: Sampling, margin: float) -> None:
        """Fill the buffers for other pictures of the same shape, where graphs read them.

        `takes` tells whether the prompts fit. Not for runs with known cells, a parent or a rule.
        """
        self.noise.begin(sampling.seeds(self.pictures),
                         Variation.of(sampling, self.grid, self.pictures))
        self._clear()
        self.tokens.zero_()
        self._begin(prompts, sampling, margin)

    def _begin(self, prompts: Sequence[list[int]], sampling: Sampling, margin: float) -> None:
        """Set what depends on the prompts and the sampling, and begin at the first slot."""
        device = self.tokens.device
        self.prompts, self.sampling, self.margin = prompts, sampling, margin
        self.guidance = 1 if sampling.cfg == 1 else 2  # branches that are guided into one
        self.lengths.copy_(torch.tensor([len(ids) for ids in prompts]))
        self.offset = common_length(prompts)
        self.max_prompt = max(len(ids) for ids in prompts)
        if any(hidden := [self.backbone.masked_prompt_slots(ids) for ids in prompts]):
            self.cache.hide(torch.tensor(hidden, device=device))
        if self.row_end_mask is not None:
            self.tokens[:, self.row_end_mask] = self.backbone.codes
        # final: slots before this have their final token in every picture; stale: see `feed`
        self.final, self.stale, self.passes = 0, 0, 0
        self.fed_as_ar = 0  # what is cached of slots before this has the bits of AR's passes
        self.stats = RunCounters(self.pictures, device, self.row_end_mask)
        self.clock = Stopwatch(device)
        self.fed: slice | None = None  # the last pass's slots, if they are the same in all pictures
        self.frontier = PictureSlots(self.lengths[:0], [])  # with a window: the last final slots
        self._conditions = derived(sampling, seed=0, variation_seed=0, variation=0.0), margin

    def prepare(self, cells: int) -> None:
        """Capture the widest pass before all others, so that theirs fit into its memory."""
        if not 0 < cells < self.slots:
            return
        for start in (self.slots - cells, 0):  # captured with one input, checked with another
            self.feed_each(self.slots_between(start, start + cells), self.slots)
        self._clear()

    def _clear(self) -> None:
        for buffer in (self.cache.keys, self.cache.values, self.hidden):
            buffer.zero_()

    def takes(self, prompts: Sequence[list[int]]) -> bool:
        """Whether prompts of these lengths fit the cache."""
        return self._cache_slots(prompts) <= self.cache.keys.shape[3]

    @property
    def nbytes(self) -> int:
        """Memory of the large buffers."""
        noise = self.noise.held
        return self.cache.nbytes + self.hidden.nbytes + (0 if noise is None else noise.nbytes)

    def _pin(self, keep: torch.Tensor) -> None:
        """Write the known tokens; mark them unless they all lie before the first masked cell."""
        region, codes = self.region, by_slot(self.grid, keep.to(self.tokens.device))
        known = region.known.to(codes.device)
        if self.row_end_mask is not None:
            known = known & ~self.row_end_mask[:-1]
        self.tokens[:, :-1] = torch.where(known, codes[:, :-1], self.tokens[:, :-1])
        if not region.by_rows:
            self.coordinates = self.coordinates.clone()  # events show known cells as row ends
            self.coordinates[..., 1].masked_fill_(known, self.grid.columns)
        if region.scattered:
            self.known_cells = KnownCells(region, codes.expand(self.pictures, -1),
                                          self.row_end_mask)
            self.stats = RunCounters(self.pictures, codes.device, self.known_cells.known)

    def judge(self, fn: Callable[..., T], *args: Any) -> T:
        """Call a capturable function whose graph depends on the sampling, but on no seed."""
        return self.run(fn, *args, conditions=self._conditions)

    # Passes

    def prefill(self, fed: int | None = None) -> Pass:
        """Feed the prompts and the slots before `fed`, by default the known ones at the start.

        Where a cell's bits do not depend on the width of a pass, these have a pass of their own,
        after the prompts as in the run that drew them: its rest then comes out as before.
        """
        stop = self.region.first
        fed = stop if fed is None else fed
        behind = 0 if self.backbone.batch_invariant else fed  # cells in the prompts' pass
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in self.prompts], True)
        x = self.backbone.embed_prompt(ids.to(self.lengths.device))
        if behind:
            tokens = self.expand_branches(self.backbone.embed(self.tokens[:, :fed]))
            x = followed(x, self.lengths, tokens)
        self.cache.seek(0, x.shape[1])
        out = self.backbone(x, self.cache)
        self.hidden[:, : behind + 1] = predicting(out, self.lengths, behind + 1)
        if behind < fed:
            self.feed(fed)
        self.final = self.stale = stop
        return self.record_pass("prefill", 0, 0, stop)

    def _cache_slots(self, prompts: Sequence[list[int]]) -> int:
        """The number of cache slots; with padded passes, surplus cells write to the last slot."""
        needed = max(map(len, prompts)) + self.grid.slots + self.scratch
        return rounded(needed + 1, KEYS) if self.run.padded else needed

    def keys(self, stop: int) -> int:
        """The number of cache slots that a pass over image slots before `stop` reads."""
        stop += self.max_prompt
        return rounded_keys(stop, self.cache.keys.shape[3]) if self.run.padded else stop

    def _padded(self, slots: torch.Tensor) -> torch.Tensor:
        """Pad slots [B, n] with surplus cells, -1, to the size of a pass."""
        n = slots.shape[1]
        size = rounded_cells(n, self.grid.width) if self.run.padded else n
        return F.pad(slots, (0, size - n), value=-1)

    def span(self, start: int, stop: int) -> Slots:
        """Slots start..stop-1 of every picture, in the cheapest form for this run."""
        return self._fitted(slice(start, stop))

    def _fitted(self, slots: Slots) -> Slots:
        """Slots as graphs and passes of rounded sizes take them: never a slice."""
        if isinstance(slots, slice) and self.run.padded:
            return self.slots_between(slots.start, slots.stop)
        return slots

    def slots_between(self, start: int, stop: int) -> torch.Tensor:
        """Slots start..stop-1 of every picture, int64 [B, n]."""
        return self.noise.slots[start:stop].expand(self.pictures, -1)

    def feed(self, stop: int) -> None:
        """Run one forward pass over all stale slots before `stop`.

        `stale` is the first slot whose cached keys and values do not match its current token and
        context. A method that changes a token already fed must move `stale` back to that slot.
        """
        start, self.stale = self.stale, stop
        self.fed_as_ar = min(self.fed_as_ar, start)
        self.fed = slice(start, stop) if not self.run.padded else None
        if self.offset is None or self.run.padded:
            self.feed_each(self.slots_between(start, stop), stop)
            return
        x = self.expand_branches(self.backbone.embed(self.tokens[:, start:stop]))
        self.cache.seek(self.offset + start, stop - start)  # plain slices: a CPU's fastest way
        self.hidden[:, start + 1 : stop + 1] = self.backbone(x, self.cache)

    def feed_at(self, slots: torch.Tensor, starts: list[int] | None = None) -> None:
        """Run one forward pass over consecutive slots [B, n], which may differ per picture.

        starts: each picture's first slot, if the host knows it; otherwise read from the device.
        """
        starts = slots[:, 0].tolist() if starts is None else starts
        if self.offset is not None and len(set(starts)) == 1:
            self.stale = starts[0]
            self.feed(self.stale + slots.shape[1])
        else:
            self.fed, self.fed_as_ar = None, min(self.fed_as_ar, *starts)
            self.feed_each(slots, max(starts) + slots.shape[1])

    def predicted_slots(self, slots: torch.Tensor) -> Slots:
        """The slots [B, n] that the last pass, over `slots`, predicted: `slots` plus 1."""
        if self.fed is None:
            return slots + 1
        return slice(self.fed.start + 1, self.fed.stop + 1)

    def feed_each(self, slots: torch.Tensor, stop: int) -> None:
        """Run one forward pass over slots [B, n] before `stop`, in raster order, with gaps."""
        self.run(self._pass, self._padded(slots), None, self.keys(stop))

    def feed_seeing(self, slots: torch.Tensor, visible: torch.Tensor) -> None:
        """Run one forward pass over any slots [B, n], in any order.

        visible [B, n, m] bool: which of the first m image slots each fed slot sees, including
        itself. All see their prompt.
        """
        fed, keys, m = self._padded(slots), self.keys(visible.shape[2]), visible.shape[2]
        image_slot = torch.arange(keys, device=slots.device) - self.lengths[:, None]
        index = image_slot.clamp(0, m - 1)[:, None].expand(-1, slots.shape[1], -1)
        seen = visible.repeat(self.branches, 1, 1).gather(2, index) & (image_slot < m)[:, None]
        seen = seen | (image_slot < 0)[:, None]
        surplus = seen[:, :1].expand(-1, fed.shape[1] - slots.shape[1], -1)
        self.run(self._pass, fed, torch.cat((seen, surplus), dim=1), keys)

    def _pass(self, slots: torch.Tensor, seen: torch.Tensor | None, keys: int) -> None:
        """Capturable: feed slots [B, n] and set the hidden states that they predict.

        A slot of -1 is surplus: it repeats the first slot, but its key, value and hidden state go
        where nothing reads them. seen [N, n, keys]: `visible` of `KVCache.seek_each`.
        """
        surplus = slots < 0
        tokens = self.tokens.gather(1, torch.where(surplus, slots[:, :1], slots))
        surplus, slots = (each.repeat(self.branches, 1) for each in (surplus, slots))
        positions = self.lengths[:, None] + torch.where(surplus, slots[:, :1], slots)
        stored = positions.masked_fill(surplus, self.cache.keys.shape[3] - 1)
        out = self.through(tokens, stored, positions, seen, keys)
        self.hidden[self.seq_index, slots.masked_fill(surplus, self.slots) + 1] = out

    def through(self, tokens: torch.Tensor, slots: torch.Tensor, positions: torch.Tensor,
                seen: torch.Tensor | None, keys: int) -> torch.Tensor:
        """Capturable: h [N, n, d] of tokens [B, n] in cache slots [N, n] at these positions."""
        self.cache.seek_each(slots, keys, seen, positions)
        h = self.backbone(self.expand_branches(self.backbone.embed(tokens)), self.cache)
        self.cache.seek(0, 0)  # a graph's tensors must not outlive its capture
        return h

    def expand_branches(self, x: torch.Tensor) -> torch.Tensor:
        """Repeat a tensor for both guidance branches: [B, ...] -> [N, ...]."""
        return x if self.branches == 1 else x.repeat(self.branches, 1, 1)

    @contextmanager
    def only(self, first: int, last: int) -> Iterator[None]:
        """Let passes feed branches first..last-1 alone; the others keep what they have."""
        whole = {name: getattr(self, name) for name in BY_SEQUENCE}
        rows = slice(first * self.pictures, last * self.pictures)
        self.branches, self.prompts = last - first, self.prompts[rows]
        self.lengths, self.hidden = self.lengths[rows], self.hidden[rows]
        self.seq_index = self.seq_index[: len(self.prompts)]
        self.cache = self.cache.of_sequences(rows.start, rows.stop)
        self.offset = common_length(self.prompts)
        try:
            yield
        finally:
            vars(self).update(whole)

    @property
    def draft_heads(self) -> DraftHeads:
        """The loaded heads; `check_needs` ensures that methods which need heads have them."""
        assert self.heads is not None
        return self.heads

    # Distributions

    def target_probs(self, slots: Slots) -> torch.Tensor:
        """p [B, n, V] of a slice of slots, or of slots [B, n], from their current hidden states."""
        return self.judge(self._target_probs, self._fitted(slots))

    def _target_probs(self, slots: Slots) -> torch.Tensor:
        """Capturable: `target_probs`."""
        return self.probs(self.backbone.logits(self.hidden_at(slots)), slots)

    def sampled_at(self, slots: Slots) -> torch.Tensor:
        """Capturable: the tokens [B, n] that AR would sample (SSD Eq. 1), with the slots' noise."""
        if self.rule is not None:
            return self.rule.sampled(self, slots)
        return sample(self._target_probs(slots), self.noise.fixed_at(slots))

    def sampled_or_kept(self, slots: Slots, share: torch.Tensor) -> torch.Tensor:
        """Capturable: tokens [B, n]. A slot's token stays if its probability is at least `share`
        [B, n] of that of the sample; otherwise it is `sampled_at`.
        """
        probs, current = self._target_probs(slots), self.codes(slots)
        sampled = sample(probs, self.noise.fixed_at(slots))
        p_current, p_sampled = (probs.gather(-1, each[..., None])[..., 0]
                                for each in (current, sampled))
        return torch.where(p_current >= share * p_sampled, current, sampled)

    def sampled_with_ties(self, slots: Slots) -> tuple[torch.Tensor, torch.Tensor]:
        """Capturable: `sampled_at`, and which samples [B, n] rounding may decide (near_ties.py)."""
        if self.rule is not None:
            return self.rule.sampled_with_ties(self, slots)
        logits = self.backbone.logits(self.hidden_at(slots))
        sampled, ties = sample_with_ties(guide(logits, self.sampling.cfg),
                                         self.probs(logits, slots),
                                         self.noise.fixed_at(slots), self.sampling, self.margin)
        known = self.stats.known_at(slots)
        return sampled, ties if known is None else ties & ~known

    def embedding_at(self, slots: Slots) -> torch.Tensor:
        """e [N, n, d] of the tokens in slots [B, n]."""
        return self.expand_branches(self.backbone.embed(at(self.tokens, slots)))

    def hidden_at(self, slots: Slots) -> torch.Tensor:
        """h [N, n, d] for slots [B, n]."""
        if isinstance(slots, slice):
            return self.hidden[:, slots]
        index = slots.repeat(self.branches, 1)[..., None]
        return self.hidden.gather(1, index.expand(-1, -1, self.hidden.shape[2]))

    def draft_probs(self, estimate: torch.Tensor, slots: Slots,
                    temperature: float = 1.0) -> torch.Tensor:
        """q [B, n, V] from estimates [N, n, d]; `temperature` multiplies the sampling's own."""
        return self.judge(self._draft_probs, estimate, self._fitted(slots), temperature)

    def _draft_probs(self, estimate: torch.Tensor, slots: Slots,
                     temperature: float) -> torch.Tensor:
        """Capturable: `draft_probs`."""
        logits = self.draft_heads.space.logits(self.backbone, estimate)
        return self.probs(logits, slots, temperature)

    def probs(self, logits: torch.Tensor, slots: Slots,
              temperature_scale: float = 1.0) -> torch.Tensor:
        """Logits [N, n, V] -> [B, n, V] after guidance and filters.

        Known tokens have probability 1; row ends count as code 0.
        """
        logits = guide(logits[: self.guidance * self.pictures], self.sampling.cfg)
        probs = probabilities(logits, self.sampling, temperature_scale)
        if self.known_cells is not None:
            codes = at(self.known_cells.codes, slots)[..., None]
            one_hot = torch.zeros_like(probs).scatter_(-1, codes, 1.0)
            return torch.where(at(self.known_cells.known, slots)[..., None], one_hot, probs)
        if self.row_end_mask is None:
            return probs
        return torch.where(self.row_end_mask[slots][..., None], self.row_end_probs, probs)

    # Tokens

    def write(self, slots: Slots, tokens: torch.Tensor) -> None:
        """Set tokens [B, n] in slots; row ends and known cells keep theirs."""
        tokens = self.with_known(tokens, slots)
        if isinstance(slots, slice):
            self.tokens[:, slots] = tokens
        else:
            self.tokens.scatter_(1, slots, tokens)

    def codes(self, slots: Slots) -> torch.Tensor:
        """Tokens [B, n] for acceptance; a row end counts as code 0, which has probability 1.

        Of a slice it is a view where possible.
        """
        return self._at_row_ends(at(self.tokens, slots), slots, 0)

    def with_known(self, tokens: torch.Tensor, slots: Slots) -> torch.Tensor:
        """Tokens [B, n] of slots, with the known tokens at row ends and known cells."""
        if self.known_cells is not None:
            codes = at(self.known_cells.codes, slots)
            tokens = torch.where(at(self.known_cells.known, slots), codes, tokens)
        return self._at_row_ends(tokens, slots, self.backbone.codes)

    def cells_on(self, slots: torch.Tensor, count: int) -> torch.Tensor:
        """The slots [B] of the `count`-th masked cells after slots [B]; behind the picture if none.
        """
        if self.known_cells is not None:
            return self.known_cells.cells_on(slots, count)
        return cells_on(self.grid, slots, count)

    def _at_row_ends(self, tokens: torch.Tensor, slots: Slots, code: int) -> torch.Tensor:
        if self.row_end_mask is None:
            return tokens
        return tokens.masked_fill(self.row_end_mask[slots], code)

    def sample(self, slot: int) -> None:
        """Sample a slot with its fixed noise, as AR does."""
        self.judge(self.sample_at, self.span(slot, slot + 1))

    def sample_at(self, slots: Slots) -> None:
        """Capturable: `sample` for a slice of slots, or slots [B, n]."""
        self.write(slots, self.sampled_at(slots))

    # Bookkeeping

    def reach(self, frontier: torch.Tensor) -> None:
        """Set each picture's last final slot, int64 [B]: a pass's only wait for the device."""
        self.frontier = PictureSlots.read(frontier)
        self.final = min(self.frontier.host) + 1

    def record_pass(self, stage: str, round_: int, start: int, stop: int,
                    accepted: torch.Tensor | None = None, n_context: int = 0,
                    unchanged: torch.Tensor | None = None) -> Pass:
        """Count a pass over slots start..stop-1 and return its event.

        unchanged: as `unchanged` in `Pass`; by default `accepted`.
        """
        self.passes += 1
        return Pass(self.passes, stage, round_, self.coordinates[:, start:stop],
                    self.tokens[:, start:stop], accepted, n_context,
                    accepted if unchanged is None else unchanged)

    def record_pass_at(self, slots: torch.Tensor, accepted: torch.Tensor, unchanged: torch.Tensor,
                       n_context: int = 1) -> Pass:
        """Count a verification pass over slots [B, n] of each picture and return its event.

        accepted [B, n] bool: as in `Pass`. unchanged [B, n] bool: as `unchanged` in `Pass`; the
        statistics count it as acceptance.
        """
        self.stats.add_acceptance("verify/1", unchanged[:, n_context:], slots[:, n_context:])
        self.passes += 1
        cells = self.coordinates[self.seq_index[: self.pictures], slots.clamp(max=self.slots - 1)]
        return Pass(self.passes, "verify", 1, cells, self.tokens.gather(1, slots), accepted,
                    n_context, unchanged)

    def picture(self) -> torch.Tensor:
        """Tokens [B, R, C] int64 without row ends."""
        return self.tokens[:, : self.slots].unflatten(
            1, (self.grid.rows, self.grid.width))[:, :, : self.grid.columns]


def common_length(prompts: Sequence[list[int]]) -> int | None:
    """The length of all prompts; None if they differ."""
    lengths = {len(ids) for ids in prompts}
    return lengths.pop() if len(lengths) == 1 else None


def at(table: torch.Tensor, slots: Slots) -> torch.Tensor:
    """The entries [B, n] of a table [B, slots + 1], for a slice or for slots [B, n]."""
    return table[:, slots] if isinstance(slots, slice) else table.gather(1, slots)


class Codebook:
    """The codes of a backbone, on the device of a run; tables are made when they are asked for."""

    def __init__(self, backbone: Backbone, device: torch.device) -> None:
        self.backbone, self.device = backbone, device
        self._similar: dict[int, torch.Tensor] = {}  # by the width of the table

    @cached_property
    def vectors(self) -> torch.Tensor:
        """[codes, d] float32."""
        vectors = self.backbone.picture_codec.code_vectors[: self.backbone.codes]
        return vectors.to(self.device, torch.float32)

    def distances(self, codes: torch.Tensor) -> torch.Tensor:
        """Euclidean distances [..., V] from codes [...] to all codes."""
        return torch.cdist(self.vectors[codes], self.vectors)

    def similar(self, codes: torch.Tensor, count: int) -> torch.Tensor:
        """[B, n, count] int64: codes [B, n] and the nearest others, by distance."""
        if (table := self._similar.get(count)) is None:
            codec, all_ = self.backbone.picture_codec, self.backbone.codes
            table = codec.similar_codes(all_, min(count, all_)).to(codes.device)
            self._similar[count] = table
        return table[codes].long()


# Inputs and outputs of the prefill, for prompts of different lengths followed by kept tokens


def followed(prompt: torch.Tensor, lengths: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Insert token embeddings [N, n, d] right after each prompt; [N, P + n, d], padded.

    lengths: [N] int64, the lengths of the prompts in prompt [N, P, d].
    """
    n = tokens.shape[1]
    x = F.pad(prompt, (0, 0, 0, n))
    index = lengths[:, None] + torch.arange(n, device=x.device)
    x[torch.arange(len(x), device=x.device)[:, None], index] = tokens.to(x.dtype)  # autocast
    return x


def predicting(out: torch.Tensor, lengths: torch.Tensor, count: int) -> torch.Tensor:
    """h [N, count, d] of the first image slots, from the prefill's hidden states [N, n, d]."""
    source = (lengths - 1)[:, None] + torch.arange(count, device=out.device)
    return out.gather(1, source[..., None].expand(-1, -1, out.shape[2]))
