"""Quality against cost: many settings of the methods on the same prompts, for tables and plots.

Cost is given as forward passes, as seconds of one picture on this machine (every method with its
best number of threads), and as modelled seconds on a card. In the model a pass takes the longer of
its launches and reading the weights; a draft takes as long as reading the drafter's weights. The
number of passes is measured here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ssd_core.engine.heads import DraftHeads
from ssd_core.engine.methods import AR, SJD, SSD, Exact, Method, Rolling, Rows, Wave
from ssd_core.files import atomic_write
from ssd_core.measure.bench import Entrant, bench, in_words
from ssd_core.measure.tables import table, with_error, write_with_rows
from ssd_core.output.drawing import Drawing
from ssd_core.runs.request import Request
from ssd_core.weights.cards import roofline

from .metrics import Decoded, with_errors
from .plots import CLAIMS, plot
from .shards import Entry, Shards

BUDGETS = (32, 40, 48, 64, 77, 100)
WINDOWS = (24, 48, 96)
ROUNDS = (0, 1, 2, 3)
PAPER = (AR(), *(SSD(k_h=5, k_v=1, rounds=r) for r in ROUNDS))


@dataclass(frozen=True)
class LoadedCard:
    """A backbone on a card: bytes of weights that a pass reads, launches of a pass."""

    name: str
    bandwidth: float  # bytes a second that copying reaches
    weights: float  # bytes
    ar_launches: int
    other_launches: int
    draft_shares: Mapping[str, float]  # {drafter: bytes that a draft reads, as a share of a pass}

    def seconds(self, passes: float, entry: Entry, rows: int) -> float:
        """Modelled seconds of a picture of `rows` rows in `passes` passes."""
        launches = self.ar_launches if entry.name == AR.name else self.other_launches
        reading = self.weights / self.bandwidth
        drafter, drafts = drafting(entry, passes, rows)
        return (passes * roofline(launches, reading)
                + drafts * self.draft_shares.get(drafter, 0.0) * reading)


# Launches as counted for one picture with guidance, without graphs: results/launches.md. Shares as
# computed from the weights: docs/methods.md.
JANUS_7B = (13.8e9, 399, 439, {"heads": 0.04, "row": 0.08})
CARDS = (LoadedCard("Janus-Pro-7B, RTX 4090", 1.0e12, *JANUS_7B),
         LoadedCard("Janus-Pro-7B, H200", 4.6e12, *JANUS_7B))
CARRIED = 0.3  # bytes read to propagate a change, as a share of a draft by the row drafter


def drafting(entry: Entry, passes: float, rows: int) -> tuple[str, float]:
    """Return the drafter of a resolved method, and its number of drafts in a picture.

    SSD drafts once per block; other methods with a drafter draft in every pass.
    """
    method = entry.method
    if not entry.heads or not method.uses_heads:
        return "", 0.0
    drafter = getattr(method, "drafter", "heads")
    if isinstance(method, SSD):
        assert method.k_v is not None  # the method is resolved
        return drafter, rows / method.k_v
    return drafter, passes * (1 + CARRIED * (drafter == "row"))


def entries(heads: DraftHeads | None) -> list[Entry]:
    """Return AR, the paper's settings, and all other settings that these heads allow."""
    drafters = [] if heads is None else ["heads"] * (heads.k_v > 0) + ["row"] * (
        heads.row is not None)
    paper = PAPER[1:] if "heads" in drafters else ()
    by_row = by_row_drafter() if "row" in drafters else ()
    return [Entry(PAPER[0], False), *map(Entry, paper), *map(Entry, by_row),
            *(Entry(method, False) for method in [*windows("heads"), *headless()]),
            *(Entry(method) for drafter in drafters for method in windows(drafter))]


def by_row_drafter() -> list[Method]:
    """Return SSD with the row drafter, with and without fused commits."""
    plain = [SSD(k_v=1, rounds=r, drafter="row") for r in ROUNDS]
    return [*plain, *(SSD(k_v=1, rounds=r, drafter="row", fused_commit=True) for r in ROUNDS[1:])]


def windows(drafter: str) -> list[Method]:
    return [*(Exact(window, drafter) for window in WINDOWS),
            *(Rolling(budget=budget, drafter=drafter) for budget in BUDGETS)]


def headless() -> list[Method]:
    return [Rows(k_v=1, rounds=1), Rows(k_v=1, rounds=2), Wave(4, 1), Wave(9, 8), SJD(window=48)]


def is_paper(entry: Entry) -> bool:
    """Whether this is AR or a setting of the paper."""
    return entry.method in PAPER


def front(rows: Sequence[dict], cost: str) -> list[str]:
    """Labels of the Pareto front: no other row obeys more claims at the same cost or less."""
    best, labels = -1.0, []
    for row in sorted(rows, key=lambda row: (row[cost], -row["caption_accuracy"])):
        if row["caption_accuracy"] > best:
            best = row["caption_accuracy"]
            labels.append(row["method"])
    return labels


# The page


HEAD = ["decoding", "guarantee", "passes", "claims", "objects", "NLL", "same as AR"]
HERE = "seconds of one picture here (at its best)"  # only where pictures were timed
MODELLED = [f"modelled: {card.name}" for card in CARDS]
AXES = (("passes", "passes", "forward passes"),
        ("seconds", "median_seconds", "seconds of one picture"),
        ("card", "card_seconds", f"modelled seconds a picture ({CARDS[0].name})"))
QUALITIES = (("claims", CLAIMS), ("nll", ("nll", "NLL under the backbone, nats a token")),
             ("objects", ("object_accuracy", "share of things with kind, colour and place right")),
             ("same", ("identical_tokens", "share of tokens that are AR's")))


def add_modelled_seconds(measured: Sequence[tuple[Entry, dict]], rows: int) -> list[dict]:
    """Add to the measured keys `modelled`, seconds by card, and `card_seconds` for plots.

    rows: number of rows of a picture.
    """
    out = []
    for entry, row in measured:
        seconds = {card.name: card.seconds(row["passes"], entry, rows) for card in CARDS}
        first = seconds[CARDS[0].name]
        upper = CARDS[0].seconds(row["passes"] + row["passes_se"], entry, rows)
        out.append({**row, "modelled": seconds, "card_seconds": first,
                    "card_seconds_se": upper - first})
    return out


def timed(shards: Shards, entries: Sequence[Entry], repeats: int) -> list[dict]:
    """Time one picture of every entry in interleaved runs; return seconds and threads.

    repeats 0: measures nothing and returns None for both.
    """
    if not repeats:
        return [{"median_seconds": None, "threads": None} for _ in entries]
    trial = shards.trial
    rows = bench([Entrant(shards.label(entry), Request(
                      trial.backbone, shards.heads_for(entry),
                      Drawing(trial.captions[0], None, entry.method, shards.sampling(entry)),
                      fall_back=False))
                  for entry in entries], repeats)
    return [{"median_seconds": row["median_seconds"], "threads": row["threads"],
             "median_seconds_se": with_errors({"s": row["all_seconds"]})["s_se"]} for row in rows]


def was_timed(rows: Sequence[dict]) -> bool:
    """Whether pictures were timed. The rows of a table are either all timed or none of them."""
    return rows[0]["median_seconds"] is not None


def seconds_of(row: dict) -> list[str]:
    """Such as ["0.33 (2 threads)"]; nothing of a row that was not timed."""
    if not was_timed([row]):
        return []
    return [f"{row['median_seconds']:.2f} ({in_words(row['threads'])})"]


def line(row: dict) -> list[str]:
    number = partial(with_error, row)
    same = f"{100 * row['identical_tokens']:.0f} %"
    return [row["method"], row["guarantee"], number("passes", 0), number("caption_accuracy", 3),
            number("object_accuracy", 3), number("nll", 3), same, *seconds_of(row),
            *(f"{seconds:.2f}" for seconds in row["modelled"].values())]


def page(rows: Sequence[dict], about: str, plots: Sequence[str]) -> str:
    """Return Markdown with the table, the Pareto front by passes and the plots."""
    best = ", ".join(front(rows, "passes"))
    pictures = "\n\n".join(f"![{name}]({name})" for name in plots)
    here = [HERE] if was_timed(rows) else []
    seconds = ("Seconds are of one picture, medians of interleaved runs, each method with the "
               "number of threads that is best for it; `ssd bench` compares them with the fastest "
               "AR. ") if here else ""
    return (f"# Quality against cost\n\n{about} ± one standard error. {seconds}Modelled seconds "
            "are for the passes counted here by another backbone: a pass takes the longer of its "
            "launches (5 microseconds each) and reading the weights, a draft as long as reading "
            "the drafter and the image head. Rings mark AR and the paper's own settings.\n\n"
            f"{table([*HEAD, *here, *MODELLED], [line(row) for row in rows])}\n"
            f"No other setting obeys more claims in as few passes: {best}.\n\n{pictures}\n")


def write(shards: Shards, decoded: Mapping[Entry, Decoded], seconds: Sequence[dict], out: Path,
          about: str, plots: bool = True) -> list[dict]:
    """Write the page, its rows as JSON and the plots into `out`; return the rows.

    seconds: as `timed` returns them.
    """
    backbone = shards.trial.backbone
    resolved = [replace(entry, method=entry.method_on(backbone)) for entry in decoded]
    measured = [(entry, {**row, **took}) for entry, row, took
                in zip(resolved, shards.measured(decoded), seconds, strict=True)]
    rows, drawn = add_modelled_seconds(measured, backbone.grid.rows), []
    paper = {shards.label(entry) for entry in decoded if is_paper(entry)}
    for name, cost, unit in AXES if plots else ():
        if name == "seconds" and not was_timed(rows):
            continue
        labelled = paper | set(front(rows, cost))
        for quality, axis in QUALITIES:
            drawn.append(f"frontier-{quality}-{name}.png")
            with atomic_write(out / drawn[-1]) as temporary:
                plot(rows, cost, unit, temporary, axis, labelled, paper)
    write_with_rows(out, "frontier", page(rows, about, drawn), rows)
    return rows
