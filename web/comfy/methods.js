/**
 * The lists of methods on a node. A choice shows its knobs, which start at the numbers of the
 * connected model, and a line below tells the passes. Knobs that were changed stay as they are.
 */

import { chain } from "./chain.js";
import { widgetOf } from "./graph.js";
import { addLine, queryOf } from "./plan.js";

const TYPE = "COMFY_DYNAMICCOMBO_V3"; // a list whose choices have inputs of their own
const SOLE = "method"; // the list of a node that has one: the line is about it

/** The lists of a node, by name, with the choice of a new node. */
export function listsOf(node) {
  const { required = {}, optional = {} } = node.constructor.nodeData?.input ?? {};
  return Object.entries({ ...required, ...optional }).filter(([, [type]]) => type === TYPE)
    .map(([name, [, options]]) => ({ name, usual: options.default }));
}

/**
 * Follow a node's lists; `ask(query)` returns a promise of {plan, own}, `changed()` is called when
 * other knobs are there. Returns what refreshes them; undefined for a node without lists.
 */
export function attachMethods(node, ask, changed) {
  const lists = listsOf(node).filter(({ name }) => widgetOf(node, name));
  for (const { name, usual } of lists) {
    const widget = widgetOf(node, name);
    if (usual !== undefined && widget.value !== usual) widget.value = usual;
  }
  changed();
  const methods = lists.filter(({ name }) => name.startsWith(SOLE));
  if (!methods.length) {
    const later = () => setTimeout(changed);
    for (const { name } of lists) chain(widgetOf(node, name), "callback", later);
    return undefined;
  }
  const line = methods.length === 1 ? addLine(node) : null;
  const all = methods.map(({ name }) => new MethodList(node, name, ask, changed, line));
  const refresh = () => all.forEach((list) => list.refresh());
  chain(node, "onConnectionsChange", () => setTimeout(refresh));
  setTimeout(refresh);
  return { refresh };
}

class MethodList {
  #known = ""; // the query of what is shown
  #own = {}; // the model's numbers for the choice
  #heard = new WeakSet(); // widgets

  constructor(node, name, ask, changed, line) {
    Object.assign(this, { node, name, ask, changed, line });
    chain(widgetOf(node, name), "callback", () => {
      const fresh = this.#values;
      setTimeout(() => this.#choose(fresh));
    });
  }

  get #knobs() {
    return this.node.widgets.filter(({ name }) => name.startsWith(`${this.name}.`));
  }

  get #query() {
    const { widgets, model } = queryOf(this.node,
      (name) => name === this.name || name.startsWith(`${this.name}.`));
    return { widgets, model, list: this.name };
  }

  get #values() {
    return Object.fromEntries(this.#knobs.map(({ name, value }) => [
      name.slice(this.name.length + 1), value]));
  }

  /** Another choice was made: its knobs are new, with these values. */
  #choose(fresh) {
    this.changed();
    this.refresh(fresh);
  }

  /** Ask for the line and the model's numbers; knobs that still have the `old` ones take these. */
  async refresh(old = undefined) {
    this.#hear();
    const query = this.#query;
    const key = JSON.stringify(query);
    if (key === this.#known && !old) return;
    this.#known = key;
    const answer = await this.ask(query).catch(() => null);
    if (this.#known !== key) return; // a later query is under way
    const own = answer?.own ?? {};
    const isMoved = this.#take(own, old ?? this.#own);
    this.#own = own;
    if (isMoved) this.refresh();
    else this.line?.show(answer?.plan ?? "");
  }

  /** Give untouched knobs the model's numbers; returns whether one changed. */
  #take(own, old) {
    let isMoved = false;
    for (const widget of this.#knobs) {
      const knob = widget.name.slice(this.name.length + 1);
      const isTouched = !(knob in old) || widget.value !== old[knob];
      if (!(knob in own) || isTouched || widget.value === own[knob]) continue;
      widget.value = own[knob];
      isMoved = true;
    }
    return isMoved;
  }

  #hear() {
    for (const widget of this.#knobs) {
      if (this.#heard.has(widget)) continue;
      this.#heard.add(widget);
      chain(widget, "callback", () => setTimeout(() => this.refresh()));
    }
  }
}
