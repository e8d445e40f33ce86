"""The wheel: built without a network, installed into an environment of its own, and used there."""

import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
import venv
import zipfile
from pathlib import Path
from time import monotonic, sleep

import pytest

import ssd_core

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("ssd_core", "lab", "studio", "web")
WINDOWS = os.name == "nt"


def programs(environment: Path) -> Path:
    return environment / ("Scripts" if WINDOWS else "bin")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, so that nothing is left in the repository and no older build gets in."""
    pytest.importorskip("setuptools", minversion="68")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for part in PARTS:
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / file, source / file)
    subprocess.run([sys.executable, "-m", "pip", "wheel", source, "--no-deps", "--quiet",
                    "--no-index", "--no-build-isolation", "--wheel-dir", folder], check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """An environment with the wheel, which borrows all that the wheel requires from ours."""
    place = tmp_path_factory.mktemp("fresh") / "environment"
    venv.create(place, with_pip=False)
    python = programs(place) / "python"
    own = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                         check=True, capture_output=True, text=True).stdout.strip()
    borrowed = [path for path in sys.path if path.rstrip("/\\").endswith("-packages")]
    Path(own, "borrowed.pth").write_text("\n".join(borrowed), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps",
                    "--no-index", "--quiet", "--ignore-installed", wheel], check=True)
    return place


def clean() -> dict[str, str]:
    """This process's variables without those that would put the repository on the path."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture
def ssd(environment, tmp_path):
    """Runs the installed command in an empty folder; what it printed."""
    def run(*arguments: str) -> str:
        done = subprocess.run([programs(environment) / "ssd", *arguments], cwd=tmp_path, text=True,
                              env=clean(), capture_output=True, check=False, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


def listed() -> dict[str, list[str]]:
    tomllib = pytest.importorskip("tomllib", reason="tomllib comes with Python 3.11")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["tool"]["setuptools"]


def test_every_folder_with_code_is_listed():
    folders = {path.parent.relative_to(ROOT) for part in ("ssd_core", "lab", "studio")
               for path in (ROOT / part).rglob("__init__.py")}
    names = {re.sub("^(lab|studio)", r"ssd_\1", ".".join(folder.parts)) for folder in folders}
    assert names | {"ssd_studio.web", "ssd_studio.web.core"} == set(listed()["packages"])


def test_the_wheel_holds_engine_laboratory_and_app_and_nothing_else(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {path.relative_to(ROOT).as_posix() for path in (ROOT / "ssd_core").rglob("*")
                if path.is_file() and path.suffix != ".pyc"}
    for folder, place in (("studio", "ssd_studio"), ("web/preview", "ssd_studio/web/core"),
                          ("lab", "ssd_lab")):
        expected |= {f"{place}/{path.relative_to(ROOT / folder).as_posix()}"
                     for path in (ROOT / folder).rglob("*") if "benchmarks" not in path.parts
                     and path.suffix in (".py", ".js", ".css", ".html", ".svg", ".json", ".jpg")}
    assert names == expected


@pytest.mark.nightly
def test_the_installed_command_plans_and_draws(ssd, environment, tmp_path):
    assert all(command in ssd("--help") for command in ("generate", "plan", "app"))
    assert ssd("--version").strip() == ssd_core.__version__, "of the installed metadata"
    assert "34" in ssd("plan", "--grid", "24x24", "--method", "ssd", "--rounds", "0")
    ssd("generate", "a red house", "--method", "rows", "--out", "house.png", "--device", "cpu")
    assert (tmp_path / "house.png").stat().st_size > 1000
    ssd("generate", "a red house", "--method", "mulo", "--device", "cpu")
    where = subprocess.run(
        [programs(environment) / "python", "-c", "import ssd_core, ssd_studio\n"
         "print(ssd_core.__file__, ssd_studio.__file__)"], cwd=tmp_path, env=clean(), check=True,
        capture_output=True, text=True).stdout
    assert where.count(str(environment)) == 2, "the wheel's own code runs, not the repository's"


def fetched(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read()


def wait_until_it_listens(port: int, process: subprocess.Popen, patience: float = 180) -> None:
    end = monotonic() + patience
    while True:
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return
        assert process.poll() is None, process.communicate()
        assert monotonic() < end, "the app does not answer"
        sleep(0.2)


@pytest.mark.nightly
def test_the_installed_app_serves_its_page_and_its_modules(environment, tmp_path):
    pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [programs(environment) / "ssd", "app", "--port", str(port), "--device", "cpu"],
        cwd=tmp_path, env=clean(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_until_it_listens(port, process)
        assert re.search(rb'src="studio/web/v/\w+/app.js"', fetched(address))
        for path, file in (("app.js", "studio/web/app.js"), ("page.css", "studio/web/page.css"),
                           ("core/preview.js", "web/preview/preview.js")):
            assert fetched(f"{address}/studio/web/{path}") == (ROOT / file).read_bytes()
        assert (tmp_path / "outputs").is_dir(), "the app keeps its pictures where it was started"
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.nightly
def test_the_options_of_the_installed_app_are_those_of_the_app(ssd):
    text = ssd("app", "--help")
    assert all(flag in text for flag in ("--models-dir", "--language", "--share"))
