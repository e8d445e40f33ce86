"""`ssd evaluate`: measure the quality of methods' pictures over many prompts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import SSDError
from ..workers.open import crew_of
from .options import Drawing, Json, Loading, Workers, flag
from .output import Reporter, note
from .session import conditions, load_for
from .specs import parse_methods

COLUMNS = {name.replace("_", " "): name for name in (
    "method", "prompts", "passes", "caption_accuracy", "object_accuracy", "nll", "entropy",
    "frechet", "identical_tokens")}


@dataclass(frozen=True)
class Trial:
    """Measurement."""

    methods: str = flag("ar,mtp,strict,rows,exact,ssd:rounds=0,ssd:rounds=1,ssd:rounds=2,"
                        "ssd:rounds=3", "Separated by commas; knobs as in ssd:rounds=1.")
    prompts: int = flag(64, "Number of held-out captions.")
    batch: int = flag(16, "Pictures per batch.")
    out: Path | None = flag(None, "Folder that keeps the batches: a stopped run goes on there, and "
                                  "more methods or prompts draw only what is missing. Default: "
                                  "nothing is kept.")


def command(trial: Trial, drawing: Drawing, workers: Workers, loading: Loading,
            json: Json = False) -> None:
    """Measure caption accuracy, NLL, entropy and tokens equal to AR's."""
    from ..measure.evaluate import evaluate

    report, sampling, methods = Reporter(json), drawing.sampling(), parse_methods(trial.methods)
    if trial.prompts < 1 or trial.batch < 1:
        raise SSDError("prompts and batch must be at least 1")
    loaded, models = load_for(workers, loading, [method for _, method in methods])
    with crew_of(workers.wanted(), loaded, models, note) as crew:
        note(f"{trial.prompts} pictures by each of {', '.join(label for label, _ in methods)}")
        rows = evaluate(loaded.backbone, loaded.heads, methods, trial.prompts, trial.batch,
                        sampling, trial.out, crew)
        where = conditions(loaded.backbone, crew.place)
    report.table(COLUMNS, rows)
    report.result({"results": rows, **where})
