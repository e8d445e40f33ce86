"""The self-test of the app: a job that Doctor's button asks for, and a quick one while idle."""

from __future__ import annotations

import time
from contextlib import suppress

from ssd_core import SSDError
from ssd_core.machine_faults import FULL
from ssd_core.selftest.machine import Machine
from ssd_core.selftest.suite import LIMITS, SelfTest, dtypes_of, is_due, run_if_due
from ssd_core.weights.model_size import stored_dtype

from .jobs import Job
from .library import Library, trim
from .services import Services

SELFTEST = "selftest"  # the title of its jobs


def start(services: Services, owner: str) -> Job:
    """Queue the full self-test of the app's device; its result is one line."""
    return services.worker.submit(SELFTEST, lambda job: run(job, services.library), owner)


def run(job: Job, library: Library) -> str:
    """Run the full self-test, store what it found, and return its summary."""
    began = time.monotonic()
    test = SelfTest(Machine.of(library.device), dtypes_of(library.device), FULL)
    for _ in test.findings():
        job.check()
        job.progress = min(1.0, (time.monotonic() - began) / LIMITS[FULL])
    test.store()
    return test.summary


def when_idle(services: Services) -> None:
    """Run the quick self-test if it is due, until somebody asks for a job; then free memory."""
    library, worker = services.library, services.worker
    if is_due(library.device):
        with suppress(SSDError):  # another backbone is being loaded
            dtype = stored_dtype(library.current.backbone)
            run_if_due(library.device, dtype, wanted=lambda: not worker.is_asked)
    trim()
