"""Things of a picture: how well `things_of` outlines what a phrase names, and what a click hits.

    python lab/benchmarks/run.py things                      (as many pictures as 200 phrases need)
    python lab/benchmarks/run.py things --first 0 --pictures 30 --name NAME

IoU is of cells, against the painter's for painted pictures and the silhouettes that the checker
finds for drawn ones. A click is made on every cell of every thing: it names the right thing, a
wrong one or nothing; a click on any other cell should name nothing. Phrases whose thing the checker
does not find are counted apart, with those for which a region is shown nevertheless. Settings were
tuned on cases 0 to 79, those of thin parts also on 1000 to 1027. Seconds are of `things_of`, which
decodes the picture, too.

Pictures in RUNS are not made again, so a stopped command resumes; remove the folder when the code
has changed. Table and rows are NAME.md and NAME.json in lab/benchmarks/results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from conditions import RESULTS, conditions, page_of, table
from script import described, options, postcard
from things_cases import Case, case_of

from ssd_core import SSDError, Thing, thing_at, things_of
from ssd_core.measure.tables import with_error, write_with_rows
from ssd_core.runs.batch.queue import work
from ssd_core.runs.batch.workers import Exists, LoadedModels, LocalWorker
from ssd_lab.evaluate.metrics import with_errors

FIRST, PHRASES = 1000, 200
HEAD = ["pictures", "phrases", "IoU", "at least 0.5", "click: right thing", "wrong thing",
        "nothing", "click beside all things hits one", "not found by the checker", "shown anyway",
        "seconds a picture"]
MEASURED = ("iou", "half", "right", "wrong", "nothing")
AIMS = {"iou": (0.80, "IoU"), "right": (0.95, "right thing"), "wrong": (-0.02, "wrong thing")}


@dataclass(frozen=True)
class ThingsTask:
    """One picture; saves what was measured of each of its phrases in one file."""

    number: int

    @property
    def name(self) -> str:
        return str(self.number)

    @property
    def count(self) -> int:
        return 1

    def left(self, exists: Exists) -> ThingsTask | None:
        return None if exists(f"{self.name}.json") else self

    def run(self, loaded: LoadedModels) -> dict[str, bytes]:
        return {f"{self.name}.json": json.dumps(measured(loaded, self.number)).encode()}


def measured(loaded: LoadedModels, number: int) -> dict:
    case = case_of(loaded, number)
    begun = time.perf_counter()
    things = things_of(loaded.backbone, case.tokens, case.prompt)
    seconds = time.perf_counter() - begun
    phrases = loaded.backbone.objects(case.prompt)
    if len(phrases) != len(case.cells):
        raise SSDError(f"{case.prompt!r}: {len(phrases)} phrases, {len(case.cells)} things")
    return {"number": number, "way": case.way, "prompt": case.prompt, "seconds": seconds,
            "beside": beside(case, things), "phrases": list(of_phrases(case, phrases, things))}


def of_phrases(case: Case, phrases: Sequence[str], things: Sequence[Thing]) -> Iterator[dict]:
    """What was measured of each phrase."""
    owners = named(phrases, things)
    for n, (phrase, cells) in enumerate(zip(phrases, case.cells, strict=True)):
        own = [thing for k, thing in zip(owners, things, strict=True) if k == n]
        row = {"phrase": phrase, "seen": cells is not None,
               "strength": own[0].strength if own else None, "sure": bool(own) and own[0].sure}
        if cells is not None:
            iou = max((overlap(thing.mask.numpy(), cells) for thing in own), default=0.0)
            row |= {"iou": iou, "half": float(iou >= 0.5), **clicks(case, n, owners, things)}
        yield row


def overlap(mask: np.ndarray, cells: np.ndarray) -> float:
    return float((mask & cells).sum() / (mask | cells).sum())


def named(phrases: Sequence[str], things: Sequence[Thing]) -> list[int]:
    """The number of each thing's phrase. Both are in the prompt's order; a phrase may have two."""
    numbers: list[int] = []
    for thing in things:
        after = numbers[-1] + 1 if numbers else 0
        later = [n for n in range(after, len(phrases)) if phrases[n] == thing.phrase]
        numbers.append(later[0] if later else numbers[-1])
    return numbers


def clicks(case: Case, n: int, owners: Sequence[int], things: Sequence[Thing]) -> dict[str, float]:
    """Shares of the cells of a phrase's thing; where two things overlap, both are right."""
    outcome = []
    for row, column in np.argwhere(case.cells[n]):
        hit = thing_at(things, row, column)
        if hit is None:
            outcome.append("nothing")
            continue
        cells = case.cells[owners[things.index(hit)]]
        outcome.append("right" if cells is not None and cells[row, column] else "wrong")
    return {name: outcome.count(name) / len(outcome) for name in ("right", "wrong", "nothing")}


def beside(case: Case, things: Sequence[Thing]) -> float:
    """The share of the cells outside all things that are inside a region."""
    free = torch.from_numpy(~np.any([cells for cells in case.cells if cells is not None]
                                    or [np.zeros((case.tokens.shape[1:]), dtype=bool)], axis=0))
    covered = torch.zeros_like(free)
    for thing in things:
        covered |= thing.mask
    return (covered & free).sum().item() / max(int(free.sum()), 1)


def row_of(label: str, pictures: Sequence[Mapping], sure: bool | None = None) -> dict:
    every = [phrase for picture in pictures for phrase in picture["phrases"]
             if sure is None or phrase["sure"] == sure]
    seen, unseen = ([phrase for phrase in every if phrase["seen"] == wanted]
                    for wanted in (True, False))
    return {"pictures": label, "phrases": len(seen), "unseen": len(unseen),
            "shown": sum(phrase["strength"] is not None for phrase in unseen),
            **with_errors({name: [phrase[name] for phrase in seen] for name in MEASURED}),
            "beside": mean(picture["beside"] for picture in pictures),
            "seconds": mean(picture["seconds"] for picture in pictures)}


def rows_of(pictures: Sequence[Mapping]) -> list[dict]:
    ways = {way: [picture for picture in pictures if picture["way"] == way]
            for way in ("exact", "rolling", "painted")}
    kinds = {(phrase["sure"], phrase["seen"]) for own in pictures for phrase in own["phrases"]}
    return [row_of("**all**", pictures), *(row_of(way, own) for way, own in ways.items() if own),
            *(row_of(f"all, {label}", pictures, sure)
              for label, sure in (("sure", True), ("not sure or no region", False))
              if (sure, True) in kinds)]


def line(row: Mapping) -> list[str]:
    whole = not row["pictures"].startswith("all, ")
    return [row["pictures"], str(row["phrases"]),
            *(with_error(row, name, 3) for name in MEASURED),
            f"{row['beside']:.3f}" if whole else "-", str(row["unseen"]), str(row["shown"]),
            f"{row['seconds']:.2f}" if whole else "-"]


def aims(row: Mapping) -> str:
    """One line: what is reached of the aims."""
    parts = [f"{name} {row[key]:.3f}, aim {'at most' if aim < 0 else 'at least'} {abs(aim):.2f}: "
             + ("met" if row[key] * (1 if aim > 0 else -1) >= aim else "missed")
             for key, (aim, name) in AIMS.items()]
    return f"Aims, over all phrases: {'; '.join(parts)}."


def write(name: str, pictures: Sequence[Mapping], where: str) -> str:
    rows = rows_of(pictures)
    text = page_of("Things of a picture", f"{where}. ± one standard error over phrases.",
                   described(__doc__), table(HEAD, [line(row) for row in rows]), aims(rows[0]))
    write_with_rows(RESULTS, name, text, rows)
    return text


def made(loaded: LoadedModels, numbers: Sequence[int], runs: Path) -> list[dict]:
    """What was measured of all pictures; measures those that are missing in the folder."""
    folder = runs / hashlib.sha256(loaded.backbone.sha256.encode()).hexdigest()[:12]
    work([ThingsTask(number) for number in numbers], folder, LocalWorker(loaded), "things",
         quiet=None)
    return [json.loads((folder / f"{n}.json").read_text(encoding="utf-8")) for n in numbers]


def enough(loaded: LoadedModels, first: int, runs: Path) -> list[dict]:
    """Pictures from the first on, until PHRASES have a thing that the checker finds."""
    pictures: list[dict] = []
    while sum(phrase["seen"] for picture in pictures for phrase in picture["phrases"]) < PHRASES:
        pictures += made(loaded, [first + len(pictures)], runs)
    return pictures


def parser() -> argparse.ArgumentParser:
    flags = options(__doc__)
    flags.add_argument("--first", type=int, default=FIRST, help="number of the first picture")
    flags.add_argument("--pictures", type=int, help=f"by default until {PHRASES} phrases are seen")
    flags.add_argument("--dtype", default="int8")
    flags.add_argument("--runs", type=Path, default=Path("runs/things"))
    flags.add_argument("--name", default="things", help="of the files in lab/benchmarks/results")
    return flags


def main() -> None:
    asked = parser().parse_args()
    torch.set_num_threads(1)
    loaded = postcard(asked.dtype)
    pictures = (enough(loaded, asked.first, asked.runs) if asked.pictures is None else
                made(loaded, range(asked.first, asked.first + asked.pictures), asked.runs))
    where = (f"{conditions(dtype=asked.dtype)}; {len(pictures)} pictures, cases from "
             f"{asked.first}")
    print(write(asked.name, pictures, where))


if __name__ == "__main__":
    main()
