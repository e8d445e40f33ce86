"""What a host does between a wish and its picture: how often it checks and prepares, how deep, and
through how many functions.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from contextlib import contextmanager
from inspect import CO_OPTIMIZED
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tuple(str(ROOT / name) for name in ("ssd_core", "nodes", "studio", "ssd_pack_under_test"))
MOST_HOPS = 15
# A file that is read, a module that is imported, and the list of methods check knobs of their own.
ONCE = {"recipe_of", "read_entry", "<module>", "choices"}


def of_project(code) -> bool:
    """Whether it is a function of the project, and no module, class body or lambda."""
    return (code.co_filename.startswith(PROJECT) and "<" not in code.co_name
            and bool(code.co_flags & CO_OPTIMIZED))


class Road:
    """Counts calls while a host draws one picture.

    knobs: the checks of each class of knobs, but for those by ONCE. hops: project
    functions on the stack when the prompt is tokenized, for each time that it is. functions: all
    that were called before the first pass; most: how many these may be.
    """

    def __init__(self, most: int) -> None:
        self.most, self.functions, self.drawing = most, set(), False
        self.prepared = self.resolved = 0
        self.knobs: Counter[str] = Counter()
        self.hops: list[list[str]] = []

    def __call__(self, frame, event, argument) -> None:
        code = frame.f_code
        if event != "call" or not of_project(code):
            return
        self.drawing = self.drawing or code.co_qualname == "DecodeState.prefill"
        if not self.drawing:
            self.functions.add(code)
        if code.co_name == "prepare" and "backbone" in code.co_varnames[: code.co_argcount]:
            self.prepared += 1
        elif code.co_qualname == "Method.resolve":
            self.resolved += bool(frame.f_locals["self"].unset)  # else it returns the method
        elif code.co_qualname == "CheckedFirst.__call__":
            callers = {each.co_name for each in stack(frame)
                       if each.co_filename.startswith(PROJECT)}
            self.knobs[frame.f_locals["cls"].__name__] += not callers & ONCE
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
                *[f"{len(self.functions)} functions before the first pass"]
                * (len(self.functions) > self.most),
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
def watched(most: int):
    """A Road that watches all threads that begin in the block, and the block's own.

    most: how many functions may be called before the first pass.
    """
    road = Road(most)
    threading.setprofile(road)
    sys.setprofile(road)
    try:
        yield road
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
