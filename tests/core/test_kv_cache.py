"""The oracle: after any sequence of passes the cache answers as a forward without a cache would."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import randomise

from ssd_core.model.transformer import Decoder, DecoderShape, sequence_angles

SLOTS, ROWS, HIDDEN = 10, 2, 16
ANGLES = sequence_angles(SLOTS, 8)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # fp32, hidden states of order 1


def decoder(rotary: str = "split") -> Decoder:
    made = Decoder(DecoderShape(2, HIDDEN, 4, 2, 8, 24, rotary=rotary))
    randomise(made, 5, 0.25)
    return made.requires_grad_(False)


DECODER = decoder()


def embeddings(generator: torch.Generator, n: int) -> torch.Tensor:
    return torch.randn(ROWS, n, HIDDEN, generator=generator)


class Rehearsal:
    """A cache under test, and the embeddings that every row's slots hold now."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.cache = DECODER.new_cache(ROWS, SLOTS)
        self.held = torch.zeros(ROWS, SLOTS, HIDDEN)
        self.valid = [0] * ROWS  # slots before this have been fed in their present context

    def feed(self, starts: list[int], n: int, per_row: bool) -> None:
        """Feed n slots from each row's own start and compare with the plain forward."""
        x = embeddings(self.generator, n)
        slots = torch.tensor(starts)[:, None] + torch.arange(n)
        if per_row:
            self.cache.seek_each(slots, int(slots.max()) + 1)
            out = DECODER(x, ANGLES[slots], self.cache)
        else:
            self.cache.seek(starts[0], n)
            out = DECODER(x, ANGLES[starts[0] : starts[0] + n], self.cache)
        for row, start in enumerate(starts):
            self.held[row, start : start + n] = x[row]
            self.valid[row] = start + n
            whole = self.held[row : row + 1, : start + n]
            expected = DECODER(whole, ANGLES[: start + n])[0, start:]
            assert torch.allclose(out[row], expected, **CLOSE)


def drawn_start(data: st.DataObject, valid: int, n: int) -> int:
    return data.draw(st.integers(0, min(valid, SLOTS - n)))


@given(st.data(), st.integers(0, 1000))
def test_any_sequence_of_passes_equals_a_forward_without_cache(data, seed):
    rehearsal = Rehearsal(seed)
    for _ in range(data.draw(st.integers(1, 7))):
        n = data.draw(st.integers(1, 5))
        per_row = data.draw(st.booleans())
        starts = [drawn_start(data, valid, n) for valid in rehearsal.valid]
        if not per_row:
            starts = [min(starts)] * ROWS
        rehearsal.feed(starts, n, per_row)


@given(st.integers(0, 1000), st.integers(1, SLOTS))
def test_one_slot_at_a_time_equals_all_at_once(seed, n):
    x = embeddings(torch.Generator().manual_seed(seed), n)
    one, all_ = DECODER.new_cache(ROWS, SLOTS), DECODER.new_cache(ROWS, SLOTS)
    singles = []
    for slot in range(n):
        one.seek(slot, 1)
        singles.append(DECODER(x[:, slot : slot + 1], ANGLES[slot : slot + 1], one))
    all_.seek(0, n)
    assert torch.allclose(torch.cat(singles, 1), DECODER(x, ANGLES[:n], all_), **CLOSE)
    assert torch.allclose(one.keys, all_.keys, **CLOSE)
    assert torch.allclose(one.values, all_.values, **CLOSE)


def test_rows_of_their_own_equal_common_slots_where_they_agree():
    generator = torch.Generator().manual_seed(3)
    common, own = DECODER.new_cache(ROWS, SLOTS), DECODER.new_cache(ROWS, SLOTS)
    for start, n in ((0, 4), (4, 3), (2, 5), (7, 1)):
        x, slots = embeddings(generator, n), torch.arange(start, start + n)
        common.seek(start, n)
        own.seek_each(slots.expand(ROWS, -1), start + n)
        assert torch.allclose(DECODER(x, ANGLES[slots], common),
                              DECODER(x, ANGLES[slots].expand(ROWS, -1, -1), own), **CLOSE)


def test_a_first_pass_needs_no_mask_and_equals_one_that_has_it():
    """Bit by bit; hidden slots need the mask."""
    x = embeddings(torch.Generator().manual_seed(4), 6)
    first, masked = DECODER.new_cache(ROWS, SLOTS), DECODER.new_cache(ROWS, SLOTS)
    first.seek(0, 6)
    masked.seek_each(torch.arange(6).expand(ROWS, -1), 6)
    assert first.causal and first.mask is None
    assert not masked.causal and masked.mask.shape == (ROWS, 1, 2 * 6, 6)
    assert DECODER(x, ANGLES[:6], first).equal(DECODER(x, ANGLES[:6], masked))
    first.seek(6, 2)
    assert not first.causal and first.mask.shape == (1, 1, 2 * 2, 8)
    first.hide(torch.tensor([0, 3]))
    first.seek(0, 6)
    assert not first.causal and first.mask.shape == (ROWS, 1, 2 * 6, 6)


def test_a_visibility_does_not_reveal_hidden_slots():
    x = embeddings(torch.Generator().manual_seed(6), 6)
    slots, outs = torch.arange(6).expand(ROWS, -1), []
    for visible in (None, torch.ones(ROWS, 6, 6, dtype=torch.bool).tril()):
        cache = DECODER.new_cache(ROWS, SLOTS)
        cache.hide(torch.tensor([0, 3]))
        cache.seek_each(slots, 6, visible)
        outs.append(DECODER(x, ANGLES[slots], cache))
    assert outs[0].equal(outs[1])


def test_buffers_are_allocated_once():
    cache = DECODER.new_cache(ROWS, SLOTS)
    addresses = cache.keys.data_ptr(), cache.values.data_ptr()
    generator = torch.Generator().manual_seed(0)
    for start, n in ((0, 6), (6, 1), (3, 4), (0, SLOTS)):
        x = embeddings(generator, n)
        cache.seek(start, n)
        DECODER(x, ANGLES[start : start + n], cache)
        keys, _ = cache.update(0, torch.zeros(ROWS, 2 * 2, n, 8))
        assert keys.data_ptr() == addresses[0]  # a view: nothing is copied to be read
    assert (cache.keys.data_ptr(), cache.values.data_ptr()) == addresses
    assert cache.nbytes == 2 * 4 * 2 * ROWS * 2 * SLOTS * 8


@pytest.mark.parametrize("n", [1, 3])
@torch.no_grad()
def test_a_pass_is_one_graph_for_compilers(n):
    """Nothing is compiled by default."""
    import torch._dynamo  # takes seconds

    made, compiled = decoder().half(), decoder().half()
    compiled.compile(fullgraph=True, backend="eager")
    x, outs = embeddings(torch.Generator().manual_seed(7), 4 + n).half(), []
    for model in (made, compiled):
        cache, slots = made.new_cache(ROWS, SLOTS), torch.arange(4, 4 + n)
        cache.seek(0, 4)
        made(x[:, :4], ANGLES[:4], cache)
        cache.seek_each(slots.expand(ROWS, -1), SLOTS)
        outs.append((model(x[:, 4:], ANGLES[slots], cache), cache.keys, cache.values))
    torch._dynamo.reset()
    for plain, traced in zip(*outs, strict=True):
        assert traced.equal(plain) and plain.isfinite().all()


def test_slots_behind_the_query_do_not_matter():
    """Stale keys and values after a roll-back are never seen."""
    generator = torch.Generator().manual_seed(1)
    x = embeddings(generator, 4)
    clean, dirty = DECODER.new_cache(ROWS, SLOTS), DECODER.new_cache(ROWS, SLOTS)
    dirty.keys.fill_(50.0)
    dirty.values.fill_(50.0)
    for cache in (clean, dirty):
        cache.seek(0, 4)
    assert DECODER(x, ANGLES[:4], clean).equal(DECODER(x, ANGLES[:4], dirty))


@pytest.mark.parametrize("rotary", ["split", "interleaved", "none"])
def test_visibility_makes_a_tree_of_two_branches(rotary):
    """Slots 0-3 are the trunk; 4 and 5 both continue it at position 4 without seeing each other."""
    model = decoder(rotary)
    angles = None if rotary == "none" else ANGLES

    def turned(positions):
        return None if angles is None else angles[positions]

    x = embeddings(torch.Generator().manual_seed(2), 6)
    cache = model.new_cache(ROWS, SLOTS)
    cache.seek(0, 4)
    model(x[:, :4], turned(slice(0, 4)), cache)
    visible = torch.zeros(ROWS, 2, SLOTS, dtype=torch.bool)
    visible[:, :, :4] = True
    visible[:, 0, 4] = visible[:, 1, 5] = True
    cache.seek_each(torch.tensor([[4, 5]]).expand(ROWS, -1), SLOTS, visible)
    out = model(x[:, 4:], turned([4, 4]), cache)
    for branch in (0, 1):
        path = torch.cat((x[:, :4], x[:, 4 + branch : 5 + branch]), dim=1)
        expected = model(path, turned(slice(0, 5)))[:, -1]
        assert torch.allclose(out[:, branch], expected, **CLOSE)
