"""Painted things as the checker reads them: a confusion table of kinds; a sheet of all of them.

    python lab/benchmarks/run.py kinds
    python lab/benchmarks/run.py kinds --scenes 60 --first 5000 --sheet FOLDER

Random scenes are painted in turns in the three shapes and read from their pixels. A thing counts as
found if the checker names anything at its place. With --sheet nothing is measured: every kind at
every hour is painted into FOLDER, as PNG files of four kinds, at the size at which the app shows
pictures.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from conditions import conditions, table, write_page
from PIL import Image
from script import described, options

from ssd_core.backbones.postcard.words.world import (
    FLOATING,
    FRAMES,
    GROUNDS,
    GROUPS,
    KINDS,
    LIGHTS,
    PLACES,
    RIDGES,
    SLOTS,
    SQUARE,
    TIMES,
    WATER,
    Scene,
    SceneObject,
    _colour,
    _pick,
    is_valid,
    kinds_of,
    may_be_many,
    paths_of,
    scene_of,
    skies_of,
)
from ssd_core.files import atomic_write
from ssd_lab.postcards import paint, read

SHOWN = 1.7  # the px of the app's picture for each of a postcard's
ATTRIBUTES = ("time", "sky", "light", "light_place", "ridge", "ground", "path")
NOTHING = "nothing"


class Tally:
    """What was painted and what was read.

    kinds: how often each painted kind was read as each kind. colours: the same of colours, of
    things whose kind was right. extra: things read where there is none. scenery: right readings.
    """

    def __init__(self) -> None:
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.colours: Counter[tuple[str, str]] = Counter()
        self.scenery: Counter[str] = Counter()
        self.extra = self.counted = self.scenes = 0

    def take(self, scene: Scene, frame_number: int) -> None:
        shown = read(paint(scene, FRAMES[frame_number]))
        self.scenes += 1
        self.counted += len(shown.things) == len(scene.things)
        self.scenery.update(name for name in ATTRIBUTES
                            if getattr(shown, name) == getattr(scene, name))
        places = {thing.place: thing for thing in scene.things}
        self.extra += len(set(shown.things) - set(places))
        for place, thing in places.items():
            kind, colour = shown.things.get(place, (NOTHING, NOTHING))
            self.kinds[thing.kind, kind] += 1
            if kind == thing.kind:
                self.colours[thing.colour, colour] += 1

    def page(self) -> list[str]:
        """The tables."""
        total = self.kinds.total()
        right = sum(count for (true, shown), count in self.kinds.items() if true == shown)
        tinted = sum(count for (true, shown), count in self.colours.items() if true == shown)
        summary = table(
            ["scenes", "things", "kind right", "colour right", "read where nothing stands",
             "number right", *ATTRIBUTES],
            [[str(self.scenes), str(total), f"{right / total:.3f}", f"{tinted / max(1, right):.3f}",
              str(self.extra), f"{self.counted / self.scenes:.3f}",
              *(f"{self.scenery[name] / self.scenes:.3f}" for name in ATTRIBUTES)]])
        return [summary, table(["kind", "painted", "right", "read as"], self.rows())]

    def rows(self) -> list[list[str]]:
        """A row for each kind."""
        rows: list[list[str]] = []
        for kind in KINDS:
            shown = Counter({name: n for (true, name), n in self.kinds.items() if true == kind})
            wrong = ", ".join(f"{name} {n}" for name, n in shown.most_common() if name != kind)
            rows.append([kind, str(shown.total()), str(shown[kind]), wrong or "-"])
        return rows


# ---- the sheet -----------------------------------------------------------------------------------


def posed(kind: str, time: str, seed: int) -> Scene:
    """A random scene at an hour that shows a kind: alone, twice or thrice, or five of it."""
    rng = np.random.default_rng(seed)
    while True:
        ground = _pick(rng, WATER if kind in FLOATING else GROUNDS)
        if kind not in kinds_of(ground):
            continue
        colour, count = _colour(rng, kind, ground), int(rng.choice((1, 1, 2, 3, 5)))
        places = PLACES[::2] if count == 2 else PLACES if count == 3 else (
            SLOTS if count == 5 and may_be_many(kind) else (_pick(rng, PLACES),))
        if kind in GROUPS:
            places = places[:1]
        things = tuple(SceneObject(kind, colour, place) for place in places)
        sky = _pick(rng, skies_of(time))
        light, place = _pick(rng, LIGHTS), _pick(rng, PLACES)
        scene = Scene(time, sky, light, "none" if light == "none" else place, _pick(rng, RIDGES),
                      ground, _pick(rng, paths_of(ground)), things, int(rng.integers(1 << 31)))
        if is_valid(scene):
            return scene


def save_sheets(folder: Path, first: int) -> None:
    """Four kinds a file, a row for each, a column for each hour."""
    size = round(SHOWN * SQUARE.width), round(SHOWN * SQUARE.height)
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(KINDS), 4):
        rows = []
        for number, kind in enumerate(KINDS[start : start + 4], start):
            scenes = [posed(kind, time, first + 10 * number + hour)
                      for hour, time in enumerate(TIMES)]
            rows.append(np.concatenate([np.asarray(Image.fromarray(paint(scene)).resize(
                size, Image.Resampling.BICUBIC)) for scene in scenes], axis=1))
        path = folder / f"kinds-{start // 4 + 1}.png"
        with atomic_write(path) as temporary:
            Image.fromarray(np.concatenate(rows)).save(temporary, "PNG")
        print(path)


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__, "kinds.md")
    parser.add_argument("--scenes", type=int, default=900)
    parser.add_argument("--first", type=int, default=2_000_000, help="seed of the first scene")
    parser.add_argument("--sheet", type=Path, metavar="FOLDER")
    args = parser.parse_args(arguments)
    if args.sheet:
        save_sheets(args.sheet, args.first)
        return
    tally = Tally()
    for number in range(args.scenes):
        tally.take(scene_of(args.first + number), number % len(FRAMES))
    write_page(args.out, "Kinds of painted things, as the checker reads them", conditions(),
               described(__doc__), *tally.page())


if __name__ == "__main__":
    main()
