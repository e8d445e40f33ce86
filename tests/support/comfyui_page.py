"""ComfyUI's own page in a headless Chromium."""

from __future__ import annotations

import importlib.util
import json
from contextlib import contextmanager
from pathlib import Path

from .page_moments import AT_REST

TOOLS = Path(__file__).resolve().parents[2] / "tools"
READY = "() => window.app?.extensionManager && window.app?.graph && window.LiteGraph"
SECONDS = 1000  # as the page counts them


class Page:
    """What the tests do with the page; `page` is Playwright's own."""

    def __init__(self, page, url: str) -> None:
        self.page, self.errors, self.seen = page, [], []
        page.set_default_timeout(180 * SECONDS)  # a busy machine may take that long
        page.on("pageerror", self._note)
        page.on("console", lambda line: "SSD preview" in line.text
                and self.errors.append(line.text))
        # Newer frontends ask before they let go of a changed workflow.
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(url, wait_until="domcontentloaded")
        self.ready()

    def ready(self) -> None:
        """Wait until the page, or its reload, can be worked with."""
        self.page.wait_for_function(READY)
        self.rest()

    def rest(self) -> None:
        """Wait until the page has drawn what it was asked for."""
        self.page.evaluate(AT_REST)

    def _note(self, error) -> None:
        """Errors that come from the pack's scripts; a frontend has some of its own."""
        if "/extensions/ssd-decoding/" in (error.stack or ""):
            self.errors.append(error.stack)

    def open(self, workflow: dict, app: bool = False) -> None:
        """app: in app mode where the workflow says so, else always as a graph."""
        if not app:
            extra = {**workflow.get("extra", {}), "linearMode": False}
            workflow = {**workflow, "extra": extra}
        self.page.evaluate("async text => { await app.loadGraphData(JSON.parse(text)) }",
                           json.dumps(workflow))
        self.rest()

    def api_form(self) -> dict:
        return json.loads(self.page.evaluate(
            "async () => JSON.stringify((await app.graphToPrompt()).output)"))

    def queue(self) -> None:
        self.page.evaluate("() => { app.queuePrompt(0, 1) }")

    def run(self) -> None:
        """Queue, and wait until it has run and the page has shown it."""
        self.page.evaluate("""async () => {
            const api = app.api ?? comfyAPI.api.api;
            const done = new Promise((resolve, reject) => {
                api.addEventListener("execution_success", resolve, { once: true });
                api.addEventListener("execution_error", ({ detail }) =>
                    reject(new Error(detail.exception_message)), { once: true });
            });
            app.queuePrompt(0, 1);
            await done;
        }""")
        self.rest()

    def set(self, setting: str, value) -> None:
        self.page.evaluate("async ([id, value]) => app.extensionManager.setting.set(id, value)",
                           [setting, value])
        self.rest()

    def command(self, name: str) -> None:
        self.page.evaluate("name => { app.extensionManager.command.execute(name) }", name)
        self.rest()

    def frame(self, left: int = 80, top: int = 110, right: int = 20, bottom: int = 20) -> None:
        """Zoom so that the whole graph is in view, inside these margins in px."""
        self.page.evaluate("""([left, top, right, bottom]) => {
            const boxes = [...app.graph._nodes.map((node) => node.getBounding()),
                ...app.graph._groups.map(({ pos, size }) => [...pos, ...size])];
            const edge = (pick, n, m) => pick(...boxes.map((box) => box[n] + (m ? box[m] : 0)));
            const x = edge(Math.min, 0), y = edge(Math.min, 1);
            const wide = edge(Math.max, 0, 2) - x, tall = edge(Math.max, 1, 3) - y;
            const area = app.canvas.canvas.getBoundingClientRect();
            const scale = Math.min((area.width - left - right) / wide,
                                   (area.height - top - bottom) / tall, 1);
            app.canvas.ds.scale = scale;
            app.canvas.ds.offset = [left / scale - x, top / scale - y];
            app.canvas.setDirty(true, true);
        }""", [left, top, right, bottom])
        self.rest()

    def look_at(self, kind: str) -> None:
        """Show the first node of a type in its full size, near the corner."""
        self.page.evaluate("""(kind) => {
            const node = app.graph._nodes.find((one) => one.type === kind);
            app.canvas.ds.scale = 1;
            app.canvas.ds.offset = [-node.pos[0] + 100, -node.pos[1] + 90];
            app.canvas.setDirty(true, true);
        }""", kind)
        self.rest()


@contextmanager
def comfyui_page(url: str, width: int = 1280, height: int = 800):
    """A page; RuntimeError says what is missing where there is no browser."""
    spec = importlib.util.spec_from_file_location("preview_page", TOOLS / "preview_page.py")
    preview_page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(preview_page)
    with preview_page.browser() as browser:
        yield open_page(browser, url, width, height)


def open_page(browser, url: str, width: int = 1280, height: int = 800) -> Page:
    """A page of a browser that runs already."""
    context = browser.new_context(viewport={"width": width, "height": height})
    return Page(context.new_page(), url)
