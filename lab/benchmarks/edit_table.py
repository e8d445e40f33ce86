"""The table and the contact sheet of edits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from conditions import RESULTS, page_of, table
from edit_cases import SCENES
from edit_sheet import save_sheet

from ssd_core.backbones.base import Backbone
from ssd_core.measure.tables import with_error, write_with_rows
from ssd_lab.evaluate.metrics import with_errors

BEFORE, AR, ANEW = "the picture before", "AR, drawn anew", "`exact`, drawn anew with the same seed"
WORDS, BOX, ISLOCK = "**edit by words**", "region: the thing's own box", "ISLock's rule"
LOCAL, WHOLE = ("colour", "kind", "add", "remove"), ("time", "weather", "ground")
HEAD = ["edit", "drawn by", "claims", "change shows", "tokens kept", "things stay",
        "PSNR outside, dB", "passes", "seconds", "of AR's time"]
CLOSE = 0.03  # claims may be so far below those of AR
MEASURED = ("claims", "done", "kept", "passes", "seconds")


@dataclass(frozen=True)
class Aim:
    """What edits by words of a kind should reach at least (tokens, stay) or at most (passes)."""

    passes: int
    tokens: float = 0.0
    stay: float = 0.0

    def missed(self, row: Mapping, ar: Mapping) -> list[str]:
        """What a row of the table lacks, beside the row of AR."""
        least = {"claims": ar["claims"] - CLOSE, "kept": self.tokens, "stay": self.stay}
        missed = [f"{NAMES[name]} {row[name]:.2f}, aim {value:.2f}"
                  for name, value in least.items() if value and row[name] < value]
        if row["passes"] > self.passes:
            missed.append(f"{row['passes']:.0f} passes, aim {self.passes}")
        return missed


NAMES = {"claims": "claims", "kept": "tokens kept", "stay": "things stay"}
AIMS = {**{kind: Aim(20, tokens=0.9) for kind in LOCAL},
        **{kind: Aim(80, stay=0.9 if kind == "ground" else 0.95) for kind in WHOLE}}


def rows_of(edits: Sequence[Mapping]) -> list[dict]:
    """A row for each kind of edits and way to make them."""
    rows = []
    for kind in dict.fromkeys(edit["kind"] for edit in edits):
        own = [edit["ways"] for edit in edits if edit["kind"] == kind]
        ar = mean(ways[AR]["seconds"] for ways in own)
        rows += [row_of(kind, way, [ways[way] for ways in own], ar) for way in own[0]]
    return rows


def row_of(kind: str, way: str, edits: Sequence[Mapping], ar_seconds: float) -> dict:
    """Means with errors. ar_seconds: of AR, for the same edits."""
    values = {name: [float(edit[name]) for edit in edits] for name in MEASURED}
    stay = [edit["stay"] for edit in edits if edit["stay"] is not None]
    row = {"kind": kind, "way": way, "edits": len(edits), **with_errors(values),
           **with_errors({"stay": stay} if stay else {})}
    if kind not in SCENES:
        row["psnr"] = psnr(mean(edit["error"] for edit in edits))
    return {**row, "of_ar": row["seconds"] / ar_seconds}


def psnr(error: float) -> float | None:
    """In dB, of a mean square error of pixels in 0..1; None if there is none."""
    return None if error == 0 else -10 * math.log10(error)


def line(row: Mapping) -> list[str]:
    drawn = row["way"] != BEFORE
    outside = "-" if "psnr" not in row or not drawn else "equal" if row["psnr"] is None else (
        f"{row['psnr']:.1f}")
    return [row["kind"], row["way"], with_error(row, "claims", 2), with_error(row, "done", 2),
            with_error(row, "kept", 2) if drawn else "-",
            with_error(row, "stay", 2) if drawn and "stay" in row else "-", outside,
            *([f"{row['passes']:.0f}", f"{row['seconds']:.2f}", f"{row['of_ar']:.2f}"]
              if drawn else ["-"] * 3)]


def aims(rows: Sequence[Mapping]) -> str:
    """A line for each kind: whether edits by words reach what they should."""
    of = {(row["kind"], row["way"]): row for row in rows}
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        if kind in AIMS:
            missed = AIMS[kind].missed(of[kind, WORDS], of[kind, AR])
            lines.append(f"- {kind}: {'; '.join(missed) or 'met'}")
    return "\n".join([f"Aims of edits by words (claims at most {CLOSE} below AR's, tokens kept or "
                      "things in place, passes):\n", *lines]) if lines else ""


def write(name: str, backbone: Backbone, edits: Sequence[Mapping], where: str) -> str:
    """Write NAME.md, NAME.json and the sheet NAME.webp into the folder of results."""
    rows = rows_of(edits)
    save_sheet(backbone, edits, RESULTS / f"{name}.webp")
    text = page_of(
        "Edits", f"{where}, ± one standard error over edits. Made by `python lab/benchmarks/run.py "
        "edit`. Columns: [README.md](README.md).", table(HEAD, [line(row) for row in rows]),
        aims(rows), f"![Edits in every way]({name}.webp)")
    write_with_rows(RESULTS, name, text, rows)
    return text
