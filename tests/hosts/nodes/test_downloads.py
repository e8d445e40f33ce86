"""Known models that are not here: what Load Model says of them, and their download."""

import shutil
import time
from pathlib import Path

import pytest
from support.fake_hub import FakeHub
from support.tiny_image_models import janus_port
from test_downloaded import published

from ssd_core.weights.catalogue import CATALOGUE

NAME = "Janus-Pro-1B-hf"


@pytest.fixture
def routes(pack, monkeypatch):
    """nodes/routes.py, on a machine whose speed is known."""
    monkeypatch.setattr(pack.module("ssd_core.measure.expected"), "bandwidth", lambda device: 2e9)
    pack.module("nodes.downloads").downloads.cache_clear()
    return pack.module("nodes.routes")


@pytest.fixture
def hub(pack, tmp_path, monkeypatch):
    """Answers in place of the Hub; what comes from it is gone afterwards."""
    janus_port(tmp_path / "published")
    with FakeHub(published(CATALOGUE[NAME], tmp_path / "published")) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running
    shutil.rmtree(Path(pack.stubs.folders.models_dir), ignore_errors=True)


def ended(pack) -> dict:
    downloads = pack.module("nodes.downloads")
    assert downloads.downloads().last.over.wait(60)
    return downloads.progress("")


def test_size_licence_memory_and_time_are_said_without_the_network(routes, hub):
    answer = routes.model({"model": NAME})
    offer = answer["offer"]
    assert routes.models({})[NAME] == CATALOGUE[NAME].about_bytes
    assert "are needed" in offer["facts"]["memory"] and "minutes" in offer["facts"]["time"]
    assert offer["licence"]["link"] and answer["download"] == {"name": None}
    chinese = routes.model({"model": NAME, "language": "zh"})["offer"]["facts"]
    assert "一张图像" in chinese["time"] and "约需" in chinese["memory"]
    assert hub.requests == []


def test_a_machine_that_draws_is_not_measured(routes, pack):
    pack.server.waiting = 1
    assert "time" not in routes.model({"model": NAME})["offer"]["facts"]


def test_nothing_is_offered_of_models_that_are_here_or_unknown(routes):
    for name in ("postcard", "gone", "../x"):
        assert routes.model({"model": name})["offer"] is None
    assert "postcard" not in routes.models({})


def test_a_model_comes_once_its_quote_was_seen_and_can_then_be_chosen(routes, pack, hub):
    quote = routes.quote({"model": NAME})
    assert quote["missing"] == quote["bytes"] > 10**6
    assert quote["where"] == f"models/ssd_backbones/{NAME}"
    with pytest.raises(pack.error, match="ask for size and licence first"):
        routes.download({"model": NAME, "bytes": 1})
    with pytest.raises(pack.error, match="is not in the catalogue"):
        routes.quote({"model": "../x"})
    assert routes.download({"model": NAME, "bytes": quote["missing"]})["name"] == NAME
    end = ended(pack)
    assert end["over"] and end["done"] == end["total"] == quote["bytes"] and not end["error"]
    assert routes.model({"model": NAME})["offer"] is None and NAME not in routes.models({})
    assert pack.nodes["SSD_LoadModel"].validate_inputs(NAME) is True


@pytest.mark.parametrize("body", ["", "{", "[1]", "null", '{"language": 3}', "{}"])
def test_what_a_program_sends_is_refused_in_one_line(routes, pack, body):
    for act in (routes.quote, routes.download):
        with pytest.raises(pack.error):
            act(routes.values_in(body))
    assert routes.cancel(routes.values_in(body)) == {"name": None}


def test_a_cancelled_download_resumes_with_what_is_there(routes, pack, hub):
    file = next(name for name in hub.repos[CATALOGUE[NAME].sources[0].repo]
                if name.endswith(".safetensors"))
    hub.cut[file] = [-200_000]  # then the connection hangs
    quote = routes.quote({"model": NAME})
    routes.download({"model": NAME, "bytes": quote["missing"]})
    with pytest.raises(pack.error, match="still being downloaded"):
        routes.download({"model": NAME, "bytes": quote["missing"]})
    while routes.model({})["download"]["done"] < 100_000:
        time.sleep(0.01)
    routes.cancel({})
    assert ended(pack)["cancelled"]
    rest = routes.quote({"model": NAME})["missing"]
    assert 0 < rest <= quote["missing"] - 100_000
    routes.download({"model": NAME, "bytes": rest})
    assert not ended(pack)["error"] and NAME not in routes.models({})
