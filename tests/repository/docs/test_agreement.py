"""What the documents list is what there is: rooms, options, nodes, events, guarantees."""

import ast
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
import typer
from support.documents import DOCS, ROOT, blocks, codes, table
from test_layers import ROOMS

import ssd_core
from ssd_core import Plan, Sampling
from ssd_core.cli import app
from ssd_core.cli.train import STAGES
from ssd_core.engine.methods import METHODS

CONTRACT = (DOCS / "contract.md").read_text(encoding="utf-8")
NODES = sorted((ROOT / "nodes").glob("*.py"))


def first_codes(page: str, head: str) -> list[str]:
    return [codes(row[0])[0] for row in table(DOCS / page, head)]


def in_source(pattern: str, paths: list[Path]) -> set[str]:
    return {found for path in paths
            for found in re.findall(pattern, path.read_text(encoding="utf-8"))}


def options(*names: str) -> set[str]:
    """All flags of a command of the CLI."""
    command = typer.main.get_command(app)
    for name in names:
        command = command.get_command(typer.Context(command), name)
    return {flag for parameter in command.params
            for flag in (*parameter.opts, *parameter.secondary_opts)}


# help.md


def test_the_sizes_of_downloads_are_those_of_the_table_of_models():
    found = [row[2] for row in table(DOCS / "backbones.md", "folder in `ssd_backbones`")]
    sizes = [float(size) for size in found if size[0].isdigit()]
    page = (DOCS / "help.md").read_text(encoding="utf-8")
    assert f"{min(sizes):g} to {max(sizes):g} GB" in page


# architecture.md


def test_the_picture_of_the_rooms_is_the_table_that_the_layers_are_tested_with():
    picture = next(block.code for block in blocks(DOCS / "architecture.md"))
    drawn = re.findall(r"^ +\| +(\w+)/", picture, re.MULTILINE)
    assert drawn[::-1] == list(ROOMS[1:])
    assert first_codes("architecture.md", "room") == [f"{room}/" for room in ROOMS[1:]]


def test_every_folder_has_its_line():
    named = set(re.findall(r"`(\w+)/`", (DOCS / "architecture.md").read_text(encoding="utf-8")))
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()
               and any(path.glob("*.*")) and path.name[0] not in "._"}
    kept = {"docs", "outputs", "runs", "models"}  # this folder, and what users make
    assert {f for f in folders if not f.endswith(".egg-info")} - kept <= named


# methods.md and contract.md


def test_the_tables_of_methods_have_all_of_them():
    assert set(first_codes("methods.md", "method")) == set(METHODS)
    rows = {row[0].strip("`"): codes(row[2]) for row in table(DOCS / "contract.md", "guarantee")}
    for name, method in METHODS.items():
        assert name in rows[method.guarantee]


@pytest.mark.parametrize("name", ["Started", "Pass", "FinalRows", "Finished"])
def test_the_contract_lists_the_fields_of_an_event(name):
    kind = getattr(ssd_core, name)
    row = next(row for row in table(DOCS / "contract.md", "event") if name in row[0])
    assert set(codes(row[1])) <= {field.name for field in fields(kind)}
    assert row[1].startswith(f"`{fields(kind)[0].name}`")


def app_options() -> set[str]:
    """The flags of `ssd app`, which reads them itself."""
    start = (ROOT / "studio" / "start.py").read_text(encoding="utf-8")
    return {f"--{name.replace('_', '-')}" for name in re.findall(r"^    (\w+): Annotated\[", start,
                                                                re.MULTILINE)}


def test_the_contract_names_what_there_is():
    known = app_options().union(*map(options, ("generate", "render", "edit", "vary")))
    assert set(re.findall(r"--[a-z][\w-]*", CONTRACT)) <= known
    listed = CONTRACT[CONTRACT.index("returns a `Plan`"):].split("\n-")[0]
    assert set(codes(listed)[1:]) <= {*(f.name for f in fields(Plan)), "step_acceleration"}
    for field in fields(Sampling):
        if field.name in re.search(r"`Sampling\((.+)\)`", CONTRACT)[1]:
            assert f"{field.name}={field.default}" in CONTRACT


def test_the_contract_names_every_format():
    formats = in_source(r'"(ssd-\w+)(?:/\d+)?"', [*(ROOT / "ssd_core").rglob("*.py")])
    assert "ssd-recipe" in formats
    assert [name for name in formats - {"ssd-decoding"} if f"`{name}`" not in CONTRACT] == []


def test_node_ids_and_types_are_the_contracts():
    assert in_source(r'node_id="(SSD_\w+)"', NODES) == set(re.findall(r"`(SSD_[A-Z][a-z]\w+)`",
                                                                      CONTRACT))
    assert in_source(r'"(SSD_[A-Z]+)"', NODES) == set(re.findall(r"`(SSD_[A-Z]{2,})`", CONTRACT))


# comfyui.md, app.md, training.md


def test_the_table_of_nodes_has_all_of_them():
    names = in_source(r'node_id="SSD_\w+",\s+display_name="([A-Z][\w ]+?)(?: \(SSD\))?"', NODES)
    assert {row[0] for row in table(DOCS / "comfyui.md", "node")} == names


def test_the_table_of_templates_has_all_of_them():
    assert sorted(first_codes("comfyui.md", "template")) == sorted(
        path.stem for path in (ROOT / "workflows").glob("*.json"))


def test_the_options_of_the_app_are_listed():
    tree = ast.parse((ROOT / "studio" / "start.py").read_text(encoding="utf-8"))
    entry = next(node for node in tree.body if getattr(node, "name", "") == "main")
    flags = {"--" + arg.arg.strip("_").replace("_", "-") for arg in entry.args.args}
    assert {flag for row in table(DOCS / "app.md", "option") for flag in codes(row[0])} == flags


def test_the_stages_of_training_are_listed():
    assert first_codes("training.md", "stage") == list(STAGES)


# Everywhere


@cache
def known_flags() -> set[str]:
    """The flags of all our commands, and those of other programs that the pages name."""
    from accelerate.commands.launch import launch_command_parser

    # --head is Ray's.
    commands = [("generate",), ("edit",), ("vary",), ("render",), ("compare",), ("plan",),
                ("bench",), ("evaluate",), ("evaluate", "score"), ("download",),
                ("fit",), ("convert",), ("selftest",),
                *(("train", stage) for stage in STAGES)]
    foreign = {"--outfile", "--model-path", "--image-root-path", "--resolution", "--pic-num",
               "--local-dir", "--depth"}  # of the suites' scorers, hf download and git clone
    known = {"--help", "--index-url", "--head", *foreign,
             *launch_command_parser()._option_string_actions}
    return known.union(
        in_source(r'"(--\w+)"', [ROOT / name for name in (
            "environment.py", "tests/conftest.py", "tools/make.py", "lab/benchmarks/run.py")]),
        *(options(*names) for names in commands),
        *(codes(row[0]) for row in table(DOCS / "app.md", "option")))


def test_every_flag_of_a_page_belongs_to_some_command():
    for path in (ROOT / "README.md", *sorted(DOCS.glob("*.md"))):
        found = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", path.read_text(encoding="utf-8")))
        assert sorted(found - known_flags()) == [], path.name
