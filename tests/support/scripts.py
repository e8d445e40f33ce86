"""Scripts and style sheets: run in bare Node, and the rules of size and origin."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path


def node_major() -> int:
    """The installed Node's major version; 0 without one."""
    path = shutil.which("node")
    if path is None:
        return 0
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    return int(re.match(r"v(\d+)", version.stdout).group(1))


def node(*arguments: str, given: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(["node", *arguments], input=given, capture_output=True, text=True,
                          timeout=120, encoding="utf-8")


def faults(files: Iterable[Path]) -> list[str]:
    """Which files have lines of more than 100 characters, or name another machine."""
    found = []
    for path in files:
        text = path.read_text(encoding="utf-8")
        if (widest := max(map(len, text.splitlines()))) > 100:
            found.append(f"{path.name} has a line of {widest} characters")
        if "://" in text:
            found.append(f"{path.name} names an address")
    return found
