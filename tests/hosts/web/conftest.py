"""The page in a browser, and messages of a run whose strips are plain colours."""

import pytest
from support.preview_run import Run, base64_png, opening, preview_page


@pytest.fixture(scope="session")
def address():
    with preview_page.served() as url:
        yield url


@pytest.fixture
def open_page(chromium, address):
    with opening(chromium, address) as open_one:
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
