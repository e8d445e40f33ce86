"""Drafts learned from one's own pictures, against the bundled ones and none.

    python lab/benchmarks/learned.py --work FOLDER          writes results/learned.md and .json

`ar` draws postcards from held-out captions; heads and row drafter learn from 50, 200 and 800 of
them as `train heads --pictures-from` does, starting from nothing; other held-out captions are drawn
with each. What lies in the folder already is not made again: pictures, drafts, measured rows.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev

import torch
from conditions import conditions, table, write_page
from script import described, options

import ssd_core
from ssd_core import load_backbone, load_heads
from ssd_core.backbones.base import Backbone
from ssd_core.backbones.postcard.words.captions import fresh_caption
from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, SSD, Exact, Method, Rolling, Rows
from ssd_core.files import write_text
from ssd_core.model.sampling import Sampling
from ssd_lab.evaluate.metrics import Trial, identical, measure

CAPTIONS = 3_000_000_000  # seeds of what is drawn to learn from, other than those that measure
NONE, BUNDLED, ASSETS = "none", "bundled", Path(ssd_core.__file__).parent / "assets" / "postcard"
WITHOUT = {"exact": Exact(), "rolling": Rolling(), "rows, r = 1": Rows(rounds=1),
           "rows, r = 2": Rows(rounds=2)}
WITH = {"exact, row drafter": Exact(drafter="row"), "rolling, row drafter": Rolling(drafter="row"),
        "ssd, r = 1": SSD(rounds=1), "ssd, r = 2": SSD(rounds=2)}
HEAD = ["method", "drafts from", "passes", "NLL above AR's", "claims held", "tokens are AR's"]
LEARNED = ["drafts from", "horizontal +1", "vertical +1", "row", "processor seconds to learn"]


def main() -> None:
    parser = options(__doc__, "learned.md")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--counts", default="50,200,800")
    parser.add_argument("--prompts", type=int, default=16)
    args = parser.parse_args()
    counts = args.counts.split(",")
    folder = draw(args.work, max(map(int, counts)))
    learned = {count: learn(args.work, folder, count) for count in counts}
    measured = rows(args.work / "rows.json", learned, args.prompts)
    about = (f"{conditions(dtype='fp32')}. {described(__doc__ or '')} {args.prompts} captions, ± "
             "one standard error; NLL in nats a token, paired with AR's picture of the same seed. "
             "Made by `python lab/benchmarks/learned.py`.")
    write_page(args.out, "Drafts from one's own pictures", about,
               table(LEARNED, [learned_line(count, result) for count, result in learned.items()]),
               table(HEAD, [line(key, row) for key, row in measured.items()]))
    write_text(args.out.with_suffix(".json"),
               json.dumps({"learned": learned, "rows": measured}, indent=1) + "\n")


def draw(work: Path, count: int) -> Path:
    """A folder with so many postcards, drawn by a copy of `postcard` without its draft heads."""
    bare, prompts = work / "bare", work / "prompts.txt"
    bare.mkdir(parents=True, exist_ok=True)
    shutil.copy(ASSETS / "backbone.safetensors", bare)
    write_text(prompts, "".join(f"{fresh_caption(CAPTIONS + i, 0)}\n" for i in range(count)))
    command("render", prompts, "--out", work / "pictures", "--method", "ar", "--backbone", bare,
            "--no-expand")
    return work / "pictures"


def learn(work: Path, pictures: Path, count: str) -> dict:
    """What `train heads` says of drafts from so many pictures, and its processor seconds."""
    out = work / f"heads-{count}"
    if not (result := out / "result.json").exists():
        before = spent()
        said = command("train", "heads", "--backbone", work / "bare", "--pictures-from", pictures,
                       "--pictures", count, "--out", out, "--kind", "both", "--device", "cpu",
                       "--json")
        write_text(result, json.dumps({**json.loads(said.splitlines()[-1]), "path": str(out),
                                     "processor_seconds": spent() - before}))
    return json.loads(result.read_text(encoding="utf-8"))


def command(*arguments: object) -> str:
    """Run `ssd` in a process of its own; what it prints."""
    return subprocess.run([sys.executable, "-m", "ssd_core", *map(str, arguments)], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def spent() -> float:
    """Processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows(file: Path, learned: Mapping[str, dict], prompts: int) -> dict[str, dict]:
    """Every row by "method, drafts"; measured rows are read from the file."""
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    backbone = load_backbone("postcard", "cpu", "fp32")
    drafts: dict[str, DraftHeads | None] = {NONE: None, **{
        count: load_heads(result["path"], backbone) for count, result in learned.items()}}
    drafts[BUNDLED] = load_heads("postcard", backbone)
    trial = Trial(backbone, prompts, prompts, Sampling())
    baseline = trial.run(AR(), None)
    likely = measure(backbone, trial.classifier, trial.captions, baseline.tokens, trial.sampling,
                     prompts)["nll"]
    for label, method, name in cases(list(drafts)):
        key = f"{label}, {name}"
        if key not in known:
            known[key] = row(backbone, trial, method, drafts[name], baseline.tokens, likely)
            write_text(file, json.dumps(known))
    return known


def cases(drafts: list[str]) -> list[tuple[str, Method, str]]:
    """(label, method, drafts) of every row."""
    return [*((label, method, NONE) for label, method in WITHOUT.items()),
            *((label, method, name) for label, method in WITH.items() for name in drafts[1:])]


def row(backbone: Backbone, trial: Trial, method: Method, heads: DraftHeads | None,
        baseline: torch.Tensor, likely: list[float]) -> dict:
    """Means over pictures, and the standard error of the NLL above AR's."""
    made = trial.run(method, heads)
    found = measure(backbone, trial.classifier, trial.captions, made.tokens, trial.sampling,
                    trial.batch)
    above = [nll - ar for nll, ar in zip(found["nll"], likely, strict=True)]
    passes = [float(count) for batch in made.stats for count in batch["passes_each"]]
    return {"passes": mean(passes), "nll_above": mean(above),
            "nll_above_se": stdev(above) / len(above)**0.5,
            "claims": mean(found["caption_accuracy"]),
            "identical": mean(identical(made.tokens, baseline))}


def line(key: str, row: Mapping[str, float]) -> list[str]:
    method, drafts = key.rsplit(", ", 1)
    return [method, f"{drafts} pictures" if drafts.isdigit() else drafts, f"{row['passes']:.1f}",
            f"{row['nll_above']:+.2f} ± {row['nll_above_se']:.2f}", f"{row['claims']:.2f}",
            f"{row['identical']:.0%}"]


def learned_line(count: str, result: Mapping) -> list[str]:
    shares = [result["acceptance"].get(name) for name in ("horizontal+1", "vertical+1", "row")]
    return [f"{count} pictures", *(f"{share:.2f}" for share in shares),
            f"{result['processor_seconds']:.0f}"]


if __name__ == "__main__":
    main()
