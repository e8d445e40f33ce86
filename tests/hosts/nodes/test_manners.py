"""How the pack behaves as a guest: thin nodes, one-way arrows, quick imports, honest metadata."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "nodes").glob("*.py"))
HOSTS = ("comfy", "comfy_api", "comfy_execution", "folder_paths", "server")
# A module imports only from lines above its own; nodes themselves stand on the last one.
LAYERS = (("filenames", "finished", "folders", "language", "later", "patchers", "pictures",
           "previews", "reading", "selftesting", "types", "widgets"),
          ("frames", "inputs", "schedules", "unfinished", "weights"),
          ("downloads", "draft_heads", "fitting", "keeping", "learning", "limits", "painters",
           "requests", "sources"),
          ("errors", "facts", "panels"),
          ("running",),
          ("decoding", "report", "things"),
          ("drawing", "outcome", "routes"))
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def names(path: Path) -> list[str]:
    """Fellow modules that a file of nodes/ imports, now or later, except for types alone."""
    found, parsed = [], tree(path)
    for_types = {inner for node in ast.walk(parsed) if isinstance(node, ast.If)
                 and ast.unparse(node.test) == "TYPE_CHECKING" for inner in node.body}
    for node in ast.walk(parsed):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node not in for_types:
            found += ([node.module] if node.module not in (None, "later")
                      else [alias.name for alias in node.names])
    return [name for name in found if path.with_name(f"{name}.py").is_file()]


def test_arrows_point_one_way():
    """A node stands above all layers: nothing imports it."""
    nodes = len(LAYERS)
    assert [f"{path.stem} imports {other}" for path in FILES if path.stem != "__init__"
            for other in names(path)
            if HEIGHT.get(other, nodes) >= HEIGHT.get(path.stem, nodes)] == []


def test_the_table_names_modules_that_exist():
    assert set(HEIGHT) <= {path.stem for path in FILES}


def test_nodes_are_thin_and_files_short():
    functions = [(path.stem, node) for path in FILES for node in ast.walk(tree(path))
                 if isinstance(node, ast.FunctionDef)]
    assert [(file, node.name) for file, node in functions if node.end_lineno - node.lineno
            >= (40 if node.name == "execute" else 59)] == []
    assert [path for path in FILES
            if len(path.read_text(encoding="utf-8").splitlines()) >= 300] == []


def test_no_globals_are_touched_and_nothing_is_printed():
    forbidden = "|".join(map(re.escape, (
        "print(", "eval(", "exec(", "basicConfig", "manual_seed", "sys.path", "subprocess",
        "os.system", "from_pretrained")))
    assert [(path.stem, found) for path in FILES
            for found in re.findall(rf"(?<![\w.])(?:{forbidden})",
                                    path.read_text(encoding="utf-8"))] == []


def test_only_nodes_know_comfyui():
    for path in (*(ROOT / "ssd_core").rglob("*.py"), ROOT / "install.py", ROOT / "__init__.py"):
        for node in ast.walk(tree(path)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else (
                [node.module] if isinstance(node, ast.ImportFrom) and not node.level else [])
            assert not {m.split(".")[0] for m in modules} & set(HOSTS), path


def test_the_root_imports_nothing_until_asked():
    assert not [n for n in tree(ROOT / "__init__.py").body
                if isinstance(n, ast.Import | ast.ImportFrom)]


MOST_MODULES = 130  # at ComfyUI's start; what only a run needs is imported by it
AT_START = """
import asyncio, sys
from pathlib import Path
from support import comfyui_stub
with comfyui_stub.pack(Path(sys.argv[1])) as stubs:
    extension = asyncio.run(stubs.root.comfy_entrypoint())
    for node in asyncio.run(extension.get_node_list()):
        node.define_schema()
    print(*(name for name in sys.modules if name.startswith(comfyui_stub.PACK)))
"""


def test_few_modules_are_imported_at_the_start(tmp_path):
    ran = subprocess.run([sys.executable, "-c", AT_START, str(tmp_path)], check=True, text=True,
                         capture_output=True, cwd=ROOT / "tests", timeout=300)
    modules = ran.stdout.split()
    assert 1 < len(modules) <= MOST_MODULES, modules
    assert not [name for name in modules if re.search(
        r"ssd_core\.(selftest|measure|cli)\b|weights\.(hub|downloads)|output\.touchable", name)]


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
