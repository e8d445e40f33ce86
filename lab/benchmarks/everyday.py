"""Everyday prompts by several methods, as typed and expanded: how often a picture obeys fully.

    python lab/benchmarks/everyday.py                       (every row of the table)
    python lab/benchmarks/everyday.py --methods fast rolling:budget=36 --expansion expanded
    python lab/benchmarks/everyday.py --sheets exact        (also the contact sheets)
    python lab/benchmarks/everyday.py --prompts lab/benchmarks/stranger.txt --name stranger
    python lab/benchmarks/everyday.py --size 512x288 --name everyday_wide

Methods are presets of the hosts (*balanced*, *fast*) or written as on the command line. Methods
that need heads get them, and so does the row drafter. A stored picture is not drawn again: the
command resumes where it was interrupted, and several may run at once. everyday_rule.py defines what
counts. Writes lab/benchmarks/results/everyday.md and .json; `--name` writes others.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from conditions import conditions
from everyday_rule import LIST, Prompt, read_prompts, whole_prompts
from everyday_sheets import write_sheets
from everyday_tables import EXPANDED, TYPED, DrawnRow, Line, write
from script import options

from ssd_core import Sampling, SSDError, load_backbone, load_heads
from ssd_core.cli.specs import parse_method
from ssd_core.engine.decode import generate
from ssd_core.engine.events import finished
from ssd_core.engine.methods import Method
from ssd_core.engine.tuning import filled
from ssd_core.model.grid import size_of
from ssd_core.output.choices import SPEEDS
from ssd_core.output.drawing import Drawing
from ssd_core.output.guarantees import NEEDED, heads_use
from ssd_core.output.labels import label
from ssd_core.output.pixels import pixels
from ssd_core.output.recipe import to_bytes
from ssd_core.runs.batch.queue import work
from ssd_core.runs.batch.workers import LoadedModels, LocalWorker, PicturesTask, in_groups
from ssd_core.runs.request import Request
from ssd_core.weights.model_size import stored_dtype
from ssd_lab.postcards import read
from ssd_lab.postcards.seams import grid_ratio

METHODS = ("ar", "exact", "ssd:rounds=2", "balanced", "fast")
EXPANSIONS: dict[str, dict[str, bool]] = {TYPED: {}, EXPANDED: {"expand": True}}
AT_ONCE = 10


@dataclass(frozen=True)
class Row:
    """A method as it was written, with or without expansion."""

    spec: str
    expansion: str

    @property
    def method(self) -> Method:
        return SPEEDS[self.spec].method if self.spec in SPEEDS else parse_method(self.spec)

    def label(self, loaded: LoadedModels) -> str:
        own = self.request(loaded, "a house", 0).method
        title = f"*{SPEEDS[self.spec].title}*: " if self.spec in SPEEDS else ""
        return f"{title}{label(own)}"

    def request(self, loaded: LoadedModels, prompt: str, seed: int) -> Request:
        """For the words, the method and the heads.

        Its window is the default of `generate`, not a measured one, so that any machine draws the
        same picture.
        """
        backbone = loaded.backbone
        method = filled(self.method.resolve(backbone.preset), backbone.grid, backbone.device.type)
        drafted = heads_use(method.name) == NEEDED or getattr(method, "drafter", "") == "row"
        drawing = Drawing(prompt, None, method, Sampling(seed=seed), **EXPANSIONS[self.expansion])
        return Request(backbone, loaded.heads if drafted else None, drawing, named=True)


@dataclass(frozen=True)
class StoredPicture:
    """A picture to draw. file: a name made of everything that decides the picture."""

    prompt: str
    negative: str | None
    seed: int
    file: str

    @classmethod
    def of(cls, loaded: LoadedModels, row: Row, prompt: str, seed: int) -> StoredPicture:
        request = row.request(loaded, prompt, seed)
        words, heads = request.words[0], request.heads and request.heads.sha256
        drawn = words.prompt, words.negative
        backbone = (loaded.backbone.sha256, stored_dtype(loaded.backbone))
        same = repr((backbone, heads, request.method, drawn, seed, loaded.backbone.size))
        digest = hashlib.sha256(same.encode()).hexdigest()[:16]
        return cls(*drawn, seed, f"{request.method.name}/{digest}.json")


@dataclass(frozen=True)
class Batch(PicturesTask):
    """Pictures of one row."""

    pictures: tuple[StoredPicture, ...]
    row: Row

    @classmethod
    def of(cls, row: Row, pictures: Sequence[StoredPicture]) -> Batch:
        return cls(pictures[0].file.removesuffix(".json"), tuple(pictures), row)

    def together(self) -> list[list[StoredPicture]]:
        """Groups that `generate` can draw at once: one negative prompt, consecutive seeds."""
        return in_groups(self.pictures, lambda last, wanted: (
            (last.negative, last.seed + 1) == (wanted.negative, wanted.seed)))

    def run(self, loaded: LoadedModels) -> dict[str, bytes]:
        request = self.row.request(loaded, self.pictures[0].prompt, 0)
        made = {}
        for group in self.together():
            done = finished(generate(
                loaded.backbone, [wanted.prompt for wanted in group], request.method, request.heads,
                Sampling(seed=group[0].seed), group[0].negative, threads=1))
            for wanted, tokens, passes in zip(group, done.tokens, done.stats["passes_each"],
                                           strict=True):
                made[wanted.file] = encoded(loaded, wanted, tokens, passes)
        return made


def encoded(loaded: LoadedModels, wanted: StoredPicture, tokens: torch.Tensor,
            passes: int) -> bytes:
    """The content of a picture's file."""
    picture = to_bytes(next(pixels(loaded.backbone, tokens[None])))
    known = {"drawn": wanted.prompt, "negative": wanted.negative, "passes": passes,
             "reading": asdict(read(picture)), "grid_ratio": grid_ratio(picture),
             "tokens": tokens.tolist()}
    return json.dumps(known, ensure_ascii=False).encode()


def drawn(loaded: LoadedModels, rows: Sequence[Row], prompts: Sequence[Prompt],
          seeds: Sequence[int], folder: Path) -> dict[Row, list[DrawnRow]]:
    """All pictures of every row; draws those missing in the folder. Prompt n has seed + n."""
    pictures_by_row: dict[Row, list[tuple[Prompt, StoredPicture]]] = {row: [
        (prompt, StoredPicture.of(loaded, row, prompt.text, seed + n))
        for seed in seeds for n, prompt in enumerate(prompts)] for row in rows}
    batches = [Batch.of(row, [wanted for _, wanted in own[a : a + AT_ONCE]])
               for a in range(0, len(prompts) * len(seeds), AT_ONCE)
               for row, own in pictures_by_row.items()]
    work(batches, folder, LocalWorker(loaded), "draw", quiet=None)
    return {row: [DrawnRow.at(folder / wanted.file, prompt, wanted.seed) for prompt, wanted in own]
            for row, own in pictures_by_row.items()}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--expansion", nargs="+", default=list(EXPANSIONS), choices=EXPANSIONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1000, 2000],
                        help="of the first prompt; prompt n has seed + n")
    parser.add_argument("--backbone", default="postcard", help="bundled name, file or folder")
    parser.add_argument("--size", help="512x288 or 288x512, of a postcard that draws it")
    parser.add_argument("--runs", type=Path, default=Path("runs/everyday"))
    parser.add_argument("--prompts", type=Path, default=LIST, help="in the form of everyday.txt")
    parser.add_argument("--name", default="everyday", help="of the files in lab/benchmarks/results")
    parser.add_argument("--sheets", metavar="METHOD", help="also contact sheets of this method")
    try:
        print(run(parser.parse_args()))
    except SSDError as error:
        raise SystemExit(str(error)) from None


def run(asked: argparse.Namespace) -> str:
    """Draw the missing pictures and write the table."""
    backbone = load_backbone(asked.backbone)
    heads = load_heads(asked.backbone, backbone)
    backbone = backbone.resized(size_of(asked.size)).smallest  # that programs read
    loaded = LoadedModels(backbone, heads)
    every, rows = read_prompts(asked.prompts), [Row(m, e) for e in asked.expansion
                                                for m in asked.methods]
    prompts = whole_prompts(every)
    pictures_by_row = drawn(loaded, rows, prompts, asked.seeds, asked.runs)
    lines = [Line(row.spec, row.label(loaded), row.expansion, pictures)
             for row, pictures in pictures_by_row.items()]
    if asked.sheets:
        write_sheets(backbone, [line.pictures[: len(prompts)] for line in lines
                                if line.spec == asked.sheets], asked.name)
    width, height = backbone.size
    where = (f"{conditions(backbone.device, stored_dtype(backbone), threads=[1])}; `postcard`, "
             f"{width}x{height}, {len(prompts)} prompts, seeds from "
             f"{' and '.join(map(str, asked.seeds))}")
    return write(asked.name, lines, every, where)


if __name__ == "__main__":
    main()
