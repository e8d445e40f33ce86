"""How OpenMP's threads wait for work: as the last measurement on this machine says. Before torch.

By default they spin a while. On a machine with nothing else to do that is the fastest, and a busy
one is served by one thread, which waits for nobody (engine/threads.py). Where all threads were
measured to be slower than one although the processor was free, as under a quota of processor time,
they sleep (`passive`) from the program's next start on, if that measures better. OpenMP reads the
policy once, when torch is imported; one that the user has set stays.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping

from .kept_files import cache_folder

VARIABLE, SLEEP = "OMP_WAIT_POLICY", "passive"
FILE = "threads.json"
OWN, SPINNING, SLEEPING = "the user's own", "spinning", "sleeping"


def stored_measurement() -> dict[str, dict[str, float]]:
    """Milliseconds of a pass with one and with all threads ("one", "all"), by how they waited."""
    folder = cache_folder()
    if folder is None:
        return {}
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        return parsed(json.loads((folder / FILE).read_text(encoding="utf-8")))
    return {}


def parsed(raw: Mapping) -> dict[str, dict[str, float]]:
    return {way: {count: float(raw[way][count]) for count in ("one", "all")}
            for way in (SPINNING, SLEEPING) if way in raw}


def should_sleep(measured: Mapping[str, Mapping[str, float]]) -> bool:
    """Whether spinning loses to one thread, and sleeping is untried or loses less."""
    spinning, sleeping = measured.get(SPINNING), measured.get(SLEEPING)
    if spinning is None or spinning["all"] <= spinning["one"]:
        return False
    return sleeping is None or sleeping["all"] < min(spinning["all"], sleeping["one"])


def choose() -> str:
    """Set the policy if this program may; how the threads wait, of OWN, SPINNING and SLEEPING."""
    if VARIABLE in os.environ:
        return OWN
    if "torch" in sys.modules or not should_sleep(stored_measurement()):
        return SPINNING
    os.environ[VARIABLE] = SLEEP
    return SLEEPING


WAITING = choose()
