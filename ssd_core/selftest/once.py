"""The quick self-test that a host runs by itself, once for each combination of versions.

It runs where graphs or quantised kernels exist, which is on a card, and while nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from ..engine.threads import drawing
from ..errors import SSDError, first_line
from ..kept_files import switched_off
from ..machine_faults import NONE, QUICK, found_on, note
from .machine import Machine
from .suite import Load, SelfTest, load_bundled

BUNDLED = "int8"  # the dtype that every installation has


def is_due(device: torch.device) -> bool:
    """Whether something may fail here that no self-test has tried with these versions."""
    return device.type == "cuda" and not switched_off() and found_on(device).tested == NONE


def run_if_due(device: torch.device, dtype: str, wanted: Callable[[], bool],
               machine_of: Callable[[torch.device], Machine] = Machine.of,
               load: Load = load_bundled) -> SelfTest | None:
    """Run the quick self-test in the dtype in use if it is due; returns it if it was finished.

    dtype: by the names of `load_backbone`; an installation without it takes BUNDLED instead.
    wanted: asked between checks; if False, the test ends, and is due again later. After an error,
    such as too little memory, it is not tried again before an update.
    """
    if not is_due(device) or drawing():
        return None
    problem = "no dtype could be loaded"
    try:
        for name in dict.fromkeys((dtype, BUNDLED)):
            test = SelfTest(machine_of(device), [name], QUICK, load)
            for _ in test.findings():
                if not wanted() or drawing():
                    return None
            if test.done:
                test.store()
                return test
    except (SSDError, RuntimeError) as error:
        problem = first_line(error)
    note(replace(found_on(device), tested=QUICK, summary=f"ended early: {problem}"), device)
    return None
