/** Models that are not here, in a node's list, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { Downloads } from "../../../web/comfy/downloads.js";

const ABSENT = { "Janus-Pro-1B": 4.2e9, "T2I-R1": null };

function node() {
  const widgets = [{ name: "model", value: "postcard", options: {} }, { name: "dtype", options: {} }];
  return { widgets, size: [270, 200] };
}

async function offered(language) {
  const asked = [];
  const downloads = new Downloads({ language: () => language, post: () => assert.fail("no click"),
    get: async (route) => asked.push(route) && ABSENT });
  const loader = node();
  downloads.attach(loader);
  await downloads.learn();
  await downloads.refresh(loader);
  return { asked, label: loader.widgets[0].options.getOptionLabel };
}

test("models that are not here are marked with what they take, and no others", async () => {
  const { label } = await offered("en");
  assert.equal(label("Janus-Pro-1B"), "Janus-Pro-1B  (download, 4.2 GB)");
  assert.equal(label("T2I-R1"), "T2I-R1  (download)");
  assert.equal(label("postcard"), "postcard");
  assert.equal(label("toString"), "toString");
  assert.equal((await offered("zh-CN")).label("Janus-Pro-1B"), "Janus-Pro-1B（下载 4.2 GB）");
});

test("of a model that is here, nothing is asked", async () => {
  assert.deepEqual((await offered("en")).asked, ["/ssd/models"]);
});
