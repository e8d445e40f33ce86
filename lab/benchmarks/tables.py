"""Quality tables of methods on held-out captions: the paper's, run again, and all methods.

Batches are stored below RUNS/tables (lab/evaluate/shards.py), so that a stopped run resumes
and tables share common rows. A table whose rows need other draft heads trains those missing in
RUNS, on the pictures that `train self-distill` stored there. Every table is written to
lab/benchmarks/results/NAME.md and its rows to NAME.json; SHEETS also have pictures, and `methods`
has plots. `run.py` is the command.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import cache, partial
from pathlib import Path
from statistics import mean

import torch
from conditions import RESULTS, conditions, page_of, table
from script import options
from strips import SHOWN, save_sheet

from ssd_core import Sampling, load_backbone, load_heads, methods
from ssd_core.backbones.base import Backbone
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, METHODS, SSD, Exact, Method, Rolling, Rows, Strict, Wave
from ssd_core.measure.tables import with_error, write_with_rows
from ssd_core.output.guarantees import HELPFUL, NEEDED, UNUSED, heads_use
from ssd_core.train import heads as heads_stage
from ssd_core.train.heads import LOSSES, HeadsRecipe
from ssd_core.weights.model_size import stored_dtype
from ssd_lab.evaluate.metrics import Trial
from ssd_lab.evaluate.plots import plot, require_matplotlib
from ssd_lab.evaluate.shards import Entry, Shards

ALL_METHODS, SHEETS = "methods", ("methods", "postcard", "variants")
Recipe = tuple[tuple[str, object], ...]
Columns = Mapping[str, Callable[[dict], str]]


@dataclass(frozen=True)
class Row:
    """A setting with the bundled heads or those of a recipe; label: None means the method's own."""

    label: str
    entry: Entry
    recipe: Recipe = ()


@dataclass(frozen=True)
class Table:
    title: str
    prompts: int
    rows: tuple[Row, ...]


def row_of(label: str, method: Method, recipe: Recipe = ()) -> Row:
    return Row(label, Entry(method, method.uses_heads), recipe)


def ssd(rounds: int, k_v: int = 1, **knobs) -> SSD:
    return SSD(k_h=5, k_v=k_v, rounds=rounds, **knobs)


def recipe_with(**fields) -> Recipe:
    """The bundled heads' recipe with changes; k_v = 1 uses only vertical head 1."""
    default = {f.name: f.default for f in dataclass_fields(HeadsRecipe)}
    return tuple((name, value) for name, value in {"k_v": 1, **fields}.items()
                 if value != default[name])


AR_ROW = row_of("AR", AR())
PREDICTORS = [("e", "e"), ("h_pre", "h_pre"), ("h_post", "h_post"), ("h_pre+e", "h_pre"),
              ("h_post+e", "h_post")]
TABLES = {
    ALL_METHODS: Table("All methods at their own settings, with plots", 256, ()),
    "postcard": Table("Methods and rounds (the paper's Tables 1 and 5)", 256, (
        AR_ROW, row_of("1-D MTP, k_h 5", methods.MTP(k_h=5)),
        row_of("strict, horizontal", Strict()), row_of("exact, window 48", Exact(48)),
        row_of("rows, r = 2, no heads", Rows(k_v=1, rounds=2)),
        *(row_of(f"SSD r = {r}", ssd(r)) for r in (0, 1, 2, 3)),
        *(row_of(f"rolling, 1/{n} of AR's passes", Rolling(fewer=float(n))) for n in (8, 12)),
        row_of("SSD coupled to convergence", ssd(24, acceptance="coupled")))),
    "predictor": Table("Predictor input and target, r = 0, 1,000 pictures (Table 3)", 64, (
        AR_ROW, *(row_of(f"{source} -> {target}", ssd(0), recipe_with(
            source=source, target=target, pictures=1000)) for source, target in PREDICTORS))),
    "acceptance": Table("Acceptance criterion (Table 4)", 64, (
        AR_ROW, row_of("strict, a row by vertical heads", Strict(drafts="vertical", k_h=5)),
        row_of("strict, horizontal", Strict()), row_of("verify and repair, r = 2", ssd(2)))),
    "lookahead": Table("Rows drafted at a time (Table 6)", 64, (
        AR_ROW, *(row_of(f"k_v = {k}, b = {b}, i = {i}", ssd(b, k, incremental=i))
                  for b, i in ((5, 4), (2, 2)) for k in (1, 2, 3)))),
    "pictures": Table("Training pictures (Table 7)", 64, (
        AR_ROW, *(row_of(f"{n} pictures, r = {r}", ssd(r), recipe_with(pictures=n))
                  for r in (0, 2) for n in (500, 1000, 2000)),
        *(row_of(f"the bundled heads, r = {r}", ssd(r)) for r in (0, 2)))),
    "schedule": Table("Staged against joint, k_v = 2 (Table 10)", 64, (
        AR_ROW, row_of("joint, b = 9", ssd(9, 2)),
        *(row_of(f"staged, b = 5, i = {i}", ssd(5, 2, incremental=i)) for i in (1, 2, 3, 4)),
        row_of("joint, b = 4", ssd(4, 2)),
        row_of("staged, b = 2, i = 2", ssd(2, 2, incremental=2)))),
    "variants": Table("Choices of our own", 64, (
        AR_ROW, row_of("r = 2", ssd(2)),
        *(row_of(f"r = {r}, coupled", ssd(r, acceptance="coupled")) for r in (1, 2, 3)),
        *(row_of(f"r = {r}, fused commit", ssd(r, fused_commit=True)) for r in (1, 2, 3)),
        *(row_of(f"r = {r}, draft temperature {t}", ssd(r, draft_temperature=t))
          for t in (0.7, 0.5) for r in (1, 2)),
        *(row_of(f"r = {r}, argmax drafts", ssd(r, draft_choice="argmax")) for r in (0, 2)))),
    "wave": Table("Rows in flight at once (ZipAR, PJD)", 24, (
        AR_ROW, row_of("exact, window 96", Exact(96)),
        *(row_of(f"delay {d}, {c} cell{'s' * (c > 1)}", Wave(d, c))
          for c in (1, 8) for d in (2, 4, 6, 9, 12)),
        row_of("delay 4, 1 cell, adaptive", Wave(4, 1, adaptive=True)),
        row_of("delay 9, 8 cells, residual", Wave(9, 8, "residual")))),
    "losses": Table("Head losses and draft temperatures, 500 pictures", 64, (
        AR_ROW, *(row_of(f"{loss}, r = {r}, draft temperature {t}", ssd(r, draft_temperature=t),
                         recipe_with(loss=loss, pictures=500))
                  for loss in LOSSES for t in (1.0, 0.5) for r in (1, 2)))),
}


def all_methods(temperatures: Sequence[float]) -> tuple[Row, ...]:
    """All methods, AR first; at raised temperatures only methods without heads."""
    names = sorted(METHODS, key=lambda name: name != AR.name)
    own = [Entry(METHODS[name](), heads_use(name) != UNUSED) for name in names]
    bare = [Entry(METHODS[name](), False) for name in names if heads_use(name) == HELPFUL]
    warm = [Entry(METHODS[name](), False, temperature) for temperature in temperatures
            for name in names if heads_use(name) != NEEDED]
    return tuple(Row("", entry) for entry in (*own, *bare, *warm))


# Measuring


def heads_of(recipe: Recipe, backbone: Backbone, bundled: str, runs: Path) -> DraftHeads | None:
    """The bundled heads or a recipe's, which are trained first if RUNS lacks them."""
    if not recipe:
        return None if bundled == "none" else load_heads(bundled, backbone)
    name = "-".join(f"{key}={value}" for key, value in recipe)
    out = runs / "heads" / name
    if not (out / "heads.safetensors").exists():
        print(f"training heads {name}", file=sys.stderr)
        result = heads_stage.train(HeadsRecipe(out, backbone=str(runs), data=str(runs),
                                               **dict(recipe)))
        (out / "heads.json").write_text(json.dumps(result, indent=1) + "\n")
    return load_heads(out, backbone)


@dataclass
class Outcome:
    """The measured rows of a table in order, their pictures, and reasons for missing rows."""

    rows: list[dict]
    tokens: list[torch.Tensor]  # each [SHOWN, R, C]
    left_out: list[str]


def measured(rows: Sequence[Row], trial: Trial,
             heads: Callable[[Recipe], DraftHeads | None], runs: Path) -> Outcome:
    results: dict[Row, tuple[dict, torch.Tensor]] = {}
    left_out = []
    for recipe in dict.fromkeys(row.recipe for row in rows):
        shards = Shards.of(trial, heads(recipe), runs)
        own = [row for row in rows if row.recipe == recipe]
        reasons = {row: shards.refused(row.entry) for row in own}
        left_out += [f"{shards.label(row.entry)}: {why}" for row, why in reasons.items() if why]
        runnable = [row for row in own if reasons[row] is None]
        baselines = [Entry(AR(), False, row.entry.temperature) for row in runnable]
        drawn = shards.all(list(dict.fromkeys([*baselines, *(row.entry for row in runnable)])))
        stats = dict(zip(drawn, shards.measured(drawn), strict=True))
        results |= {row: ({**stats[row.entry], "method": row.label or stats[row.entry]["method"]},
                        drawn[row.entry].tokens[:SHOWN]) for row in runnable}
    every = [results[row] for row in rows if row in results]
    return Outcome([row for row, _ in every], [tokens for _, tokens in every], left_out)


# The page


def number(name: str, digits: int, unit: str = "") -> Callable[[dict], str]:
    return partial(with_error, name=name, digits=digits, unit=unit)


def accepted(row: dict) -> str:
    return f"{mean(row['acceptance'].values()):.2f}" if row["acceptance"] else "-"


QUALITY: Columns = {
    "NLL": number("nll", 3), "captions": number("caption_accuracy", 3),
    "objects": number("object_accuracy", 3), "Frechet": number("frechet", 1),
    "entropy": number("entropy", 2),
    "same as AR": lambda row: f"{100 * row['identical_tokens']:.0f} %"}
PAPER_COLUMNS: Columns = {"decoding": lambda row: row["method"],
                          "passes": lambda row: f"{row['passes']:.0f}", **QUALITY}
METHODS_COLUMNS: Columns = {
    "decoding": lambda row: row["method"], "guarantee": lambda row: row["guarantee"],
    "passes": number("passes", 0), "fewer": number("step_acceleration", 1, "x"),
    "accepted": accepted, **QUALITY}
SPEED = ("Speed is in [speed.md](speed.md), where every method and AR count with their best "
         "setting. ")


def page(name: str, title: str, trial: Trial, outcome: Outcome, pictures: Sequence[str]) -> str:
    columns = METHODS_COLUMNS if name == ALL_METHODS else PAPER_COLUMNS
    lines = [[cell(row) for cell in columns.values()] for row in outcome.rows]
    where = conditions(trial.backbone.device, stored_dtype(trial.backbone))
    return page_of(
        title, f"{where}; {len(trial.captions)} held-out captions, guidance "
        f"{trial.backbone.preset.cfg:g}, temperature 1 unless T is given, seeds from "
        f"{trial.sampling.seed}, batches of {trial.batch}, ± one standard error. "
        f"{SPEED * (name == ALL_METHODS)}Columns: [README.md](README.md).",
        table(list(columns), lines), *(f"Left out: {reason}." for reason in outcome.left_out),
        *pictures)


def caption(row: dict, name: str) -> str:
    """The label of a row's strip of pictures."""
    more = f", {row['guarantee']}, {row['passes']:.0f} passes" if name == ALL_METHODS else ""
    return row["method"] + more


def write(name: str, title: str, trial: Trial, outcome: Outcome, plots: bool) -> str:
    """Write table, rows, pictures and plots; return the text."""
    backbone, pictures = trial.backbone, []
    if name in SHEETS:
        save_sheet(backbone, [(caption(row, name), tokens.to(backbone.device)) for row, tokens
                              in zip(outcome.rows, outcome.tokens, strict=True)],
                   RESULTS / f"{name}.webp")
        pictures.append(f"![{SHOWN} of the captions]({name}.webp)")
    if plots:
        plot(outcome.rows, "passes", "forward passes", RESULTS / f"{name}-passes.png")
        pictures.append(f"![Claims obeyed against forward passes]({name}-passes.png)")
    text = page(name, title, trial, outcome, pictures)
    write_with_rows(RESULTS, name, text, outcome.rows)
    return text


def run(name: str, args: argparse.Namespace) -> str:
    """Measure one table, write its files and return its text."""
    spec = TABLES[name]
    plots = name == ALL_METHODS and not args.no_plots
    if plots:
        require_matplotlib()  # before hours of decoding
    warm = [float(value) for value in args.temperatures.split(",") if value]
    rows = all_methods(warm) if name == ALL_METHODS else spec.rows
    backbone = load_backbone(args.backbone, dtype=args.dtype)
    trial = Trial(backbone, args.prompts or spec.prompts, args.batch, Sampling(seed=args.seed))
    heads = cache(partial(heads_of, backbone=backbone, bundled=args.heads, runs=args.runs))
    return write(name, spec.title, trial, measured(rows, trial, heads, args.runs / "tables"), plots)


def parser() -> argparse.ArgumentParser:
    made = options(__doc__)
    made.add_argument("--backbone", default="postcard")
    made.add_argument("--heads", default="postcard", help="a file, or none")
    made.add_argument("--dtype", default="fp32", help="bf16 is faster on CPUs with AMX")
    made.add_argument("--runs", type=Path, default=Path("runs/postcard"))
    made.add_argument("--prompts", type=int, default=0, help="instead of the table's own number")
    made.add_argument("--batch", type=int, default=32)
    made.add_argument("--seed", type=int, default=1000)
    made.add_argument("--temperatures", default="2,2.5", help="`methods`: further rows, of the "
                                                              "methods that need no heads")
    made.add_argument("--no-plots", action="store_true", help="`methods`: without matplotlib")
    return made
