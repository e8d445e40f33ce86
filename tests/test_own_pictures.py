"""Own pictures as training data: only those that show all that was asked for are learned."""

import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from ssd_core import SSDError, load_backbone
from ssd_core.postcards import FRAMES, SQUARE, paint, read
from ssd_core.train import backbone, own
from ssd_core.train.data import fresh_caption, scene_of, to_signed
from ssd_core.train.drawn import FORMAT, of_prompts


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 99))
@pytest.mark.slow
def test_a_painted_picture_is_good_for_its_caption_alone(seed, draw):
    scene = scene_of(seed)
    shown = read(paint(scene))
    caption = fresh_caption(seed, draw)
    place = next(iter(shown.things))
    other = {"house": "tent"}.get(shown.things[place][0], "house")
    assert own.is_good(caption, shown)
    assert not own.is_good(caption, replace(shown, sky="unclear"))
    assert not own.is_good(caption, replace(shown, things={}))
    wrong = {**shown.things, place: (other, shown.things[place][1])}
    assert not own.is_good(caption, replace(shown, things=wrong))


def test_a_thing_that_nobody_asked_for_makes_a_picture_bad():
    shown = read(paint(scene_of(3)))
    empty = next(p for p in ("left", "middle", "right") if p not in shown.things)
    more = replace(shown, things={**shown.things, empty: ("tent", "red")})
    caption = fresh_caption(3, 0)
    assert own.is_good(caption, shown) and not own.is_good(caption, more)


@pytest.fixture(scope="module")
def loaded():
    return load_backbone("postcard", "cpu", "fp32")


def write_pictures(folder, loaded, frame, seeds, captions):
    """Painted pictures as if the backbone had drawn them for these captions."""
    painted = torch.cat([to_signed(paint(scene_of(seed), frame)[None]) for seed in seeds])
    tokens = loaded.picture_codec.encode(painted).to(torch.int16)
    (folder / "self-distill").mkdir(parents=True)
    ids = of_prompts([loaded.tokenize(caption) for caption in captions])
    save_file({"tokens": tokens, **ids}, folder / "self-distill" / "000000.safetensors", {
        "format": FORMAT, "backbone_sha256": loaded.sha256,
        "size": json.dumps([frame.width, frame.height])})
    return tokens


@pytest.mark.slow
def test_pictures_that_show_something_else_are_left_out(tmp_path, loaded):
    captions = [fresh_caption(0, 0), fresh_caption(99, 0), fresh_caption(2, 0)]
    tokens = write_pictures(tmp_path, loaded, SQUARE, (0, 1, 2), captions)
    found = own.own_pictures(loaded, [tmp_path])
    assert list(found) == [SQUARE]
    assert found[SQUARE].tokens.equal(tokens[[0, 2]].long().flatten(1))
    assert found[SQUARE].prompts.tolist() == [loaded.tokenize(captions[i]) for i in (0, 2)]


def test_a_folder_without_a_good_picture_is_refused(tmp_path, loaded):
    write_pictures(tmp_path, loaded, SQUARE, (1,), [fresh_caption(99, 0)])
    with pytest.raises(SSDError, match="draw more"):
        own.own_pictures(loaded, [tmp_path])


@pytest.mark.slow
@pytest.mark.nightly
def test_a_postcard_learns_from_its_own_pictures_of_two_sizes(tmp_path, loaded):
    folders = [tmp_path / frame.name for frame in FRAMES[:2]]
    for folder, frame in zip(folders, FRAMES, strict=False):
        write_pictures(folder, loaded, frame, (0, 2), [fresh_caption(0, 0), fresh_caption(2, 0)])
    recipe = backbone.BackboneRecipe(
        tmp_path, start_from="postcard", own=",".join(map(str, folders)), own_share=1.0,
        shapes=0.5, steps=2, pictures=8, batch=2, reading_steps=0, held_out=2)
    told = backbone.train(recipe)
    assert 0 < told["held_out_nll"] < 3
    after = load_backbone(tmp_path, "cpu", "fp32")
    assert after.sha256 != loaded.sha256 and after.sizes == loaded.sizes


@pytest.mark.slow
def test_the_loss_of_own_pictures_falls_when_they_are_learned(loaded, tmp_path):
    write_pictures(tmp_path, loaded, SQUARE, (0, 2), [fresh_caption(0, 0), fresh_caption(2, 0)])
    pictures = own.own_pictures(loaded, [tmp_path])[SQUARE]
    learner = load_backbone("postcard", "cpu", "fp32").requires_grad_(True)
    learner.picture_codec.requires_grad_(False)
    recipe = backbone.BackboneRecipe(tmp_path, batch=2, foreign_cells=0.0, foreign_patches=0.0)
    weights = [p for p in learner.parameters() if p.requires_grad]
    optimizer, losses = torch.optim.AdamW(weights, lr=1e-3), []
    for _ in range(4):
        generator = torch.Generator().manual_seed(0)
        learner.refresh_tables()
        loss = backbone.loss_of_own(learner, pictures, recipe, generator)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
