"""`ssd frontier`: quality against cost, many settings of the methods on many prompts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..engine.methods import AR, SSD
from ..errors import SSDError
from .options import Drawing, Json, Loading, flag
from .output import Reporter, note
from .session import conditions, load
from .specs import parse_methods

COLUMNS = {"method": "method", "passes": "passes", "claims": "caption_accuracy",
           "objects": "object_accuracy", "nll": "nll", "same as ar": "identical_tokens",
           "s/picture": "seconds_each", "s on a card": "card_seconds"}


@dataclass(frozen=True)
class Sweep:
    """Measurement."""

    out: Path = flag(Path("runs/frontier"), "Folder for table, plots and the batches done so far.")
    methods: str = flag("", "Only these beside AR, separated by commas; knobs as in ssd:rounds=1. "
                            "Default: the whole sweep.")
    prompts: int = flag(256, "Number of held-out captions.")
    batch: int = flag(32, "Pictures per batch.")
    plots: bool = flag(True, "Draw plots (needs matplotlib).")


def command(sweep: Sweep, drawing: Drawing, loading: Loading, json: Json = False) -> None:
    """Sweep methods and knobs; an interrupted run goes on where it was."""
    from ..measure.evaluate import Trial
    from ..measure.frontier import entries, write
    from ..measure.plots import require_matplotlib
    from ..measure.shards import Entry, Shards

    report, sampling = Reporter(json), drawing.sampling()
    if sweep.prompts < 1 or sweep.batch < 1:
        raise SSDError("prompts and batch must be at least 1")
    if sweep.plots:
        require_matplotlib()  # before hours of decoding
    backbone, heads = load(loading, [SSD()])
    trial = Trial(backbone, sweep.prompts, sweep.batch, sampling)
    shards = Shards.of(trial, heads, sweep.out / "batches")
    only = [Entry(method) for _, method in parse_methods(sweep.methods)] if sweep.methods else []
    wanted = [Entry(AR(), False), *only] if only else entries(heads)
    for entry in wanted:
        if reason := shards.refused(entry):
            note(f"left out: {shards.label(entry)}: {reason}")
            wanted = [one for one in wanted if one != entry]
    where = conditions(backbone)
    about = (f"{', '.join(f'{key} {value}' for key, value in where.items())}; {sweep.prompts} "
             f"held-out captions, batches of {sweep.batch}, seeds from {sampling.seed};")
    rows = write(shards, shards.all(wanted, note), sweep.out, about, sweep.plots)
    report.table(COLUMNS, rows)
    report.say(f"{sweep.out / 'frontier.md'}")
    report.result({"results": rows, **where})
