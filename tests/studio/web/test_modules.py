"""The elements' modules: their own tests in bare Node, and rules of size and of loading."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WEB = HERE.parents[2] / "studio" / "web"
FILES = sorted([*WEB.glob("*.js"), *WEB.glob("*.css")])
OLDEST_NODE = 20


def node_major() -> int:
    path = shutil.which("node")
    if path is None:
        return 0
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    return int(re.match(r"v(\d+)", version.stdout).group(1))


def name_of(path: Path) -> str:
    return path.name


@pytest.mark.skipif(node_major() < OLDEST_NODE,
                    reason=f"needs Node {OLDEST_NODE} or newer on the path")
@pytest.mark.parametrize("path", sorted(HERE.glob("*.test.mjs")), ids=name_of)
def test_in_node(path):
    ran = subprocess.run(["node", "--test", str(path)], capture_output=True, text=True, timeout=120,
                         encoding="utf-8")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^# pass [1-9]|ℹ pass [1-9]", ran.stdout, re.MULTILINE), ran.stdout


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_are_short_and_narrow(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 400 and max(map(len, lines)) <= 100


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_is_fetched_from_elsewhere(path):
    assert "://" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(WEB.glob("*.js")), ids=name_of)
def test_modules_import_what_is_served_beside_them(path):
    """Addresses are relative, so that the app also works below a proxy's prefix."""
    for name in re.findall(r"\bfrom \"([^\"]+)\";", path.read_text(encoding="utf-8")):
        folder = WEB.parents[1] / "web" if name.startswith("./core/") else WEB
        assert name.startswith("./") and (folder / name.split("/")[-1]).is_file(), name


def test_the_page_s_style_sheet_brings_in_all_others():
    named = re.findall(r"@import url\(\"([^\"]+)\"\);",
                       (WEB / "studio.css").read_text(encoding="utf-8"))
    assert {*named, "studio.css"} == {path.name for path in WEB.glob("*.css")}
