"""All methods at their own settings on the same captions, with AR in the same run.

    python benchmarks/tables.py methods --prompts 256

Every method decodes a batch before the next batch begins, so a machine that slows down slows all of
them. Each batch is kept below RUNS/methods: a run that was interrupted continues there. Remove that
folder when a method's code has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from conditions import RESULTS, conditions, table
from plots import plot, require_matplotlib
from strips import SHOWN, sheet

from ssd_core import Sampling, SSDError, generate, load_backbone, load_heads
from ssd_core.backbones.base import Backbone
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, METHODS, Method
from ssd_core.files import written_whole
from ssd_core.front.compare import verdict
from ssd_core.front.labels import label
from ssd_core.front.promises import HELPFUL, NEEDED, UNUSED, heads_use
from ssd_core.measure.evaluate import Decoded, Trial, decode_all, with_errors

TITLE = "All methods at their own settings, with plots"
PROMPTS = 256
HEAD = ["decoding", "promise", "passes", "fewer", "faster", "accepted", "captions", "objects",
        "NLL", "entropy", "Frechet", "same as AR"]


@dataclass(frozen=True)
class Entry:
    """A row to measure: a method at its own settings, with or without heads."""

    name: str
    method: Method
    heads: bool
    temperature: float = 1.0

    def label(self, backbone: Backbone) -> str:
        bare = ", no heads" if not self.heads and heads_use(self.name) == HELPFUL else ""
        warm = "" if self.temperature == 1 else f", T = {self.temperature:g}"
        return label(self.method.resolved(backbone.preset)) + bare + warm


def entries(temperatures: Sequence[float]) -> list[Entry]:
    """AR first; at raised temperatures the methods that need no heads, without them."""
    names = sorted(METHODS, key=lambda name: name != AR.name)
    own = [Entry(name, METHODS[name](), heads_use(name) != UNUSED) for name in names]
    bare = [Entry(name, METHODS[name](), False) for name in names if heads_use(name) == HELPFUL]
    warm = [Entry(name, METHODS[name](), False, temperature) for temperature in temperatures
            for name in names if heads_use(name) != NEEDED]
    return [*own, *bare, *warm]


# Decoding, batch by batch


@dataclass
class Bench:
    """What all rows have in common, and the folder of the batches decoded so far."""

    trial: Trial
    heads: DraftHeads | None
    folder: Path

    @classmethod
    def of(cls, trial: Trial, heads: DraftHeads | None, runs: Path) -> Bench:
        """A folder for these very conditions, so that nothing of another run is taken."""
        backbone, sampling = trial.backbone, trial.sampling
        same = [backbone.sha256, heads and heads.sha256, str(backbone.dtype),
                backbone.device.type, trial.batch, asdict(sampling)]
        digest = hashlib.sha256(json.dumps(same).encode()).hexdigest()[:12]
        return cls(trial, heads, runs / "methods" / digest)

    def heads_for(self, entry: Entry) -> DraftHeads | None:
        return self.heads if entry.heads else None

    def sampling(self, entry: Entry, start: int = 0) -> Sampling:
        own = self.trial.sampling
        return replace(own, seed=own.seed + start, temperature=entry.temperature)

    def refused(self, entry: Entry) -> str | None:
        """Why a row cannot be measured here, or None."""
        try:
            generate(self.trial.backbone, self.trial.captions[:1], entry.method,
                     self.heads_for(entry), self.sampling(entry)).close()
        except SSDError as error:
            return str(error)
        return None

    def decoded(self, entry: Entry, start: int) -> Decoded:
        """One batch, from the folder if it is there."""
        own = entry.method.resolved(self.trial.backbone.preset)
        key = hashlib.sha256(repr((own, entry.heads)).encode()).hexdigest()[:8]
        path = self.folder / f"{entry.name}-T{entry.temperature:g}-{key}" / f"{start}.npz"
        if not path.exists():
            self.decode(entry, start, path)
        with np.load(path) as kept:
            return Decoded(torch.from_numpy(kept["tokens"]), [json.loads(str(kept["stats"]))])

    def decode(self, entry: Entry, start: int, path: Path) -> None:
        trial = self.trial
        outcome = decode_all(trial.backbone, self.heads_for(entry), entry.method,
                             trial.captions[start : start + trial.batch], trial.batch,
                             self.sampling(entry, start))
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, tokens=outcome.tokens.cpu().numpy(), stats=json.dumps(outcome.stats[0]))

    def all(self, rows: Sequence[Entry]) -> dict[Entry, Decoded]:
        """Every row's pictures; a batch by all rows before the next one."""
        found: dict[Entry, list[Decoded]] = {entry: [] for entry in rows}
        for start in range(0, len(self.trial.captions), self.trial.batch):
            for entry in rows:
                print(f"captions {start}..: {entry.label(self.trial.backbone)}", file=sys.stderr)
                found[entry].append(self.decoded(entry, start))
        return {entry: Decoded(torch.cat([one.tokens for one in parts]),
                               [stats for one in parts for stats in one.stats])
                for entry, parts in found.items()}


# Measuring


def measured(bench: Bench, found: Mapping[Entry, Decoded]) -> list[dict]:
    """One row per entry, beside AR's of the same temperature."""
    rows = []
    for entry, decoded in found.items():
        ar = next(one for other, one in found.items()
                  if other.name == AR.name and other.temperature == entry.temperature)
        row = bench.trial.row(decoded, ar.tokens.to(bench.trial.backbone.device))
        own = entry.method.resolved(bench.trial.backbone.preset)
        rows.append({"method": entry.label(bench.trial.backbone), "name": entry.name,
                     "heads": entry.heads, "temperature": entry.temperature,
                     "verdict": verdict(own, bench.trial.backbone.dtype, row["identical_tokens"]),
                     **row, **speeds(decoded, ar)})
    return rows


def speeds(decoded: Decoded, ar: Decoded) -> dict[str, float]:
    """Step acceleration by picture, wall-clock acceleration by batch; both with errors."""
    fewer = [stats["ar_passes"] / passes for stats in decoded.stats
             for passes in stats["passes_each"]]
    faster = [base["seconds"]["total"] / own["seconds"]["total"]
              for base, own in zip(ar.stats, decoded.stats, strict=True)]
    seconds = [stats["seconds"]["total"] / len(stats["passes_each"]) for stats in decoded.stats]
    return with_errors({"step_acceleration": fewer, "wall_clock_acceleration": faster,
                        "seconds_each": seconds})


def line(row: dict) -> list[str]:
    def number(name: str, digits: int, times: str = "") -> str:
        return f"{row[name]:.{digits}f}{times} ± {row[name + '_se']:.{digits}f}"
    accepted = f"{mean(row['acceptance'].values()):.2f}" if row["acceptance"] else "-"
    return [row["method"], row["verdict"], number("passes", 0),
            number("step_acceleration", 1, "x"), number("wall_clock_acceleration", 1, "x"),
            accepted, number("caption_accuracy", 3), number("object_accuracy", 3),
            number("nll", 3), number("entropy", 2), number("frechet", 1),
            f"{100 * row['identical_tokens']:.0f} %"]


# The table


def run(args: argparse.Namespace) -> str:
    """Measure the table, write its files and return its text."""
    if not args.no_plots:
        require_matplotlib()  # before hours of decoding
    backbone = load_backbone(args.backbone, dtype=args.dtype)
    heads = None if args.heads == "none" else load_heads(args.heads, backbone)
    trial = Trial(backbone, args.prompts or PROMPTS, args.batch, Sampling(seed=args.seed))
    bench = Bench.of(trial, heads, args.runs)
    wanted = entries([float(one) for one in args.temperatures.split(",") if one])
    reasons = {entry: bench.refused(entry) for entry in wanted}
    found = bench.all([entry for entry in wanted if reasons[entry] is None])
    left_out = [f"{entry.label(backbone)}: {why}" for entry, why in reasons.items() if why]
    return written(bench, measured(bench, found), found, left_out, not args.no_plots)


def written(bench: Bench, rows: list[dict], found: Mapping[Entry, Decoded],
            left_out: Sequence[str], plots: bool) -> str:
    """Write table, rows, sheet and plots; return the text."""
    backbone = bench.trial.backbone
    shown = [(f"{row['method']}, {row['verdict']}, {row['passes']:.0f} passes",
              decoded.tokens[:SHOWN].to(backbone.device))
             for row, decoded in zip(rows, found.values(), strict=True)]
    with written_whole(RESULTS / "methods.jpg") as temporary:
        sheet(backbone, shown).save(temporary, format="JPEG", quality=85)
    (RESULTS / "methods.json").write_text(json.dumps(rows, indent=1) + "\n")
    pictures = [f"![{SHOWN} of the captions](methods.jpg)"]
    if plots:
        for name, key, unit in (("passes", "passes", "forward passes"),
                                ("seconds", "seconds_each", "seconds a picture")):
            plot(rows, key, unit, RESULTS / f"methods-{name}.png")
            pictures.append(f"![Claims obeyed against {unit}](methods-{name}.png)")
    text = page(bench, rows, left_out, pictures)
    (RESULTS / "methods.md").write_text(text, encoding="utf-8")
    return text


def page(bench: Bench, rows: list[dict], left_out: Sequence[str], pictures: Sequence[str]) -> str:
    trial = bench.trial
    dtype = str(trial.backbone.dtype).removeprefix("torch.")
    gone = "".join(f"\nLeft out: {one}.\n" for one in left_out)
    return (f"# {TITLE}\n\n{conditions(trial.backbone.device)}; {len(trial.captions)} held-out "
            f"captions, {dtype}, guidance {trial.backbone.preset.cfg:g}, temperature 1 unless T is "
            f"given, seeds from {trial.sampling.seed}, batches of {trial.batch}, ± one standard "
            "error. `faster` compares the seconds of batches with AR's in the same run and at the "
            "same temperature. Other columns: [README.md](README.md).\n\n"
            f"{table(HEAD, [line(row) for row in rows])}{gone}\n" + "\n\n".join(pictures) + "\n")
