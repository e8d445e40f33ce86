"""One session on a card: all questions that only a card answers, in one command of ten minutes.

    python lab/benchmarks/card_session.py --out FOLDER [--only PART,...] [--seconds 570]
    python lab/benchmarks/card_session.py --tiny       (narrow layers and small grids, on a CPU)

Backbones of true size with random weights: nothing is downloaded. Parts run in the order of PARTS.
Every result is one line of JSON, written at once, and after every part a page in FOLDER has all
tables so far with the decisions that follow from them (card_rules.py). A part that fails does not
stop the others; when seconds are short, those of STOP_ORDER are skipped.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from card_kernels import (
    Row,
    attention,
    compiled,
    eight_bits,
    environment,
    invariance,
    products,
    profile,
)
from card_replay import replay_causes
from card_rules import decisions
from card_runs import SUBJECTS, other_allocator, runs
from card_tools import Card
from conditions import conditions, page_of, table
from script import options

from ssd_core.files import write_text

BEGAN = time.perf_counter()
NAME, SECONDS = "card_session", "seconds"
RESERVE = 20.0  # seconds for imports before the clock runs, and for the last page
ALLOCATOR_SECONDS = 60.0
STOP_ORDER = ("cudaMallocAsync", "compiled", "eight", "invariance")


@dataclass(frozen=True)
class Part:
    """seconds: expected on an H100. measure: yields rows; its docstring says what it decides."""

    name: str
    seconds: float
    measure: Callable[[Card], Iterator[Row]]


def parts(subjects: Sequence[str]) -> tuple[Part, ...]:
    """All parts in their order. subjects: the backbones of `runs`."""
    return (Part("env", 5, environment), Part("attention", 25, attention),
            Part("replay", 60, replay_causes), Part("products", 60, products),
            Part("invariance", 15, invariance), Part("profile", 60, profile),
            Part("runs", 200, partial(runs, subjects=subjects)), Part("eight", 40, eight_bits),
            Part("compiled", 60, compiled),
            Part("cudaMallocAsync", ALLOCATOR_SECONDS,
                 partial(other_allocator, seconds=ALLOCATOR_SECONDS)))


def affordable(pending: Sequence[Part], left: float) -> list[Part]:
    """The parts that are expected to fit into so many seconds, without the first of STOP_ORDER."""
    chosen = list(pending)
    for name in STOP_ORDER:
        if sum(part.seconds for part in chosen) <= left:
            break
        chosen = [part for part in chosen if part.name != name]
    return chosen


class Session:
    """Runs parts until its seconds are over, and writes what they found.

    clock: seconds since the beginning. out: a folder; None: lines are only printed.
    """

    def __init__(self, card: Card, seconds: float, out: Path | None,
                 clock: Callable[[], float]) -> None:
        self.card, self.seconds, self.out, self.clock = card, seconds, out, clock
        self.rows: dict[str, list[Row]] = defaultdict(list)

    @property
    def left(self) -> float:
        return self.seconds - RESERVE - self.clock()

    def run(self, pending: Sequence[Part]) -> None:
        """Run the parts; one whose seconds are needed by more important ones is skipped."""
        for number, part in enumerate(pending):
            if self.left > 0 and part in affordable(pending[number:], self.left):
                self.measure(part)
            else:
                self.note(part.name, {"failed": "skipped: the seconds are short"})
            self.write_page()

    def measure(self, part: Part) -> None:
        began = self.clock()
        try:
            self.card.tidy()
            with torch.inference_mode(), closing(part.measure(self.card)) as rows:
                for row in rows:
                    self.note(part.name, row)
                    if self.left <= 0:
                        raise TimeoutError("the seconds are over")
        except Exception:  # noqa: BLE001 - the next parts may work
            self.note(part.name, {"failed": traceback.format_exc(limit=-3)})
        self.note(SECONDS, {"of": part.name, "seconds": self.clock() - began,
                            "expected": part.seconds})

    def note(self, part: str, row: Row) -> None:
        """Keep a row, print it and append it to the file."""
        self.rows[part].append(row)
        line = json.dumps({"t": round(self.clock(), 1), "part": part, **row})
        print(line, flush=True)
        if self.out is not None:
            with open(self.out / f"{NAME}.jsonl", "a", encoding="utf-8") as file:
                file.write(f"{line}\n")

    def write_page(self) -> None:
        if self.out is not None:
            write_text(self.out / f"{NAME}.md", page(self.card, self.rows))


def page(card: Card, rows: dict[str, list[Row]]) -> str:
    """Conditions, decisions, and a table for each part."""
    where = conditions(card.device, str(card.dtype).removeprefix("torch."))
    size = "narrow layers and small grids: no figure here is a card's" if card.tiny else "true size"
    found = [list(each) for each in decisions(rows)]
    return page_of(
        "A session on a card", f"{where}. Random weights, {size}.",
        table(["part", "found", "what follows"], found) if found else "",
        *(f"## {part}\n\n{table_of(each)}" for part, each in sorted(
            rows.items(), key=lambda item: item[0] == SECONDS)))


def table_of(rows: Sequence[Row]) -> str:
    """A table with a column for every key; lists are in the JSON alone."""
    head = list(dict.fromkeys(key for row in rows for key, value in row.items()
                              if not isinstance(value, list)))
    return table(head, [[shown(row.get(key)) for key in head] for row in rows])


def shown(value: object) -> str:
    if value is None:
        return "-"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.strip().replace("\n", " ").replace("|", "/")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = options(__doc__)
    names = [part.name for part in parts(())]
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="by default lines are printed")
    parser.add_argument("--only", default=",".join(names), metavar="PART,...",
                        help=f"of {', '.join(names)}; env always runs")
    parser.add_argument("--backbones", default=",".join(SUBJECTS), metavar="NAME,...",
                        help="of the part `runs`")
    parser.add_argument("--seconds", type=float, default=570.0, help="for all of it")
    parser.add_argument("--tiny", action="store_true", help="on a CPU, to try the script")
    args = parser.parse_args(arguments)
    args.only, args.backbones = args.only.split(","), args.backbones.split(",")
    if wrong := {*args.only} - {*names} | {*args.backbones} - {*SUBJECTS}:
        parser.error(f"unknown: {', '.join(sorted(wrong))}")
    if not args.tiny and not torch.cuda.is_available():
        parser.error("there is no CUDA card here; --tiny runs on a CPU")
    return args


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    card = (Card(torch.device("cpu"), torch.float32, tiny=True) if args.tiny
            else Card(torch.device("cuda"), torch.bfloat16, tiny=False))
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
    session = Session(card, args.seconds, args.out, lambda: time.perf_counter() - BEGAN)
    session.run([part for part in parts(args.backbones) if part.name in ("env", *args.only)])


if __name__ == "__main__":
    main()
