"""The elements' modules: their own tests in bare Node, and rules of size and of loading."""

import re
from pathlib import Path

import pytest
from support.scripts import faults, node, node_major

HERE = Path(__file__).parent
WEB = HERE.parents[2] / "studio" / "web"
FILES = sorted([*WEB.glob("*.js"), *WEB.glob("*.css")])
OLDEST_NODE = 20


@pytest.mark.skipif(node_major() < OLDEST_NODE,
                    reason=f"needs Node {OLDEST_NODE} or newer on the path")
def test_in_node():
    ran = node("--test", *map(str, sorted(HERE.glob("*.test.mjs"))))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^# pass [1-9]|ℹ pass [1-9]", ran.stdout, re.MULTILINE), ran.stdout


def test_files_are_short_narrow_and_fetch_nothing_from_elsewhere():
    assert faults(FILES, 400) == []


def test_modules_import_what_is_served_beside_them():
    """Addresses are relative, so that the app also works below a proxy's prefix."""
    imports = [(path.name, name) for path in sorted(WEB.glob("*.js"))
               for name in re.findall(r"\bfrom \"([^\"]+)\";", path.read_text(encoding="utf-8"))]
    assert [one for one in imports if not is_served(one[1])] == []


def is_served(name: str) -> bool:
    folder = WEB.parents[1] / "web" / "preview" if name.startswith("./core/") else WEB
    return name.startswith("./") and (folder / name.split("/")[-1]).is_file()


def test_the_page_s_style_sheet_brings_in_all_others():
    named = re.findall(r"@import url\(\"([^\"]+)\"\);",
                       (WEB / "studio.css").read_text(encoding="utf-8"))
    assert {*named, "studio.css"} == {path.name for path in WEB.glob("*.css")}
