/** Registers the extension: previews, word chips, plans and folded inputs on our nodes. */

import { app } from "../../../scripts/app.js";
import { api } from "../../../scripts/api.js";
import { chain } from "./chain.js";
import { nameChoices } from "./choices.js";
import { showReport } from "./doctor.js";
import { Downloads } from "./downloads.js";
import { make } from "../preview/elements.js";
import { addFold, fit, fitLoaded, foldNew, foldUnused, nameFold } from "./folding.js";
import { idOf, nodeAt, widgetOf } from "./graph.js";
import { Known, LOADER, Sizes } from "./known.js";
import { colorLinks, styleOf } from "./link_colors.js";
import { Memory, NO_ID, withStrips } from "./memory.js";
import { attachMethods } from "./methods.js";
import { NodePreview } from "./node_preview.js";
import { Outcomes } from "./outcomes.js";
import { Language, fillName, sortTemplates, translate } from "./page.js";
import { markPicked, PICKER, pickByClick } from "./picking.js";
import { attachPlan } from "./plan.js";
import { EDIT, hostOf } from "./rewording.js";
import {
  Places, addElement, claimRow, followHeight, heightOf, keepHeight, limitTexts, removeText,
} from "./room.js";
import { stringsFor } from "../preview/strings.js";
import { showFrames } from "./subgraph_frames.js";
import { Touching } from "./touching.js";
import { WordChips } from "./word_chips.js";

const EVENT = "ssd.preview";
const ROUTE = "/ssd/preview";
/** Widths of new nodes in px; the pictures take all of it. */
const NODES = {
  SSD_Sampler: 412, SSD_Finish: 412, SSD_EditByWords: 412, SSD_Compare: 640,
};

const TRAINER = "SSD_TrainHeads";
const SAMPLER = "SSD_Sampler";
const TOUCHED = [SAMPLER, EDIT];
const RUN = 1; // the sampler's output
const VUE_NODES = "Comfy.VueNodes.Enabled";
const LEGIBLE = 200; // px that a panel needs: four methods side by side keep Compare short
const MARGIN = 10; // px that classic nodes leave above and below a widget

/** Previews by node; weak, since the frontend also makes nodes that it never puts in a graph. */
const previews = new WeakMap();
const plans = new WeakMap(); // what tells, by node, what it is going to do
const memory = new Memory();
const places = new Places();
const fetched = new Set(); // workflows whose messages were fetched from the server
const chips = new WeakMap(); // by node
const sizes = new Sizes((model) => ask("/ssd/sizes", { model }));
const kinds = new Known((model) => ask("/ssd/words", { model, language: language() }));
const pageLanguage = new Language((query) => fetchJson("/ssd/language", query));
const sendLanguage = () => pageLanguage.send(api.clientId, language());
const outcomes = new Outcomes({
  nodeOf: (id) => nodeAt(app.graph, id), previewOf: (node) => previews.get(node),
  nodeErrors: () => app.lastNodeErrors,
  toasts: () => app.extensionManager?.toast, words: () => words(), isForm,
});
const downloads = new Downloads({ get: fetchJson, post: postJson, language,
  arrived(nodes) {
    nodes.forEach((node) => outcomes.forget(node));
    forgetModels();
    tidyInputs();
  } });
let cached = new Set(); // nodes whose results come from ComfyUI's cache in the current prompt

app.registerExtension({
  name: "ssd.preview",
  commands: [{
    id: "SSD.Report",
    label: "SSD: report for a bug",
    function: async () => showReport((await fetchJson("/ssd/doctor", {})).report, words()),
  }],
  menuCommands: [{ path: ["Help"], commands: ["SSD.Report"] }],
  setup() {
    api.addEventListener(EVENT, ({ detail }) => inOrder(() => take(detail)));
    colorLinks(app.canvas.default_connection_color_byType, app.canvas.constructor.link_type_colors);
    document.head.append(make("style", "", {}, [styleOf()]));
    app.ui?.settings?.addEventListener?.(`${VUE_NODES}.change`, () => setTimeout(tidyInputs));
    app.ui?.settings?.addEventListener?.("Comfy.Locale.change", () => setTimeout(sendLanguage));
    api.addEventListener("status", sendLanguage); // the page has an id by then
    api.addEventListener("execution_cached", ({ detail }) => {
      cached = new Set(detail.nodes.map(String));
    });
    api.addEventListener("status", ({ detail }) => {
      if (detail?.exec_info?.queue_remaining === 0) planAnew(); // there may be new pictures
    });
    api.addEventListener("progress_text", ({ detail: { nodeId, text } }) => {
      if (text === "") setTimeout(() => removeText(nodeAt(app.graph, nodeId))); // after it is shown
    });
    outcomes.watch(api);
    learnModels();
    sortTemplates(api);
  },
  nodeCreated(node) {
    if (!node.comfyClass?.startsWith("SSD_")) return;
    const methods = attachMethods(node, (query) => fetchJson("/ssd/plan", query),
      () => refold(node));
    if (methods) plans.set(node, methods);
    if (node.comfyClass === TRAINER) {
      plans.set(node, attachPlan(node, (query) => fetchJson("/ssd/outlook", query)));
    }
    addFold(node, words(), isClassic);
    if (widgetOf(node, "prompt") && !widgetOf(node, "prompt").options.advanced) addChips(node);
    chain(node, "onConnectionsChange", () => setTimeout(() => refresh(node)));
    if (Object.hasOwn(NODES, node.comfyClass)) attach(node);
    fillName(node, patternsFilled);
    nameChoices(node, language());
    fit(node);
    if (node.comfyClass === LOADER) {
      downloads.attach(node);
      chain(widgetOf(node, "model"), "callback", () => {
        outcomes.forget(node); // what was said of the model before
        clearText(node);
        tidyInputs();
      });
    }
    if (node.comfyClass === PICKER) {
      chain(widgetOf(node, "pictures"), "callback", () => setTimeout(showPicked));
    }
  },
  refreshComboInNodes() {
    forgetModels();
    learnModels();
    setTimeout(tidyInputs); // after the lists have come from the server
  },
  /** After a start, a change of the tab, undo and redo: the nodes are new ones. */
  afterConfigureGraph() {
    translate(app.graph, language());
    tidyInputs();
    offerModels();
    for (const node of app.graph._nodes) fitLoaded(node);
    showPicked();
    inOrder(async () => {
      await askOnce(workflow());
      memory.of(workflow()).forEach(repaint);
    });
  },
});

// Messages

let queue = Promise.resolve();

/** Run tasks one after the other, since some wait for the server. */
function inOrder(task) {
  queue = queue.then(task).catch((error) => console.warn("SSD preview:", error));
}

async function take(message) {
  if (message?.node == null) return;
  const { graph, node } = message;
  // The page was reloaded after the run's start.
  if (message.kind !== "started" && !memory.knows(message)) await fetchMessages({ graph, node });
  show(message);
}

function show(message) {
  if (!memory.add(message) || !isHere(message.graph)) return;
  const preview = previewOf(message);
  if (!preview) return;
  if (message.kind === "started") {
    const [outer, ...inner] = String(message.node).split(":");
    if (inner.length) showFrames(nodeAt(app.graph, outer), isClassic);
    outcomes.noted(message);
    preview.follow(message);
    setTimeout(showPicked); // its pictures are new elements
  }
  // A node that was made during the run has missed the earlier messages.
  if (preview.follows(message)) preview.feed(message);
  else preview.replay(memory.get(message.graph, message.node));
}

async function askOnce(graph) {
  if (graph === NO_ID || fetched.has(graph)) return;
  fetched.add(graph);
  await fetchMessages({ graph });
}

/** Fetch the runs' messages that the server still has, and show them. */
async function fetchMessages(query) {
  (await Promise.all((await ask(ROUTE, query)).map(whole))).forEach(show);
}

/** The JSON answer of a route of the server; null if it refuses. */
async function fetchJson(route, query) {
  const answer = await api.fetchApi(`${route}?${new URLSearchParams(query)}`);
  return answer.ok ? answer.json() : null;
}

/** The JSON answer of a route that does something. */
async function postJson(route, values) {
  const headers = { "Content-Type": "application/json" };
  const answer = await api.fetchApi(route,
    { method: "POST", headers, body: JSON.stringify(values) });
  return answer.json();
}

/** The same for lists: [] if it refuses. */
const ask = async (route, query) => (await fetchJson(route, query)) ?? [];

const whole = (message) => withStrips(message, (url) => api.fetchApi(url));

// Nodes

const workflow = () => app.graph.id;
/** Scripts' prompts and graphs that were never loaded have no id; their node ids must do. */
const isHere = (graph) => !graph || graph === NO_ID || graph === workflow();

function previewOf({ node }) {
  return previews.get(nodeAt(app.graph, node));
}

/** Show a record on the node that has its id now. */
function repaint(record) {
  const preview = previewOf(record);
  if (preview && !record.messages.every((message) => preview.follows(message))) {
    preview.replay(record);
  }
}

/**
 * Show a node's `ui` output. The page has seen the run, unless the result comes from ComfyUI's
 * cache: then the picture may be older, or another tab may have drawn it.
 */
async function restore(nodeId, output) {
  const messages = output?.ssd_preview?.at(-1)?.messages;
  if (!messages?.length) return;
  // The result may be from another node with the same inputs, such as this one before it was moved
  // into a subgraph.
  const node = idOf(app.graph, nodeId) ?? messages[0].node;
  const graph = workflow();
  if (memory.knows({ ...messages[0], graph, node })) repaint(memory.get(graph, node));
  else if (isHere(messages[0].graph) || cached.has(node)) {
    repaint(memory.replace(graph, node, await Promise.all(messages.map(whole))));
  }
}

function attach(node) {
  const preview = new NodePreview({ language: language(), smooth: true, legible: LEGIBLE });
  preview.element.classList.add("ssd-on-node");
  // Classic nodes keep wheel events from the canvas; Nodes 2.0 handles them before they get here.
  preview.element.addEventListener("wheel", (event) => app.canvas.processMouseWheel(event));
  // The type "preview" lets a subgraph show the frames of this node; on the node they are hidden.
  addElement(node, "ssd_preview", "preview", preview.element,
    // Nodes 2.0 measures the element, which fills the node: asked, it would grow without end.
    { getMinHeight: () => (isClassic() ? heightOf(preview.element) + 2 * MARGIN : 0) });
  node.onDrawBackground = () => {};
  limitTexts(node);
  const observers = [claimRow(preview.element), followHeight(node, preview.element, isClassic)];
  previews.set(node, preview);
  node.size[0] = Math.max(node.size[0], NODES[node.comfyClass]);
  keepHeight(node);
  chain(node, "onExecuted", (output) => {
    preview.recover();
    outcomes.notedIn(output);
    inOrder(() => restore(node, output));
  });
  chain(node, "onConnectionsChange", () => setTimeout(showPicked));
  if (node.comfyClass === SAMPLER) pickByClick(node, preview.element, RUN, showPicked);
  const touching = TOUCHED.includes(node.comfyClass) && new Touching(preview, words(), hostOf(node,
    app, (run) => fetchJson("/ssd/things", { run, language: language() })));
  chain(node, "onRemoved", () => {
    previews.delete(node);
    for (const observer of observers) observer.disconnect();
    if (touching) touching.dispose();
    preview.dispose();
  });
  keepPlace(node, preview.element);
}

/** Show a node's choices and inputs as they are now: some may be new. */
function refold(node) {
  foldNew(node);
  foldUnused(node);
  nameChoices(node, language());
}

function addChips(node) {
  chips.set(node, new WordChips(node, words()));
  keepPlace(node, chips.get(node).element);
}

function keepPlace(node, element) {
  chain(node, "onAdded", () => places.taken(node, element));
  chain(node, "onRemoved", () => places.left(node, element));
}

/** Update the inputs of every node of a graph and of its subgraphs. */
function tidyInputs(graph = app.graph) {
  for (const node of graph?._nodes ?? []) {
    if (node.subgraph) tidyInputs(node.subgraph);
    if (!node.comfyClass?.startsWith("SSD_")) continue;
    refold(node); // a loaded choice of method has new knobs
    nameFold(node, words());
    refresh(node);
    plans.get(node)?.refresh();
  }
}

function forgetModels() {
  sizes.forget();
  kinds.forget();
}

/** Ask which models are not here, and offer those that nodes name. */
async function learnModels() {
  await downloads.learn();
  offerModels();
}

function offerModels(graph = app.graph) {
  for (const node of graph?._nodes ?? []) {
    if (node.subgraph) offerModels(node.subgraph);
    if (node.comfyClass === LOADER) downloads.refresh(node);
  }
}

/** Remove the text that ComfyUI shows on a node at the server's request, which nobody else does. */
function clearText(node) {
  const text = widgetOf(node, "$$node-text-preview");
  if (text) node.removeWidget(text);
}

/** Ask again what drafts could learn from, on all nodes of a graph and of its subgraphs. */
function planAnew(graph = app.graph) {
  for (const node of graph?._nodes ?? []) {
    if (node.subgraph) planAnew(node.subgraph);
    if (node.comfyClass === TRAINER) plans.get(node)?.refresh(true);
  }
}

/** Update a node's sizes and words to those of its model. */
async function refresh(node) {
  sizes.refresh(node);
  chips.get(node)?.offer(await kinds.of(node));
}

/** Mark the picked pictures on the previews. */
function showPicked(graph = app.graph) {
  for (const node of graph?._nodes ?? []) {
    if (node.subgraph) showPicked(node.subgraph);
    const preview = node.comfyClass === SAMPLER && previews.get(node);
    if (preview) markPicked(node, preview.element, RUN);
  }
}

/** A file name filled in by the page's own function, which not every frontend makes public. */
const patternsFilled = (name) => globalThis.comfyAPI?.utils?.applyTextReplacements?.(app, name)
  ?? name;

const words = () => stringsFor(language());

/** Whether nodes are drawn on the canvas; in Nodes 2.0 they are elements of the page. */
const isClassic = () => !app.extensionManager?.setting?.get(VUE_NODES);

/** Whether the page shows a form instead of the graph (app mode). */
function isForm() {
  const { activeMode, initialMode } = app.extensionManager?.workflow?.activeWorkflow ?? {};
  return (activeMode ?? initialMode) === "app";
}

function language() {
  return app.extensionManager?.setting?.get("Comfy.Locale") ?? navigator.language;
}
