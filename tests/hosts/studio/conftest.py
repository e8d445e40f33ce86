"""A library of tiny backbones on disk, a history of its own, and a worker that ends with the test.

`tiny` is postcard's own class with one small random layer, and heads; `bare` is the same without.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import pytest
from support.drawings import wished
from support.mock_backbone import random_heads, tiny_postcard
from support.small_bundle import small_bundle
from support.solo import SIDE

from ssd_core import Grid
from ssd_core.backbones.postcard import save
from ssd_core.engine.heads import save_heads
from ssd_core.output import preview
from ssd_core.weights import load
from ssd_core.weights.downloads import Downloads
from ssd_core.weights.load import load_backbone
from studio.history import History
from studio.jobs import Worker
from studio.library import Library
from studio.seeds import ParkedSeeds
from studio.services import Services


@contextmanager
def without_near_ties():
    """A near tie adds AR's own passes to a run, in a few of a hundred pictures of any seed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "measure_rounding",
                      lambda backbone, draws: setattr(backbone, "rounding", 0.0))
        yield


@pytest.fixture(scope="module", autouse=True)
def passes_as_planned():
    with without_near_ties():
        yield


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A models folder; its weights' standard deviation makes some tokens change by the round."""
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(("tiny", "bare")):
        place = folder / "ssd_backbones" / name
        place.mkdir(parents=True)
        save(tiny_postcard(seed, Grid(SIDE, SIDE)), place / "backbone.safetensors")
    backbone = load_backbone(folder / "ssd_backbones" / "tiny")
    save_heads(random_heads(backbone), folder / "ssd_heads" / "tiny" / "heads.safetensors",
               backbone, {})
    return folder


@pytest.fixture
def library(models):
    return Library(models, "tiny", device="cpu")


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "outputs")


@pytest.fixture
def parked_seeds(library, history):
    return ParkedSeeds(library, history)


@pytest.fixture
def worker():
    worker = Worker()
    yield worker
    worker.close()


@pytest.fixture
def services(library, history, parked_seeds, worker, models):
    return Services(worker, library, history, parked_seeds, Downloads(models))


@pytest.fixture
def client(services):
    """Requests of a visitor to the endpoints of an app on loopback."""
    pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
    from support.studio_client import serving

    return serving(services)


@pytest.fixture
def finished(client, worker):
    """Post a run and wait for its end; its job as JSON."""
    def run(path, **body):
        answer = client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        assert worker.job(answer.json()["id"]).wait(30)
        return client.get(f"/api/jobs/{answer.json()['id']}").json()

    return run


@pytest.fixture
def stopped_at(monkeypatch):
    """Every run is stopped by its visitor once so many of its rows are told."""
    def stop(rows, panel=0):
        def tell(job, message):
            job.messages.append(message)
            if message["panel"] == panel and message.get("last", 0) >= rows:
                job.cancel(parked=False)

        monkeypatch.setattr("studio.jobs.Job.tell", tell)

    return stop


@pytest.fixture
def settings():
    return wished(prompt="a red house", seed=7)


@pytest.fixture
def every_message(monkeypatch):
    """The preview tells all there is, whatever it costs."""
    monkeypatch.setattr(preview, "BUDGET", 1e6)


@pytest.fixture
def ended(worker):
    """Run a work to its end; the job, which must be done."""
    def run(work, owner="me"):
        job = worker.submit("a run", work, owner)
        assert job.wait(30)
        assert job.state in ("done", "paused"), job.error
        return job

    return run


@pytest.fixture(scope="session")
def running(small_assets, tmp_path_factory):
    """The app with the bundled backbone of fewer cells, served once for all tests of a worker."""
    from support.studio_visit import served

    with ExitStack() as stack:
        with small_bundle(small_assets), without_near_ties():
            app = stack.enter_context(served(tmp_path_factory.mktemp("app")))
        yield app


@pytest.fixture(scope="module")
def app(running, small_assets, tmp_path_factory):
    """The running app with a history of this file's own; a busy machine may take its time."""
    from support.studio_visit import begin_history

    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    playwright.expect.set_options(timeout=90_000)
    begin_history(running, tmp_path_factory.mktemp("app") / "outputs")
    with small_bundle(small_assets):
        yield running


@pytest.fixture
def visit(chromium, app):
    """Opens the page in a context of its own; ends with no complaint and nothing running."""
    from support.studio_visit import visits

    with visits(chromium, app) as open_one:
        yield open_one


@pytest.fixture(scope="session")
def violations():
    """What axe complains of on a page: rules, each with its elements."""
    module = pytest.importorskip("axe_playwright_python.sync_playwright",
                                 reason="needs the package axe-playwright-python")
    axe = module.Axe()

    def found(page):
        return [(rule["id"], [node["html"][:160] for node in rule["nodes"]])
                for rule in axe.run(page).response["violations"]]

    return found
