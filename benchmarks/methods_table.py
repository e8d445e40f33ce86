"""The quality of all methods at their own settings on the same captions, beside AR's.

    python benchmarks/tables.py methods --prompts 256

Each batch is kept below RUNS/methods, as ssd_core/measure/shards.py tells.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import mean

from conditions import RESULTS, conditions, table
from strips import SHOWN, sheet

from ssd_core import Sampling, load_backbone, load_heads
from ssd_core.engine.methods import AR, METHODS
from ssd_core.files import written_whole
from ssd_core.front.promises import HELPFUL, NEEDED, UNUSED, heads_use
from ssd_core.measure.metrics import Decoded, Trial
from ssd_core.measure.plots import plot, require_matplotlib
from ssd_core.measure.shards import Entry, Shards
from ssd_core.measure.tables import with_error
from ssd_core.weights.figures import stored_dtype

TITLE = "All methods at their own settings, with plots"
PROMPTS = 256
HEAD = ["decoding", "promise", "passes", "fewer", "accepted", "captions", "objects",
        "NLL", "entropy", "Frechet", "same as AR"]


def entries(temperatures: Sequence[float]) -> list[Entry]:
    """AR first; at raised temperatures the methods that need no heads, without them."""
    names = sorted(METHODS, key=lambda name: name != AR.name)
    own = [Entry(METHODS[name](), heads_use(name) != UNUSED) for name in names]
    bare = [Entry(METHODS[name](), False) for name in names if heads_use(name) == HELPFUL]
    warm = [Entry(METHODS[name](), False, temperature) for temperature in temperatures
            for name in names if heads_use(name) != NEEDED]
    return [*own, *bare, *warm]


def line(row: dict) -> list[str]:
    number = partial(with_error, row)
    accepted = f"{mean(row['acceptance'].values()):.2f}" if row["acceptance"] else "-"
    return [row["method"], row["verdict"], number("passes", 0),
            number("step_acceleration", 1, "x"), accepted, number("caption_accuracy", 3),
            number("object_accuracy", 3), number("nll", 3), number("entropy", 2),
            number("frechet", 1), f"{100 * row['identical_tokens']:.0f} %"]


# The table


def run(args: argparse.Namespace) -> str:
    """Measure the table, write its files and return its text."""
    if not args.no_plots:
        require_matplotlib()  # before hours of decoding
    backbone = load_backbone(args.backbone, dtype=args.dtype)
    heads = None if args.heads == "none" else load_heads(args.heads, backbone)
    trial = Trial(backbone, args.prompts or PROMPTS, args.batch, Sampling(seed=args.seed))
    shards = Shards.of(trial, heads, args.runs / "methods")
    wanted = entries([float(one) for one in args.temperatures.split(",") if one])
    reasons = {entry: shards.refused(entry) for entry in wanted}
    found = shards.all([entry for entry in wanted if reasons[entry] is None])
    left_out = [f"{shards.label(entry)}: {why}" for entry, why in reasons.items() if why]
    return written(shards, shards.measured(found), found, left_out, not args.no_plots)


def written(shards: Shards, rows: list[dict], found: Mapping[Entry, Decoded],
            left_out: Sequence[str], plots: bool) -> str:
    """Write table, rows, sheet and plots; return the text."""
    backbone = shards.trial.backbone
    shown = [(f"{row['method']}, {row['verdict']}, {row['passes']:.0f} passes",
              decoded.tokens[:SHOWN].to(backbone.device))
             for row, decoded in zip(rows, found.values(), strict=True)]
    with written_whole(RESULTS / "methods.jpg") as temporary:
        sheet(backbone, shown).save(temporary, format="JPEG", quality=85)
    (RESULTS / "methods.json").write_text(json.dumps(rows, indent=1) + "\n")
    pictures = [f"![{SHOWN} of the captions](methods.jpg)"]
    if plots:
        plot(rows, "passes", "forward passes", RESULTS / "methods-passes.png")
        pictures.append("![Claims obeyed against forward passes](methods-passes.png)")
    text = page(shards, rows, left_out, pictures)
    (RESULTS / "methods.md").write_text(text, encoding="utf-8")
    return text


def page(shards: Shards, rows: list[dict], left_out: Sequence[str], pictures: Sequence[str]) -> str:
    trial = shards.trial
    where = conditions(trial.backbone.device, stored_dtype(trial.backbone))
    gone = "".join(f"\nLeft out: {one}.\n" for one in left_out)
    return (f"# {TITLE}\n\n{where}; {len(trial.captions)} held-out captions, guidance "
            f"{trial.backbone.preset.cfg:g}, temperature 1 unless T is given, seeds from "
            f"{trial.sampling.seed}, batches of {trial.batch}, ± one standard error. Speed is in "
            "[speed.md](speed.md), where every method and AR count with their best setting. "
            "Columns: [README.md](README.md).\n\n"
            f"{table(HEAD, [line(row) for row in rows])}{gone}\n" + "\n\n".join(pictures) + "\n")
