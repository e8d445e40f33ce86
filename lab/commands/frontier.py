"""`ssd frontier`: quality against cost, for many settings of the methods and many prompts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssd_core.cli.options import Json, Loading, SamplingOptions, flag
from ssd_core.cli.output import Reporter, note
from ssd_core.cli.session import conditions, load_for, machine
from ssd_core.cli.specs import parse_methods
from ssd_core.engine.methods import AR, SSD
from ssd_core.errors import SSDError
from ssd_core.measure.machine import OtherWork
from ssd_core.output.knobs import check_pictures
from ssd_core.runs.batch.workers import WorkerOptions, crew_of

from ..evaluate.frontier import entries, timed, write
from ..evaluate.metrics import Trial, require_postcards
from ..evaluate.plots import require_matplotlib
from ..evaluate.shards import Entry, Shards

COLUMNS = {"method": "method", "passes": "passes", "claims": "caption_accuracy",
           "objects": "object_accuracy", "nll": "nll", "same as ar": "identical_tokens",
           "s/picture": "median_seconds", "threads": "threads", "s on a card": "card_seconds"}


@dataclass(frozen=True)
class FrontierOptions:
    """Measurement."""

    out: Path = flag(Path("runs/frontier"), "Folder for table, plots and finished batches.")
    methods: str = flag("", "Only these besides AR, separated by commas; knobs as in ssd:rounds=1. "
                            "Default: the whole sweep.")
    prompts: int = flag(256, "Number of held-out captions.")
    batch: int = flag(32, "Pictures per batch.")
    repeats: int = flag(3, "Timed runs of one picture by every method and number of threads, after "
                           "the quality has been measured; 0: no seconds.")
    plots: bool = flag(True, "Draw plots (needs matplotlib).")


def command(sweep: FrontierOptions, drawing: SamplingOptions, workers: WorkerOptions,
            loading: Loading, json: Json = False) -> None:
    """Sweep methods and knobs; resumes an interrupted run."""
    report, sampling = Reporter(json), drawing.sampling()
    if sweep.prompts < 1 or sweep.batch < 1 or sweep.repeats < 0:
        raise SSDError("prompts and batch must be at least 1 and repeats at least 0")
    check_pictures(sweep.batch, "batch")
    if sweep.plots:
        require_matplotlib()  # fail before hours of decoding
    loaded, models = load_for(workers, loading, [SSD()])
    backbone, heads = loaded.backbone, loaded.heads
    require_postcards(backbone)
    with crew_of(workers, loaded, models, note) as crew:
        trial = Trial(backbone, sweep.prompts, sweep.batch, sampling)
        shards = Shards.of(trial, heads, sweep.out / "batches", crew.place)
        named = parse_methods(sweep.methods) if sweep.methods else []
        only = [Entry(method) for _, method in named]
        wanted = [Entry(AR(), False), *only] if only else entries(heads)
        for entry in wanted:
            if reason := shards.refused(entry):
                note(f"left out: {shards.label(entry)}: {reason}")
                wanted = [other for other in wanted if other != entry]
        decoded = shards.all(wanted, crew)
    here, work = backbone.device.type != "meta", OtherWork()  # on meta only workers draw
    seconds = timed(shards, list(decoded), sweep.repeats if here else 0)
    where = {**conditions(backbone, crew.place), **machine(work)}
    about = (f"{', '.join(f'{key} {value}' for key, value in where.items())}; {sweep.prompts} "
             f"held-out captions, batches of {sweep.batch}, seeds from {sampling.seed};")
    rows = write(shards, decoded, seconds, sweep.out, about, sweep.plots)
    report.table(COLUMNS, rows)
    report.print(f"{sweep.out / 'frontier.md'}")
    report.result({"results": rows, **where})
