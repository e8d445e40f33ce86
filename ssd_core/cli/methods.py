"""`ssd methods`: list the decoding methods with what they promise."""

from __future__ import annotations

from ..engine.methods import METHODS
from ..front.knobs import described
from ..front.promises import PROMISES, heads_use, promise
from .options import Json
from .output import Reporter

COLUMNS = {"method": "method", "the picture is": "promise", "draft heads": "heads",
           "knobs": "knobs"}


def command(json: Json = False) -> None:
    """List the methods, what their pictures promise, and their knobs."""
    report = Reporter(json)
    rows = [{"method": name, "promise": promise(name), "heads": heads_use(name),
             "knobs": [one.name for one in described(METHODS[name])]} for name in METHODS]
    report.table(COLUMNS, [{**row, "knobs": ", ".join(row["knobs"]) or "-"} for row in rows])
    for verdict, meaning in PROMISES.items():
        if any(row["promise"] == verdict for row in rows):
            report.say(f"{verdict}: {meaning}")
    report.result({"results": rows})
