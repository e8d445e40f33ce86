"""A real ComfyUI, once a session. COMFYUI_PATH names its folder, COMFYUI_PYTHON its Python.

With COMFYUI_FRONTEND=newest, it shows the newest page of PyPI.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.comfyui_page import open_page
from support.comfyui_server import comfyui, newest_page

HOME = os.environ.get("COMFYUI_PATH")


class Skipped(pytest.Module):
    """A file of tests that is not even read."""

    def collect(self):
        pytest.skip("COMFYUI_PATH names no ComfyUI to start (see tests/hosts/comfyui/README.md)")


def pytest_pycollect_makemodule(module_path, parent):
    return None if HOME else Skipped.from_parent(parent, path=module_path)


@pytest.fixture(scope="session")
def client(tmp_path_factory):
    flags = []
    if os.environ.get("COMFYUI_FRONTEND") == "newest":
        try:
            flags = ["--front-end-root", newest_page(tmp_path_factory.mktemp("page"))]
        except RuntimeError as error:
            pytest.skip(f"no newer page to be had: {error}")
    with comfyui(Path(HOME), tmp_path_factory.mktemp("comfyui"), *flags) as running:
        yield running


@pytest.fixture(scope="session")
def whole_page(client, chromium):
    page = open_page(chromium, client.url)
    page.set("Comfy.Minimap.Visible", False)
    return page


@pytest.fixture(params=[False, True], ids=["nodes-1", "nodes-2.0"])
def page(request, client, whole_page):
    """The page with Nodes 2.0 off and on."""
    whole_page.set("Comfy.VueNodes.Enabled", request.param)
    return whole_page
