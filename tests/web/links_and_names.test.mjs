/** Colours of our links, and file names that the page fills in, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { fillName } from "../../web/comfy/filenames.js";
import { COLORS, colorLinks, styleOf } from "../../web/comfy/link_colors.js";

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
