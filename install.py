"""Set-up, using only the standard library.

    python install.py         for ComfyUI-Manager: lists what is missing, changes nothing
    python install.py app     makes .venv beside this file, draws a first postcard, opens the app;
                              more arguments go to the app (--port 8000, --share ...)
    python install.py download NAME --models-dir FOLDER
                              fetches a backbone with the Python that runs this, such as ComfyUI's
    python install.py test    makes the same .venv and runs the tests; more arguments go to pytest;
                              --fast skips slow tests and runs the others with two workers:
                              two minutes instead of twenty-five

pip runs only for `app` and `test`, and only inside .venv; an installed torch is kept. The size of
the download is printed first. pip's output is shown if pip fails, or with --verbose.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "ssd-installed.txt"
OLDEST_PYTHON = (3, 10)
TESTED_TORCH = "2.13.0"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
VERBOSE, FAST = "--verbose", "--fast"
FAST_LANE = ("-m", "not slow")
# A file's tests stay in one worker, so that what they share is made once. By name: the slowest
# files come first then, and both workers end at about the same time.
WORKERS = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
# About how much is downloaded, in MB, on Linux with Python 3.11.
SIZES = {"app": 100, "app,dev": 310}
TORCH_MB, TORCH_CUDA_MB = 200, 3500
PROMPT = "a red house in the middle, on a lake, at sunset"
SEED = "8"


class InstallError(Exception):
    """One line: what failed and what to do."""


def main(arguments: list[str]) -> int:
    """Run a command and return its exit code, or 1 after one line on stderr."""
    actions = {"app": app, "download": download, "test": test}
    try:
        if not arguments:
            return check()
        if arguments[0] not in actions:
            raise InstallError(f"{arguments[0]!r}: choose app, download or test, or give "
                               "no argument")
        return actions[arguments[0]](arguments[1:])
    except InstallError as error:
        print(f"install.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("install.py: interrupted; run it again to go on", file=sys.stderr)
        return 130


def download(arguments: list[str]) -> int:
    """Run a download, which asks first, and return its exit code."""
    sys.path.insert(0, str(ROOT))  # an embedded Python does not search the script's folder
    from ssd_core.weights.fetch import main as fetch

    return fetch(arguments)


# Without arguments: only check


def check() -> int:
    """Print what is missing or too old; returns 0, since a node pack must not break a start."""
    missing = [*old_python(), *filter(None, map(complaint, requirements()))]
    for line in missing:
        print(f"SSD: {line}")
    if not missing:
        print("SSD: all requirements are there; nothing to do")
    return 0


def old_python() -> list[str]:
    if sys.version_info >= OLDEST_PYTHON:
        return []
    needed = ".".join(map(str, OLDEST_PYTHON))
    return [f"Python {platform.python_version()} is too old: {needed} or newer is needed"]


def requirements(path: Path = ROOT / "requirements.txt") -> list[tuple[str, str]]:
    """(package, oldest version) of each line."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [tuple(line.split(">=")) for line in lines if line and not line.startswith("#")]


def complaint(requirement: tuple[str, str]) -> str | None:
    """What is wrong with an installed package, or None."""
    name, oldest = requirement
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return f"{name} is missing: pip install -r requirements.txt"
    if numbers(found) < numbers(oldest):
        return f"{name} {found} is older than {oldest}: pip install -r requirements.txt"
    return None


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "2.13.0+cpu" -> (2, 13, 0)."""
    return tuple(map(int, re.match(r"\d+(?:\.\d+)*", version).group().split(".")))


# app and test: .venv


def app(arguments: list[str]) -> int:
    """Draw a first postcard, then open the app even if that failed; the app's exit code."""
    prepare("app", VERBOSE in arguments)
    print(f"\nA first postcard, by AR and by exact with the same seed: {PROMPT!r}", flush=True)
    out = str(ROOT / "outputs")
    command = [python(), "-m", "ssd_core", "compare", PROMPT, "--methods", "ar,exact",
               "--seed", SEED, "--out", out]
    if run(command):
        print("\nThe first postcard failed; the lines above say why. The app opens anyway: "
              "see its tab Doctor.", flush=True)
    else:
        print(how_to_go_on(), flush=True)
    return run([python(), str(ROOT / "gradio_app.py"), "--open", *without_verbose(arguments)])


def how_to_go_on() -> str:
    ssd = script("ssd")
    return (f"\nThe pictures are in {ROOT / 'outputs'}. Next, try in a terminal:\n"
            f'  {ssd} generate "{PROMPT}" --seed 12 --batch 4\n'
            f'  {ssd} compare "{PROMPT}" --methods ar,ssd,ssd:fused_commit=true,exact\n'
            f"  {ssd} plan --grid 90x90 --row-end --rounds 6\n"
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
    """Translate `--fast` for pytest; other arguments are unchanged."""
    others = [argument for argument in without_verbose(arguments) if argument != FAST]
    return [*WORKERS, *(FAST_LANE if FAST in arguments else ()), *others]


def without_verbose(arguments: list[str]) -> list[str]:
    return [argument for argument in arguments if argument != VERBOSE]


def prepare(extras: str, verbose: bool = False) -> None:
    """Set up .venv with torch and the package; if it is up to date, do nothing."""
    if complaints := old_python():
        raise InstallError(complaints[0])
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
        raise InstallError(f"cannot make {VENV} ({error}): is there space, and is Python's venv "
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
    except (OSError, ValueError):
        return []
    return ["--extra-index-url", CPU_INDEX]


def pip(verbose: bool, *arguments: str) -> None:
    """Install packages; pip's output is shown only if it fails, or with `verbose`."""
    what = arguments[-1] if arguments[0] == "-e" else arguments[0]
    print(f"installing {what}", flush=True)
    command = [python(), "-m", "pip", "install", "--disable-pip-version-check", *arguments]
    if run(command) if verbose else run_silently(command):
        raise InstallError(f"pip could not install {what}; its last lines above say why (network? "
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
        raise InstallError(f"cannot run {command[0]}: {error.strerror}; remove {VENV} and run this "
                           "again") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
