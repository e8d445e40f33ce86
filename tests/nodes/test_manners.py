"""How the pack behaves as a guest: thin nodes, one-way arrows, quick imports, honest metadata."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "nodes").glob("*.py"))
HOSTS = ("comfy", "comfy_api", "comfy_execution", "folder_paths", "server")
# A module imports only from lines above its own; nodes themselves stand on the last one.
LAYERS = (("newer", "errors", "telling", "previews"), ("widgets", "folders", "types", "frames"),
          ("schedules", "screens", "unfinished"), ("inputs", "weights"), ("requests",),
          ("running",), ("report", "schedule"), ("outcome",))
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def names(path: Path) -> list[str]:
    """Fellow modules that a file of nodes/ imports."""
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found += [node.module] if node.module else [alias.name for alias in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_arrows_point_one_way(path):
    if path.stem == "__init__":
        return
    for other in names(path):
        assert other in HEIGHT, f"{path.stem} imports the node {other}"
        assert HEIGHT[other] < HEIGHT.get(path.stem, len(LAYERS)), f"{path.stem} imports {other}"


def test_the_table_names_modules_that_exist():
    assert set(HEIGHT) <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_nodes_are_thin_and_files_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 300
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            length = node.end_lineno - node.lineno + 1
            assert length <= (40 if node.name == "execute" else 59), f"{node.name}: {length}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_no_globals_are_touched_and_nothing_is_printed(path):
    text = path.read_text(encoding="utf-8")
    for forbidden in ("print(", "eval(", "exec(", "basicConfig", "manual_seed", "sys.path",
                      "subprocess", "os.system", "from_pretrained"):
        assert not re.search(rf"(?<![\w.]){re.escape(forbidden)}", text), forbidden


def test_only_nodes_know_comfyui():
    for path in (*(ROOT / "ssd_core").rglob("*.py"), ROOT / "install.py", ROOT / "__init__.py"):
        for node in ast.walk(tree(path)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else (
                [node.module] if isinstance(node, ast.ImportFrom) and not node.level else [])
            assert not {m.split(".")[0] for m in modules} & set(HOSTS), path


def test_the_root_imports_nothing_until_asked():
    assert not [n for n in tree(ROOT / "__init__.py").body
                if isinstance(n, ast.Import | ast.ImportFrom)]


# The registry


def project() -> str:
    return (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_requirements_never_touch_torch():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").split()
    assert not [line for line in lines if line.startswith(("torch", "git+", "-"))]
    assert not [line for line in lines if "==" in line]


def test_the_registry_finds_what_it_needs():
    text = project()
    for key in ("[tool.comfy]", "PublisherId", "DisplayName", "requires-comfyui"):
        assert key in text
    assert not re.search(r"^web\s*=", text, re.M)  # it would load every script twice
