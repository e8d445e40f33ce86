"""What `install.py app` and `install.py test` do: make .venv, install into it, run it.

pip runs here and nowhere else, and only for a person who typed one of the two commands. The
published node pack leaves this file out, because a node pack must not install packages.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import venv
from http.client import HTTPException
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "ssd-installed.txt"
TESTED_TORCH = "2.13.0"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
VERBOSE = "--verbose"
LANES = ("core", "hosts", "lab", "repository")  # folders of tests
# A file's tests stay in one worker, so that what they share is made once. By name: the slowest
# files come first then, and both workers end at about the same time. A third would use the time in
# which tests wait for a browser, but take more for itself: 10.5 minutes on two cores, not 9.7.
WORKERS = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
# About how much is downloaded, in MB, on Linux with Python 3.11.
SIZES = {"app": 100, "app,dev": 310}
TORCH_MB, TORCH_CUDA_MB = 200, 3500
PROMPT = "a red house in the middle, on a lake, at sunset"
SEED = "8"
FIRST_POSTCARDS = "ar,exact"  # one picture each, with the same seed


class SetUpError(Exception):
    """One line: what failed and what to do."""


def app(arguments: list[str]) -> int:
    """Draw a first postcard, then open the app even if that failed; the app's exit code."""
    prepare("app", VERBOSE in arguments)
    opens = [python(), str(ROOT / "gradio_app.py"), "--open", *without_verbose(arguments)]
    if len(opens) > 3 and (wrong := run([*opens, "--check"])):
        return wrong
    print(f"\nA first postcard, by AR and by exact with the same seed: {PROMPT!r}", flush=True)
    out = str(ROOT / "outputs")
    command = [python(), "-m", "ssd_core", "compare", PROMPT, "--methods", FIRST_POSTCARDS,
               "--seed", SEED, "--out", out]
    if run(command):
        print("\nThe first postcard failed; the lines above say why. The app opens anyway: "
              "see its tab Doctor.", flush=True)
    else:
        print(how_to_go_on(), flush=True)
    return run(opens)


def how_to_go_on() -> str:
    ssd, first = script("ssd"), ROOT / "outputs" / f"exact-{SEED}.png"
    return (f"\nThe pictures are in {ROOT / 'outputs'}. Next, try in a terminal:\n"
            f'  {ssd} generate "{PROMPT}" --seed 12 --batch 4\n'
            f'  {ssd} edit "{first}" "{PROMPT.replace("red", "blue")}"\n'
            f'  {ssd} vary "{first}" --strength subtle\n'
            f"  {ssd} --help\n"
            f"\nThe app opens now (Ctrl-C ends it); next time: {python()} gradio_app.py")


def test(arguments: list[str]) -> int:
    """Run Ruff, mypy, then pytest, so that pytest's summary is the last line."""
    prepare("app,dev", VERBOSE in arguments)
    checks = ([script("ruff"), "check", "."],
              [python(), str(ROOT / "tests" / "check_types.py")],
              [script("pytest"), "-q", *pytest_arguments(arguments)])
    return next(filter(None, map(run, checks)), 0)


def pytest_arguments(arguments: list[str]) -> list[str]:
    """Name the folders of lanes; other arguments are unchanged."""
    return [*WORKERS, *(f"tests/{each}" if each in LANES else each
                        for each in without_verbose(arguments))]


def without_verbose(arguments: list[str]) -> list[str]:
    return [argument for argument in arguments if argument != VERBOSE]


def prepare(extras: str, verbose: bool = False) -> None:
    """Set up .venv with torch and the package; if it is up to date, do nothing."""
    wanted = f"{extras} {hashlib.sha256((ROOT / 'pyproject.toml').read_bytes()).hexdigest()}"
    if STAMP.exists() and wanted in STAMP.read_text(encoding="utf-8").splitlines():
        return
    wants_torch = not has_torch()
    index = torch_index() if wants_torch else []
    print(announcement(extras, wants_torch, bool(index)), flush=True)
    make_venv()
    if wants_torch:
        pip(verbose, f"torch=={TESTED_TORCH}", *index)
    pip(verbose, "-e", f"{ROOT}[{extras}]")
    with open(STAMP, "a", encoding="utf-8") as file:
        file.write(f"{wanted}\n")


def announcement(extras: str, wants_torch: bool, cpu_only: bool) -> str:
    """What will be downloaded, its approximate size, and where it goes."""
    packages = "Gradio, transformers and what they need"
    if extras != "app":
        packages += ", and the tests' packages"
    size = SIZES[extras]
    if wants_torch:
        cuda = platform.system() == "Linux" and not cpu_only
        size += TORCH_CUDA_MB if cuda else TORCH_MB
        packages = f"torch {TESTED_TORCH}{' with CUDA' * cuda}, {packages}"
    return (f"This downloads {packages} from PyPI{' and pytorch.org' * cpu_only}: about "
            f"{size / 1000:.1f} GB, less what pip has already.\nAll of it goes into {VENV}; delete "
            "that folder to undo it. This may take some minutes; Ctrl-C stops it.")


def make_venv() -> None:
    if Path(python()).exists():
        return
    print(f"making {VENV}", flush=True)
    try:
        venv.create(VENV, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(VENV, ignore_errors=True)
        raise SetUpError(f"cannot make {VENV} ({error}): is there space, and is Python's venv "
                           "module installed (on Debian: apt install python3-venv)?") from error


def has_torch() -> bool:
    look = "import importlib.metadata as m; m.version('torch')"
    return Path(python()).exists() and not run([python(), "-c", look], stderr=subprocess.DEVNULL)


def torch_index() -> list[str]:
    """pip options for the CPU index on Linux without an NVIDIA card; PyPI's build is 20x larger.

    Elsewhere PyPI's build is right, or the user has put another build into .venv. Also empty if the
    index cannot be reached.
    """
    if platform.system() != "Linux" or shutil.which("nvidia-smi"):
        return []
    try:
        urllib.request.urlopen(f"{CPU_INDEX}/torch/", timeout=5).close()  # a fixed https address
    except (OSError, ValueError, HTTPException):  # InvalidURL, of a proxy
        print("pytorch.org, which has torch without CUDA, cannot be reached: PyPI's is larger",
              flush=True)
        return []
    return ["--extra-index-url", CPU_INDEX]


def pip(verbose: bool, *arguments: str) -> None:
    """Install packages; pip's output is shown only if it fails, or with `verbose`."""
    what = arguments[-1] if arguments[0] == "-e" else arguments[0]
    print(f"installing {what}", flush=True)
    command = [python(), "-m", "pip", "install", "--disable-pip-version-check", *arguments]
    if run(command) if verbose else run_silently(command):
        raise SetUpError(f"pip could not install {what}; its last lines above say why (network? "
                           "space on the disk?). Run this again to go on")


def python() -> str:
    return script("python")


def script(name: str) -> str:
    """Path of a program in .venv, on Windows and elsewhere."""
    windows = os.name == "nt"
    return str(VENV / ("Scripts" if windows else "bin") / (f"{name}.exe" if windows else name))


def run_silently(command: list[str]) -> int:
    """Like `run`, but show the output only if the command fails."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        if code := run(command, subprocess.STDOUT, output):
            output.seek(0)
            sys.stderr.write(output.read())
    return code


def run(command: list[str], stderr: int | None = None, stdout: IO | None = None) -> int:
    """Run a command in this folder; output passes through or to `stdout`. Returns its exit code."""
    try:
        return subprocess.run(command, cwd=ROOT, stdout=stdout, stderr=stderr,
                              check=False).returncode
    except OSError as error:
        raise SetUpError(f"cannot run {command[0]}: {error.strerror}; remove {VENV} and run this "
                           "again") from error
