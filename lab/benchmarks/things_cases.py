"""The pictures that things.py looks at: drawn or painted, with the cells of what their words name.

Cases are numbered from 0 and always the same. Every second picture is painted and encoded; of the
drawn ones half are by `exact` and half by `rolling`. The captions of half of the drawn pictures are
worded freely, often without places and colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import torch

from ssd_core import Sampling, generate, methods
from ssd_core.backbones.postcard.words.world import PLACES
from ssd_core.output.recipe import to_bytes
from ssd_core.runs.batch.workers import LoadedModels
from ssd_lab.postcards import (
    SQUARE,
    claims,
    describe,
    fresh_prompt,
    paint,
    sample_scene,
)
from ssd_lab.postcards.checker import outlined
from ssd_lab.postcards.objects import cells_of
from ssd_lab.train.data import HELD_OUT

CASES = HELD_OUT + 800_000  # the seed of case 0
STATED = ("kind", "colour", "place")


@dataclass(frozen=True)
class Seen:
    """A thing that a picture shows, and its cells, bool [R, C]."""

    kind: str
    colour: str
    place: str
    cells: np.ndarray


@dataclass(frozen=True)
class Case:
    """A picture's tokens [1, R, C], its caption, and what each phrase of it names: cells, or None
    if the checker finds no such thing.
    """

    number: int
    way: str
    prompt: str
    tokens: torch.Tensor
    cells: list[np.ndarray | None]


def way_of(number: int) -> str:
    return "painted" if number % 2 else ("exact", "rolling")[number // 2 % 2]


def case_of(loaded: LoadedModels, number: int) -> Case:
    rng = np.random.default_rng(CASES + number)
    way = way_of(number)
    if way == "painted":
        scene = sample_scene(rng)
        prompt, covered = describe(scene, rng), cells_of(scene)
        tokens = loaded.backbone.encode(torch.from_numpy(paint(scene))[None] / 255)
        shown = [Seen(thing.kind, thing.colour, thing.place, covered == n)
                 for n, thing in enumerate(scene.things)]
    else:
        prompt = describe(sample_scene(rng), rng) if number % 8 < 4 else fresh_prompt(rng)
        tokens = drawn(loaded, way, prompt, number)
        found = outlined(to_bytes(loaded.backbone.decode(tokens)[0]))
        shown = [Seen(thing.kind, thing.colour, place, thing.cells(SQUARE))
                 for place, thing in found.items()]
    return Case(number, way, prompt, tokens, cells_named(prompt, shown))


def drawn(loaded: LoadedModels, way: str, prompt: str, seed: int) -> torch.Tensor:
    method = methods.Exact() if way == "exact" else methods.Rolling(fewer=8)
    *_, finished = generate(loaded.backbone, prompt, method, loaded.heads, Sampling(seed=seed))
    return finished.tokens


def cells_named(prompt: str, shown: Sequence[Seen]) -> list[np.ndarray | None]:
    """The cells of each thing that a caption names, in its order, so that as many as possible are
    found; alike things go from left to right.
    """
    named: dict[int, dict[str, str]] = {}
    for claim in claims(prompt):
        if claim.thing is not None:
            named.setdefault(claim.thing, {})[claim.attribute] = claim.value
    ordered = sorted(shown, key=lambda thing: PLACES.index(thing.place))
    pool = [*ordered, *[None] * len(named)]
    best = max(permutations(pool, len(named)), key=lambda order: sum(
        fits(said, thing) for said, thing in zip(named.values(), order, strict=True)))
    return [thing.cells if thing and fits(said, thing) else None
            for said, thing in zip(named.values(), best, strict=True)]


def fits(said: dict[str, str], thing: Seen | None) -> bool:
    return thing is not None and all(
        said.get(name, getattr(thing, name)) == getattr(thing, name) for name in STATED)
