"""Models and Doctor in a real browser, on one visit each: what is said before a download."""

import time

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
expect = pytest.importorskip("playwright.sync_api", reason="needs the package playwright").expect

from ssd_core.measure import expected  # noqa: E402
from studio import selftesting  # noqa: E402
from studio.views import RECOMMENDED  # noqa: E402

LARGE = "Emu3.5-Image"  # 34B


class LongTest:
    """A self-test of many short checks."""

    summary = "all passed"

    def __init__(self, *asked):
        pass

    def findings(self):
        for n in range(600):
            time.sleep(0.05)
            yield n

    def store(self):
        pass


def test_a_visit_to_models_before_a_download(visit, monkeypatch):
    monkeypatch.setattr(expected, "bandwidth", lambda device: 2e9)
    monkeypatch.setattr("ssd_core.weights.fit.free_bytes", lambda device: 6 << 30)
    page = visit().page
    page.evaluate("location.hash = 'models'")
    first = page.locator("#models h1 + p")
    expect(first).to_contain_text("Large models were tested on tiny random checkpoints only")
    expect(page.locator("#models tr.used th")).to_contain_text("Nothing drawn yet: the first")
    shown = page.locator("#models [data-known]:visible")
    expect(shown).to_have_count(3)
    assert [row.get_attribute("data-known") for row in shown.all()] == list(RECOMMENDED)
    fit = shown.first.locator(".fit")
    expect(fit).to_contain_text("GiB")
    expect(fit).to_contain_text("fits")
    expect(fit).to_contain_text("a picture: roughly")
    expect(shown.last.locator(".fit")).to_contain_text("are needed, 6.0 GiB are free")
    expect(shown.last.locator(".fit")).not_to_contain_text("a picture:")

    page.click("#models-others > summary")
    rows = page.locator("#models-others [data-known]")
    large = page.locator(f"#models [data-known='{LARGE}'] .fit")
    expect(large).to_contain_text("GiB")
    names = [row.get_attribute("data-known") for row in rows.all()]
    limited = [name.startswith(("LlamaGen-c2i", "Tar")) for name in names]
    assert limited == sorted(limited) and any(limited), "those without free text come last"


def test_a_visit_to_the_doctor_s_test(visit, monkeypatch):
    monkeypatch.setattr(selftesting, "SelfTest", LongTest)
    page = visit().page
    page.evaluate("location.hash = 'doctor'")
    page.click("#doctor-test")
    bar, stop = page.locator("#doctor progress"), page.locator("#doctor-stop")
    expect(bar).to_be_visible()
    page.wait_for_function("() => document.querySelector('#doctor progress').value > 0")
    expect(page.locator("#doctor-test")).to_be_disabled()
    page.evaluate("location.reload()")
    expect(bar).to_be_visible()
    stop.click()
    expect(page.locator("#doctor-testing")).to_have_text("The self-test was stopped.")
    expect(bar).to_be_hidden()
    expect(page.locator("#doctor-test")).to_be_enabled()
    expect(page.locator("#doctor-test")).to_be_focused()
