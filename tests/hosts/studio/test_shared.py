"""A shared app as its server answers: who enters, and what a stranger never reads."""

import base64
import json
from pathlib import Path

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.studio_visit import answer, served  # noqa: E402

from studio.api import ENDPOINTS  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
ANN = {"authorization": "Basic " + base64.b64encode("ann:pä:ss".encode()).decode()}
READ = [f"api{path}" for method, path, _ in ENDPOINTS if method == "GET" and "{" not in path]
PATHS = ("", "config", "gradio_api/info", "gradio_api/heartbeat/x", "studio/web/app.js",
         "studio/web/v/x/app.js", "studio/examples/0.jpg", "studio/picture/x.png",
         "studio/replay/x.webp", "api/none", *READ)


@pytest.fixture(scope="module")
def app(models, tmp_path_factory):
    with served(tmp_path_factory.mktemp("app"), models=models, backbone="tiny",
                users={"ann": "pä:ss"}) as running:
        yield running


@pytest.mark.parametrize("path", PATHS)
def test_who_has_no_password_sees_nothing(app, path):
    assert answer(app, path) == (401, b"a name and a password are needed")


def test_who_has_one_reads_of_no_folder_of_this_machine(app, tmp_path_factory):
    private = [str(tmp_path_factory.getbasetemp()), str(ROOT)]
    status = answer(app, "", **ANN)[0]
    assert status == 200 and json.loads(answer(app, "api/schema", **ANN)[1])["local"] is False
    for path in PATHS:
        if "heartbeat" not in path:  # which never ends
            text = answer(app, path, **ANN)[1].decode(errors="replace")
            assert not [folder for folder in private if folder in text], path
