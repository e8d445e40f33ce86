"""The wheel installs with the app and draws on the other Pythons that it declares."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_floors import PROMPT, index, is_a_picture
from test_wheel import clean, programs, wheel

__all__ = ["wheel"]  # a fixture
pytestmark = pytest.mark.nightly


def python(version: str) -> Path | None:
    """A Python of this version that starts: on the path, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    found = (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python")))
    return next((Path(path) for path in found if path and starts(path)), None)


def starts(path: str | Path) -> bool:
    return subprocess.run([path, "-c", "import venv"], capture_output=True,
                          check=False).returncode == 0


@pytest.mark.parametrize("version", [version for version in ("3.10", "3.12", "3.13")
                                     if version != f"{sys.version_info[0]}.{sys.version_info[1]}"])
def test_it_installs_and_draws(version, wheel, tmp_path):
    if (found := python(version)) is None:
        pytest.skip(f"Python {version} is not installed here")
    subprocess.run([found, "-m", "venv", tmp_path / "venv"], check=True)
    own = programs(tmp_path / "venv")
    subprocess.run([own / "python", "-m", "pip", "install", "--quiet", f"{wheel}[app]", *index()],
                   check=True)
    subprocess.run([own / "python", "-m", "pip", "check"], check=True)
    ends = [("generate", PROMPT, "--seed", "7", "--out", "a.png"), ("app", "--help")]
    for arguments in ends:
        subprocess.run([own / "ssd", *arguments], cwd=tmp_path, check=True, env={
            **clean(), "SSD_CACHE": str(tmp_path / "cache")})
    assert is_a_picture(tmp_path / "a.png")
