"""lab/benchmarks/run.py decoders: its figures of painted pictures and of spoilt ones."""

import numpy as np
import pytest
import torch
from support import script_modules

from ssd_lab.postcards import SQUARE, paint, sample_scene
from ssd_lab.postcards.halos import hue_noise
from ssd_lab.train.data import HELD_OUT

SEEDS = range(HELD_OUT, HELD_OUT + 4)


def script():
    return script_modules.script("lab/benchmarks", "decoders")


@pytest.fixture(scope="module")
def held():
    painted = np.stack([paint(sample_scene(np.random.default_rng(seed))) for seed in SEEDS])
    return [script().Held(SQUARE, SEEDS, painted, torch.zeros(4, 24, 24, dtype=torch.long))]


def spoilt(pictures: np.ndarray, hue: tuple[int, int, int]) -> np.ndarray:
    noise = np.random.default_rng(0).integers(-12, 13, (*pictures.shape[:3], 1))
    return np.clip(pictures + noise * np.array(hue), 0, 255).astype(np.uint8)


def test_speckles_are_of_another_hue_and_near_things():
    picture = np.full((384, 384, 3), 128, np.uint8)
    grey, coloured = (spoilt(picture[None], hue)[0] for hue in ((1, 1, 1), (1, 0, -1)))
    for noisy, least, most in ((picture, 0, 0), (grey, 0, 1e-9), (coloured, 5, 15)):
        assert least <= np.median(hue_noise(noisy, [(100, 100)])) <= most
    coloured[84:260, 84:260] = 128
    assert np.median(hue_noise(coloured, [(100, 100)])) == 0
    assert len(hue_noise(coloured, [])) == 0


def test_painted_pictures_are_the_measure(held):
    made = script()
    places = [h.corners for h in held]
    painted = made.figures(held, [held[0].painted], places)
    assert painted["gradient"] == 1 and painted["grid"] < 1 and painted["claims"] > 0.97
    assert made.likeness(held, [held[0].painted])[0] > 100
    noisy = [spoilt(held[0].painted, (1, 0, -1))]
    assert made.figures(held, noisy, places)["speckle"] > 4 * painted["speckle"]
    assert made.figures(held, noisy, places)["gradient"] > 1.5
    around, on, elsewhere = made.likeness(held, noisy)
    assert min(around, on, elsewhere) > 20 and max(around, on, elsewhere) < 40


def test_sheets_show_the_decoders_side_by_side(tmp_path, held):
    made = script()
    made.write_sheets([[held[0].painted], [255 - held[0].painted]], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0-0.png", "0-3.png"]
    with made.Image.open(tmp_path / "0-0.png") as page:
        assert page.size == (round(1.7 * 768), round(1.7 * 3 * 384))
