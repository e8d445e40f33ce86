"""The preview's modules: their own tests in bare Node, and the rules that a host lays on them."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WEB = ROOT / "web"
MODULES = sorted(WEB.rglob("*.js"))
SAMPLES = sorted((HERE / "samples").glob("*.json"))
OLDEST_NODE = 18


def node_major() -> int:
    path = shutil.which("node")
    if path is None:
        return 0
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    return int(re.match(r"v(\d+)", version.stdout).group(1))


needs_node = pytest.mark.skipif(node_major() < OLDEST_NODE,
                                reason=f"needs Node {OLDEST_NODE} or newer on the path")


def node(*arguments: str, given: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(["node", *arguments], input=given, capture_output=True, text=True,
                          timeout=120, encoding="utf-8")


def name_of(path: Path) -> str:
    return path.name


@needs_node
@pytest.mark.parametrize("path", sorted(HERE.glob("*.test.mjs")), ids=name_of)
def test_in_node(path):
    ran = node("--test", str(path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^# pass [1-9]|ℹ pass [1-9]", ran.stdout, re.MULTILINE), ran.stdout


@needs_node
@pytest.mark.parametrize("path", SAMPLES, ids=name_of)
def test_every_message_of_a_recorded_run_is_read(path):
    told = json.loads(node(str(HERE / "validate.mjs"),
                           given=path.read_text(encoding="utf-8")).stdout)
    assert told["refused"] == [] and told["ignored"] == []
    assert told["panels"] and all(panel["end"] for panel in told["panels"])


def test_there_are_recorded_runs():
    assert {path.stem for path in SAMPLES} >= {"sampler", "race", "batch", "interrupted"}


def imports(path: Path) -> list[str]:
    return re.findall(r"^(?:import|export)\b[^;]*?\bfrom \"([^\"]+)\";",
                      path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_the_registration_imports_the_host(path):
    """ComfyUI imports every script below web/, so a helper must do nothing when it is loaded."""
    host = [name for name in imports(path) if not name.startswith("./")]
    assert host == (["../../scripts/app.js", "../../scripts/api.js"]
                    if path.name == "ssd.js" else [])


@needs_node
@pytest.mark.parametrize("path", [p for p in MODULES if p.name != "ssd.js"], ids=name_of)
def test_a_helper_loads_where_there_is_no_page(path):
    ran = node("--input-type=module", "-e",
               f"const before = Object.keys(globalThis).length; await import({path.as_uri()!r});"
               "if (Object.keys(globalThis).length !== before) throw new Error('side effect')")
    assert ran.returncode == 0 and ran.stdout == "", ran.stderr


def test_the_registration_is_never_told_twice():
    """[tool.comfy] web beside WEB_DIRECTORY would load every script twice."""
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[tool.comfy]")[1]
    assert not re.search(r"^web\b", settings.split("\n[")[0], re.MULTILINE)


@pytest.mark.parametrize("path", [*MODULES, *WEB.glob("*.css")], ids=name_of)
def test_files_are_short_and_narrow(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 300 and max(map(len, lines)) <= 100


@pytest.mark.parametrize("path", [*MODULES, *WEB.glob("*.css")], ids=name_of)
def test_nothing_is_fetched_from_elsewhere(path):
    assert "://" not in path.read_text(encoding="utf-8")
