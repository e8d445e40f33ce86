"""What a host does between a wish and its picture: how often it checks and prepares, and how deep.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tuple(str(ROOT / name) for name in ("ssd_core", "nodes", "studio", "ssd_pack_under_test"))
MOST_HOPS = 15


def of_project(code) -> bool:
    return code.co_filename.startswith(PROJECT) and "<" not in code.co_name


class Road:
    """Counts calls while a host draws one picture.

    knobs: the checks of each class of knobs, but for those of a file that is read. hops: project
    functions on the stack when the prompt is tokenized, for each time that it is.
    """

    def __init__(self) -> None:
        self.prepared = self.resolved = 0
        self.knobs: Counter[str] = Counter()
        self.hops: list[list[str]] = []

    def __call__(self, frame, event, argument) -> None:
        code = frame.f_code
        if event != "call" or not of_project(code):
            return
        if code.co_name == "prepare" and "backbone" in code.co_varnames[: code.co_argcount]:
            self.prepared += 1
        elif code.co_qualname == "Method.resolve":
            self.resolved += bool(frame.f_locals["self"].unset)  # else it returns the method
        elif code.co_qualname == "CheckedFirst.__call__":
            reads_file = {"recipe_of", "read_entry"} & {each.co_name for each in stack(frame)}
            self.knobs[frame.f_locals["cls"].__name__] += not reads_file
        elif code.co_name == "tokenize":
            self.hops.append([each.co_qualname for each in stack(frame) if of_project(each)])

    @property
    def complaints(self) -> list[str]:
        """What a run does more often than it needs to; empty if nothing."""
        again = [f"{name} is checked {count} times" for name, count in self.knobs.items()
                 if count > 1]
        return [*again,
                *[f"prepared {self.prepared} times"] * (self.prepared != 1),
                *[f"resolved {self.resolved} times"] * (self.resolved > 2),
                *[f"{len(hops)} hops: {' > '.join(hops)}" for hops in self.hops
                  if len(hops) > MOST_HOPS]]


def stack(frame) -> list:
    """The code of a frame and of its callers, the outermost first."""
    found = []
    while frame is not None:
        found.append(frame.f_code)
        frame = frame.f_back
    return found[::-1]


@contextmanager
def watched():
    """A Road that watches all threads that begin in the block, and the block's own."""
    road = Road()
    threading.setprofile(road)
    sys.setprofile(road)
    try:
        yield road
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
