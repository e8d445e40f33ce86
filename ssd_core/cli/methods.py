"""`ssd methods`: list the decoding methods with their guarantees."""

from __future__ import annotations

from ..engine.methods import METHODS
from ..output.guarantees import GUARANTEES, heads_use
from ..output.knobs import visible_knobs
from .options import Json
from .output import Reporter

COLUMNS = {"method": "method", "the picture is": "promise", "draft heads": "heads",
           "knobs": "knobs"}


def command(json: Json = False) -> None:
    """List the methods, what their pictures promise, and their knobs."""
    report = Reporter(json)
    rows = [{"method": name, "promise": METHODS[name].verdict, "heads": heads_use(name),
             "knobs": [knob.name for knob in visible_knobs(METHODS[name])]} for name in METHODS]
    report.table(COLUMNS, [{**row, "knobs": ", ".join(row["knobs"]) or "-"} for row in rows])
    for verdict, meaning in GUARANTEES.items():
        if any(row["promise"] == verdict for row in rows):
            report.print(f"{verdict}: {meaning}")
    report.result({"results": rows})
