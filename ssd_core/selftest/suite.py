"""Runs the checks of a machine, and switches off what fails.

The quick self-test takes the dtype in use and at most 20 seconds, the full one all dtypes and at
most five minutes; a picture that is not finished by then is given up. What is not reached is
neither switched off nor vouched for.

A host runs the quick one by itself, once for each combination of versions. It runs on every device,
while nothing is drawn, and ends before the next pass if somebody wants to draw. Cards and Apple's
GPUs have kernels and graphs that no test of ours has run. Processors differ in products of integers
and bf16 and in passes of different width; there the picture has few rows, so that the test takes a
few seconds only.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import torch

from ..engine.methods import Exact, Method
from ..engine.threads import drawing
from ..errors import SSDError, first_line
from ..kept_files import switched_off
from ..machine_faults import FULL, NONE, QUICK, Found, all_paths, found_on, note
from ..model.processor import has_bf16
from ..weights.load import DTYPES
from ..weights.quantize import KINDS
from .checks import METHODS, Finding, check_all, dtype_path
from .drawing import ROWS, Ended, SelfTestPictures, Subject, draw, load_subject
from .machine import Machine

LIMITS = {QUICK: 20.0, FULL: 300.0}  # s
RESERVE = 2.0  # s of them for what cannot be ended: a pass, the capture of one, reading a file
BACKBONE = "postcard"
Load = Callable[[torch.device, str], Subject]
FEW_ROWS = 4  # of the picture on a CPU, where passes read just the cache slots that they need


def load_bundled(device: torch.device, dtype: str, rows: int = ROWS) -> Subject:
    return load_subject(BACKBONE, device, dtype, rows)


@dataclass
class SelfTest:
    """A self-test of some dtypes. Iterate over `findings`, then call `store`.

    level: QUICK or FULL. wanted: asked before every pass; if False, the test ends as `unwanted`.
    left_out: why a dtype is not offered here, by dtype. unreached: dtypes for which no time was
    left.
    """

    machine: Machine
    dtypes: Sequence[str]
    level: str = FULL
    load: Load = load_bundled
    clock: Callable[[], float] = time.perf_counter
    wanted: Callable[[], bool] = lambda: True
    done: list[Finding] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    unreached: list[str] = field(default_factory=list)
    seconds: float = 0.0
    began: float = 0.0
    unwanted: bool = False

    def findings(self) -> Iterator[Finding]:
        """Run the checks and yield each finding; stopping to iterate ends the test."""
        self.began = self.clock()
        reference: SelfTestPictures | None = None
        for dtype in self.dtypes:
            try:
                if (subject := self._subject(dtype)) is None:
                    continue
                reference = reference or self._reference(subject)
                for finding in self._checked(subject, reference):
                    self.done.append(finding)
                    yield finding
            except Ended:
                self.unreached.append(dtype)

    def _go_on(self) -> None:
        """Note the time; raises Ended if it is up, or if the test is no longer wanted."""
        self.seconds = self.clock() - self.began
        self.unwanted = self.unwanted or not self.wanted()
        if self.unwanted or self.seconds > LIMITS[self.level] - RESERVE:
            raise Ended

    def _subject(self, dtype: str) -> Subject | None:
        """The backbone in this dtype, or None if the machine or the installation has it not."""
        try:
            return self._loaded(dtype)
        except SSDError as error:
            self.left_out[dtype] = str(error)
        return None

    def _loaded(self, dtype: str) -> Subject:
        self._go_on()
        with all_paths():
            return replace(self.load(self.machine.device, dtype), go_on=self._go_on)

    def _reference(self, subject: Subject) -> SelfTestPictures | None:
        """AR's picture in fp32, None if it failed. subject: taken if it is in fp32."""
        with suppress(SSDError), all_paths():  # fp32 may be switched off here
            if subject.dtype != "fp32":
                subject = self._loaded("fp32")
            drawn = draw(subject, METHODS[0], 1, self.machine.direct())
            return None if drawn.failure else drawn
        return None

    def _checked(self, subject: Subject, reference: SelfTestPictures | None) -> Iterator[Finding]:
        """All checks of a dtype; an error of PyTorch is a failure of the dtype."""
        repeated: Sequence[type[Method]] = (
            [type(method) for method in METHODS] if self.level == FULL else [Exact])
        checks = check_all(subject, self.machine, reference, repeated)
        while True:
            with all_paths():
                try:
                    finding = next(checks, None)
                except RuntimeError as error:
                    finding, checks = failed(subject.dtype, error), iter(())
            if finding is None:
                return
            yield finding

    @property
    def faults(self) -> dict[str, str]:
        """The first problem of every path that failed."""
        problems: dict[str, str] = {}
        for finding in self.done:
            if finding.problem:
                problems.setdefault(finding.path, f"{finding.check}: {finding.problem}")
        return problems

    @property
    def summary(self) -> str:
        """One line about the whole test."""
        failed_ = sum(bool(finding.problem) for finding in self.done)
        outcome = f"{failed_} failed" if failed_ else "all passed"
        short = f", no time for {', '.join(self.unreached)}" if self.unreached else ""
        return (f"{self.level} self-test, {', '.join(self.tested)}: {len(self.done)} checks in "
                f"{self.seconds:.0f} s, {outcome}{short}")

    @property
    def tested(self) -> list[str]:
        return [dtype for dtype in self.dtypes if dtype not in self.left_out]

    def store(self) -> None:
        """Switch off the paths that failed, and on again those that passed."""
        device = self.machine.device
        passed = {finding.path for finding in self.done}
        faults = {path: reason for path, reason in found_on(device).faults.items()
                  if path not in passed}
        level = FULL if FULL in (self.level, found_on(device).tested) else self.level
        note(Found(level, {**faults, **self.faults}, self.summary), device)


def failed(dtype: str, error: RuntimeError) -> Finding:
    return Finding(dtype_path(dtype), "an unexpected error", first_line(error))


def dtypes_of(device: torch.device) -> tuple[str, ...]:
    """The dtypes worth testing on a device, fp32 first, which the others are compared with.

    A CPU computes fp16 too slowly, and bf16 where it has no units for it.
    """
    if device.type != "cpu":
        return (*DTYPES, *KINDS)
    return tuple(dtype for dtype in ("fp32", "bf16", "int8")
                 if dtype != "bf16" or has_bf16(device))


def is_due(device: torch.device) -> bool:
    """Whether something may fail here that no self-test has tried with these versions."""
    return not switched_off() and found_on(device).tested == NONE


def load_short(device: torch.device, dtype: str) -> Subject:
    return load_bundled(device, dtype, FEW_ROWS if device.type == "cpu" else ROWS)


def run_if_due(device: torch.device, dtype: str, wanted: Callable[[], bool],
               machine_of: Callable[[torch.device], Machine] = Machine.of,
               load: Load = load_short) -> SelfTest | None:
    """Run the quick self-test in the dtype in use if it is due; returns it if it was finished.

    dtype: by the names of `load_backbone`. wanted: asked before every pass; if False, the test
    ends, and is due again later. After an error, such as too little memory, it is not tried again
    before an update.
    """
    if not is_due(device) or drawing():
        return None
    test = SelfTest(machine_of(device), [dtype], QUICK, load,
                    wanted=lambda: wanted() and not drawing())
    try:
        deque(test.findings(), maxlen=0)
    except (SSDError, RuntimeError) as error:
        problem = first_line(error)
    else:
        if test.unwanted:
            return None
        if test.done:
            test.store()
            return test
        problem = test.left_out.get(dtype, "no picture was finished in time")
    note(replace(found_on(device), tested=QUICK, summary=f"ended early: {problem}"), device)
    return None
