"""Measure one table of lab/benchmarks/results:  python lab/benchmarks/run.py NAME [its options]

    python lab/benchmarks/run.py --list
    python lab/benchmarks/run.py methods --batch 16 --dtype bf16
    python lab/benchmarks/run.py speed --help

A name is a table of tables.py, or a script of this folder, which can be called by itself as well.
"""

from __future__ import annotations

import argparse
import ast
import runpy
import sys
from pathlib import Path

from tables import TABLES, parser, run

from ssd_core.errors import SSDError

HERE = Path(__file__).parent


def scripts() -> dict[str, str]:
    """The first line of every script that measures by itself, by name."""
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8"))
             for path in sorted(HERE.glob("*.py")) if path != Path(__file__)}
    return {name: (ast.get_docstring(tree) or "").splitlines()[0] for name, tree in trees.items()
            if any(getattr(node, "name", "") == "main" for node in tree.body)}


def listed() -> str:
    rows = {**{name: spec.title for name, spec in TABLES.items()}, **scripts()}
    return "\n".join(f"{name:<17} {title}" for name, title in rows.items())


def main(arguments: list[str] | None = None) -> None:
    asked = argparse.ArgumentParser(description=__doc__, add_help=False,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("name", nargs="?", metavar="NAME")
    asked.add_argument("--list", action="store_true", help="every name, and what it measures")
    known, rest = asked.parse_known_args(arguments)
    if known.list:
        print(listed())
    elif known.name in TABLES:
        print(run(known.name, parser().parse_args(rest)))
    elif known.name in scripts():
        sys.argv = [str(HERE / f"{known.name}.py"), *rest]
        runpy.run_path(sys.argv[0], run_name="__main__")
    elif known.name or rest != ["--help"]:
        raise SystemExit(f"{known.name or 'no name'}: choose one that --list shows")
    else:
        asked.print_help()
        asked.exit()


if __name__ == "__main__":
    try:
        main()
    except SSDError as error:
        raise SystemExit(str(error)) from None
