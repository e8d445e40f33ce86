"""Edits: by words, of a region, drawn anew with the same seed, and by a published rule.

    python lab/benchmarks/run.py edit                        (64 edits of each kind)
    python lab/benchmarks/run.py edit --count 4 --kinds colour time

Every edit begins with a picture that `exact` draws from the old caption, with the edit's seed. All
ways of editing it run one after the other in one process and one thread, and AR beside them. An
edit that is in RUNS is not made again, so a stopped command resumes; remove the folder when the
code has changed. Table, rows and contact sheet are NAME.md, NAME.json and NAME.webp in
lab/benchmarks/results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from conditions import conditions
from edit_cases import CHANGES, Case, case_of
from edit_table import ANEW, AR, BEFORE, BOX, ISLOCK, WORDS, write
from islock import islock
from script import options

from ssd_core import Edit, Sampling, SSDError, load_backbone, load_heads, methods
from ssd_core.engine.methods import default_method
from ssd_core.output.changed_words import changed_words
from ssd_core.output.drawing import Drawing
from ssd_core.output.recipe import to_bytes
from ssd_core.output.words import Words
from ssd_core.runs.batch.queue import work
from ssd_core.runs.batch.workers import Exists, LoadedModels, LocalWorker
from ssd_core.runs.request import Request
from ssd_core.weights.model_size import stored_dtype
from ssd_lab.evaluate.metrics import require_postcards
from ssd_lab.postcards import read
from ssd_lab.postcards.claims import claims
from ssd_lab.postcards.reading import which_hold

THREADS = 1


@dataclass(frozen=True)
class EditTask:
    """One edit in every way; saves what each drew and what was measured in one file."""

    case: Case

    @property
    def name(self) -> str:
        return f"{self.case.kind}-{self.case.number}"

    @property
    def count(self) -> int:
        return 1

    def left(self, exists: Exists) -> EditTask | None:
        return None if exists(f"{self.name}.json") else self

    def run(self, loaded: LoadedModels) -> dict[str, bytes]:
        edits = Edits(loaded, self.case)
        made = {way: edits.measured(way) for way in edits.ways()}
        known = {"kind": self.case.kind, "number": self.case.number, "old": self.case.old,
                 "new": self.case.new, "ways": made}
        return {f"{self.name}.json": json.dumps(known).encode()}


class Edits:
    """A picture, and every way to edit it."""

    def __init__(self, loaded: LoadedModels, case: Case) -> None:
        self.loaded, self.case = loaded, case
        self.parent = self.request(case.old).run()
        self.pixels = next(self.parent.pictures()).pixels
        self.reading = read(to_bytes(self.pixels))
        self.box = case.box()

    def request(self, prompt: str, method: methods.Method | None = None, **options) -> Request:
        """A run as hosts make it, but for one thread and nothing chosen for this machine."""
        drawing = Drawing(prompt, None, method or default_method(),
                          Sampling(seed=self.case.seed), **options)
        return Request(self.loaded.backbone, self.loaded.heads, drawing, named=True,
                       threads=THREADS)

    def ways(self) -> list[str]:
        return [way for way in (BEFORE, AR, ANEW, WORDS, BOX, ISLOCK)
                if way != BOX or self.box is not None]

    def measured(self, way: str) -> dict:
        """One way to edit: its tokens, what it took, and what its picture shows."""
        if way == ISLOCK:
            backbone = self.loaded.backbone
            done = islock(backbone, self.case.new, self.parent.tokens, self.case.seed, THREADS)
            picture = backbone.decode(done.tokens)[0]
            return self.verified(done.tokens, picture, done.passes, done.seconds)
        result = self.parent if way == BEFORE else self.asked(way).run()
        picture, stats = next(result.pictures()), result.measured
        return self.verified(picture.tokens[None], picture.pixels, stats["passes"],
                             stats["seconds"]["total"])

    def asked(self, way: str) -> Request:
        new, keep = self.case.new, {"keep": self.parent.tokens, "keep_pixels": self.pixels[None]}
        if way == AR:
            return self.request(new, methods.AR())
        if way == BOX:
            assert self.box is not None
            return self.request(new, keep_mask=~torch.from_numpy(self.box), **keep)
        if way == WORDS:
            old, drawn = changed_words(self.loaded.backbone, self.recipe, new)
            return self.request(new, fixed=(Words(drawn, None),), edit=Edit(old), **keep)
        return self.request(new)

    @property
    def recipe(self) -> dict:
        return self.parent.recipes()[0]

    def verified(self, tokens: torch.Tensor, picture: torch.Tensor, passes: int,
                 seconds: float) -> dict:
        """picture: [H, W, 3], float 0..1."""
        reading = read(to_bytes(picture))
        held = which_hold(reading, claims(self.case.new))
        return {"claims": sum(held) / len(held), "done": float(self.case.done(reading)),
                "kept": (tokens == self.parent.tokens).float().mean().item(),
                "stay": self.case.stay(self.reading, reading), "error": self.error(picture),
                "passes": passes, "seconds": seconds, "tokens": tokens[0].tolist()}

    def error(self, picture: torch.Tensor) -> float | None:
        """Mean square of the differences outside the box; None without a box."""
        if self.box is None:
            return None
        cell = self.loaded.backbone.size[1] // self.box.shape[0]
        outside = ~torch.from_numpy(self.box).repeat_interleave(cell, 0).repeat_interleave(cell, 1)
        return (picture - self.pixels)[outside].square().mean().item()


def folder_of(loaded: LoadedModels, runs: Path) -> Path:
    """Of the edits by these weights."""
    backbone, heads = loaded.backbone, loaded.heads
    weights = [backbone.sha256, heads and heads.sha256, stored_dtype(backbone), THREADS]
    return runs / hashlib.sha256(json.dumps(weights).encode()).hexdigest()[:12]


def made(loaded: LoadedModels, cases: Sequence[Case], runs: Path) -> list[dict]:
    """All edits; makes those missing in the folder."""
    folder = folder_of(loaded, runs)
    work([EditTask(case) for case in cases], folder, LocalWorker(loaded), "edit", quiet=None)
    return [json.loads((folder / f"{EditTask(case).name}.json").read_text(encoding="utf-8"))
            for case in cases]


def parser() -> argparse.ArgumentParser:
    flags = options(__doc__)
    flags.add_argument("--count", type=int, default=64, help="edits of each kind")
    flags.add_argument("--kinds", nargs="+", default=list(CHANGES), choices=CHANGES)
    flags.add_argument("--first", type=int, default=0, help="number of the first edit")
    flags.add_argument("--backbone", default="postcard", help="bundled name, file or folder")
    flags.add_argument("--dtype", default="fp32")
    flags.add_argument("--runs", type=Path, default=Path("runs/edit"))
    flags.add_argument("--name", default="edit", help="of the files in lab/benchmarks/results")
    return flags


def run(asked: argparse.Namespace) -> str:
    """Make the missing edits and write the table and the sheet."""
    backbone = load_backbone(asked.backbone, "cpu", asked.dtype)
    require_postcards(backbone)
    loaded = LoadedModels(backbone, load_heads(asked.backbone, backbone))
    numbers = range(asked.first, asked.first + asked.count)
    edits = made(loaded, [case_of(kind, n) for n in numbers for kind in asked.kinds], asked.runs)
    where = (f"{conditions(backbone.device, asked.dtype, threads=[THREADS])}; {asked.count} edits "
             f"of each kind, seeds from {case_of(asked.kinds[0], asked.first).seed}")
    return write(asked.name, backbone, edits, where)


def main() -> None:
    try:
        print(run(parser().parse_args()))
    except SSDError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
