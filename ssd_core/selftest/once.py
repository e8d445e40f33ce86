"""The quick self-test that a host runs by itself, once for each combination of versions.

It runs on every device, while nothing is drawn, and ends before the next pass if somebody wants to
draw. Cards and Apple's GPUs have kernels and graphs that no test of ours has run. Processors differ
in products of integers and bf16 and in passes of different width; there the picture has few rows,
so that the test takes a few seconds only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

import torch

from ..engine.threads import drawing
from ..errors import SSDError, first_line
from ..kept_files import switched_off
from ..machine_faults import NONE, QUICK, found_on, note
from .drawing import ROWS, Subject
from .machine import Machine
from .suite import Load, SelfTest, load_bundled

FEW_ROWS = 4  # of the picture on a CPU, where passes read just the cache slots that they need


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
