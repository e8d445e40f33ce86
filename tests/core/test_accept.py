"""Acceptance rules against exact enumeration on a toy vocabulary, equation by equation."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssd_core import Sampling
from ssd_core.engine import accept
from ssd_core.model.noise import NoiseField, Purpose
from ssd_core.model.sampling import probabilities, sample

CODES = 5
DRAWS = 200_000
TINY = 1e-4  # fixed seeds: a p-value below this is a fault and never bad luck


def distribution(seed: int, *shape: int, flat: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, CODES, generator=generator) / flat).softmax(-1)


class Draws:
    """n independent positions of a noise field: numbers for drafts, acceptance and repairs."""

    def __init__(self, n: int, seed: int = 1) -> None:
        self.field = NoiseField([seed], n, CODES, torch.device("cpu"))
        self.slots = torch.arange(n)

    def fresh(self, purpose: Purpose) -> torch.Tensor:
        return self.field.fresh(purpose, 1, self.slots)

    def uniform(self) -> torch.Tensor:
        return self.field.uniform(Purpose.ACCEPT, 1, self.slots)


def follows(tokens: torch.Tensor, probs: torch.Tensor) -> float:
    """p-value of the chi-square test that tokens were drawn from probs [V]."""
    counts = torch.bincount(tokens.flatten(), minlength=len(probs)).double()
    possible = probs > 0
    assert counts[~possible].sum() == 0
    expected = probs[possible].double() / probs.double().sum() * counts.sum()
    from scipy import stats

    return stats.chisquare(counts[possible].numpy(), expected.numpy()).pvalue


def residual_outcome(target: torch.Tensor, draft: torch.Tensor, seed: int = 1):
    """One residual round of many independent positions: drafts [n], result tokens, accepted."""
    draws = Draws(DRAWS, seed)
    q, p = draft.expand(1, DRAWS, -1), target.expand(1, DRAWS, -1)
    drafts = sample(q, draws.fresh(Purpose.DRAFT))
    result = accept.residual(drafts, q, p, draws.uniform(), draws.fresh(Purpose.REPAIR))
    return drafts[0], result.tokens[0], result.accepted[0]


def test_choosing_and_drawing_sample_from_the_distribution():
    target, draws = distribution(3), Draws(DRAWS)
    chosen = sample(target.expand(1, DRAWS, -1), draws.field.exponential(
        Purpose.SAMPLE, 1, draws.slots))
    drawn = sample(7 * target.expand(1, DRAWS, -1), draws.fresh(Purpose.DRAFT))
    for tokens in (chosen, drawn):
        assert follows(tokens, target) > TINY
    # the two kinds of numbers are independent of each other
    assert follows(chosen * CODES + drawn, (target[:, None] * target).flatten()) > TINY


def test_residual_keeps_the_marginal_whatever_the_draft():
    for seed in range(4):
        target, draft = distribution(seed), distribution(seed + 100)
        _, tokens, _ = residual_outcome(target, draft, seed)
        assert follows(tokens, target) > TINY
        assert follows(tokens, draft) < TINY  # the test can tell the two apart


def test_equation_4_accepts_with_min_1_p_over_q():
    target, draft = distribution(1), distribution(2)
    drafts, tokens, accepted = residual_outcome(target, draft)
    assert tokens[accepted].equal(drafts[accepted])
    for code in range(CODES):
        judged = accepted[drafts == code].double()
        chance = min(1.0, (target[code] / draft[code]).item())
        spread = (chance * (1 - chance) / len(judged)) ** 0.5
        assert abs(judged.mean().item() - chance) <= 4 * spread


def test_equation_5_repairs_from_the_normalised_residual():
    target, draft = distribution(1), distribution(2)
    _, tokens, accepted = residual_outcome(target, draft)
    residual = (target - draft).clamp(min=0)
    assert 0 < (residual == 0).sum() < CODES
    assert follows(tokens[~accepted], residual) > TINY


def test_residual_keeps_the_marginal_over_two_rounds():
    """q of the second round is the p of the first."""
    first, second, draft = distribution(1), distribution(2), distribution(3)
    draws = Draws(DRAWS)
    q, p1, p2 = (d.expand(1, DRAWS, -1) for d in (draft, first, second))
    tokens = sample(q, draws.fresh(Purpose.DRAFT))
    for round_, (before, now) in enumerate(((q, p1), (p1, p2))):
        uniforms = draws.field.uniform(Purpose.ACCEPT, round_, draws.slots)
        noise = draws.field.fresh(Purpose.REPAIR, round_, draws.slots)
        tokens = accept.residual(tokens, before, now, uniforms, noise).tokens
    assert follows(tokens, second) > TINY


@given(st.integers(0, 10_000), st.integers(0, 2**24 - 1).map(lambda i: i * 2.0**-24))
def test_a_draft_from_the_target_always_stands(seed, uniform):
    target = distribution(seed, 2, 7)
    draws = NoiseField([seed, seed + 1], 9, CODES, torch.device("cpu"))
    tokens = sample(target, draws.fixed(0, 7))
    uniforms = torch.full((2, 7), uniform)
    result = accept.residual(tokens, target, target, uniforms, draws.fixed(0, 7))
    assert result.accepted.all() and result.tokens.equal(tokens)
    free = torch.cat((target, distribution(seed + 1, 2, 1)), dim=1)
    strict, count = accept.strict(tokens, target, free, uniforms, draws.fixed(0, 8))
    assert count.tolist() == [7, 7] and strict[:, :7].equal(tokens)
    assert strict[:, 7].equal(sample(free, draws.fixed(0, 8))[:, 7])


@given(st.integers(0, 10_000), st.integers(1, CODES - 1))
def test_filtered_codes_are_never_chosen(seed, top_k):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(1, 40, CODES, generator=generator)
    target = probabilities(logits, Sampling(top_k=top_k))
    draft = distribution(seed, 1, 40)
    draws = NoiseField([seed], 40, CODES, torch.device("cpu"))
    noise, slots = draws.fixed(0, 40), torch.arange(40)
    drafts = sample(draft, draws.fresh(Purpose.DRAFT, 0, slots))
    uniforms = draws.uniform(Purpose.ACCEPT, 0, slots)
    for tokens in (sample(target, noise), accept.coupled(drafts, target, noise).tokens,
                   accept.residual(drafts, draft, target, uniforms, noise).tokens):
        assert (target.gather(-1, tokens[..., None]) > 0).all()
    tokens, count = accept.strict(drafts[:, 1:], draft[:, 1:], target, uniforms[:, 1:], noise)
    reached = torch.arange(40) <= count[:, None]
    assert (target.gather(-1, tokens[..., None])[..., 0][reached] > 0).all()


@given(st.integers(0, 10_000))
def test_coupled_takes_the_gumbel_maximum_and_then_stays(seed):
    target = distribution(seed, 2, 9)
    noise = NoiseField([seed, seed + 1], 9, CODES, torch.device("cpu")).fixed(0, 9)
    gumbel = -noise.double().log()
    result = accept.coupled(torch.zeros(2, 9, dtype=torch.long), target, noise)
    assert result.tokens.equal((target.double().log() + gumbel).argmax(-1))
    assert result.accepted.equal(result.tokens == 0)
    again = accept.coupled(result.tokens, target, noise)
    assert again.accepted.all() and again.tokens.equal(result.tokens)


def test_residual_falls_back_to_the_target_where_rounding_left_nothing():
    target = distribution(1, 1, 1)
    assert accept.residual_weights(target, target).equal(target)
    assert accept.residual_weights(target + 1e-7, target).equal(target)


# Several drafts for one position


def judged_siblings(target: torch.Tensor, drafts: list[torch.Tensor], seed: int,
                    present: list[bool] | None = None):
    """Tokens [n], number of the accepted draft [n], and the drafts [n, k]."""
    field = NoiseField([seed], DRAWS, CODES, torch.device("cpu"))
    slots = torch.arange(DRAWS)
    tokens = torch.stack([sample(q.expand(1, DRAWS, -1), field.fresh(
        Purpose.DRAFT, i, slots))[0] for i, q in enumerate(drafts)], dim=1)
    uniforms = torch.stack([field.uniform(Purpose.ACCEPT, i, slots)[0]
                            for i in range(len(drafts))], dim=1)
    there = torch.tensor(present or [True] * len(drafts)).expand(DRAWS, -1)
    found, rank = accept.siblings(tokens, torch.stack(drafts).expand(DRAWS, -1, -1),
                                  target.expand(DRAWS, -1), uniforms,
                                  field.fresh(Purpose.REPAIR, 0, slots)[0], there)
    return found, rank, tokens


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 2), min_size=1, max_size=4),
       st.sampled_from([1.0, 2.0]))
def test_siblings_keep_the_marginal_whatever_drafted_them(seed, sources, flat):
    """Repeated sources give repeated tokens; filtered codes have p = 0."""
    target = distribution(seed, flat=flat)
    target[seed % CODES] = 0
    target /= target.sum()
    each = distribution(seed + 1, 3, flat=flat)
    found, rank, tokens = judged_siblings(target, [each[i] for i in sources], seed)
    assert follows(found, target) > TINY / 10
    accepted = rank < len(sources)
    held = tokens.gather(1, rank.clamp(max=len(sources) - 1)[:, None])[:, 0]
    assert found[accepted].equal(held[accepted])


def test_siblings_judged_without_residual_do_not_keep_it():
    """A second draft judged by p itself: the test above can fail."""
    target, draft = distribution(1), distribution(2)
    first, rank, _ = judged_siblings(target, [draft], 1)
    second, again, _ = judged_siblings(target, [draft], 2)
    tokens = torch.where((rank > 0) & (again == 0), second, first)
    assert follows(tokens, target) < TINY


@given(st.integers(0, 1000))
def test_one_sibling_is_strict_and_none_is_sampling(seed):
    target, draft = distribution(seed), distribution(seed + 1)
    draws = NoiseField([seed], 50, CODES, torch.device("cpu"))
    slots = torch.arange(50)
    q, p = draft.expand(50, 1, -1), target.expand(50, -1)
    noise = draws.fresh(Purpose.REPAIR, 0, slots)[0]
    tokens = sample(q[:, 0], draws.fresh(Purpose.DRAFT, 0, slots)[0])[:, None]
    uniforms = draws.uniform(Purpose.ACCEPT, 0, slots)[0][:, None]
    there = torch.ones(50, 1, dtype=torch.bool)
    found, rank = accept.siblings(tokens, q, p, uniforms, noise, there)
    padded = p[:, None].repeat(1, 2, 1)
    strict, count = accept.strict(tokens, q, padded, uniforms, noise[:, None].repeat(1, 2, 1))
    assert found.equal(strict[:, 0]) and rank.equal(1 - count)
    none, rank = accept.siblings(tokens, q, p, uniforms, noise, ~there)
    assert none.equal(sample(p, noise)) and rank.eq(1).all()


def test_absent_siblings_change_nothing():
    target, drafts = distribution(1), [distribution(2), distribution(3)]
    some = judged_siblings(target, [*drafts, distribution(4)], 1, [True, True, False])
    pair = judged_siblings(target, drafts, 1)
    assert some[0].equal(pair[0])
    assert some[1].where(some[1] < 3, torch.tensor(2)).equal(pair[1])


# A Markov chain of three tokens: the target's joint distribution is known, and drafts are wrong


def chain(first: torch.Tensor, step: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """[N, n + 1, V]: the distribution of each token given the one before it in tokens [N, n]."""
    return torch.cat((first.expand(len(tokens), 1, -1), step[tokens]), dim=1)


def strict_sample(n: int):
    """Three tokens [n, 3], the accepted count [n], and the target's joint [V, V, V].

    Two drafts are judged strictly; what was not reached is drawn from the target.
    """
    p0, p = distribution(1), distribution(2, CODES)
    q0, q = distribution(3), distribution(4, CODES)
    field = NoiseField([9], 3 * n, CODES, torch.device("cpu"))
    slots = torch.arange(3 * n)

    def numbers(purpose: Purpose) -> torch.Tensor:
        return field.fresh(purpose, 0, slots).view(n, 3, 1)

    drafting = numbers(Purpose.DRAFT)
    first = sample(q0.expand(n, -1), drafting[:, 0])
    drafts = torch.stack((first, sample(q[first], drafting[:, 1])), dim=1)
    draft_probs = chain(q0, q, drafts[:, :1])
    uniforms = field.uniform(Purpose.ACCEPT, 0, slots).view(n, 3)[:, :2]
    tokens, count = accept.strict(drafts, draft_probs, chain(p0, p, drafts), uniforms,
                                  numbers(Purpose.REPAIR))
    later = field.exponential(Purpose.SAMPLE, 0, slots).view(n, 3, CODES)
    for place in (1, 2):
        fresh = sample(p[tokens[:, place - 1]], later[:, place])
        tokens[:, place] = torch.where(count >= place, tokens[:, place], fresh)
    return tokens, count, p0[:, None, None] * p[:, :, None] * p[None]


def test_strict_has_the_joint_distribution_of_the_target():
    tokens, count, joint = strict_sample(DRAWS // 2)
    index = tokens[:, 0] * CODES**2 + tokens[:, 1] * CODES + tokens[:, 2]
    assert follows(index, joint.flatten()) > TINY
    assert set(count.tolist()) == {0, 1, 2}


def test_residual_does_not_have_the_joint_distribution():
    """Why strict exists, and proof that the test above can fail."""
    p0, p, q0, n = distribution(1), distribution(2, CODES), distribution(3), DRAWS // 2
    draws = Draws(2 * n)
    drafting, repair = (draws.fresh(purpose).view(n, 2, 1)
                        for purpose in (Purpose.DRAFT, Purpose.REPAIR))
    draft_probs = q0.expand(n, 2, -1)
    drafts = sample(draft_probs, drafting)
    target_probs = chain(p0, p, drafts[:, :1])
    tokens = accept.residual(drafts, draft_probs, target_probs, draws.uniform().view(n, 2),
                             repair).tokens
    assert follows(tokens[:, 0] * CODES + tokens[:, 1], (p0[:, None] * p).flatten()) < TINY


@given(st.integers(0, 99))
def test_a_group_of_one_token_is_the_residual_rule(seed):
    draws = Draws(64, seed)
    p, q = distribution(seed, 1, 64), distribution(seed + 100, 1, 64)
    drafts = sample(q, draws.fresh(Purpose.DRAFT))
    rest = drafts, q, p, draws.uniform(), draws.fresh(Purpose.REPAIR)
    alone = torch.zeros(1, 64, 3, dtype=torch.bool)
    alone[..., 1] = True
    group = torch.stack((drafts - 1, drafts, drafts + 1), dim=-1).clamp(0, CODES - 1)
    for mine, other in zip(accept.grouped(*rest, group, alone), accept.residual(*rest),
                           strict=True):
        assert mine.equal(other)


def test_a_group_is_accepted_by_its_sum():
    """p(G) / q(G) = 0.6 / 0.8, where p / q of the draft alone is 0.1 / 0.7."""
    p, q = torch.tensor([0.1, 0.5, 0.4]), torch.tensor([0.7, 0.1, 0.2])
    draws = Draws(DRAWS)
    p, q = p.expand(1, DRAWS, -1), q.expand(1, DRAWS, -1)
    drafts = torch.zeros(1, DRAWS, dtype=torch.long)
    result = accept.grouped(drafts, q, p, draws.uniform(), torch.ones(1, DRAWS, 3),
                             torch.tensor([0, 1]).expand(1, DRAWS, 2),
                             torch.ones(1, DRAWS, 2, dtype=torch.bool))
    assert abs(result.accepted.float().mean().item() - 0.75) < 0.005


@given(st.integers(0, 99), st.floats(0, 1))
def test_pooling_moves_less_than_delta(seed, delta):
    p = distribution(seed, 1, 8)
    similar = torch.stack([torch.randperm(CODES, generator=torch.Generator().manual_seed(i))
                           for i in range(8)])[None]
    own = p.gather(-1, similar[..., :1])[..., 0]
    moved = accept.pooled(p, similar, delta) - own
    assert (moved >= 0).all() and (moved < max(delta, 1e-6)).all()
    assert accept.pooled(p, similar[..., :1], delta).equal(own)
    assert torch.allclose(accept.pooled(p, similar, 2.0), torch.ones(1, 8))


def test_pooling_stops_before_the_first_token_that_is_too_much():
    p = torch.tensor([[[0.1, 0.2, 0.3, 0.4]]])
    similar = torch.tensor([[[0, 1, 2, 3]]])
    for delta, sum_ in ((0.1, 0.1), (0.3, 0.3), (0.51, 0.6), (0.8, 0.6), (0.95, 1.0)):
        assert abs(accept.pooled(p, similar, delta).item() - sum_) < 1e-6
