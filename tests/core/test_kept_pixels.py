"""Kept cells have their own pixels in the finished picture, to the byte."""

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image
from support.mock_backbone import tiny_postcard
from support.requests import requested

from ssd_core import Grid, Sampling, SSDError, methods
from ssd_core.output.kept_pixels import blended, weights
from ssd_core.output.pixels import pixels
from ssd_core.output.recipe import to_bytes
from ssd_core.runs.live import LiveRun
from ssd_core.runs.request import Request

GRID = Grid(6, 7)
KEPT = torch.ones(6, 7, dtype=torch.bool)
KEPT[2:4, 2:5] = False


def noise(seed: int, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def test_cells_away_from_the_edge_are_the_pictures_own_and_free_ones_the_drawn():
    drawn, own = noise(1, 48, 56, 3), noise(2, 48, 56, 3)
    done = blended(drawn, own, KEPT)
    assert done[16:32, 16:40].equal(drawn[16:32, 16:40])
    outside = torch.ones(48, 56, dtype=torch.bool)
    outside[8:40, 8:48] = False  # but one cell around the free ones
    assert done[outside].equal(own[outside])


def test_a_cell_beside_a_free_one_turns_to_its_own_pixels_over_its_width():
    share = weights(KEPT, (48, 56))
    assert (share[16:32, 16:40] == 1).all()
    across = share[20, 40:56]  # to the right of the free cells
    assert (across[:-1] >= across[1:]).all() and 0.9 < across[0] < 1 and (across[8:] == 0).all()
    assert 0.4 < across[3:5].mean() < 0.6
    corner = share[32:40, 40:48]
    assert corner[0, 0] > 0.9 and corner[-1, -1] == 0 and corner.equal(corner.T)
    assert (weights(KEPT, (48, 56))[:, :8] == 0).all()


def request(model=None, **fields) -> Request:
    model = model or tiny_postcard(grid=GRID)
    kept = (torch.arange(GRID.cells).view(1, 6, 7) * 5) % model.codes
    return requested(model, None, methods.AR(), Sampling(seed=5), "a red house", named=True,
                   **{"keep": kept, "keep_mask": KEPT, **fields})


def away_from_the_edge(run: Request) -> torch.Tensor:
    width, height = run.sized.size
    return weights(KEPT, (height, width)) == 0


def test_a_photograph_stays_the_photograph_outside_the_mask():
    width, height = request().sized.size
    photo = noise(3, 1, height, width, 3)
    run = request(keep_pixels=photo)
    picture = next(run.run().pictures()).pixels
    outside = away_from_the_edge(run)
    assert outside.any() and picture[outside].equal(photo[0][outside])
    assert not picture[~outside].equal(photo[0][~outside])


def test_a_picture_of_ours_stays_byte_for_byte_without_its_pixels_at_hand():
    run = request(pictures=2)
    (own,) = pixels(run.sized, run.drawing.keep)
    outside = away_from_the_edge(run)
    drawn = run.run()
    plain = list(pixels(run.sized, drawn.tokens))
    for picture, decoded in zip((one.pixels for one in drawn.pictures()), plain, strict=True):
        assert (to_bytes(picture)[outside] == to_bytes(own)[outside]).all()
        free = weights(KEPT, picture.shape[:2]) == 1
        assert picture[free].equal(decoded[free])


def test_rows_kept_by_number_are_the_photographs_too():
    width, height = request().sized.size
    photo = noise(4, 1, height, width, 3)
    run = request(keep_mask=None, keep_rows=3, keep_pixels=photo)
    picture = next(run.run().pictures()).pixels
    assert picture[: height // 3].equal(photo[0, : height // 3])  # two of six rows
    assert not picture[height // 2 :].equal(photo[0, height // 2 :])
    by_number = request(keep_mask=None, keep_rows=3).run()
    plain = pixels(by_number.request.sized, by_number.tokens)
    assert next(by_number.pictures()).pixels.equal(next(plain))


def test_pictures_drawn_one_after_the_other_keep_their_own_pixels():
    width, height = request().sized.size
    photos = noise(6, 2, height, width, 3)
    run = request(pictures=2, keep_pixels=photos, keep=request().drawing.keep.expand(2, -1, -1))
    run.alone = True
    for part, photo in zip(run.parts(), photos, strict=True):
        assert part.drawing.keep_pixels.equal(photo[None])


def test_pixels_of_another_size_are_refused_in_one_line():
    with pytest.raises(SSDError, match=r"keep_pixels: .*\(1, 8, 8, 3\) do not fit 1 pictures of"):
        request(keep_pixels=noise(1, 1, 8, 8, 3)).check()


@pytest.mark.parametrize("larger", [True, False], ids=["large", "small"])
def test_pixels_of_the_other_size_of_the_grid_are_scaled(larger):
    model = tiny_postcard(grid=GRID, twice=True)
    run_size, own_size = model.sizes if larger else model.sizes[::-1]
    photo = noise(6, 1, own_size[1], own_size[0], 3)
    run = request(model, keep_pixels=photo, size=run_size)
    own = run.drawing.keep_pixels
    assert own is not None and (own.shape[2], own.shape[1]) == run.size == run_size
    assert torch.allclose(own.mean(), photo.mean(), atol=0.01)
    if not larger:
        blocks = photo.view(1, run_size[1], 2, run_size[0], 2, 3).mean((2, 4))
        assert torch.allclose(own, blocks, atol=1e-6)
    picture, outside = next(run.run().pictures()).pixels, away_from_the_edge(run)
    assert picture[outside].equal(own[0][outside]) and not picture[~outside].equal(own[0][~outside])


@pytest.mark.parametrize("n", [0, 1], ids=["large", "small"])
def test_a_picture_that_is_kept_has_its_own_size_unless_another_is_asked_for(n):
    model = tiny_postcard(grid=GRID, twice=True)
    width, height = model.sizes[n]
    photo = noise(7, 1, height, width, 3)
    run = request(model, keep_pixels=photo)
    assert run.size == (width, height) and run.recipe(
        0, run.drawing.keep[0], {"passes": 1, "seconds": {}})["size"] == f"{width}x{height}"
    outside = away_from_the_edge(run)
    assert next(run.run().pictures()).pixels[outside].equal(photo[0][outside])
    assert request(model).size == model.sizes[0]


def pixels_of(strip: str) -> torch.Tensor:
    return torch.from_numpy(np.array(Image.open(io.BytesIO(base64.b64decode(strip)))))


@pytest.mark.parametrize("twice", [False, True])
def test_in_a_preview_kept_cells_stand_from_the_start(twice):
    model = tiny_postcard(grid=GRID, twice=twice)
    width, height = model.size
    photo = noise(5, 1, height, width, 3)
    run, told = request(model, keep_pixels=photo), []
    own = torch.from_numpy(to_bytes(photo[0]))
    for _ in LiveRun(run, send=told.append):
        pass
    kept = KEPT.repeat_interleave(height // 6, 0).repeat_interleave(width // 7, 1)
    (standing,) = [message for message in told if message.get("known")]
    assert standing["kind"] == "cells" and told.index(standing) == 1
    assert (standing["first"], standing["last"], standing["top"]) == (0, 6, 0)
    shown = pixels_of(standing["strips"][0])
    assert (shown[..., 3] == 255).equal(kept) and shown[kept][:, :3].equal(own[kept])
    rows = [message for message in told if message["kind"] == "rows"]
    for message in rows:
        strip, top = pixels_of(message["strips"][0]), message["top"]
        lines = slice(top, top + len(strip))
        assert strip[kept[lines]].equal(own[lines][kept[lines]])
