"""The quick self-test of ComfyUI's device: in the background, after a run, while nothing is queued.

The tests themselves are imported after the first run, not at ComfyUI's start.
"""

from __future__ import annotations

import threading
import time
from functools import cache

import comfy.model_management as mm
from server import PromptServer

QUIET, LOOK = 20.0, 1.0  # s without anything queued before it begins; s between two looks


def after_a_run(dtype: str) -> None:
    """Begin to wait for a quiet moment if the self-test is due. dtype: the one in use."""
    from ..ssd_core.selftest.suite import is_due

    if is_due(mm.get_torch_device()):
        waiting(dtype)


@cache
def waiting(dtype: str) -> threading.Thread:
    """The one thread of this dtype that waits and tests."""
    thread = threading.Thread(target=wait_and_test, args=(dtype,), name="ssd self-test",
                              daemon=True)
    thread.start()
    return thread


def wait_and_test(dtype: str) -> None:
    """Test once nothing has been queued for QUIET seconds; begin again if something comes."""
    from ..ssd_core.selftest.suite import is_due, run_if_due

    device, quiet = mm.get_torch_device(), 0.0
    while is_due(device):
        time.sleep(LOOK)
        quiet = quiet + LOOK if is_quiet() else 0.0
        if quiet >= QUIET:
            run_if_due(device, dtype, is_quiet)
            quiet = 0.0


def is_quiet() -> bool:
    return PromptServer.instance.prompt_queue.get_tasks_remaining() == 0
