/** Colours of our links, and file names that the page fills in, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { fillName } from "../../web/comfy/filenames.js";
import { COLORS, colorLinks, styleOf } from "../../web/comfy/link_colors.js";
import { addElement } from "../../web/comfy/room.js";
import { sortTemplates } from "../../web/comfy/templates.js";

test("our types have colours of their own, which no palette takes away but may change", () => {
  assert.equal(new Set(Object.values(COLORS)).size, Object.keys(COLORS).length);
  const tables = [{ IMAGE: "#64B5F6" }, { SSD_HEADS: "" }];
  colorLinks(...tables);
  for (const table of tables) {
    assert.equal(table.SSD_HEADS, COLORS.SSD_HEADS);
    Object.assign(table, { SSD_HEADS: "", SSD_TOKENS: "", IMAGE: "#111" });
    assert.equal(table.SSD_HEADS, COLORS.SSD_HEADS);
    Object.assign(table, { SSD_HEADS: "#123456" });
    assert.equal(table.SSD_HEADS, "#123456");
    assert.equal(table.IMAGE, "#111");
    assert.ok(Object.keys(table).includes("SSD_TOKENS"));
  }
  assert.match(styleOf(), /--color-datatype-SSD_BACKBONE: #\w{6}; /);
});

test("a saver sends its name filled in and shows it as it was typed; other nodes do not", () => {
  const widget = () => ({ name: "filename_prefix", value: "%a%" });
  const node = (comfyClass) => ({ comfyClass, widgets: [widget()] });
  const [saver, replay, other] = ["SSD_SaveImage", "SSD_Replay", "SaveImage"].map(node);
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
    "ssd-decoding": ["16_glm_image", "10_edit_by_words", "1_quick_start", "2_race_ar_vs_ssd"] };
  const api = { getWorkflowTemplates: async () => lists };
  sortTemplates(api);
  const sorted = await api.getWorkflowTemplates();
  assert.deepEqual(sorted["ssd-decoding"],
    ["1_quick_start", "2_race_ar_vs_ssd", "10_edit_by_words", "16_glm_image"]);
  assert.deepEqual(sorted["a-pack"], ["10_a", "2_b"]);
  sortTemplates({}); // a frontend that asks in another way
});

test("an element keeps its node's width, whatever the Properties panel writes on it", () => {
  const node = { addDOMWidget: (name, type, element, options) => ({ name, options }) };
  const widget = addElement(node, "ssd_preview", "preview", {}, { getMinHeight: () => 9 });
  widget.width = 251;
  assert.equal(widget.width, undefined);
  assert.equal(widget.serialize, false);
  assert.equal(widget.options.serialize, false);
});
