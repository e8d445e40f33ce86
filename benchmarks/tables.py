"""The paper's tables, run again on `postcard`: one command a table.

    python benchmarks/tables.py postcard           (Tables 1 and 5; --help names them all)
    python benchmarks/tables.py predictor --runs runs/postcard

A table whose rows need other draft heads trains those that RUNS does not hold yet, on the pictures
that `train self-distill` left there. Every table is written to benchmarks/results/NAME.md, its rows
to NAME.json, and the same prompts as every row drew them to NAME.jpg.

`methods` compares all methods at their own settings and also plots them; see methods_table.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from functools import cache, partial
from pathlib import Path

import methods_table
import torch
from conditions import RESULTS, conditions, table
from strips import SHOWN, sheet

from ssd_core import Sampling, SSDError, load_backbone, load_heads, methods
from ssd_core.backbones.base import Backbone
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, SSD, Exact, Method, Rows, Strict, Wave
from ssd_core.files import written_whole
from ssd_core.measure.metrics import Trial
from ssd_core.measure.tables import with_error
from ssd_core.train import heads as heads_stage
from ssd_core.train.heads_recipe import LOSSES, HeadsRecipe
from ssd_core.weights.figures import stored_dtype

HEAD = ["decoding", "passes", "NLL", "captions", "objects", "Frechet", "entropy", "same as AR"]


@dataclass(frozen=True)
class Row:
    """A method, with the bundled heads or with those of a recipe of their own."""

    label: str
    method: Method
    recipe: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True)
class Table:
    title: str
    prompts: int
    rows: tuple[Row, ...]


def ssd(rounds: int, k_v: int = 1, **knobs) -> SSD:
    return SSD(k_h=5, k_v=k_v, rounds=rounds, **knobs)


def heads_of(**fields) -> tuple[tuple[str, object], ...]:
    """What differs from the bundled heads' recipe: vertical head 1 is all that k_v = 1 uses."""
    default = {f.name: f.default for f in dataclass_fields(HeadsRecipe)}
    return tuple((name, value) for name, value in {"k_v": 1, **fields}.items()
                 if value != default[name])


METHODS_TABLE = "methods"
AR_ROW = Row("AR", AR())
PREDICTORS = [("e", "e"), ("h_pre", "h_pre"), ("h_post", "h_post"), ("h_pre+e", "h_pre"),
              ("h_post+e", "h_post")]
TABLES = {
    "postcard": Table("Methods and rounds (the paper's Tables 1 and 5)", 256, (
        AR_ROW, Row("1-D MTP, k_h 5", methods.MTP(k_h=5)), Row("strict, horizontal", Strict()),
        Row("exact, window 48", Exact(48)), Row("rows, r = 2, no heads", Rows(k_v=1, rounds=2)),
        *(Row(f"SSD r = {r}", ssd(r)) for r in (0, 1, 2, 3)),
        Row("SSD coupled to convergence", ssd(24, acceptance="coupled")))),
    "predictor": Table("Predictor input and target, r = 0, 1,000 pictures (Table 3)", 64, (
        AR_ROW, *(Row(f"{source} -> {target}", ssd(0), heads_of(
            source=source, target=target, pictures=1000)) for source, target in PREDICTORS))),
    "acceptance": Table("Acceptance criterion (Table 4)", 64, (
        AR_ROW, Row("strict, a row by vertical heads", Strict(drafts="vertical", k_h=5)),
        Row("strict, horizontal", Strict()), Row("verify and repair, r = 2", ssd(2)))),
    "lookahead": Table("Rows drafted at a time (Table 6)", 64, (
        AR_ROW, *(Row(f"k_v = {k}, b = {b}, i = {i}", ssd(b, k, incremental=i))
                  for b, i in ((5, 4), (2, 2)) for k in (1, 2, 3)))),
    "pictures": Table("Training pictures (Table 7)", 64, (
        AR_ROW, *(Row(f"{n} pictures, r = {r}", ssd(r), heads_of(pictures=n))
                  for r in (0, 2) for n in (500, 1000, 2000)),
        *(Row(f"the bundled heads, r = {r}", ssd(r)) for r in (0, 2)))),
    "schedule": Table("Staged against joint, k_v = 2 (Table 10)", 64, (
        AR_ROW, Row("joint, b = 9", ssd(9, 2)),
        *(Row(f"staged, b = 5, i = {i}", ssd(5, 2, incremental=i)) for i in (1, 2, 3, 4)),
        Row("joint, b = 4", ssd(4, 2)), Row("staged, b = 2, i = 2", ssd(2, 2, incremental=2)))),
    "variants": Table("Choices of our own", 64, (
        AR_ROW, Row("r = 2", ssd(2)),
        *(Row(f"r = {r}, coupled", ssd(r, acceptance="coupled")) for r in (1, 2, 3)),
        *(Row(f"r = {r}, fused commit", ssd(r, fused_commit=True)) for r in (1, 2, 3)),
        *(Row(f"r = {r}, draft temperature {t}", ssd(r, draft_temperature=t))
          for t in (0.7, 0.5) for r in (1, 2)),
        *(Row(f"r = {r}, argmax drafts", ssd(r, draft_choice="argmax")) for r in (0, 2)))),
    "wave": Table("Rows in flight at once (ZipAR, PJD)", 24, (
        AR_ROW, Row("exact, window 96", Exact(96)),
        *(Row(f"delay {d}, {c} cell{'s' * (c > 1)}", Wave(d, c))
          for c in (1, 8) for d in (2, 4, 6, 9, 12)),
        Row("delay 4, 1 cell, adaptive", Wave(4, 1, adaptive=True)),
        Row("delay 9, 8 cells, residual", Wave(9, 8, "residual")))),
    "losses": Table("Head losses and draft temperatures, 500 pictures", 64, (
        AR_ROW, *(Row(f"{loss}, r = {r}, draft temperature {t}", ssd(r, draft_temperature=t),
                      heads_of(loss=loss, pictures=500))
                  for loss in LOSSES for t in (1.0, 0.5) for r in (1, 2)))),
}


def heads_for(row: Row, backbone: Backbone, bundled: str, runs: Path) -> DraftHeads | None:
    """The row's heads; those that RUNS does not hold are trained first."""
    if not row.method.uses_heads:
        return None
    if not row.recipe:
        return load_heads(bundled, backbone)
    name = "-".join(f"{key}={value}" for key, value in row.recipe)
    out = runs / "heads" / name
    if not (out / "heads.safetensors").exists():
        print(f"training heads {name}", file=sys.stderr)
        result = heads_stage.train(HeadsRecipe(
            out, backbone=str(runs), data=str(runs), **dict(row.recipe)))
        (out / "heads.json").write_text(json.dumps(result, indent=1) + "\n")
    return load_heads(out, backbone)


def line(row: dict) -> list[str]:
    measured = partial(with_error, row)
    return [row["method"], f"{row['passes']:.0f}", measured("nll", 3),
            measured("caption_accuracy", 3), measured("object_accuracy", 3),
            measured("frechet", 1), measured("entropy", 2),
            f"{100 * row['identical_tokens']:.0f} %"]


class Measured:
    """Rows that have been measured; tables of one call share AR and all other rows alike."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.backbone = args, load_backbone(args.backbone, dtype=args.dtype)
        self.trial = cache(lambda prompts: Trial(self.backbone, prompts, args.batch,
                                                 Sampling(seed=args.seed)))
        self.found: dict[tuple, tuple[dict, torch.Tensor]] = {}

    def __call__(self, row: Row, prompts: int) -> tuple[dict, torch.Tensor]:
        """The measured keys of a row, and its tokens [prompts, R, C]."""
        key = (row.method, row.recipe, prompts)
        if key not in self.found:
            trial = self.trial(prompts)
            heads = heads_for(row, self.backbone, self.args.heads, self.args.runs)
            outcome = trial.run(row.method, heads)
            baseline = outcome.tokens if row == AR_ROW else self(AR_ROW, prompts)[1]
            self.found[key] = trial.row(outcome, baseline), outcome.tokens
        return self.found[key]


def run(name: str, measured: Measured) -> str:
    """Measure one table, write its three files and return its text."""
    spec, args, backbone = TABLES[name], measured.args, measured.backbone
    spec = replace(spec, prompts=args.prompts or spec.prompts)
    rows, shown = [], []
    for row in spec.rows:
        print(f"{name}: {row.label}", file=sys.stderr)
        found, tokens = measured(row, spec.prompts)
        rows.append({"method": row.label, **found})
        shown.append((row.label, tokens[:SHOWN]))
    where = conditions(backbone.device, stored_dtype(backbone))
    text = (f"# {spec.title}\n\n{where}; {spec.prompts} held-out captions, guidance "
            f"{backbone.preset.cfg}, temperature 1, seeds from {args.seed}, batches of "
            f"{args.batch}, ± one standard error. Columns: [README.md](README.md).\n\n"
            f"{table(HEAD, [line(row) for row in rows])}\n![{SHOWN} of the captions]({name}.jpg)\n")
    with written_whole(RESULTS / f"{name}.jpg") as temporary:
        sheet(backbone, shown).save(temporary, format="JPEG", quality=85)
    (RESULTS / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")
    (RESULTS / f"{name}.md").write_text(text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    titles = {**{name: spec.title for name, spec in TABLES.items()},
              METHODS_TABLE: methods_table.TITLE}
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="; ".join(
        f"{name}: {title}" for name, title in titles.items()))
    parser.add_argument("--backbone", default="postcard")
    parser.add_argument("--heads", default="postcard")
    parser.add_argument("--dtype", default="fp32", help="bf16 is faster on CPUs with AMX")
    parser.add_argument("--runs", type=Path, default=Path("runs/postcard"))
    parser.add_argument("--prompts", type=int, default=0, help="instead of the table's own number")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--temperatures", default="2,2.5", help="`methods`: further rows, of the "
                                                                "methods that need no heads")
    parser.add_argument("--no-plots", action="store_true", help="`methods`: without matplotlib")
    args = parser.parse_args()
    unknown = set(args.tables) - set(titles)
    if unknown or not args.tables:
        parser.error(f"name one or more of {', '.join(titles)}")
    try:
        measured = cache(lambda: Measured(args))
        for name in args.tables:
            print(methods_table.run(args) if name == METHODS_TABLE else run(name, measured()))
    except SSDError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
