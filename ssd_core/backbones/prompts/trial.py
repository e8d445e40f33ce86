"""Tokenizers from elsewhere are tried in a process of their own before they are read in this one.

The library ends its process for some files, by a failed allocation, and takes memory without end
for others. What passed is remembered by its content.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import tokenizers

from ...errors import SSDError
from ...files import MOST_TEXT
from ...kept_entries import KeptEntries

SCRIPT = Path(__file__).with_name("read_one_tokenizer.py")
SECONDS = 120.0  # on a busy machine; the script has its own limit of processor time
SOUND, BEGUN, UNTRIED = "sound", "begun", ""
QUIET = {"RAYON_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "PYTHONIOENCODING": "utf-8"}
passed: KeptEntries[str] = KeptEntries("tokenizers.json", str, str)


def require_sound(path: Path) -> None:
    """Raise SSDError for a tokenizer.json that cannot be read, or ends the process that reads it.

    Where no process can be started, every file passes.
    """
    try:
        if path.stat().st_size > MOST_TEXT:
            raise SSDError(f"{path}: larger than any tokenizer: get it again")
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise SSDError(f"{path}: cannot be read ({error.strerror}): get it again") from error
    key = f"{content} {tokenizers.__version__}"
    if key in passed.read():
        return
    found = tried(path)
    if found not in (SOUND, UNTRIED):
        raise SSDError(f"{path}: not a tokenizer.json ({found}): get it again")
    if found == SOUND:
        passed.put(key, SOUND)


def tried(path: Path) -> str:
    """What the script says of a file: SOUND, what is wrong with it, or UNTRIED if it cannot run."""
    try:
        process = subprocess.run(
            [sys.executable, "-s", str(SCRIPT), str(path.absolute())], timeout=SECONDS,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, **QUIET}, check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0))
    except subprocess.TimeoutExpired:
        return "reading it takes too long"
    except (OSError, ValueError):  # no Python to start here
        return UNTRIED
    begun, _, said = process.stdout.decode("utf-8", "replace").partition("\n")
    if begun.strip() != BEGUN:  # the library is not found there
        return UNTRIED
    return said or "reading it takes too much memory, or ends the process that reads it"
