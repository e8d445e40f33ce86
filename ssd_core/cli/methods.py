"""`ssd methods`: list the decoding methods with their guarantees."""

from __future__ import annotations

from ..engine.methods import METHODS
from ..output.guarantees import GUARANTEES, heads_use
from ..output.knobs import visible_knobs
from .options import Json
from .output import Reporter

COLUMNS = {"method": "method", "the picture is": "guarantee", "draft heads": "heads",
           "knobs": "knobs"}


def command(json: Json = False) -> None:
    """List the methods, what their pictures guarantee, and their knobs."""
    report = Reporter(json)
    rows = [{"method": name, "guarantee": METHODS[name].guarantee, "heads": heads_use(name),
             "knobs": [knob.name for knob in visible_knobs(METHODS[name])]} for name in METHODS]
    report.table(COLUMNS, [{**row, "knobs": ", ".join(row["knobs"]) or "-"} for row in rows])
    for guarantee, meaning in GUARANTEES.items():
        if any(row["guarantee"] == guarantee for row in rows):
            report.print(f"{guarantee}: {meaning}")
    report.result({"results": rows})
