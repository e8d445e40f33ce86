"""The conditions that belong beside every figure: machine, load, threads, dtype, versions, date."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Collection
from pathlib import Path

import torch

import ssd_core
from ssd_core.backbones.base import Backbone
from ssd_core.errors import SSDError
from ssd_core.evaluate.best import in_words
from ssd_core.evaluate.machine import OtherWork, processor, waiting
from ssd_core.evaluate.tables import table
from ssd_core.files import atomic_write
from ssd_core.weights.load import load_backbone

__all__ = ["RESULTS", "conditions", "loadable", "processor", "table", "write_page"]

RESULTS = Path(__file__).parent / "results"
OTHERS = OtherWork()  # from the script's start


def conditions(device: torch.device, dtype: str = "", threads: Collection[int] = (),
               alone: bool = True) -> str:
    """One line for the head of a table.

    threads: the numbers of threads that were tried; by default the current one. alone: whether only
    this process and ended children did the work, so that any other load is of other programs.
    """
    counts = " and ".join(map(str, sorted(threads)[:-1]))
    used = in_words(max(threads, default=torch.get_num_threads()))
    where = (torch.cuda.get_device_name(device) if device.type == "cuda"
             else f"{processor()}, {counts and f'{counts} and '}{used}{waiting()}")
    parts = [str(datetime.date.today()), where, dtype, OTHERS.words() if alone else "",
             platform.system(), f"Python {platform.python_version()}",
             f"torch {torch.__version__}", f"ssd-decoding {ssd_core.__version__}"]
    return ", ".join(filter(None, parts))


def write_page(path: Path, title: str, *parts: str) -> None:
    """Write a page of results atomically and print it."""
    text = "\n\n".join([f"# {title}", *(part.rstrip("\n") for part in parts if part)]) + "\n"
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    print(text)


def loadable(backbone: str, dtypes: Collection[str], device: str = "cpu"
             ) -> tuple[dict[str, Backbone], list[str]]:
    """The backbone in each of these dtypes that can be loaded, and lines about the others."""
    tried = {dtype: attempted(backbone, device, dtype) for dtype in dtypes}
    loaded = {dtype: result for dtype, result in tried.items() if isinstance(result, Backbone)}
    return loaded, [f"{dtype} is left out: {reason}" for dtype, reason in tried.items()
                    if isinstance(reason, str)]


def attempted(backbone: str, device: str, dtype: str) -> Backbone | str:
    """The backbone, or the reason why it cannot be loaded."""
    try:
        return load_backbone(backbone, device, dtype)
    except SSDError as error:
        return str(error)
