"""A shared app in a browser: who enters, and what the page of a stranger never tells."""

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")

from support.small_bundle import small_bundle, write_small_bundle  # noqa: E402
from support.studio_visit import served  # noqa: E402

pytestmark = pytest.mark.slow
ANN = {"username": "ann", "password": "pä:ss"}
TABS = ("Create", "Race", "Redo from a row", "Seeds", "History", "Models", "Doctor")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("a-private-place")


@pytest.fixture(scope="module")
def app(tmp_path_factory, place):
    assets = write_small_bundle(tmp_path_factory.mktemp("assets"))
    with small_bundle(assets), served(place, users={ANN["username"]: ANN["password"]}) as running:
        yield running


def test_who_has_no_password_sees_nothing(chromium, app):
    page = chromium.new_context().new_page()
    for path in ("", "studio/web/studio.js", "studio/feed", "gradio_api/info"):
        assert page.request.get(app.address + path).status == 401, path
    page.context.close()


def test_who_has_one_draws_and_reads_of_no_folder_of_this_machine(visit, app, place):
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
        assert place.name not in page.content(), name
    fed = [answer.text() for answer in heard if "/studio/feed" in answer.url]
    assert '"done"' in fed[-1] and not [one for one in fed if place.name in one]
    assert len(app.pictures) == 1
