"""Make all files that follow from the code: texts, workflows, pictures; --check only compares.

    python tools/make.py texts                      after a change to a node, a method or a knob
    python tools/make.py golden                     after a name that others rely on has changed
    python tools/make.py workflows [NAME ...]       after a change to tools/workflow_graphs.py
    python tools/make.py blueprints [NAME ...]      after a change to tools/blueprint_graphs.py
    python tools/make.py pictures [NAME ...]        after a change to their content
    python tools/make.py moments [NAME ...]         after a change to a page, to look at it

texts: locales, help pages, new widgets in the workflows, the workflow inside PNGs, tables of the
documents, new names of the golden set; needs neither ComfyUI nor a browser.
golden: the golden set (golden.py) as it is now, renamed and removed names too; never after 0.1.0.
workflows: laid out by ComfyUI's own page and run for their thumbnails; COMFYUI_PATH names a
ComfyUI and COMFYUI_PYTHON its Python.
blueprints: by the same page. pictures: drawn by `postcard`, some in a headless Chromium.
moments: the app in all its moments on one sheet, build/moments/sheet.webp, which git ignores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
if find_spec("torch") is None:
    raise SystemExit(f"{sys.executable} has no torch: run python install.py test core once, then "
                     "activate .venv, as docs/contributing.md says")

import backbone_table  # noqa: E402
import blueprint_graphs as all_blueprints  # noqa: E402
import card_table  # noqa: E402
import figure_tables  # noqa: E402
import first_model  # noqa: E402
import golden as golden_set  # noqa: E402
import knob_pages  # noqa: E402
import method_tables  # noqa: E402
import padding  # noqa: E402
import pictures as all_pictures  # noqa: E402
import scale  # noqa: E402
import word_list  # noqa: E402
import workflow_template  # noqa: E402
from workflow_graphs import GRAPHS, complaints  # noqa: E402

from ssd_core.files import write_text  # noqa: E402

# In this order: the workflow inside PNGs is made of the workflows.
TEXTS = (knob_pages, word_list, method_tables, backbone_table, scale, first_model, card_table,
         figure_tables, padding, workflow_template, golden_set)


def stale(texts: dict[Path, str]) -> dict[Path, str]:
    """The files whose contents differ from these, with the contents they should have."""
    return {path: text for path, text in texts.items()
            if not path.exists() or path.read_text(encoding="utf-8") != text}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def texts(names: list[str], check: bool) -> list[str]:
    """Write the stale files; with `check` only return a line for each."""
    changed = []
    for maker in TEXTS:
        for path, text in stale(maker.pages()).items():
            changed.append(name(path))
            if not check:
                write(path, text)
    return [f"{path} is stale: run python tools/make.py texts" for path in changed if check]


def golden(names: list[str], check: bool) -> list[str]:
    if check:
        return list(golden_set.complaints(golden_set.read(golden_set.PATH), golden_set.golden()))
    for path, text in stale(golden_set.pages(anew=True)).items():
        write(path, text)
    return []


def write(path: Path, text: str) -> None:
    write_text(path, text)
    print(name(path))


def workflows(names: list[str], check: bool) -> list[str]:
    unknown(names, GRAPHS)
    chosen = names or list(GRAPHS)
    if check:
        return [line for name in chosen for line in complaints(name, ROOT / "workflows")]
    import_module("workflows").make_all(chosen)
    return texts([], check=False)


def blueprints(names: list[str], check: bool) -> list[str]:
    unknown(names, all_blueprints.BLUEPRINTS)
    chosen = names or list(all_blueprints.BLUEPRINTS)
    if check:
        folder = ROOT / "subgraphs"
        return [line for name in chosen for line in all_blueprints.complaints(name, folder)]
    import_module("blueprints").make_all(chosen)
    return []


def pictures(names: list[str], check: bool) -> list[str]:
    unknown(names, all_pictures.PICTURES)
    chosen = names or list(all_pictures.PICTURES)
    if check:
        return [line for name in chosen for line in all_pictures.complaints(name)]
    for name in chosen:
        all_pictures.PICTURES[name].make()
    return []


def moments(names: list[str], check: bool) -> list[str]:
    """Looked at, not kept: there is nothing to compare."""
    if not check:
        visits = import_module("moments")
        unknown(names, visits.VISITS)
        visits.main(names)
    return []


def unknown(names: list[str], known: dict) -> None:
    if gone := sorted(set(names) - set(known)):
        raise SystemExit(f"{', '.join(gone)}: choose of {', '.join(known)}")


WHAT: dict[str, Callable[[list[str], bool], list[str]]] = {
    "texts": texts, "golden": golden, "workflows": workflows, "blueprints": blueprints,
    "pictures": pictures, "moments": moments}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="of a workflow, a picture or a visit")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something "
                                                             "is missing or stale")
    asked = parser.parse_args(arguments)
    if asked.names and asked.what in ("texts", "golden"):
        parser.error(f"{asked.what}: made all at once")
    complaints = WHAT[asked.what](asked.names, asked.check)
    for line in complaints:
        print(line, file=sys.stderr)
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
