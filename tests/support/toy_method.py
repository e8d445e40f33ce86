"""Register a method with one knob, then print as JSON where each host shows that knob.

Run by itself: hosts read the table of methods when they are imported, so it must be in there first.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from support import comfyui_stub  # noqa: E402

HELP = "How much to stir."


def register(package: str) -> None:
    """Add `toy` to the methods of the engine imported under this name."""
    methods = importlib.import_module(f"{package}.engine.methods")
    knob = importlib.import_module(f"{package}.model.knobs").knob

    @dataclass(frozen=True)
    class Toy(methods.AR):
        stir: int | None = knob(None, HELP, low=2, high=9, none_means="the toy's own")
        name: ClassVar[str] = "toy"

    Toy.__annotations__ = {"stir": "int | None"}
    methods.METHODS["toy"] = Toy


def in_nodes(folder: Path) -> dict:
    with comfyui_stub.pack(folder) as stubs:
        register(f"{comfyui_stub.PACK}.ssd_core")
        extension = asyncio.run(stubs.root.comfy_entrypoint())
        nodes = {node.define_schema().node_id: node
                 for node in asyncio.run(extension.get_node_list())}
        inputs = nodes["SSD_Sampler"].define_schema().inputs
        listed = next(one for one in inputs if one.id == "method")
        own = next(option.inputs for option in listed.options if option.key == "toy")
        schedules = importlib.import_module(f"{comfyui_stub.PACK}.nodes.schedules")
        made = [schedules.chosen({"method": "toy", "stir": value})[0].stir for value in (4, -1)]
        return {"knobs": [one.id for one in own], "tooltip": own[0].tooltip,
                "default": own[0].default, "values": made,
                "elsewhere": [one.id for one in inputs if one.id == "stir"]}


def in_cli() -> dict:
    from typer.testing import CliRunner

    from ssd_core.cli import app

    runner = CliRunner(env={"COLUMNS": "200"})
    told = [runner.invoke(app, ["plan", *rest]) for rest in (
        ["--help"], ["--method", "toy", "--stir", "4", "--grid", "4x4", "--json"],
        ["--method", "toy", "--stir", "1", "--grid", "4x4"])]
    return {"help": "--stir" in told[0].output and HELP in told[0].output,
            "exit": [one.exit_code for one in told],
            "error": f"{told[2].output}{told[2].exception}"}


def in_app() -> dict:
    from ssd_core.backbones.base import Preset
    from ssd_core.output.knobs import all_knobs
    from studio.schema import knob_view
    from studio.settings import as_json, asked, first_values

    settings = asked({"prompt": "a", "method": "toy", "stir": 4})
    knob = knob_view(all_knobs()["stir"], "en")
    return {"control": [knob["kind"], knob["default"]], "sent": knob["methods"],
            "label": knob["label"], "method": settings.method.stir,
            "json": [as_json(settings)["stir"], first_values(Preset())["stir"]]}


def in_recipe() -> list:
    from ssd_core.output.drawing import method_of

    return [method_of({"method": "toy", "stir": stir}).stir for stir in (4, None)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = {"nodes": in_nodes(Path(folder))}
    register("ssd_core")
    told |= {"cli": in_cli(), "app": in_app(), "recipe": in_recipe()}
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
