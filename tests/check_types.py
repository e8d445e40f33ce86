"""Run mypy over engine, nodes, app and laboratory:  python tests/check_types.py [mypy's options]

The nodes import the engine relative to the folder around both, which ComfyUI loads as a package
whatever it is called. mypy needs a name for that package, so it reads a copy called ssd_pack. The
app and the laboratory import the engine by its name; in the copy they import ssd_pack's, so that
mypy reads one only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("ssd_core", "nodes", "studio", "lab")
PACK = "ssd_pack"
BY_NAME = re.compile(r"^( *)from ssd_(core|lab)\b", re.MULTILINE)
FOLDERS = {"core": "ssd_core", "lab": "lab"}


def check(root: Path, arguments: list[str]) -> int:
    """mypy's exit code; its lines name the files as they lie under `root`."""
    cache = root / ".mypy_cache"
    copy_rooms(root, cache / PACK)
    command = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml"),
               "--cache-dir", str(cache), *arguments]
    for room in ROOMS:
        command += ["--package", f"{PACK}.{room}"]
    done = subprocess.run(command, cwd=cache, text=True, encoding="utf-8", check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=os.environ | {"MYPYPATH": str(cache)})
    sys.stdout.write(done.stdout.replace(f"{PACK}{os.sep}", ""))
    return done.returncode


def copy_rooms(root: Path, pack: Path) -> None:
    """The Python files alone, with the times of the originals, which mypy's cache goes by."""
    shutil.rmtree(pack, ignore_errors=True)
    for room in ROOMS:
        for source in (root / room).rglob("*.py"):
            if "benchmarks" in source.parts:  # scripts
                continue
            copy = pack / source.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = source.read_text(encoding="utf-8")
            copy.write_text(BY_NAME.sub(lambda found: f"{found[1]}from {PACK}.{FOLDERS[found[2]]}",
                                        text), encoding="utf-8")
            shutil.copystat(source, copy)
    (pack / "__init__.py").touch()


if __name__ == "__main__":
    sys.exit(check(ROOT, sys.argv[1:]))
