"""The conditions that belong beside every figure: machine, versions, date."""

from __future__ import annotations

import datetime
import platform
from pathlib import Path

import torch

import ssd_core
from ssd_core.measure.tables import table

__all__ = ["RESULTS", "conditions", "processor", "table"]

RESULTS = Path(__file__).parent / "results"


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(s.split(":", 1)[1].strip() for s in lines if s.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def conditions(device: torch.device) -> str:
    """One line for the head of a table."""
    where = (torch.cuda.get_device_name(device) if device.type == "cuda"
             else f"{processor()}, {torch.get_num_threads()} threads")
    return (f"{datetime.date.today()}, {where}, {platform.system()}, Python "
            f"{platform.python_version()}, torch {torch.__version__}, ssd-decoding "
            f"{ssd_core.__version__}")
