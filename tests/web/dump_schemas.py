"""Print texts, inputs and widgets of all nodes as JSON; run by itself: its stubs meet no others."""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from support import comfyui_stub  # noqa: E402


def texts(schema) -> dict:
    inputs = {i.id: {"name": i.display_name, "tooltip": i.tooltip} for i in schema.inputs}
    outputs = {str(n): {"name": output.display_name, "tooltip": output.tooltip}
               for n, output in enumerate(schema.outputs)}
    told = {"display_name": schema.display_name, "description": schema.description,
            "inputs": inputs, "outputs": outputs}
    return {key: value for key, value in told.items() if value}


def inputs(schema) -> dict:
    """Ids and types in their order, as saved workflows rely on it."""
    return {kind: [[i.id, i.io_type] for i in schema.inputs if bool(i.widget) == widget]
            for kind, widget in (("widgets", True), ("links", False))}


def widgets(schema) -> list[dict]:
    """What a saved workflow holds of a node's widgets, and the values of a new node."""
    return [{"name": i.id, "type": i.io_type, "default": i.default, "optional": bool(i.optional)}
            for i in schema.inputs if i.widget]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, comfyui_stub.pack(Path(folder)) as stubs:
        extension = asyncio.run(stubs.root.comfy_entrypoint())
        schemas = [node.define_schema() for node in asyncio.run(extension.get_node_list())]
        json.dump({kind.__name__: {schema.node_id: kind(schema) for schema in schemas}
                   for kind in (texts, inputs, widgets)}, sys.stdout)


if __name__ == "__main__":
    main()
