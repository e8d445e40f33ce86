"""Print texts, slots and widgets of all nodes as JSON; run by itself: its stubs meet no others."""

import asyncio
import json
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from support import comfyui_stub  # noqa: E402


def nested(one) -> dict:
    """The inputs of a list's choices, each once, by their name below the list."""
    found = {}
    for option in getattr(one, "options", None) or ():
        for each in getattr(option, "inputs", ()):
            found.setdefault(f"{one.id}.{each.id}", each)
    return found


def texts(schema) -> dict:
    inputs = {}
    for one in schema.inputs:
        every = {one.id: one, **nested(one)}
        inputs |= {name.replace(".", "_"): {"name": i.display_name, "tooltip": i.tooltip}
                   for name, i in every.items()}  # as the page looks them up
    outputs = {str(n): {"name": output.display_name, "tooltip": output.tooltip}
               for n, output in enumerate(schema.outputs)}
    told = {"display_name": schema.display_name, "description": schema.description,
            "inputs": inputs, "outputs": outputs}
    return {key: value for key, value in told.items() if value}


def slots(schema) -> dict:
    """(name, type) of the inputs without a widget and of the outputs."""
    return {"inputs": [[i.id, i.io_type] for i in schema.inputs if not i.widget],
            "outputs": [[o.display_name, o.io_type] for o in schema.outputs]}


def widgets(schema) -> list[dict]:
    """What a saved workflow holds of a node's widgets, and the values of a new node.

    choices: of a list whose choices have widgets of their own, these by choice.
    """
    return [described(i.id, i) for i in schema.inputs if i.widget]


def described(name, i) -> dict:
    choices = {option.key: [described(f"{name}.{each.id}", each) for each in option.inputs]
               for option in (i.options if nested(i) else ())}
    return {"name": name, "type": i.io_type, "default": i.default, "optional": bool(i.optional),
            **({"choices": choices} if choices else {})}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, comfyui_stub.pack(Path(folder)) as stubs:
        extension = asyncio.run(stubs.root.comfy_entrypoint())
        schemas = [node.define_schema() for node in asyncio.run(extension.get_node_list())]
        json.dump({kind.__name__: {schema.node_id: kind(schema) for schema in schemas}
                   for kind in (texts, slots, widgets)}, sys.stdout)


if __name__ == "__main__":
    main()
