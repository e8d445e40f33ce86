"""ComfyUI's page with samplers that a test builds: their previews, rows and figures."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path

from .comfyui_page import Page
from .comfyui_server import Client

QUICK_START = Path(__file__).resolve().parents[2] / "workflows" / "01_quick_start.json"
SECONDS = 180  # a busy machine may take that long

TOOLS = """() => { window.ssdTest = {
  add(type, x, y) {
    const node = LiteGraph.createNode(type);
    node.pos = [x, y];
    app.graph.add(node);
    return node;
  },
  link(from, output, to, input) {
    from.connect(output, to, to.inputs.findIndex((slot) => slot.name === input));
  },
  set(node, values) {
    for (const [name, value] of Object.entries(values)) {
      node.widgets.find((widget) => widget.name === name).value = value;
    }
  },
  /** Samplers, each with a map of widget values. */
  async build(samplers) {
    const { id } = app.graph;
    app.graph.clear();
    app.graph.id = id; // newer frontends take a graph that was cleared for another workflow
    while (document.querySelector("[data-node-id]")) { // Nodes 2.0 takes the old ones down
      await new Promise(requestAnimationFrame);
    }
    const model = this.add("SSD_LoadModel", 0, 0);
    samplers.forEach((values, i) => {
      const sampler = this.add("SSD_Sampler", 340 + 420 * i, 0);
      const shown = this.add("PreviewImage", 340 + 420 * i, 1000);
      // All of them: a newer frontend gives a node of the same id the values of the one before.
      this.set(sampler, { control_after_generate: "fixed", batch_size: 1, ...values });
      this.link(model, 0, sampler, "model");
      this.link(sampler, 0, shown, "images");
    });
  },
  /** Set the samplers to AR: of all methods its runs take longest, in the shortest passes. */
  drawByAr() {
    for (const sampler of app.graph._nodes.filter((node) => node.type === "SSD_Sampler")) {
      this.set(sampler, { method: "Reference (AR)" });
    }
  },
  /** What is on the screen; the frontend keeps widgets of subgraphs that are gone, hidden. */
  shown(selector) {
    return [...document.querySelectorAll(selector)].filter((one) => one.offsetParent);
  },
  /** How many of its 24 rows a picture's canvas holds; -1 without a picture. */
  painted(i) {
    const canvas = this.shown(".ssd-pixels")[i];
    if (!canvas) return -1;
    const { data } = canvas.getContext("2d").getImageData(0, 0, 1, canvas.height);
    let lines = 0;
    for (let byte = 3; byte < data.length; byte += 4) lines += data[byte] > 0;
    return (24 * lines) / canvas.height;
  },
  pixels() {
    return this.shown(".ssd-pixels")[0].toDataURL();
  },
}; }"""


seeds = iter(range(1000, 100_000))  # a seed that ran before would come from ComfyUI's cache


def fresh(**values):
    return {"seed": next(seeds), **values}


class Samplers(Page):
    """A tab whose graph the tests build."""

    def __init__(self, page, server: Client, settings: dict) -> None:
        self.server = server
        super().__init__(page, server.url)
        for name, value in settings.items():
            self.set(name, value)

    def ready(self) -> None:
        super().ready()
        self.page.evaluate(TOOLS)

    def build(self, *samplers):
        self.page.evaluate("(samplers) => ssdTest.build(samplers)", list(samplers))
        self.page.evaluate("() => { app.canvas.ds.scale = 0.6; app.canvas.ds.offset = [60, 60]; "
                           "app.canvas.setDirty(true, true); }")

    def draw_by_ar(self):
        self.page.evaluate("() => ssdTest.drawByAr()")

    def queue(self):
        self.page.evaluate("async () => { await app.queuePrompt(0, 1); }")

    def open_quick_start(self, **values):
        """The quick start in a tab of its own, with values of the sampler's; its seed stays."""
        workflow = {**json.loads(QUICK_START.read_text(encoding="utf-8")), "extra": {}}
        self.page.evaluate("async (text) => { await app.loadGraphData(JSON.parse(text)); "
                           "app.canvas.ds.scale = 0.6; app.canvas.ds.offset = [60, 60]; }",
                           json.dumps({**workflow, "id": str(uuid.uuid4())}))
        self.change("(node, values) => ssdTest.set(node, values)",
                    fresh(control_after_generate="fixed", **values))

    def change(self, what, value=None):
        """Call a function of the page with the sampler, and have that noticed for undo."""
        return self.page.evaluate("""([what, value]) => {
          const node = app.graph._nodes.find((one) => one.type === "SSD_Sampler");
          const result = eval(what)(node, value);
          const tracker = app.extensionManager.workflow.activeWorkflow.changeTracker;
          (tracker.captureCanvasState ?? tracker.checkState).call(tracker);
          return result;
        }""", [what, value])

    def reload(self):
        # The frontend keeps its tabs a moment after a change; each sampler has a seed of its own.
        self.page.wait_for_function("""() => {
          const sampler = app.graph._nodes.find((one) => one.type === "SSD_Sampler");
          const seed = String(sampler.widgets.find((one) => one.name === "seed").value);
          return [localStorage, sessionStorage].some((store) =>
            Object.values(store).some((text) => text.includes(seed)));
        }""")
        self.page.reload(wait_until="domcontentloaded")
        self.ready()

    def wait_queue(self):
        self.until(lambda: not any(self.server.get("/queue").values()))
        self.rest()

    def until(self, happened):
        """Look again and again, while the page goes on."""
        end = time.monotonic() + SECONDS
        while not happened():
            assert time.monotonic() < end, "it never happens"
            self.page.wait_for_timeout(50)

    def pixels(self):
        return self.page.evaluate("() => ssdTest.pixels()")

    def painted(self, picture=0):
        return self.page.evaluate("(i) => ssdTest.painted(i)", picture)

    def wait_painted(self, least, picture=0):
        self.page.wait_for_function("([i, least]) => ssdTest.painted(i) >= least",
                                    arg=[picture, least], polling=30)

    def wait_upper_half(self):
        """Wait for a run that is far from its end, by its figures: strips may be painted later."""
        self.page.wait_for_function(
            "() => ssdTest.shown('.ssd-figures')"
            ".some((line) => /row ([1-9]|1[0-2]) of 24/.test(line.textContent))")

    def wait_figures(self, text, count=1):
        self.page.wait_for_function(
            "([text, count]) => ssdTest.shown('.ssd-figures')"
            ".filter((line) => line.textContent.includes(text)).length >= count",
            arg=[text, count])
