"""The pack over the stub of ComfyUI, loaded once."""

from __future__ import annotations

import importlib
import sys

import pytest
from support import comfyui_stub
from support.coroutines import result_of
from support.probed_once import probe_once
from support.small_bundle import READERS


class Pack:
    """The nodes by id, the pack's own modules by name, and the stubs."""

    def __init__(self, stubs):
        self.stubs, self.manager, self.server = stubs, stubs.manager, stubs.server
        extension = result_of(stubs.root.comfy_entrypoint())
        self.classes = result_of(extension.get_node_list())
        self.schemas = {cls.define_schema().node_id: cls.define_schema() for cls in self.classes}
        self.nodes = {cls.define_schema().node_id: cls for cls in self.classes}

    def module(self, name: str):
        return importlib.import_module(f"{comfyui_stub.PACK}.{name}")

    @property
    def error(self) -> type[Exception]:
        return self.module("ssd_core.errors").SSDError

    def run(self, node: str, **values):
        """Execute a node; a prompt that is not named has its default.

        method: a choice by its title, or with its knobs.
        """
        required = {i.id: i.default for i in self.schemas[node].inputs
                    if i.widget and not i.optional}
        lists = {i.id for i in self.schemas[node].inputs if i.io_type.startswith("COMFY_DYNAMIC")}
        values = {name: {name: value} if name in lists and isinstance(value, str) else value
                  for name, value in values.items()}
        return self.nodes[node].execute(**{**required, **values}).args

    def preview(self) -> list[dict]:
        return [data for event, data, _ in self.server.sent if event == "ssd.preview"]


@pytest.fixture(scope="session")
def loaded(tmp_path_factory):
    with comfyui_stub.pack(tmp_path_factory.mktemp("comfyui")) as stubs:
        with pytest.MonkeyPatch.context() as patch:
            pack = Pack(stubs)
            probe_once(patch, pack.module("ssd_core.weights.load"))
            yield pack
    assert comfyui_stub.PACK not in sys.modules


@pytest.fixture
def pack(loaded):
    """The pack, its stubs as new."""
    loaded.manager.__init__()
    loaded.server.__init__()
    loaded.stubs.bars.clear()
    loaded.stubs.frames.clear()
    loaded.stubs.args.disable_metadata = False
    drawn = loaded.module("nodes.folders").estimates().pictures
    drawn.entries.clear()
    drawn.stored.path.unlink(missing_ok=True)
    loaded.module("nodes.finished").FINISHED.clear()
    return loaded


@pytest.fixture
def small_bundle(pack, small_assets, monkeypatch):
    """`postcard` has few cells: what the nodes do with it does not depend on how many."""
    for name in READERS:
        monkeypatch.setattr(pack.module(f"ssd_core.{name}"), "ASSETS", small_assets)


@pytest.fixture
def model(pack):
    """postcard with its draft heads."""
    return pack.run("SSD_LoadModel")[0]


@pytest.fixture
def headless(pack):
    """postcard without draft heads."""
    return pack.run("SSD_LoadModel", heads="none")[0]
