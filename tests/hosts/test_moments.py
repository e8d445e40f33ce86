"""The app as shipped, looked at in all its moments: nothing cut off, empty, hidden or lost."""

import pytest

pytest.importorskip("gradio", reason="gradio is not installed (the extra `app`)")
pytest.importorskip("playwright.sync_api", reason="needs the package playwright")

from support.layout_rules import lasting_faults  # noqa: E402
from support.moments import (  # noqa: E402
    DESK,
    PHONE,
    SCHEMES,
    TABLET,
    as_shipped,
    context,
    looks,
    moments,
)
from support.studio_visit import begin_history, visits  # noqa: E402


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    with as_shipped(tmp_path_factory.mktemp("app")) as running:
        yield running


@pytest.mark.parametrize("screens", [DESK, PHONE, pytest.param(TABLET, marks=pytest.mark.nightly)],
                         ids=["desk", "phone", "tablet"])
@pytest.mark.parametrize("language", ["en", pytest.param("zh", marks=pytest.mark.nightly)])
def test_nothing_is_wrong_in_any_moment(chromium, app, tmp_path, request, language, screens):
    at_night = request.config.getoption("--nightly")
    sizes, schemes = (screens, SCHEMES) if at_night else (screens[:1], SCHEMES[:1])
    touch, wrong = screens[0].touch, {}
    begin_history(app, tmp_path)
    with visits(chromium, app) as visit:
        visitor = visit(**context(language, screens[0]))
        for moment in moments(visitor, app, language, touch):
            for look in looks(visitor.page, sizes, schemes):
                found = lasting_faults(visitor.page, main=moment.main,
                                       after_key=moment.after_key)
                wrong |= {f"{moment.name}, {look}": found} if found else {}
    assert wrong == {}
