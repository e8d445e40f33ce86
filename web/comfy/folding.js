/**
 * Folds a node's advanced inputs on the classic canvas, as Nodes 2.0 does by itself: a button shows
 * them. On both it folds lists of methods that are not used yet. Hidden inputs keep their values.
 */

import { derive } from "./chain.js";
import { widgetOf } from "./graph.js";

const BUTTON = "ssd_advanced";
const NUMBERED = /^method_\d$/; // lists of methods
const NONE = "none"; // the choice of no method
const folded = new WeakSet(); // widgets

/** Add the button to a node with advanced inputs; isClassic(): whether nodes are on the canvas. */
export function addFold(node, words, isClassic) {
  foldNew(node);
  if (!node.widgets?.some(({ options }) => options?.advanced)) return;
  const button = node.addWidget("button", BUTTON, null, () => {
    const before = node.computeSize()[1];
    node.showAdvanced = !node.showAdvanced;
    nameFold(node, words);
    node.setSize([node.size[0], node.size[1] + node.computeSize()[1] - before]);
  }, { canvasOnly: true, serialize: false });
  button.serialize = false;
  derive(button, "hidden", () => !isClassic());
  nameFold(node, words);
}

/** Fold the advanced inputs that a node has got since; one with a link stays. */
export function foldNew(node) {
  for (const widget of node.widgets ?? []) {
    if (!widget.options?.advanced || folded.has(widget)) continue;
    folded.add(widget);
    for (const shown of [widget, ...widget.linkedWidgets ?? []]) { // a seed's own control, too
      derive(shown, "hidden", () => !node.showAdvanced && !isLinked(node, widget));
    }
  }
}

const isLinked = (node, widget) => node.inputs?.some(
  (slot) => slot.widget?.name === widget.name && slot.link != null) ?? false;

/** Of the lists of methods show those in use, and the next one to choose from. */
export function foldUnused(node) {
  const lists = (node.widgets ?? []).filter(({ name }) => NUMBERED.test(name));
  const used = lists.findLastIndex((list) => list.value !== NONE || isLinked(node, list));
  const changed = lists.filter((list, n) => (list.options.hidden ?? false) !== n > used + 1);
  if (!changed.length) return;
  const before = node.computeSize()[1];
  for (const list of changed) list.options.hidden = list.hidden = !list.options.hidden;
  node.widgets.push(...node.widgets.splice(0)); // Nodes 2.0 looks at them only then
  const least = node.computeSize()[1];
  if (node.size[1] <= before || node.size[1] < least) node.setSize([node.size[0], least]);
}

/** Update the label of the button. */
export function nameFold(node, words) {
  const button = widgetOf(node, BUTTON);
  if (button) button.label = node.showAdvanced ? words.lessInputs : words.moreInputs;
}

/** Shrink a node to its visible inputs; new and saved nodes have the height of all inputs. */
export function fit(node) {
  node.setSize([node.size[0], node.computeSize()[1]]);
}

/** Shrink a loaded node, unless one of its widgets fills spare height. */
export function fitLoaded(node) {
  const widgets = node.widgets ?? [];
  const grows = widgets.some(({ element, options }) => element && !options?.getMaxHeight);
  if (widgetOf(node, BUTTON) && !grows) fit(node);
}
