"""The table of everyday prompts: how often pictures obey fully, and their passes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import numpy as np
from conditions import RESULTS, page_of, table
from everyday_rule import NONE, PART, Demand, Prompt
from everyday_sheets import eyes_table

from ssd_core.measure.tables import with_error, write_with_rows
from ssd_lab.evaluate.metrics import with_errors
from ssd_lab.postcards import Reading

AR, EXACT = "ar", "exact"
TYPED, EXPANDED = "as typed", "expanded"
NAMES_ALL = "long"  # the category whose prompts leave nothing open


@dataclass(frozen=True)
class DrawnRow:
    """A stored picture and its prompt."""

    prompt: Prompt
    seed: int
    drawn: str
    passes: float
    reading: Reading
    grid_ratio: float
    tokens: np.ndarray

    @classmethod
    def at(cls, path: Path, prompt: Prompt, seed: int) -> DrawnRow:
        saved = json.loads(path.read_text(encoding="utf-8"))
        reading = Reading(**saved["reading"])
        things = {place: tuple(thing) for place, thing in reading.things.items()}
        return cls(prompt, seed, saved["drawn"], saved["passes"],
                   replace(reading, things=things), saved["grid_ratio"],
                   np.array(saved["tokens"]))


def summary(pictures: Iterable[DrawnRow]) -> dict[str, float]:
    """Means and standard errors over prompts; a prompt counts as the mean of its seeds."""
    by_prompt: dict[Prompt, list[tuple[float, ...]]] = {}
    for picture in pictures:
        demand = Demand.of(picture.prompt.means)
        fulfilled = demand.fulfilled(picture.reading)
        by_prompt.setdefault(picture.prompt, []).append(
            (demand.obeyed(picture.reading), mean(fulfilled) if fulfilled else 1.0,
             picture.grid_ratio, picture.passes))
    means = (map(mean, zip(*scores, strict=True)) for scores in by_prompt.values())
    columns = zip(*means, strict=True)
    names = ("obeyed", "claims", "grid_ratio", "passes")
    return with_errors(dict(zip(names, map(list, columns), strict=True)))


@dataclass(frozen=True)
class Line:
    """A row of the table; spec: the method as it was written, method: its label."""

    spec: str
    method: str
    expansion: str
    pictures: list[DrawnRow]

    def measured(self) -> dict:
        names = dict.fromkeys(picture.prompt.category for picture in self.pictures)
        return {"spec": self.spec, "method": self.method, "expansion": self.expansion,
                "pictures": len(self.pictures), **summary(self.pictures),
                "by_category": {name: summary(picture for picture in self.pictures
                                              if picture.prompt.category == name)
                                for name in names}}


def main_table(rows: Sequence[Mapping]) -> str:
    head = ["method", "prompt", "pictures", "obeyed fully", "claims held", "grid ratio", "passes"]
    return table(head, [[row["method"], row["expansion"], str(row["pictures"]),
                         with_error(row, "obeyed", 2), with_error(row, "claims", 2),
                         with_error(row, "grid_ratio", 2), with_error(row, "passes", 0)]
                        for row in rows])


def category_table(rows: Sequence[Mapping]) -> str:
    """The table by category of AR, else of `exact`; empty if neither was drawn."""
    shown = [row for row in rows if row["spec"] == AR]
    shown = shown or [row for row in rows if row["spec"] == EXACT]
    if not shown:
        return ""
    head = ["category", *(row["expansion"] for row in shown)]
    return f"Obeyed fully by {shown[0]['method']}, by category:\n\n" + table(
        head, [[name, *(with_error(row["by_category"][name], "obeyed", 2) for row in shown)]
               for name in shown[0]["by_category"]])


def same(pictures: Iterable[DrawnRow], others: Iterable[DrawnRow]) -> str:
    """How many pictures are the same, token by token: "3 of 4"."""
    equal = [np.array_equal(own.tokens, other.tokens)
             for own, other in zip(pictures, others, strict=True)]
    return f"{sum(equal)} of {len(equal)}"


def comparisons(lines: Sequence[Line]) -> str:
    """Lines on whether `exact` draws AR's pictures and expansion keeps complete prompts."""
    of = {(line.spec, line.expansion): line.pictures for line in lines}
    lines = [f"`exact` drew AR's tokens in {same(pictures, of[AR, expansion])} pictures "
            f"({expansion})."
            for (spec, expansion), pictures in of.items()
            if spec == EXACT and (AR, expansion) in of]
    lines += [f"Of the prompts that name everything, {spec} drew the same tokens as typed and "
             f"{expansion} in {same(whole(of[spec, TYPED]), whole(pictures))} pictures."
             for (spec, expansion), pictures in of.items()
             if expansion != TYPED and (spec, TYPED) in of]
    return "\n".join(f"- {line}" for line in lines) + "\n" if lines else ""


def shares(prompts: Sequence[Prompt]) -> str:
    """How many prompts can be shown in part, and how many are refused; "" if all are whole."""
    of = Counter(prompt.category for prompt in prompts)
    if not {PART, NONE} & set(of):
        return ""
    return (f"Of {len(prompts)} prompts, {of[NONE]} name nothing that `postcard` knows, and are "
            f"refused; {of[PART]} name something that it cannot show, of which it says so and "
            "draws the rest: no such picture could obey. The table is of the others.\n")


def whole(pictures: Iterable[DrawnRow]) -> list[DrawnRow]:
    """The pictures whose prompt names everything."""
    return [picture for picture in pictures if picture.prompt.category == NAMES_ALL]


def write(name: str, lines: Sequence[Line], prompts: Sequence[Prompt], where: str) -> str:
    """Write NAME.md and NAME.json into the folder of results; returns the text."""
    rows = [line.measured() for line in lines]
    text = page_of(
        "Everyday prompts", f"{where}. Made by `python lab/benchmarks/everyday.py`, ± one standard "
        "error over prompts. Columns: [README.md](README.md).", shares(prompts), main_table(rows),
        category_table(rows), comparisons(lines), eyes_table(name))
    write_with_rows(RESULTS, name, text, rows)
    return text
