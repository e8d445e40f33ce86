"""Everything a run changes: tokens, hidden states, the cache, noise and statistics.

All tensors are indexed by image slot (grid.py). `hidden[:, s]` is h of the paper: the state that
*predicts* slot s, which the backbone returns one position earlier. Forced row ends look like tokens
of probability 1, so methods need no special case. Knows nothing about methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
import torch.nn.functional as F

from ..backbones.base import Backbone
from ..model.noise import NoiseField, Slots
from ..model.sampling import Sampling, choose, guide, likeliest, probabilities
from .clock import Stopwatch
from .events import Pass
from .graphs import Eager, PassRunner
from .heads import DraftHeads
from .prefill import followed, predicting
from .run_stats import RunStats
from .sizes import SLOTS, rounded, rounded_cells, rounded_keys


class DecodeState:
    """One batch of B pictures during decoding; `rows` = B, or 2B [cond; uncond] with guidance."""

    def __init__(self, backbone: Backbone, prompts: Sequence[list[int]], pictures: int,
                 sampling: Sampling, heads: DraftHeads | None, scratch: int = 0,
                 run: PassRunner = Eager(), margin: float = 0.0) -> None:  # noqa: B008
        """run: does the work that graphs can replay; the caller closes it. margin: as the function
        in close_calls.py.
        """
        grid, device = backbone.grid, backbone.device
        self.backbone, self.heads, self.grid = backbone, heads, grid
        self.sampling, self.pictures = sampling, pictures
        self.branches, self.slots = len(prompts) // pictures, grid.slots
        self.prompts = prompts
        self.lengths = torch.tensor([len(ids) for ids in prompts], device=device)
        self.offset = len(prompts[0]) if len({len(ids) for ids in prompts}) == 1 else None
        self.clock = Stopwatch(device)
        self.noise = NoiseField(sampling.seeds(pictures), grid.slots + 1, backbone.codes, device,
                                at_once=run.padded)
        self.longest = max(len(ids) for ids in prompts)
        self.run = run
        self.cache = backbone.new_cache(len(prompts), self._cache_slots(scratch))
        if any(hidden := [backbone.hidden_slots(ids) for ids in prompts]):
            self.cache.hide(torch.tensor(hidden, device=device))
        self.tokens = torch.zeros(pictures, grid.slots + 1, dtype=torch.long, device=device)
        self.every_row = torch.arange(len(prompts), device=device)[:, None]
        # one more than slots and the end: surplus cells of a pass leave their state there
        self.hidden = torch.zeros(len(prompts), grid.slots + 2, backbone.hidden_size,
                                  dtype=backbone.dtype, device=device)
        self.coordinates = grid.coordinates.to(device).expand(pictures, -1, -1)
        self.forced = (self.coordinates[0, :, 1] == grid.columns) if grid.row_end else None
        if self.forced is not None:
            self.forced = F.pad(self.forced, (0, 1))
            self.certain = torch.zeros(backbone.codes, device=device)
            self.certain[0] = 1
            self.tokens[:, self.forced] = backbone.codes
        # final: slots before this have their final token in every picture; stale: see `feed`
        self.final, self.stale, self.passes = 0, 0, 0
        self.stats = RunStats(pictures, device, self.forced)
        self.margin = margin
        self.fed: slice | None = None  # the last pass's slots, if all pictures fed the same ones
        self.front: list[int] = []  # with a window: each picture's last final slot, on the host
        self._similar: dict[int, torch.Tensor] = {}  # tables of similar codes by their width

    # Passes

    def prefill(self, kept: torch.Tensor | None, kept_rows: int) -> Pass:
        """Feed the prompts, followed by the tokens [B, R, C] of the kept rows, in one pass."""
        stop = kept_rows * self.grid.width
        if kept is not None:
            picture = self.tokens[:, :-1].unflatten(1, (self.grid.rows, self.grid.width))
            picture[:, :kept_rows, : self.grid.columns] = kept[:, :kept_rows].to(picture)
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in self.prompts], True)
        x = self.backbone.embed_prompt(ids.to(self.lengths.device))
        if stop:
            x = followed(x, self.lengths, self.both(self.backbone.embed(self.tokens[:, :stop])))
        self.cache.seek(0, x.shape[1])
        out = self.backbone(x, self.cache)
        self.hidden[:, : stop + 1] = predicting(out, self.lengths, stop + 1)
        self.final = self.stale = stop
        return self.passed("prefill", 0, 0, stop)

    def _cache_slots(self, scratch: int) -> int:
        """Slots of the cache; where passes have surplus cells, the last one is theirs."""
        needed = self.longest + self.grid.slots + scratch
        if self.run.padded:
            return rounded(needed + 1, SLOTS)
        return needed

    def keys(self, stop: int) -> int:
        """How many cache slots a pass over image slots before `stop` reads."""
        stop += self.longest
        return rounded_keys(stop, self.cache.keys.shape[3]) if self.run.padded else stop

    def _padded(self, slots: torch.Tensor) -> torch.Tensor:
        """Slots [B, n] with surplus cells, -1, up to the size of a pass."""
        n = slots.shape[1]
        size = rounded_cells(n, self.grid.width) if self.run.padded else n
        return F.pad(slots, (0, size - n), value=-1)

    def span(self, start: int, stop: int) -> Slots:
        """Slots start..stop-1 of every picture, in the form that is cheapest for this run."""
        return self.slots_between(start, stop) if self.run.padded else slice(start, stop)

    def slots_between(self, start: int, stop: int) -> torch.Tensor:
        """Slots start..stop-1 of every picture, int64 [B, n]."""
        return self.noise.slots[start:stop].expand(self.pictures, -1)

    def feed(self, stop: int) -> None:
        """Run one forward pass over all stale slots before `stop`.

        `stale` is the first slot whose cached keys and values do not match its current token and
        context. A method that changes a token already fed must move `stale` back to that slot.
        """
        start, self.stale = self.stale, stop
        self.fed = slice(start, stop) if not self.run.padded else None
        if self.offset is None or self.run.padded:
            self.feed_each(self.slots_between(start, stop), stop)
            return
        x = self.both(self.backbone.embed(self.tokens[:, start:stop]))
        self.cache.seek(self.offset + start, stop - start)  # plain slices: a CPU's fastest way
        self.hidden[:, start + 1 : stop + 1] = self.backbone(x, self.cache)

    def feed_at(self, slots: torch.Tensor, starts: list[int] | None = None) -> None:
        """Run one forward pass over consecutive slots [B, n], which may differ per picture.

        starts: each picture's first slot, if the host knows it; otherwise it is read.
        """
        starts = slots[:, 0].tolist() if starts is None else starts
        if self.offset is not None and len(set(starts)) == 1:
            self.stale = starts[0]
            self.feed(self.stale + slots.shape[1])
        else:
            self.fed = None
            self.feed_each(slots, max(starts) + slots.shape[1])

    def behind_fed(self, slots: torch.Tensor) -> Slots:
        """The slots [B, n] that the last pass, over `slots`, predicted: each one further on."""
        if self.fed is None:
            return slots + 1
        return slice(self.fed.start + 1, self.fed.stop + 1)

    def feed_each(self, slots: torch.Tensor, stop: int) -> None:
        """Run one forward pass over slots [B, n] before `stop`, in raster order, with gaps."""
        self.run(self._pass, self._padded(slots), None, self.keys(stop))

    def feed_seeing(self, slots: torch.Tensor, visible: torch.Tensor) -> None:
        """Run one forward pass over any slots [B, n], in any order.

        visible [B, n, m] bool: which of the first m image slots each of them sees, itself included.
        All see their prompt.
        """
        fed, keys, m = self._padded(slots), self.keys(visible.shape[2]), visible.shape[2]
        place = torch.arange(keys, device=slots.device) - self.lengths[:, None]
        index = place.clamp(0, m - 1)[:, None].expand(-1, slots.shape[1], -1)
        seen = visible.repeat(self.branches, 1, 1).gather(2, index) & (place < m)[:, None]
        seen = seen | (place < 0)[:, None]
        surplus = seen[:, :1].expand(-1, fed.shape[1] - slots.shape[1], -1)
        self.run(self._pass, fed, torch.cat((seen, surplus), dim=1), keys)

    def _pass(self, slots: torch.Tensor, seen: torch.Tensor | None, keys: int) -> None:
        """Static: feed slots [B, n] and set the hidden states that they predict.

        A slot of -1 is surplus. It stands where the first one does, but its key, value and hidden
        state go where nothing reads them. seen [rows, n, keys]: as `visible` of the cache.
        """
        real, first = slots >= 0, slots[:, :1]
        tokens = self.tokens.gather(1, torch.where(real, slots, first))
        real, slots, first = (each.repeat(self.branches, 1) for each in (real, slots, first))
        positions = self.lengths[:, None] + torch.where(real, slots, first)
        stored = positions.masked_fill(~real, self.cache.keys.shape[3] - 1)
        out = self.through(tokens, stored, positions, seen, keys)
        self.hidden[self.every_row, slots.masked_fill(~real, self.slots) + 1] = out

    def through(self, tokens: torch.Tensor, slots: torch.Tensor, positions: torch.Tensor,
                seen: torch.Tensor | None, keys: int) -> torch.Tensor:
        """Static: h [rows, n, d] of tokens [B, n] in cache slots [rows, n] at these positions."""
        self.cache.seek_each(slots, keys, seen, positions)
        return self.backbone(self.both(self.backbone.embed(tokens)), self.cache)

    def both(self, x: torch.Tensor) -> torch.Tensor:
        """Repeat what both guidance branches share: [B, ...] -> [rows, ...]."""
        return x if self.branches == 1 else x.repeat(self.branches, 1, 1)

    @property
    def draft_heads(self) -> DraftHeads:
        """The loaded heads. `check_needs` ensures that a method which needs them has them."""
        assert self.heads is not None
        return self.heads

    # Distributions

    def target_probs(self, start: int, stop: int) -> torch.Tensor:
        """p [B, stop - start, V] from the hidden states of the last pass."""
        return self.target_probs_at(self.span(start, stop))

    def target_probs_at(self, slots: Slots) -> torch.Tensor:
        """p [B, n, V] for slots [B, n], which may differ per picture."""
        return self.run(self._target_probs, slots)

    def _target_probs(self, slots: Slots) -> torch.Tensor:
        """Static: `target_probs_at`."""
        return self.probs(self.backbone.logits(self.hidden_at(slots)), slots)

    def chosen_at(self, slots: Slots) -> torch.Tensor:
        """Static: the tokens [B, n] that AR would sample here, with the slots' fixed noise."""
        return choose(self._target_probs(slots), self.noise.choosing_at(slots))

    def chosen_closely(self, slots: Slots) -> tuple[torch.Tensor, torch.Tensor]:
        """Static: `chosen_at`, and which choices [B, n] rounding may have decided: close_calls.py.
        """
        scores = self._target_probs(slots) / self.noise.choosing_at(slots)
        near = scores > scores.amax(-1, keepdim=True) * (1 - self.margin)
        return likeliest(scores), near.sum(-1) > 1

    def embedding_at(self, slots: Slots) -> torch.Tensor:
        """e [rows, n, d] of the tokens in slots [B, n]."""
        return self.both(self.backbone.embed(self._tokens_at(slots)))

    def hidden_at(self, slots: Slots) -> torch.Tensor:
        """h [rows, n, d] for slots [B, n]."""
        if isinstance(slots, slice):
            return self.hidden[:, slots]
        both = slots.repeat(self.branches, 1)[..., None]
        return self.hidden.gather(1, both.expand(-1, -1, self.hidden.shape[2]))

    def draft_probs(self, estimate: torch.Tensor, slots: Slots,
                    temperature: float = 1.0) -> torch.Tensor:
        """q [B, n, V] from estimates [rows, n, d]; `temperature` scales the sampling's own."""
        if isinstance(slots, slice):
            slots = self.span(slots.start, slots.stop)
        return self.run(self._draft_probs, estimate, slots, temperature)

    def _draft_probs(self, estimate: torch.Tensor, slots: Slots,
                     temperature: float) -> torch.Tensor:
        """Static: `draft_probs`."""
        logits = self.draft_heads.space.logits(self.backbone, estimate)
        return self.probs(logits, slots, temperature)

    def probs(self, logits: torch.Tensor, slots: Slots, sharpen: float = 1.0) -> torch.Tensor:
        """Logits [rows, n, V] -> [B, n, V] after guidance and filters; forced slots are code 0."""
        probs = probabilities(guide(logits, self.sampling.cfg), self.sampling, sharpen)
        if self.forced is None:
            return probs
        return torch.where(self.forced[slots][..., None], self.certain, probs)

    @cached_property
    def code_vectors(self) -> torch.Tensor:
        """The codec's codebook [codes, d] in float32, on the device of the tokens."""
        vectors = self.backbone.picture_codec.code_vectors[: self.backbone.codes]
        return vectors.to(self.tokens.device, torch.float32)

    def code_distances(self, codes: torch.Tensor) -> torch.Tensor:
        """Euclidean distances [B, n, V] in the codebook, from codes [B, n] to all codes."""
        return torch.cdist(self.code_vectors[codes], self.code_vectors)

    def similar_codes(self, codes: torch.Tensor, count: int) -> torch.Tensor:
        """[B, n, count] int64: codes [B, n] and the nearest others in the codebook, by distance."""
        if (table := self._similar.get(count)) is None:
            codec, all_ = self.backbone.picture_codec, self.backbone.codes
            table = codec.similar_codes(all_, min(count, all_)).to(codes.device)
            self._similar[count] = table
        return table[codes].long()

    # Tokens

    def write(self, start: int, tokens: torch.Tensor) -> None:
        """Set tokens [B, n] from slot `start` on; forced slots keep their row-end token."""
        self.write_at(slice(start, start + tokens.shape[1]), tokens)

    def write_at(self, slots: Slots, tokens: torch.Tensor) -> None:
        """Set tokens [B, n] in slots; forced slots keep their row-end token."""
        tokens = self.with_row_ends(tokens, slots)
        if isinstance(slots, slice):
            self.tokens[:, slots] = tokens
        else:
            self.tokens.scatter_(1, slots, tokens)

    def codes(self, start: int, stop: int) -> torch.Tensor:
        """Tokens [B, n] for acceptance: a row end is given as code 0, which has probability 1."""
        return self.codes_at(slice(start, stop))

    def codes_at(self, slots: Slots) -> torch.Tensor:
        """The same for a slice, whose result may be a view, or slots [B, n] of each picture."""
        return self._as_codes(self._tokens_at(slots), slots)

    def _tokens_at(self, slots: Slots) -> torch.Tensor:
        return self.tokens[:, slots] if isinstance(slots, slice) else self.tokens.gather(1, slots)

    def with_row_ends(self, tokens: torch.Tensor, slots: Slots) -> torch.Tensor:
        return tokens if self.forced is None else tokens.masked_fill(
            self.forced[slots], self.backbone.codes)

    def _as_codes(self, tokens: torch.Tensor, slots: Slots) -> torch.Tensor:
        return tokens if self.forced is None else tokens.masked_fill(self.forced[slots], 0)

    def choose(self, slot: int) -> None:
        """Sample a slot with the fixed noise, as AR does."""
        self.run(self._choose, self.span(slot, slot + 1))

    def _choose(self, slots: Slots) -> None:
        """Static: `choose` for a slice of slots, or slots [B, n]."""
        self.write_at(slots, self.chosen_at(slots))

    # Bookkeeping

    def passed(self, stage: str, round_: int, start: int, stop: int,
               accepted: torch.Tensor | None = None, refed: int = 0,
               stood: torch.Tensor | None = None) -> Pass:
        """Count a pass over slots start..stop-1; return its event. stood: `accepted` if None."""
        self.passes += 1
        return Pass(self.passes, stage, round_, self.coordinates[:, start:stop],
                    self.tokens[:, start:stop], accepted, refed,
                    accepted if stood is None else stood)

    def passed_at(self, slots: torch.Tensor, accepted: torch.Tensor, stood: torch.Tensor,
                  refed: int = 1) -> Pass:
        """Count a verification pass over slots [B, n] of each picture; return its event.

        accepted, stood [B, n] bool: as in `Pass`; the drafts that stood count as acceptance.
        """
        self.stats.add_acceptance("verify/1", stood[:, refed:], slots[:, refed:])
        self.passes += 1
        cells = self.coordinates[0, slots.clamp(max=self.slots - 1)]
        return Pass(self.passes, "verify", 1, cells, self.tokens.gather(1, slots), accepted, refed,
                    stood)

    def picture(self) -> torch.Tensor:
        """Tokens [B, R, C] int64 without row ends."""
        return self.tokens[:, : self.slots].unflatten(
            1, (self.grid.rows, self.grid.width))[:, :, : self.grid.columns]
