/** Sources and targets in a graph, lists of sizes, picks, folded inputs, in bare Node. */

import assert from "node:assert/strict";
import test from "node:test";

import { nameChoices } from "../../../web/comfy/choices.js";
import { addFold, fitLoaded, foldNew } from "../../../web/comfy/folding.js";
import { idOf, nodeAt, sourceOf, targetsOf } from "../../../web/comfy/graph.js";
import { Sizes, modelOf } from "../../../web/comfy/known.js";
import { attachMethods } from "../../../web/comfy/methods.js";
import { numbersIn, pickByClick, toggled } from "../../../web/comfy/picking.js";
import { queryOf } from "../../../web/comfy/plan.js";
import { editOf } from "../../../web/comfy/rewording.js";
import { stringsFor } from "../../../web/preview/strings.js";

/** A graph of nodes by id; links are [id, source, slot, target, slot]. */
function graph(nodes, links) {
  const made = { getNodeById: (id) => nodes[id] ?? null };
  made.links = new Map(links.map(([id, origin, from, target, to]) => {
    ((nodes[origin].outputs ??= [])[from] ??= { links: [] }).links.push(id);
    nodes[target].inputs[to].link = id;
    return [id, { origin_id: origin, target_id: target }];
  }));
  for (const [id, node] of Object.entries(nodes)) Object.assign(node, { id, graph: made });
  return nodes;
}

const combo = (name, value, values) => ({ name, value, options: { values } });
const loader = (name) => ({ type: "SSD_LoadModel", widgets: [combo("model", name, [])] });
const sampler = () => ({
  type: "SSD_Sampler", inputs: [{ name: "model", link: null }],
  widgets: [combo("size", "auto", ["auto", "384x384", "512x512", "720x720"])],
});

test("a source is found past reroutes, and none is no error", () => {
  const nodes = graph({ 1: loader("a"), 2: { type: "Reroute", inputs: [{ name: "" }] },
    3: sampler(), 4: sampler() }, [[7, 1, 0, 2, 0], [8, 2, 0, 3, 0]]);
  assert.equal(sourceOf(nodes[3], "model"), nodes[1]);
  assert.equal(sourceOf(nodes[4], "model"), null);
  assert.deepEqual(targetsOf(nodes[1], 0), [nodes[2]]);
});

test("other words are drawn by an active Edit by Words behind a node, or by itself", () => {
  const edit = (values) => ({ type: "SSD_EditByWords", mode: 0,
    inputs: [{ name: "picture", link: null }, { name: "prompt", link: null }], ...values });
  const nodes = graph({ 1: { type: "SSD_Sampler", inputs: [] }, 2: { type: "Reroute",
    inputs: [{ name: "" }] }, 3: edit({ mode: 4 }), 4: edit(), 5: edit(), 6: edit(), 7: loader("a") },
  [[1, 1, 0, 2, 0], [2, 1, 0, 3, 0], [3, 1, 0, 4, 0], [4, 7, 0, 4, 1], [5, 2, 0, 5, 0]]);
  nodes[1].graph._nodes = Object.values(nodes);
  assert.equal(editOf(nodes[1]), nodes[5]); // 3 is bypassed, the words of 4 come by a link
  assert.equal(editOf(nodes[5]), nodes[5]);
  assert.equal(editOf(nodes[4]), undefined);
});

test("a node inside subgraphs has an execution id, and is found by it", () => {
  const inner = { id: 5 }, whole = { _nodes: [{ id: 3 }, { id: 12, subgraph: {
    _nodes: [inner], getNodeById: (id) => (id === 5 ? inner : null) } }] };
  whole.getNodeById = (id) => whole._nodes.find((node) => node.id === id) ?? null;
  assert.equal(idOf(whole, inner), "12:5");
  assert.equal(idOf(whole, whole._nodes[0]), "3");
  assert.equal(idOf(whole, {}), null);
  assert.equal(nodeAt(whole, idOf(whole, inner)), inner);
});

test("a method is planned with its widgets and the connected model", () => {
  const drawing = { type: "SSD_Sampler", inputs: [{ name: "model", link: null }],
    widgets: [{ name: "method", value: "SJD" }, { name: "method.window", value: 2 },
      { name: "seed", value: 3 }, { name: "ssd_plan", serialize: false }] };
  const nodes = graph({ 1: loader("a"), 2: drawing, 3: { ...drawing, inputs: [] } },
    [[7, 1, 0, 2, 0]]);
  const widgets = '{"method":"SJD","method.window":2}';
  const matters = (name) => name.startsWith("method");
  assert.deepEqual(queryOf(nodes[2], matters), { widgets, model: "a" });
  assert.deepEqual(queryOf(nodes[3], matters), { widgets, model: "" });
});

const settled = () => new Promise((resolve) => { setTimeout(resolve, 5); });

test("knobs that nobody touched take the model's numbers, and a touched one stays", async () => {
  class Compare {} // two lists of methods: no line below either
  Compare.nodeData = { input: { optional: {
    method_1: ["COMFY_DYNAMICCOMBO_V3", { default: "SSD" }], size: ["COMBO", {}],
    method_2: ["COMFY_DYNAMICCOMBO_V3", {}] } } };
  const [choice, k_h, rounds] = [["method_1", "AR"], ["method_1.k_h", 1], ["method_1.rounds", 1]]
    .map(([name, value]) => ({ name, value }));
  const node = Object.assign(new Compare(), { inputs: [{ name: "model", link: null }],
    widgets: [choice, k_h, rounds, { name: "method_2", value: "AR" }, { name: "seed", value: 3 }] });
  const nodes = graph({ 1: loader("a"), 2: node }, [[7, 1, 0, 2, 0]]);
  const own = { a: { k_h: 5, rounds: 2 }, b: { k_h: 8, rounds: 1 } };
  const asked = [];
  const methods = attachMethods(node, async (query) => {
    asked.push(query);
    return { own: query.list === "method_1" ? own[query.model] : {} };
  }, () => {});
  await settled();
  assert.equal(choice.value, "SSD", "a new node has the schema's own choice");
  assert.deepEqual(asked.map(({ list, widgets }) => [list, Object.keys(JSON.parse(widgets))]), [
    ["method_1", ["method_1", "method_1.k_h", "method_1.rounds"]], ["method_2", ["method_2"]]]);
  assert.deepEqual([k_h.value, rounds.value], [1, 1], "a workflow's numbers stay");
  choice.callback("SSD");
  await settled();
  assert.deepEqual([k_h.value, rounds.value], [5, 2]);
  rounds.value = 4;
  rounds.callback(4);
  await settled();
  assert.equal(JSON.parse(asked.at(-1).widgets)["method_1.rounds"], 4);
  nodes[1].widgets[0].value = "b";
  methods.refresh();
  await settled();
  assert.deepEqual([k_h.value, rounds.value], [8, 4]);
});

test("choices have names in Chinese, and are saved in English", () => {
  const method = { name: "method_2", value: "Faithful", options: { values: ["Faithful", "x"] } };
  const size = { name: "size", options: {} };
  nameChoices({ widgets: [method, size] }, "zh-CN");
  assert.deepEqual(["Faithful", "x", null].map(method.options.getOptionLabel), ["忠实", "x", ""]);
  assert.equal(method.value, "Faithful");
  assert.equal(size.options.getOptionLabel, undefined);
  const other = { name: "method", options: {} };
  nameChoices({ widgets: [other] }, "en");
  assert.equal(other.options.getOptionLabel, undefined);
});

test("a model is found past the nodes that pass it on", () => {
  const passing = (type) => ({ type, inputs: [{ name: "model", link: null }], widgets: [] });
  const nodes = graph({ 1: loader("a"), 2: passing("SSD_LoadHeads"), 3: sampler(),
    4: passing("SSD_TrainHeads") }, [[7, 1, 0, 2, 0], [8, 2, 0, 4, 0], [9, 4, 0, 3, 0]]);
  assert.equal(modelOf(nodes[3]), "a");
  nodes[2].inputs[0].link = null;
  assert.equal(modelOf(nodes[3]), undefined);
});

test("the sizes are those of the connected model, else all", async () => {
  const nodes = graph({ 1: loader("a"), 2: sampler(), 3: sampler() }, [[7, 1, 0, 2, 0]]);
  const asked = [];
  const known = { a: ["512x512", "999x999"], b: [] };
  const sizes = new Sizes(async (name) => { asked.push(name); return known[name]; });
  const [size] = nodes[2].widgets;
  const all = size.options.values;
  for (const node of [nodes[2], nodes[3], nodes[2]]) await sizes.refresh(node);
  assert.deepEqual(size.options.values, ["auto", "512x512"]);
  size.value = "512x512";
  await sizes.refresh(nodes[2]);
  assert.equal(size.value, "512x512");
  assert.deepEqual(nodes[3].widgets[0].options.values, all);
  assert.deepEqual(asked, ["a"]);
  nodes[1].widgets[0].value = "b";
  await sizes.refresh(nodes[2]);
  assert.deepEqual(size.options.values, all);
});

test("a size that came with a workflow stays until another model is connected", async () => {
  const nodes = graph({ 1: loader("a"), 2: sampler() }, [[7, 1, 0, 2, 0]]);
  const known = { a: ["512x512"], b: ["720x720"] };
  const sizes = new Sizes(async (name) => known[name]);
  const [size] = nodes[2].widgets;
  size.value = "384x384";
  for (let n = 0; n < 2; n++) await sizes.refresh(nodes[2]);
  assert.equal(size.value, "384x384");
  nodes[1].widgets[0].value = "b";
  await sizes.refresh(nodes[2]);
  assert.equal(size.value, "auto");
});

test("numbers are read and toggled as Finish reads them", () => {
  assert.deepEqual(numbersIn(" 3, 1-2 ，x 5-4"), [3, 1, 2]);
  assert.equal(toggled("2 - 4", 5), "2, 3, 4, 5");
  assert.equal(toggled("", 2), "2");
  assert.equal(toggled("4, 1-2", 3), "1, 2, 3, 4");
  assert.equal(toggled("1, 2", 1), "2");
});

test("a click on a picture writes its number to the connected Finish node only", () => {
  const pick = () => ({ type: "SSD_Finish", inputs: [{ name: "run" }],
    widgets: [{ name: "pictures", value: "1" }] });
  const nodes = graph({ 1: { type: "SSD_Sampler" }, 2: pick(), 3: pick() }, [[7, 1, 0, 2, 0]]);
  const pictures = [{}, {}, {}];
  let click = null;
  const element = { querySelectorAll: () => pictures, addEventListener: (_, f) => { click = f; } };
  let changes = 0;
  pickByClick(nodes[1], element, 0, () => { changes += 1; });
  click({ target: { closest: () => pictures[2] } });
  click({ target: { closest: () => null } });
  assert.equal(nodes[2].widgets[0].value, "1, 3");
  assert.equal(nodes[3].widgets[0].value, "1");
  assert.equal(changes, 1);
});

/** A node as ComfyUI's page makes it, of these widgets, from what the server says of its inputs. */
function foldable(widgets, inputs = [], described = {}) {
  class Described {}
  Described.nodeData = { input: described };
  return Object.assign(new Described(), {
    widgets, inputs, size: [200, 100],
    addWidget(type, name, value, callback) {
      const made = { name, callback, options: {} };
      widgets.push(made);
      return made;
    },
    computeSize: () => [0, 20 * widgets.filter(({ hidden }) => !hidden).length],
    setSize(size) { this.size = size; },
  });
}

const shownOn = ({ widgets }) => widgets.filter(({ hidden }) => !hidden).map(({ name }) => name);

test("advanced inputs fold on the canvas, but for those that are connected", () => {
  const widgets = ["seed", "cfg", "top_k"].map(
    (name) => ({ name, options: { advanced: name !== "seed" } }));
  const node = foldable(widgets, [{ widget: { name: "top_k" }, link: 3 }]);
  const words = stringsFor("en");
  addFold(node, words, () => true);
  assert.deepEqual(shownOn(node), ["seed", "top_k", "ssd_advanced"]);
  assert.equal(widgets[3].label, words.moreInputs);
  widgets[3].callback();
  assert.deepEqual(shownOn(node), ["seed", "cfg", "top_k", "ssd_advanced"]);
  assert.deepEqual(node.size, [200, 120]);
});

test("an input that comes with another choice folds, with the control of a seed", () => {
  const control = { name: "control_after_generate", options: {} };
  const widgets = [{ name: "method", options: {} }];
  const node = foldable(widgets);
  addFold(node, stringsFor("en"), () => true);
  assert.deepEqual(shownOn(node), ["method"], "nothing is folded: no button");
  widgets.push({ name: "method.seed", linkedWidgets: [control], options: { advanced: true } },
    control);
  foldNew(node);
  assert.deepEqual(shownOn(node), ["method"]);
  node.showAdvanced = true;
  assert.deepEqual(shownOn(node), ["method", "method.seed", "control_after_generate"]);
});

test("a node that was saved with a blank below its inputs loses it, one with a text keeps it", () => {
  const widgets = (element) => [{ name: "k_h", options: { advanced: true }, element }];
  const [bare, withText, withLine] = [foldable(widgets()), foldable(widgets({})),
    foldable(widgets({}))];
  withLine.widgets[0].options.getMaxHeight = () => 48;
  for (const node of [bare, withText, withLine]) {
    addFold(node, stringsFor("en"), () => true);
    fitLoaded(node);
  }
  assert.deepEqual([bare, withText, withLine].map((node) => node.size[1]), [20, 100, 20]);
});
