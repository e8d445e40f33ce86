"""`ssd evaluate`: measure the quality of methods' pictures over many prompts."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import SSDError
from .options import Drawing, Json, Loading, flag
from .output import Reporter, note
from .session import conditions, load
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


def command(trial: Trial, drawing: Drawing, loading: Loading, json: Json = False) -> None:
    """Measure caption accuracy, NLL, entropy and tokens equal to AR's."""
    from ..measure.evaluate import evaluate

    report, sampling, methods = Reporter(json), drawing.sampling(), parse_methods(trial.methods)
    if trial.prompts < 1 or trial.batch < 1:
        raise SSDError("prompts and batch must be at least 1")
    backbone, heads = load(loading, [method for _, method in methods])
    rows = evaluate(backbone, heads, methods, trial.prompts, trial.batch, sampling,
                    lambda label: note(f"{label}: {trial.prompts} pictures"))
    report.table(COLUMNS, rows)
    report.result({"results": rows, **conditions(backbone)})
