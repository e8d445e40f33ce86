"""What tests of pages share: a browser, a watch on its complaints, messages of a made-up run."""

import base64
import importlib.util
import io
from contextlib import ExitStack, contextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

import pytest
from PIL import Image

from .page_moments import COUNTING

ROOT = Path(__file__).resolve().parents[2]
SIDE, ROWS = 32, 4  # px of a picture, and its rows and columns


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


preview_page = load(ROOT / "tools" / "preview_page.py")


@pytest.fixture(scope="session")
def chromium():
    try:
        with preview_page.browser() as running:
            yield running
    except RuntimeError as missing:
        pytest.skip(str(missing))


IDLE = WeakKeyDictionary()  # by browser and options: pages that nobody has, each in its context
VIEWPORT = {"width": 1280, "height": 720}  # Playwright's own
FORGET = "() => { try { localStorage.clear(); sessionStorage.clear(); } catch { /* no origin */ } }"


@contextmanager
def lent_page(chromium, viewport=VIEWPORT, permissions=(), color_scheme="light",
              reduced_motion="no-preference", **options):
    """A page alone in a context of these options.

    Pages are used again, those of other sizes and media, too: that spares a process, and the next
    finds in the cache what one loaded.
    """
    idle = IDLE.setdefault(chromium, {}).setdefault(repr(sorted(options.items())), [])
    page = idle.pop() if idle else chromium.new_context(**options).new_page()
    context = page.context
    page.set_viewport_size(viewport)
    page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
    context.grant_permissions(list(permissions))
    yield page
    for other in context.pages:
        if other is not page:
            other.close()
    if page.is_closed():
        context.close()
        return
    page.unroute_all()  # a route keeps a page from its cache
    page.evaluate(FORGET)
    page.goto("about:blank")
    context.clear_cookies()
    context.clear_permissions()
    idle.append(page)


@contextmanager
def watched(chromium, known=()):
    """new_page(**options of its context); at the end no page may have complained.

    known: complaints that are not ours to mend.
    """
    complaints = []

    def said(line):
        if (line.type in ("error", "warning") and line.text not in known
                and "willReadFrequently" not in line.text):  # it is the tests that read back
            complaints.append(f"{line.text} {line.location['url']}")

    def failed(error):
        complaints.append(str(error))

    with ExitStack() as lent:
        def new_page(**options):
            page = lent.enter_context(lent_page(chromium, **options))
            for event, heard in (("pageerror", failed), ("console", said)):
                page.on(event, heard)
                lent.callback(page.remove_listener, event, heard)
            return page

        yield new_page
    assert complaints == [], complaints


@contextmanager
def opening(chromium, address):
    """Opens pages (arguments go to the browser's context) and sees to it that none complained."""
    with watched(chromium) as new_page:
        def open_one(**options):
            page = new_page(**options)
            page.add_init_script(COUNTING)
            page.goto(address)
            page.wait_for_function("() => window.mount")
            return page
        yield open_one


def base64_png(image):
    file = io.BytesIO()
    image.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def strip(*colours, height=SIDE // ROWS):
    """A strip SIDE px wide, with one band of `height` px a colour."""
    image = Image.new("RGB", (SIDE, height * len(colours)))
    for i, colour in enumerate(colours):
        image.paste(colour, (0, i * height, SIDE, (i + 1) * height))
    return base64_png(image)


class Run:
    """Messages of one run; changes go over the defaults."""

    def __init__(self, name="run", panel=0):
        self.envelope = {"version": 1, "node": "7", "run": name, "panel": panel}

    def started(self, **changes):
        return {**self.envelope, "kind": "started", "label": "ssd rounds=2", "rows": ROWS,
                "columns": ROWS, "width": SIDE, "height": SIDE, "pictures": 1, "method": "ssd",
                "guarantee": "approximate", "passes": 9, "passes_max": 9, "ar_passes": 16,
                "first_row": 0, **changes}

    def passed(self, **changes):
        return {**self.envelope, "kind": "pass", "index": 3, "stage": "vertical", "round": 1,
                "seconds": 0.5, "tokens_per_second": 120.0, "acceptance": 0.5, "row": 1,
                "first": 4, "marks": ["arda"], **changes}

    def rows(self, first, *colours, **changes):
        return {**self.envelope, "kind": "rows", "first": first, "last": first + len(colours),
                "top": first * SIDE // ROWS, "strips": [strip(*colours)], "refined": True,
                **changes}

    def finished(self, **changes):
        return {**self.envelope, "kind": "finished", "passes": 9, "ar_passes": 16,
                "step_acceleration": 16 / 9, "seconds": 1.5, "tokens_per_second": 8.0,
                "acceptance": 0.62, "guarantee": "approximate", "identical": None, **changes}

    def cancelled(self, reason="interrupted"):
        return {**self.envelope, "kind": "cancelled", "reason": reason}
