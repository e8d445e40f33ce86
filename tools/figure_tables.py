"""The measured cells of tables: the README's, and those of speed, quality and things in results.md.

Their rows, their columns and all words are written by hand; the figures are those that the
benchmarks wrote into lab/benchmarks/results/.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from statistics import fmean

from method_tables import rows_of

ROOT = Path(__file__).resolve().parents[1]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "results.md"
RESULTS = ROOT / "lab" / "benchmarks" / "results"
INT8 = "int8"  # the dtype that `auto` picks on a processor with VNNI
FASTER = ("against our fastest AR", "faster than AR")  # the latter in a page of before
Row = dict[str, str]  # a row's cells by their headings
# {quality in the README: its row of postcard.json and of speed.md}
QUALITIES = {"Reference (`ar`)": ("AR", "AR"),
             "Faithful (`exact`), the default": ("exact, window 48", "exact"),
             "Balanced (`rolling`)": ("rolling, 1/8 of AR's passes",) * 2,
             "Fast (`rolling`)": ("rolling, 1/12 of AR's passes",) * 2,
             "`ssd`, r = 2: the paper's": ("SSD r = 2",) * 2}


def measured(name: str, label: str = "method") -> dict[str, dict]:
    """The rows of a JSON of results by their labels."""
    rows = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return {row[label]: row for row in rows}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def measured_speed(name: str) -> dict[str, dict[str, Row]]:
    """{dtype: {decoding: its row}} of a page that lab/benchmarks/speed.py wrote."""
    found: dict[str, dict[str, Row]] = {}
    for section in (RESULTS / f"{name}.md").read_text(encoding="utf-8").split("\n## In ")[1:]:
        dtype, _, body = section.partition("\n")
        if "| decoding | passes |" in body:
            before, rows, _ = rows_of(body, "| decoding | passes |")
            found[dtype] = {cells(row)[0]: with_headings(before, row) for row in rows}
    return found


def with_headings(before: str, row: str) -> Row:
    """before: the text up to the row's table, which ends with its head and a line of dashes."""
    return dict(zip(cells(before.splitlines()[-2]), cells(row), strict=True))


QUALITY, SPEED = measured("postcard"), measured_speed("speed")
METHODS = measured("methods")
NAMES = {"janus": "Janus-Pro", "lumina": "Lumina-mGPT"}
STAND_IN = json.loads((RESULTS / "stand_in.json").read_text(encoding="utf-8"))
# {decoding in results.md: its row of stand_in.json and of methods.json}
LARGE = {"`sjd`, as first published": ("sjd, as first published", None),
         "`sjd`, as SJD-PAC": ("sjd, as SJD-PAC", "sjd"),
         "`gsd`": (None, "gsd"), "`exact` (SCD)": ("exact", "exact"),
         "`wave` (PJD)": ("wave", "wave"),
         "`wave`, 1 cell (ZipAR)": ("wave, 1 cell (ZipAR)", None),
         "`ssd`, its paper's settings": ("ssd, the paper's", "ssd r=2"),
         "`rows`": ("rows", "rows r=2"),
         "*Balanced*: `rolling`, 1/8": ("rolling, 1/8", QUALITIES["Balanced (`rolling`)"][0]),
         "*Fast*: `rolling`, 1/12": ("rolling, 1/12", QUALITIES["Fast (`rolling`)"][0])}
THINGS = measured("things", "pictures")


def rounded(value: str, digits: int) -> str:
    """As a person rounds: 8.35 to 8.4."""
    return str(Decimal(value).quantize(Decimal(10) ** -digits, ROUND_HALF_UP))


def faster(row: Row) -> str:
    """How many times faster than AR, as speed.md has it."""
    return next(row[column] for column in FASTER if column in row)


def mean(row: dict, key: str, digits: int) -> str:
    return f"{row[key]:.{digits}f} ± {row[f'{key}_se']:.{digits}f}"


def passes(row: dict) -> str:
    """The mean with one standard error, or a count that never varies."""
    spread = row["passes_se"]
    return f"{row['passes']:.0f}" + (f" ± {max(1, spread):.0f}" if spread else "")


def quality(shown: Row) -> Row:
    row = QUALITY[shown["decoding"]]
    return {"passes": passes(row), "NLL": mean(row, "nll", 2),
            "captions": mean(row, "caption_accuracy", 2),
            "objects": mean(row, "object_accuracy", 2), "Frechet": mean(row, "frechet", 1),
            "same tokens as AR": f"{row['identical_tokens'] * 100:.0f} %"}


def speed(shown: Row) -> Row:
    """Behind passes a column for each dtype: times faster than AR, for AR itself seconds."""
    name, dtypes = shown["decoding"], [heading for heading in shown if heading in SPEED]
    if name == "AR, seconds":
        return {dtype: rounded(SPEED[dtype]["AR"]["seconds"], 2) for dtype in dtypes}
    row = SPEED[INT8][name]
    return {"passes": row["passes"], "fewer passes": rounded(row["fewer passes than AR"], 1),
            **{dtype: rounded(faster(SPEED[dtype][name]), 1) for dtype in dtypes}}


def qualities(shown: Row) -> Row:
    picture, clock = QUALITIES[shown["quality"]]
    row = SPEED[INT8][clock]
    return {"passes": row["passes"], "seconds": rounded(row["seconds"], 2),
            "times faster": rounded(faster(row), 1),
            "captions obeyed": f"{QUALITY[picture]['caption_accuracy']:.2f}"}


def things(shown: Row) -> Row:
    row = THINGS[shown["pictures"]]
    return {"phrases": str(row["phrases"]), "IoU": mean(row, "iou", 2),
            "click: right thing": mean(row, "right", 2), "wrong thing": mean(row, "wrong", 3)}


def compared(ar: float, own: float, above: float) -> str:
    """Times fewer passes, and NLL above AR's; below it where likely tokens are preferred."""
    return f"{ar / own:.1f} ({round(above, 2) + 0:+.2f})"


def on_stand_ins(name: str, label: str) -> str:
    """As `compared`, with the distance by ranks; the range of other structures where it differs."""
    found = [rows for key, rows in STAND_IN.items() if key.partition(",")[0] == name]
    figures = {
        "{:.1f}": [fmean(rows["ar"]["passes"]) / fmean(rows[label]["passes"]) for rows in found],
        "{:+.2f}": [fmean(rows[label]["nll_above"]) + 0 for rows in found],
        "{:.3f}": [rows[label]["apart"] for rows in found]}
    shown = []
    for form, values in figures.items():
        own, least, most = (form.format(value) for value in (values[0], min(values), max(values)))
        shown.append(own if least == most else f"{own} [{least} to {most}]")
    return "{} ({}; {})".format(*shown)


def large(shown: Row) -> Row:
    """Of the stand-ins like large models, and of postcard."""
    label, here = LARGE[shown["decoding"]]
    own = {}
    for name, words in NAMES.items():
        if label is not None:
            own[f"like {words}"] = on_stand_ins(name, label)
    if here is not None:
        table, reference = (METHODS, "ar") if here in METHODS else (QUALITY, "AR")
        ar, row = table[reference], table[here]
        own["`postcard`"] = compared(ar["passes"], row["passes"], row["nll"] - ar["nll"])
    return own


def filled(text: str, head: str, figures: Callable[[Row], Row]) -> str:
    """A page whose table with this head has today's figures."""
    before, rows, after = rows_of(text, head)
    shown = [with_headings(before, row) for row in rows]
    lines = [f"| {' | '.join({**row, **figures(row)}.values())} |\n" for row in shown]
    return before + "".join(lines) + after


def pages() -> dict[Path, str]:
    results = PAGE.read_text(encoding="utf-8")
    results = filled(results, "| decoding | passes | fewer passes |", speed)
    results = filled(results, "| decoding | passes | NLL |", quality)
    results = filled(results, "| pictures | phrases | IoU |", things)
    results = filled(results, "| decoding | published |", large)
    readme = README.read_text(encoding="utf-8")
    return {PAGE: results, README: filled(readme, "| quality | the picture |", qualities)}
