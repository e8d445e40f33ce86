"""The page in a browser, and messages of a run whose strips are plain colours."""

import pytest
from support.page_moments import COUNTING
from support.preview_run import Run, base64_png, preview_page, watched


@pytest.fixture(scope="session")
def address():
    with preview_page.served() as url:
        yield url


@pytest.fixture
def open_page(chromium, address):
    """Opens pages (arguments go to the browser's context) and sees to it that none complained."""
    with watched(chromium) as new_page:
        def open_one(**options):
            page = new_page(**options)
            page.add_init_script(COUNTING)
            page.goto(address)
            page.wait_for_function("() => window.mount")
            return page
        yield open_one


@pytest.fixture
def run():
    return Run()


@pytest.fixture
def new_run():
    return Run


@pytest.fixture
def png():
    return base64_png
