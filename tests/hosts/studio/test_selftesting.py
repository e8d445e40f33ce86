"""The app's self-test: the job behind Doctor's button, and the quick one while nothing is drawn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

from support.mock_backbone import random_heads, tiny_postcard

from ssd_core import Grid, kept_files
from ssd_core.engine.methods import AR
from ssd_core.selftest import checks
from ssd_core.selftest.drawing import Subject
from ssd_core.selftest.suite import SelfTest
from studio import selftesting


def test_the_self_test_is_a_job_and_the_doctor_says_what_it_found(client, services, monkeypatch,
                                                                  tmp_path):
    monkeypatch.setenv(kept_files.VARIABLE, str(tmp_path))
    monkeypatch.setattr(checks, "METHODS", (AR(),))
    backbone = tiny_postcard(grid=Grid(3, 3))
    small = Subject(backbone, random_heads(backbone), "fp32")
    monkeypatch.setattr(selftesting, "SelfTest",
                        partial(SelfTest, load=lambda device, dtype: replace(small, dtype=dtype)))
    job = client.post("/api/selftest", json={}).json()
    assert services.worker.job(job["id"]).wait(20) and job["kind"] == "selftest"
    summary = client.get(f"/api/jobs/{job['id']}").json()["result"]["summary"]
    assert "all passed" in summary
    assert f"self-test: {summary}" in client.get("/api/doctor").json()["report"]


def test_an_idle_worker_runs_the_quick_test_until_a_job_comes(services, monkeypatch):
    seen = []
    monkeypatch.setattr(selftesting, "run_if_due",
                        lambda device, dtype, wanted: seen.append((dtype, wanted())))
    selftesting.when_idle(services)
    assert seen == [], "the tests switch it off"
    monkeypatch.setattr(selftesting, "is_due", lambda device: True)
    selftesting.when_idle(services)
    busy = SimpleNamespace(library=services.library, worker=SimpleNamespace(is_asked=True))
    selftesting.when_idle(busy)
    assert seen == [("fp32", True), ("fp32", False)]
