"""A shared app in a browser: who enters, and what the page of a stranger never tells."""

from pathlib import Path

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.small_bundle import small_bundle  # noqa: E402
from support.studio_visit import served  # noqa: E402

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
ANN = {"username": "ann", "password": "pä:ss"}
TABS = ("Create", "Race", "Redo from a row", "Seeds", "History", "Models", "Doctor")


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """The folders above everything that the app reads and writes."""
    return str(tmp_path_factory.getbasetemp()), str(ROOT)


@pytest.fixture(scope="module")
def app(small_assets, tmp_path_factory):
    users = {ANN["username"]: ANN["password"]}
    with small_bundle(small_assets), served(tmp_path_factory.mktemp("app"), users=users) as running:
        yield running


def test_who_has_no_password_sees_nothing(chromium, app):
    page = chromium.new_context().new_page()
    for path in ("", "studio/web/studio.js", "studio/feed", "gradio_api/info"):
        assert page.request.get(app.address + path).status == 401, path
    page.context.close()


def test_who_has_one_draws_and_reads_of_no_folder_of_this_machine(visit, app, private):
    visitor, heard = visit(http_credentials=ANN), []
    page = visitor.page
    page.on("response", lambda answer: heard.append(answer))
    page.click("#draw")
    visitor.until("done")
    for name in TABS:
        visitor.tab(name)
        if name == "History":
            page.locator("#history img").first.click()
            page.wait_for_selector(".studio-details")
            assert not page.get_by_role("button", name="Delete", exact=True).is_visible()
        if name == "Models":
            page.wait_for_selector("#backbones-found td")
        if name == "Doctor":
            page.wait_for_function("() => document.querySelector('#doctor-report textarea').value")
        typed = page.locator("textarea").evaluate_all("all => all.map((one) => one.value)")
        shown = page.content() + "".join(typed)
        assert not [one for one in private if one in shown], name
    fed = [answer.text() for answer in heard if "/studio/feed" in answer.url]
    assert '"done"' in fed[-1] and not [one for one in private if one in "".join(fed)]
    assert len(app.pictures) == 1
