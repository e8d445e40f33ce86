"""Everyday prompts by several methods, as typed and expanded: how often a picture obeys fully.

    python benchmarks/everyday.py                       (every row of the table)
    python benchmarks/everyday.py --methods fast rolling:budget=36 --expansion expanded
    python benchmarks/everyday.py --sheets              (also the contact sheets)

Methods are speeds of the hosts (*balanced*, *fast*) or written as on the command line. Heads are
given to the methods that need them and to the row drafter. A picture that is there is not drawn
again: the command goes on where it was interrupted, and several may run at once. everyday_rule.py
says what counts. Writes benchmarks/results/everyday.md and .json; `--name` writes others.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from conditions import RESULTS, conditions, table
from everyday_rule import Demand, Prompt, read_prompts
from everyday_sheets import EYES, eyes_table, write_sheets

from ssd_core import Sampling, SSDError, load_backbone, load_heads
from ssd_core.cli.specs import parse_method
from ssd_core.engine.choice import filled
from ssd_core.engine.decode import generate
from ssd_core.engine.events import finished
from ssd_core.engine.methods import Method
from ssd_core.files import written_whole
from ssd_core.front.labels import label
from ssd_core.front.pixels import pixels
from ssd_core.front.promises import NEEDED, heads_use
from ssd_core.front.recipe import to_bytes
from ssd_core.front.request import Request
from ssd_core.front.speeds import SPEEDS
from ssd_core.measure.metrics import with_errors
from ssd_core.measure.tables import with_error
from ssd_core.postcards import Reading, read
from ssd_core.weights.figures import stored_dtype
from ssd_core.workers.crew import InProcess
from ssd_core.workers.task import Loaded, There
from ssd_core.workers.work import work

METHODS = ("ar", "exact", "ssd:rounds=2", "balanced", "fast")
EXPANSIONS: dict[str, dict[str, bool]] = {"as typed": {}}
AT_ONCE = 10
BY_CATEGORY = ("ar", "exact")  # methods whose rows are told apart by category


@dataclass(frozen=True)
class Row:
    """A method, as it was written, with or without expansion."""

    spec: str
    expansion: str

    @property
    def method(self) -> Method:
        return SPEEDS[self.spec].method if self.spec in SPEEDS else parse_method(self.spec)

    def request(self, loaded: Loaded, prompt: str, seed: int) -> Request:
        """For the words, the method and the heads.

        Its window is the one that `generate` would take; none is measured, so that the same picture
        is drawn on any machine.
        """
        backbone = loaded.backbone
        method = filled(self.method.resolved(backbone.preset), backbone.grid, backbone.device.type)
        drafted = heads_use(method.name) == NEEDED or getattr(method, "drafter", "") == "row"
        return Request(backbone, loaded.heads if drafted else None, method, Sampling(seed=seed),
                       prompt, named=True, **EXPANSIONS[self.expansion])


@dataclass(frozen=True)
class Wanted:
    """A picture to draw. file: named by all that decides the picture."""

    prompt: str
    negative: str | None
    seed: int
    file: str

    @classmethod
    def of(cls, loaded: Loaded, row: Row, prompt: str, seed: int) -> Wanted:
        request = row.request(loaded, prompt, seed)
        words, heads = words_of(request), request.heads and request.heads.sha256
        backbone = (loaded.backbone.sha256, stored_dtype(loaded.backbone))
        same = repr((backbone, heads, request.method, words, seed))
        digest = hashlib.sha256(same.encode()).hexdigest()[:16]
        return cls(*words, seed, f"{request.method.name}/{digest}.json")


def words_of(request: Request) -> tuple[str, str | None]:
    """The prompt and the negative prompt that are drawn."""
    return request.prompt, request.negative


@dataclass(frozen=True)
class Batch:
    """A task for `work`: some pictures by one row, a file each."""

    row: Row
    pictures: tuple[Wanted, ...]

    @property
    def name(self) -> str:
        return self.pictures[0].file.removesuffix(".json")

    @property
    def count(self) -> int:
        return len(self.pictures)

    def left(self, there: There) -> Batch | None:
        pictures = tuple(one for one in self.pictures if not there(one.file))
        return replace(self, pictures=pictures) if pictures else None

    def together(self) -> list[list[Wanted]]:
        """Runs of pictures that `generate` can draw at once: one negative, a seed after the other.
        """
        groups: list[list[Wanted]] = []
        for one in self.pictures:
            last = groups[-1][-1] if groups else None
            if last and (last.negative, last.seed + 1) == (one.negative, one.seed):
                groups[-1].append(one)
            else:
                groups.append([one])
        return groups

    def run(self, loaded: Loaded) -> dict[str, bytes]:
        request = self.row.request(loaded, self.pictures[0].prompt, 0)
        made = {}
        for group in self.together():
            done = finished(generate(
                loaded.backbone, [one.prompt for one in group], request.method, request.heads,
                Sampling(seed=group[0].seed), group[0].negative, threads=1))
            for one, tokens, passes in zip(group, done.tokens, done.stats["passes_each"],
                                           strict=True):
                made[one.file] = kept(loaded, one, tokens, passes)
        return made


def kept(loaded: Loaded, one: Wanted, tokens: torch.Tensor, passes: int) -> bytes:
    """The file of a picture."""
    picture = to_bytes(next(pixels(loaded.backbone, tokens[None])))
    known = {"drawn": one.prompt, "negative": one.negative, "passes": passes,
             "reading": asdict(read(picture)), "tokens": tokens.tolist()}
    return json.dumps(known, ensure_ascii=False).encode()


@dataclass(frozen=True)
class Drawn:
    """A picture that is there, beside what was typed."""

    prompt: Prompt
    seed: int
    drawn: str
    passes: float
    reading: Reading
    tokens: np.ndarray

    @classmethod
    def at(cls, path: Path, prompt: Prompt, seed: int) -> Drawn:
        kept = json.loads(path.read_text(encoding="utf-8"))
        reading = Reading(**kept["reading"])
        things = {place: tuple(thing) for place, thing in reading.things.items()}
        return cls(prompt, seed, kept["drawn"], kept["passes"],
                   replace(reading, things=things), np.array(kept["tokens"]))


def drawn(loaded: Loaded, rows: Sequence[Row], prompts: Sequence[Prompt], seeds: Sequence[int],
          folder: Path) -> dict[Row, list[Drawn]]:
    """All pictures of every row, drawn where they are not in the folder; prompt n by seed + n."""
    found: dict[Row, list[tuple[Prompt, Wanted]]] = {row: [
        (prompt, Wanted.of(loaded, row, prompt.text, seed + n))
        for seed in seeds for n, prompt in enumerate(prompts)] for row in rows}
    batches = [Batch(row, tuple(one for _, one in own[a : a + AT_ONCE]))
               for a in range(0, len(prompts) * len(seeds), AT_ONCE) for row, own in found.items()]
    work(batches, folder, InProcess(loaded), "draw", quiet=None)
    return {row: [Drawn.at(folder / one.file, prompt, one.seed) for prompt, one in own]
            for row, own in found.items()}


# ---- the tables --------------------------------------------------------------------------------


def summary(pictures: Iterable[Drawn]) -> dict[str, float]:
    """Means and standard errors over prompts; a prompt counts as the mean of its seeds."""
    by_prompt: dict[Prompt, list[tuple[float, float, float]]] = {}
    for one in pictures:
        demand = Demand.of(one.prompt.means)
        held = demand.held(one.reading)
        by_prompt.setdefault(one.prompt, []).append(
            (demand.obeyed(one.reading), mean(held) if held else 1.0, one.passes))
    columns = zip(*(map(mean, zip(*one, strict=True)) for one in by_prompt.values()), strict=True)
    return with_errors(dict(zip(("obeyed", "claims", "passes"), map(list, columns), strict=True)))


def row_of(row: Row, pictures: Sequence[Drawn], labels: dict[Row, str]) -> dict:
    categories = dict.fromkeys(one.prompt.category for one in pictures)
    return {"spec": row.spec, "method": labels[row], "expansion": row.expansion,
            "pictures": len(pictures), **summary(pictures),
            "by_category": {name: summary(one for one in pictures if one.prompt.category == name)
                            for name in categories}}


def main_table(rows: Sequence[dict]) -> str:
    head = ["method", "prompt", "pictures", "obeyed fully", "claims held", "passes"]
    return table(head, [[row["method"], row["expansion"], str(row["pictures"]),
                         with_error(row, "obeyed", 2), with_error(row, "claims", 2),
                         with_error(row, "passes", 0)] for row in rows])


def category_table(rows: Sequence[dict]) -> str:
    told = [row for row in rows if row["spec"] in BY_CATEGORY]
    head = ["category", *(f"{row['spec']}, {row['expansion']}" for row in told)]
    names = told[0]["by_category"] if told else {}
    return table(head, [[name, *(with_error(row["by_category"][name], "obeyed", 2)
                                 for row in told)] for name in names]) if told else ""


def same_as_ar(found: dict[Row, list[Drawn]]) -> str:
    """How many pictures of `exact` are AR's, token by token."""
    lines = []
    for row, pictures in found.items():
        ar = found.get(replace(row, spec="ar"))
        if row.spec == "exact" and ar:
            same = sum(np.array_equal(one.tokens, other.tokens)
                       for one, other in zip(pictures, ar, strict=True))
            lines.append(f"`exact` drew AR's tokens in {same} of {len(ar)} pictures "
                         f"({row.expansion}).")
    return "\n".join(lines)


def write(name: str, rows: list[dict], found: dict[Row, list[Drawn]], where: str) -> str:
    text = "\n".join(part for part in [
        "# Everyday prompts\n",
        f"{where}. Made by `python benchmarks/everyday.py`. ± one standard error over prompts. "
        "What counts: benchmarks/everyday_rule.py.\n",
        main_table(rows), "Obeyed fully, by category:\n", category_table(rows), same_as_ar(found),
        eyes_table()] if part)
    with written_whole(RESULTS / f"{name}.json") as temporary:
        temporary.write_text(json.dumps(rows, indent=1) + "\n")
    with written_whole(RESULTS / f"{name}.md") as temporary:
        temporary.write_text(text.rstrip("\n") + "\n")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--expansion", nargs="+", default=list(EXPANSIONS), choices=EXPANSIONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1000, 2000],
                        help="of the first prompt; prompt n has seed + n")
    parser.add_argument("--runs", type=Path, default=Path("runs/everyday"))
    parser.add_argument("--name", default="everyday", help="of the files in benchmarks/results")
    parser.add_argument("--sheets", action="store_true", help=f"and the sheets for {EYES.name}")
    asked = parser.parse_args()
    try:
        run(asked)
    except SSDError as error:
        raise SystemExit(str(error)) from None


def run(asked: argparse.Namespace) -> None:
    backbone = load_backbone("postcard")
    loaded = Loaded(backbone, load_heads("postcard", backbone))
    prompts, rows = read_prompts(), [Row(m, e) for e in asked.expansion for m in asked.methods]
    found = drawn(loaded, rows, prompts, asked.seeds, asked.runs)
    labels = {row: row.spec if row.spec in SPEEDS else label(row.request(loaded, "", 0).method)
              for row in rows}
    if asked.sheets:
        write_sheets(backbone, {row.expansion: pictures for row, pictures in found.items()
                                if row.spec == "exact"}, len(prompts))
    where = (f"{conditions(backbone.device, stored_dtype(backbone))}; `postcard`, "
             f"{len(prompts)} prompts, seeds from "
             f"{' and '.join(map(str, asked.seeds))}, all in one thread")
    print(write(asked.name, [row_of(row, found[row], labels) for row in rows], found, where))


if __name__ == "__main__":
    main()
