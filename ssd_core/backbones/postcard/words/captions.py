"""Captions: a scene described as a person would, and the meaning of their words."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .world import PLACES, Scene, SceneObject, _pick, sample_scene, scene_of

MAX_TOKENS = 36  # words and punctuation marks of a caption
_SHORT, _COMPLETE = 0.35, 0.35  # shares of captions as short as people type, and of complete ones
# The parts of a complete caption in their order, and the order in which they are left out.
_ORDER = ("ground", "path", "ridge", "sky", "light", "time")
_OMITTED_FIRST = ("light", "ridge", "time", "sky", "path", "ground")
PLURAL = ("houses", "trees", "boats")  # kinds of a group of things

# Phrases by attribute and value; each becomes a comma-separated part of a caption.
_PARTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("time", "dawn"): ("at dawn", "at sunrise", "early in the morning"),
    ("time", "day"): ("at noon", "by day", "in the afternoon"),
    ("time", "dusk"): ("at dusk", "at sunset", "in the evening"),
    ("time", "night"): ("at night", "by night", "at midnight"),
    ("sky", "clear"): ("under a clear sky", "a clear sky above", "a cloudless sky"),
    ("sky", "cloudy"): ("under a cloudy sky", "clouds in the sky", "under soft clouds"),
    ("sky", "starry"): ("under a starry sky", "stars in the sky", "under the stars"),
    ("sky", "rain"): ("in the rain", "rain falls", "in heavy rain"),
    ("sky", "fog"): ("in the fog", "in thick fog", "fog far away"),
    ("ridge", "none"): ("a flat horizon", "a flat horizon far away"),
    ("ridge", "hills"): ("hills behind", "rolling hills far away", "before the hills"),
    ("ridge", "mountains"): ("bare mountains behind", "rocky peaks far away", "rocky mountains"),
    ("ridge", "snowy"): ("snowy mountains behind", "snowy peaks far away", "before snowy peaks"),
    ("ridge", "forest"): ("a forest behind", "a dark forest far away", "before the woods"),
    ("ground", "meadow"): ("on a meadow", "in the grass", "in a grassy meadow"),
    ("ground", "field"): ("in a field", "in the wheat", "in a wheat field"),
    ("ground", "sand"): ("on the sand", "in the desert", "in the sandy desert"),
    ("ground", "snow"): ("in the snow", "on the snow", "in deep snow"),
    ("ground", "lake"): ("on a lake", "on a calm lake", "on the lake"),
    ("ground", "sea"): ("on the sea", "on the ocean", "among the waves"),
    ("path", "road"): ("by a road", "along the road", "a winding road"),
    ("path", "river"): ("by a river", "along the river", "a winding river"),
    ("path", "flowers"): ("among flowers", "flowers everywhere", "full of flowers"),
}
_LIGHT_PARTS = (
    "the {light} is {place}",
    "the {light} shines {place}",
    "with the {light} {place}",
    "the {light} {place}",
)
_LIGHT_ALONE = ("under the {light}", "the {light} above", "the {light} shines")
_NOUNS: dict[str, tuple[str, ...]] = {
    "house": ("house", "house", "cottage"),
    "houses": ("houses", "houses", "cottages"),
    "church": ("church",),
    "castle": ("castle",),
    "tower": ("tower",),
    "lighthouse": ("lighthouse",),
    "windmill": ("windmill", "windmill", "mill"),
    "tent": ("tent",),
    "tree": ("tree",),
    "trees": ("trees",),
    "pine": ("pine", "pine", "fir"),
    "boat": ("boat", "boat", "sailboat"),
    "boats": ("boats", "boats", "sailboats"),
    "bridge": ("bridge",),
    "balloon": ("balloon",),
}
_COLOUR_WORDS: dict[str, tuple[str, ...]] = {
    "red": ("red",),
    "orange": ("orange",),
    "yellow": ("yellow", "yellow", "yellow", "golden"),
    "green": ("green",),
    "blue": ("blue",),
    "purple": ("purple", "purple", "purple", "violet"),
    "pink": ("pink",),
    "white": ("white",),
}
_PLACE_WORDS: dict[str, tuple[str, ...]] = {
    "left": ("on the left", "to the left", "at left"),
    "middle": ("in the middle", "in the center"),
    "right": ("on the right", "to the right", "at right"),
}
_ONE = ("one", "a lone", "a single")
_SOME = ("some", "a few", "")
_MANY = {2: ("two things ,", "a pair ,"), 3: ("three things ,", "a trio ,")}
# Openings of a caption that starts with its things, and of one that names them later.
_FIRST = ("", "", "", "a postcard of", "a painting of", "a view of", "a picture of", "we see")
_LATER = ("", "", "", "we see")
_TIME_NOUNS = {"dawn": "dawn", "day": "day", "dusk": "evening", "night": "night"}
_SKY_ADJECTIVES = {"rain": "rainy", "fog": "foggy"}
_VERBS = {"balloon": "floats", "boat": "sails", "boats": "sail", "houses": "stand",
          "trees": "stand"}


# ---- writing -----------------------------------------------------------------------------------


def _noun(thing: SceneObject, article: str, with_colour: bool, rng: np.random.Generator) -> str:
    colour = _pick(rng, _COLOUR_WORDS[thing.colour]) if with_colour else ""
    article = _pick(rng, _SOME) if thing.kind in PLURAL else article
    if article == "a" and colour == "orange":
        article = "an"
    return f"{article} {colour} {_pick(rng, _NOUNS[thing.kind])}"


def _thing_text(thing: SceneObject, article: str, plain: bool, rng: np.random.Generator) -> str:
    """A thing with optional colour and place. plain: a noun phrase without verb."""
    noun = _noun(thing, article, rng.random() < 0.85, rng)
    if rng.random() > 0.75:
        return noun
    place, style = _pick(rng, _PLACE_WORDS[thing.place]), rng.random()
    verb = _VERBS.get(thing.kind, "stands")
    if plain or style < 0.5:
        return f"{noun} {place}"
    if style < 0.8:
        return f"{place} {verb} {noun}" if style < 0.65 else f"{place} {noun}"
    return f"{noun} {verb} {place}"


def _things_text(scene: Scene, opening: str, rng: np.random.Generator) -> str:
    things = [scene.things[int(i)] for i in rng.permutation(len(scene.things))]
    counted = rng.random() < 0.4 and not any(thing.kind in PLURAL for thing in things)
    article = _pick(rng, _ONE) if counted and len(things) == 1 else "a"
    lead = _pick(rng, _MANY[len(things)]) if counted and len(things) > 1 else ""
    texts = [_thing_text(thing, article, bool(opening), rng) for thing in things]
    joint = " , ".join(texts[:-1])
    return f"{opening} {lead} " + (f"{joint} and {texts[-1]}" if joint else texts[-1])


def _light_text(scene: Scene, rng: np.random.Generator) -> str:
    if rng.random() < 0.25:
        return _pick(rng, _LIGHT_ALONE).format(light=scene.light)
    place = _pick(rng, _PLACE_WORDS[scene.light_place])
    return _pick(rng, _LIGHT_PARTS).format(light=scene.light, place=place)


def _scene_parts(scene: Scene, rng: np.random.Generator) -> list[str]:
    """Two to four mentions of the scene's own attributes, in random order."""
    values = {name: getattr(scene, name) for name in ("time", "sky", "ridge", "ground")}
    parts = [_pick(rng, _PARTS[name, value]) for name, value in values.items()]
    if rng.random() < 0.4:
        weather = _SKY_ADJECTIVES.get(scene.sky, scene.sky)
        parts[:2] = [f"a {weather} {_TIME_NOUNS[scene.time]}"]
    if scene.path != "none":
        parts.append(_pick(rng, _PARTS["path", scene.path]))
    if scene.light != "none":
        parts.append(_light_text(scene, rng))
    keep = int(rng.integers(2, 5)) if len(scene.things) < 3 else int(rng.integers(1, 4))
    return [parts[int(i)] for i in rng.permutation(len(parts))[:keep]]


def _join(pieces: list[str], split: float) -> str:
    """The pieces as a sentence, or as two. split: 0..1, where the second one begins."""
    cut = int(split * 2.5 * len(pieces))
    if not 0 < cut < len(pieces):
        return " , ".join(pieces) + " ."
    return " , ".join(pieces[:cut]) + " . " + " , ".join(pieces[cut:]) + " ."


def _typed(scene: Scene, rng: np.random.Generator) -> str:
    """As people type: the things, perhaps their colours and places, and up to two other parts."""
    coloured, placed, with_article, counted = rng.random(4) < (0.65, 0.3, 0.8, 0.15)
    things = [scene.things[int(i)] for i in rng.permutation(len(scene.things))]
    texts = [_noun(thing, "a" if with_article else "", bool(coloured), rng) for thing in things]
    if placed:
        texts = [f"{text} {_pick(rng, _PLACE_WORDS[thing.place])}"
                 for text, thing in zip(texts, things, strict=True)]
    if counted and len(things) > 1 and not any(thing.kind in PLURAL for thing in things):
        texts[0] = f"{_pick(rng, _MANY[len(things)])} {texts[0]}"
    parts = _scene_parts(scene, rng)[: int(rng.integers(3))]
    link, mark = rng.choice((" and ", " , ")), rng.choice((" , ", " "))
    return " ".join(mark.join([link.join(texts), *parts]).split())


def _counted_things(scene: Scene, rng: np.random.Generator) -> str:
    """All things with colours and places, mostly with their number, as prompts are expanded."""
    things = [scene.things[int(i)] for i in rng.permutation(len(scene.things))]
    groups = any(thing.kind in PLURAL for thing in things)
    article = "a lone" if len(things) == 1 and not groups and rng.random() < 0.8 else "a"
    texts = [f"{_noun(thing, article, True, rng)} {_pick(rng, _PLACE_WORDS[thing.place])}"
             for thing in things]
    if len(things) > 1 and not groups and rng.random() < 0.6:
        texts[0] = f"{_pick(rng, _MANY[len(things)])} {texts[0]}"
    joint = " , ".join(texts[:-1])
    return f"{joint} and {texts[-1]}" if joint else texts[-1]


def _all_parts(scene: Scene, rng: np.random.Generator) -> dict[str, str]:
    """The phrases of a complete caption in its order, by attribute; most in the plainest words."""
    parts = {}
    for name in _ORDER:
        phrases = _PARTS.get((name, getattr(scene, name)), ())
        if phrases:
            parts[name] = _pick(rng, phrases) if rng.random() < 0.3 else phrases[0]
        elif name == "light" and scene.light != "none":
            plain = _LIGHT_ALONE[0].format(light=scene.light)
            parts[name] = plain if rng.random() < 0.6 else _light_text(scene, rng)
    return parts


def _complete(scene: Scene, rng: np.random.Generator) -> str:
    """As prompts are expanded: all things, then every part in a fixed order.

    Up to two parts come first, as if they had been typed. What makes it too long is left out.
    """
    parts = _all_parts(scene, rng)
    early = [_pick(rng, tuple(parts)) for _ in range(int(rng.integers(3)))]
    names = list(dict.fromkeys((*early, *parts)))
    things = _counted_things(scene, rng)
    omitted = [name for name in _OMITTED_FIRST if name in parts]
    while len(text := " , ".join((things, *(parts[name] for name in names))).split()) > MAX_TOKENS:
        names.remove(omitted.pop(0))
    return " ".join(text)


def describe(scene: Scene, rng: np.random.Generator) -> str:
    """A caption of one to 36 words and marks, separated by single spaces, in lower case.

    It names every thing, because people who type "a house" want nothing beside it.
    """
    style = rng.random()
    if style < _SHORT:
        return _typed(scene, rng)
    if style < _SHORT + _COMPLETE:
        return _complete(scene, rng)
    parts, split = _scene_parts(scene, rng), float(rng.random())
    first = int(rng.integers(len(parts) + 1)) if rng.random() < 0.6 else 0
    things = _things_text(scene, _pick(rng, _LATER if first else _FIRST), rng)
    pieces = [*parts[:first], things, *parts[first:]]
    while len(_join(pieces, split).split()) > MAX_TOKENS:
        pieces.remove(next(piece for piece in reversed(pieces) if piece != things))
    return " ".join(_join(pieces, split).split())


def fresh_caption(seed: int, draw: int) -> str:
    """Return a caption of postcard `seed`; `draw` selects the wording."""
    return describe(scene_of(seed), np.random.default_rng((seed, draw)))


def fresh_prompt(rng: np.random.Generator) -> str:
    """A prompt for a new scene: its things, then two to four of its other parts.

    It uses the plainest phrases, as people do; `describe` uses all of them.
    """
    scene = sample_scene(rng)
    names = list(plain_parts(scene))
    chosen = sorted(rng.permutation(len(names))[: int(rng.integers(2, 5))])
    return plain_caption(scene, [names[int(n)] for n in chosen])


def plain_caption(scene: Scene, names: Iterable[str]) -> str:
    """The plainest caption of a scene: its things, then those of its `plain_parts`, in order."""
    parts = plain_parts(scene)
    return ", ".join([*map(_plain_thing, scene.things), *(parts[name] for name in names)])


def plain_parts(scene: Scene) -> dict[str, str]:
    """The plainest phrase for each attribute of a scene that a caption would mention."""
    parts = {name: _PARTS[name, getattr(scene, name)][0]
             for name in ("ground", "path", "ridge", "sky") if getattr(scene, name) != "none"}
    light = {"light": _LIGHT_ALONE[0].format(light=scene.light)} if scene.light != "none" else {}
    return {**parts, **light, "time": _PARTS["time", scene.time][0]}


def _plain_thing(thing: SceneObject) -> str:
    """A thing's colour, name and place, such as "an orange balloon on the right"."""
    article = "some" if thing.kind in PLURAL else "an" if thing.colour == "orange" else "a"
    noun = f"{_COLOUR_WORDS[thing.colour][0]} {_NOUNS[thing.kind][0]}"
    return f"{article} {noun} {_PLACE_WORDS[thing.place][0]}"


# ---- reading -----------------------------------------------------------------------------------

# Words that make a claim; two-word phrases are merged beforehand, see `claims_by`.
_MEANING: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("dawn", "sunrise", "morning"), ("time", "dawn")),
    **dict.fromkeys(("day", "noon", "afternoon"), ("time", "day")),
    **dict.fromkeys(("dusk", "sunset", "evening"), ("time", "dusk")),
    **dict.fromkeys(("night", "midnight"), ("time", "night")),
    **dict.fromkeys(("clear", "cloudless"), ("sky", "clear")),
    **dict.fromkeys(("cloudy", "clouds"), ("sky", "cloudy")),
    **dict.fromkeys(("starry", "stars"), ("sky", "starry")),
    **dict.fromkeys(("rain", "rainy"), ("sky", "rain")),
    **dict.fromkeys(("fog", "foggy"), ("sky", "fog")),
    **{w: ("light", w) for w in ("sun", "moon")},
    "flat": ("ridge", "none"),
    "hills": ("ridge", "hills"),
    **dict.fromkeys(("mountains", "peaks"), ("ridge", "mountains")),
    **dict.fromkeys(("snowy mountains", "snowy peaks"), ("ridge", "snowy")),
    **dict.fromkeys(("forest", "woods"), ("ridge", "forest")),
    **dict.fromkeys(("meadow", "grass", "grassy"), ("ground", "meadow")),
    **dict.fromkeys(("field", "wheat"), ("ground", "field")),
    **dict.fromkeys(("sand", "desert", "sandy", "beach"), ("ground", "sand")),
    "snow": ("ground", "snow"),
    "lake": ("ground", "lake"),
    **dict.fromkeys(("sea", "ocean", "waves"), ("ground", "sea")),
    "road": ("path", "road"),
    "river": ("path", "river"),
    "flowers": ("path", "flowers"),
    **dict.fromkeys(("one", "lone", "single"), ("count", "one")),
    **dict.fromkeys(("two", "pair"), ("count", "two")),
    **dict.fromkeys(("three", "trio"), ("count", "three")),
    **{word: ("kind", kind) for kind, words in _NOUNS.items() for word in words},
    **{word: ("colour", colour) for colour, words in _COLOUR_WORDS.items() for word in words},
    **{place: ("place", place) for place in PLACES},
    "center": ("place", "middle"),
}


def _vocabulary() -> tuple[str, ...]:
    tables = (*_PARTS.values(), *_NOUNS.values(), *_COLOUR_WORDS.values(), *_PLACE_WORDS.values())
    texts = [text for table in (*tables, *_MANY.values()) for text in table]
    texts += [*_LIGHT_PARTS, *_LIGHT_ALONE, *_ONE, *_SOME, *_FIRST, *_LATER]
    texts += ["sun moon beach stands and a an , .", *_VERBS.values(), *_SKY_ADJECTIVES.values()]
    texts += _TIME_NOUNS.values()
    words = {word for text in texts for word in text.split() if "{" not in word}
    return tuple(sorted(words))


WORDS: tuple[str, ...] = _vocabulary()
