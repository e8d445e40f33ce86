"""From logits to probabilities: guidance, temperature, top-k, top-p, against plain references."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ssd_core import Sampling, SSDError
from ssd_core.backbones.presets import Preset, resolve_sampling
from ssd_core.model.sampling import guide, probabilities, sample, top_p_filter

seeds = st.integers(0, 10_000)


def random_logits(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 2


def plain(logits: list[float], temperature: float, top_k: int, top_p: float,
          min_p: float) -> list[float]:
    """One position in plain Python: temperature, then top-k, then top-p, then min-p."""
    weights = [math.exp(value / temperature) for value in logits]
    order = sorted(range(len(logits)), key=lambda i: -weights[i])
    kept = order[: top_k or None]
    total, mass, nucleus_ = sum(weights[i] for i in kept), 0.0, []
    for i in kept:
        if mass >= top_p:
            break
        nucleus_.append(i)
        mass += weights[i] / total
    nucleus_ = [i for i in nucleus_ if weights[i] >= min_p * weights[order[0]]]
    total = sum(weights[i] for i in nucleus_)
    return [weights[i] / total if i in nucleus_ else 0.0 for i in range(len(logits))]


@given(seeds, st.floats(0.1, 3), st.integers(0, 12), st.floats(0.05, 1), st.floats(0, 1))
def test_filters_follow_the_plain_reference(seed, temperature, top_k, top_p, min_p):
    logits = random_logits(seed, 3, 9)
    probs = probabilities(logits, Sampling(temperature=temperature, top_k=top_k, top_p=top_p,
                                           min_p=min_p))
    for row, expected in zip(probs, logits.tolist(), strict=True):
        reference = torch.tensor(plain(expected, temperature, top_k, top_p, min_p))
        assert torch.allclose(row, reference, atol=2e-6)  # fp32 softmax of logits up to 60
        assert row.gt(0).equal(reference > 1e-30)


@given(seeds, st.floats(1, 20, exclude_min=True))
def test_guidance_formula(seed, cfg):
    logits = random_logits(seed, 4, 3, 7)
    cond, uncond = logits.chunk(2)
    guided = guide(logits, cfg)
    assert guided.shape == (2, 3, 7)
    assert torch.allclose(guided, uncond + cfg * (cond - uncond), rtol=1e-5, atol=1e-4)
    assert guide(logits, 1) is logits


@given(seeds)
def test_off_is_the_plain_softmax(seed):
    logits = random_logits(seed, 2, 9)
    assert probabilities(logits, Sampling()).equal(logits.softmax(-1))
    assert probabilities(logits, Sampling(top_k=9)).equal(logits.softmax(-1))
    assert probabilities(logits, Sampling(top_k=1000)).equal(logits.softmax(-1))


@given(seeds, st.integers(0, 4), st.floats(0.1, 1))
def test_temperature_0_is_certain_of_the_likeliest(seed, top_k, top_p):
    logits = random_logits(seed, 2, 5, 9)
    probs = probabilities(logits, Sampling(temperature=0, top_k=top_k, top_p=top_p))
    assert probs.argmax(-1).equal(logits.argmax(-1))
    assert probs.sum(-1).eq(1).all() and probs.amax(-1).eq(1).all()
    assert sample(probs, torch.rand(probs.shape) + 0.1).equal(logits.argmax(-1))


@given(seeds, st.integers(1, 8))
def test_top_k_keeps_k(seed, top_k):
    assert (probabilities(random_logits(seed, 6, 9), Sampling(top_k=top_k)) > 0).sum(-1).eq(
        top_k).all()


@given(seeds, st.floats(0.05, 0.999))
def test_top_p_keeps_the_fewest_that_reach_it(seed, top_p):
    probs = random_logits(seed, 6, 9).softmax(-1)
    kept = top_p_filter(probs, top_p) > 0
    mass = (probs * kept).sum(-1)
    least = probs.masked_fill(~kept, 2).amin(-1)
    assert (mass > top_p - 1e-5).all() and (mass - least < top_p + 1e-5).all()
    assert (probs.masked_fill(kept, 0).amax(-1) <= least).all()
    assert torch.allclose(top_p_filter(probs, top_p).sum(-1), torch.ones(6))


def test_temperature_comes_before_top_p():
    """A hot distribution is flatter, so more of it is needed for the same mass."""
    logits = torch.tensor([3.0, 2.0, 1.0, 0.0])
    cold, hot = ((probabilities(logits, Sampling(temperature=t, top_p=0.8)) > 0).sum()
                 for t in (0.5, 5.0))
    assert cold < hot


def test_top_k_comes_before_top_p():
    """0.8 of the two that top-k leaves needs both; 0.8 of 0.4 + 0.35 + ... would need three."""
    probs = torch.tensor([0.4, 0.35, 0.25])
    kept = probabilities(probs.log(), Sampling(top_k=2, top_p=0.5)) > 0
    assert kept.tolist() == [True, False, False]
    assert (top_p_filter(probs, 0.5) > 0).tolist() == [True, True, False]


def test_sharpen_multiplies_the_temperature():
    logits = random_logits(1, 4, 9)
    assert torch.allclose(probabilities(logits, Sampling(temperature=2.0), 0.25),
                          (logits / 0.5).softmax(-1))


def test_min_p_1_leaves_only_the_likeliest():
    logits = random_logits(3, 5, 9)
    assert probabilities(logits, Sampling(min_p=1.0)).max(-1).values.eq(1).all()


def test_what_is_not_given_is_the_backbones_own():
    own = Preset(cfg=3.0, min_p=0.1, top_k=7, top_p=0.8)
    assert resolve_sampling(Sampling(seed=4), own) == Sampling(
        seed=4, cfg=3.0, min_p=0.1, temperature=1.0, top_k=7, top_p=0.8)
    given_ = Sampling(cfg=1.0, min_p=0.0, temperature=0.0, top_k=0, top_p=1.0)
    assert resolve_sampling(given_, own) == given_


def test_seeds_of_a_batch_wrap_around():
    assert Sampling(seed=2**64 - 1).seeds(3) == [2**64 - 1, 0, 1]


NAN = float("nan")


@pytest.mark.parametrize("knob, value", [
    ("seed", -2), ("seed", 2**64), ("cfg", 0.5), ("cfg", 101), ("cfg", NAN), ("temperature", -0.1),
    ("temperature", 101), ("temperature", NAN), ("top_k", -1), ("top_p", 0), ("top_p", -1),
    ("top_p", 1.01), ("top_p", NAN), ("min_p", -0.1), ("min_p", 1.01), ("min_p", NAN)])
def test_knobs_out_of_range_are_refused_by_name_in_one_line(knob, value):
    with pytest.raises(SSDError, match=f"^{knob} ") as refused:
        Sampling(**{knob: value})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("knob, value", [
    ("seed", 0), ("seed", 2**64 - 1), ("cfg", 1), ("cfg", 100), ("temperature", 0), ("top_k", 0),
    ("top_p", 1), ("top_p", 1e-6), ("min_p", 0), ("min_p", 1)])
def test_the_ends_of_the_ranges_are_allowed(knob, value):
    assert getattr(Sampling(**{knob: value}), knob) == value


uniforms = st.integers(0, 2**24 - 1).map(lambda i: i * 2.0**-24)


@given(seeds, st.lists(uniforms, min_size=5, max_size=5), st.floats(1e-3, 1e3))
def test_a_uniform_number_chooses_by_the_inverse_of_the_cumulative_distribution(seed, drawn, scale):
    probs = probabilities(random_logits(seed, 5, 9), Sampling(top_k=4))
    tokens = sample(probs * scale, torch.tensor(drawn)[:, None])
    for row, u, token in zip(probs.double(), drawn, tokens.tolist(), strict=True):
        share = row / row.sum()
        assert share[token] > 0
        assert share[:token].sum() - 1e-6 <= u <= share[: token + 1].sum() + 1e-6


@pytest.mark.parametrize("uniform", [0.0, 1 - 2.0**-24])
def test_the_ends_of_the_uniform_range_choose_possible_tokens(uniform):
    weights = torch.tensor([[0, 0, 0.3, 0.1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 2.0]])
    tokens = sample(weights.expand(4, -1, -1), torch.full((4, 3, 1), uniform))
    assert tokens.tolist() == [[2 if uniform == 0 else 3, 0, 4]] * 4


def test_the_smallest_top_p_keeps_the_likeliest_although_float32_rounds_it_to_0():
    probs = probabilities(torch.tensor([[0.1, 2.0, 1.0]]), Sampling(top_p=5e-324))
    assert probs.tolist() == [[0.0, 1.0, 0.0]]
