"""The noise field: its laws, its independence, its fixed bits, and that it is the only source."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.mock_backbone import MockBackbone, events, random_heads

from ssd_core import Grid, methods
from ssd_core.model import noise
from ssd_core.model.noise import NoiseField, Purpose

CPU = torch.device("cpu")
MANY = 200_000
TINY = 1e-4  # all seeds are fixed, so a p-value below this is a fault and never bad luck


@pytest.fixture(scope="module", autouse=True)
def scipy_stats():
    """Imported here: it takes a second in every worker that collects this file."""
    global stats
    from scipy import stats


def field(*seeds: int, slots: int = 64, codes: int = 16) -> NoiseField:
    return NoiseField(seeds, slots, codes, CPU)


def exponential(seed: int, purpose: Purpose = Purpose.SAMPLE, round_: int = 0, slots: int = 2000,
         codes: int = 100, first: int = 0) -> torch.Tensor:
    numbers = field(seed, slots=1, codes=codes)
    return numbers.exponential(purpose, round_, torch.arange(first, first + slots))[0]


def uniform(seed: int, purpose: Purpose = Purpose.ACCEPT, round_: int = 0,
            first: int = 0) -> torch.Tensor:
    numbers = field(seed, slots=first + MANY)
    return numbers.uniform(purpose, round_, numbers.slots[first:])[0]


@pytest.mark.parametrize("seed", [0, 7, 2**32, 2**64 - 1])
@pytest.mark.parametrize("purpose", [Purpose.SAMPLE, Purpose.REPAIR])
def test_exponential_numbers_are_exponential(seed, purpose):
    numbers = exponential(seed, purpose).flatten()
    assert (numbers > 0).all() and numbers.isfinite().all()
    assert stats.kstest(numbers.double().numpy(), "expon").pvalue > TINY
    assert abs(numbers.double().mean() - 1) < 4 / MANY**0.5


@pytest.mark.parametrize("seed", [0, 7, 2**32, 2**64 - 1])
@pytest.mark.parametrize("round_", [0, 1, 9])
def test_uniform_is_uniform(seed, round_):
    numbers = uniform(seed, round_=round_)
    assert (numbers >= 0).all() and (numbers < 1).all()
    assert stats.kstest(numbers.double().numpy(), "uniform").pvalue > TINY


def independent(a: torch.Tensor, b: torch.Tensor) -> None:
    """No correlation, and a flat table of 8 x 8 quantiles, for two streams of n numbers."""
    a, b = a.flatten().double(), b.flatten().double()
    assert torch.corrcoef(torch.stack((a, b)))[0, 1].abs() < 4 / len(a) ** 0.5
    ranks = [x.argsort().argsort() * 8 // len(x) for x in (a, b)]
    table = torch.bincount(ranks[0] * 8 + ranks[1], minlength=64)
    assert stats.chisquare(table.numpy()).pvalue > TINY


@pytest.mark.parametrize("other", [1, 2, 2**16, 2**31, 2**32, 2**33, 2**63, 2**32 + 1])
@pytest.mark.by_day(4)
def test_seeds_are_independent(other):
    independent(exponential(0), exponential(other))
    independent(uniform(0), uniform(other))
    independent(exponential(5), exponential(5 + other))


def test_purposes_are_independent():
    streams = [exponential(3, purpose) for purpose in Purpose]
    for i, stream in enumerate(streams):
        for later in streams[i + 1:]:
            independent(stream, later)


def test_rounds_are_independent():
    for later in (1, 2, 3, 100):
        independent(exponential(3, Purpose.REPAIR, 0), exponential(3, Purpose.REPAIR, later))
        independent(uniform(3), uniform(3, round_=later))


def test_slots_and_codes_are_independent():
    numbers = exponential(11)
    for step in (1, 2, 24):
        independent(numbers[:-step], numbers[step:])
        independent(numbers[:, :-step], numbers[:, step:])
        independent(uniform(11)[:-step], uniform(11)[step:])


def test_accepting_is_independent_of_drafting_and_repairing():
    accept = uniform(4)[:2000]
    for purpose in (Purpose.DRAFT, Purpose.REPAIR, Purpose.SAMPLE):
        independent(accept.repeat_interleave(100), exponential(4, purpose))


def test_seed_and_slot_are_no_substitutes_for_each_other():
    """Picture a's slot b against picture b's slot a: keys that share a word."""
    size, codes = 64, 32
    grid = field(*range(size), slots=size, codes=codes).held
    swapped = grid.transpose(0, 1)
    upper = torch.ones(size, size).triu(1).bool()
    independent(grid[upper], swapped[upper])
    choices = (grid.argmin(-1) == swapped.argmin(-1))[upper].double().mean().item()
    spread = (1 / codes * (1 - 1 / codes) / upper.sum().item()) ** 0.5
    assert abs(choices - 1 / codes) < 4 * spread


def shared_slots(a: NoiseField, b: NoiseField) -> int:
    """How many slots of one field some slot of the other repeats, code by code."""
    rows = [set(map(tuple, one.exponential(Purpose.SAMPLE, 0, one.slots)[0].tolist()))
            for one in (a, b)]
    return len(rows[0] & rows[1])


@given(st.integers(0, 2**64 - 1), st.integers(1, 63))
def test_no_seed_has_the_field_of_another_with_its_slots_permuted(seed, d):
    twin = seed ^ d * (2**32 + 1)
    assert shared_slots(field(seed), field(twin)) == 0
    unmixed, other = field(seed), field(twin)
    for one, seed_ in ((unmixed, seed), (other, twin)):  # the check sees what mixing prevents
        words = [[noise._signed(seed_ & noise._WORD), noise._signed(seed_ >> 32)]]
        one.seeds = torch.tensor(words, dtype=torch.int32)
        one.strides = torch.ones(2, dtype=torch.int32)
    assert shared_slots(unmixed, other) == 64


@given(st.integers(0, 2**64 - 1), st.integers(1, 63))
def test_blended_words_that_differ_alike_share_no_slot_either(seed, d):
    one, twin = field(seed), field(seed)
    twin.seeds ^= d
    assert shared_slots(one, twin) == 0


@given(st.lists(st.integers(0, 2**64 - 1), unique=True, min_size=2, max_size=50))
def test_blending_keeps_seeds_apart(seeds):
    words = field(*seeds, slots=1, codes=1).seeds
    assert len(set(map(tuple, words.tolist()))) == len(seeds)


@given(st.integers(0, 2**64 - 1), st.integers(0, 63))
def test_one_changed_bit_of_the_seed_changes_the_field(seed, bit):
    a, b = field(seed, slots=4, codes=8).held, field(seed ^ 1 << bit, slots=4, codes=8).held
    assert (a != b).float().mean() > 0.9


@given(st.integers(0, 2**64 - 4))
def test_row_of_a_batch_is_the_field_of_its_seed(seed):
    batch, slots = field(seed, seed + 1, seed + 3), torch.tensor([[1, 5], [9, 2], [0, 63]])
    for row, solo in enumerate((field(seed), field(seed + 1), field(seed + 3))):
        assert batch.held[row].equal(solo.held[0])
        at = slots[row : row + 1]
        assert batch.fixed_at(slots)[row].equal(solo.fixed_at(at)[0])
        for draw in ("exponential", "uniform"):
            both = [getattr(f, draw)(Purpose.ACCEPT, 2, s) for f, s in ((batch, slots), (solo, at))]
            assert both[0][row].equal(both[1][0])


@pytest.mark.parametrize("held_numbers", [0, 1 << 25])
def test_the_fixed_field_is_the_same_held_or_not(held_numbers, monkeypatch):
    monkeypatch.setattr(noise, "CACHED_NUMBERS", held_numbers)
    numbers = field(3, 2**40)
    assert (numbers.held is None) == (held_numbers == 0)
    slots = torch.arange(10, 30)
    expected = numbers.exponential(Purpose.SAMPLE, 0, slots)
    assert numbers.fixed(10, 30).equal(expected)
    assert numbers.fixed_at(slots.expand(2, -1)).equal(expected)
    other = torch.stack((slots, slots + 7))
    assert numbers.fixed_at(other)[1].equal(numbers.fixed(17, 37)[1])


def test_extent_does_not_change_a_number():
    small, large = field(5, slots=3, codes=4), field(5, slots=50, codes=4000)
    assert small.held[0].equal(large.held[0, :3, :4])


@given(st.integers(0, 700), st.integers(0, 2**64 - 1), st.integers(1, 2000))
def test_a_uniform_number_does_not_depend_on_how_many_are_computed_at_once(round_, seed, slots):
    """The larger field holds fewer rounds at a time; whatever was asked for before leaves no mark.
    """
    small, large = field(seed, slots=7), field(5, seed, slots=40_000)
    large.uniform(Purpose.DRAFT, round_ + 9, large.slots[:3])
    few = torch.arange(7)
    expected = small.uniform(Purpose.DRAFT, round_, few)[0]
    assert large.uniform(Purpose.DRAFT, round_, few)[1].equal(expected)
    behind = small.uniform(Purpose.DRAFT, round_, torch.tensor([6, 6 + slots]))[0]
    assert behind[0] == behind[1] == expected[6]


# Written down from a second implementation in whole Python numbers.
MIXED = [0, 1753845952, 1734902346]
UNIFORM = [[8613562, 6614587], [10396708, 7340522]]
CHOOSING = [0.31568731, 0.06871910, 0.23050622, 6.44288556, 0.31421147, 0.20339175, 1.68392647,
            0.21226958]
REPAIR = [6323550 / 2**24, 8956810 / 2**24]


def test_fixed_bits():
    """Saved recipes rest on these numbers: a change here redraws every old picture."""
    assert noise.mix(torch.tensor([0, 1, -1], dtype=torch.int32)).tolist() == MIXED
    numbers = field(7, 2**64 - 1, slots=600, codes=512)
    uniforms = numbers.uniform(Purpose.ACCEPT, 1, torch.tensor([0, 575])) * 2**24
    assert uniforms.tolist() == UNIFORM
    found = numbers.held[:, [0, 575]][:, :, [0, 511]].flatten()
    assert torch.allclose(found, torch.tensor(CHOOSING), rtol=1e-6, atol=0)
    repair = numbers.fresh(Purpose.REPAIR, 3, torch.tensor([24]))[:, 0, 0]
    assert torch.allclose(repair, torch.tensor(REPAIR), rtol=1e-6, atol=0)


@pytest.mark.parametrize("method", [methods.AR(), methods.SSD(k_h=3), methods.Strict(k_h=3),
                                    methods.Exact()], ids=lambda m: m.name)
def test_a_run_leaves_torch_and_its_generator_alone(method):
    backbone = MockBackbone(Grid(3, 4))
    heads = random_heads(backbone)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = events(backbone, method, heads=heads)[-1].tokens
    assert torch.get_rng_state().equal(before)
    torch.manual_seed(2)
    assert events(backbone, method, heads=heads)[-1].tokens.equal(first)
