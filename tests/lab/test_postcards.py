"""The postcards: captions say what scenes hold, and the checker tells true claims from false."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ssd_core.backbones.postcard.words import world as w
from ssd_core.backbones.postcard.words.world import CELL
from ssd_lab.postcards import (
    FRAMES,
    MAX_TOKENS,
    SIZE,
    TALL,
    WIDE,
    WORDS,
    Claim,
    Frame,
    Scene,
    check,
    describe,
    frame_of,
    is_valid,
    paint,
    postcard,
    read,
    sample_scene,
)
from ssd_lab.postcards.claims import claims
from ssd_lab.postcards.objects import cells_of, cover_of
from ssd_lab.postcards.seams import grid_ratio

SCENES = 32
SEEDS = st.integers(0, 2**32 - 1)
SCENE_ATTRIBUTES = ("time", "sky", "light", "light_place", "ridge", "ground", "path")


@cache
def cards() -> tuple[tuple[np.ndarray, str, Scene], ...]:
    return tuple(postcard(seed) for seed in range(SCENES))


def scene_of(seed: int) -> Scene:
    return sample_scene(np.random.default_rng(seed))


def same(image: np.ndarray) -> np.ndarray:
    return image


def jpeg(image: np.ndarray) -> np.ndarray:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=60)
    return np.asarray(Image.open(buffer).convert("RGB"))


def coarse(image: np.ndarray) -> np.ndarray:
    small = Image.fromarray(image).resize((SIZE // 2, SIZE // 2), Image.Resampling.BILINEAR)
    return np.asarray(small.resize((SIZE, SIZE), Image.Resampling.BILINEAR))


def share(results: Iterable[bool]) -> float:
    return float(np.mean(list(results)))


# ---- scenes and pictures -----------------------------------------------------------------------


@given(SEEDS)
def test_sampled_scenes_are_valid(seed: int) -> None:
    assert is_valid(scene_of(seed))


def test_a_scene_is_painted_the_same_way_every_time() -> None:
    for (image, caption, scene), seed in zip(cards()[:2], range(2), strict=True):
        again, caption_again, scene_again = postcard(seed)
        assert (caption, scene) == (caption_again, scene_again)
        assert np.array_equal(image, again)
        assert image.shape == (SIZE, SIZE, 3)
        assert image.dtype == np.uint8


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.name)
def test_twice_the_size_shows_the_same_scene_with_finer_edges(frame: Frame) -> None:
    small, large = [], []
    for seed in range(12):
        small.append(paint(scene_of(seed), frame).astype(np.float32))
        large.append(paint(scene_of(seed), frame, scale=2).astype(np.float32))
    blocks = np.stack(large).reshape(12, frame.height, 2, frame.width, 2, 3)
    off = np.abs(blocks.mean((2, 4)) - np.stack(small))
    assert off.mean((1, 2, 3)).max() < 1 and (off.max(-1) > 24).mean() < 0.005
    within = np.abs(np.diff(blocks, axis=4)).max(-1)
    assert (within > 40).mean() > 0.001, "edges are as sharp as the finer px allow"


def test_the_cover_of_things_is_where_the_picture_without_them_differs() -> None:
    for seed in range(12):
        scene = scene_of(seed)
        bare = replace(scene, ground="meadow", path="none", sky="clear", time="day")
        differs = np.abs(paint(bare).astype(int) - paint(replace(bare, things=()))).max(-1) > 60
        cover = cover_of(bare)
        assert cover.shape == (SIZE, SIZE) and (cover[differs] > 0.1).mean() > 0.9
        assert differs[cover > 0.9].mean() > 0.4


def test_no_two_values_of_an_attribute_are_rare() -> None:
    scenes = [scene_of(seed) for seed in range(2000)]
    for name in SCENE_ATTRIBUTES:
        counts = Counter(getattr(scene, name) for scene in scenes)
        assert min(counts.values()) > 0.025 * len(scenes), name
    kinds = Counter(thing.kind for scene in scenes for thing in scene.things)
    assert set(kinds) == set(w.KINDS)


# ---- captions ----------------------------------------------------------------------------------


def agrees(said: dict[str, str], thing: w.SceneObject) -> bool:
    return all(getattr(thing, name) == value for name, value in said.items())


def fits(claim: Claim, scene: Scene) -> bool:
    if claim.attribute == "count":
        return claim.value == ("one", "two", "three")[len(scene.things) - 1]
    return getattr(scene, claim.attribute) == claim.value


@given(SEEDS)
def test_a_caption_claims_only_what_the_scene_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scene = sample_scene(rng)
    caption = describe(scene, rng)
    made = claims(caption)
    things: dict[int, dict[str, str]] = {}
    for claim in made:
        if claim.thing is None:
            assert fits(claim, scene), caption
        else:
            things.setdefault(claim.thing, {})[claim.attribute] = claim.value
    assert list(things) == list(range(len(scene.things))), caption
    assert all(any(agrees(said, thing) for thing in scene.things) for said in things.values())
    told = Counter(said["kind"] for said in things.values())
    assert told == Counter(thing.kind for thing in scene.things)


@given(SEEDS)
def test_a_caption_is_short_and_uses_only_the_vocabulary(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tokens = describe(sample_scene(rng), rng).split(" ")
    assert len(tokens) <= MAX_TOKENS
    assert set(tokens) <= set(WORDS)


def test_many_captions_name_every_part_as_expanded_prompts_do():
    complete = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scene = sample_scene(rng)
        said = {claim.attribute for claim in claims(describe(scene, rng))}
        complete += {"ground", "ridge", "sky", "time"} <= said
    assert complete > 50


def test_every_word_of_the_vocabulary_is_used() -> None:
    rng = np.random.default_rng(0)
    used = {token for _ in range(2000) for token in describe(sample_scene(rng), rng).split()}
    assert set(WORDS) - used == {"beach"} and used <= set(WORDS)  # typed, and in the weights
    assert 130 <= len(WORDS) <= 170
    assert list(WORDS) == sorted(WORDS)


def test_a_place_belongs_to_its_own_noun() -> None:
    caption = "On the left stands a red house, a tower in the center and the sun on the right."
    assert set(claims(caption)) == {
        Claim("light", "sun"),
        Claim("light_place", "right"),
        Claim("kind", "house", 0),
        Claim("colour", "red", 0),
        Claim("place", "left", 0),
        Claim("kind", "tower", 1),
        Claim("place", "middle", 1),
    }


def test_unknown_words_claim_nothing() -> None:
    assert claims("an enormous zebra !") == ()
    assert claims("a tiny blue zebra near the house") == (
        Claim("kind", "house", 0),
        Claim("colour", "blue", 0),
    )


def test_snow_on_the_mountains_is_not_snow_on_the_ground() -> None:
    assert claims("snowy mountains") == (Claim("ridge", "snowy"),)
    assert claims("rocky mountains") == (Claim("ridge", "mountains"),)
    assert claims("in the snow") == (Claim("ground", "snow"),)


# ---- the checker on true claims ----------------------------------------------------------------


@pytest.mark.parametrize(("spoil", "least", "count"), [(same, 0.995, SCENES), (jpeg, 0.98, 10),
                                                       (coarse, 0.98, 10)])
def test_true_claims_pass(spoil: Callable[[np.ndarray], np.ndarray], least: float,
                          count: int) -> None:
    results = [v for image, text, _ in cards()[:count] for v in check(spoil(image), claims(text))]
    assert share(results) >= least


def test_the_checker_wants_a_postcard() -> None:
    with pytest.raises(ValueError, match="shape"):
        check(np.zeros((8, 8, 3), np.uint8), claims("a red house"))


@pytest.mark.parametrize("shade", [0, 128, 255])
def test_a_blank_picture_shows_nothing(shade: int) -> None:
    reading = read(np.full((SIZE, SIZE, 3), shade, np.uint8))
    assert reading.light == "none"
    assert not reading.things


def test_noise_passes_almost_no_claim() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE, 3)).astype(np.uint8)
    results = [v for _, text, _ in cards()[:6] for v in check(noise, claims(text))]
    assert share(results) < 0.02


# ---- the checker on false claims ---------------------------------------------------------------


def test_on_another_picture_claims_pass_as_often_as_by_chance() -> None:
    passed, chance = Counter(), Counter()
    for (_, text, _), (image, _, other) in zip(cards(), cards()[1:], strict=False):
        made = [claim for claim in claims(text) if claim.thing is None]
        for claim, result in zip(made, check(image, made), strict=True):
            passed[claim.attribute] += result
            chance[claim.attribute] += fits(claim, other)
    assert set(passed) == {*SCENE_ATTRIBUTES, "count"}
    assert all(abs(passed[name] - chance[name]) <= 2 for name in passed), (passed, chance)


def with_time(scene: Scene, time: str) -> Scene:
    lamp = "none" if scene.light == "none" else "moon" if time == "night" else "sun"
    sky = scene.sky if scene.sky in w.skies_of(time) else w.skies_of(time)[0]
    return replace(scene, time=time, light=lamp, sky=sky)


def with_light(scene: Scene, light: str) -> Scene:
    """The scene with another light, at another time where that light asks for it."""
    if light == "none":
        return replace(scene, light="none", light_place="none")
    place = scene.light_place if scene.light != "none" else w.light_places_of(scene.things)[0]
    time = "night" if light == "moon" else "day"
    shown = replace(scene, light=light, light_place=place)
    return with_time(shown if w.has_light(scene.sky) else replace(shown, sky="cloudy"), time)


def with_sky(scene: Scene, sky: str) -> Scene:
    if not w.has_light(sky):
        return replace(scene, sky=sky, light="none", light_place="none")
    if sky in w.skies_of(scene.time):
        return replace(scene, sky=sky)
    return replace(with_time(scene, "night" if sky == "starry" else "day"), sky=sky)


CHANGES: dict[str, Callable[[Scene, str], Scene]] = {
    "time": with_time,
    "sky": with_sky,
    "light": with_light,
    "light_place": lambda scene, value: replace(scene, light_place=value),
    "ridge": lambda scene, value: replace(scene, ridge=value),
    "ground": lambda scene, value: replace(scene, ground=value, path="none"),
    "path": lambda scene, value: replace(scene, path=value),
}
VALUES = {
    "time": w.TIMES,
    "sky": w.SKIES,
    "light": w.LIGHTS,
    "light_place": w.PLACES,
    "ridge": w.RIDGES,
    "ground": w.GROUNDS,
    "path": w.PATHS,
}


# Scenes whose attribute is changed: those of few values are few, too.
MOST = {**dict.fromkeys(VALUES, 4), "light": 12, "light_place": 15, "path": 9}


def altered(scene: Scene, name: str) -> list[Scene]:
    """The valid scenes that differ from a scene in the value of one attribute."""
    if getattr(scene, name) == "none" and name != "ridge":
        return []  # a caption cannot claim that there is no light or no path
    others = [CHANGES[name](scene, v) for v in VALUES[name] if v != getattr(scene, name)]
    return [other for other in others if is_valid(other)]


@pytest.mark.parametrize("name", SCENE_ATTRIBUTES)
def test_a_scene_claim_fails_where_its_attribute_differs(name: str) -> None:
    results, true = [], []
    for _, _, scene in cards()[:MOST[name]]:
        made = (Claim(name, getattr(scene, name)),)
        for other in altered(scene, name):
            wrong, right = check(paint(other), (*made, Claim(name, getattr(other, name))))
            results.append(wrong)
            true.append(right)
    assert len(results) >= 12
    assert share(results) < 0.05
    assert share(true) > 0.95


def test_a_count_claim_fails_for_every_other_count() -> None:
    results = []
    for image, _, scene in cards()[:16]:
        made = [Claim("count", v) for v in ("one", "two", "three")]
        results += [
            v for c, v in zip(made, check(image, made), strict=True) if not fits(c, scene)
        ]
    assert share(results) < 0.05


def with_thing(scene: Scene, index: int, **change: str) -> Scene:
    things = [*scene.things]
    things[index] = replace(things[index], **change)
    things.sort(key=lambda thing: w.PLACES.index(thing.place))
    return replace(scene, things=tuple(things))


def thing_claims(thing: w.SceneObject) -> tuple[Claim, ...]:
    return tuple(Claim(name, getattr(thing, name), 0) for name in ("kind", "colour", "place"))


@pytest.mark.parametrize(
    ("name", "values", "result_index", "count"),
    [("kind", w.KINDS, 0, 2), ("colour", w.COLOURS, 1, 2), ("place", w.PLACES, 2, 8)],
)
def test_a_thing_claim_fails_where_its_attribute_differs(
    name: str, values: tuple[str, ...], result_index: int, count: int
) -> None:
    results = []
    for _, _, scene in cards()[:count]:
        thing = scene.things[0]
        for value in values:
            other = with_thing(scene, 0, **{name: value})
            if value != getattr(thing, name) and is_valid(other):
                results.append(check(paint(other), thing_claims(thing))[result_index])
    assert len(results) >= 12
    assert share(results) < 0.05


def test_a_changed_colour_leaves_the_other_claims_true() -> None:
    scene = Scene("day", "clear", "none", "none", "hills", "meadow", "none", ())
    scene = replace(scene, things=(w.SceneObject("house", "red", "left"),))
    image = paint(with_thing(scene, 0, colour="blue"))
    assert check(image, thing_claims(scene.things[0])) == (True, False, True)


def test_without_a_place_a_thing_is_looked_for_everywhere() -> None:
    things = (w.SceneObject("house", "red", "left"), w.SceneObject("tree", "blue", "right"))
    image = paint(Scene("day", "clear", "none", "none", "hills", "meadow", "none", things))
    assert check(image, claims("a blue tree")) == (True, True)
    assert check(image, claims("a red tree")) == (True, False)
    assert check(image, claims("a red tower")) == (False, True)
    assert check(image, claims("a blue tree on the left")) == (False, False, False)


# ---- shapes and seams --------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [WIDE, TALL], ids=lambda frame: frame.name)
def test_true_claims_pass_in_every_shape(frame: Frame) -> None:
    results = []
    for _, caption, scene in cards()[:6]:
        image = paint(scene, frame)
        assert image.shape == (frame.height, frame.width, 3)
        results += check(image, claims(caption))
    assert share(results) >= 0.99


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.name)
def test_painted_pictures_show_no_grid(frame: Frame) -> None:
    ratios = [grid_ratio(paint(scene, frame)) for _, _, scene in cards()[:8]]
    assert np.mean(ratios) <= 1.05


def test_the_grid_ratio_tells_squares_from_smooth_pictures() -> None:
    ramp = np.arange(96, dtype=np.uint8)[:, None, None] + np.arange(96, dtype=np.uint8)[:, None]
    smooth = np.broadcast_to(ramp, (96, 96, 3))
    squares = smooth[::16, ::16].repeat(16, 0).repeat(16, 1)
    assert grid_ratio(smooth) == pytest.approx(1)
    assert grid_ratio(smooth // 2 + squares // 2) > 5
    assert grid_ratio(np.zeros((32, 32, 3), np.uint8)) == 1


@given(SEEDS, st.sampled_from(FRAMES))
def test_things_cover_cells_at_their_places(seed: int, frame: Frame) -> None:
    scene = scene_of(seed)
    cells = cells_of(scene, frame)
    assert cells.shape == (frame.rows, frame.columns)
    for number, thing in enumerate(scene.things):
        columns = np.flatnonzero((cells == number).any(0))
        centre = frame.x_of(thing.place) // CELL
        assert abs(columns.mean() + 0.5 - centre) <= 3


def test_a_shape_is_found_by_its_pixels() -> None:
    assert [frame_of(frame.height, frame.width) for frame in FRAMES] == list(FRAMES)
    assert frame_of(384, 512) is None
    assert all(frame.horizon % 16 for frame in FRAMES), "the horizon is no border of cells"
