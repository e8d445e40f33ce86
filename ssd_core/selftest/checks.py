"""The checks of one dtype: every method with and without graphs, alone and in a batch.

Each check belongs to a path, which is switched off if it fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ..engine.first_replay import difference
from ..engine.graphs import path_of
from ..engine.methods import AR, SSD, Exact, Hawk, Method, Rolling
from ..output.guarantees import exact_path, guarantee_holds
from .drawing import INTERRUPTED, SelfTestPictures, Subject, draw, relocate
from .machine import Machine

SAME = 0.01  # the largest difference of hidden states between two ways to compute the same
# The largest difference of the hidden states of a dtype from those of fp32.
FROM_FP32 = {"fp32": 0.001, "fp16": 0.05, "bf16": 0.1, "fp8": 0.3, "int8": 0.3, "int4": 0.6}
METHODS: tuple[Method, ...] = (AR(), Exact(), SSD(), Rolling(), Hawk())
BATCHES = (1, 2)
LEAK = 8 << 20  # bytes that may be held more than after the first picture


def unlike(found: SelfTestPictures, expected: SelfTestPictures, tolerance: float = SAME) -> str:
    """In which way two pictures differ more than rounding explains; empty if they do not.

    Compares hidden states up to the first cell with another token, since all after it follow from
    that token. Another token is rounding if the hidden states before it differ, but less than the
    tolerance (see `difference`).
    """
    if found.failure or expected.failure:
        return found.failure or expected.failure
    if not found.hidden.isfinite().all():
        return "hidden states are not finite"
    first, cells = first_unlike(found, expected), found.tokens[0].numel()
    apart = difference(found.hidden[:, : first + 1], expected.hidden[:, : first + 1])
    if not apart <= tolerance:
        return f"hidden states differ by {apart:.2g}, {tolerance:g} is allowed"
    if first < cells and apart == 0:
        return f"token {first} differs, although the hidden states before it are the same"
    return ""


def first_unlike(found: SelfTestPictures, expected: SelfTestPictures) -> int:
    """The first cell, in raster order, whose token differs in a picture; behind them if none."""
    differs = (found.tokens != expected.tokens).flatten(1).any(0).nonzero()
    return int(differs[0]) if len(differs) else found.tokens[0].numel()


@dataclass(frozen=True)
class Finding:
    """A check. path: what a problem switches off; problem: one line, empty if it was passed."""

    path: str
    check: str
    problem: str


def check_all(subject: Subject, machine: Machine, reference: SelfTestPictures | None,
              repeated: Sequence[type[Method]]) -> Iterator[Finding]:
    """Yield a finding for every check.

    reference: AR's picture in fp32, None if it failed. repeated: the methods that also draw after
    an interrupt and after the weights were moved. Memory is compared with what was held after the
    first picture, which makes the libraries allocate what they keep.
    """
    before: int | None = None
    for pictures in BATCHES:
        ar: SelfTestPictures | None = None
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
                drawn = draw(subject, method, pictures, machine.replaying())
                yield Finding(path_of(subject.dtype), f"{name}, graphs", unlike(drawn, direct))
            before = machine.held() if before is None else before
            if pictures == 1 and isinstance(method, tuple(repeated)):
                yield from check_again(subject, machine, method, direct, before)
    if machine.recorder is not None and before is not None:
        yield memory(subject, "all pictures", machine.held() - before)


def check_again(subject: Subject, machine: Machine, method: Method, direct: SelfTestPictures,
                before: int) -> Iterator[Finding]:
    """Draw after what happens between two runs, with graphs if there are any.

    before: bytes that were held after the first picture.
    """
    graphs = machine.recorder is not None
    run = machine.replaying if graphs else machine.direct
    path = path_of(subject.dtype) if graphs else dtype_path(subject.dtype)
    name = described(method, 1) + ", graphs" * graphs
    for event, happen in (
            ("an interrupt", lambda: draw(subject, method, 1, run(), INTERRUPTED)),
            ("weights were moved", partial(relocate, subject))):
        happen()
        yield Finding(path, f"{name} after {event}",
                      unlike(draw(subject, method, 1, run()), direct))
        if graphs:
            yield memory(subject, f"{name} after {event}", machine.held() - before)


def memory(subject: Subject, after: str, grown: int) -> Finding:
    """Whether graphs keep memory. Without them nothing could be switched off."""
    return Finding(path_of(subject.dtype), f"memory: {after}", leaked(grown))


def sound(direct: SelfTestPictures, reference: SelfTestPictures | None, dtype: str) -> str:
    """Why numbers in this dtype cannot be right; they may differ from fp32 within a tolerance."""
    return unlike(direct, direct if reference is None else reference, FROM_FP32[dtype])


def other_tokens(found: SelfTestPictures, ar: SelfTestPictures) -> str:
    """That a picture which should be AR's has other tokens; empty if it has not."""
    count = int((found.tokens != ar.tokens).sum())
    return f"{count} of {ar.tokens.numel()} tokens are not AR's" if count else ""


def leaked(grown: int) -> str:
    if grown <= LEAK:
        return ""
    return f"{grown / 2**20:.0f} MiB more are held than after the first picture"


def dtype_path(dtype: str) -> str:
    """What a dtype's failure switches off: of int8 only the kernel, as fp32 gives the same bits."""
    return "int8 kernel" if dtype == "int8" else f"dtype {dtype}"


def described(method: Method, pictures: int) -> str:
    return f"{method.name}, {pictures} picture{'s' * (pictures > 1)}"
