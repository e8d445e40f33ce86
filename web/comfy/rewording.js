/**
 * Edit by Words nodes that draw other words of a node's picture: finds one, fills it, adds one.
 * Works on any object shaped like ComfyUI's graph.
 */

import { idOf, linkOf, nodeAt, sourceOf, targetsOf, widgetOf } from "./graph.js";

export const EDIT = "SSD_EditByWords";
const VIEW = "PreviewImage";
const RUN = "SSD_RUN";
const CONTROL = "control_after_generate";
const ACTIVE = 0; // the mode of a node that is neither muted nor bypassed
const GAP = 60; // px between nodes
const TITLE = 30; // px above the place of a node

/** What a `Touching` asks for on ComfyUI's page; ask: as there, app: ComfyUI's. */
export function hostOf(node, app, ask) {
  const draw = (find, prompt, offered) => {
    app.canvas.emitBeforeChange?.(); // all that follows is one step of undo
    const edit = find();
    fill(edit, prompt, offered, app.graph);
    app.canvas.emitAfterChange?.();
    reveal(app.canvas, [node, edit]);
    app.queuePrompt(0, 1);
  };
  return {
    ask,
    draw(prompt, offered) {
      const edit = editOf(node);
      if (edit) draw(() => edit, prompt, offered);
      return edit !== undefined;
    },
    add(prompt, offered) {
      const { seed } = offered.seeds[idOf(app.graph, node)] ?? {};
      const create = (type) => globalThis.LiteGraph.createNode(type);
      draw(() => addEdit(node, seed, create), prompt, offered);
    },
  };
}

/** The node that draws other words of a node's picture: itself, or one behind it; or undefined. */
export function editOf(node) {
  return [node, ...node.graph._nodes].find((other) => other.type === EDIT
    && (other.mode ?? ACTIVE) === ACTIVE && sourceOf(other, "prompt") === null
    && (other === node || sourceOf(other, "picture") === node));
}

/**
 * Fill an Edit by Words with the old and the new words. seeds, by node and widget: those that drew
 * the picture; with others, its source would be drawn anew.
 */
export function fill(edit, prompt, { old_prompt: old, seeds }, graph) {
  put(widgetOf(edit, "old_prompt"), old);
  put(widgetOf(edit, "prompt"), prompt);
  for (const [id, values] of Object.entries(seeds)) {
    for (const [name, seed] of Object.entries(values)) {
      const node = nodeAt(graph, id);
      fix(node, name, seed);
      fix(...giverOf(graph, id, name), seed);
    }
  }
}

/**
 * Add an Edit by Words beside a node: with its model and run, and with a copy of what shows its
 * picture. seed: that of the picture; create(type) makes a node.
 */
export function addEdit(node, seed, create) {
  const { graph } = node;
  const shown = targetsOf(node, outputOf(node, "IMAGE"))
    .find((other) => other.constructor.nodeData?.output_node);
  const edit = create(EDIT), view = shown?.clone() ?? create(VIEW);
  place(graph, node, edit, view);
  graph.add(edit);
  graph.add(view);
  linkAlike(node, edit, "model");
  node.connect(outputOf(node, RUN), edit, slotOf(edit, "picture"));
  if (shown) showAlike(node, shown, edit, view);
  else edit.connect(outputOf(edit, "IMAGE"), view, 0);
  fix(edit, "seed", seed);
  return edit;
}

const outputOf = (node, type) => node.outputs.findIndex((output) => output.type === type);
const slotOf = (node, name) => node.inputs.findIndex((input) => input.name === name);

/** Connect an input to what the same input of another node is connected to. */
function linkAlike(node, other, name) {
  const { graph } = node;
  const link = linkOf(graph, node.inputs[slotOf(node, name)]?.link);
  if (!link) return;
  const to = slotOf(other, name);
  const origin = graph.getNodeById(link.origin_id);
  if (origin) origin.connect(link.origin_slot, other, to);
  else graph.inputNode?.slots[link.origin_slot]?.connect(other.inputs[to], other); // a subgraph's
}

/** Connect a copy of what shows a node's picture to an edit's outputs of the same names. */
function showAlike(node, shown, edit, view) {
  for (const [slot, input] of shown.inputs.entries()) {
    const link = linkOf(node.graph, input.link);
    if (!link) continue;
    const origin = node.graph.getNodeById(link.origin_id);
    const name = node.outputs[link.origin_slot]?.name;
    const own = edit.outputs.findIndex((output) => output.name === name);
    if (origin === node && own >= 0) edit.connect(own, view, slot);
    if (origin !== node) origin?.connect(link.origin_slot, view, slot);
  }
}

function put(widget, value) {
  widget.value = value;
  widget.callback?.(value);
}

/** Give a seed a value, which stays. */
function fix(node, name, seed) {
  const widget = node && widgetOf(node, name);
  if (!widget || seed === undefined) return;
  put(widget, seed);
  const control = widgetOf(node, CONTROL);
  if (control) put(control, "fixed");
}

/** The node and the widget's name that give a widget its value: a primitive, or a subgraph node. */
function giverOf(graph, id, name) {
  const node = nodeAt(graph, id);
  const link = linkOf(node?.graph, node?.inputs.find(({ widget }) => widget?.name === name)?.link);
  const primitive = link && node.graph.getNodeById(link.origin_id);
  if (!link || primitive) return [primitive, primitive?.widgets?.[0].name];
  const host = nodeAt(graph, id.slice(0, id.lastIndexOf(":")));
  return [host, node.graph.inputs[link.origin_slot].name];
}

/** Place two nodes beside each other, at the right of a node, where nothing is. */
function place(graph, node, edit, view) {
  const x = node.pos[0] + node.size[0] + GAP;
  const wide = edit.size[0] + GAP + view.size[0];
  const tall = Math.max(edit.size[1], view.size[1]);
  let y = node.pos[1];
  const inTheWay = () => graph._nodes.filter(({ pos, size }) => pos[0] < x + wide + GAP
    && pos[0] + size[0] > x - GAP / 2 && pos[1] - TITLE < y + tall && pos[1] + size[1] > y - TITLE);
  for (let found = inTheWay(); found.length > 0; found = inTheWay()) {
    y = Math.max(...found.map(({ pos, size }) => pos[1] + size[1])) + GAP + TITLE;
  }
  edit.pos = [x, y];
  view.pos = [x + edit.size[0] + GAP, y];
}

/** Bring nodes into view, unless the last of them is. */
function reveal(canvas, nodes) {
  const [left, top, wide, tall] = canvas.ds.visible_area;
  const boxes = nodes.map(({ pos, size }) => [pos[0], pos[1] - TITLE, size[0], size[1] + TITLE]);
  const [x, y, width, height] = boxes.at(-1);
  if (x >= left && y >= top && x + width <= left + wide && y + height <= top + tall) return;
  const from = [0, 1].map((side) => Math.min(...boxes.map((box) => box[side])));
  const to = [0, 1].map((side) => Math.max(...boxes.map((box) => box[side] + box[side + 2])));
  canvas.animateToBounds?.([...from, to[0] - from[0], to[1] - from[1]]);
}
