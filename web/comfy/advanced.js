/**
 * Which inputs a node shows: not those folded away as advanced, and of the knobs of several methods
 * only those of the chosen one. Hidden inputs keep their values and their place among the saved.
 */

import { chain } from "./chain.js";
import { widgetOf } from "./graph.js";

const BUTTON = "ssd_advanced";
const METHOD = "method";

/**
 * Hide what a node does not need, and add the button that folds and shows advanced inputs on the
 * classic canvas; Nodes 2.0 has its own. isClassic() says whether nodes are drawn on the canvas
 * now. Older frontends know no advanced inputs: nothing is folded there. `knobs`: by name of an
 * input, the methods that have it as a knob.
 */
export function addFold(node, words, isClassic, knobs = {}) {
  const limited = (node.widgets ?? []).filter(
    ({ name, options }) => options?.advanced || knobs[name]);
  const foldable = limited.filter(({ options }) => options.advanced);
  for (const widget of limited) limit(node, widget, knobs[widget.name]);
  if (foldable.length) addButton(node, words, isClassic, foldable);
  if (Object.keys(knobs).length) chain(widgetOf(node, METHOD), "callback", () => fit(node));
  fold(node, words);
}

/** Make what is shown follow from the node: right whoever asks, the canvas, its sizes, the page. */
function limit(node, widget, methods) {
  const { advanced = false, hidden = false } = widget.options;
  const isLinked = () => node.inputs?.some(
    (slot) => slot.widget?.name === widget.name && slot.link != null) ?? false;
  const isIdle = () => hidden || Boolean(methods) && !isLinked()
    && !methods.includes(widgetOf(node, METHOD)?.value);
  derive(widget.options, "hidden", isIdle);
  derive(widget.options, "advanced", () => advanced && !isIdle());
  derive(widget, "hidden", () => isIdle() || (advanced && !node.showAdvanced && !isLinked()));
}

function addButton(node, words, isClassic, foldable) {
  const button = node.addWidget("button", BUTTON, null, () => {
    const before = node.computeSize()[1];
    node.showAdvanced = !node.showAdvanced;
    fold(node, words);
    node.setSize([node.size[0], node.size[1] + node.computeSize()[1] - before]);
  }, { canvasOnly: true, serialize: false });
  button.serialize = false;
  derive(button, "hidden", () => !isClassic() || foldable.every(({ options }) => options.hidden));
}

/** By input of a node, the methods that have it as a knob, as the server says it. */
export function knobsOf(node) {
  const { required = {}, optional = {} } = node.constructor.nodeData?.input ?? {};
  return Object.fromEntries(Object.entries({ ...required, ...optional })
    .flatMap(([name, [, options]]) => (options?.methods ? [[name, options.methods]] : [])));
}

/** Write on the button what it does. */
export function fold(node, words) {
  const button = widgetOf(node, BUTTON);
  if (button) button.label = node.showAdvanced ? words.lessInputs : words.moreInputs;
}

/** As low as what it shows; nodes are made, and were saved, as tall as with all of their inputs. */
export function fit(node) {
  node.setSize([node.size[0], node.computeSize()[1]]);
}

/** The same for a node that was loaded, if none of its widgets has a use for spare height. */
export function fitLoaded(node) {
  const widgets = node.widgets ?? [];
  const limited = widgets.some(({ name, options }) => name === BUTTON || options?.advanced);
  const grows = widgets.some(({ element, options }) => element && !options?.getMaxHeight);
  if (limited && !grows) fit(node);
}

/** A property that is computed whenever it is read. */
function derive(object, name, get) {
  Object.defineProperty(object, name, { get, set() {}, configurable: true, enumerable: true });
}
