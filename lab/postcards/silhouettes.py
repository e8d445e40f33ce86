"""Find the things of a postcard by comparing colour masks with the painter's drawings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F

from ssd_core.backbones.postcard.scenery import (
    STEP,
    Scenery,
    cloud_shades,
    coarse,
    depth,
    far,
    sky_rows,
    stroked,
)
from ssd_core.backbones.postcard.words.world import (
    AUTUMN,
    BACKDROPS,
    BOW,
    CAP,
    CELL,
    CLIFF,
    COLOURS,
    FAR_PLACES,
    FLYING,
    GLEAM,
    GROUND,
    HILL,
    KINDS,
    LIGHT,
    PAINT,
    PLACES,
    ROAD,
    ROCK,
    SHORES,
    SQUARE,
    TONE,
    WATER,
    WOOD,
    Frame,
    colours_of,
    kinds_of,
    may_be_many,
)

from .brush import paste
from .drawings import DRAWINGS
from .objects import COVERED, outline
from .pen import BELOW, HIGH, WIDE, tinted

_COLOUR_REACH = 50.0  # largest distance of a px from a thing's colour, RGB
_THING_OVERLAP = 0.4  # least overlap (IoU) of colour and silhouette with a drawing
_ALIKE = 0.2  # that of a thing far away, if all others are of its kind and colour
_STRANGE = 22.0  # least distance of a px from the background that no background has, RGB
_TINTS, _LIGHTS = (0.78, 0.9, 1.0, 1.1), (-0.8, -0.4, 0.0, 0.5)  # as things have them
_FINE = 4  # px by which a drawing may be off, beside its shift by cells
_ACROSS = {True: (-1, 3), False: (-1, 1)}  # cells by which a thing, alone or not, may be moved
_DOWN = (0, 2)
_LEAST = 0.012  # of a window that a colour must fill to be looked for


@dataclass(frozen=True)
class FoundThing:
    """A thing in a picture; x, y: the upper left corner of its drawing, px. size: px of a unit."""

    kind: str
    colour: str
    x: int
    y: int
    size: float
    drawing: int
    flip: bool
    fit: float

    def cover(self, frame: Frame) -> np.ndarray:
        """How much of each px it covers, float32 [height, width]."""
        drawn = outline(self.kind, self.drawing, self.flip, self.size)[0].astype(np.float32)
        canvas = np.zeros((frame.height, frame.width, 1), dtype=np.float32)
        paste(canvas, np.ones_like(drawn[..., None]), drawn[..., None], self.x, self.y)
        return canvas[..., 0]

    def cells(self, frame: Frame) -> np.ndarray:
        """The cells that it covers, bool [rows, columns]."""
        blocks = self.cover(frame).reshape(frame.rows, CELL, frame.columns, CELL)
        return blocks.mean((1, 3)) > COVERED


@dataclass(frozen=True)
class _Shapes:
    """Drawings of one size: (kind, drawing, flip) of each.

    own, whole: covers [n, 1, h, w] of the parts in the thing's own colour, and of all parts.
    """

    names: tuple[tuple[str, int, bool], ...]
    own: torch.Tensor
    whole: torch.Tensor
    kinds: np.ndarray


_PALE_LEAVES = {time: (leaves[0], leaves[2]) for time, leaves in AUTUMN.items()}
ZONES = {"ground": tuple(kind for kind in KINDS if kind not in (*FLYING, *BACKDROPS)),
         "sky": FLYING, "far": BACKDROPS}


def _top_of(zone: str, place: str, size: float, frame: Frame) -> int:
    """The upper edge of a drawing that is not moved, px."""
    if zone == "sky":
        return frame.balloon * CELL
    return frame.feet_of(place, ZONES[zone][0]) - round((HIGH - BELOW) * size)


@cache
def _shapes(zone: str, size: float) -> _Shapes:
    """All drawings of a zone, as they fall on the coarse picture."""
    names: list[tuple[str, int, bool]] = []
    tables: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    top = _top_of(zone, PLACES[0], size, SQUARE) % STEP
    high = -(-(round(HIGH * size) + top) // STEP) * STEP
    for kind in ZONES[zone]:
        for drawing in range(len(DRAWINGS[kind])):
            for flip in (False, True):
                names.append((kind, drawing, flip))
                for table, cover in zip(tables, outline(kind, drawing, flip, size), strict=True):
                    placed = np.zeros((high, cover.shape[1], 1), dtype=np.float32)
                    placed[top : top + len(cover), :, 0] = cover
                    table.append(coarse(placed)[..., 0])
    whole, own = (torch.from_numpy(np.stack(table))[:, None] for table in tables)
    return _Shapes(tuple(names), own, whole, np.asarray([name[0] for name in names]))


def _overlap(mask: np.ndarray, covers: torch.Tensor) -> torch.Tensor:
    """IoU [n, y, x] of covers [n, 1, h, w] with the part of a mask below them, at all places."""
    window = torch.from_numpy(mask)[None, None]
    shared = F.conv2d(window, covers)[0]
    around = F.conv2d(window, torch.ones(1, 1, *covers.shape[2:]))[0]
    return shared / (around + covers.sum((1, 2, 3))[:, None, None] - shared).clamp(min=1)


@cache
def _visible(zone: str, size: float, ground: str) -> np.ndarray:
    """Which drawings of a zone may have each colour on a ground, bool [colours, n]."""
    kinds, on_ground = _shapes(zone, size).kinds, kinds_of(ground)
    return np.stack([[kind in on_ground and colour in colours_of(kind, ground) for kind in kinds]
                     for colour in COLOURS])


@cache
def _paints(time: str) -> tuple[np.ndarray, np.ndarray]:
    """Colours of painted things at an hour [n, 3], and the index of each in COLOURS."""
    factor, high, low = (np.asarray(part, dtype=np.float32) for part in TONE[time])
    table, owner = [], []
    for n, name in enumerate(COLOURS):
        for tint in _TINTS:
            colour = np.asarray(tinted(PAINT[name], tint), dtype=np.float32) * factor
            for light in _LIGHTS:
                shown = colour + (high - colour) * 0.4 * max(light, 0.0)
                table.append(shown * (1 - (1 - low) * 0.85 * max(-light, 0.0)))
                owner.append(n)
    return np.asarray(table, dtype=np.float32), np.asarray(owner)


def _behind(small: np.ndarray, shown: Scenery, frame: Frame) -> np.ndarray:
    """The colours [n, h, 1, 3] that the scene without its things has in each row."""
    time, high = shown.time, frame.horizon // STEP
    near = depth(frame).reshape(-1, STEP, 1).mean(1)

    def layers(*pairs: tuple[object, object]) -> np.ndarray:
        """Colours of land [n, h, 3], from the far one to the near one of each pair."""
        tables = [np.asarray(pair, dtype=np.float32) for pair in pairs]
        return np.stack([far_one + (near_one - far_one) * near for far_one, near_one in tables])

    sky = sky_rows(time, shown.sky, frame).reshape(-1, STEP, 3).mean(1)
    clear = [stroked(sky, time, 0.3), np.repeat(cloud_shades(time)[:, None], len(sky), 1)]
    if shown.sky == "rainbow":
        clear += [sky[None] + (np.asarray(colour, dtype=np.float32) - sky)[None] * share
                  for colour in BOW for share in (0.25, 0.45, 0.62)]
    if shown.light != "none":
        light = np.asarray(LIGHT[time], dtype=np.float32)
        clear += [sky[None] + (light - sky)[None] * share for share in (0.1, 0.22, 0.36, 0.5)]
        clear += [np.broadcast_to(light + (255 - light) * share, sky.shape)[None]
                  for share in (0, 0.2, 0.4)]
    ridges = {"none": (), "hills": (HILL,), "mountains": (ROCK, HILL), "snowy": (ROCK, CAP, HILL),
              "forest": (WOOD,), "autumn": (_PALE_LEAVES, AUTUMN), "cliffs": (CLIFF, HILL),
              }.get(shown.ridge, ())
    for table in ridges:
        a, b = (np.asarray(colour, dtype=np.float32) for colour in table[time][:2])
        for share in (0, 0.33, 0.66, 1):
            solid = np.broadcast_to(a + (b - a) * share, sky.shape)
            clear += [solid[None], (solid + (sky[high - 1] - solid) * 0.3)[None]]
    shores = (GROUND[SHORES[shown.ground][1]][time],) if shown.ground in SHORES else ()
    paths = {"road": (ROAD[time],), "river": (GROUND["lake"][time],)}.get(shown.path, ())
    plain = layers(GROUND[shown.ground][time], *paths, *shores)
    land = [stroked(plain, time, share).reshape(-1, *sky.shape) for share in (0.16, 0.3)]
    if shown.ground in WATER:
        gleam = np.asarray(GLEAM[time], dtype=np.float32)
        water = layers(GROUND[shown.ground][time])
        land += [water + (gleam - water) * share for share in (0.45, 0.65)]
    usual = stroked(np.median(small[:, gaps(frame)], axis=1), time, 0.2)
    return np.concatenate((*(_only(part, slice(0, high + 2)) for part in clear),
                           *(_only(part, slice(high - 1, None)) for part in land),
                           usual))[:, :, None]


def _only(colours: np.ndarray, rows: slice) -> np.ndarray:
    """Colours [n, h, 3] in some rows, elsewhere far from every colour."""
    part = np.full(colours.shape, -999, dtype=np.float32)
    part[:, rows] = colours[:, rows]
    return part


@cache
def gaps(frame: Frame) -> np.ndarray:
    """Columns of the coarse picture that things rarely cover."""
    x = np.arange(frame.width // STEP) * STEP + STEP / 2
    away = np.stack([np.abs(x - frame.x_of(place)) for place in PLACES]).min(0)
    return np.flatnonzero(away > 0.75 * away.max())


def _masks(small: np.ndarray, shown: Scenery, frame: Frame) -> np.ndarray:
    """Masks of the px of a coarse picture that show each colour, and last of all that are not
    background, [colours + 1, h, w] (0 or 1).

    A px nearer to the background of its row than to any colour is in no mask of a colour.
    """
    table, owner = _paints(shown.time)
    away = far(small[:, :, None], table)
    best = away.argmin(-1)
    nearest = np.take_along_axis(away, best[..., None], -1)[..., 0]
    behind = far(small[None], _behind(small, shown, frame)).min(0)
    own = np.where(nearest < np.minimum(_COLOUR_REACH, behind), owner[best], -1)
    masks = own[None] == np.arange(len(COLOURS))[:, None, None]
    return np.concatenate((masks, (behind > _STRANGE)[None])).astype(np.float32)


def _window(masks: np.ndarray, x0: int, y0: int, wide: int, high: int) -> np.ndarray:
    """A part of masks [c, h, w], zero outside them; all in coarse px."""
    part = np.zeros((len(masks), high, wide), dtype=np.float32)
    top, left = max(0, y0), max(0, x0)
    bottom, right = min(masks.shape[1], y0 + high), min(masks.shape[2], x0 + wide)
    if top < bottom and left < right:
        part[:, top - y0 : bottom - y0, left - x0 : right - x0] = masks[:, top:bottom, left:right]
    return part


def _candidates(masks: np.ndarray, place: str, zone: str, size: float, ground: str,
                frame: Frame, kind: str | None = None) -> Iterator[FoundThing]:
    """The best drawing of each colour of a size at a place, where it fits well enough.

    kind: the only one that is looked for; None: all that the ground may have.
    """
    shapes = _shapes(zone, size)
    high, wide = shapes.own.shape[2:]
    foot = _top_of(zone, place, size, frame)
    top = foot // STEP - _FINE // STEP
    across = _ACROSS[size == frame.sizes[0]] if frame.roam else (0, 0)
    if place == "right":
        across = -across[1], -across[0]
    middle = frame.x_of(place) - round(WIDE * size) // 2
    left = (middle + CELL * across[0] - _FINE) // STEP
    wider = wide + (CELL * (across[1] - across[0]) + 2 * _FINE) // STEP
    higher = high + (CELL * (_DOWN[1] - _DOWN[0]) + 2 * _FINE) // STEP
    part = _window(masks, left, top, wider, higher)
    visible = _visible(zone, size, ground)
    if kind is not None:
        visible = visible & (shapes.kinds == kind)
    whole: torch.Tensor | None = None
    for n, mask in enumerate(part[:-1]):
        least = _LEAST if kind is None else _LEAST / 4
        if mask.sum() < least * high * wide or not visible[n].any():
            continue
        whole = _overlap(part[-1], shapes.whole) if whole is None else whole
        shown = np.flatnonzero(visible[n])
        fit = 0.6 * _overlap(mask, shapes.own[shown]) + 0.4 * whole[shown]
        best = int(fit.argmax())
        shape, y, x = np.unravel_index(best, fit.shape)
        if (found := float(fit.flatten()[best])) > (_THING_OVERLAP if kind is None else _ALIKE):
            name, drawing, flip = shapes.names[shown[int(shape)]]
            yield FoundThing(name, COLOURS[n], STEP * (left + int(x)),
                             STEP * (top + int(y)) + foot % STEP, size, drawing, flip, found)


def _clash(thing: FoundThing, other: FoundThing, frame: Frame) -> bool:
    """Whether two things cover mostly the same cells."""
    a, b = thing.cells(frame), other.cells(frame)
    return bool((a & b).sum() > 0.4 * min(a.sum(), b.sum()))


def find_things(small: np.ndarray, shown: Scenery, frame: Frame = SQUARE) -> dict[str, FoundThing]:
    """The thing at each occupied place of a coarse picture of a scenery."""
    masks, ground = _masks(small, shown, frame), shown.ground
    sizes = tuple(dict.fromkeys(frame.sizes[:3]))
    found = [(place, thing) for place in PLACES for zone in ZONES for size in sizes
             for thing in _candidates(masks, place, zone, size, ground, frame)]
    things: dict[str, FoundThing] = {}
    for place, thing in sorted(found, key=lambda entry: -entry[1].fit):
        if place not in things and not any(_clash(thing, other, frame)
                                           for other in things.values()):
            things[place] = thing
    return {**things, **_far_things(masks, things, ground, frame)}


def _coarse_cover(thing: FoundThing, frame: Frame) -> np.ndarray:
    """The cover of a found thing on the coarse picture, [h, w]."""
    return coarse(thing.cover(frame)[..., None])[..., 0]


def _far_things(masks: np.ndarray, near: dict[str, FoundThing], ground: str,
                frame: Frame) -> dict[str, FoundThing]:
    """The things far away, which are like those at all places."""
    alike = {(thing.kind, thing.colour) for thing in near.values()}
    if len(near) < len(PLACES) or len(alike) != 1:
        return {}
    ((kind, colour),) = alike
    for thing in near.values():
        masks = masks * (1 - _coarse_cover(thing, frame))
    return {place: thing for place in FAR_PLACES if may_be_many(kind)
            for thing in _candidates(masks, place, "ground", frame.sizes[3], ground, frame, kind)
            if thing.colour == colour}
