/** Colours of our links, and file names that the page fills in, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { COLORS, colorLinks, styleOf } from "../../../web/comfy/link_colors.js";
import { addElement } from "../../../web/comfy/room.js";
import { fillName, sortTemplates, translate } from "../../../web/comfy/page.js";

test("our types have colours of their own, which no palette takes away but may change", () => {
  assert.equal(new Set(Object.values(COLORS)).size, Object.keys(COLORS).length);
  const tables = [{ IMAGE: "#64B5F6" }, { SSD_RUN: "" }];
  colorLinks(...tables);
  for (const table of tables) {
    assert.equal(table.SSD_RUN, COLORS.SSD_RUN);
    Object.assign(table, { SSD_RUN: "", SSD_MODEL: "", IMAGE: "#111" });
    assert.equal(table.SSD_RUN, COLORS.SSD_RUN);
    Object.assign(table, { SSD_RUN: "#123456" });
    assert.equal(table.SSD_RUN, "#123456");
    assert.equal(table.IMAGE, "#111");
    assert.ok(Object.keys(table).includes("SSD_MODEL"));
  }
  assert.match(styleOf(), /--color-datatype-SSD_MODEL: #\w{6}; /);
});

test("a saver sends its name filled in and shows it as it was typed; other nodes do not", () => {
  const widget = () => ({ name: "filename_prefix", value: "%a%" });
  const node = (comfyClass) => ({ comfyClass, widgets: [widget()] });
  const [saver, replay, other] = ["SSD_SaveImage", "SSD_RunViewer", "SaveImage"].map(node);
  for (const one of [saver, replay, other, { comfyClass: "SSD_SaveImage" }]) {
    fillName(one, (name) => name.replaceAll("%a%", "A"));
  }
  assert.equal(saver.widgets[0].serializeValue(), "A");
  assert.equal(replay.widgets[0].serializeValue(), "A");
  assert.equal(saver.widgets[0].value, "%a%");
  assert.equal(other.widgets[0].serializeValue, undefined);
});

test("the quick start is the first of our templates, and other packs' lists stay", async () => {
  const lists = { "a-pack": ["10_a", "2_b"],
    "ssd-decoding": ["10_run_viewer", "01_quick_start", "02_ar_beside_ssd"] };
  const api = { getWorkflowTemplates: async () => lists };
  sortTemplates(api);
  const sorted = await api.getWorkflowTemplates();
  assert.deepEqual(sorted["ssd-decoding"],
    ["01_quick_start", "02_ar_beside_ssd", "10_run_viewer"]);
  assert.deepEqual(sorted["a-pack"], ["10_a", "2_b"]);
  sortTemplates({}); // a frontend that asks in another way
});

test("notes and titles are translated by their workflow's table, what was changed is not", () => {
  const graph = { extra: { ssd_texts: { zh: { Model: "模型", "Press **Run**": "点击" } } },
    _groups: [{ title: "Model" }, { title: "My own" }],
    _nodes: [{ type: "MarkdownNote", title: "Model", widgets: [{ value: "Press **Run**" }] },
      { type: "SSD_Sampler", title: "Mine", widgets: [{ value: "Model" }] }] };
  const shown = () => [...graph._groups, ...graph._nodes].map(({ title }) => title);
  translate(graph, "en");
  translate({ extra: {} }, "zh");
  assert.deepEqual(shown(), ["Model", "My own", "Model", "Mine"]);
  translate(graph, "zh-TW");
  assert.deepEqual(shown(), ["模型", "My own", "模型", "Mine"]);
  assert.deepEqual(graph._nodes.map(({ widgets }) => widgets[0].value), ["点击", "Model"]);
});

test("an element keeps its node's width, whatever the Properties panel writes on it", () => {
  const node = { addDOMWidget: (name, type, element, options) => ({ name, options }) };
  const widget = addElement(node, "ssd_preview", "preview", {}, { getMinHeight: () => 9 });
  widget.width = 251;
  assert.equal(widget.width, undefined);
  assert.equal(widget.serialize, false);
  assert.equal(widget.options.serialize, false);
});
