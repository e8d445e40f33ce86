"""Which module may import which, how long things may be, and what never appears: read with ast."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "ssd_core"

# Rooms from the bottom to the top. A module imports from its own room and from rooms above its
# line in this table, never from one below it.
ROOMS = ("", "model", "backbones", "engine", "weights", "output", "runs", "train", "measure",
         "selftest", "cli")
# Of the top folder; ssd_core itself is the public face.
BOTTOM = ("arguments", "errors", "files", "kept_entries", "kept_files", "launched",
          "machine_faults", "measured", "openmp", "proxies", "state_files", "stopping", "streams",
          "version")
HOSTS = ("comfy", "comfy_api", "comfy_extras", "comfy_execution", "folder_paths", "server",
         "gradio", "nodes", "studio")
STUDIO, LAB = ROOT / "studio", ROOT / "lab"
HTTP = ("api", "api_history", "api_models", "calls", "pages", "policy", "proxied")


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def laboratory() -> list[Path]:
    """Its package, without the scripts of benchmarks/."""
    return [path for path in sources(LAB) if not path.is_relative_to(LAB / "benchmarks")]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def name_of(path: Path) -> str:
    parts = path.relative_to(CORE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name: str) -> bool:
    path = CORE.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def for_types(path: Path) -> set[ast.stmt]:
    """The imports of a file that no run takes: below `if TYPE_CHECKING`."""
    return {inner for node in ast.walk(tree(path)) if isinstance(node, ast.If)
            and ast.unparse(node.test) == "TYPE_CHECKING" for inner in node.body}


def imported_modules(path: Path, running: bool = False) -> set[str]:
    """Dotted names below ssd_core that a file imports, relative imports resolved.

    running: without imports for types alone.
    """
    found, package = set(), path.parent.relative_to(CORE).parts
    left_out = for_types(path) if running else set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level and node not in left_out:
            base = [*package[: len(package) - node.level + 1], *filter(None, [node.module])]
            for alias in node.names:
                inner = ".".join((*base, alias.name))
                found.add(inner if is_module(inner) else ".".join(base))
    return found


def absolute_imports(path: Path) -> set[str]:
    """First names of all absolute imports of a file, wherever in it they stand."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.split(".")[0])
    return found


def height(module: str) -> int:
    """The line of the room that a module is in."""
    return 0 if module in BOTTOM else ROOMS.index(module.split(".")[0])


def inner_modules() -> list[str]:
    """Every module of a room, and those at the bottom."""
    names = map(name_of, sources(CORE))
    return [name for name in names if name in BOTTOM or name.split(".")[0] in ROOMS[1:]]


def file_of(module: str) -> Path:
    path = CORE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def test_every_folder_is_a_room_of_the_table():
    folders = {path.parent.relative_to(CORE).parts[0] for path in sources(CORE)
               if path.parent != CORE}
    assert folders == set(ROOMS[1:])


def test_rooms_import_only_from_rooms_below():
    assert [f"{module} imports {other}" for module in inner_modules()
            for other in imported_modules(file_of(module)) - {""}
            if height(other) > height(module)] == []


def test_no_module_imports_itself_by_way_of_others():
    """`prepare` raises CycleError with the modules of the circle."""
    graph = {module: imported_modules(file_of(module), running=True) - {module, ""}
             for module in inner_modules()}
    TopologicalSorter(graph).prepare()


def test_a_circle_is_seen():
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()


def test_the_order_that_matters_is_seen():
    """The test reads what it should: a few imports that are surely there."""
    methods = CORE / "engine" / "methods"
    assert imported_modules(methods / "rows.py") >= {"engine.methods.ssd", "engine.state",
                                                     "model.grid"}
    assert imported_modules(methods / "base.py") >= {"engine.accept", "backbones.base"}
    assert imported_modules(CORE / "__init__.py") >= {"engine.decode", "engine.methods", "errors"}


def modules_of(statement: str) -> list[str]:
    """The project's modules that a statement loads, in a fresh process."""
    listed = (f"import sys; {statement}; print(*(name for name in sys.modules "
              "if name.partition('.')[0] in ('ssd_core', 'ssd_lab', 'ssd_studio')))")
    return subprocess.run([sys.executable, "-c", listed], cwd=ROOT, check=True, text=True,
                          capture_output=True).stdout.split()


# What drawing does not need: other models, other methods, the toy model's words, the laboratory.
NOT_LOADED = re.compile(r"ssd_lab|ssd_studio|ssd_core\.(train|weights|output|runs|cli|selftest|"
                        r"backbones\.(postcard|janus|families)|engine\.methods\.baselines)\b")


def test_a_script_that_draws_loads_few_modules():
    loaded = modules_of("from ssd_core import generate")
    assert "ssd_core.engine.decode" in loaded and len(loaded) <= 72, loaded
    assert [name for name in loaded if NOT_LOADED.match(name)] == []


def importing(files: list[Path], forbidden: set[str]) -> list[tuple[Path, set[str]]]:
    """The files that import one of these, and which."""
    found = [(path, absolute_imports(path) & forbidden) for path in files]
    return [(path, names) for path, names in found if names]


def test_the_engine_knows_no_host_and_is_imported_relatively_in_comfyui():
    assert importing(sources(CORE), {*HOSTS, "ssd_core"}) == []
    assert importing(sources(ROOT / "nodes"), {"ssd_core"}) == []  # it would be a second copy


def test_the_laboratory_imports_the_engine_and_nothing_imports_it():
    """The command line imports its commands and stages by name, when they are given."""
    product = [*sources(CORE), *sources(STUDIO), *sources(ROOT / "nodes")]
    assert importing(product, {"ssd_lab", "lab"}) == []
    assert importing(laboratory(), {*HOSTS, "ssd_lab", "lab"}) == []
    assert {path.parent.name for path in laboratory() for node in ast.walk(tree(path))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ssd_core.cli")
            } == {"commands"}


def test_only_the_server_knows_gradio_and_the_studio_knows_no_nodes():
    assert importing(sources(STUDIO), set(HOSTS) - {"gradio", "studio"}) == []
    behind = [path for path in STUDIO.glob("*.py") if path.stem not in ("server", "programs")]
    assert importing(behind, {"gradio"}) == []
    behind = [path for path in behind if path.stem not in HTTP]
    assert importing(behind, {"starlette", "fastapi"}) == []


def prints(path: Path) -> bool:
    calls = [node.func for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    return "print" in {call.id for call in calls if isinstance(call, ast.Name)}


def test_only_the_command_line_prints():
    assert prints(ROOT / "install.py")
    assert [path for path in sources(CORE)
            if prints(path) and not path.is_relative_to(CORE / "cli")] == []


def test_tests_never_import_the_nodes_folder_by_name():
    assert importing(sources(ROOT / "tests"), {"nodes"}) == []


def too_long(path: Path) -> list[str]:
    """Functions of 60 lines or more."""
    functions = [node for node in ast.walk(tree(path))
                 if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [f"{path}: {node.name}" for node in functions if node.end_lineno - node.lineno >= 60]


def test_functions_stay_short():
    files = [*sources(CORE), *sources(STUDIO), *laboratory(), *sources(ROOT / "tests")]
    assert [found for path in files for found in too_long(path)] == []


def test_every_module_says_what_it_is():
    for path in (*sources(CORE), *sources(STUDIO), *laboratory()):
        assert ast.get_docstring(tree(path)), path


BANNED = {"told", "wish", "kept", "given", "one"}  # they say nothing of what they hold
PYTHON_ONLY = {"promise", "promises", "Choice"}  # JavaScript has promises, and a page a choice


def bound_names(path: Path) -> list[str]:
    """The names that a file gives to variables, attributes, parameters, functions and classes."""
    return [name for node in ast.walk(tree(path)) for name in (
        [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        else [node.attr] if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        else [node.arg] if isinstance(node, ast.arg)
        else [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else [])]


# Words with one meaning each: the rooms that may name something by them.
MEANINGS = {"claim": ("backbones",), "claims": ()}


def test_a_claim_is_a_captions():
    assert [f"{path.relative_to(CORE)}: {name}" for path in sources(CORE)
            for name in bound_names(path) if name in MEANINGS
            and path.relative_to(CORE).parts[0] not in MEANINGS[name]] == []


def test_bundled_names_become_paths_in_one_module():
    """All others ask weights/find.py; the registry lists the names."""
    importers = {path.relative_to(CORE).as_posix() for path in sources(CORE)
                 for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom)
                 if "BACKBONES" in {alias.name for alias in node.names}}
    assert importers == {"weights/find.py", "weights/registry.py"}


def test_names_say_what_they_hold():
    folders = [ROOT / name for name in ("ssd_core", "nodes", "studio", "lab", "tools")]
    banned = BANNED | PYTHON_ONLY
    vague = [f"{path.relative_to(ROOT)}: {name}" for folder in folders for path in sources(folder)
             for name in bound_names(path) if name in banned]
    assert not vague, f"choose names that say what they hold instead of these: {vague}"


TEXT = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
DECLARED = re.compile(r"\b(?:const|let|var|function\*?|class)\s+([\w$]+)")
UNPACKED = re.compile(r"\b(?:const|let|var)\s*([\[{][^;]*?[\]}])\s*=[^=>]")
PARAMETERS = re.compile(r"\(([^()]*)\)\s*(?:=>|\{)|\b([\w$]+)\s*=>")
FIELD = re.compile(r"^\s*(?:this\.|static\s+)?#?([\w$]+)\s*=[^=>]", re.MULTILINE)


def bound_in_script(text: str) -> set[str]:
    """The names that JavaScript gives to variables, parameters, fields, functions and classes."""
    code = TEXT.sub('""', text)
    groups = [*UNPACKED.findall(code), *(more or single for more, single in
                                         PARAMETERS.findall(code))]
    unpacked = (re.findall(r"([\w$]+)\s*(?=[,=}\])]|$)", group) for group in groups)
    return {*DECLARED.findall(code), *FIELD.findall(code), *(n for each in unpacked for n in each)}


def test_names_of_scripts_say_what_they_hold():
    scripts = [*(STUDIO / "web").rglob("*.js"), *(ROOT / "web").rglob("*.js")]
    assert [f"{path.relative_to(ROOT)}: {name}" for path in sorted(scripts)
            for name in bound_in_script(path.read_text(encoding="utf-8"))
            if name in BANNED] == []


def test_names_of_scripts_are_seen():
    assert bound_in_script("""
        const a = 1; const { b, c: d = 2 } = x; let [e] = y; // const no = 3
        function f(g, { h } = {}) { return (i) => "const none = 4"; }
        class J {
          #k = 5;
          l() {
            this.m = (n, o) => p => n;
          }
        }
    """) >= set("abdefghiJkmnop")
