"""The checks of one dtype: every method with and without graphs, alone and in a batch.

Each check belongs to a path, which is switched off if it fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..engine.graphs import path_of
from ..engine.methods import AR, SSD, Exact, Hawk, Method, Rolling
from ..output.guarantees import exact_path, guarantee_holds
from .comparing import FROM_FP32, unlike
from .drawing import INTERRUPTED, Drawn, Subject, draw, relocate
from .machine import Machine

METHODS: tuple[Method, ...] = (AR(), Exact(), SSD(), Rolling(), Hawk())
BATCHES = (1, 2)
LEAK = 8 << 20  # bytes that a repeated run may hold more than the one before


@dataclass(frozen=True)
class Finding:
    """A check. path: what a problem switches off; problem: one line, empty if it was passed."""

    path: str
    check: str
    problem: str


def check_all(subject: Subject, machine: Machine, reference: Drawn | None,
              repeated: Sequence[type[Method]]) -> Iterator[Finding]:
    """Yield a finding for every check.

    reference: AR's picture in fp32, None if it failed. repeated: the methods that also draw after
    an interrupt and after the weights were moved.
    """
    for pictures in BATCHES:
        ar: Drawn | None = None
        for method in METHODS:
            name = described(method, pictures)
            direct = draw(subject, method, pictures, machine.direct())
            ar = ar or direct
            if method == AR() and pictures == 1:
                yield Finding(dtype_path(subject.dtype), f"{name} against fp32",
                              sound(direct, reference, subject.dtype))
            else:
                yield Finding(dtype_path(subject.dtype), name, unlike(direct, direct))
            if direct.failure:
                continue
            if isinstance(method, Exact) and guarantee_holds(subject.backbone):
                yield Finding(exact_path(subject.dtype), f"{name} against ar",
                              other_tokens(direct, ar))
            if machine.recorder is not None:
                again = pictures == 1 and isinstance(method, tuple(repeated))
                yield from check_graphs(subject, machine, method, pictures, direct, again)


def check_graphs(subject: Subject, machine: Machine, method: Method, pictures: int,
                 direct: Drawn, again: bool) -> Iterator[Finding]:
    """Compare pictures drawn with graphs; again: also after what happens between two runs."""
    path, name = path_of(subject.dtype), f"{described(method, pictures)}, graphs"

    def replayed(situation: str) -> Finding:
        drawn = draw(subject, method, pictures, machine.replaying())
        return Finding(path, name + situation, unlike(drawn, direct))

    yield replayed("")
    if not again:
        return
    before = machine.held()
    draw(subject, method, pictures, machine.replaying(), INTERRUPTED)
    yield replayed(" after an interrupt")
    yield Finding(path, f"{name}, memory", leaked(machine.held() - before))
    relocate(subject)
    yield replayed(" after weights were moved")


def sound(direct: Drawn, reference: Drawn | None, dtype: str) -> str:
    """Why numbers in this dtype cannot be right; they may differ from fp32 within a tolerance."""
    return unlike(direct, direct if reference is None else reference, FROM_FP32[dtype])


def other_tokens(found: Drawn, ar: Drawn) -> str:
    """That a picture which should be AR's has other tokens; empty if it has not."""
    count = int((found.tokens != ar.tokens).sum())
    return f"{count} of {ar.tokens.numel()} tokens are not AR's" if count else ""


def leaked(grown: int) -> str:
    if grown <= LEAK:
        return ""
    return f"{grown / 2**20:.0f} MiB more are held after a run than before it"


def dtype_path(dtype: str) -> str:
    """What a dtype's failure switches off: of int8 only the kernel, as fp32 gives the same bits."""
    return "int8 kernel" if dtype == "int8" else f"dtype {dtype}"


def described(method: Method, pictures: int) -> str:
    return f"{method.name}, {pictures} picture{'s' * (pictures > 1)}"
