"""`ssd evaluate`: measure the quality of methods' pictures, or draw a paper's benchmark."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from ssd_core.cli.options import Canvas, Json, Knobs, Loading, SamplingOptions, flag, takes_groups
from ssd_core.cli.output import Reporter, note
from ssd_core.cli.session import conditions, load_for
from ssd_core.cli.specs import parse_methods
from ssd_core.errors import SSDError
from ssd_core.files import user_path
from ssd_core.output.knobs import check_pictures
from ssd_core.runs.batch.workers import WorkerOptions, crew_of

from ..evaluate.quality import evaluate
from . import score, suite

COLUMNS = {name.replace("_", " "): name for name in (
    "method", "prompts", "passes", "caption_accuracy", "object_accuracy", "nll", "entropy",
    "frechet", "identical_tokens")}
BATCH = 16
METHODS = "ar,mtp,strict,rows,exact,ssd:rounds=0,ssd:rounds=1,ssd:rounds=2,ssd:rounds=3"


@dataclass(frozen=True)
class EvaluateOptions:
    """Measurement."""

    methods: str | None = flag(None, "Separated by commas; knobs as in ssd:rounds=1. Default: "
                                     f"{METHODS}.")
    prompts: str = flag("64", "Number of held-out captions; with --suite, the suite's file or "
                              "folder of prompts.")
    batch: int | None = flag(None, f"Pictures per batch. Default: {BATCH}; for a suite up to 8, as "
                                   "memory allows.")
    out: Path | None = flag(None, "Folder for the batches, or the suite's pictures: a stopped "
                                  "run is resumed there, and more methods or prompts draw only "
                                  "what is missing. Default: nothing is saved.")

    def __post_init__(self) -> None:
        if self.batch is not None:
            check_pictures(self.batch, "batch")

    @property
    def count(self) -> int:
        if not (self.prompts.isascii() and self.prompts.isdecimal() and int(self.prompts)):
            raise SSDError(f"prompts {self.prompts!r}: give the number of captions, at least 1; a "
                           "file of prompts goes with --suite")
        return int(self.prompts)


def command(ctx: typer.Context, trial: EvaluateOptions, benchmark: suite.Suite, canvas: Canvas,
            knobs: Knobs, drawing: SamplingOptions, workers: WorkerOptions, loading: Loading,
            json: Json = False) -> None:
    """Measure methods on held-out postcards, or draw a benchmark's prompts for its scorer."""
    if ctx.invoked_subcommand is not None:
        return
    if benchmark.suite is None:
        require_none({**asdict(benchmark), **asdict(canvas), "method": knobs.method,
                      **knobs.knobs})
        measure(trial, drawing, workers, loading, Reporter(json))
    elif trial.methods is not None:
        raise SSDError("--methods is for a table; a suite is drawn by one method: give --method")
    elif trial.out is None:
        raise SSDError("--suite needs --out: the folder for its pictures")
    else:
        place = suite.SuitePaths(user_path(trial.prompts), trial.out, trial.batch)
        suite.draw(benchmark, canvas, place, knobs, drawing, workers, loading, Reporter(json))


def require_none(flags: dict[str, object]) -> None:
    """Raise SSDError if a flag is set that only a suite has."""
    for name, value in flags.items():
        if value is not None:
            raise SSDError(f"--{name.replace('_', '-')} goes with --suite; name methods and their "
                           "knobs by --methods, as in ssd:rounds=1")


def measure(trial: EvaluateOptions, drawing: SamplingOptions, workers: WorkerOptions,
            loading: Loading, report: Reporter) -> None:
    """Caption accuracy, NLL, entropy and tokens equal to AR's, as a table."""
    count, sampling = trial.count, drawing.sampling()
    methods = parse_methods(trial.methods or METHODS)
    loaded, models = load_for(workers, loading, [method for _, method in methods])
    with crew_of(workers, loaded, models, note) as crew:
        note(f"{count} pictures by each of {', '.join(label for label, _ in methods)}")
        rows = evaluate(loaded.backbone, loaded.heads, methods, count, trial.batch or BATCH,
                        sampling, trial.out, crew)
        where = conditions(loaded.backbone, crew.place)
    report.table(COLUMNS, rows)
    report.result({"results": rows, **where})


app = typer.Typer(add_completion=False)
app.callback(invoke_without_command=True)(takes_groups(command))
app.command("score")(takes_groups(score.command))
