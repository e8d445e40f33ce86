"""The conditions that belong beside every figure: machine, load, threads, dtype, versions, date."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Collection
from pathlib import Path

import torch

import ssd_core
from ssd_core.files import write_text
from ssd_core.measure.bench import in_words
from ssd_core.measure.machine import OtherWork, processor, waiting
from ssd_core.measure.tables import table
from ssd_core.model.processor import capabilities, has_bf16

__all__ = ["CPU", "RESULTS", "conditions", "page_of", "processor", "table", "write_page"]

CPU = torch.device("cpu")
RESULTS = Path(__file__).parent / "results"
OTHERS = OtherWork()  # from the script's start


def conditions(device: torch.device = CPU, dtype: str = "", threads: Collection[int] = (),
               alone: bool = True) -> str:
    """One line for the head of a table.

    threads: the numbers of threads that were tried; by default the current one. alone: whether only
    this process and ended children did the work, so that any other load is of other programs.
    """
    counts = " and ".join(map(str, sorted(threads)[:-1]))
    used = in_words(max(threads, default=torch.get_num_threads()))
    where = (torch.cuda.get_device_name(device) if device.type == "cuda"
             else f"{processor()} ({units()}), {counts and f'{counts} and '}{used}{waiting()}")
    parts = [str(datetime.date.today()), where, dtype, OTHERS.words() if alone else "",
             platform.system(), f"Python {platform.python_version()}",
             f"torch {torch.__version__}", f"ssd-decoding {ssd_core.__version__}"]
    return ", ".join(filter(None, parts))


def units() -> str:
    """What the processor computes with: its widest vectors, and units for bf16 and integers."""
    integers = any(value for name, value in capabilities().items() if "vnni" in name)
    found = [torch.backends.cpu.get_cpu_capability(), "bf16" * has_bf16(CPU), "VNNI" * integers]
    return ", ".join(filter(None, found))


def page_of(title: str, *parts: str) -> str:
    """A page of results: its title, and paragraphs and tables that are not empty."""
    return "\n\n".join([f"# {title}", *(part.rstrip("\n") for part in parts if part)]) + "\n"


def write_page(path: Path, title: str, *parts: str) -> None:
    """Write a page of results and print it."""
    text = page_of(title, *parts)
    write_text(path, text)
    print(text)
