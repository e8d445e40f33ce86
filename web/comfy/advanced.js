/**
 * Decides which inputs a node shows: it hides folded advanced inputs, and the knobs of methods that
 * are not chosen. Hidden inputs keep their values and their position among the saved values.
 */

import { chain, derive } from "./chain.js";
import { widgetOf } from "./graph.js";

const BUTTON = "ssd_advanced";
const METHOD = "method";
const NO_ROOM = () => [0, -4]; // the canvas adds 4 px to what a widget asks for

/**
 * Hide inputs that a node does not need, and add the button that folds and shows advanced inputs on
 * the classic canvas; Nodes 2.0 has its own. isClassic() says whether nodes are drawn on the canvas
 * now.
 */
export function addFold(node, words, isClassic) {
  const knobs = described(node, "methods");
  markAdvanced(node);
  const limited = (node.widgets ?? []).filter(
    ({ name, options }) => options?.advanced || knobs[name]);
  const foldable = limited.filter(({ options }) => options.advanced);
  for (const widget of limited) limit(node, widget, knobs[widget.name]);
  if (foldable.length) addButton(node, words, isClassic, foldable);
  if (Object.keys(knobs).length) chain(widgetOf(node, METHOD), "callback", () => fit(node));
  fold(node, words);
}

/** Compute a widget's visibility from the node, so that canvas, sizes and page all agree. */
function limit(node, widget, methods) {
  const { advanced = false, hidden = false } = widget.options;
  const isLinked = () => node.inputs?.some(
    (slot) => slot.widget?.name === widget.name && slot.link != null) ?? false;
  const isIdle = () => hidden || Boolean(methods) && !isLinked()
    && !methods.includes(widgetOf(node, METHOD)?.value);
  derive(widget.options, "hidden", isIdle);
  derive(widget.options, "advanced", () => advanced && !isIdle());
  hide(widget, () => isIdle() || (advanced && !node.showAdvanced && !isLinked()));
}

/** Hide a widget while isHidden(). ComfyUI 0.3 gives hidden widgets the height they ask for. */
function hide(widget, isHidden) {
  const { computeSize } = widget;
  derive(widget, "hidden", isHidden);
  derive(widget, "computeSize", () => (isHidden() ? NO_ROOM : computeSize));
}

function addButton(node, words, isClassic, foldable) {
  const button = node.addWidget("button", BUTTON, null, () => {
    const before = node.computeSize()[1];
    node.showAdvanced = !node.showAdvanced;
    fold(node, words);
    node.setSize([node.size[0], node.size[1] + node.computeSize()[1] - before]);
  }, { canvasOnly: true, serialize: false });
  button.serialize = false;
  hide(button, () => !isClassic() || foldable.every(({ options }) => options.hidden));
}

/** What the server's description says of each input under a key, by the input's name. */
function described(node, key) {
  const { required = {}, optional = {} } = node.constructor.nodeData?.input ?? {};
  return Object.fromEntries(Object.entries({ ...required, ...optional })
    .flatMap(([name, [, options]]) => (options?.[key] ? [[name, options[key]]] : [])));
}

/** Older frontends do not tell a widget that its input is advanced. */
function markAdvanced(node) {
  for (const name of Object.keys(described(node, "advanced"))) {
    const widget = widgetOf(node, name);
    for (const each of [widget, ...(widget?.linkedWidgets ?? [])]) {
      if (each) (each.options ??= {}).advanced = true;
    }
  }
}

/** Update the label of the button. */
export function fold(node, words) {
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
  const limited = widgets.some(({ name, options }) => name === BUTTON || options?.advanced);
  const grows = widgets.some(({ element, options }) => element && !options?.getMaxHeight);
  if (limited && !grows) fit(node);
}
