"""What the scripts of this folder share: options, postcard and its prompt, a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from conditions import RESULTS

from ssd_core import SSDError, load_backbone, load_heads
from ssd_core.backbones.base import Backbone
from ssd_core.runs.batch.workers import LoadedModels

PROMPT = "a red house on the left, a yellow boat on the right, on a lake, at sunset."


def options(doc: str | None, page: str | None = None) -> argparse.ArgumentParser:
    """A parser whose help is the script's docstring; with `page`, its file in RESULTS is --out."""
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    if page:
        parser.add_argument("--out", type=Path, default=RESULTS / page, metavar="FILE.md",
                            help=f"instead of {page} in lab/benchmarks/results")
    return parser


def described(doc: str) -> str:
    """The paragraph of a script's docstring that says what is measured, in one line."""
    return " ".join(doc.split("\n\n")[2].split())


def postcard(dtype: str = "fp32") -> LoadedModels:
    """postcard and its draft heads on the CPU."""
    backbone = load_backbone("postcard", "cpu", dtype)
    return LoadedModels(backbone, load_heads("postcard", backbone))


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


def in_new_process(script: str, *arguments: object,
                   variables: Mapping[str, str] = os.environ) -> Any:
    """What a script prints as JSON in its last line, run with these environment variables."""
    run = subprocess.run([sys.executable, script, *map(str, arguments)], env={**variables},
                         check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout.splitlines()[-1])
