"""AR and SSD in one page: the same tokens and passes as the engine's, bit for bit, and slower.

The oracle of tests/core/test_plain_ssd.py, and the shortest way to read what SSD does. It draws one
picture on a CPU: no batch, kept cells, edits, graphs or preview. The backbone, its cache, the draft
heads, the noise field, the sampling and the rules of acceptance are the engine's own; the order in
which cells are drafted, verified and committed is written here anew. Equations are those of the
paper "Spatially Speculative Decoding". Its h[y, x] is `hidden[slot]`: the state that predicts a
slot, so the backbone's output one position before it.
"""

from __future__ import annotations

import torch

from ssd_core import Sampling
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.presets import resolve_sampling
from ssd_core.engine import accept
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import SSD
from ssd_core.model.noise import NoiseField, Purpose
from ssd_core.model.sampling import guide, probabilities, sample


class Canvas:
    """A picture in progress: tokens [1, slots], hidden [N, slots + 1, d], a cache, a noise field.

    stale: the first slot whose keys, values and successor's state do not follow from its token.
    """

    def __init__(self, backbone: Backbone, prompt: str, sampling: Sampling) -> None:
        self.backbone, self.sampling = backbone, resolve_sampling(sampling, backbone.preset)
        ids = backbone.tokenize(prompt)
        branches = [ids] if self.sampling.cfg == 1 else [ids, backbone.unconditional(ids)]
        assert len({*map(len, branches)}) == 1, "branches of equal length need no offsets"
        self.grid, self.branches, self.prompt = backbone.grid, len(branches), len(ids)
        slots = self.grid.slots
        self.tokens = torch.zeros(1, slots, dtype=torch.long)
        self.hidden = torch.zeros(self.branches, slots + 1, backbone.hidden_size,
                                  dtype=backbone.dtype)
        self.cache = backbone.new_cache(self.branches, self.prompt + slots)
        self.noise = NoiseField(self.sampling.seeds(1), slots + 1, backbone.codes,
                                torch.device("cpu"))
        self.stale = self.passes = 0
        self.forward(backbone.embed_prompt(torch.tensor(branches)), -self.prompt)

    def forward(self, x: torch.Tensor, first: int) -> None:
        """One pass over slots first .. first + n - 1; the prompt's slots are negative."""
        self.cache.seek(self.prompt + first, x.shape[1])
        h = self.backbone(x, self.cache)
        start = max(first, -1) + 1
        self.hidden[:, start : first + x.shape[1] + 1] = h[:, start - first - 1 :]
        self.passes += 1

    def embedded(self, slots: slice) -> torch.Tensor:
        return self.backbone.embed(self.tokens[:, slots]).repeat(self.branches, 1, 1)

    def feed(self, stop: int) -> None:
        """One pass over all stale slots before `stop`."""
        start, self.stale = self.stale, stop
        self.forward(self.embedded(slice(start, stop)), start)

    def distribution(self, hidden: torch.Tensor) -> torch.Tensor:
        """Eq. 1: p [1, n, V] of states [N, n, d], with guidance, temperature and filters."""
        logits = guide(self.backbone.logits(hidden), self.sampling.cfg)
        return probabilities(logits, self.sampling)

    def choose(self, slot: int) -> None:
        """Sample a slot from its exact state; a row end needs no choice."""
        if self.grid.is_row_end(slot):
            self.tokens[:, slot] = self.backbone.codes
        else:
            p = self.distribution(self.hidden[:, slot : slot + 1])
            self.tokens[:, slot : slot + 1] = sample(p, self.noise.fixed(slot, slot + 1))

    def p(self, slots: slice, hidden: torch.Tensor | None = None) -> torch.Tensor:
        """Eq. 1 for slots; a row end is certain, and stands as code 0."""
        p = self.distribution(self.hidden[:, slots] if hidden is None else hidden)
        for n, slot in enumerate(range(self.grid.slots)[slots]):
            if self.grid.is_row_end(slot):
                p[:, n] = 0
                p[:, n, 0] = 1
        return p

    def codes(self, slots: slice) -> torch.Tensor:
        """Tokens [1, n] with code 0 at row ends."""
        tokens = self.tokens[:, slots].clone()
        return tokens.where(tokens < self.backbone.codes, 0)

    def write(self, slots: slice, tokens: torch.Tensor) -> None:
        self.tokens[:, slots] = tokens
        for slot in range(self.grid.slots)[slots]:
            if self.grid.is_row_end(slot):
                self.tokens[:, slot] = self.backbone.codes

    def draft(self, heads: list, source: slice, slots: slice, coupled: bool) -> torch.Tensor:
        """Eq. 2: drafts from the heads' estimates of h, each over all of `source`. Returns q."""
        h, e = self.hidden[:, source], self.embedded(source)
        estimates = torch.cat([head(h, e) for head in heads], dim=1)
        missing = slots.stop - slots.start - estimates.shape[1]  # a row end, whose q is certain
        if missing > 0:
            estimates = torch.cat([estimates, estimates[:, -1:].expand(-1, missing, -1)], dim=1)
        q = self.p(slots, estimates)
        noise = (self.noise.fixed(slots.start, slots.stop) if coupled else
                 self.noise.fresh(Purpose.DRAFT, 0, self.noise.slots[slots]))
        self.write(slots, sample(q, noise))
        return q

    def judge(self, slots: slice, q: torch.Tensor, number: int, coupled: bool) -> torch.Tensor:
        """Verification as auto correction: keep each token by Eq. 4, or replace it by Eq. 5.

        Afterwards q is p. Returns [n] bool: which tokens are as before.
        """
        before, p = self.codes(slots), self.p(slots)
        if coupled:  # ours: choose again, with the noise that AR chooses by
            after = sample(p, self.noise.fixed(slots.start, slots.stop))
        else:
            after = accept.residual(before, q, p, self.noise.uniform(Purpose.ACCEPT, number, slots),
                                    self.noise.fresh(Purpose.REPAIR, number, slots)).tokens
        self.write(slots, after)
        q.copy_(p)
        return (after == before)[0]

    def rounds(self, slots: slice, q: torch.Tensor, numbers: range, coupled: bool) -> None:
        """The r of the r + 1 passes: all positions at once; over once nothing changes."""
        for number in numbers:
            self.feed(slots.stop)
            same = self.judge(slots, q, number, coupled)
            self.stale = slots.start + int(same.long().cumprod(0).sum())
            if self.stale == slots.stop:
                return

    def commit(self, stop: int) -> None:
        """The 1 of the r + 1 passes, if keys and values before `stop` are not final already."""
        if self.stale < stop:
            self.feed(stop)

    def cells(self, start: int, stop: int) -> int:
        return sum(not self.grid.is_row_end(slot) for slot in range(start, stop))


def ar(canvas: Canvas) -> None:
    for slot in range(canvas.grid.slots):
        if not canvas.grid.is_row_end(slot):
            canvas.choose(slot)
            end = slot + 1 + (canvas.grid.is_row_end(slot + 1))
            canvas.write(slice(slot + 1, end), canvas.tokens[:, slot + 1 : end])
            if end < canvas.grid.slots:
                canvas.feed(end)


def first_row(canvas: Canvas, heads: DraftHeads, ssd: SSD) -> None:
    """Groups of a sampled cell and up to k_h drafted ones, each verified once and committed."""
    width, columns, coupled = canvas.grid.width, canvas.grid.columns, ssd.acceptance == "coupled"
    most = ssd.k_h if coupled and ssd.rounds >= columns else 1
    for begin in range(0, columns, ssd.k_h + 1):
        cells = min(begin + ssd.k_h + 1, columns) - begin - 1
        end = begin + 1 + cells
        end = width if end == columns else end  # a row end rides along
        canvas.choose(begin)
        if end > begin + 1:
            slots = slice(begin + 1, end)
            drafting = heads.horizontal[: max(cells, 1)]
            q = canvas.draft(drafting, slice(begin, begin + 1), slots, coupled)
            canvas.rounds(slots, q, range(1, min(most, cells) + 1), coupled)
        if end < canvas.grid.slots:
            canvas.commit(end)


def ssd(canvas: Canvas, heads: DraftHeads, ssd: SSD) -> None:
    """Row 0, then blocks of k_v rows: r = b joint rounds, and i more for each later row."""
    first_row(canvas, heads, ssd)
    width, total, coupled = canvas.grid.width, canvas.grid.slots, ssd.acceptance == "coupled"
    for start in range(width, total, ssd.k_v * width):
        stop = min(start + ssd.k_v * width, total)
        above = slice(start - width, start)
        q = canvas.draft(heads.vertical[: (stop - start) // width], above, slice(start, stop),
                         coupled)
        canvas.choose(start)  # its state is exact
        most = min(ssd.rounds, canvas.cells(start, stop) - 1)
        canvas.rounds(slice(start + 1, stop), q[:, 1:], range(1, most + 1), coupled)
        for row in range(start + width, stop, width) if ssd.incremental else ():
            canvas.commit(row)
            if canvas.stale >= row + width:
                continue  # its rounds have converged
            own = q[:, row - start : row - start + width]
            if not canvas.judge(slice(row, row + 1), own[:, :1], 0, coupled).all():
                canvas.stale = row
            most = min(ssd.incremental, canvas.cells(row + 1, row + width))
            canvas.rounds(slice(row + 1, row + width), own[:, 1:],
                          range(ssd.rounds + 1, ssd.rounds + most + 1), coupled)
        if stop < total:
            canvas.commit(stop)


@torch.inference_mode()
def drawn(backbone: Backbone, prompt: str, method: SSD | None, heads: DraftHeads | None,
          sampling: Sampling) -> tuple[torch.Tensor, int]:
    """Tokens [R, C], and passes with the prompt's; method: with all knobs set, None for AR."""
    canvas = Canvas(backbone, prompt, sampling)
    if method is None or heads is None:
        ar(canvas)
    else:
        ssd(canvas, heads, method)
    grid = backbone.grid
    return canvas.tokens.view(grid.rows, grid.width)[:, : grid.columns], canvas.passes
