"""Frechet's distance: its closed form, its laws, and that it tells good postcards from bad ones."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ssd_core import SSDError
from ssd_lab.postcards import postcard
from ssd_lab.train import classifier
from ssd_lab.train.data import HELD_OUT
from ssd_lab.train.features import frechet_distance, load_classifier, moments, square_root

NUMBER = st.floats(-3, 3)


def gaussian(seed: int, size: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return moments(torch.randn(50, size, generator=generator, dtype=torch.float64))


@given(st.lists(NUMBER, min_size=3, max_size=3), st.lists(st.floats(0, 4), min_size=3, max_size=3),
       st.lists(st.floats(0, 4), min_size=3, max_size=3))
def test_between_axis_aligned_gaussians_it_is_the_written_sum(shift, spread, other_spread):
    a = torch.zeros(3, dtype=torch.float64), torch.tensor(spread, dtype=torch.float64).diag()
    b = torch.tensor(shift, dtype=torch.float64), torch.tensor(other_spread).double().diag()
    expected = sum(m**2 + (s**0.5 - o**0.5) ** 2
                   for m, s, o in zip(shift, spread, other_spread, strict=True))
    assert frechet_distance(a, b) == pytest.approx(expected, abs=1e-5)


@given(st.integers(0, 99), st.integers(0, 99))
def test_it_is_a_distance(seed, other):
    a, b = gaussian(seed), gaussian(other)
    assert frechet_distance(a, a) == pytest.approx(0, abs=1e-9)
    assert frechet_distance(a, b) == pytest.approx(frechet_distance(b, a), abs=1e-9)
    assert frechet_distance(a, b) >= -1e-9


def test_the_root_squares_back():
    _, covariance = gaussian(3)
    root = square_root(covariance)
    assert torch.allclose(root @ root, covariance)


@pytest.fixture(scope="module")
def real() -> torch.Tensor:
    return torch.from_numpy(np.stack([postcard(HELD_OUT + 7000 + i)[0] for i in range(48)]))


def test_real_postcards_are_nearest_and_the_error_shrinks_with_their_number(real):
    net = load_classifier()
    good = net.distance(net.features_of(real))
    noise = torch.randint(0, 80, real.shape, generator=torch.Generator().manual_seed(0))
    speckled = net.distance(net.features_of((real + noise).clamp(max=255).byte()))
    bland = net.distance(net.features_of(real[:1].expand_as(real)))
    assert good["frechet"] < speckled["frechet"] and good["frechet"] < bland["frechet"]
    few = net.distance(net.features_of(real[:8]))
    assert good["frechet_se"] < few["frechet_se"]


def test_the_stage_trains_and_its_file_loads(tmp_path):
    result = classifier.train(classifier.ClassifierRecipe(
        tmp_path, steps=3, pictures=8, batch=4, held_out=4, reference=6))
    assert 0 <= result["fields_told"] <= 1
    net = load_classifier(tmp_path / "classifier.safetensors")
    assert net.covariance.abs().sum() > 0 and not net.training
    with pytest.raises(SSDError, match="no such file"):
        load_classifier(tmp_path / "nothing.safetensors")
